//! Who makes blocks, who finalises them, and what happens to those who sign two of a kind.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use alloc::vec::Vec;
use frame_support::{
    dispatch::DispatchClass,
    parameter_types,
    traits::{ConstU32, ConstU64, ConstU128, Get},
};
use pallet_session::{disabling::UpToLimitDisablingStrategy, historical};
use sp_consensus_babe::{AllowedSlots, BabeEpochConfiguration, Slot};
use sp_core::H256;
use sp_runtime::traits::{Convert, ConvertInto, OpaqueKeys};
use sp_staking::SessionIndex;
use surety_pallet_validators::KeyOwners;

use super::system::{RuntimeBlockLength, RuntimeBlockWeights};
use crate::{
    AccountId, Authorship, Babe, Balances, Offences, Results, Runtime, RuntimeCall, RuntimeEvent, Session,
    SessionKeys, System, TaskAuction, UncheckedExtrinsic, Validators,
    units::{DAYS, EPOCH_SLOTS, SLOT_MS, deposit},
    weights,
};

/// One slot in four has a VRF winner; the others go to a secondary author, so that none stays empty and every
/// block carries a VRF output.
pub const BABE_GENESIS_EPOCH_CONFIG: BabeEpochConfiguration = BabeEpochConfiguration {
    c: (1, 4),
    allowed_slots: AllowedSlots::PrimaryAndSecondaryVRFSlots,
};

/// Most validators at once.
pub const VALIDATORS_MAX: u32 = 1_000;

/// Sessions for which it can still be proved who held which key: a day.
pub const SESSIONS_KEPT: u32 = DAYS / EPOCH_SLOTS as u32;

parameter_types! {
    /// Blocks for which an equivocation report stays valid.
    pub const ReportLongevity: u64 = SESSIONS_KEPT as u64 * EPOCH_SLOTS;
}

impl pallet_babe::Config for Runtime {
    type EpochDuration = ConstU64<EPOCH_SLOTS>;
    type ExpectedBlockTime = ConstU64<SLOT_MS>;
    // Sessions end with epochs.
    type EpochChangeTrigger = pallet_babe::ExternalTrigger;
    type DisabledValidators = Session;
    type WeightInfo = ();
    type MaxAuthorities = ConstU32<VALIDATORS_MAX>;
    type MaxNominators = ConstU32<0>;
    type KeyOwnerProof = sp_session::MembershipProof;
    type EquivocationReportSystem =
        pallet_babe::EquivocationReportSystem<Self, Offences, KeyOwners<Self>, ReportLongevity>;
}

impl pallet_grandpa::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type WeightInfo = ();
    type MaxAuthorities = ConstU32<VALIDATORS_MAX>;
    type MaxNominators = ConstU32<0>;
    type MaxSetIdSessionEntries = ConstU64<{ SESSIONS_KEPT as u64 }>;
    type KeyOwnerProof = sp_session::MembershipProof;
    type EquivocationReportSystem =
        pallet_grandpa::EquivocationReportSystem<Self, Offences, KeyOwners<Self>, ReportLongevity>;
}

/// The session of a slot, where that is the running one or the next. What is signed in the first block of a
/// session is reported on the state of the block before it.
pub(crate) fn session_of(slot: Slot) -> Option<SessionIndex> {
    let since_it_began = slot.checked_sub(*Babe::current_epoch_start())?;
    let is_next = since_it_began >= EPOCH_SLOTS;
    Some(Session::current_index().saturating_add(is_next.into()))
}

// Equivocation reports are unsigned: their proof is their right to be included.
impl<Call> frame_system::offchain::CreateTransactionBase<Call> for Runtime
where
    RuntimeCall: From<Call>,
{
    type RuntimeCall = RuntimeCall;
    type Extrinsic = UncheckedExtrinsic;
}

impl<Call> frame_system::offchain::CreateBare<Call> for Runtime
where
    RuntimeCall: From<Call>,
{
    fn create_bare(call: RuntimeCall) -> UncheckedExtrinsic {
        UncheckedExtrinsic::new_bare(call)
    }
}

impl surety_pallet_finality_clock::Config for Runtime {
    type AuthoritiesMax = ConstU32<VALIDATORS_MAX>;
    type Authors = SessionValidators;
    type IsFull = NoRoomForAnswers;
    type WeightInfo = weights::surety_pallet_finality_clock::WeightInfo<Runtime>;
}

parameter_types! {
    /// While a block begins, the VRF output of the author of the one before it: BABE writes it at the end.
    pub AuthorOutput: Option<H256> = pallet_babe::AuthorVrfRandomness::<Runtime>::get().map(H256);
}

impl surety_pallet_block_entropy::Config for Runtime {
    type AuthorOutput = AuthorOutput;
    type WeightInfo = weights::surety_pallet_block_entropy::WeightInfo<Runtime>;
}

/// The clock of everything that somebody can lose money by being late with.
pub type RunningClock = surety_pallet_finality_clock::Running<Runtime>;

/// What tells whether finality stands still. Unlike the clock it goes on in full blocks.
pub type FinalityProgress = surety_pallet_finality_clock::Progress<Runtime>;

/// The validators of the session, who make its blocks.
pub struct SessionValidators;

impl surety_pallet_finality_clock::BlockAuthors<AccountId> for SessionValidators {
    fn all() -> Vec<AccountId> {
        Session::validators()
    }

    fn of_this_block() -> Option<AccountId> {
        Authorship::author()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(count: u32) {
        let validators = (0..count).map(|place| frame_benchmarking::account("validator", place, 0));
        let validators: Vec<AccountId> = validators.collect();
        // The pallet keeps it to itself.
        let key = frame_support::storage::storage_prefix(b"Authorship", b"Author");
        if let Some(author) = validators.last() {
            frame_support::storage::unhashed::put(&key, author);
        }
        pallet_session::Validators::<Runtime>::put(validators);
    }
}

/// Bytes of the longest extrinsic with a move or an opening: 16 KiB of a cell's inputs, and what is around
/// them.
const ANSWER_BYTES: u32 = 20 * 1024;

/// Whether a block that is about to end had no room for one more of the calls that somebody loses money for
/// being late with: of the block, and of what is kept for their class when others fill it, less is left than
/// the dearest of them takes.
pub struct NoRoomForAnswers;

impl Get<bool> for NoRoomForAnswers {
    fn get() -> bool {
        let limits = RuntimeBlockWeights::get();
        let class = limits.get(DispatchClass::Operational);
        let used = *System::block_weight().get(DispatchClass::Operational);
        let dearest = Results::answer_weight()
            .max(TaskAuction::answer_weight())
            .max(super::channels::answer_weight())
            .saturating_add(class.base_extrinsic);
        let all = System::block_weight().total().saturating_add(dearest);
        let fits = all.all_lte(limits.max_block)
            || class
                .reserved
                .is_none_or(|room| used.saturating_add(dearest).all_lte(room));
        let bytes = System::block_size().saturating_add(ANSWER_BYTES);
        !fits || bytes > *RuntimeBlockLength::get().max.get(DispatchClass::Operational)
    }
}

impl pallet_authority_discovery::Config for Runtime {
    type MaxAuthorities = ConstU32<VALIDATORS_MAX>;
}

impl pallet_authorship::Config for Runtime {
    type FindAuthor = pallet_session::FindAccountFromAuthorIndex<Self, Babe>;
    type EventHandler = Validators;
}

impl pallet_session::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type ValidatorId = AccountId;
    type ValidatorIdOf = ConvertInto;
    type ShouldEndSession = Babe;
    type NextSessionRotation = Babe;
    type SessionManager = historical::NoteHistoricalRoot<Self, Validators>;
    type SessionHandler = <SessionKeys as OpaqueKeys>::KeyTypeIdProviders;
    type Keys = SessionKeys;
    // A third at most: more would stop finality by themselves.
    type DisablingStrategy = UpToLimitDisablingStrategy<3>;
    type WeightInfo = pallet_session::weights::SubstrateWeight<Runtime>;
    type Currency = Balances;
    type KeyDeposit = ConstU128<{ deposit(4, 4 * 32) }>;
}

impl historical::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    // What is behind a validator is looked up when it is slashed: its account says it all.
    type FullIdentification = ();
    type FullIdentificationOf = NothingBehind;
}

/// Identifies every validator by its account alone.
pub struct NothingBehind;

impl Convert<AccountId, Option<()>> for NothingBehind {
    fn convert(_: AccountId) -> Option<()> {
        Some(())
    }
}

impl pallet_offences::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type IdentificationTuple = historical::IdentificationTuple<Self>;
    type OnOffenceHandler = Validators;
}
