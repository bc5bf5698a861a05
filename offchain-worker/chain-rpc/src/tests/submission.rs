//! Calls on their way through a pool that refuses, forgets and keeps silent.

use std::time::Duration;

use serde_json::json;

use super::{
    fixture::runtime,
    node::Node,
    pool::{Answer, era, terms},
    reveals::reveal,
};
use crate::{RpcChain, RpcConfig, entries::Entry};
use surety_chain_client::{Call, Chain, ChainError, ErrorClass, Refusal, Signer, SubmitOptions, Until};

pub fn signer() -> Signer {
    Signer::from_uri("//Alice").unwrap()
}

pub fn commit() -> Call {
    Call::Commit {
        task: 5,
        commitment: sp_core::H256([6; 32]),
    }
}

pub async fn connect(node: &Node, patience: Duration) -> RpcChain {
    let mut config = RpcConfig::new(&node.url);
    config.inclusion_patience = patience;
    RpcChain::connect(config).await.unwrap()
}

pub const LONG: Duration = Duration::from_secs(20);
pub const SHORT: Duration = Duration::from_millis(1500);

pub async fn submit(chain: &RpcChain, call: Call) -> Result<u32, ChainError> {
    let included = chain.submit(&signer(), call, Until::Included.into()).await;
    included.map(|included| included.block.number)
}

#[tokio::test]
async fn a_call_that_meets_another_of_its_signer_is_signed_again_until_it_is_in_a_block() {
    let node = Node::start(1).await;
    // What the first devnet run met, and what any other moment may bring.
    node.script([
        Answer::Refuse(
            1014,
            "The transaction has too low priority to replace another transaction",
        ),
        Answer::Refuse(1010, "Transaction is outdated"),
        Answer::Refuse(1010, "Transaction has a bad signature"),
        Answer::Refuse(
            1016,
            "The transaction couldn't enter the pool because of the limit",
        ),
        Answer::Refuse(1002, "State already discarded"),
        Answer::Refuse(-32999, "RPC rate limit exceeded"),
    ]);
    let chain = connect(&node, LONG).await;
    assert_eq!(submit(&chain, commit()).await, Ok(101));
    assert_eq!(node.state().handed_over.len(), 7);
}

#[tokio::test]
async fn a_call_that_a_pool_throws_out_again_is_replaced_at_the_same_nonce() {
    let node = Node::start(1).await;
    node.script([
        Answer::Tell(vec![json!("ready"), json!("dropped")]),
        Answer::Tell(vec![json!("ready"), json!("invalid")]),
        Answer::Tell(vec![
            json!("future"),
            json!({ "usurped": sp_core::H256([1; 32]) }),
        ]),
    ]);
    let chain = connect(&node, LONG).await;
    assert_eq!(submit(&chain, commit()).await, Ok(101));
    let sent: Vec<_> = node
        .state()
        .handed_over
        .iter()
        .map(|bytes| terms(bytes))
        .collect();
    // Whichever of them gets in, it is one.
    assert!(sent.iter().all(|(nonce, _)| *nonce == 0), "{sent:?}");
    // What replaces another has to offer more.
    assert!(sent[1].1 > sent[0].1, "{sent:?}");
}

#[tokio::test]
async fn a_call_that_nobody_can_cure_is_refused_at_once_with_the_reason() {
    let node = Node::start(1).await;
    let unpaid = "Inability to pay some fees (e.g. account balance too low)";
    node.script([
        Answer::Refuse(1010, unpaid),
        Answer::Refuse(1010, "Custom error: 7"),
    ]);
    let chain = connect(&node, LONG).await;
    let refused = submit(&chain, commit()).await.unwrap_err();
    assert_eq!(refused, ChainError::Rejected(Refusal::Payment));
    assert_eq!(refused.class(), ErrorClass::Refused);
    assert_eq!(submit(&chain, commit()).await, Err(Refusal::Custom(7).into()));
}

#[tokio::test]
async fn a_refusal_that_does_not_pass_is_told_by_type_when_the_time_is_over() {
    let node = Node::start(1).await;
    node.script((0..50).map(|_| Answer::Refuse(1014, "")));
    let chain = connect(&node, SHORT).await;
    assert_eq!(
        submit(&chain, commit()).await,
        Err(Refusal::PriorityTooLow.into())
    );
    assert!(node.state().handed_over.len() > 1);
}

#[tokio::test]
async fn a_call_whose_fate_was_unknown_is_found_in_its_block_and_not_carried_out_twice() {
    let node = Node::start(1).await;
    node.script([Answer::Tell(vec![json!("ready")])]);
    let chain = connect(&node, SHORT).await;
    let lost = submit(&chain, commit()).await.unwrap_err();
    assert!(matches!(lost, ChainError::Unknown { .. }), "{lost}");
    // It gets into a block while nobody follows it.
    node.change(|state| {
        assert!(state.include_held());
        state.best += 1;
    });
    assert_eq!(submit(&chain, commit()).await, Ok(101));
    // Told once, it is forgotten: the next is another call.
    assert_eq!(submit(&chain, commit()).await, Ok(103));
    let sent: Vec<_> = node
        .state()
        .handed_over
        .iter()
        .map(|bytes| terms(bytes).0)
        .collect();
    assert_eq!(*sent.last().unwrap(), 1);
}

#[tokio::test]
async fn a_call_whose_fate_was_unknown_is_not_carried_out_twice_however_late_it_is_given_again() {
    let node = Node::start(1).await;
    node.script([Answer::Tell(vec![json!("ready")])]);
    let chain = connect(&node, SHORT).await;
    submit(&chain, commit()).await.unwrap_err();
    node.change(|state| {
        assert!(state.include_held());
        state.best += 5000;
    });
    // Another call comes first, and nothing is forgotten for it.
    assert_eq!(submit(&chain, Call::Heartbeat).await, Ok(5102));
    for _ in 0..2 {
        if submit(&chain, commit()).await == Ok(101) {
            break;
        }
    }
    assert_eq!(node.state().handed_over.len(), 2);
}

#[tokio::test]
async fn blocks_are_looked_through_once_and_no_longer_than_a_call_has_time() {
    let node = Node::start(1).await;
    node.script([Answer::Tell(vec![json!("ready")])]);
    let chain = connect(&node, SHORT).await;
    submit(&chain, commit()).await.unwrap_err();
    // Another call has its nonce: that ours is in no block takes longer to see than one attempt may.
    node.change(|state| {
        state.held.clear();
        (state.nonce, state.best) = (1, 250);
        state.slow = Some(("chain_getBlock", Duration::from_millis(20)));
    });
    let started = std::time::Instant::now();
    let lost = submit(&chain, commit()).await.unwrap_err();
    assert!(matches!(lost, ChainError::Unknown { .. }), "{lost}");
    assert!(started.elapsed() < 2 * SHORT, "{:?}", started.elapsed());
    let mut told = Err(lost);
    for _ in 0..4 {
        told = told.or(submit(&chain, commit()).await);
    }
    assert_eq!(told, Ok(251));
    let looked = node.asked("chain_getBlock");
    assert!(looked < 220, "{looked} blocks of 152");
}

#[tokio::test]
async fn a_call_that_landed_is_told_of_as_soon_as_its_block_can_be_read() {
    let node = Node::start(1).await;
    let chain = connect(&node, LONG).await;
    // A pool does not take what is on the chain.
    let twice = Answer::Refuse(1010, "Transaction is outdated");
    for (call, block) in [(commit(), 101), (reveal(), 102)] {
        node.script([Answer::Take, twice.clone(), twice.clone()]);
        node.change(|state| state.pruned = block..block + 1);
        let readable = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            node.change(|state| state.pruned = 0..0);
        };
        let (told, ()) = tokio::join!(submit(&chain, call), readable);
        assert_eq!(told, Ok(block));
        node.state().answers.clear();
    }
}

#[tokio::test]
async fn a_node_that_fails_while_a_block_gets_final_is_asked_again() {
    let node = Node::start(1).await;
    let chain = connect(&node, LONG).await;
    let fails = async {
        while node.state().best < 101 {
            tokio::task::yield_now().await;
        }
        node.change(|state| state.is_headless = true);
        tokio::time::sleep(Duration::from_secs(3)).await;
        node.change(|state| {
            state.is_headless = false;
            state.best += 2;
            state.finalized += 2;
        });
    };
    let signer = signer();
    let submitted = chain.submit(&signer, commit(), Until::Finalized.into());
    let (included, ()) = tokio::join!(submitted, fails);
    assert_eq!(included.unwrap().block.number, 101);
}

#[tokio::test]
async fn a_block_that_the_node_tells_nobody_of_is_found_all_the_same() {
    let node = Node::start(1).await;
    node.script([Answer::TakeInSilence]);
    let chain = connect(&node, Duration::from_secs(3)).await;
    assert_eq!(submit(&chain, commit()).await, Ok(101));
}

#[tokio::test]
async fn a_call_whose_block_is_replaced_before_it_is_final_goes_into_another() {
    let node = Node::start(1).await;
    let chain = connect(&node, LONG).await;
    let other = node.clone();
    let reorganised = tokio::spawn(async move {
        while other.state().best < 101 {
            tokio::task::yield_now().await;
        }
        // Another block 101, without the call, and one on top of it that has it.
        other.change(|state| {
            let call = state.blocks.remove(&101).unwrap();
            state.fork = 1;
            (state.best, state.finalized) = (102, 102);
            state.blocks.insert(102, call);
        });
    });
    let included = chain
        .submit(&signer(), commit(), Until::Finalized.into())
        .await
        .unwrap();
    reorganised.await.unwrap();
    assert_eq!(included.block.number, 102);
    assert_eq!(included.block.hash, node.state().hash(102));
}

#[tokio::test]
async fn a_tip_replaces_a_stuck_call_at_its_nonce() {
    let node = Node::start(1).await;
    node.script([Answer::Tell(vec![json!("ready")])]);
    let chain = connect(&node, SHORT).await;
    assert!(matches!(
        submit(&chain, commit()).await,
        Err(ChainError::Unknown { .. })
    ));
    let options = SubmitOptions {
        until: Until::Included,
        tip: 1000,
    };
    let included = chain.submit(&signer(), commit(), options).await.unwrap();
    assert_eq!(included.block.number, 101);
    let state = node.state();
    let last = state.handed_over.last().unwrap();
    assert_eq!(terms(last), (0, 1000));
}

#[tokio::test]
async fn a_stall_of_finality_does_not_age_signatures() {
    let node = Node::start(1).await;
    node.change(|state| state.best = 98 + 3000);
    let chain = connect(&node, LONG).await;
    assert_eq!(submit(&chain, commit()).await, Ok(98 + 3001));
    let sent = node.state().handed_over[0].clone();
    // Anchored 16 blocks below the best one, for 256 blocks.
    let anchor = 98 + 3000 - 16;
    assert_eq!(era(&sent), 7 | ((anchor % 256) << 4));
}

#[tokio::test]
async fn a_call_is_prepared_on_a_newer_block_when_the_state_of_the_first_is_gone() {
    let node = Node::start(1).await;
    let chain = connect(&node, LONG).await;
    node.change(|state| {
        state.pruned = 0..102;
        state.best = 101;
    });
    let other = node.clone();
    let moves_on = tokio::spawn(async move {
        let before = other.asked("state_getRuntimeVersion");
        while other.asked("state_getRuntimeVersion") < before + 2 {
            tokio::task::yield_now().await;
        }
        other.change(|state| state.best = 102);
    });
    assert_eq!(submit(&chain, commit()).await, Ok(103));
    moves_on.await.unwrap();
}

#[tokio::test]
async fn a_call_whose_outcome_cannot_be_read_is_told_of_once() {
    let node = Node::start(1).await;
    let chain = connect(&node, LONG).await;
    // One event that is none.
    node.put(&runtime(), Entry::Events, &[], vec![4, 0xff]);
    let unread = submit(&chain, Call::Heartbeat).await.unwrap_err();
    assert!(matches!(unread, ChainError::Decode { .. }), "{unread}");
    node.change(|state| state.storage.clear());
    // The next is another call.
    assert_eq!(submit(&chain, Call::Heartbeat).await, Ok(102));
}

#[tokio::test]
async fn a_call_that_landed_in_a_block_whose_state_is_gone_is_told_of_once() {
    let node = Node::start(1).await;
    let chain = connect(&node, SHORT).await;
    node.change(|state| state.pruned = 101..102);
    let later = async {
        while node.state().best < 101 {
            tokio::task::yield_now().await;
        }
        node.change(|state| state.best = 102);
    };
    let (gone, ()) = tokio::join!(submit(&chain, commit()), later);
    assert!(matches!(gone, Err(ChainError::Pruned { .. })), "{gone:?}");
    assert_eq!(submit(&chain, commit()).await, Ok(103));
}

#[tokio::test]
async fn a_call_on_its_way_is_not_forgotten_because_the_best_blocks_state_is_gone() {
    let node = Node::start(1).await;
    node.script([Answer::Tell(vec![json!("ready")])]);
    let chain = connect(&node, SHORT).await;
    let gone = async {
        while node.state().handed_over.is_empty() {
            tokio::task::yield_now().await;
        }
        node.change(|state| state.pruned = 0..200);
    };
    let (lost, ()) = tokio::join!(submit(&chain, commit()), gone);
    assert!(matches!(lost, Err(ChainError::Pruned { .. })), "{lost:?}");
    node.change(|state| {
        state.pruned = 0..0;
        // It is still in the pool.
        state.pool_nonce = Some(1);
    });
    assert_eq!(submit(&chain, commit()).await, Ok(101));
    let sent = node.state().handed_over.clone();
    assert!(sent.iter().all(|bytes| terms(bytes).0 == 0), "{}", sent.len());
}

#[tokio::test]
async fn a_node_that_names_blocks_and_has_none_of_their_bodies_is_left() {
    let (bodiless, good) = (Node::start(1).await, Node::start(1).await);
    let mut config = RpcConfig::of_several([bodiless.url.clone(), good.url.clone()]);
    config.inclusion_patience = LONG;
    let chain = RpcChain::connect(config).await.unwrap();
    bodiless.change(|state| state.is_bodiless = true);
    let follow = async {
        // Its block reaches the other node.
        while bodiless.state().best < 101 {
            tokio::task::yield_now().await;
        }
        let blocks = bodiless.state().blocks.clone();
        good.change(|state| (state.best, state.blocks, state.nonce) = (101, blocks, 1));
    };
    let (told, ()) = tokio::join!(submit(&chain, commit()), follow);
    assert_eq!(told, Ok(101));
}

#[tokio::test]
async fn whatever_a_pool_does_a_call_is_carried_out_once_at_most_and_once_if_it_is_said_to_be() {
    let cases = (0..40u8).map(|seed| async move {
        let node = Node::start(1).await;
        let kinds = [
            Answer::Take,
            Answer::TakeInSilence,
            Answer::TakeEarlier,
            Answer::Refuse(1014, ""),
            Answer::Refuse(1010, "Transaction is outdated"),
            Answer::Refuse(1010, "Transaction has a bad signature"),
            Answer::Refuse(1012, ""),
            Answer::Refuse(1016, ""),
            Answer::Tell(vec![json!("ready"), json!("dropped")]),
            Answer::Tell(vec![json!("ready"), json!("invalid")]),
            Answer::Tell(vec![json!("ready")]),
        ];
        let random = sp_crypto_hashing::blake2_256(&[seed]);
        let chosen = random.iter().take(5).map(|byte| usize::from(*byte) % kinds.len());
        let script: Vec<_> = chosen.map(|at| kinds[at].clone()).collect();
        node.script(script.clone());
        let chain = connect(&node, Duration::from_secs(3)).await;
        let mut told = submit(&chain, commit()).await;
        for _ in 0..2 {
            if told.is_err() {
                told = submit(&chain, commit()).await;
            }
        }
        // What pools still hold gets its turn.
        let mut state = node.state();
        while state.include_held() {}
        let arguments = commit().encode_arguments();
        let mut carried_out = state.blocks.values().flatten();
        let times = carried_out
            .by_ref()
            .filter(|bytes| bytes.ends_with(&arguments))
            .count();
        assert!(times <= 1, "seed {seed}: {times} times after {script:?}");
        assert!(
            told.is_err() || times == 1,
            "seed {seed}: {told:?} after {script:?}"
        );
        told.is_ok()
    });
    let told = futures::future::join_all(cases).await;
    assert!(told.iter().filter(|ok| **ok).count() > 30);
}

#[tokio::test]
async fn a_call_that_its_caller_gave_up_while_it_was_handed_over_is_not_signed_with_another_nonce() {
    let node = Node::start(1).await;
    node.script([Answer::Tell(vec![])]);
    let chain = connect(&node, LONG).await;
    let is_there = async {
        while node.state().handed_over.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = is_there => {}
        outcome = submit(&chain, commit()) => panic!("{outcome:?}"),
    }
    node.state().pool_nonce = Some(1);
    assert_eq!(submit(&chain, commit()).await, Ok(101));
    let sent = node.state().handed_over.clone();
    assert!(sent.iter().all(|bytes| terms(bytes).0 == 0), "{}", sent.len());
}
