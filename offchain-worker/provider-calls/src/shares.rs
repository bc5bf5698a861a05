//! How many of a provider's places one payer may have. Requests do not wait here: whoever is refused asks
//! again, or somebody else. So what is for others is kept free beforehand. A payer's share is what each would
//! have if another came; below it any free place is a payer's, and above it only while more than a fifth of
//! all are free.
//!
//! A payer is whoever has deposited: more connections, keys or channels bring no more places, and another
//! account costs another deposit.

use std::collections::{BTreeMap, BTreeSet};

use surety_chain_client::ChannelView;
use surety_channels::ChannelId;

/// Whether a payer that has `own` of the `taken` places may have another, where so many `payers` have some,
/// or would have, this one among them.
fn may_have_another(own: usize, payers: usize, taken: usize, places: usize) -> bool {
    let free = places.saturating_sub(taken);
    let share = places.div_ceil(payers.saturating_add(1));
    // A fifth, to the nearest: none of two.
    let kept = places.saturating_add(2) / 5;
    free > kept || (free > 0 && own < share)
}

/// Whether whoever pays a channel may have another place of a kind, of which there are so many, and of which
/// there is one taken for each of the channels in `taken`. Of a channel that is not known it is not said.
pub(crate) fn has_share(
    channels: &[ChannelView],
    channel: ChannelId,
    taken: &[ChannelId],
    places: usize,
) -> bool {
    let payers: BTreeMap<_, _> = channels.iter().map(|view| (view.channel, &view.payer)).collect();
    let Some(asked) = payers.get(&channel) else {
        return true;
    };
    let payers: Vec<_> = taken.iter().filter_map(|channel| payers.get(channel)).collect();
    let own = payers.iter().filter(|payer| **payer == asked).count();
    let different: BTreeSet<_> = payers.into_iter().chain([asked]).collect();
    may_have_another(own, different.len(), taken.len(), places)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Payers that always want another place, and how many each has.
    struct Door {
        own: Vec<usize>,
        places: usize,
    }

    impl Door {
        fn new(payers: usize, places: usize) -> Self {
            Self {
                own: vec![0; payers],
                places,
            }
        }

        fn takes(&self, payer: usize) -> bool {
            let different = (0..self.own.len()).filter(|other| self.own[*other] > 0 || *other == payer);
            may_have_another(
                self.own[payer],
                different.count(),
                self.own.iter().sum(),
                self.places,
            )
        }

        fn ask(&mut self, payer: usize) {
            self.own[payer] += usize::from(self.takes(payer));
        }

        /// These ask in this order, until nobody is given any.
        fn fill(&mut self, order: impl Iterator<Item = usize> + Clone) {
            let mut before = Vec::new();
            while before != self.own {
                before.clone_from(&self.own);
                order.clone().for_each(|payer| self.ask(payer));
            }
        }
    }

    #[test]
    fn alone_a_payer_leaves_a_fifth_of_all_places_and_who_comes_later_is_given_those() {
        for (places, alone) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (8, 6), (16, 13), (64, 51)] {
            let mut door = Door::new(2, places);
            door.fill([0].into_iter());
            assert_eq!(door.own, [alone, 0]);
            door.fill([1].into_iter());
            assert_eq!(door.own, [alone, places - alone]);
        }
    }

    #[test]
    fn whoever_has_none_is_given_any_place_that_is_free_and_nobody_one_that_is_not() {
        for places in 1..100 {
            for taken in 0..places {
                assert!((1..=taken + 1).all(|payers| may_have_another(0, payers, taken, places)));
            }
            assert!((1..=places).all(|payers| !may_have_another(0, payers, places, places)));
        }
    }

    /// The first has had all that it may have, and asks several times as often as any other.
    #[test]
    fn as_answers_end_all_have_about_as_many_however_often_one_asks() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |bound: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % bound as u64) as usize
        };
        for (payers, places) in [(2, 8), (3, 8), (8, 64), (10, 16), (16, 16)] {
            let mut door = Door::new(payers, places);
            door.fill([0].into_iter());
            let mut had = vec![0; payers];
            for _ in 0..5_000 {
                // Any answer ends.
                let mut ended = below(door.own.iter().sum());
                let of = door.own.iter_mut().find(|own| {
                    let is_its = ended < **own;
                    ended = ended.saturating_sub(**own);
                    is_its
                });
                *of.unwrap() -= 1;
                for _ in 0..4 {
                    let asks = below(payers + 3);
                    door.ask(asks.saturating_sub(3));
                }
                for (had, own) in had.iter_mut().zip(&door.own) {
                    *had += own;
                }
            }
            let least = had.iter().min().unwrap();
            assert!(had[0] <= 2 * least, "{had:?} of {places}");
        }
    }
}
