//! Which models a verifier offers to audit.

use std::{sync::Arc, time::Duration};

use surety_chain_client::{Call, ChainError, DispatchFault, FakeState, RegisteredModel};
use surety_engine::{Engine, EngineError, EnginePool, Job, Outcome, PoolConfig, Sink};
use surety_types::{
    ModelId,
    model::{ModelManifest, Operation},
    task::ResultClaim,
};
use tokio::task::JoinHandle;

use super::{speeds::exact, world::World};
use crate::{Engines, Tools, Vitals, offers};

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

/// Fails at everything.
struct Broken(ModelManifest);

impl Engine for Broken {
    fn manifest(&self) -> &ModelManifest {
        &self.0
    }

    fn run(&self, _: &Job, _: &mut dyn Sink) -> Result<Outcome, EngineError> {
        Err(EngineError::NotTraced)
    }
}

/// A model with so many tokens, 100 positions and one operation.
fn embedding(vocabulary: u32) -> ModelManifest {
    ModelManifest {
        operations: vec![Operation::Embed].try_into().unwrap(),
        ..exact(vocabulary, 100)
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
        Self::with(
            vec![Arc::new(Slow(embedding(1_000), Duration::from_secs(2)))],
            reference,
        )
        .await
    }

    /// With these engines, of which the first is looked at most.
    async fn with(engines: Vec<Arc<dyn Engine>>, reference: u32) -> Self {
        Self::of(World::new().await, engines, reference).await
    }

    async fn of(world: World, engines: Vec<Arc<dyn Engine>>, reference: u32) -> Self {
        let model = engines[0].manifest().id();
        for engine in &engines {
            register(&world, engine.manifest(), reference);
        }
        world.chain.finalize();
        let pool = EnginePool::new(PoolConfig { threads: 1, queue: 4 }).unwrap();
        let tools = Tools {
            signer: world.auditor_agent().clone(),
            stash: world.auditor(),
            engines: Engines::new(pool, engines, Arc::new(Vitals::new().unwrap())),
            ..world.tools()
        };
        let offers = tokio::spawn(offers::keep(Arc::new(tools)));
        Self { world, model, offers }
    }

    fn offers(&self) -> bool {
        self.offers_of(self.model)
    }

    fn offers_of(&self, model: ModelId) -> bool {
        let auditors = |state: &mut FakeState| state.auditors.get(&model).cloned();
        let auditors = self.world.chain.change(auditors);
        auditors.unwrap_or_default().contains(&self.world.auditor())
    }

    /// The next look comes to this.
    async fn until(&self, offered: bool) {
        self.world.until_final(|| self.offers() == offered).await;
    }

    /// So many further looks begin, and all but the last are done: each takes back what is said of a model
    /// that is not here.
    async fn look(&self, times: u32) {
        let other = exact(2_000, 100);
        // Anybody could audit this one in time.
        register(&self.world, &other, 1);
        for _ in 0..times {
            let ours = vec![self.world.auditor()];
            self.world
                .chain
                .change(|state| state.auditors.insert(other.id(), ours));
            self.world
                .until(|| {
                    for _ in 0..20 {
                        self.world.chain.finalize();
                    }
                    !self.offers_of(other.id())
                })
                .await;
        }
    }

    fn set(&self, reference: u32) {
        self.world
            .chain
            .change(|state| state.audit_speeds.insert(self.model, reference));
    }
}

fn register(world: &World, manifest: &ModelManifest, reference: u32) {
    let registered = RegisteredModel {
        owner: world.client().account().clone(),
        manifest: manifest.clone(),
        deposit: 1,
    };
    world.chain.change(|state| {
        state.models.insert(manifest.id(), registered);
        state.audit_speeds.insert(manifest.id(), reference);
    });
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
    verifier.look(2).await;
    assert!(!verifier.offers());
    verifier.offers.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_takes_no_more_auditors_stops_no_other_offer_and_is_asked_less_and_less() {
    let mut manifests = [1_000, 1_001].map(embedding);
    // The chain lists them in this order.
    manifests.sort_by_key(ModelManifest::id);
    let [full, other] = manifests.each_ref().map(ModelManifest::id);
    let engine = |manifest| Arc::new(Slow(manifest, Duration::ZERO)) as Arc<dyn Engine>;
    let world = World::new().await;
    let is_of_full = move |call: &Call| matches!(call, Call::OfferAudits { model, .. } if *model == full);
    let fault = ChainError::Dispatch(DispatchFault {
        pallet: Some("ModelRegistry".into()),
        name: "TooManyAuditors".into(),
        docs: String::new(),
    });
    world.chain.refuse_next(is_of_full, fault, u32::MAX);
    let verifier = Verifier::of(world, manifests.map(engine).to_vec(), 1).await;
    verifier.world.until_final(|| verifier.offers_of(other)).await;
    verifier.look(8).await;
    let attempts = verifier.world.chain.attempts();
    let tried = attempts.iter().filter(|(_, call, _)| is_of_full(call)).count();
    assert!((2..=4).contains(&tried), "{tried} fees for eight looks and more");
    verifier.offers.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_stays_on_the_chain_as_it_is() {
    let verifier = Verifier::with(vec![Arc::new(Broken(embedding(1_000)))], 1).await;
    let ours = vec![verifier.world.auditor()];
    let offer = |state: &mut FakeState| drop(state.auditors.insert(verifier.model, ours));
    verifier.world.chain.change(offer);
    verifier.look(3).await;
    assert!(verifier.offers());
    verifier.offers.abort();
}
