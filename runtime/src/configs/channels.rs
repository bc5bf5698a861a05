//! What channels get from the rest, and what the rest hears of rounds about their receipts.

use alloc::vec::Vec;
use frame_support::{
    PalletId, dispatch::DispatchClass, parameter_types, storage::with_storage_layer, traits::Get,
    weights::Weight,
};
use sp_core::{H256, sr25519};
use sp_runtime::{
    DispatchError, DispatchResult, PerThing, Perquintill,
    traits::{AccountIdConversion, Saturating, Verify},
};
use surety_audit_economics::{AuditPay, AuditPolicy, AuditRates, channels::PointRates};
use surety_channels::Request;
use surety_pallet_channels::{
    ClaimedReceipt, Convictions, DisputedReceipts, Faults, OFFERS_MAX, ReceiptDisputes, ReceiptReferee,
    SignedBytes, Standings, UNFINISHED_MAX, WeightInfo,
};
use surety_pallet_results::{Claimed, DisputeReferee, Error as ResultsError};
use surety_pallet_trust_lock::{Offence, quintillionths};
#[cfg(feature = "runtime-benchmarks")]
use surety_types::trust::AuditProof;
use surety_types::{
    ContentHash, ModelId, TaskId,
    input::Work,
    model::Operation,
    task::{Assignment, AuditTerms, ResultClaim, Verdict},
    traits::{AbleVerifiers, ModelCatalog, Reliability, TaskIds, TaskOutcome},
    trust::{AuditToPay, FaultKind, ItemLeaves, SlashCause},
};

use super::{
    consensus::RunningClock,
    trust::{EpochRandomness, ExactReferee, Sr25519Draws, exact_context},
};
use crate::{
    AccountId, Balance, Balances, BlockEntropy, BlockNumber, Channels, Disputes, ModelRegistry, Results,
    Runtime, Staking, System, TaskAuction, TrustLock,
    params::dynamic,
    units::{SURE, deposit},
    weights,
};

#[cfg(feature = "runtime-benchmarks")]
mod benchmark;

/// Channels that each block looks at: those of a million are over within six days of their end.
pub const SWEPT_PER_BLOCK: u32 = 4;

parameter_types! {
    /// Keeps what providers pay for audits of their receipts, until the verifiers get it.
    pub LevyPot: AccountId = PalletId(*b"sur/levy").into_account_truncating();
    /// Where deposits of channels are, and what demands cost.
    pub const DepositPot: PalletId = PalletId(*b"sur/chan");
    /// What vouchers and statements name the chain by.
    pub Genesis: H256 = Results::genesis();
    /// The storage of a channel.
    pub const MinDeposit: Balance = deposit(1, 200);
    /// Channels that each block looks at.
    pub const SweptPerBlock: u32 = SWEPT_PER_BLOCK;
    /// What a standing lock has to cover for each place on offer: an answer or two.
    pub const PlaceCap: Balance = SURE / 100;
    /// How often a pool's price moves, by an eighth at most, in blocks: three minutes.
    pub const PoolPeriod: BlockNumber = 100;
    /// Whatever is taken, a unit costs at least no more than so many times what it is worth.
    pub const PoolCeiling: u32 = 32;
    /// The same for everybody: what was audited of whom is not counted yet.
    pub Rates: PointRates = PointRates {
        usual: dynamic::channels::PointRate::get(),
        newcomer: dynamic::channels::PointRate::get(),
        probation: 0,
    };
    /// What the standing lock rests on. Levels and multiples are tasks' alone.
    pub Policy: AuditPolicy = AuditPolicy {
        rates: AuditRates::default(),
        able: quintillionths(dynamic::channels::VerifiersAble::get()),
        corrupt: quintillionths(dynamic::results::VerifiersCorrupt::get()),
        accuracy: quintillionths(dynamic::results::AuditAccuracy::get()),
        burned: quintillionths(
            dynamic::trust_lock::FinderShare::get()
                .saturating_add(dynamic::trust_lock::ClientShare::get())
                .left_from_one(),
        ),
        reward_multiple: 1,
    };
    /// As for tasks.
    pub Pay: AuditPay = AuditPay { premium: dynamic::results::AuditPremium::get() };
}

impl surety_pallet_channels::Config for Runtime {
    type Currency = Balances;
    type Stake = Staking;
    type Convictions = FaultsOverChannels;
    type Jail = TrustLock;
    type Clock = RunningClock;
    type Signatures = Sr25519Bytes;
    type Genesis = Genesis;
    type Rates = Rates;
    type Policy = Policy;
    type AtRisk = dynamic::channels::AtRisk;
    type Pay = Pay;
    type PointCost = dynamic::channels::PointCost;
    type Draws = Sr25519Draws;
    type EpochRandomness = EpochRandomness;
    type Entropy = BlockEntropy;
    type VerifierSeasoning = dynamic::disputes::SeatSeasoning;
    type Disputes = RoundsOfReceipts;
    type Referee = ExactReferee;
    type DemandPrice = dynamic::channels::DemandPrice;
    type SupplyWindow = dynamic::channels::SupplyWindow;
    type PointBond = dynamic::channels::PointBond;
    type PotId = DepositPot;
    type LevyPot = LevyPot;
    type MinDeposit = MinDeposit;
    type BatchWindowLength = dynamic::channels::BatchWindow;
    type ClosingPeriod = dynamic::channels::ClosingPeriod;
    type AnnounceWindow = dynamic::channels::AnnounceWindow;
    type DisputeWindow = dynamic::channels::DisputeWindow;
    type RefuteWindow = dynamic::channels::RefuteWindow;
    type RedeemBy = dynamic::channels::RedeemBy;
    type MaxLife = dynamic::channels::MaxLife;
    type SweptPerBlock = SweptPerBlock;
    type Models = ModelRegistry;
    type Verifiers = DeclaredAble;
    type WorkPrice = dynamic::results::WorkPrice;
    type PlaceCap = PlaceCap;
    type PoolPeriod = PoolPeriod;
    type PoolCeiling = PoolCeiling;
    type WeightInfo = weights::surety_pallet_channels::WeightInfo<Runtime>;
}

/// Who has said that it audits a model, and has a point's bond free; or as many as a network for trying out
/// takes to be able, as for tasks.
pub struct DeclaredAble;

impl AbleVerifiers for DeclaredAble {
    fn able(model: &ModelId, operation: Operation) -> Perquintill {
        // Who can is the same whatever the work is.
        let work = Work {
            operation,
            input_bytes: 0,
            units_max: 1,
        };
        let bond = dynamic::channels::PointBond::get();
        let audits = ModelRegistry::audits(model, &work, bond);
        audits.map_or(Perquintill::zero(), |audits| {
            quintillionths(Results::audit_terms(&work, audits).able)
        })
    }
}

/// Signatures by sr25519: an account is the public key that signs for it.
pub struct Sr25519Bytes;

impl SignedBytes<AccountId> for Sr25519Bytes {
    fn is_signed(key: &AccountId, bytes: &[u8], signature: &[u8; 64]) -> bool {
        let key = sr25519::Public::from_raw(key.clone().into());
        sr25519::Signature::from_raw(*signature).verify(bytes, &key)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(signed: &[&[u8]]) -> (AccountId, Vec<[u8; 64]>) {
        benchmark::signatures(signed)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn draw_for_benchmark() -> (AccountId, AuditProof) {
        benchmark::draw()
    }
}

/// Slashes for faults that no round was about.
pub struct FaultsOverChannels;

impl Convictions<AccountId> for FaultsOverChannels {
    fn convict(offender: &AccountId, kind: FaultKind, lock: u128, finder: Option<&AccountId>) {
        TrustLock::convict(Offence {
            cause: SlashCause::Channels,
            offender: offender.clone(),
            kind,
            lock,
            finders: Default::default(),
            finder: finder.cloned(),
            client: None,
        });
    }

    fn remembered(stash: &AccountId) -> Faults {
        Faults {
            lately: TrustLock::faults_lately(stash),
            missed: TrustLock::missed(stash),
        }
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn fill_for_benchmark() {
        surety_pallet_trust_lock::fill_convictions::<Runtime>(TrustLock::now());
    }
}

impl ReceiptReferee for ExactReferee {
    fn item_root(request: &Request, claim: &ResultClaim, item: u32, shown: &ItemLeaves) -> Option<H256> {
        let context = exact_context(&request.model, request.work(), request.input).ok()??;
        <Self as DisputeReferee>::item_root(&context, claim, item, shown)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn item_for_benchmark() -> (Request, ResultClaim, ItemLeaves) {
        benchmark::item()
    }
}

/// Has receipts disputed in rounds of `results`, as results of tasks are.
pub struct RoundsOfReceipts;

impl RoundsOfReceipts {
    fn open_round(receipt: ClaimedReceipt<AccountId>) -> Result<TaskId, DispatchError> {
        let request = receipt.request;
        let work = request.work();
        let context = exact_context(&request.model, work, request.input)?;
        let audits = ModelRegistry::audits(&request.model, &work, 0)?;
        let round = <TaskAuction as TaskIds>::take()?;
        Results::open_claimed(
            round,
            Claimed {
                provider: receipt.provider,
                price: receipt.price,
                claim: receipt.claim,
                units_max: request.units_max,
                terms: AuditTerms {
                    // What the standing lock was made for. A model's own part may be so small that no lock
                    // would do for a task, and no bond for a challenge.
                    able: dynamic::channels::VerifiersAble::get(),
                    ..Results::audit_terms(&work, audits)
                },
                context: context.ok_or(ResultsError::<Runtime>::NoReferee)?,
            },
        )?;
        Ok(round)
    }
}

impl ReceiptDisputes<AccountId> for RoundsOfReceipts {
    fn open(receipt: ClaimedReceipt<AccountId>) -> Result<TaskId, DispatchError> {
        with_storage_layer(|| Self::open_round(receipt))
    }

    fn challenge(round: TaskId, provider: &AccountId, challenger: &AccountId) -> DispatchResult {
        Disputes::do_challenge(challenger.clone(), round, provider)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn request_for_benchmark() -> Request {
        benchmark::generation()
    }
}

/// Hears how rounds went: channels of those about their receipts, the auction of all others.
pub struct TaskOrReceipt;

impl TaskOutcome<AccountId, Balance> for TaskOrReceipt {
    fn take_reserves(task: TaskId, count: u32) -> Vec<Assignment<AccountId, Balance>> {
        TaskAuction::take_reserves(task, count)
    }

    fn decided(
        task: TaskId,
        verdict: Verdict<AccountId>,
        audits: &[AuditToPay<AccountId>],
    ) -> Result<Weight, DispatchError> {
        let looked = <Runtime as frame_system::Config>::DbWeight::get().reads(1);
        if !DisputedReceipts::<Runtime>::contains_key(task) {
            return Ok(TaskAuction::decided(task, verdict, audits)?.saturating_add(looked));
        }
        Channels::receipt_decided(task, matches!(verdict, Verdict::Agreed { .. }));
        Ok(all_batches_weight())
    }

    // Nobody has to serve the input of what was answered.
    fn withheld(task: TaskId, providers: &[AccountId]) -> Result<Weight, DispatchError> {
        TaskAuction::withheld(task, providers)
    }

    fn convicted(task: TaskId, provider: &AccountId) -> Option<Balance> {
        let lock = Channels::receipt_convicted(task, provider)?;
        // Whatever found it was not weighed with this: it comes once for each standing lock.
        System::register_extra_weight_unchecked(all_batches_weight(), DispatchClass::Mandatory);
        Some(lock)
    }

    fn at_stake(task: TaskId) -> Option<Balance> {
        Channels::receipt_at_stake(task)
    }

    fn client(task: TaskId) -> Option<AccountId> {
        TaskAuction::client(task).or_else(|| Channels::receipt_client(task))
    }

    fn input(task: TaskId) -> Option<(ContentHash, u32)> {
        TaskAuction::input(task).or_else(|| Channels::receipt_input(task))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn post_for_benchmark(task: TaskId, client: &AccountId, input: (ContentHash, u32)) {
        TaskAuction::post_for_benchmark(task, client, input);
    }
}

/// What disputing a receipt of whoever stands with the most puts on hold, where neither the receipt's price
/// nor a committee makes it more.
pub(crate) fn dispute_bond() -> Balance {
    let locks = Standings::<Runtime>::iter_values().map(|provider| provider.lock);
    let Some(lock) = locks.max().filter(|lock| *lock > 0) else {
        return 0;
    };
    Disputes::least_bond(Policy::get().burned.mul_ceil(lock))
}

/// Most that it costs to write all batches of a provider that are not final, with what leads to them, and to
/// end its offers.
pub fn all_batches_weight() -> Weight {
    // Each with its pool and its model.
    let offers = u64::from(OFFERS_MAX).saturating_mul(3);
    let batches = u64::from(UNFINISHED_MAX)
        .saturating_add(offers)
        .saturating_add(16);
    <Runtime as frame_system::Config>::DbWeight::get().reads_writes(batches, batches)
}

/// Most that one of the calls weighs that somebody loses money for being late with.
pub fn answer_weight() -> Weight {
    type Weights = weights::surety_pallet_channels::WeightInfo<Runtime>;
    let open = Weights::open_points().saturating_add(Weights::authorize_open_points());
    Weights::show_receipt()
        .max(Weights::show_point())
        .max(Weights::demand_point())
        .max(Weights::announce_points())
        .max(open)
}
