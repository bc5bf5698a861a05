//! Which models a verifier offers to audit.

use std::{sync::Arc, time::Duration};

use surety_chain_client::{FakeState, RegisteredModel};
use surety_engine::{Engine, EngineError, Job, Outcome, Sink};
use surety_types::{
    ModelId,
    model::{ModelManifest, Operation},
    task::ResultClaim,
};
use tokio::task::JoinHandle;

use super::{
    speeds::{engines_of, exact},
    world::World,
};
use crate::{Tools, offers};

/// Takes its time for everything.
struct Slow(ModelManifest, Duration);

impl Engine for Slow {
    fn manifest(&self) -> &ModelManifest {
        &self.0
    }

    fn run(&self, job: &Job, _: &mut dyn Sink) -> Result<Outcome, EngineError> {
        std::thread::sleep(self.1);
        Ok(Outcome {
            output: Vec::new(),
            claim: ResultClaim {
                output: Default::default(),
                trace_root: Default::default(),
                units: job.units_max,
            },
            leaves: Vec::new(),
        })
    }
}

/// A verifier with a model of 100 positions that takes two seconds for any audit: 50 tokens a second.
struct Verifier {
    world: World,
    model: ModelId,
    offers: JoinHandle<()>,
}

impl Verifier {
    async fn start(reference: u32) -> Self {
        let world = World::new().await;
        let mut manifest = exact(1_000, 100);
        manifest.operations = vec![Operation::Embed].try_into().unwrap();
        let model = manifest.id();
        world.chain.change(|state| {
            let registered = RegisteredModel {
                owner: world.client().account().clone(),
                manifest: manifest.clone(),
                deposit: 1,
            };
            state.models.insert(model, registered);
            state.audit_speeds.insert(model, reference);
        });
        world.chain.finalize();
        let tools = Tools {
            signer: world.auditor_agent().clone(),
            stash: world.auditor(),
            engines: engines_of(Slow(manifest, Duration::from_secs(2))),
            ..world.tools()
        };
        let offers = tokio::spawn(offers::keep(Arc::new(tools)));
        Self { world, model, offers }
    }

    fn offers(&self) -> bool {
        let auditors = self
            .world
            .chain
            .change(|state| state.auditors.get(&self.model).cloned());
        auditors.unwrap_or_default().contains(&self.world.auditor())
    }

    /// The next look comes to this.
    async fn until(&self, offered: bool) {
        self.world
            .until(|| {
                self.world.chain.finalize();
                self.offers() == offered
            })
            .await;
    }

    fn set(&self, reference: u32) {
        self.world
            .chain
            .change(|state| state.audit_speeds.insert(self.model, reference));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_are_offered_where_they_are_done_in_time_and_taken_back_where_they_no_longer_are() {
    let verifier = Verifier::start(10_000).await;
    verifier.until(true).await;
    // The owner says that any machine is a hundred times as fast.
    verifier.set(1_000_000);
    verifier.until(false).await;
    verifier.set(10_000);
    verifier.until(true).await;
    verifier.offers.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_that_would_come_too_late_or_of_a_model_that_is_not_here_are_not_offered() {
    let verifier = Verifier::start(1_000_000).await;
    // Anybody could audit this one in time. It was offered before, with other models.
    let other = exact(2_000, 100);
    verifier.world.chain.change(|state| {
        let registered = RegisteredModel {
            owner: verifier.world.client().account().clone(),
            manifest: other.clone(),
            deposit: 1,
        };
        state.models.insert(other.id(), registered);
        state.audit_speeds.insert(other.id(), 1);
    });
    let is_offered = || {
        verifier.world.chain.finalize();
        let auditors = |state: &mut FakeState| state.auditors.get(&other.id()).cloned();
        let auditors = verifier.world.chain.change(auditors);
        auditors.is_some_and(|auditors| !auditors.is_empty())
    };
    // With the second look, all that came of the first is done.
    for _ in 0..2 {
        verifier.world.chain.change(|state| {
            state.auditors.insert(other.id(), vec![verifier.world.auditor()]);
        });
        verifier.world.until(|| !is_offered()).await;
    }
    assert!(!verifier.offers());
    verifier.offers.abort();
}
