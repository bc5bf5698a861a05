//! Statements grow; two that do not are shown to clash.

use super::*;
use proptest::{collection::vec, prelude::*};
use surety_channels::view::{NotMet, Says};
use surety_proofs::SegmentOpening;

fn tokens(count: u32) -> Vec<u32> {
    (0..count).map(|place| place * place + 3).collect()
}

fn clash(
    one: &ChunkStatement<Account>,
    other: &ChunkStatement<Account>,
    shown: Option<&SegmentOpening>,
) -> Option<Clash> {
    let clash = incompatible(one, other, shown);
    assert_eq!(
        incompatible(other, one, shown),
        clash,
        "it matters which comes first"
    );
    clash
}

#[test]
fn statements_about_other_answers_do_not_clash() {
    let one = statement(0, &[1], None);
    let mut others = [
        statement(1, &[2], None),
        statement(0, &[2], None),
        statement(0, &[2], None),
    ];
    others[1].channel += 1;
    others[2].payee = [0; 32];
    assert!(others.iter().all(|other| clash(&one, other, None).is_none()));
    assert_eq!(clash(&one, &statement(0, &[2], None), None), Some(Clash::Output));
}

#[test]
fn what_is_as_long_clashes_in_anything_it_says_by_itself() {
    let one = statement(0, &tokens(5), None);
    assert_eq!(clash(&one, &one, None), None);
    let change = |change: fn(&mut ChunkStatement<Account>)| {
        let mut other = one.clone();
        change(&mut other);
        clash(&one, &other, None)
    };
    assert_eq!(change(|other| other.output.0[0] ^= 1), Some(Clash::Output));
    assert_eq!(change(|other| other.units += 1), Some(Clash::Amount));
    assert_eq!(change(|other| other.price -= 1), Some(Clash::Amount));
    assert_eq!(change(|other| other.request.0[31] ^= 1), Some(Clash::Request));
    // The last chunk is stated once more with its end.
    let ended = |how| statement(0, &tokens(5), Some(how));
    assert_eq!(clash(&one, &ended(End::Stop), None), None);
    assert_eq!(
        clash(&ended(End::Cut), &ended(End::Stop), None),
        Some(Clash::Ends)
    );
    let mut other_trace = ended(End::Stop);
    other_trace.end.as_mut().unwrap().trace_root.0[0] ^= 1;
    assert_eq!(clash(&other_trace, &ended(End::Stop), None), Some(Clash::Ends));
}

#[test]
fn nothing_follows_a_receipt() {
    let (short, long) = (
        statement(0, &tokens(5), Some(End::Cut)),
        statement(0, &tokens(9), None),
    );
    assert_eq!(clash(&short, &long, None), Some(Clash::AfterEnd));
    let long = statement(0, &tokens(9), Some(End::Cut));
    assert_eq!(clash(&short, &long, None), Some(Clash::AfterEnd));
    assert_eq!(clash(&statement(0, &tokens(5), None), &long, None), None);
    // Nor one of nothing: who was told something has it.
    let void = ChunkStatement {
        bytes: 0,
        units: 0,
        price: 0,
        output: content_hash(&[]),
        ..short
    };
    assert!(void.is_void());
    assert_eq!(
        clash(&void, &statement(0, &[], None), None),
        Some(Clash::AfterEnd)
    );
}

#[test]
fn the_longer_counts_no_less() {
    let short = statement(0, &tokens(5), None);
    let mut long = statement(0, &tokens(9), None);
    long.price = short.price - 1;
    assert_eq!(clash(&short, &long, None), Some(Clash::Amount));
}

#[test]
fn an_opening_of_another_segment_or_content_shows_nothing() {
    let (one, all) = (tokens(300), tokens(900));
    let mut other = one.clone();
    other[299] ^= 1;
    let (liar, longer) = (statement(0, &other, None), statement(0, &all, None));
    let right = shown(&all, &other).unwrap();
    assert_eq!(clash(&liar, &longer, Some(&right)), Some(Clash::Output));
    assert_eq!(clash(&liar, &longer, None), None);
    let mut wrong: Vec<SegmentOpening> = (0..4)
        .filter_map(|segment| SegmentOpening::new(&said(&all), segment))
        .collect();
    wrong.remove(right.segment as usize);
    wrong.extend(shown(&other, &other));
    let mut altered = right.clone();
    altered.proof.0.pop();
    wrong.push(altered);
    let mut altered = right.clone();
    altered.bytes.pop();
    wrong.push(altered);
    let mut altered = right;
    altered.segment = u32::MAX;
    wrong.push(altered);
    for wrong in wrong {
        assert_eq!(clash(&liar, &longer, Some(&wrong)), None);
    }
}

#[test]
fn a_longer_one_that_counts_its_bytes_wrong_cannot_be_opened() {
    let all = tokens(900);
    let mut longer = statement(0, &all, None);
    // In the segment in which it ends itself: how long that is, is checked there.
    let (short, shown) = (statement(0, &all[..890], None), shown(&all, &all[..890]));
    assert_eq!(extends(&short, &longer, shown.as_ref()), Some(true));
    for bytes in [longer.bytes - 1, longer.bytes + 1, longer.bytes * 2, u32::MAX] {
        longer.bytes = bytes;
        assert_eq!(extends(&short, &longer, shown.as_ref()), None);
    }
}

#[test]
fn a_demand_of_what_was_heard_is_met_by_what_goes_on_from_it_and_counts_no_less() {
    let (all, heard) = (tokens(900), tokens(300));
    let says = Says::of(&statement(0, &heard, None), &GENESIS);
    let segment = shown(&all, &heard);
    let met = |change: fn(&mut ChunkStatement<Account>)| {
        let mut receipt = statement(0, &all, Some(End::Length));
        change(&mut receipt);
        says.met_by(&receipt, segment.as_ref(), &GENESIS)
    };
    assert_eq!(met(|_| {}), Ok(()));
    let changes: [fn(&mut ChunkStatement<Account>); 8] = [
        |receipt| receipt.end = None,
        |receipt| receipt.request.0[0] ^= 1,
        |receipt| receipt.units = 9,
        |receipt| receipt.price = 1,
        |receipt| receipt.bytes = 8,
        // All of that costs less than what was heard, word for word.
        |receipt| receipt.price -= 1,
        |receipt| receipt.units -= 1,
        |receipt| receipt.bytes += 4,
    ];
    for change in changes {
        assert_eq!(met(change), Err(NotMet::Other));
    }
    // What was shown is not of that output.
    assert_eq!(met(|receipt| receipt.output.0[0] ^= 1), Err(NotMet::Unproven));
    // Nothing else is the receipt that was heard to its end, whatever is shown.
    let whole = statement(0, &heard, Some(End::Length));
    let says = Says::of(&whole, &GENESIS);
    assert_eq!(says.met_by(&whole, None, &GENESIS), Ok(()));
    let longer = statement(0, &all, Some(End::Length));
    assert_eq!(
        says.met_by(&longer, segment.as_ref(), &GENESIS),
        Err(NotMet::Other)
    );
}

#[test]
fn a_statement_follows_from_its_request() {
    let request = request();
    let good = statement(0, &tokens(5), Some(End::Length));
    assert_eq!(good.check(&request), Ok(()));
    let void = ChunkStatement {
        bytes: 0,
        units: 0,
        price: 0,
        ..good.clone()
    };
    assert_eq!(void.check(&request), Ok(()));
    let changed = |change: fn(&mut ChunkStatement<Account>)| {
        let mut other = good.clone();
        change(&mut other);
        other.check(&request)
    };
    assert_eq!(
        changed(|other| other.request.0[0] ^= 1),
        Err(Misstated::OtherRequest)
    );
    assert_eq!(changed(|other| other.price += 1), Err(Misstated::Price));
    assert_eq!(
        changed(|other| (other.units, other.price) = (16, 80)),
        Err(Misstated::Units)
    );
    assert_eq!(changed(|other| other.bytes += 1), Err(Misstated::Units));
    assert_eq!(changed(|other| other.bytes = 0), Err(Misstated::Units));
    let cheap = Request {
        units_max: 14,
        ..request.clone()
    };
    let dear = ChunkStatement {
        request: cheap.hash(),
        ..good.clone()
    };
    assert_eq!(dear.check(&cheap), Err(Misstated::Units));
    let beyond = Request {
        unit_price: u128::MAX,
        ..request
    };
    let beyond_said = ChunkStatement {
        request: beyond.hash(),
        ..good
    };
    assert_eq!(beyond_said.check(&beyond), Err(Misstated::Price));
}

#[test]
fn the_claimed_output_is_what_a_dispute_is_about() {
    for count in [0, 5, 255, 256, 700] {
        let tokens = tokens(count);
        let head = SegmentOpening::new(&said(&tokens), 0);
        let claimed = |how| statement(0, &tokens, Some(how)).claimed_output(head.as_ref());
        let mut ended = said(&tokens);
        for how in [End::Length, End::Cancelled, End::Cut] {
            assert_eq!(claimed(how), Some(content_hash(&ended)));
        }
        ended[0] = 1;
        assert_eq!(claimed(End::Stop), Some(content_hash(&ended)));
        let stopped = statement(0, &tokens, Some(End::Stop));
        assert_eq!(stopped.claimed_output(None), None);
        assert_eq!(
            stopped.claimed_output(SegmentOpening::new(&ended, 0).as_ref()),
            None
        );
        assert_eq!(statement(0, &tokens, None).claimed_output(head.as_ref()), None);
    }
    let nothing = ChunkStatement {
        bytes: 0,
        ..statement(0, &[], Some(End::Stop))
    };
    assert_eq!(
        nothing.claimed_output(SegmentOpening::new(&said(&[]), 0).as_ref()),
        None
    );
}

#[test]
fn a_shorter_receipt_or_an_unfinished_one_covers_nothing() {
    let held = statement(0, &tokens(5), None);
    assert!(statement(0, &tokens(5), Some(End::Cut)).covers(&held));
    assert!(statement(0, &tokens(9), Some(End::Stop)).covers(&held));
    assert!(!statement(0, &tokens(9), None).covers(&held));
    assert!(!statement(0, &tokens(4), Some(End::Stop)).covers(&held));
    assert!(!statement(1, &tokens(9), Some(End::Stop)).covers(&held));
}

#[test]
fn only_what_the_agent_signed_for_this_chain_is_a_report() {
    let (one, other) = (statement(0, &[1], None), statement(0, &[2], None));
    let report = Equivocation {
        one: signed(one.clone()),
        other: signed(other),
        shown: None,
    };
    assert_eq!(report.verify(&GENESIS, verify), Some(Clash::Output));
    assert_eq!(report.verify(&H256::zero(), verify), None);
    let honest = Equivocation {
        other: signed(one),
        ..report.clone()
    };
    assert_eq!(honest.verify(&GENESIS, verify), None);
    let mut forged = report;
    forged.other.statement.output.0[0] ^= 1;
    assert_eq!(forged.verify(&GENESIS, verify), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// Whatever is shown: of the right segment, of another one, of other content.
    #[test]
    fn two_honest_statements_never_clash(
        all in vec(any::<u32>(), 1..1_300), one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(), segment in 0u32..6, wrong in vec(any::<u32>(), 1..1_300),
    ) {
        let cut = |at: prop::sample::Index| &all[..at.index(all.len() + 1)];
        let (one, other) = (cut(one), cut(other));
        let ended = |tokens: &[u32]| (tokens.len() == all.len()).then_some(End::Length);
        let (first, second) = (statement(0, one, ended(one)), statement(0, other, ended(other)));
        for shown in [shown(other, one), shown(one, other), SegmentOpening::new(&said(&all), segment),
            SegmentOpening::new(&said(&wrong), segment), None]
        {
            prop_assert_eq!(clash(&first, &second, shown.as_ref()), None);
        }
    }

    #[test]
    fn two_of_which_neither_begins_with_the_other_always_clash(
        mut one in vec(any::<u32>(), 1..1_300), more in vec(any::<u32>(), 0..600),
        at in any::<prop::sample::Index>(), bit in 0u32..32,
    ) {
        let longer = [one.clone(), more].concat();
        let at = at.index(one.len());
        one[at] ^= 1 << bit;
        let shown = shown(&longer, &one);
        let (one, other) = (statement(0, &one, None), statement(0, &longer, None));
        prop_assert_eq!(extends(&one, &other, shown.as_ref()), Some(false));
        prop_assert_eq!(clash(&one, &other, shown.as_ref()), Some(Clash::Output));
    }

    /// Whatever is shown of it, or of what was heard: who begins so can show it by one segment, nobody else
    /// by any.
    #[test]
    fn a_demand_is_met_by_a_receipt_that_begins_with_what_was_heard_and_by_no_other(
        heard in vec(any::<u32>(), 0..1_300), more in vec(any::<u32>(), 0..600),
        at in any::<prop::sample::Index>(), bit in 0u32..32, is_other in any::<bool>(),
    ) {
        let says = Says::of(&statement(0, &heard, None), &GENESIS);
        let mut all = [heard.clone(), more].concat();
        let is_other = is_other && !heard.is_empty();
        if is_other {
            all[at.index(heard.len())] ^= 1 << bit;
        }
        let receipt = statement(0, &all, Some(End::Length));
        let Says::GoesOn(begun) = says else {
            panic!("it has no end");
        };
        let right = begun.segment_in(&receipt).and_then(|segment| SegmentOpening::new(&said(&all), segment));
        let met = says.met_by(&receipt, right.as_ref(), &GENESIS);
        prop_assert_eq!(met, if is_other { Err(NotMet::Other) } else { Ok(()) });
        for output in [said(&all), said(&heard)] {
            for segment in 0..8 {
                let shown = SegmentOpening::new(&output, segment);
                let met = says.met_by(&receipt, shown.as_ref(), &GENESIS);
                prop_assert!(!is_other || met.is_err());
            }
        }
    }

    #[test]
    fn the_kilobyte_in_which_the_shorter_ends_shows_that_the_longer_goes_on_from_it(
        all in vec(any::<u32>(), 1..2_000), at in any::<prop::sample::Index>(),
    ) {
        let short = &all[..at.index(all.len())];
        let (one, other) = (statement(0, short, None), statement(0, &all, None));
        prop_assert_eq!(extends(&one, &other, shown(&all, short).as_ref()), Some(true));
        prop_assert_eq!(extends(&one, &other, None), None);
        prop_assert_eq!(extends(&other, &one, shown(&all, short).as_ref()), Some(false));
    }
}
