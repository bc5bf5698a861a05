//! Batches, against a sorted list.

use super::*;
use codec::{Decode, Encode};
use proptest::{collection::vec, prelude::*};

/// Channels in ascending order with consecutive receipts.
fn any_channels() -> impl Strategy<Value = Vec<(ChannelId, Nonce, Vec<u128>)>> {
    vec((1u64..50, 0u32..100, vec(0u128..30, 1..9)), 1..12).prop_map(|parts| {
        let mut channel = 0;
        let ascending = parts.into_iter().map(|(step, first, prices)| {
            channel += step;
            (channel, first, prices)
        });
        ascending.collect()
    })
}

#[test]
fn what_is_no_batch_is_refused_where_it_is_wrong() {
    let batch = |parts: &[(ChannelId, Nonce, Vec<u128>)]| Batch::new(&entries(parts)).map(|_| ());
    assert_eq!(Batch::new(&[]).map(|_| ()), Err(Unbatchable::Empty));
    assert_eq!(batch(&[(1, 0, vec![1, 1]), (2, 5, vec![1])]), Ok(()));
    assert_eq!(
        batch(&[(2, 0, vec![1, 1]), (1, 0, vec![1])]),
        Err(Unbatchable::Unsorted { place: 2 })
    );
    // The same channel again, behind another one.
    assert_eq!(
        batch(&[(1, 0, vec![1]), (2, 0, vec![1]), (1, 1, vec![1])]),
        Err(Unbatchable::Unsorted { place: 2 })
    );
    let gap = [entry(1, 0, 1), entry(1, 2, 1)];
    assert_eq!(Batch::new(&gap).map(|_| ()), Err(Unbatchable::Gap { place: 1 }));
    let twice = [entry(1, 0, 1), entry(1, 0, 1)];
    assert_eq!(Batch::new(&twice).map(|_| ()), Err(Unbatchable::Gap { place: 1 }));
    let last = [entry(1, 3, 1), entry(2, u32::MAX, 1), entry(2, 0, 1)];
    assert_eq!(Batch::new(&last).map(|_| ()), Err(Unbatchable::Gap { place: 2 }));
    let dear = [entry(1, 0, u128::MAX), entry(1, 1, 1)];
    assert_eq!(Batch::new(&dear).map(|_| ()), Err(Unbatchable::TooDear));
    let dear = [entry(1, 0, u128::MAX), entry(2, 0, 1)];
    assert_eq!(Batch::new(&dear).map(|_| ()), Err(Unbatchable::TooDear));
    let many = vec![entry(1, 0, 1); RECEIPTS_MAX as usize + 1];
    assert_eq!(Batch::new(&many).map(|_| ()), Err(Unbatchable::TooMany));
}

#[test]
fn nothing_is_shown_under_a_root_that_there_cannot_be() {
    let batch = Batch::new(&entries(&[(1, 0, vec![5])])).unwrap();
    let (root, opening) = (batch.root(), batch.open(1, 0).unwrap());
    assert!(root.is_possible() && opening.verify(&root).is_some());
    let empty = BatchRoot { channels: 0, ..root };
    let mut none = root;
    none.sums.receipts = 0;
    let many = BatchRoot { channels: 2, ..root };
    let mut beyond = root;
    beyond.sums.receipts = RECEIPTS_MAX + 1;
    for root in [empty, none, many, beyond] {
        assert!(!root.is_possible() && opening.verify(&root).is_none());
    }
}

#[test]
fn what_costs_nothing_is_met_by_no_point() {
    let batch = Batch::new(&entries(&[
        (1, 0, vec![0, 3, 0, 0, 2, 0]),
        (2, 0, vec![0]),
        (3, 0, vec![1]),
    ]));
    let batch = batch.unwrap();
    let met: Vec<_> = (0..6)
        .map(|point| {
            let shown = batch.leaf_at(point).unwrap().verify(&batch.root()).unwrap();
            (shown.channel, shown.nonce)
        })
        .collect();
    assert_eq!(met, [(1, 1), (1, 1), (1, 1), (1, 4), (1, 4), (3, 0)]);
    assert_eq!(batch.leaf_at(6), None);
}

#[test]
fn an_answer_beyond_the_last_number_is_not_shown() {
    // Nobody can number it: whoever builds such a tree shows nothing.
    let batch = Batch::new(&[entry(1, u32::MAX, 1)]).unwrap();
    let mut opening = batch.open(1, u32::MAX).unwrap();
    assert!(opening.verify(&batch.root()).is_some());
    opening.place = 1;
    assert!(opening.verify(&batch.root()).is_none());
}

proptest! {
    #[test]
    fn a_batch_shows_what_a_list_says(channels in any_channels()) {
        let list = entries(&channels);
        let batch = Batch::new(&list).unwrap();
        let root = batch.root();
        prop_assert_eq!(root.channels as usize, channels.len());
        prop_assert_eq!(root.sums.receipts as usize, list.len());
        prop_assert_eq!(root.sums.price, list.iter().map(|entry| entry.price).sum::<u128>());

        let mut start = 0;
        for entry in &list {
            let opening = batch.open(entry.channel, entry.nonce).unwrap();
            let shown = opening.verify(&root).unwrap();
            prop_assert_eq!(shown, ProvenReceipt {
                channel: entry.channel,
                nonce: entry.nonce,
                receipt: entry.leaf.receipt,
                price: entry.price,
                start,
            });
            for point in start..start + entry.price {
                prop_assert_eq!(batch.leaf_at(point), Some(opening.clone()));
                prop_assert_eq!(shown.offset(point), Some(point - start));
            }
            prop_assert_eq!(shown.offset(start + entry.price), None);
            prop_assert!(start == 0 || shown.offset(start - 1).is_none());
            start += entry.price;
            let bytes = opening.encode();
            prop_assert_eq!(ReceiptOpening::decode(&mut &bytes[..]), Ok(opening));
        }
        prop_assert_eq!(batch.leaf_at(start), None);

        for (place, (channel, first, prices)) in channels.iter().enumerate() {
            let shown = batch.open_channel(*channel).unwrap().verify(&root).unwrap();
            prop_assert_eq!((shown.place as usize, shown.channel, shown.first), (place, *channel, *first));
            prop_assert_eq!(shown.total.sums.receipts as usize, prices.len());
            prop_assert_eq!(shown.total.sums.price, prices.iter().sum::<u128>());
        }
    }

    #[test]
    fn what_is_not_there_is_shown_to_be_absent_and_what_is_cannot_be(
        channels in any_channels(), channel in 0u64..300, nonce in 0u32..120,
    ) {
        let list = entries(&channels);
        let batch = Batch::new(&list).unwrap();
        let root = batch.root();
        let is_there = list.iter().any(|entry| (entry.channel, entry.nonce) == (channel, nonce));
        prop_assert_eq!(batch.open(channel, nonce).is_some(), is_there);
        let absence = batch.absence(channel, nonce);
        prop_assert_eq!(absence.is_none(), is_there);
        prop_assert!(absence.is_none_or(|absence| absence.verify(&root, channel, nonce)));
        // Nothing that this batch can show is the absence of what is there.
        let openings = channels.iter().filter_map(|(channel, ..)| batch.open_channel(*channel));
        let openings: Vec<_> = openings.collect();
        for entry in list.iter().take(5) {
            let absent = |absence: Absence| absence.verify(&root, entry.channel, entry.nonce);
            let between = |before, after| absent(Absence::Between { before, after });
            prop_assert!(!between(None, None));
            for one in &openings {
                prop_assert!(!absent(Absence::Beyond(one.clone())));
                prop_assert!(!between(Some(one.clone()), None));
                prop_assert!(!between(None, Some(one.clone())));
                for other in &openings {
                    prop_assert!(!between(Some(one.clone()), Some(other.clone())));
                }
            }
        }
    }

    #[test]
    fn an_opening_with_one_bit_changed_shows_nothing_or_the_same(
        channels in any_channels(), at in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(), bit in 0u32..8,
    ) {
        let list = entries(&channels);
        let batch = Batch::new(&list).unwrap();
        let root = batch.root();
        let entry = list[at.index(list.len())];
        let opening = batch.open(entry.channel, entry.nonce).unwrap();
        let mut bytes = opening.encode();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let Ok(changed) = ReceiptOpening::decode(&mut &bytes[..]) else { return Ok(()) };
        prop_assert!(changed.verify(&root).is_none());
        let mut bytes = root.encode();
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        let other = BatchRoot::decode(&mut &bytes[..]).unwrap();
        // Another number of channels may give a place the same way to the root: it shows no other receipt.
        let shown = opening.verify(&other);
        prop_assert!(shown.is_none() || (other.channels != root.channels && shown == opening.verify(&root)));
    }
}
