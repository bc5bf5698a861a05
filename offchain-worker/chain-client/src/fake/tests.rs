#![allow(clippy::unwrap_used)]

use surety_types::{
    task::{Bid, MemberProgress, ResultClaim, TaskState},
    TaskId,
};

use surety_verification::commitment;

use super::*;
use crate::sample;

fn rejected(why: &str) -> ChainError {
    ChainError::Rejected { reason: why.into() }
}

fn signer(name: &str) -> Signer {
    Signer::from_uri(name).unwrap()
}

async fn post(chain: &FakeChain) -> TaskId {
    let post = sample::calls()
        .into_iter()
        .find(|call| matches!(call, Call::PostTask { .. }))
        .unwrap();
    let included = chain
        .submit(&signer("//Client"), post, Until::Included)
        .await
        .unwrap();
    let event = included.event("TaskAuction", "TaskPosted").unwrap();
    event.task().unwrap()
}

/// A chain with a provider whose agent is `//Agent`.
async fn chain_with_agent() -> (FakeChain, Signer, AccountId32) {
    let (chain, agent, stash) = (FakeChain::new(), signer("//Agent"), signer("//Stash"));
    let set = Call::SetAgent {
        agent: agent.account().clone(),
    };
    chain.submit(&stash, set, Until::Included).await.unwrap();
    let confirm = Call::ConfirmAgent {
        stash: stash.account().clone(),
    };
    chain.submit(&agent, confirm, Until::Included).await.unwrap();
    (chain, agent, stash.account().clone())
}

#[tokio::test]
async fn a_task_runs_from_post_to_settlement() {
    let (chain, agent, stash) = chain_with_agent().await;
    let task = post(&chain).await;
    let bid = Bid {
        price: 5,
        seconds: 1,
        salt: H256([1; 32]),
    };
    let seal = bid.seal(task, &stash);
    let claim = ResultClaim {
        output: H256([2; 32]),
        trace_root: H256([3; 32]),
        units: 4,
    };
    let submit = |call| chain.submit(&agent, call, Until::Included);
    submit(Call::Bid { task, seal }).await.unwrap();
    let again = submit(Call::Bid { task, seal }).await.unwrap_err();
    assert!(again.is_fault("TaskAuction", "AlreadyBid"));
    let provider = stash.clone();
    let opened = Call::RevealBid { task, provider, bid };
    submit(opened.clone()).await.unwrap();
    assert_eq!(submit(opened).await, Err(rejected("Stale")));
    chain.assign(task, 50);
    let salt = H256([5; 32]);
    let commitment = commitment(task, &stash, &claim, &salt);
    submit(Call::Commit { task, commitment }).await.unwrap();
    let reveal = |units| Call::Reveal {
        task,
        provider: stash.clone(),
        claim: ResultClaim { units, ..claim },
        salt,
    };
    assert_eq!(submit(reveal(4)).await, Err(rejected("Future")));
    chain.open_reveals(task, 60);
    assert_eq!(submit(reveal(5)).await, Err(rejected("BadProof")));
    submit(reveal(4)).await.unwrap();
    assert_eq!(submit(reveal(4)).await, Err(rejected("Stale")));

    assert!(chain.open_tasks(When::Finalised, None).await.unwrap().is_empty());
    chain.finalise();
    let open = chain.open_tasks(When::Finalised, Some(&stash)).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].bid.as_ref().unwrap().seal, seal);
    let members = &open[0].round.as_ref().unwrap().members;
    assert_eq!(members[0].progress, MemberProgress::Revealed(claim));

    chain.settle(task);
    let view = chain.task(When::Best, task).await.unwrap().unwrap();
    let TaskState::Settled { payments, .. } = view.task.state else {
        panic!("not settled");
    };
    assert_eq!((payments[0].provider.clone(), payments[0].price), (stash, 5));
}

#[tokio::test]
async fn faults_come_in_the_order_in_which_they_were_asked_for() {
    let (chain, agent, _) = chain_with_agent().await;
    let calls = chain.calls().len();
    let busy = ChainError::Busy { waiting: 1 };
    chain.refuse_next(busy.clone());
    chain.lose_next();
    chain.lose_answer_of_next();
    let submit = || {
        let register = sample::calls().remove(7);
        chain.submit(&agent, register, Until::Included)
    };
    assert_eq!(submit().await, Err(busy));
    assert!(matches!(submit().await, Err(ChainError::Unknown { .. })));
    assert_eq!(chain.calls().len(), calls);
    assert!(matches!(submit().await, Err(ChainError::Unknown { .. })));
    assert_eq!(chain.calls().len(), calls + 1);
    assert!(submit().await.is_ok());
    chain.set_unreachable(true);
    assert!(matches!(submit().await, Err(ChainError::Unreachable { .. })));
    assert!(matches!(
        chain.block(When::Best).await,
        Err(ChainError::Unreachable { .. })
    ));
}

#[tokio::test]
async fn finalised_blocks_are_followed_and_waited_for() {
    let (chain, agent, _) = chain_with_agent().await;
    let mut blocks = chain.finalised_blocks().await.unwrap();
    assert_eq!(blocks.next().await.unwrap().number, 0);
    let other = chain.clone();
    let submitted = tokio::spawn(async move {
        let register = sample::calls().remove(7);
        other.submit(&agent, register, Until::Finalised).await
    });
    tokio::task::yield_now().await;
    chain.finalise();
    chain.finalise();
    assert_eq!(blocks.next().await.unwrap().number, 2);
    assert!(submitted.await.unwrap().is_ok());
}
