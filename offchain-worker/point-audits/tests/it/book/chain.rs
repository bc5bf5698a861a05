//! A chain that is small, and strict: whatever is sent to it has to be right.

use std::collections::{BTreeMap, BTreeSet};

use codec::Encode;
use sp_core::H256;
use sp_runtime::FixedU128;
use surety_audit_economics::channels::{ReceiptsInput, drawn_points, points_drawn, points_mean};
use surety_chain_client::{
    AccountId, BatchView, Call, ChannelRules, DemandView, PointsView, VrfDraw, sample,
};
use surety_channel_calls::Row;
use surety_channels::{
    BatchNumber, BatchRoot, BatchWindow, NOT_COMPUTED, PointsFound, Sums, computed, points_seal, view::Wanted,
};
use surety_point_audits::book::{BatchKey, Sight, Stake};
use surety_proofs::content_hash;

pub const STASH: AccountId = AccountId::new([1; 32]);
pub const BONDED: u128 = 40;
const REFUTE: u32 = 6;
const SUPPLY: u32 = 30;

fn provider(number: u8) -> AccountId {
    AccountId::new([100 + number; 32])
}

/// What is to be found at a point.
pub fn truth(key: &BatchKey, point: u128) -> H256 {
    content_hash(&(key, point).encode())
}

pub fn draw(input: &ReceiptsInput<AccountId>) -> Option<VrfDraw> {
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

#[derive(Clone)]
pub struct Announced {
    seal: H256,
    view: PointsView,
    opened_at: u32,
}

/// The chain, and the verifier's disk.
pub struct Chain {
    pub block: u32,
    pub batches: BTreeMap<BatchKey, BatchView>,
    pub announced: BTreeMap<BatchKey, Announced>,
    pub demands: Vec<DemandView>,
    pub disk: BTreeMap<Vec<u8>, Row>,
    pub is_disk_lost: bool,
    pub ended: Vec<BatchKey>,
    pub announced_at: BTreeSet<u32>,
    /// Points that were opened as not computed.
    pub unpaid: usize,
    pub demanded: BTreeSet<(AccountId, BatchNumber, u32)>,
    /// Blocks in which something was.
    pub demanded_at: BTreeSet<u32>,
}

impl Chain {
    pub fn sight(&self) -> Sight {
        let seen = self
            .batches
            .iter()
            .filter(|(_, view)| view.draw.begun_at <= self.block);
        Sight {
            block: self.block,
            time: self.block,
            rules: ChannelRules {
                refute_window: REFUTE,
                supply_window: SUPPLY,
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
    pub fn apply(&mut self, call: Call) {
        match call {
            Call::AnnouncePoints {
                provider,
                batch,
                seal,
                ..
            } => self.announce((provider, batch), seal),
            Call::OpenPoints {
                provider,
                batch,
                verifier,
                found,
                salt,
            } => {
                let seal = points_seal(&provider, batch, &verifier, &found, &salt);
                self.open(&(provider, batch), seal, &found);
            }
            Call::EndPoints { provider, batch, .. } => self.end((provider, batch)),
            Call::DemandPoint {
                provider,
                batch,
                place,
                ..
            } => self.demand((provider, batch), place),
            Call::EndDemand { provider, .. } => {
                let mut demands = self.demands.iter();
                let of = demands.position(|demand| demand.provider == provider).unwrap();
                assert!(self.demands.remove(of).until < self.block);
            }
            call => panic!("{call:?}"),
        }
    }

    fn announce(&mut self, key: BatchKey, seal: H256) {
        let (now, view) = (self.block, &self.batches[&key]);
        let until = view.announce_until;
        assert!(now < until, "announced at {now} of {until}");
        assert!(!self.announced.contains_key(&key), "announced twice");
        let is_written = self.disk.contains_key(&key.encode());
        assert!(is_written, "announced before it was written");
        let input = ReceiptsInput {
            seed: H256::from_low_u64_be(key.1.into()),
            provider: key.0.clone(),
            batch: key.1,
        };
        let output = draw(&input).unwrap().output;
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
        let opened_at = 0;
        let announced = Announced {
            seal,
            view,
            opened_at,
        };
        self.announced.insert(key, announced);
        self.announced_at.insert(now);
    }

    fn open(&mut self, key: &BatchKey, seal: H256, found: &PointsFound) {
        let (now, view) = (self.block, &self.batches[key]);
        // Whether it is final by then makes no difference.
        let last = view.window.until.max(view.announce_until + SUPPLY);
        assert!(view.announce_until < now && now <= last);
        let announced = self.announced.get_mut(key).unwrap();
        if seal != announced.seal {
            // What its machine could not compute is gone with its disk.
            assert!(self.is_disk_lost, "something else was sealed");
            return;
        }
        let PointsView { output, mean, .. } = announced.view;
        let points = drawn_points(&output.0, view.window.root.sums.price, mean);
        assert_eq!(found.len(), points.len());
        let mut all = found.iter().zip(points);
        assert!(all.all(|(found, point)| [truth(key, point), NOT_COMPUTED].contains(found)));
        assert!(computed(found) > 0, "nobody is paid for nothing");
        self.unpaid += found.iter().filter(|found| **found == NOT_COMPUTED).count();
        announced.view.opened = true;
        announced.opened_at = now;
    }

    fn end(&mut self, key: BatchKey) {
        let (now, window) = (self.block, &self.batches[&key].window);
        let announced = self.announced.remove(&key).unwrap();
        assert!(announced.view.opened, "its own bond is lost");
        let refutable = window.until.max(announced.opened_at) + REFUTE;
        assert!(window.is_final(now) && refutable < now);
        self.ended.push(key);
    }

    fn demand(&mut self, key: BatchKey, place: u32) {
        assert!(self.block < self.batches[&key].window.until);
        let (provider, batch) = key;
        let of = (provider.clone(), batch, place);
        assert!(self.demanded.insert(of), "a point is demanded twice");
        self.demanded_at.insert(self.block);
        let wanted = Wanted::Point {
            batch,
            point: place.into(),
        };
        self.demands.push(DemandView {
            provider,
            demander: STASH,
            wanted,
            until: self.block + 4,
        });
    }
}

/// A chain with these batches: the block of each, and the width of its windows.
pub fn chain(batches: &[(u32, u32, u32)]) -> Chain {
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
        is_disk_lost: false,
        ended: Vec::new(),
        announced_at: BTreeSet::new(),
        unpaid: 0,
        demanded: BTreeSet::new(),
        demanded_at: BTreeSet::new(),
    }
}
