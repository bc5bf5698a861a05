//! What results, disputes and trust-lock get from the rest: referees, draws, randomness and time.

#[cfg(feature = "runtime-benchmarks")]
use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use frame_support::{PalletId, parameter_types};
use frame_system::EnsureRoot;
use scale_info::TypeInfo;
use sp_core::{
    H256,
    crypto::VrfPublic,
    sr25519::{self, vrf},
};
use sp_runtime::{
    DispatchError, FixedU128,
    traits::{AccountIdConversion, Verify},
};
use surety_dispute_game::bisection::{Cell, Judgement, LeafShape, Missing, Referee, Roots, RowsShape, Shape};
use surety_model_trace::{CellReferee, Layout, LayoutError, TaskFacts, shown_item};
use surety_pallet_results::{DisputeReferee, Rounds};
use surety_types::{
    ContentHash, ModelId, TaskId,
    input::Work,
    model::{ExactForm, ModelFamily, Operation, Opset, SpecialIds, Tier},
    task::ResultClaim,
    traits::{DrawVerifier, SignatureVerifier, WorkReferee},
    trust::{AuditProof, ItemLeaves},
};

use super::{
    channels::TaskOrReceipt,
    consensus::RunningClock,
    origins::{RootOr, SlashVetoer},
    tracks::SlashDeferral,
};
use crate::{
    AccountId, Balance, Balances, BlockEntropy, Delegation, Disputes, Results, Runtime, RuntimeHoldReason,
    Staking, TaskAuction, Validators,
    params::{UpToADay, dynamic},
    weights,
};

#[cfg(feature = "runtime-benchmarks")]
mod benchmark;

parameter_types! {
    /// Pays clients that were told a wrong result. Gets what nobody else has a right to out of slashes.
    pub InsurancePool: AccountId = PalletId(*b"sur/insr").into_account_truncating();
    /// Randomness of the present epoch: known since the one before it began. What a verifier draws from it is
    /// known to its key alone.
    pub EpochRandomness: H256 = H256(pallet_babe::Randomness::<Runtime>::get());
}

impl surety_pallet_trust_lock::Config for Runtime {
    type Balance = Balance;
    type Currency = Balances;
    type Stake = Staking;
    type Pools = Delegation;
    type Validators = Validators;
    type BlockNumberProvider = RunningClock;
    type InsurancePool = InsurancePool;
    type VetoOrigin = RootOr<SlashVetoer>;
    type SlashDeferral = SlashDeferral;
    type StakePart = dynamic::trust_lock::StakePart;
    type FinderShare = dynamic::trust_lock::FinderShare;
    type ClientShare = dynamic::trust_lock::ClientShare;
    type CorrelationWindow = dynamic::trust_lock::CorrelationWindow;
    type JailPeriod = dynamic::trust_lock::JailPeriod;
    type ProbationTasks = dynamic::trust_lock::ProbationTasks;
    type SuspensionPeriod = dynamic::trust_lock::SuspensionPeriod;
    type WeightInfo = weights::surety_pallet_trust_lock::WeightInfo<Runtime>;
    #[cfg(feature = "runtime-benchmarks")]
    type Providers = crate::ProviderRegistry;
}

impl surety_pallet_results::Config for Runtime {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Outcome = TaskOrReceipt;
    type Clock = TaskAuction;
    type Referee = ExactReferee;
    type Draws = Sr25519Draws;
    type EpochRandomness = EpochRandomness;
    type Entropy = BlockEntropy;
    // An author knows what its blocks will give as early as anybody knows the randomness of their epoch.
    type VerifierSeasoning = dynamic::disputes::SeatSeasoning;
    type CommitWindow = UpToADay<dynamic::results::CommitWindow>;
    type AuditWindow = dynamic::results::AuditWindow;
    type AuditWindowMax = dynamic::results::AuditWindowMax;
    type AuditPremium = dynamic::results::AuditPremium;
    type GenerationAuditCost = dynamic::results::GenerationAuditCost;
    type WorkPrice = dynamic::results::WorkPrice;
    type VerifiersAble = dynamic::results::VerifiersAble;
    type RevealWindow = UpToADay<dynamic::results::RevealWindow>;
    type OpeningWindow = dynamic::results::OpeningWindow;
    type ChallengeWindow = dynamic::results::ChallengeWindow;
    type LockMultiple = dynamic::results::LockMultiple;
    type AuditorsExpected = dynamic::results::AuditorsExpected;
    type AuditorsNewcomer = dynamic::results::AuditorsNewcomer;
    type AuditBondMultiple = dynamic::results::AuditBondMultiple;
    type SupplyPrice = dynamic::results::SupplyPrice;
    type SupplyWindow = dynamic::results::SupplyWindow;
    type InputWindow = dynamic::results::InputWindow;
    type AuditorsBasic = dynamic::results::AuditorsBasic;
    type AuditorsHigh = dynamic::results::AuditorsHigh;
    type VerifiersCorrupt = dynamic::results::VerifiersCorrupt;
    type AuditAccuracy = dynamic::results::AuditAccuracy;
    type Signatures = Sr25519Signatures;
    type Disputes = Disputes;
    type WeightInfo = weights::surety_pallet_results::WeightInfo<Runtime>;
}

impl surety_pallet_disputes::Config for Runtime {
    // No referendum is over within `DecisionWindow`: but on the dev chain, what no committee decides stays
    // undecided.
    type DecideOrigin = EnsureRoot<AccountId>;
    type ChallengeBondMultiple = dynamic::disputes::ChallengeBondMultiple;
    type DefenseCost = dynamic::disputes::DefenseCost;
    type DisputeClock = dynamic::disputes::DisputeClock;
    type DecisionWindow = dynamic::disputes::DecisionWindow;
    type SeatWindow = dynamic::disputes::SeatWindow;
    type VoteWindow = dynamic::disputes::VoteWindow;
    type SeatSeasoning = dynamic::disputes::SeatSeasoning;
    type WeightInfo = weights::surety_pallet_disputes::WeightInfo<Runtime>;
}

/// Draws by sr25519: an account is the public key that signs for it.
pub struct Sr25519Draws;

impl DrawVerifier<AccountId> for Sr25519Draws {
    fn output(
        agent: &AccountId,
        label: &'static [u8],
        fields: &[(&'static [u8], &[u8])],
        context: &'static [u8],
        proof: &AuditProof,
    ) -> Option<[u8; 32]> {
        let key = sr25519::Public::from_raw(agent.clone().into());
        let input = vrf::VrfTranscript::new(label, fields);
        let signature = vrf::VrfSignature::decode(&mut proof.encode().as_slice()).ok()?;
        key.vrf_verify(&input.clone().into_sign_data(), &signature)
            .then(|| key.make_bytes(context, &input, &signature.pre_output).ok())?
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark() -> (AccountId, AuditProof) {
        benchmark::proof()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn seat_for_benchmark() -> (AccountId, AuditProof) {
        benchmark::seat_proof()
    }
}

/// Signatures by sr25519, of the same keys.
pub struct Sr25519Signatures;

impl SignatureVerifier<AccountId> for Sr25519Signatures {
    fn is_signed(agent: &AccountId, message: &[u8; 32], signature: &[u8; 64]) -> bool {
        let key = sr25519::Public::from_raw(agent.clone().into());
        sr25519::Signature::from_raw(*signature).verify(&message[..], &key)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(messages: &[[u8; 32]]) -> (AccountId, Vec<[u8; 64]>) {
        benchmark::signatures(messages)
    }
}

/// What there is to know of a task on the exact tier.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct ExactContext {
    family: ModelFamily,
    work: Work,
    input: ContentHash,
    stop: SpecialIds,
    exact: ExactForm,
}

impl ExactContext {
    /// The trace of a result of so many units, by the arithmetic that the model is registered with.
    fn layout(&self, units: u32, output: ContentHash) -> Result<Layout, LayoutError> {
        let facts = TaskFacts {
            family: self.family,
            operation: self.work.operation,
            input: self.input,
            input_bytes: self.work.input_bytes,
            units_max: self.work.units_max,
            stop: self.stop.clone(),
            units,
            output,
        };
        match self.exact.opset {
            Opset::V1 => Layout::new(&self.exact.architecture, facts),
        }
    }
}

/// What there is to know of work that a model is asked for; nothing where it is not on the exact tier.
pub(crate) fn exact_context(
    model: &ModelId,
    work: Work,
    input: ContentHash,
) -> Result<Option<ExactContext>, DispatchError> {
    use surety_pallet_model_registry::{Error, Models};

    let model = Models::<Runtime>::get(model).ok_or(Error::<Runtime>::UnknownModel)?;
    let manifest = model.manifest;
    let exact = manifest.exact.filter(|_| manifest.tier == Tier::Exact);
    Ok(exact.map(|exact| ExactContext {
        family: manifest.family,
        work,
        input,
        stop: manifest.text.stop,
        exact,
    }))
}

/// Knows how the results of models on the exact tier are computed.
pub struct ExactReferee;

impl DisputeReferee for ExactReferee {
    type DisputeContext = ExactContext;
    type ClaimReferee = ExactClaimReferee;

    fn dispute_context(task: TaskId) -> Result<Option<ExactContext>, DispatchError> {
        use surety_pallet_task_auction::{Error as TaskError, Tasks};

        let spec = Tasks::<Runtime>::get(task)
            .ok_or(TaskError::<Runtime>::UnknownTask)?
            .spec;
        exact_context(&spec.model, spec.work(), spec.input)
    }

    /// Asked by every reveal, in the pool of transactions too: it takes as long for every model that can be
    /// registered.
    fn claim_referee(context: &ExactContext, claim: &ResultClaim) -> Option<ExactClaimReferee> {
        Some(ExactClaimReferee {
            layout: context.layout(claim.units, claim.output).ok()?,
            weight_root: context.exact.weight_root,
        })
    }

    fn item_root(context: &ExactContext, claim: &ResultClaim, item: u32, shown: &ItemLeaves) -> Option<H256> {
        let layout = Self::claim_referee(context, claim)?.layout;
        shown_item(&layout, &claim.trace_root, item, shown)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn item_for_benchmark() -> (ExactContext, ResultClaim, ItemLeaves) {
        benchmark::item()
    }

    fn needs_committee(context: &ExactContext, claim: &ResultClaim) -> bool {
        let referee = Self::claim_referee(context, claim);
        referee.is_some_and(|referee| referee.layout.needs_committee())
    }

    fn output_bytes(context: &ExactContext, claim: &ResultClaim) -> Option<u32> {
        let layout = Self::claim_referee(context, claim)?.layout;
        Some(layout.output_bytes())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn largest_for_benchmark(operation: Operation) -> (ExactContext, ResultClaim) {
        benchmark::largest(operation)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(
        cell: surety_pallet_results::LongCell,
    ) -> (
        ExactContext,
        ResultClaim,
        Vec<surety_dispute_game::bisection::Move>,
    ) {
        benchmark::game(cell)
    }
}

impl WorkReferee for ExactReferee {
    fn is_checkable(family: ModelFamily, exact: &ExactForm, work: &Work) -> bool {
        let context = ExactContext {
            family,
            work: *work,
            input: ContentHash::zero(),
            stop: SpecialIds::default(),
            exact: exact.clone(),
        };
        let units = match work.operation {
            Operation::Embed => work.units_max,
            Operation::Generate => work.units_max.min(exact.architecture.positions),
        };
        // A view of a generation needs its tokens, which a provider must be made to show where it does not.
        context.layout(units, ContentHash::zero()).is_ok() && work.can_be_shown(exact.architecture.positions)
    }
}

/// The referee of one claim.
pub struct ExactClaimReferee {
    layout: Layout,
    weight_root: H256,
}

impl Shape for ExactClaimReferee {
    fn leaves(&self) -> u32 {
        self.layout.leaves()
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        self.layout.leaf(leaf)
    }

    fn steps(&self, leaf: u32, length: u32) -> Option<u32> {
        self.layout.steps(leaf, length)
    }

    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
        self.layout.rows(leaf, length, step)
    }
}

impl Referee for ExactClaimReferee {
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        CellReferee::new(&self.layout, self.weight_root).opening_bytes(cell)
    }

    fn needed(&self, cell: &Cell) -> Option<Missing> {
        CellReferee::new(&self.layout, self.weight_root).needed(cell)
    }

    fn judge(&self, cell: &Cell, roots: &Roots, opening: &[u8]) -> Judgement {
        CellReferee::new(&self.layout, self.weight_root).judge(cell, roots, opening)
    }
}

/// Auditors expected for a provider's result in a task: at the usual level where it does not have the task.
pub(crate) fn auditors_expected(task: TaskId, provider: &AccountId) -> FixedU128 {
    let members = Rounds::<Runtime>::get(task).map(|round| round.members);
    let mut members = members.into_iter().flatten();
    match members.find(|member| member.provider == *provider) {
        Some(member) => member.audits.expected,
        None => Results::auditors_expected(provider, Default::default()),
    }
}

/// What challenging a provider's result would put on hold now.
pub(crate) fn challenge_bond(task: TaskId, provider: &AccountId) -> Option<Balance> {
    use surety_types::trust::Party;

    let round = Rounds::<Runtime>::get(task)?;
    // Whoever it is.
    let matchup = Disputes::matchup_of(&round, provider, Party::Account(InsurancePool::get()))?;
    Some(Disputes::challenge_bond(task, &round, &matchup.claim))
}
