//! Payment channels of the fake chain.
//!
//! Money, windows and what openings show go by `surety-channels`, as on the chain. Audits cost providers
//! nothing, a lock is as large as its cap and covers any places, pools cost what the test says, and channels
//! that are over stay until somebody ends them. No round about a receipt is played:
//! [`FakeState::decide_receipt`] ends one.

mod chain;
mod demands;
mod points;
mod purse;
mod receipts;
mod selling;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedU128;
use surety_channels::{
    BatchNumber, BatchWindow, ChannelId, Counted, Demanded, PointsFound, Region, Struck, Time,
    view::TrackRecord,
};
use surety_types::{ModelId, TaskId, model::Operation, trust::FaultKind};

use super::state::{Applied, FakeState, fault};
use crate::{
    Balance, BatchView, Call, ChainError, ChainEvent, ChannelRules, ChannelView, DemandView, EventField,
    PointsView, StandingView, is_message_signed,
};

/// What everybody works by unless the test says otherwise.
const RULES: ChannelRules = ChannelRules {
    min_deposit: 10,
    max_life: 10_000,
    closing_period: 300,
    batch_window: 100,
    announce_window: 40,
    refute_window: 20,
    redeem_by: 1_000,
    supply_window: 50,
    dispute_window: 30,
    demand_price: 16,
    point_bond: 2,
    point_cost: 4,
};

/// What the fake chain keeps of payment channels.
#[derive(Clone, Debug)]
pub struct FakeChannels {
    /// What everybody works by.
    pub rules: ChannelRules,
    /// Points for a SURE of each batch to come.
    pub rate: FixedU128,
    /// Whether there is a lock that would do.
    pub is_insurable: bool,
    /// Whether the channels that pay a provider cannot be read, as where there are too many for a node.
    pub is_unreadable: bool,
    /// Channels that were not ended.
    pub open: BTreeMap<ChannelId, ChannelView>,
    /// Number of the next channel.
    pub next: ChannelId,
    /// What providers stand behind, by stash. What is open of it follows from the batches.
    pub standings: BTreeMap<AccountId32, StandingView>,
    /// Batches that are kept, by the provider's stash and their number.
    pub batches: BTreeMap<(AccountId32, BatchNumber), BatchView>,
    /// What is remembered of providers, by stash, where a test says so; else what follows from their batches.
    pub records: BTreeMap<AccountId32, TrackRecord>,
    /// Offers by the provider's stash.
    pub offers: BTreeMap<(AccountId32, ModelId, Operation), FakeOffer>,
    /// What a unit costs at least, where that is not 0.
    pub pool_prices: BTreeMap<(ModelId, Operation), Balance>,
    /// All that is demanded, by the provider's stash and who demands it.
    pub demands: BTreeMap<(AccountId32, AccountId32), Vec<FakeDemand>>,
    /// What verifiers have announced, by provider and batch, and the verifier's stash.
    pub points: BTreeMap<((AccountId32, BatchNumber), AccountId32), FakePoints>,
    /// Receipts that are disputed, by the number of their round: the provider, the batch, and the receipt.
    pub disputed: BTreeMap<TaskId, (AccountId32, Option<BatchNumber>, Struck)>,
    /// Those of the rounds that were opened because a verifier was not served the receipt.
    pub unserved: BTreeSet<TaskId>,
    /// The last batch that was counted for a channel, or the first that could be.
    counted: BTreeMap<ChannelId, BatchNumber>,
    /// What is known of the batches that have what was counted.
    marks: BTreeMap<ChannelId, Counted>,
    /// How often receipts of a channel were demanded.
    demanded: BTreeMap<ChannelId, Demanded>,
}

impl Default for FakeChannels {
    fn default() -> Self {
        Self {
            rules: RULES,
            rate: FixedU128::from_u32(1),
            is_insurable: true,
            is_unreadable: false,
            open: BTreeMap::new(),
            next: 0,
            standings: BTreeMap::new(),
            batches: BTreeMap::new(),
            records: BTreeMap::new(),
            offers: BTreeMap::new(),
            pool_prices: BTreeMap::new(),
            demands: BTreeMap::new(),
            points: BTreeMap::new(),
            disputed: BTreeMap::new(),
            unserved: BTreeSet::new(),
            counted: BTreeMap::new(),
            marks: BTreeMap::new(),
            demanded: BTreeMap::new(),
        }
    }
}

/// What a provider offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FakeOffer {
    /// Least that a unit costs, in plancks.
    pub unit_price: Balance,
    /// Requests that it answers at once.
    pub places: u32,
    /// How many of them it has said are taken.
    pub busy: u32,
    /// The pool's period in which it has.
    pub reported: Option<u32>,
    /// Where it says that it is.
    pub region: Option<Region>,
}

/// What is demanded of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeDemand {
    /// What everybody sees of it.
    pub view: DemandView,
    /// Who has paid for it.
    pub by: AccountId32,
    /// What it has cost beside its price.
    pub surplus: Balance,
}

/// A verifier's points on a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakePoints {
    /// What everybody sees of them.
    pub view: PointsView,
    /// What was found, sealed.
    pub seal: H256,
    /// What was found, once it was opened, and when that was.
    pub found: Option<(Time, PointsFound)>,
}

impl FakeState {
    pub(super) fn apply_to_channels(&mut self, who: &AccountId32, call: &Call) -> Applied {
        match call {
            Call::Open {
                payee,
                key,
                deposit,
                expiry,
            } => self.open_channel(who, (payee, key), *deposit, *expiry),
            Call::TopUp { channel, amount } => self.top_up(who, *channel, *amount),
            Call::Extend { channel, expiry } => self.extend_channel(who, *channel, *expiry),
            Call::Close { channel } => self.close_channel(who, *channel),
            Call::CloseAgreed { channel } => self.close_agreed(who, *channel),
            Call::End { channel } => self.end_channel(*channel),
            Call::Redeem { voucher, batches } => self.redeem(voucher, batches),
            Call::Hold {
                channel,
                batch,
                opening,
            } => self.hold_channel(who, *channel, (*batch, opening)),
            Call::Stand { lock, cap } => self.stand(who, *lock, *cap),
            Call::CommitBatch { root } => self.commit_batch(who, *root),
            Call::AddSigner => self.add_signer(who),
            Call::Offer {
                model,
                operation,
                unit_price,
                places,
                region,
            } => self.offer(who, (*model, *operation), (*unit_price, *places), *region),
            Call::WithdrawOffer { model, operation } => self.withdraw_offer(who, (*model, *operation)),
            Call::ReportBusy {
                model,
                operation,
                busy,
            } => self.report_busy(who, (*model, *operation), *busy),
            Call::ReportChunkEquivocation { equivocation } => self.report_chunks(who, equivocation),
            Call::ReportBatch {
                provider,
                batch,
                other,
                evidence,
            } => self.report_batch(who, provider, (*batch, *other), evidence),
            Call::Dispute {
                receipt,
                request,
                head,
            } => self.dispute_receipt(receipt, request, head.as_ref()),
            Call::DemandReceipt { held } => self.demand_receipt(who, held),
            Call::ShowReceipt {
                demander,
                batch,
                receipt,
                shown,
            } => self.show_receipt(who, demander, (*batch, receipt), shown.as_ref()),
            Call::ShowPoint {
                demander,
                batch,
                receipt,
                request,
                head,
            } => self.show_point(who, demander, (*batch, receipt), (request, head.as_ref())),
            Call::EndDemand { provider, demander } => self.end_demand(provider, demander),
            call => self.apply_to_points(who, call),
        }
    }

    fn apply_to_points(&mut self, who: &AccountId32, call: &Call) -> Applied {
        match call {
            Call::AnnouncePoints {
                provider,
                batch,
                proof,
                seal,
            } => self.announce_points(who, (provider, *batch), proof, *seal),
            Call::DemandPoint {
                provider,
                batch,
                place,
                proof,
            } => self.demand_point(who, (provider, *batch), *place, proof),
            Call::OpenPoints {
                provider,
                batch,
                verifier,
                found,
                salt,
            } => self.open_points((provider, *batch), verifier, found, salt),
            Call::EndPoints {
                provider,
                batch,
                verifier,
            } => self.end_points((provider, *batch), verifier),
            // `RefutePoints` takes a machine that knows what the receipt says.
            _ => Ok(Vec::new()),
        }
    }

    fn standing(&self, provider: &AccountId32) -> Result<&StandingView, ChainError> {
        let standing = self.channels.standings.get(provider);
        standing.ok_or_else(|| refused("NotStanding"))
    }

    /// A provider that has something to lose.
    fn standing_to_lose(&self, provider: &AccountId32) -> Result<&StandingView, ChainError> {
        let standing = self.channels.standings.get(provider);
        let standing = standing.filter(|standing| standing.lock > 0);
        standing.ok_or_else(|| refused("TooLate"))
    }

    fn change_standing(&mut self, provider: &AccountId32, change: impl FnOnce(&mut StandingView)) {
        if let Some(standing) = self.channels.standings.get_mut(provider) {
            change(standing);
        }
    }

    fn batch_of(&self, of: &(AccountId32, BatchNumber)) -> Result<&BatchView, ChainError> {
        self.channels.batches.get(of).ok_or_else(|| refused("NoBatch"))
    }

    fn change_window(&mut self, of: &(AccountId32, BatchNumber), change: impl FnOnce(&mut BatchWindow)) {
        if let Some(batch) = self.channels.batches.get_mut(of) {
            change(&mut batch.window);
        }
    }

    /// Pays out of what channels and demands have taken, where it is known how much the payee has.
    fn pay(&mut self, payee: &AccountId32, amount: Balance) {
        if let Some(funds) = self.funds.get_mut(payee) {
            funds.free = funds.free.saturating_add(amount);
        }
    }
}

fn refused(name: &str) -> ChainError {
    fault("Channels", name)
}

fn verify(key: &AccountId32, bytes: &[u8], signature: &[u8; 64]) -> bool {
    is_message_signed(key, bytes, *signature)
}

fn event(name: &str, fields: Vec<EventField>) -> ChainEvent {
    ChainEvent {
        pallet: "Channels".into(),
        name: name.into(),
        extrinsic: Some(0),
        fields,
    }
}

/// A provider, or a verifier, was found to be at fault.
fn convicted(offender: &AccountId32, kind: FaultKind, by: Option<&AccountId32>) -> ChainEvent {
    let fields = vec![
        field("offender", offender),
        field("kind", &kind),
        field("by", &by),
    ];
    event("Convicted", fields)
}

fn field<T: Encode + Debug>(name: &str, value: &T) -> EventField {
    EventField {
        name: name.into(),
        text: format!("{value:?}"),
        bytes: value.encode(),
    }
}
