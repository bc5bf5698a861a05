//! A verifier's book against a chain that is small, random, and strict.

use std::collections::{BTreeMap, BTreeSet};

use codec::Encode;
use proptest::prelude::*;
use sp_core::H256;
use sp_runtime::FixedU128;
use surety_audit_economics::channels::{ReceiptsInput, drawn_points, points_drawn, points_mean};
use surety_chain_client::{
    AccountId, BatchView, Call, ChannelRules, DemandView, PointsView, VrfDraw, sample,
};
use surety_channel_calls::Row;
use surety_channels::{BatchRoot, BatchWindow, PointsFound, Sums, points_seal, view::Wanted};
use surety_point_audits::book::{
    Action, BatchKey, Book, Limits, Outcome, Purpose, Sight, Stake, Unserved, Verifier, Went, Work,
};
use surety_proofs::content_hash;

const STASH: AccountId = AccountId::new([1; 32]);
const BONDED: u128 = 40;
const REFUTE: u32 = 6;

fn provider(number: u8) -> AccountId {
    AccountId::new([100 + number; 32])
}

/// What is to be found at a point.
fn truth(key: &BatchKey, point: u128) -> H256 {
    content_hash(&(key, point).encode())
}

fn draw(input: &ReceiptsInput<AccountId>) -> Option<VrfDraw> {
    let output = content_hash(&input.encode()).0;
    let Call::AnnouncePoints { proof, .. } = sample_announcement() else {
        return None;
    };
    Some(VrfDraw { output, proof })
}

fn sample_announcement() -> Call {
    sample::calls()
        .into_iter()
        .find(|call| matches!(call, Call::AnnouncePoints { .. }))
        .unwrap()
}

/// What happens to work that was begun.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Found,
    HalfFound,
    Unserved,
    Busy,
    Unable,
}

#[derive(Clone, Debug)]
struct Plan {
    /// By provider: the block of its batch, and the width of its windows.
    batches: Vec<(u32, u32, u32)>,
    /// In turn: how many blocks work takes, and what comes of it.
    work: Vec<(u32, Luck)>,
    /// In turn: whether a call gets in.
    gets_in: Vec<bool>,
    /// Blocks after which the program starts again, and whether its disk is lost.
    restarts: Vec<(u32, bool)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let luck = prop_oneof![
        6 => Just(Luck::Found),
        2 => Just(Luck::HalfFound),
        2 => Just(Luck::Unserved),
        1 => Just(Luck::Busy),
        1 => Just(Luck::Unable),
    ];
    (
        prop::collection::vec((1..20u32, 4..20u32, 10..40u32), 1..8),
        prop::collection::vec((0..6u32, luck), 1..20),
        prop::collection::vec(prop::bool::weighted(0.8), 1..20),
        prop::collection::vec((1..60u32, any::<bool>()), 0..3),
    )
        .prop_map(|(batches, work, gets_in, restarts)| Plan {
            batches,
            work,
            gets_in,
            restarts,
        })
}

#[derive(Clone)]
struct Announced {
    seal: H256,
    view: PointsView,
}

/// The chain, and the verifier's disk.
struct Chain {
    block: u32,
    batches: BTreeMap<BatchKey, BatchView>,
    announced: BTreeMap<BatchKey, Announced>,
    demands: Vec<DemandView>,
    disk: BTreeMap<Vec<u8>, Row>,
    ended: Vec<BatchKey>,
    demanded_at: Vec<u32>,
}

impl Chain {
    fn sight(&self) -> Sight {
        let seen = self
            .batches
            .iter()
            .filter(|(_, view)| view.draw.begun_at <= self.block);
        Sight {
            block: self.block,
            time: self.block,
            rules: ChannelRules {
                refute_window: REFUTE,
                ..sample::channels::rules()
            },
            stake: Some(Stake {
                bonded: BONDED,
                settled_at: 0,
            }),
            batches: seen
                .map(|(key, view)| {
                    let mut view = view.clone();
                    let is_known = self.block > view.draw.begun_at;
                    view.draw.seed = is_known.then(|| H256::from_low_u64_be(view.batch.into()));
                    (
                        view,
                        self.announced.get(key).map(|announced| announced.view.clone()),
                    )
                })
                .collect(),
            demands: self.demands.clone(),
        }
    }

    /// Carries a call out, as the pallet does. Whatever is due has to be right at the block that it is due
    /// at.
    fn apply(&mut self, call: Call) {
        let now = self.block;
        match call {
            Call::AnnouncePoints {
                provider,
                batch,
                seal,
                ..
            } => {
                let key = (provider.clone(), batch);
                let view = &self.batches[&key];
                assert!(
                    now < view.announce_until,
                    "announced at {now} of {}",
                    view.announce_until
                );
                assert!(!self.announced.contains_key(&key), "announced twice");
                assert!(
                    self.disk.contains_key(&key.encode()),
                    "announced before it was written"
                );
                let seed = H256::from_low_u64_be(batch.into());
                let output = draw(&ReceiptsInput {
                    seed,
                    provider,
                    batch,
                })
                .unwrap()
                .output;
                let price = view.window.root.sums.price;
                let mean = points_mean(view.rate, price, BONDED, view.draw.verifier_stake);
                assert!(points_drawn(&output, mean) > 0);
                let view = PointsView {
                    verifier: STASH,
                    bond: 1,
                    output: H256(output),
                    mean,
                    opened: false,
                };
                self.announced.insert(key, Announced { seal, view });
            }
            Call::OpenPoints {
                provider,
                batch,
                verifier,
                found,
                salt,
            } => {
                let key = (provider.clone(), batch);
                let view = &self.batches[&key];
                assert!(view.announce_until < now && !view.window.is_final(now));
                let announced = self.announced.get_mut(&key).unwrap();
                let seal = points_seal(&provider, batch, &verifier, &found, &salt);
                assert_eq!(seal, announced.seal, "something else was sealed");
                let PointsView { output, mean, .. } = announced.view;
                let points = drawn_points(&output.0, view.window.root.sums.price, mean);
                let all: Vec<H256> = points.into_iter().map(|point| truth(&key, point)).collect();
                assert_eq!(found, PointsFound::try_from(all).unwrap());
                announced.view.opened = true;
            }
            Call::EndPoints { provider, batch, .. } => {
                let key = (provider, batch);
                let view = &self.batches[&key];
                assert!(view.window.is_final(now) && view.window.until + REFUTE < now);
                assert!(
                    self.announced.remove(&key).unwrap().view.opened,
                    "its own bond is lost"
                );
                self.ended.push(key);
            }
            Call::DemandPoint {
                provider,
                batch,
                place,
                ..
            } => {
                let view = &self.batches[&(provider.clone(), batch)];
                assert!(now < view.window.until);
                assert!(!self.demands.iter().any(|demand| demand.provider == provider));
                self.demanded_at.push(now);
                self.demands.push(DemandView {
                    provider,
                    demander: STASH,
                    wanted: Wanted::Point {
                        batch,
                        point: place.into(),
                    },
                    until: now + 4,
                });
            }
            Call::EndDemand { provider, .. } => {
                let of = self
                    .demands
                    .iter()
                    .position(|demand| demand.provider == provider)
                    .unwrap();
                assert!(self.demands.remove(of).until < now);
            }
            call => panic!("{call:?}"),
        }
    }
}

fn verifier() -> Verifier {
    Verifier {
        stash: STASH,
        genesis: H256::zero(),
        secret: [7; 32],
        limits: Limits {
            margin: 1,
            working_max: 2,
            ..Limits::default()
        },
    }
}

fn outcome(work: &Work, luck: Luck) -> Outcome {
    let key = (work.view.provider.clone(), work.view.batch);
    let found = |count: usize| {
        let open = work.open.iter().take(count);
        open.map(|(_, point)| (*point, truth(&key, *point))).collect()
    };
    let half = work.open.len() / 2;
    match luck {
        Luck::Found => Outcome {
            found: found(work.open.len()),
            ..Outcome::default()
        },
        Luck::HalfFound | Luck::Unserved | Luck::Busy => Outcome {
            found: found(if matches!(luck, Luck::HalfFound) { half } else { 0 }),
            unserved: Some(Unserved {
                place: work.open[half.min(work.open.len() - 1)].0,
                is_busy: matches!(luck, Luck::Busy),
            }),
            ..Outcome::default()
        },
        Luck::Unable => Outcome {
            unable: work.open.iter().take(half + 1).map(|(_, point)| *point).collect(),
            ..Outcome::default()
        },
    }
}

/// A chain with these batches: the block of each, and the width of its windows.
fn chain(batches: &[(u32, u32, u32)]) -> Chain {
    let template = sample::channels::batch().unwrap();
    let batches = batches
        .iter()
        .zip(0u8..)
        .map(|((begun, announce, dispute), number)| {
            let mut view: BatchView = template.clone();
            view.provider = provider(number / 2);
            view.batch = number.into();
            let root = BatchRoot {
                sums: Sums {
                    receipts: 10,
                    price: 1_000,
                },
                ..view.window.root
            };
            view.announce_until = begun + announce;
            view.window = BatchWindow::new(root, begun + announce + dispute);
            view.draw.begun_at = *begun;
            view.draw.settled_by = *begun;
            view.draw.verifier_stake = 100;
            view.draw.seed = None;
            // Ten points are expected, four of them here.
            view.rate = FixedU128::from_inner(10_000_000_000_000_000_000_000_000_000);
            view.announced = 1;
            ((view.provider.clone(), view.batch), view)
        });
    Chain {
        block: 0,
        batches: batches.collect(),
        announced: BTreeMap::new(),
        demands: Vec::new(),
        disk: BTreeMap::new(),
        ended: Vec::new(),
        demanded_at: Vec::new(),
    }
}

fn live(plan: &Plan) -> Chain {
    let mut chain = chain(&plan.batches);
    let mut book = Book::new(verifier(), &[]).unwrap();
    let mut working: Vec<(u32, Box<Work>, Luck)> = Vec::new();
    let (mut work, mut gets_in) = (plan.work.iter().cycle(), plan.gets_in.iter().cycle());
    for block in 1..160 {
        chain.block = block;
        if let Some((_, is_lost)) = plan.restarts.iter().find(|(at, _)| *at == block) {
            if *is_lost {
                chain.disk.clear();
            }
            working.clear();
            let rows: Vec<Row> = chain.disk.values().cloned().collect();
            book = Book::new(verifier(), &rows).unwrap();
        }
        let (over, still) = working.into_iter().partition(|(until, ..)| *until <= block);
        working = still;
        for (_, done, luck) in over {
            let key = (done.view.provider.clone(), done.view.batch);
            if let Some(row) = book.worked(&key, done.seed, outcome(&done, luck)) {
                chain.disk.insert(row.key.clone(), row);
                book.written(&key);
            }
        }
        let sight = chain.sight();
        for action in book.see(&sight, &draw) {
            match action {
                Action::Work(begun) => {
                    let (takes, luck) = *work.next().unwrap();
                    working.push((block + takes + 1, begun, luck));
                    assert!(working.len() <= 2, "more at once than may be");
                }
                Action::Send(purpose, call) => {
                    if *gets_in.next().unwrap() {
                        chain.apply(*call);
                        book.went(&purpose, Went::Done);
                    } else {
                        book.went(&purpose, Went::Later);
                    }
                    assert!(!matches!(purpose, Purpose::Dispute(..) | Purpose::Report(_)));
                }
                Action::Forget(row) => drop(chain.disk.remove(&row.key)),
            }
        }
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What the chain asserts holds whatever happens; what was announced is opened and paid, where it can be
    /// computed again after a loss.
    #[test]
    fn a_verifier_keeps_its_promises(plan in plan()) {
        let chain = live(&plan);
        let is_lossy = plan.restarts.iter().any(|(_, is_lost)| *is_lost);
        let is_lucky = plan.gets_in.iter().all(|gets_in| *gets_in);
        if is_lucky && !is_lossy {
            prop_assert!(chain.announced.is_empty(), "something announced was not paid");
            // Nothing is kept for ever.
            prop_assert!(chain.disk.is_empty());
        }
    }

    /// Where all is served and sent at once, each batch that a point falls on is audited and paid.
    #[test]
    fn whatever_can_be_audited_is(batches in prop::collection::vec((1..20u32, 10..20u32, 10..40u32), 1..6)) {
        let plan = Plan {
            batches,
            work: vec![(0, Luck::Found)],
            gets_in: vec![true],
            restarts: Vec::new(),
        };
        let chain = live(&plan);
        for (key, view) in &chain.batches {
            let seed = H256::from_low_u64_be(view.batch.into());
            let output = draw(&ReceiptsInput { seed, provider: key.0.clone(), batch: key.1 }).unwrap().output;
            let mean = points_mean(view.rate, view.window.root.sums.price, BONDED, 100);
            prop_assert_eq!(chain.ended.contains(key), points_drawn(&output, mean) > 0);
        }
    }
}

#[test]
fn who_has_lost_its_disk_opens_what_it_has_announced() {
    let plan = Plan {
        batches: vec![(1, 10, 40)],
        work: vec![(0, Luck::Found)],
        gets_in: vec![true],
        restarts: vec![(6, true)],
    };
    assert_eq!(live(&plan).ended.len(), 1);
}

#[test]
fn what_is_never_served_is_demanded_once_and_nothing_is_announced() {
    let plan = Plan {
        batches: vec![(1, 15, 40)],
        work: vec![(0, Luck::Unserved)],
        gets_in: vec![true],
        restarts: Vec::new(),
    };
    let chain = live(&plan);
    assert!(chain.ended.is_empty() && chain.announced.is_empty() && chain.demands.is_empty());
    assert_eq!(chain.demanded_at.len(), 1);
}

/// The block in which something is demanded of a provider that always says this, of a batch of block 1 that
/// can be announced until block 41.
fn demanded_at(luck: Luck) -> Vec<u32> {
    let plan = Plan {
        batches: vec![(1, 40, 40)],
        work: vec![(0, luck)],
        gets_in: vec![true],
        restarts: Vec::new(),
    };
    live(&plan).demanded_at
}

#[test]
fn a_provider_that_restarts_has_half_of_the_time_before_something_is_demanded() {
    let at = demanded_at(Luck::Unserved);
    assert!(matches!(at[..], [at] if (21..40).contains(&at)), "{at:?}");
}

#[test]
fn of_a_provider_that_is_only_busy_something_is_demanded_when_there_is_no_time_left() {
    assert_eq!(demanded_at(Luck::Busy), [41]);
}

#[test]
fn verifiers_begin_at_places_of_their_own_in_the_first_quarter_of_the_time() {
    let begin = |verifier: u8| {
        let draw = |input: &ReceiptsInput<AccountId>| {
            let drawn = draw(input)?;
            let output = content_hash(&(verifier, drawn.output).encode()).0;
            Some(VrfDraw { output, ..drawn })
        };
        let mut chain = chain(&[(1, 40, 40)]);
        let mut book = Book::new(self::verifier(), &[]).unwrap();
        (1..41).find(|block| {
            chain.block = *block;
            let actions = book.see(&chain.sight(), &draw);
            actions.iter().any(|action| matches!(action, Action::Work(_)))
        })
    };
    // Who draws nothing does not begin.
    let begun: BTreeSet<u32> = (0..40).filter_map(begin).collect();
    assert!(begun.len() > 5, "{begun:?}");
    assert!(begun.iter().all(|at| (2..=11).contains(at)), "{begun:?}");
}
