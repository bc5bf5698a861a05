//! Of an answer that broke off whoever holds a part of it demands what goes on from there, and nothing else.

use surety_channels::{End, Ending};
use surety_proofs::{SEGMENT_BYTES, SegmentOpening, content_hash};

use super::{
    demands::{committed, demand_receipt, end_as_withheld},
    *,
};

/// Words of the whole answer: two segments, of which the second is not full.
const ALL: u32 = 400;
/// Words of a long one: six segments, so that those that are not shown are of more than one height.
const LONG: u32 = 1_500;

fn request() -> Request {
    generation(1_000, 1_000)
}

/// What is said, as an output has it: a word of 0, and then the tokens.
fn output(tokens: u32) -> Vec<u8> {
    (0..tokens).flat_map(u32::to_le_bytes).collect()
}

/// What is signed of an answer that has said this.
fn said(nonce: u32, output: &[u8], is_over: bool) -> ChunkStatement<AccountId32> {
    let words = output.len() as u32 / 4;
    let units = 10 + words.saturating_sub(1);
    ChunkStatement {
        channel: 0,
        payee: stash(),
        nonce,
        request: request().hash(),
        bytes: output.len() as u32,
        output: content_hash(output),
        units,
        price: request().price(units).expect("small"),
        end: is_over.then_some(Ending {
            how: End::Length,
            trace_root: H256::repeat_byte(3),
        }),
    }
}

fn heard(nonce: u32, words: u32) -> ChunkStatement<AccountId32> {
    said(nonce, &output(words), false)
}

/// Shows a receipt of this batch with this segment of an output.
fn show(
    made: &(BatchNumber, Batch),
    receipt: &ChunkStatement<AccountId32>,
    shown: Option<SegmentOpening>,
) -> sp_runtime::DispatchResult {
    let receipt = Box::new(batched(&made.1, receipt.clone()));
    ChannelsPallet::show_receipt(signed(agent()), payer(), made.0, receipt, shown)
}

#[test]
fn a_demand_of_an_answer_that_broke_off_is_met_by_its_receipt_wherever_it_broke_off() {
    run(|| {
        assert_eq!(open(5 * SURE), 0);
        let per_segment = SEGMENT_BYTES / 4;
        let broken_off = [1, 2, per_segment - 1, per_segment, per_segment + 1, ALL - 1, ALL];
        let whole = output(ALL);
        let receipts: Vec<_> = (0..)
            .take(broken_off.len())
            .map(|at| said(at, &whole, true))
            .collect();
        let made = committed(&receipts);
        for (words, receipt) in broken_off.into_iter().zip(&receipts) {
            assert_ok!(demand_receipt(payer(), heard(receipt.nonce, words)));
            let right = words.div_ceil(per_segment) - 1;
            let segment = |segment| SegmentOpening::new(&whole, segment);
            if words < ALL {
                // What is not shown, or elsewhere, says nothing.
                for shown in [
                    None,
                    segment(1 - right),
                    SegmentOpening::new(&output(words), right),
                ] {
                    assert_noop!(show(&made, receipt, shown), Error::<Test>::BeginningNotShown);
                }
                assert_ok!(show(&made, receipt, segment(right)));
            } else {
                assert_ok!(show(&made, receipt, None));
            }
        }
        assert_eq!(Demands::<Test>::iter().count(), 0);
    });
}

#[test]
fn a_demand_of_half_of_a_long_answer_is_met_by_all_of_it_and_by_nothing_that_differs_in_that_half() {
    run(|| {
        open(5 * SURE);
        let whole = output(LONG);
        let words = LONG / 2 + 7;
        let told = words as usize * 4;
        let last = (words * 4 - 1) / SEGMENT_BYTES;
        assert_ok!(demand_receipt(payer(), heard(0, words)));
        for at in [0, told / 2, told - 1] {
            let mut other = whole.clone();
            other[at] ^= 1;
            let receipt = said(0, &other, true);
            let made = committed(std::slice::from_ref(&receipt));
            let shown = SegmentOpening::new(&other, last);
            assert_noop!(show(&made, &receipt, shown), Error::<Test>::NotDemanded);
        }
        let receipt = said(0, &whole, true);
        let made = committed(std::slice::from_ref(&receipt));
        assert_ok!(show(&made, &receipt, SegmentOpening::new(&whole, last)));
    });
}

#[test]
fn whoever_demands_an_answer_that_broke_off_pays_for_as_much_of_a_segment_as_is_shown() {
    run(|| {
        open(5 * SURE);
        let whole = said(0, &output(ALL), true);
        let made = committed(std::slice::from_ref(&whole));
        let (price, half) = (DemandPrice::get(), DemandPrice::get() / 2);
        let mut surplus = 0;
        let of_last = u128::from(ALL * 4 - SEGMENT_BYTES);
        let segment = |segment| SegmentOpening::new(&output(ALL), segment);
        for (held, shown, borne) in [
            (heard(0, 100), segment(0), price),
            (
                heard(0, 300),
                segment(1),
                half + half * of_last / u128::from(SEGMENT_BYTES),
            ),
            // What is not asked for is not paid.
            (heard(0, ALL), segment(0), half),
            (whole.clone(), segment(0), half),
        ] {
            let before = (free(&payer()), free(&stash()));
            assert_ok!(demand_receipt(payer(), held));
            assert_ok!(show(&made, &whole, shown));
            // The same is demanded again and again.
            assert_eq!(free(&payer()), before.0 - borne - surplus);
            assert_eq!(free(&stash()), before.1 + borne + surplus);
            surplus += price;
        }
    });
}

#[test]
fn who_breaks_off_and_batches_something_longer_that_does_not_begin_so_loses_its_lock() {
    run(|| {
        let channel = open(5 * SURE);
        let told = 300;
        // Other in its first word, in the last that was heard, and in a segment that is not shown.
        let others: Vec<Vec<u8>> = [4, 4 * told as usize - 4, 900]
            .into_iter()
            .map(|at| {
                let mut other = output(ALL);
                other[at] ^= 1;
                other
            })
            .collect();
        let receipts: Vec<_> = (0..)
            .zip(&others)
            .map(|(nonce, other)| said(nonce, other, true))
            .collect();
        let made = committed(&receipts);
        pass(WINDOW + 1);
        assert_ok!(redeem(channel, 5 * SURE, std::slice::from_ref(&made)));
        for receipt in &receipts {
            assert_ok!(demand_receipt(payer(), heard(receipt.nonce, told)));
        }
        for (receipt, other) in receipts.iter().zip(&others) {
            let honest = output(ALL);
            for output in [other, &honest] {
                for segment in [None, Some(0), Some(1)] {
                    let shown = segment.and_then(|segment| SegmentOpening::new(output, segment));
                    assert!(show(&made, receipt, shown).is_err());
                }
            }
            let shown = SegmentOpening::new(other, 1);
            assert_noop!(show(&made, receipt, shown), Error::<Test>::NotDemanded);
        }
        pass(SUPPLY + 1);
        end_as_withheld(payer());
        assert_eq!(Channels::<Test>::get(channel).map(|of| of.purse.paid), Some(0));
    });
}

#[test]
fn the_same_words_for_another_request_or_another_price_are_not_what_was_heard() {
    run(|| {
        open(5 * SURE);
        let whole = said(0, &output(ALL), true);
        let instead: [fn(&mut ChunkStatement<AccountId32>); 6] = [
            // What is asked there has them for an answer.
            |other| other.request = generation(999, 1_000).hash(),
            // No point meets it.
            |other| other.price = 1,
            |other| other.units = 9,
            |other| other.end = None,
            // What is said more costs less a unit, or is not counted.
            |other| other.price -= 1,
            |other| {
                other.units -= 1;
                other.price = request().price(other.units).expect("small");
            },
        ];
        assert_ok!(demand_receipt(payer(), heard(0, 300)));
        let shown = SegmentOpening::new(&output(ALL), 1);
        for change in instead {
            let mut other = whole.clone();
            change(&mut other);
            let made = committed(std::slice::from_ref(&other));
            assert_noop!(show(&made, &other, shown.clone()), Error::<Test>::NotDemanded);
        }
        let made = committed(std::slice::from_ref(&whole));
        assert_ok!(show(&made, &whole, shown));
    });
}

#[test]
fn nothing_that_was_heard_goes_on_in_any_receipt_of_its_request() {
    run(|| {
        open(5 * SURE);
        // The prompt was read, and nothing said.
        let nothing = said(0, &[], false);
        assert!(!nothing.is_void());
        assert_ok!(demand_receipt(payer(), nothing));
        let whole = said(0, &output(ALL), true);
        let made = committed(std::slice::from_ref(&whole));
        assert_ok!(show(&made, &whole, None));
    });
}

#[test]
fn what_nobody_demands_is_met_by_no_segment() {
    run(|| {
        open(5 * SURE);
        let whole = said(0, &output(ALL), true);
        let made = committed(std::slice::from_ref(&whole));
        let shown = SegmentOpening::new(&output(ALL), 1);
        assert_noop!(show(&made, &whole, shown.clone()), Error::<Test>::NotDemanded);
        // A receipt that was heard to its end has nothing to show.
        assert_ok!(demand_receipt(payer(), whole.clone()));
        assert_ok!(show(&made, &whole, shown));
    });
}
