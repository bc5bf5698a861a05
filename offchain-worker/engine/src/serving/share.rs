//! How the rows of a step are shared out.

use std::collections::{BTreeMap, VecDeque};

/// What a generation could do in a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want<C> {
    pub(super) client: C,
    /// Tokens that it has ready: the rest of a prompt, or one.
    pub(super) rows: usize,
    /// The step that it was last part of.
    pub(super) served: u64,
}

/// So many rows for each, `rows_max` in all: one by one, to each client in turn, and of a client to each of
/// its generations in turn. Those that were served longest ago come first, so that nobody is always late
/// where there are more of them than rows.
///
/// With max-min fairness: who gets fewer rows than it wants gets no fewer than any other, but for one.
pub(super) fn share<C: Ord + Copy>(wants: &[Want<C>], rows_max: usize) -> Vec<usize> {
    let mut order: Vec<(usize, &Want<C>)> = wants.iter().enumerate().collect();
    order.retain(|(_, want)| want.rows > 0);
    order.sort_by_key(|(_, want)| want.served);
    let mut clients: BTreeMap<C, (u64, VecDeque<usize>)> = BTreeMap::new();
    for (index, want) in order {
        let (served, turns) = clients.entry(want.client).or_default();
        *served = want.served.max(*served);
        turns.push_back(index);
    }
    let mut clients: Vec<_> = clients.into_values().collect();
    clients.sort_by_key(|(served, _)| *served);
    let mut shares = vec![0; wants.len()];
    let mut left = rows_max;
    while left > 0 && !clients.is_empty() {
        clients.retain_mut(|(_, turns)| {
            if left > 0
                && let Some(index) = turns.pop_front()
                && let (Some(share), Some(want)) = (shares.get_mut(index), wants.get(index))
            {
                *share += 1;
                left -= 1;
                if *share < want.rows {
                    turns.push_back(index);
                }
            }
            !turns.is_empty()
        });
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn wants() -> impl Strategy<Value = Vec<Want<u8>>> {
        let want = (0u8..4, 0usize..40, 0u64..5);
        let want = want.prop_map(|(client, rows, served)| Want { client, rows, served });
        vec(want, 0..12)
    }

    /// Wanted and given, by client.
    fn by_client(wants: &[Want<u8>], shares: &[usize]) -> BTreeMap<u8, (usize, usize)> {
        let mut clients = BTreeMap::new();
        for (want, share) in wants.iter().zip(shares) {
            let (wanted, given) = clients.entry(want.client).or_insert((0, 0));
            *wanted += want.rows;
            *given += share;
        }
        clients
    }

    proptest! {
        #[test]
        fn rows_are_used_up_and_nobody_has_more_than_it_wants(wants in wants(), rows_max in 0usize..100) {
            let shares = share(&wants, rows_max);
            let wanted: usize = wants.iter().map(|want| want.rows).sum();
            prop_assert_eq!(shares.iter().sum::<usize>(), wanted.min(rows_max));
            prop_assert!(wants.iter().zip(&shares).all(|(want, share)| *share <= want.rows));
        }

        #[test]
        fn who_gets_too_few_gets_as_many_as_any_other_but_for_one(wants in wants(), rows_max in 0usize..100) {
            let shares = share(&wants, rows_max);
            let clients = by_client(&wants, &shares);
            let most = clients.values().map(|(_, given)| *given).max().unwrap_or(0);
            for (wanted, given) in clients.into_values() {
                prop_assert!(given == wanted || given + 1 >= most);
            }
            for (want, share) in wants.iter().zip(&shares) {
                let of_client = wants.iter().zip(&shares).filter(|(other, _)| other.client == want.client);
                let most = of_client.map(|(_, share)| *share).max().unwrap_or(0);
                prop_assert!(*share == want.rows || share + 1 >= most);
            }
        }

        #[test]
        fn nobody_waits_longer_than_a_round(clients in 1u8..9, rows_max in 1usize..4) {
            let mut wants: Vec<_> = (0..clients)
                .map(|client| Want { client, rows: 1, served: 0 })
                .collect();
            let round = u64::from(clients).div_ceil(rows_max as u64);
            for step in 1..50 {
                let shares = share(&wants, rows_max);
                for (want, rows) in wants.iter_mut().zip(shares) {
                    if rows > 0 {
                        want.served = step;
                    }
                    prop_assert!(step - want.served <= round);
                }
            }
        }
    }
}
