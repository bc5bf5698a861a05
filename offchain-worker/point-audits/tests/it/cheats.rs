//! Batches of a thousand receipts, of a provider that lies about one of them, or does not show it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use codec::Encode;
use sp_core::H256;
use surety_audit_economics::channels::{ReceiptsInput, drawn_points, points_mean, receipts_seed};
use surety_chain_client::{AccountId, Call, ReceiptSource};
use surety_channel_calls::{
    message::{self, AtPoint, FromVerifier, Message, NotShown, ToVerifier},
    payer::Wanted,
};
use surety_channels::{
    Batch, BatchEntry, Batched, ChunkStatement, End, Ending, Nonce, ReceiptLeaf, Request, Struck,
};
use surety_engine::Outcome;
use surety_network::DataPlane;
use surety_proofs::content_hash;
use surety_types::model::Operation;

use crate::{
    setup::{BONDED, MONEY, Setup},
    world::World,
};

const RECEIPTS: u32 = 1_000;
const CHANNEL: u64 = 7;

/// A receipt, and what it takes to compute it again.
#[derive(Clone)]
pub struct Made {
    pub statement: ChunkStatement<AccountId>,
    pub request: Request,
    input: Vec<u8>,
    /// The tokens of a generation.
    pub said: Vec<u8>,
}

/// An answer as it is signed for, of what an engine makes.
fn make(world: &World, wanted: &Wanted, outcome: &Outcome) -> Made {
    let mut output = outcome.output.clone();
    let is_text = wanted.request.operation == Operation::Generate;
    let stops = is_text && output[0] == 1;
    if is_text {
        output[..4].fill(0);
    }
    let statement = ChunkStatement {
        channel: CHANNEL,
        payee: world.stash.account().clone(),
        nonce: 0,
        request: wanted.request.hash(),
        bytes: output.len() as u32,
        output: content_hash(&output),
        units: outcome.claim.units,
        price: wanted.request.price(outcome.claim.units).unwrap(),
        end: Some(Ending {
            how: if stops { End::Stop } else { End::Length },
            trace_root: outcome.claim.trace_root,
        }),
    };
    Made {
        statement,
        request: wanted.request.clone(),
        input: wanted.input.clone(),
        said: if is_text { output.split_off(4) } else { Vec::new() },
    }
}

/// The same with one wrong token, and the trace of the right ones.
pub fn lie(mut made: Made) -> Made {
    let middle = made.said.len() / 8 * 4;
    made.said[middle] ^= 1;
    let mut output = vec![0; 4];
    output.extend(&made.said);
    made.statement.output = content_hash(&output);
    made
}

/// What the provider has.
pub struct Provider {
    pub made: Vec<Made>,
    batch: Batch,
    /// It shows nothing at these receipts.
    hidden: Vec<Nonce>,
    points: Mutex<Vec<u128>>,
    serves: AtomicBool,
}

impl Provider {
    pub fn new(genesis: &H256, made: Vec<Made>, hidden: Vec<Nonce>) -> Arc<Self> {
        let entries = made.iter().map(|made| BatchEntry {
            channel: CHANNEL,
            nonce: made.statement.nonce,
            price: made.statement.price,
            leaf: ReceiptLeaf {
                receipt: H256(made.statement.message(genesis)),
                salt: H256::zero(),
            },
        });
        Arc::new(Self {
            batch: Batch::new(&entries.collect::<Vec<_>>()).unwrap(),
            made,
            hidden,
            points: Mutex::default(),
            serves: AtomicBool::new(true),
        })
    }

    pub fn at(&self, point: u128) -> Option<AtPoint> {
        let opening = self.batch.leaf_at(point)?;
        let made = &self.made[opening.place as usize];
        let is_hidden = self.hidden.contains(&opening.place) || !self.serves.load(Ordering::Relaxed);
        (!is_hidden).then(|| AtPoint {
            batched: Batched {
                opening,
                statement: made.statement.clone(),
            },
            request: made.request.clone(),
            input: made.input.clone().try_into().unwrap(),
            output: made.said.clone().try_into().unwrap(),
        })
    }

    pub fn serve(self: &Arc<Self>, setup: &Setup) {
        let (provider, plane) = (self.clone(), setup.provider());
        let mut listener = plane.calls().unwrap();
        tokio::spawn(async move {
            let _plane = plane;
            while let Some(mut call) = listener.next().await {
                let Ok(Some(frame)) = call.recv(FromVerifier::bytes_max()).await else {
                    continue;
                };
                let FromVerifier::Show(ask) = message::read(&frame).unwrap();
                let point = provider.points.lock().unwrap()[ask.place as usize];
                let answer = match provider.at(point) {
                    Some(at) => ToVerifier::Point(at),
                    None => ToVerifier::NotShown(NotShown::Lost),
                };
                call.send(&answer.encode()).await.unwrap();
            }
        });
    }
}

/// A chain with a verifier that knows where it will look, of a batch of so much.
pub struct Stage {
    pub world: World,
    pub setup: Setup,
    kinds: Vec<Made>,
}

impl Stage {
    pub async fn new() -> Self {
        let world = World::new(&[7, 70, 170]).await;
        world.chain.change(|state| {
            state.channels.rules.announce_window = 300;
            state.channels.rules.batch_window = 500;
        });
        let wanted = [
            world.text(1, 10, 30, 8),
            world.text(2, 20, 20, 8),
            world.items(8),
            world.text(3, 5, 40, 8),
        ];
        let made = wanted.iter().map(|wanted| {
            let outcome = world.alone(wanted, wanted.request.units_max);
            make(&world, wanted, &outcome)
        });
        let kinds: Vec<Made> = made.collect();
        let price: u128 = (0..RECEIPTS as usize)
            .map(|at| kinds[at % kinds.len()].statement.price)
            .sum();
        let setup = Setup::new(&world.chain, world.stash.account(), price);
        Self { world, setup, kinds }
    }

    /// Honest receipts of consecutive requests.
    pub fn receipts(&self) -> Vec<Made> {
        let made = (0..RECEIPTS).map(|nonce| {
            let mut made = self.kinds[nonce as usize % self.kinds.len()].clone();
            made.statement.nonce = nonce;
            made
        });
        made.collect()
    }

    /// Where the verifier's points will be, on the provider's next batch: what is in it makes no difference.
    fn points(&self, price: u128) -> Vec<u128> {
        let stash = self.world.stash.account();
        // It is committed in the block to come.
        let (block, rate) = self
            .setup
            .chain
            .change(|state| (state.number + 1, state.channels.rate));
        let randomness = H256::from_low_u64_be(block.into());
        let seed = receipts_seed(&self.setup.genesis(), stash, 0, &randomness, None);
        let input = ReceiptsInput {
            seed,
            provider: stash.clone(),
            batch: 0,
        };
        let drawn = self.setup.agent.draw_points(&input).unwrap();
        drawn_points(&drawn.output, price, points_mean(rate, price, BONDED, BONDED))
    }

    pub async fn commit(&self, provider: &Provider) {
        let root = provider.batch.root();
        *provider.points.lock().unwrap() = self.points(root.sums.price);
        self.world
            .submit(&self.world.agent, Call::CommitBatch { root })
            .await;
        provider.serve_check();
    }

    pub async fn start(&self) -> crate::setup::Process {
        let engines: Vec<Arc<dyn surety_engine::Engine>> =
            vec![self.world.decoder.clone(), self.world.encoder.clone()];
        self.setup.start(engines).await
    }

    /// Receipts that points fall on, in the order of the points.
    pub fn met(&self) -> Vec<Nonce> {
        let provider = Provider::new(&self.setup.genesis(), self.receipts(), Vec::new());
        let points = self.points(provider.batch.root().sums.price);
        let at = |point: &u128| provider.batch.leaf_at(*point).unwrap().place;
        points.iter().map(at).collect()
    }

    /// A generation that a point falls on, and one that none does.
    pub fn met_and_missed(&self) -> (Nonce, Nonce) {
        let (made, met) = (self.receipts(), self.met());
        let is_text = |nonce: &Nonce| made[*nonce as usize].request.operation == Operation::Generate;
        let hit = met.iter().copied().find(is_text).unwrap();
        let missed = (0..RECEIPTS)
            .find(|nonce| is_text(nonce) && !met.contains(nonce))
            .unwrap();
        (hit, missed)
    }

    /// Commits a thousand receipts of which this one has a wrong token.
    pub async fn commit_with_lie_at(&self, nonce: Nonce) -> Arc<Provider> {
        let mut made = self.receipts();
        made[nonce as usize] = lie(made[nonce as usize].clone());
        let provider = Provider::new(&self.setup.genesis(), made, Vec::new());
        provider.serve(&self.setup);
        self.commit(&provider).await;
        provider
    }
}

impl Provider {
    fn serve_check(&self) {
        assert!(
            !self.points.lock().unwrap().is_empty(),
            "the verifier draws nothing"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_in_one_of_a_thousand_receipts_is_disputed_when_a_point_falls_on_it() {
    let stage = Stage::new().await;
    let (met, _) = stage.met_and_missed();
    let provider = stage.commit_with_lie_at(met).await;
    let verifier = stage.start().await;
    let setup = &stage.setup;
    setup
        .until("it is disputed", |state| !state.channels.disputed.is_empty())
        .await;
    let (of, batch, receipt) = setup
        .chain
        .change(|state| state.channels.disputed.values().next().cloned())
        .unwrap();
    let lied = &provider.made[met as usize].statement;
    let expected = Struck {
        channel: CHANNEL,
        nonce: met,
        price: lied.price,
    };
    assert_eq!(
        (&of, batch, receipt),
        (stage.world.stash.account(), Some(0), expected)
    );
    setup
        .until("it is announced", |_| setup.count("announce_points") > 0)
        .await;
    // It does not stand: everything is lost, and the verifier is paid for having looked.
    setup.chain.change(|state| {
        let round = *state.channels.disputed.keys().next().unwrap();
        state.decide_receipt(round, false);
    });
    let stash = stage.world.stash.account().clone();
    assert_eq!(
        setup.chain.change(|state| state.channels.standings[&stash].lock),
        0
    );
    setup.until("it is paid", |_| setup.count("end_points") > 0).await;
    assert_eq!(setup.count("dispute"), 1);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_that_no_point_falls_on_is_not_seen() {
    let stage = Stage::new().await;
    let (_, missed) = stage.met_and_missed();
    stage.commit_with_lie_at(missed).await;
    let verifier = stage.start().await;
    let setup = &stage.setup;
    setup.until("it is paid", |_| setup.count("end_points") > 0).await;
    let stash = setup.stash.account().clone();
    assert!(setup.chain.change(|state| state.funds[&stash].free) > MONEY);
    assert_eq!(setup.count("dispute"), 0);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_that_is_not_served_is_demanded_and_who_does_not_show_it_loses_its_lock() {
    let stage = Stage::new().await;
    let (met, _) = stage.met_and_missed();
    let provider = Provider::new(&stage.setup.genesis(), stage.receipts(), vec![met]);
    provider.serve(&stage.setup);
    stage.commit(&provider).await;
    let verifier = stage.start().await;
    let setup = &stage.setup;
    setup
        .until("it is demanded", |_| setup.count("demand_point") > 0)
        .await;
    setup
        .until("the demand is over", |_| setup.count("end_demand") > 0)
        .await;
    let stash = stage.world.stash.account().clone();
    assert_eq!(
        setup.chain.change(|state| state.channels.standings[&stash].lock),
        0
    );
    assert_eq!(
        setup.count("announce_points"),
        0,
        "something was announced of what was not seen"
    );
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_point_that_is_shown_after_all_is_announced() {
    let stage = Stage::new().await;
    let provider = Provider::new(&stage.setup.genesis(), stage.receipts(), Vec::new());
    provider.serves.store(false, Ordering::Relaxed);
    provider.serve(&stage.setup);
    stage.commit(&provider).await;
    let verifier = stage.start().await;
    let setup = &stage.setup;
    setup
        .until("it is demanded", |_| setup.count("demand_point") > 0)
        .await;
    provider.serves.store(true, Ordering::Relaxed);
    // All of them are demanded, and each receipt is shown once.
    let points = provider.points.lock().unwrap().clone();
    setup
        .until("all are demanded", |_| {
            setup.count("demand_point") >= points.len()
        })
        .await;
    let is_owed = |state: &surety_chain_client::FakeState| !state.channels.demands.is_empty();
    for point in &points {
        if !setup.chain.change(|state| is_owed(state)) {
            break;
        }
        let at = provider.at(*point).unwrap();
        let output = [&[0; 4][..], &at.output].concat();
        let show = Call::ShowPoint {
            demander: setup.stash.account().clone(),
            batch: 0,
            receipt: Box::new(at.batched),
            request: Box::new(at.request),
            head: surety_proofs::SegmentOpening::new(&output, 0),
        };
        stage.world.submit(&stage.world.agent, show).await;
    }
    setup
        .until("it is announced", |_| setup.count("announce_points") > 0)
        .await;
    assert_eq!(setup.count("demand_point"), points.len());
    assert_eq!(setup.count("end_demand"), 0);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_that_costs_more_than_its_units_is_reported() {
    let stage = Stage::new().await;
    let mut made = stage.receipts();
    for made in &mut made {
        made.statement.price += 1;
    }
    let provider = Provider::new(&stage.setup.genesis(), made, Vec::new());
    provider.serve(&stage.setup);
    stage.commit(&provider).await;
    let verifier = stage.start().await;
    let stash = stage.world.stash.account().clone();
    let is_convicted = |state: &surety_chain_client::FakeState| state.channels.standings[&stash].lock == 0;
    stage.setup.until("the batch is void", is_convicted).await;
    assert_eq!(stage.setup.count("report_batch"), 1);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_disputed_is_what_the_chain_takes() {
    let stage = Stage::new().await;
    let (met, _) = stage.met_and_missed();
    stage.commit_with_lie_at(met).await;
    let verifier = stage.start().await;
    let setup = &stage.setup;
    setup
        .until("it is disputed", |_| setup.count("dispute") > 0)
        .await;
    let (source, request, head) = setup
        .chain
        .calls()
        .into_iter()
        .find_map(|(_, call)| match call {
            Call::Dispute {
                receipt,
                request,
                head,
            } => Some((*receipt, *request, head)),
            _ => None,
        })
        .unwrap();
    let ReceiptSource::Batch(_, batched) = source else {
        panic!("it is in a batch");
    };
    assert!(batched.statement.claimed_output(head.as_ref()).is_some());
    assert_eq!(batched.statement.check(&request), Ok(()));
    verifier.stop().await;
}
