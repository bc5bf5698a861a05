//! What a validator votes for.

use std::sync::Arc;

use sc_consensus_grandpa::{
    ThreeQuartersOfTheUnfinalizedChain, VotingRule, VotingRuleResult, VotingRulesBuilder,
};
use surety_runtime::{Header, opaque::Block};

use super::Client;

/// For the newest block, unless it has siblings: then for its parent. Where finality stood still, for three
/// quarters of what is not final (ADR 44).
pub(super) fn rule() -> impl VotingRule<Block, Client> + Clone + 'static {
    VotingRulesBuilder::new()
        .add(NewestWithoutSiblings)
        .add(ThreeQuartersOfTheUnfinalizedChain)
        .build()
}

/// Two blocks of a slot are as good as each other until the next one says which of them it goes on from: who
/// makes that one must not find out that the other has become final meanwhile.
#[derive(Clone)]
struct NewestWithoutSiblings;

impl VotingRule<Block, Client> for NewestWithoutSiblings {
    fn restrict_vote(
        &self,
        client: Arc<Client>,
        base: &Header,
        best: &Header,
        current: &Header,
    ) -> VotingRuleResult<Block> {
        let has_siblings = || match client.uncles(current.hash(), 1) {
            Ok(siblings) => !siblings.is_empty(),
            Err(error) => {
                tracing::warn!(%error, "cannot see whether the newest block has siblings");
                true
            }
        };
        Box::pin(std::future::ready(restricted(base, best, current, has_siblings)))
    }
}

/// The parent of the newest block where that has siblings, and is not what votes are based on.
fn restricted(
    base: &Header,
    best: &Header,
    current: &Header,
    has_siblings: impl FnOnce() -> bool,
) -> Option<(<Header as sp_runtime::traits::Header>::Hash, u32)> {
    let is_newest = current.number == best.number && current.number > base.number;
    (is_newest && has_siblings()).then(|| (current.parent_hash, current.number - 1))
}

#[cfg(test)]
mod tests {
    use sp_core::H256;
    use sp_runtime::traits::Header as _;

    use super::*;

    fn header(number: u32) -> Header {
        Header::new(
            number,
            H256::zero(),
            H256::zero(),
            H256::repeat_byte(number as u8),
            Default::default(),
        )
    }

    #[test]
    fn of_two_blocks_of_a_slot_none_is_voted_for_before_the_next_one_has_chosen() {
        let (base, newest) = (header(7), header(9));
        assert_eq!(
            restricted(&base, &newest, &newest, || true),
            Some((newest.parent_hash, 8))
        );
        assert_eq!(restricted(&base, &newest, &newest, || false), None);
    }

    #[test]
    fn what_has_descendants_and_what_votes_are_based_on_is_voted_for() {
        let (base, earlier, newest) = (header(7), header(8), header(9));
        assert_eq!(restricted(&base, &newest, &earlier, || true), None);
        assert_eq!(restricted(&newest, &newest, &newest, || true), None);
        assert_eq!(
            restricted(&header(8), &newest, &newest, || true),
            Some((newest.parent_hash, 8))
        );
        assert_eq!(restricted(&base, &base, &base, || true), None);
    }
}
