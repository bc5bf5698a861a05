#![allow(clippy::unwrap_used)]

mod channels;
mod demands;
mod places;

use surety_types::{
    TaskId,
    speed::Requirements,
    stake::Role,
    task::{Bid, MemberProgress, ResultClaim, TaskState},
};

use surety_proofs::commitment;

use super::*;
use crate::{Refusal, Until, sample};

fn signer(name: &str) -> Signer {
    Signer::from_uri(name).unwrap()
}

async fn post(chain: &FakeChain) -> TaskId {
    let mut post = sample::calls()
        .into_iter()
        .find(|call| matches!(call, Call::PostTask { .. }))
        .unwrap();
    // Anybody may bid.
    if let Call::PostTask { spec, .. } = &mut post {
        spec.requirements = Requirements::default();
    }
    let included = chain
        .submit(&signer("//Client"), post, Until::Included.into())
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
    chain.submit(&stash, set, Until::Included.into()).await.unwrap();
    let confirm = Call::ConfirmAgent {
        stash: stash.account().clone(),
    };
    chain
        .submit(&agent, confirm, Until::Included.into())
        .await
        .unwrap();
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
    let submit = |call| chain.submit(&agent, call, Until::Included.into());
    submit(Call::Bid { task, seal }).await.unwrap();
    let again = submit(Call::Bid { task, seal }).await.unwrap_err();
    assert!(again.is_fault("TaskAuction", "AlreadyBid"));
    let provider = stash.clone();
    let opened = Call::RevealBid { task, provider, bid };
    submit(opened.clone()).await.unwrap();
    assert_eq!(submit(opened).await, Err(Refusal::Stale.into()));
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
    assert_eq!(submit(reveal(4)).await, Err(Refusal::Future.into()));
    chain.open_reveals(task, 60);
    assert_eq!(submit(reveal(5)).await, Err(Refusal::BadProof.into()));
    submit(reveal(4)).await.unwrap();
    assert_eq!(submit(reveal(4)).await, Err(Refusal::Stale.into()));

    assert!(
        chain
            .open_tasks(When::Finalized, None)
            .await
            .unwrap()
            .tasks
            .is_empty()
    );
    chain.finalize();
    let open = chain
        .open_tasks(When::Finalized, Some(&stash))
        .await
        .unwrap()
        .tasks;
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
    chain.refuse_next(|_| true, busy.clone(), 1);
    chain.lose_next();
    chain.lose_answer_of_next();
    let submit = || {
        let register = sample::calls().remove(7);
        chain.submit(&agent, register, Until::Included.into())
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
async fn finalized_blocks_are_followed_and_waited_for() {
    let (chain, agent, _) = chain_with_agent().await;
    let mut blocks = chain.finalized_blocks().await.unwrap();
    assert_eq!(blocks.next().await.unwrap().number, 0);
    let other = chain.clone();
    let submitted = tokio::spawn(async move {
        let register = sample::calls().remove(7);
        other.submit(&agent, register, Until::Finalized.into()).await
    });
    tokio::task::yield_now().await;
    chain.finalize();
    chain.finalize();
    assert_eq!(blocks.next().await.unwrap().number, 2);
    assert!(submitted.await.unwrap().is_ok());
}

#[tokio::test]
async fn the_clock_stands_still_in_best_blocks_without_finality() {
    let chain = FakeChain::new();
    let mut best = chain.best_blocks().await.unwrap();
    assert_eq!(best.next().await.unwrap().number, 0);
    chain.finalize();
    assert_eq!(best.next().await.unwrap().number, 1);
    chain.extend();
    assert_eq!(best.next().await.unwrap().number, 2);
    assert_eq!(chain.clock(When::Best).await, Ok(1));
    assert_eq!(chain.block(When::Best).await.unwrap().number, 2);
    assert_eq!(chain.block(When::Finalized).await.unwrap().number, 1);
}

#[tokio::test]
async fn any_call_can_be_refused_for_any_reason_as_often_as_asked() {
    let (chain, agent, _) = chain_with_agent().await;
    let carried_out = chain.calls().len();
    let is_heartbeat = |call: &Call| matches!(call, Call::Heartbeat);
    let register = || sample::calls().remove(7);
    for refusal in FakeChain::refusals() {
        chain.refuse_next(is_heartbeat, refusal.clone(), 2);
        for _ in 0..2 {
            let refused = chain
                .submit(&agent, Call::Heartbeat, Until::Included.into())
                .await;
            assert_eq!(refused, Err(ChainError::Rejected(refusal.clone())));
        }
    }
    chain.refuse_next(is_heartbeat, Refusal::PoolFull, 1);
    chain
        .submit(&agent, register(), Until::Included.into())
        .await
        .unwrap();
    assert_eq!(chain.calls().len(), carried_out + 1);
    assert_eq!(
        chain.attempts().len(),
        carried_out + 1 + 2 * FakeChain::refusals().len()
    );
}

#[tokio::test]
async fn a_batch_is_carried_out_whole_or_not_at_all_and_says_what_failed() {
    let (chain, agent, _) = chain_with_agent().await;
    let (other, amount) = (signer("//Other"), 7);
    let bond = || Call::Bond {
        role: Role::Provider,
        amount,
    };
    let name = |agent: &Signer| Call::SetAgent {
        agent: agent.account().clone(),
    };
    let submit = |calls| chain.submit(&other, Call::Batch(calls), Until::Included.into());
    let bonded = || chain.change(|state| state.stakes.contains_key(other.account()));

    let taken = submit(vec![bond(), name(&agent)]).await.unwrap_err();
    assert!(taken.is_fault("Staking", "AgentTaken"), "{taken}");
    let nested = submit(vec![bond(), Call::Batch(vec![bond()])]).await.unwrap_err();
    assert!(nested.is_fault("System", "CallFiltered"), "{nested}");
    let mut calls = sample::calls().into_iter();
    let reveal = calls.find(Call::proves_itself).unwrap();
    let unsigned = submit(vec![bond(), reveal]).await.unwrap_err();
    assert_eq!(unsigned.to_string(), "BadOrigin");
    assert!(!bonded());

    submit(vec![bond(), name(&signer("//Free"))]).await.unwrap();
    assert!(bonded());
    let pending = chain.pending_agent(When::Best, other.account()).await.unwrap();
    assert_eq!(pending.as_ref(), Some(signer("//Free").account()));
    assert_eq!(chain.sent(other.account()).await.unwrap().all, 1);
}

/// The pallets' own lists of errors, as text.
fn errors_of(pallet: &str) -> String {
    let path = |folder: &str, file: &str| {
        let root = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
        root.join("../../pallets").join(folder).join("src").join(file)
    };
    let path = match pallet {
        "Staking" => path("staking", "lib.rs"),
        "ProviderRegistry" => path("provider-registry", "lib.rs"),
        "ModelRegistry" => path("model-registry", "lib.rs"),
        "TaskAuction" => path("task-auction", "lib.rs"),
        "Results" => path("results", "lib.rs"),
        "Disputes" => path("disputes", "lib.rs"),
        "TrustLock" => path("trust-lock", "lib.rs"),
        "Channels" => path("channels", "lib.rs"),
        other => panic!("{other} is no pallet of this chain"),
    };
    let text = std::fs::read_to_string(path).unwrap();
    let start = text.find("pub enum Error<T>").unwrap();
    text[start..].to_string()
}

#[test]
fn the_fake_chain_knows_no_errors_that_the_pallets_do_not_have() {
    let sources = [
        include_str!("audits.rs"),
        include_str!("demands.rs"),
        include_str!("state.rs"),
        include_str!("inputs.rs"),
        include_str!("places.rs"),
        include_str!("rounds.rs"),
    ]
    .concat();
    let of_channels = [
        include_str!("channels/demands.rs"),
        include_str!("channels/points.rs"),
        include_str!("channels/purse.rs"),
        include_str!("channels/receipts.rs"),
        include_str!("channels/selling.rs"),
    ]
    .concat()
    .replace("refused(\"", "fault(\"Channels\", \"");
    let mut known = 0;
    for call in (sources + &of_channels).split("fault(\"").skip(1) {
        let mut words = call.split('"');
        let (pallet, error) = (words.next().unwrap(), words.nth(1).unwrap());
        let listed = errors_of(pallet);
        assert!(
            listed.lines().any(|line| line.trim() == format!("{error},")),
            "{pallet} has no error {error}"
        );
        known += 1;
    }
    assert!(known > 60, "{known}");
}
