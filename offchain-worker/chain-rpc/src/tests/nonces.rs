//! Nonces of calls that follow one another, and of calls that got lost.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    node::Node,
    pool::{Answer, terms},
    submission::{SHORT, commit, connect, signer, submit},
};
use crate::RpcChain;
use surety_chain_client::{Call, Chain, ChainError, Sent};

fn advance(task: u64) -> Call {
    Call::AdvanceTask { task }
}

/// Nonces of all that was handed over.
fn nonces(node: &Node) -> Vec<u32> {
    let state = node.state();
    state.handed_over.iter().map(|bytes| terms(bytes).0).collect()
}

#[tokio::test]
async fn calls_at_the_same_time_get_nonces_one_after_the_other_though_the_pool_counts_late() {
    let node = Node::start(1).await;
    node.change(|state| state.pool_nonce = Some(0));
    node.script([
        Answer::Tell(vec![json!("ready")]),
        Answer::Tell(vec![json!("ready")]),
    ]);
    let chain = connect(&node, SHORT).await;
    let both = tokio::join!(submit(&chain, advance(1)), submit(&chain, advance(2)));
    assert!(matches!(
        both,
        (Err(ChainError::Unknown { .. }), Err(ChainError::Unknown { .. }))
    ));
    let mut nonces = nonces(&node);
    nonces.sort_unstable();
    nonces.dedup();
    assert_eq!(nonces, [0, 1]);
}

#[tokio::test]
async fn a_place_that_a_lost_call_left_is_filled() {
    let node = Node::start(1).await;
    // The pool counted a call of another process, and then lost it.
    node.change(|state| state.pool_nonce = Some(1));
    node.script([Answer::Tell(vec![json!("future")])]);
    let chain = connect(&node, Duration::from_secs(60)).await;
    let other = node.clone();
    let watched = tokio::spawn(async move {
        while other.state().handed_over.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        other.change(|state| state.pool_nonce = Some(0));
    });
    let _ = submit(&chain, commit()).await;
    watched.await.unwrap();
    let nonces = nonces(&node);
    assert_eq!(nonces[..2], [1, 0], "{nonces:?}");
}

/// A call whose caller gave up, and whose bytes no pool takes any more.
async fn dead_call(node: &Node, chain: &RpcChain) {
    node.script([Answer::Tell(vec![json!("ready")])]);
    let is_there = async {
        while node.state().held.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        () = is_there => {}
        told = submit(chain, advance(1)) => panic!("{told:?}"),
    }
    node.change(|state| state.dead = std::mem::take(&mut state.held));
}

#[tokio::test]
async fn calls_behind_a_call_that_cannot_be_carried_out_any_more_get_their_turn() {
    let node = Node::start(1).await;
    let chain = connect(&node, Duration::from_secs(60)).await;
    dead_call(&node, &chain).await;
    // Nobody has noticed yet: the next call comes behind it. The pool is full when the gap is filled for the
    // first time.
    node.script([Answer::Take, Answer::Refuse(1016, "")]);
    assert_eq!(submit(&chain, commit()).await, Ok(102));
    // The dead one, the one behind it, the dead one again, and nothing in its place, twice.
    assert_eq!(nonces(&node), [0, 1, 0, 0, 1, 1, 1, 0, 1]);
}

#[tokio::test]
async fn a_call_takes_the_nonce_of_one_that_is_known_to_be_dead() {
    let node = Node::start(1).await;
    let chain = connect(&node, SHORT).await;
    dead_call(&node, &chain).await;
    // The runtime was upgraded: what was signed for the one before is not good any more.
    node.change(|state| {
        state.best += 1;
        state.spec_version += 1;
    });
    assert_eq!(submit(&chain, commit()).await, Ok(102));
    assert_eq!(nonces(&node), [0, 0]);
}

#[tokio::test]
async fn calls_of_a_signer_do_not_wait_for_one_another_while_their_node_is_slow() {
    let node = Node::start(1).await;
    let chain = connect(&node, Duration::from_secs(60)).await;
    node.change(|state| state.slow = Some(("chain_getFinalizedHead", Duration::from_secs(1))));
    let started = Instant::now();
    let calls = (0..4).map(|task| submit(&chain, advance(task)));
    let told = futures::future::join_all(calls).await;
    assert!(told.iter().all(Result::is_ok), "{told:?}");
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(nonces(&node), [0, 1, 2, 3]);
}

#[tokio::test]
async fn what_is_on_its_way_is_told_from_what_is_final() {
    let node = Node::start(1).await;
    node.change(|state| (state.nonce, state.pool_nonce) = (4, Some(6)));
    let chain = connect(&node, SHORT).await;
    let account = signer().account().clone();
    let expected = Sent { finalized: 4, all: 6 };
    assert_eq!(chain.sent(&account).await, Ok(expected));
}
