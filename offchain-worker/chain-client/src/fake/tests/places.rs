//! Where all places for bids are taken, the fake does what the pallet does.

use surety_types::{limits::BIDS_MAX, stake::StakeRecord};

use super::*;
use crate::{BidRecord, ErrorClass};

/// A task whose places are taken by strangers with a stake of 100 each, and an agent whose stash has so much.
async fn crowded(stake: Balance) -> (FakeChain, Signer, AccountId32, TaskId) {
    let (chain, agent, stash) = chain_with_agent().await;
    let task = post(&chain).await;
    let bonded = |bonded| StakeRecord {
        role: Role::Provider,
        bonded,
        locked: 0,
        unlocking: Default::default(),
        agent: None,
        settled_at: 0,
    };
    chain.change(|state| {
        state.stakes.insert(stash.clone(), bonded(stake));
        for number in 0..BIDS_MAX {
            let stranger = AccountId32::new([number as u8; 32]);
            state.stakes.insert(stranger.clone(), bonded(100));
            let bid = BidRecord {
                seal: H256::zero(),
                opened: None,
                deposit: 0,
            };
            state.bids.insert((task, stranger), bid);
        }
        state.number = state.tasks[&task].posted_at;
    });
    (chain, agent, stash, task)
}

async fn bid(chain: &FakeChain, agent: &Signer, task: TaskId) -> Result<(), ChainError> {
    let seal = H256::repeat_byte(7);
    let bid = chain.submit(agent, Call::Bid { task, seal }, Until::Included.into());
    bid.await.map(|_| ())
}

#[tokio::test]
async fn a_bid_beyond_the_places_waits_for_a_block_and_displaces_the_worst_if_it_ranks_better() {
    let (chain, agent, stash, task) = crowded(1_000_000).await;
    let early = bid(&chain, &agent, task).await.unwrap_err();
    assert!(early.is_fault("TaskAuction", "PlacesUndecided"), "{early}");
    chain.change(|state| state.number += 2);
    bid(&chain, &agent, task).await.unwrap();
    let bids = chain.bids(When::Best, task).await.unwrap();
    assert_eq!(bids.len(), BIDS_MAX as usize);
    assert!(bids.iter().any(|(who, _)| *who == stash));
    let again = bid(&chain, &agent, task).await.unwrap_err();
    assert!(again.is_fault("TaskAuction", "AlreadyBid"), "{again}");
}

#[tokio::test]
async fn who_has_no_stake_to_speak_of_is_outranked() {
    let (chain, agent, stash, task) = crowded(0).await;
    chain.change(|state| state.number += 2);
    let refused = bid(&chain, &agent, task).await.unwrap_err();
    assert!(refused.is_fault("TaskAuction", "Outranked"), "{refused}");
    let bids = chain.bids(When::Best, task).await.unwrap();
    assert!(bids.len() == BIDS_MAX as usize && bids.iter().all(|(who, _)| *who != stash));
}

#[tokio::test]
async fn who_has_less_stake_free_than_a_bid_needs_is_refused_whether_or_not_there_are_places() {
    let (chain, agent, stash, crowded) = crowded(1_000_000).await;
    chain.change(|state| state.number += 2);
    let free = post(&chain).await;
    let locked = |locked| {
        chain.change(|state| {
            state.lock = 600_000;
            state.stakes.get_mut(&stash).unwrap().locked = locked;
        });
    };
    locked(400_001);
    for task in [crowded, free] {
        let refused = bid(&chain, &agent, task).await.unwrap_err();
        assert!(refused.is_fault("TaskAuction", "NotBacked"), "{refused}");
        assert_eq!(refused.class(), ErrorClass::Failed);
    }
    locked(400_000);
    for task in [crowded, free] {
        bid(&chain, &agent, task).await.unwrap();
    }
}
