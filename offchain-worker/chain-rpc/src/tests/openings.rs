//! What auditors have opened, read from blocks.

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};

use super::{
    fixture::runtime,
    node::Node,
    submission::{SHORT, connect},
};
use crate::{entries::Entry, sign::unsigned};
use surety_chain_client::{BidRecord, Call, Chain, CommitRecord, ItemsOpening, When, sample};
use surety_types::{task::Bid, trust::OutputShown};

/// An opening of items, and what it opens.
fn opening() -> (Call, ItemsOpening) {
    let mut calls = sample::calls().into_iter();
    let call = calls
        .find(|call| matches!(call, Call::RevealItems { .. }))
        .unwrap();
    let Call::RevealItems { found, answer, .. } = call.clone() else {
        panic!("it was looked for");
    };
    (call, (found, answer))
}

/// The same with the other answer: it does not open the seal.
fn decoy_of(call: &Call) -> Call {
    let mut decoy = call.clone();
    if let Call::RevealItems { answer, .. } = &mut decoy {
        answer.agrees = !answer.agrees;
    }
    decoy
}

#[tokio::test]
async fn what_an_auditor_opened_is_read_from_its_block_whose_state_may_be_gone() {
    let (call, opened) = opening();
    let Call::RevealItems {
        task,
        provider,
        verifier,
        ..
    } = &call
    else {
        panic!("it is one");
    };
    let node = Node::start(1).await;
    let proving = sample::calls().into_iter().filter(Call::proves_itself);
    let decoy = decoy_of(&call);
    let Call::RevealItems { found, answer, .. } = decoy.clone() else {
        panic!("it is one, too");
    };
    // The author of the block has put another in front.
    let block = std::iter::once(decoy).chain(proving);
    let block = block.map(|call| unsigned(&runtime(), H256([1; 32]), 49, &call).unwrap());
    let (block, stranger) = (block.collect(), AccountId32::new([9; 32]));
    node.change(|state| {
        state.blocks.insert(50, block);
        state.pruned = 0..90;
    });
    let chain = connect(&node, SHORT).await;
    let read = |block, task, verifier| chain.items_opened(block, task, provider, verifier);
    let both = vec![(found, answer), opened];
    assert_eq!(read(50, *task, verifier).await, Ok(both));
    assert_eq!(read(50, task + 1, verifier).await, Ok(vec![]));
    assert_eq!(read(50, *task, &stranger).await, Ok(vec![]));
    assert_eq!(read(51, *task, verifier).await, Ok(vec![]));
    node.change(|state| state.is_bodiless = true);
    assert!(read(50, *task, verifier).await.is_err());
}

#[tokio::test]
async fn a_reference_speed_is_read_where_an_owner_has_set_one() {
    let node = Node::start(1).await;
    let (known, other) = (H256([7; 32]), H256([8; 32]));
    node.put(&runtime(), Entry::AuditSpeeds, &[known.as_ref()], 12u32.encode());
    let chain = connect(&node, SHORT).await;
    assert_eq!(chain.audit_speed(When::Finalized, &known).await, Ok(Some(12)));
    assert_eq!(chain.audit_speed(When::Finalized, &other).await, Ok(None));
}

#[tokio::test]
async fn a_commitment_is_read_with_the_key_that_made_it_and_what_was_shown_of_it() {
    let node = Node::start(1).await;
    let (provider, other) = (AccountId32::new([7; 32]), AccountId32::new([8; 32]));
    let note = CommitRecord {
        agent: AccountId32::new([9; 32]),
        commitment: H256([1; 32]),
        shown: Some(OutputShown {
            content: H256([2; 32]),
            bytes: 3,
            demander: other.clone(),
        }),
    };
    let keys: [&[u8]; 2] = [&5u64.encode(), provider.as_ref()];
    node.put(&runtime(), Entry::CommitNotes, &keys, note.encode());
    let chain = connect(&node, SHORT).await;
    let read = |task, provider| chain.commit_note(When::Finalized, task, provider);
    assert_eq!(read(5, &provider).await, Ok(Some(note)));
    assert_eq!(read(5, &other).await, Ok(None));
    assert_eq!(read(6, &provider).await, Ok(None));
}

#[tokio::test]
async fn bids_are_read_of_their_task_alone() {
    let node = Node::start(1).await;
    let (ours, other) = (AccountId32::new([7; 32]), AccountId32::new([8; 32]));
    let bid = |price| BidRecord {
        seal: H256([1; 32]),
        opened: Some(Bid {
            price,
            seconds: 2,
            salt: H256([3; 32]),
        }),
        deposit: 4,
    };
    for (task, who, price) in [(5u64, &ours, 10), (5, &other, 20), (6, &ours, 30)] {
        let keys: [&[u8]; 2] = [&task.encode(), who.as_ref()];
        node.put(&runtime(), Entry::Bids, &keys, bid(price).encode());
    }
    let chain = connect(&node, SHORT).await;
    let mut bids = chain.bids(When::Finalized, 5).await.unwrap();
    bids.sort_by_key(|(who, _)| who.clone());
    assert_eq!(bids, [(ours, bid(10)), (other, bid(20))]);
    assert_eq!(chain.bids(When::Finalized, 7).await, Ok(vec![]));
}
