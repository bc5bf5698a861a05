//! Calls that prove themselves, on their way through nodes that fail.

use std::{future::Future, time::Duration};

use serde_json::json;

use super::{
    node::Node,
    pool::Answer,
    proxy::Proxy,
    submission::{LONG, connect, submit},
};
use crate::{RpcChain, RpcConfig};
use surety_chain_client::{Call, Refusal};

const STALE: Answer = Answer::Refuse(1010, "Transaction is outdated");

pub fn reveal() -> Call {
    let mut calls = surety_chain_client::sample::calls().into_iter();
    calls.find(Call::proves_itself).unwrap()
}

/// A chain behind a node whose connection is cut once it has been handed a call.
async fn through_a_cut(node: &Node) -> (RpcChain, impl Future<Output = ()>) {
    let proxy = Proxy::to(node).await;
    let mut config = RpcConfig::new(&proxy.url);
    config.inclusion_patience = LONG;
    let chain = RpcChain::connect(config).await.unwrap();
    let node = node.clone();
    let cut = async move {
        while node.state().handed_over.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        proxy.cut();
    };
    (chain, cut)
}

#[tokio::test]
async fn a_reveal_is_sent_again_while_the_node_is_at_fault_and_refused_by_type_otherwise() {
    let node = Node::start(1).await;
    node.script([
        Answer::Refuse(1002, "State already discarded"),
        Answer::Refuse(1012, ""),
        // It is in the pool, in these bytes or in others.
        Answer::Refuse(1013, ""),
        Answer::Refuse(1014, ""),
        Answer::Tell(vec![json!("ready"), json!("dropped")]),
    ]);
    let chain = connect(&node, LONG).await;
    assert_eq!(submit(&chain, reveal()).await, Ok(101));
    node.script([Answer::Refuse(1010, "Transaction is outdated")]);
    assert_eq!(submit(&chain, reveal()).await, Err(Refusal::Stale.into()));
}

#[tokio::test]
async fn a_reveal_whose_node_hangs_up_before_it_answers_is_sent_again() {
    let node = Node::start(1).await;
    node.script([Answer::TakeMute]);
    let (chain, cut) = through_a_cut(&node).await;
    let (told, ()) = tokio::join!(submit(&chain, reveal()), cut);
    assert_eq!(told, Ok(101));
    assert_eq!(node.state().handed_over.len(), 2);
}

#[tokio::test]
async fn a_reveal_that_landed_while_its_node_was_away_is_found_in_its_block() {
    let node = Node::start(1).await;
    node.script([Answer::TakeInSilence, STALE]);
    let (chain, cut) = through_a_cut(&node).await;
    let (told, ()) = tokio::join!(submit(&chain, reveal()), cut);
    assert_eq!(told, Ok(101));
    assert_eq!(node.state().handed_over.len(), 2);
}

#[tokio::test]
async fn a_reveal_that_somebody_else_carried_is_refused_as_late_when_its_node_is_back() {
    let node = Node::start(1).await;
    node.script([Answer::TakeMute, STALE]);
    let (chain, cut) = through_a_cut(&node).await;
    let (told, ()) = tokio::join!(submit(&chain, reveal()), cut);
    assert_eq!(told, Err(Refusal::Stale.into()));
}
