//! Who is answered, and what those cost who are not.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use surety_audit_economics::channels::{POINTS_MEAN_MAX, SURE};
use surety_chain_client::{FakeChain, FixedU128, Hash, Signer, sample};
use surety_channel_calls::message::{self, ToHolder};
use surety_channels::{ChunkStatement, Nonce};
use surety_engine::Devices;
use surety_journal::CallStore;
use tokio::{sync::watch, task::JoinSet};

use super::*;
use crate::{
    CallsConfig, Metrics, Models, Registry,
    line::{Broken, Tell},
};

const BONDED: u128 = 1_000;
const VERIFIER: &str = "//Verifier";

/// What comes at all comes sooner.
const SOON: Duration = Duration::from_millis(200);

fn signer(uri: &str) -> Signer {
    Signer::from_uri(uri).unwrap()
}

fn stranger(number: usize) -> String {
    format!("//Stranger{number}")
}

/// What shows points of a batch, on a chain with one verifier.
struct Provider {
    chain: FakeChain,
    points: Points,
    view: BatchView,
    _home: tempfile::TempDir,
}

impl Provider {
    /// It, and what comes to its desk.
    fn new() -> (Self, mpsc::Receiver<Event>) {
        let (chain, home) = (FakeChain::new(), tempfile::tempdir().unwrap());
        chain.change(|state| {
            let mut stake = sample::records::stake();
            (stake.role, stake.bonded, stake.settled_at) = (Role::Verifier, BONDED, 0);
            let (agent, stash) = (signer(VERIFIER), signer("//Verifier//stash"));
            state.stakes.insert(stash.account().clone(), stake);
            state
                .agents
                .insert(agent.account().clone(), stash.account().clone());
        });
        chain.finalize();
        let mut view = sample::channels::batch().unwrap();
        view.draw.seed = Some(Hash::repeat_byte(7));
        (view.draw.settled_by, view.draw.verifier_stake) = (1, BONDED);
        // As many points as may be.
        let points = u128::from(POINTS_MEAN_MAX) * SURE;
        view.rate = FixedU128::from_rational(points, view.window.root.sums.price);
        let config = CallsConfig::default();
        let parts = Parts {
            chain: Arc::new(chain.clone()),
            channels: Arc::new(chain.clone()),
            signer: signer("//Agent"),
            stash: signer("//Stash").account().clone(),
            store: Arc::new(CallStore::open(&home.path().join("calls.redb")).unwrap()),
            models: Models::start([], Devices::default(), &config).unwrap(),
            config,
            metrics: Metrics::new(&Registry::new()).unwrap(),
            takes_new: true,
            stands_aside: Arc::new(|_| false),
            kept_for_others: watch::channel(Some(0)).1,
            kept: watch::Sender::new(None),
            owed: watch::Sender::new(None),
        };
        let (events, desk) = mpsc::channel(64);
        let provider = Self {
            chain,
            points: Points::new(Arc::new(parts), events),
            view,
            _home: home,
        };
        (provider, desk)
    }

    fn ask(&self, agent: &str, place: u32) -> PointAsk {
        let agent = signer(agent);
        let input = ReceiptsInput {
            seed: self.view.draw.seed.unwrap(),
            provider: self.view.provider.clone(),
            batch: self.view.batch,
        };
        PointAsk {
            batch: self.view.batch,
            place,
            agent: agent.account().clone(),
            proof: agent.draw_points(&input).unwrap().proof,
        }
    }

    /// Why nothing is shown.
    async fn answer(&self, agent: &str, place: u32) -> NotShown {
        match self.points.answer(self.ask(agent, place)).await {
            ToVerifier::NotShown(why) => why,
            ToVerifier::Point(at) => panic!("{at:?}"),
        }
    }

    /// A desk that knows the batch and has lost what is in it: how often it was asked for that.
    fn with_desk(&self, mut desk: mpsc::Receiver<Event>) -> Arc<AtomicUsize> {
        let (view, shown) = (self.view.clone(), Arc::new(AtomicUsize::new(0)));
        let count = shown.clone();
        tokio::spawn(async move {
            while let Some(event) = desk.recv().await {
                match event {
                    Event::Question(Question::Batch(_, back)) => {
                        back.send(Some((view.clone(), 0))).ok();
                    }
                    Event::Question(Question::Point(_, _, back)) => {
                        count.fetch_add(1, Ordering::Relaxed);
                        back.send(None).ok();
                    }
                    _ => panic!("nothing else is asked"),
                }
            }
        });
        shown
    }
}

#[tokio::test]
async fn strangers_have_the_chain_asked_a_few_times_and_keep_no_verifier_that_is_known_from_being_shown() {
    let (provider, desk) = Provider::new();
    let shown = provider.with_desk(desk);
    // The desk of this test has lost what it is to show.
    assert_eq!(provider.answer(VERIFIER, 0).await, NotShown::Lost);
    let begun = Instant::now();
    let mut looked_up = 0;
    for number in 0..50 {
        match provider.answer(&stranger(number), 0).await {
            NotShown::NotDrawn => looked_up += 1,
            why => assert_eq!(why, NotShown::Busy),
        }
    }
    let most = 10 + begun.elapsed().as_secs();
    assert!((5..=most).contains(&looked_up), "{looked_up} of {most}");
    assert_eq!(provider.answer(VERIFIER, 1).await, NotShown::Lost);
    assert_eq!(shown.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_the_chain_has_said_of_whoever_asks_it_is_not_asked_again_at_once() {
    let (provider, desk) = Provider::new();
    let shown = provider.with_desk(desk);
    assert_eq!(provider.answer(VERIFIER, 0).await, NotShown::Lost);
    assert_eq!(provider.answer(&stranger(0), 0).await, NotShown::NotDrawn);
    provider.chain.set_unreachable(true);
    assert_eq!(provider.answer(VERIFIER, 0).await, NotShown::Lost);
    assert_eq!(provider.answer(&stranger(0), 0).await, NotShown::NotDrawn);
    assert_eq!(shown.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn whoever_asks_takes_a_place_before_desk_and_proof_are_looked_at() {
    let (provider, mut desk) = Provider::new();
    let mut asking = JoinSet::new();
    for number in 0..PROOFS + 3 {
        let (points, ask) = (provider.points.clone(), provider.ask(&stranger(number), 0));
        asking.spawn(async move { points.answer(ask).await });
    }
    let mut waiting = Vec::new();
    for _ in 0..PROOFS {
        waiting.push(desk.recv().await.unwrap());
    }
    assert!(timeout(SOON, desk.recv()).await.is_err());
    // Whoever is answered makes room.
    waiting.pop();
    assert!(desk.recv().await.is_some());
}

#[tokio::test]
async fn an_agent_has_one_question_about_a_batch_at_a_time() {
    let (provider, mut desk) = Provider::new();
    let (points, ask) = (provider.points.clone(), provider.ask(VERIFIER, 0));
    let first = tokio::spawn(async move { points.answer(ask).await });
    let tell = async |desk: &mut mpsc::Receiver<Event>| match desk.recv().await {
        Some(Event::Question(Question::Batch(_, back))) => back.send(Some((provider.view.clone(), 0))),
        _ => panic!("the batch is asked for first"),
    };
    tell(&mut desk).await.unwrap();
    let point = desk.recv().await;
    let (second, told) = tokio::join!(provider.answer(VERIFIER, 1), tell(&mut desk));
    assert_eq!((second, told), (NotShown::Busy, Ok(())));
    drop(point);
    let lost = ToVerifier::NotShown(NotShown::Lost);
    assert_eq!(first.await.unwrap(), lost);
}

#[derive(Default)]
struct Heard(Vec<ToHolder>);

#[async_trait]
impl Tell for Heard {
    async fn tell(&mut self, frame: &[u8]) -> Result<(), Broken> {
        self.0.push(message::read(frame).unwrap());
        Ok(())
    }
}

fn held(nonce: Nonce) -> ChunkStatement<AccountId> {
    ChunkStatement {
        channel: 3,
        payee: AccountId::new([1; 32]),
        nonce,
        request: Hash::zero(),
        bytes: 4,
        output: Hash::zero(),
        units: 1,
        price: 1,
        end: None,
    }
}

#[tokio::test]
async fn holders_take_a_place_before_the_desk_looks_for_anything_and_it_does_so_for_one_at_a_time() {
    let (provider, mut desk) = Provider::new();
    let mut asking = JoinSet::new();
    for nonce in (0u32..).take(HOLDERS + 1) {
        let points = provider.points.clone();
        let asked = Asked::truncate_from(vec![held(nonce)]);
        asking.spawn(async move {
            let mut heard = Heard::default();
            points.answer_holder(asked, &mut heard).await;
            heard.0
        });
    }
    let Some(Event::Question(Question::Receipts(_, back))) = desk.recv().await else {
        panic!("receipts are looked for");
    };
    assert!(timeout(SOON, desk.recv()).await.is_err());
    let beyond = asking.join_next().await.unwrap().unwrap();
    assert_eq!(beyond, [ToHolder::NotShown(NotShown::Busy)]);
    back.send(vec![Err(NotShown::Lost)]).unwrap();
    let answered = asking.join_next().await.unwrap().unwrap();
    assert_eq!(answered, [ToHolder::NotShown(NotShown::Lost)]);
    assert!(desk.recv().await.is_some());
}
