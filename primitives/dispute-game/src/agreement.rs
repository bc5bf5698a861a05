//! Which result enough providers share.

use alloc::vec::Vec;
use surety_types::task::ResultClaim;

/// How many of `k` results must be equal: more than half.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "half of a number and one is no more than that number and one"
)]
pub const fn majority(k: u32) -> u32 {
    k / 2 + 1
}

/// What a set of claims says together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Enough providers made this claim.
    Reached {
        /// The claim they share.
        claim: ResultClaim,
        /// How many made it.
        supporters: u32,
    },
    /// No claim was made often enough.
    Missing,
}

/// Groups equal claims and looks for one made by a majority of `k`.
///
/// Two claims are equal when output, trace root and units all are. Who did not reveal counts as made no
/// claim, so the majority is of `k` and not of the claims. Should there be more claims than `k`, it is of the
/// claims: there is never more than one winner. The order of the claims makes no difference.
pub fn agreement<'a>(claims: impl IntoIterator<Item = &'a ResultClaim>, k: u32) -> Agreement {
    let mut groups: Vec<(&ResultClaim, u32)> = Vec::new();
    let mut total = 0u32;
    for claim in claims {
        total = total.saturating_add(1);
        match groups.iter_mut().find(|(known, _)| *known == claim) {
            Some((_, supporters)) => *supporters = supporters.saturating_add(1),
            None => groups.push((claim, 1)),
        }
    }
    let needed = majority(k.max(total));
    match groups.into_iter().find(|(_, supporters)| *supporters >= needed) {
        Some((claim, supporters)) => Agreement::Reached {
            claim: claim.clone(),
            supporters,
        },
        None => Agreement::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use sp_core::H256;

    fn claim(output: u8) -> ResultClaim {
        ResultClaim {
            output: H256::repeat_byte(output),
            trace_root: H256::repeat_byte(9),
            units: 3,
        }
    }

    fn claims_of(outputs: &[u8]) -> Vec<ResultClaim> {
        outputs.iter().copied().map(claim).collect()
    }

    fn agree(outputs: &[u8], k: u32) -> Agreement {
        agreement(&claims_of(outputs), k)
    }

    #[test]
    fn a_majority_is_more_than_half() {
        let majorities: Vec<u32> = (0..=8).map(majority).collect();
        assert_eq!(majorities, [1, 1, 2, 2, 3, 3, 4, 4, 5]);
        assert_eq!(majority(u32::MAX), 1 << 31);
    }

    #[test]
    fn one_provider_agrees_with_itself() {
        assert_eq!(
            agree(&[4], 1),
            Agreement::Reached {
                claim: claim(4),
                supporters: 1
            }
        );
    }

    #[test]
    fn nothing_comes_of_no_claims() {
        assert_eq!(agree(&[], 0), Agreement::Missing);
        assert_eq!(agree(&[], 3), Agreement::Missing);
    }

    #[test]
    fn half_is_not_enough() {
        assert_eq!(agree(&[1, 1, 2, 2], 4), Agreement::Missing);
        assert_eq!(
            agree(&[1, 1, 1, 2], 4),
            Agreement::Reached {
                claim: claim(1),
                supporters: 3
            }
        );
    }

    #[test]
    fn who_stays_silent_supports_nobody() {
        assert_eq!(agree(&[1, 1], 5), Agreement::Missing);
        assert_eq!(
            agree(&[1, 1, 1], 5),
            Agreement::Reached {
                claim: claim(1),
                supporters: 3
            }
        );
    }

    #[test]
    fn claims_that_differ_in_one_field_are_different() {
        let base = claim(1);
        for other in [
            claim(2),
            ResultClaim {
                trace_root: H256::zero(),
                ..base.clone()
            },
            ResultClaim {
                units: 4,
                ..base.clone()
            },
        ] {
            assert_eq!(agreement([&base, &other], 2), Agreement::Missing);
        }
    }

    #[test]
    fn more_claims_than_asked_for_cannot_make_two_winners() {
        assert_eq!(agree(&[1, 1, 2, 2], 2), Agreement::Missing);
    }

    proptest! {
        #[test]
        fn order_makes_no_difference(
            (outputs, shuffled) in vec(0u8..4, 0..16).prop_flat_map(|outputs| {
                (Just(outputs.clone()), Just(outputs).prop_shuffle())
            }),
            k in 0u32..20,
        ) {
            prop_assert_eq!(agree(&outputs, k), agree(&shuffled, k));
        }

        #[test]
        fn the_winner_is_the_only_claim_with_a_majority(outputs in vec(0u8..4, 0..16), k in 0u32..20) {
            let claims = claims_of(&outputs);
            let needed = majority(k.max(claims.len() as u32));
            let support = |wanted: &ResultClaim| claims.iter().filter(|claim| *claim == wanted).count() as u32;
            let mut winners: Vec<ResultClaim> = (0u8..4).map(claim).filter(|c| support(c) >= needed).collect();
            prop_assert!(winners.len() <= 1);
            let expected = winners.pop().map_or(Agreement::Missing, |winner| {
                let supporters = support(&winner);
                Agreement::Reached { claim: winner, supporters }
            });
            prop_assert_eq!(agreement(&claims, k), expected);
        }

        #[test]
        fn a_minority_of_liars_never_wins(k in 1u32..=16, lies in vec(0u8..4, 0..8), honest in 10u8..20) {
            let liars = (lies.len() as u32).min(k - majority(k)) as usize;
            let mut outputs = lies[..liars].to_vec();
            outputs.resize(k as usize, honest);
            let supporters = k - liars as u32;
            prop_assert_eq!(agree(&outputs, k), Agreement::Reached { claim: claim(honest), supporters });
        }
    }
}
