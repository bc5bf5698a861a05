#![allow(clippy::unwrap_used)]
use std::path::PathBuf;

use surety_chain_client::{Chain, ChainError, DispatchFault, FakeChain, Signer, Until};
use surety_models::ModelStore;

use super::*;
use crate::SURE;

struct World {
    chain: FakeChain,
    stash: Signer,
    agent: Key,
}

impl World {
    fn new() -> Self {
        Self {
            chain: FakeChain::new(),
            stash: Signer::from_uri("//Alice").unwrap(),
            agent: Key {
                signer: Signer::from_uri("//Alice//agent").unwrap(),
                salt_secret: [1; 32],
            },
        }
    }

    async fn stash_submits(&self, call: Call) {
        self.chain
            .submit(&self.stash, call, Until::Included.into())
            .await
            .unwrap();
        self.chain.finalize();
    }

    async fn bonded(role: StakeRole) -> Self {
        let world = Self::new();
        let amount = 100 * SURE;
        world.stash_submits(Call::Bond { role, amount }).await;
        world
    }

    async fn nominated(self) -> Self {
        let agent = self.agent.signer.account().clone();
        self.stash_submits(Call::SetAgent { agent }).await;
        self
    }

    /// Makes every call final soon after it was made.
    fn finalizing(&self) -> tokio::task::JoinHandle<()> {
        let chain = self.chain.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                chain.finalize();
            }
        })
    }
}

#[tokio::test]
async fn a_confirmation_is_waited_for_while_finality_stands_still() {
    let world = World::bonded(StakeRole::Provider).await.nominated().await;
    let named = Some(world.stash.account());
    let confirming = worker::find_stash(&world.chain, &world.agent, named);
    tokio::pin!(confirming);
    for _ in 0..3 {
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(20), &mut confirming);
        assert!(waiting.await.is_err(), "it is not final");
        world.chain.extend();
    }
    let confirmations = |(_, call): &&(AccountId, Call)| matches!(call, Call::ConfirmAgent { .. });
    assert_eq!(world.chain.calls().iter().filter(confirmations).count(), 1);
    world.chain.finalize();
    assert_eq!(confirming.await.unwrap(), *world.stash.account());
}

#[tokio::test]
async fn a_nominated_agent_confirms_by_itself() {
    let world = World::bonded(StakeRole::Provider).await.nominated().await;
    let finalizing = world.finalizing();
    let named = Some(world.stash.account());
    let found = worker::find_stash(&world.chain, &world.agent, named)
        .await
        .unwrap();
    assert_eq!(found, *world.stash.account());
    // Later it needs not be told whom it works for.
    let found = worker::find_stash(&world.chain, &world.agent, None)
        .await
        .unwrap();
    assert_eq!(found, *world.stash.account());
    finalizing.abort();
}

fn not_nominated() -> ChainError {
    ChainError::Dispatch(DispatchFault {
        pallet: Some("Staking".into()),
        name: "NotNominated".into(),
        docs: String::new(),
    })
}

#[tokio::test]
async fn a_confirmation_that_came_after_another_of_ours_is_no_failure() {
    let world = World::bonded(StakeRole::Provider).await.nominated().await;
    let is_confirmation = |call: &Call| matches!(call, Call::ConfirmAgent { .. });
    world.chain.refuse_next(is_confirmation, not_nominated(), 1);
    let finalizing = world.finalizing();
    let named = Some(world.stash.account());
    let found = worker::find_stash(&world.chain, &world.agent, named).await;
    assert_eq!(found.unwrap(), *world.stash.account());
    finalizing.abort();
}

#[tokio::test]
async fn a_confirmation_that_fails_in_block_after_block_is_told() {
    let world = World::bonded(StakeRole::Provider).await.nominated().await;
    let is_confirmation = |call: &Call| matches!(call, Call::ConfirmAgent { .. });
    world.chain.refuse_next(is_confirmation, not_nominated(), 100);
    let finalizing = world.finalizing();
    let named = Some(world.stash.account());
    let error = worker::find_stash(&world.chain, &world.agent, named)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("NotNominated"), "{error}");
    finalizing.abort();
}

#[tokio::test]
async fn an_agent_that_nobody_has_named_is_told_what_to_do() {
    let world = World::bonded(StakeRole::Provider).await;
    for named in [None, Some(world.stash.account())] {
        let error = worker::find_stash(&world.chain, &world.agent, named)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("surety account agent set --agent"),
            "{error}"
        );
    }
    assert_eq!(
        world.chain.calls().len(),
        1,
        "nothing but the bond was said to the chain"
    );
}

#[tokio::test]
async fn an_agent_works_for_its_own_stash_only() {
    let world = World::bonded(StakeRole::Provider).await.nominated().await;
    let finalizing = world.finalizing();
    let named = Some(world.stash.account());
    worker::find_stash(&world.chain, &world.agent, named)
        .await
        .unwrap();
    finalizing.abort();
    let other = Signer::from_uri("//Bob").unwrap().account().clone();
    let error = worker::find_stash(&world.chain, &world.agent, Some(&other)).await;
    assert!(matches!(error, Err(CliError::Usage(_))));
}

#[tokio::test]
async fn stake_must_be_there_and_for_providing() {
    let world = World::new();
    let error = worker::check_stake(&world.chain, world.stash.account(), StakeRole::Provider)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("surety account bond"), "{error}");
    let world = World::bonded(StakeRole::Verifier).await;
    let error = worker::check_stake(&world.chain, world.stash.account(), StakeRole::Provider)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("verifier"), "{error}");
    let world = World::bonded(StakeRole::Provider).await;
    worker::check_stake(&world.chain, world.stash.account(), StakeRole::Provider)
        .await
        .unwrap();
}

#[test]
fn a_provider_without_an_address_is_refused() {
    assert!(matches!(
        registration((1, None), &Devices::default(), Vec::new()),
        Err(CliError::Usage(_))
    ));
    let endpoint = Endpoint::try_from(b"/somewhere".to_vec()).unwrap();
    let region = "DE".parse().ok();
    let ours = registration((3, region), &Devices::default(), vec![endpoint]).unwrap();
    assert_eq!((ours.device.cores, ours.endpoints.len()), (3, 1));
    assert_eq!(ours.device.region, region);
}

#[test]
fn nothing_is_bid_for_of_which_the_input_would_not_be_kept() {
    let taken = |blob_bytes_max| {
        let storage = StoreLimits {
            blob_bytes_max,
            total_bytes_max: blob_bytes_max,
        };
        input_bytes_max(&storage)
    };
    assert_eq!(taken(1 << 19), 1 << 19);
    assert_eq!(taken(1 << 40), limits::INPUT_BYTES_MAX);
}

#[test]
fn a_model_that_is_named_must_be_here() {
    let dir = tempfile::tempdir().unwrap();
    let store = ModelStore::new(dir.path());
    let named = [models::DEFAULT.to_owned()];
    assert!(matches!(
        worker::chosen_models(&store, &named),
        Err(CliError::ModelNotHere { .. })
    ));
    assert!(matches!(
        worker::chosen_models(&store, &[]),
        Err(CliError::Usage(_))
    ));
}

#[test]
fn who_drains_beside_a_provider_that_is_up_is_told_to_stop_that_first() {
    let dir = tempfile::tempdir().unwrap();
    let home: PathBuf = dir.path().join("new");
    let _first = worker::open_journal(&home).unwrap();
    let refused = worker::open_journal(&home).err().unwrap();
    assert!(refused.to_string().contains("stop that one first"), "{refused}");
    assert_eq!(refused.exit_code(), 7);
}
