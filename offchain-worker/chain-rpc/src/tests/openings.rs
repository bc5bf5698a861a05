//! What auditors have opened, read from blocks.

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};

use super::{
    fixture::runtime,
    node::Node,
    submission::{SHORT, connect},
};
use crate::{entries::Entry, sign::unsigned};
use surety_chain_client::{Call, Chain, ItemsOpening, When, sample};

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
    let block = proving.map(|call| unsigned(&runtime(), H256([1; 32]), 49, &call).unwrap());
    let (block, stranger) = (block.collect(), AccountId32::new([9; 32]));
    node.change(|state| {
        state.blocks.insert(50, block);
        state.pruned = 0..90;
    });
    let chain = connect(&node, SHORT).await;
    let read = |block, task, verifier| chain.items_opened(block, task, provider, verifier);
    assert_eq!(read(50, *task, verifier).await, Ok(Some(opened)));
    assert_eq!(read(50, task + 1, verifier).await, Ok(None));
    assert_eq!(read(50, *task, &stranger).await, Ok(None));
    assert_eq!(read(51, *task, verifier).await, Ok(None));
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
