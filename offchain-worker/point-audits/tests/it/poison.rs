//! Batches with a receipt that cannot be audited, and verifiers whose stake changes.

use surety_chain_client::{Call, FakeState};
use surety_channels::NOT_COMPUTED;
use surety_types::{ModelId, model::Operation};

use crate::{
    cheats::{Made, Provider, Stage, lie},
    setup::BONDED,
};

/// The first receipt that a point falls on, and a generation that a later one does, with a wrong token.
fn poison_and_lie(stage: &Stage, made: &mut [Made]) -> (u32, u32) {
    let met = stage.met();
    let first = met[0];
    let is_text = |nonce: u32| made[nonce as usize].request.operation == Operation::Generate;
    let later = met.iter().find(|nonce| **nonce != first && is_text(**nonce));
    let lied = *later.unwrap();
    made[lied as usize] = lie(made[lied as usize].clone());
    (first, lied)
}

async fn audit(stage: &Stage, made: Vec<Made>, hidden: Vec<u32>) -> crate::setup::Process {
    let provider = Provider::new(&stage.setup.genesis(), made, hidden);
    provider.serve(&stage.setup);
    stage.commit(&provider).await;
    stage.start().await
}

fn is_announcing_over(state: &FakeState) -> bool {
    let batch = state.channels.batches.values().next();
    batch.is_some_and(|batch| batch.announce_until < state.clock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_of_a_model_that_is_not_here_does_not_hide_a_lie_behind_it() {
    let stage = Stage::new().await;
    let mut made = stage.receipts();
    let (poison, lied) = poison_and_lie(&stage, &mut made);
    let met = stage.met();
    let poison = &mut made[poison as usize];
    poison.request.model = ModelId::repeat_byte(9);
    poison.statement.request = poison.request.hash();
    let verifier = audit(&stage, made, Vec::new()).await;
    let setup = &stage.setup;
    setup
        .until("it is disputed", |state| !state.channels.disputed.is_empty())
        .await;
    let (.., receipt) = setup
        .chain
        .change(|state| state.channels.disputed.values().next().cloned())
        .unwrap();
    assert_eq!(receipt.nonce, lied);
    setup
        .until("it is too late to announce", is_announcing_over)
        .await;
    // Nor does it cost the pay for what could be computed.
    setup.chain.change(|state| {
        let round = *state.channels.disputed.keys().next().unwrap();
        state.decide_receipt(round, false);
    });
    setup.until("it is paid", |_| setup.count("end_points") > 0).await;
    let calls = ["announce_points", "demand_point", "dispute"];
    assert_eq!(calls.map(|call| setup.count(call)), [1, 0, 1]);
    let opened = setup.chain.calls().into_iter().find_map(|(_, call)| match call {
        Call::OpenPoints { found, .. } => Some(found),
        _ => None,
    });
    let is_computed: Vec<bool> = opened
        .unwrap()
        .iter()
        .map(|found| *found != NOT_COMPUTED)
        .collect();
    let expected: Vec<bool> = met.iter().map(|nonce| *nonce != met[0]).collect();
    assert_eq!(is_computed, expected);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_of_which_nothing_can_be_computed_nothing_is_announced() {
    let stage = Stage::new().await;
    let mut made = stage.receipts();
    for made in &mut made {
        made.request.model = ModelId::repeat_byte(9);
        made.statement.request = made.request.hash();
    }
    let verifier = audit(&stage, made, Vec::new()).await;
    let setup = &stage.setup;
    setup
        .until("it is too late to announce", is_announcing_over)
        .await;
    let calls = ["announce_points", "demand_point", "dispute"];
    assert_eq!(calls.map(|call| setup.count(call)), [0, 0, 0]);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_that_is_not_shown_does_not_hide_a_lie_behind_it() {
    let stage = Stage::new().await;
    let mut made = stage.receipts();
    let (hidden, lied) = poison_and_lie(&stage, &mut made);
    let verifier = audit(&stage, made, vec![hidden]).await;
    let setup = &stage.setup;
    setup
        .until("it is disputed", |state| !state.channels.disputed.is_empty())
        .await;
    let (.., receipt) = setup
        .chain
        .change(|state| state.channels.disputed.values().next().cloned())
        .unwrap();
    assert_eq!(receipt.nonce, lied);
    setup
        .until("it is demanded", |_| setup.count("demand_point") > 0)
        .await;
    verifier.stop().await;
}

/// On one thread: nobody sees a block between its end and what is changed in the next.
#[tokio::test]
async fn nothing_is_announced_by_a_stake_that_the_newest_block_has_not() {
    let stage = Stage::new().await;
    let made = stage.receipts();
    let verifier = audit(&stage, made, Vec::new()).await;
    let setup = &stage.setup;
    let stash = setup.stash.account();
    let bond = |bonded: u128| {
        setup
            .chain
            .change(|state| state.stakes.get_mut(stash).unwrap().bonded = bonded)
    };
    // All is found long before this is over.
    for _ in 0..200 {
        bond(BONDED);
        setup.chain.finalize();
        bond(BONDED / 2);
        setup.rest().await;
    }
    assert_eq!(setup.count("announce_points"), 0);
    bond(BONDED);
    setup.until("it is paid", |_| setup.count("end_points") > 0).await;
    assert_eq!(setup.count("announce_points"), 1);
    verifier.stop().await;
}
