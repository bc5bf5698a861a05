//! Glue between pallets, each named for the need it serves. The runtime wires them in `src/configs`.

mod emission;
mod pools;
mod validators;

use alloc::vec::Vec;
use sp_core::H256;
use sp_runtime::{DispatchError, DispatchResult, Perquintill, Weight};

use crate::{
    ContentHash, ModelId, TaskId,
    input::Work,
    model::{ExactForm, ModelAudits, ModelFamily, Operation},
    speed::{MeasuredView, Requirements},
    stake::Role,
    task::{Assignment, AuditTerms, PerMember, Security, SecurityLevel, TaskSpec, Verdict},
    trust::{AuditProof, AuditToPay},
};

pub use emission::*;
pub use pools::*;
pub use validators::*;

/// Who acts for whom, and the stake behind it. Provided by staking, which alone moves stake.
pub trait StakeLedger<AccountId, Balance> {
    /// The stash that `agent` acts for in `role`, if it is bonded and the agent has confirmed.
    fn stash_of(agent: &AccountId, role: Role) -> Option<AccountId>;

    /// Bonded stake of `stash` that no task has locked yet.
    fn unlocked_stake(stash: &AccountId) -> Balance;

    /// Locks `amount` of the stash's unlocked stake.
    ///
    /// # Errors
    /// When less than `amount` is unlocked; nothing changes then.
    fn lock(stash: &AccountId, amount: Balance) -> DispatchResult;

    /// Gives back what was locked, whether or not a slash has taken of it meanwhile. Unknown stashes and
    /// excess are ignored.
    fn unlock(stash: &AccountId, amount: Balance);

    /// Whether the bonded stake of `stash` is as much as it has locked. It is less once a slash has taken
    /// more than was locked for its fault and free, until as much is bonded again or given back.
    fn covers_locks(stash: &AccountId) -> bool;

    /// Takes `amount`, which was locked, from the stash's stake, and burns it. Returns what was burned.
    fn slash(stash: &AccountId, amount: Balance) -> Balance;

    /// All stake of `stash` that a slash can reach: what is bonded, and what is on its way out.
    fn stake(stash: &AccountId) -> Balance;

    /// Stake of `stash` that is bonded in `role`, locked or not; zero in another role.
    fn bonded(stash: &AccountId, role: Role) -> Balance;

    /// Stake that is bonded in `role`, of all stashes together.
    fn bonded_in_all(role: Role) -> Balance;

    /// How many stashes have stake bonded in `role`.
    fn stashes_in(role: Role) -> u32;

    /// Blocks of the chain since `stash` last got more stake or another agent; zero for a stash that has no
    /// ledger.
    fn settled_for(stash: &AccountId) -> u32;

    /// Takes `locked`, which was locked for this, and `more`, as far as they are there, hands `shares` out of
    /// it and burns what is left. Stake that is locked for others is touched last, and their locks stay what
    /// they are. A share that its payee cannot take is burned, too.
    ///
    /// Returns what was taken. When that is less than the shares come to, later ones are cut.
    fn seize(stash: &AccountId, locked: Balance, more: Balance, shares: &[(AccountId, Balance)]) -> Balance;

    /// Bonds enough for benchmarks to let `agent` act for `stash`.
    #[cfg(feature = "runtime-benchmarks")]
    fn endow(stash: &AccountId, agent: &AccountId, role: Role, amount: Balance);
}

/// Hears that a stash has left staking for good, or that an operator's pool is gone, whatever emptied it.
/// Provided by whoever keeps something for them.
pub trait StashClosed<AccountId> {
    /// Drops what is kept for `stash`.
    fn closed(stash: &AccountId);
}

impl<AccountId> StashClosed<AccountId> for () {
    fn closed(_: &AccountId) {}
}

impl<AccountId, A: StashClosed<AccountId>, B: StashClosed<AccountId>> StashClosed<AccountId> for (A, B) {
    fn closed(stash: &AccountId) {
        A::closed(stash);
        B::closed(stash);
    }
}

impl<AccountId, A: StashClosed<AccountId>, B: StashClosed<AccountId>, C: StashClosed<AccountId>>
    StashClosed<AccountId> for (A, B, C)
{
    fn closed(stash: &AccountId) {
        <(A, B)>::closed(stash);
        C::closed(stash);
    }
}

/// Who gets no work for a while, because it was at fault or missed deadlines. Provided by trust-lock.
pub trait Jail<AccountId> {
    /// Whether `stash` gets no work now.
    fn is_jailed(stash: &AccountId) -> bool;

    /// Whether that is (also) for missed deadlines: its stake has to stay then.
    fn is_suspended(stash: &AccountId) -> bool;
}

/// Nobody is ever jailed.
impl<AccountId> Jail<AccountId> for () {
    fn is_jailed(_: &AccountId) -> bool {
        false
    }

    fn is_suspended(_: &AccountId) -> bool {
        false
    }
}

/// How fast providers were measured to be. Provided by gpu-proofs.
pub trait MeasuredSpeed<AccountId> {
    /// What `stash` has shown last; nothing where that counts no more, or it never was measured.
    fn measured(stash: &AccountId) -> Option<MeasuredView>;

    /// Keeps as much of `stash` as there can be to look for, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn measure_for_benchmark(stash: &AccountId);
}

/// Nobody was ever measured.
impl<AccountId> MeasuredSpeed<AccountId> for () {
    fn measured(_: &AccountId) -> Option<MeasuredView> {
        None
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn measure_for_benchmark(_: &AccountId) {}
}

/// Whom the chain lets provide, of those who have the stake for it. Provided by the runtime.
pub trait Admission<AccountId> {
    /// Whether `stash` may become a provider, and be given work as one, now.
    fn is_admitted(stash: &AccountId) -> bool;

    /// Asks as much of everybody as can be asked, and lets `stash` have it, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn admit_for_benchmark(stash: &AccountId);
}

/// Everybody may.
impl<AccountId> Admission<AccountId> for () {
    fn is_admitted(_: &AccountId) -> bool {
        true
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn admit_for_benchmark(_: &AccountId) {}
}

/// Blocks without entropy after which nobody waits for it any longer. Every block of the chain has some: so
/// many without mean that something is broken.
pub const ENTROPY_PATIENCE_BLOCKS: u32 = 100;

/// Blocks after which what was first given since a block may be forgotten: fewer than block-entropy keeps.
/// Who is asked later takes no later output for it: whoever calls would choose.
pub const ENTROPY_BLOCKS: u32 = 200;

/// What authors of blocks give for draws: the output of their own VRF, which nobody can grind. Provided by
/// block-entropy.
pub trait BlockEntropy<BlockNumber> {
    /// The output in the first block after `block` that has one and is still kept, and that block. Whoever
    /// asks, and whenever, gets the same for as long as it is kept.
    fn first_after(block: BlockNumber) -> Option<(H256, BlockNumber)>;

    /// Makes what is kept as hard to search as it can be, with something younger than `block` in it.
    #[cfg(feature = "runtime-benchmarks")]
    fn fill_for_benchmark(block: BlockNumber);
}

/// Checks that somebody drew itself. Provided by the runtime, which knows what an account is.
pub trait DrawVerifier<AccountId> {
    /// The 32 bytes that the VRF of `agent`'s key gives for a transcript of `fields` under `label`, made for
    /// `context`. `None` unless `proof` proves them.
    fn output(
        agent: &AccountId,
        label: &'static [u8],
        fields: &[(&'static [u8], &[u8])],
        context: &'static [u8],
        proof: &AuditProof,
    ) -> Option<[u8; 32]>;

    /// An agent, and its proof for the input that the benchmarks use.
    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark() -> (AccountId, AuditProof);

    /// The same agent, and its proof for the seat that the benchmarks take.
    #[cfg(feature = "runtime-benchmarks")]
    fn seat_for_benchmark() -> (AccountId, AuditProof);
}

/// Which providers may be given work. Provided by provider-registry.
pub trait ProviderDirectory<AccountId> {
    /// Whether the provider is registered, was heard of lately, and is not in jail.
    fn is_available(stash: &AccountId) -> bool;

    /// In thousandths of a neutral provider; prices are divided by it. By what was measured, within bounds.
    fn weight(stash: &AccountId) -> u32;

    /// Whether it has shown what a task asks for, that still counts, and it says that it is where the task
    /// asks it to be.
    fn meets(stash: &AccountId, requirements: &Requirements) -> bool;

    /// Registers an available provider for benchmarks, which was measured and says that it is in `DE`.
    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(stash: &AccountId);
}

/// Which models can be asked for. Provided by model-registry.
pub trait ModelCatalog {
    /// Whether a new task may ask for this work of the model.
    ///
    /// # Errors
    /// The catalogue's own error for an unknown model, one that takes no new tasks, an operation that the
    /// model lacks, an input of a size that none has, or work of which no result could be checked.
    fn check(model: &ModelId, work: &Work) -> DispatchResult;

    /// What is known of the audits of this work of the model. Able are those that have `bond` free now, in
    /// plancks.
    ///
    /// # Errors
    /// The catalogue's own error for an unknown model.
    fn audits(model: &ModelId, work: &Work, bond: u128) -> Result<ModelAudits, DispatchError>;

    /// A new task asks for the model, which [`Self::check`] has allowed: it stays known until that is over,
    /// whatever its owner does.
    fn acquire(model: &ModelId);

    /// A task that had acquired the model is over.
    fn release(model: &ModelId);

    /// How many tasks have acquired the model and not released it.
    fn uses(model: &ModelId) -> u32;

    /// Registers a model offering `operation` for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: Operation) -> ModelId;

    /// Has its owner retire a model for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn retire_for_benchmark(model: &ModelId);
}

/// How much of the verifiers' stake can audit a model. Provided by the runtime.
pub trait AbleVerifiers {
    /// The part that can audit this of the model: none of one that is unknown.
    fn able(model: &ModelId, operation: Operation) -> Perquintill;
}

/// Which models providers sell over channels. Provided by model-registry.
pub trait SoldModels {
    /// Whether a provider may begin to offer this of the model: a receipt of it can be shown to be wrong.
    ///
    /// # Errors
    /// The catalogue's own error for an unknown model, one that was retired or is not on the exact tier, or
    /// an operation that it lacks.
    fn check(model: &ModelId, operation: Operation) -> DispatchResult;

    /// Tokens of the model that its reference machine audits in 1,000 seconds; nothing where it is unknown.
    fn speed(model: &ModelId) -> Option<u32>;

    /// The model is offered, or a receipt of it disputed: it stays known until that is over.
    fn acquire(model: &ModelId);

    /// What had acquired the model is over.
    fn release(model: &ModelId);

    /// How many offers and disputes have acquired the model and not released it.
    fn uses(model: &ModelId) -> u32;

    /// Registers a model that can be offered for benchmarks, another one for each index.
    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(operation: Operation, index: u32) -> ModelId;
}

/// Knows of which work of a model a result can be checked cell by cell. Provided by the runtime.
pub trait WorkReferee {
    /// Whether it can be, however much of what is paid for is used.
    fn is_checkable(family: ModelFamily, exact: &ExactForm, work: &Work) -> bool;
}

/// The client's money. Provided by billing, which alone moves escrow.
pub trait Escrow<AccountId, Balance> {
    /// The most each of `redundancy` providers can be paid so that payments and fee stay within `cap`.
    ///
    /// # Errors
    /// When `cap` does not even cover the smallest fee and one planck for each provider.
    fn price_limit(cap: Balance, redundancy: u32) -> Result<Balance, DispatchError>;

    /// Takes `cap` from the client for `task`, and the client's own lock beside it.
    ///
    /// # Errors
    /// When it has not as much that is free, beside what keeps its account; nothing changes then.
    fn open(task: TaskId, client: &AccountId, cap: Balance) -> DispatchResult;

    /// Gives the client its lock back. Pays providers and, out of what each of them earns, its auditors;
    /// takes the fee, returns the rest to the client, closes the escrow. All or nothing.
    ///
    /// # Errors
    /// When there is no escrow, or payments and fee exceed it; nothing changes then.
    fn settle(
        task: TaskId,
        payments: &[Assignment<AccountId, Balance>],
        audits: &[AuditToPay<AccountId>],
    ) -> Result<Settlement<Balance>, DispatchError>;

    /// Pays audits of providers that are not paid themselves, out of what these would have been (`unpaid`).
    /// The escrow stays open for the rest. All or nothing. Returns what was paid.
    ///
    /// # Errors
    /// When there is no escrow, or `unpaid` exceeds it; nothing changes then.
    fn pay_audits(
        task: TaskId,
        unpaid: &[Assignment<AccountId, Balance>],
        audits: &[AuditToPay<AccountId>],
    ) -> Result<Balance, DispatchError>;

    /// Returns everything to the client and closes the escrow.
    fn refund(task: TaskId) -> DispatchResult;

    /// Returns the escrow to the client and takes its lock: half of it is shared among `providers`, the rest
    /// is burned. Closes the escrow.
    ///
    /// # Errors
    /// When there is no escrow; nothing changes then.
    fn forfeit(task: TaskId, providers: &[AccountId]) -> DispatchResult;

    /// What is held for `task`.
    fn held(task: TaskId) -> Balance;

    /// Gives `client` enough to open an escrow of `cap` for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn endow(client: &AccountId, cap: Balance);
}

/// Where an escrow went. `paid + fee + refund` is what had been held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Settlement<Balance> {
    /// To providers and their auditors, in all.
    pub paid: Balance,
    /// Protocol fee, in plancks.
    pub fee: Balance,
    /// Back to the client.
    pub refund: Balance,
}

/// Decides who was right. Provided by results.
pub trait TaskTrust<AccountId, Balance, BlockNumber> {
    /// How a task is audited that pays each provider up to `price`, and the level at which it is watched: not
    /// below the one asked for.
    ///
    /// # Errors
    /// When there is not enough stake for its value at risk at any level, all that could audit it may be
    /// corrupt, or nobody could in time; when `price` is below [`Self::least_price`].
    fn secure(
        price: Balance,
        spec: &TaskSpec,
        audits: ModelAudits,
    ) -> Result<(SecurityLevel, AuditTerms), DispatchError>;

    /// Stake that a provider locks when it is paid `price` for a task of this security.
    fn lock_for(price: Balance, security: &Security, audits: &AuditTerms) -> Balance;

    /// Stake that an auditor locks for the result of a provider that is paid `price`.
    fn audit_bond(price: Balance) -> Balance;

    /// What each provider of a task of so many units is paid at least: less is refused, and who asks less is
    /// paid that all the same.
    fn least_price(units_max: u32, audits: &AuditTerms) -> Balance;

    /// Starts checking: locks each provider's stake, and asks [`TaskClock`] to be woken at the first
    /// deadline.
    ///
    /// # Errors
    /// When a stake cannot be locked; nothing changes then.
    fn open(
        task: TaskId,
        units_max: u32,
        security: Security,
        audits: AuditTerms,
        assignments: &PerMember<Assignment<AccountId, Balance>>,
    ) -> DispatchResult;

    /// Whether there is a round of this number.
    fn is_open(task: TaskId) -> bool;

    /// Carries out what is due by time for `task`. Does nothing when nothing is. Returns the most that it
    /// cost, with what [`TaskOutcome`] said that its part did.
    ///
    /// # Errors
    /// Whatever kept it from being carried out; nothing changes then.
    fn advance(task: TaskId) -> Result<Weight, DispatchError>;
}

/// Hears how checking went. Provided by task-auction.
pub trait TaskOutcome<AccountId, Balance> {
    /// Up to `count` further providers for `task`, best first. They are not offered again.
    fn take_reserves(task: TaskId, count: u32) -> Vec<Assignment<AccountId, Balance>>;

    /// The verdict is final: move the money. `audits` are those that stand, of its majority and of providers
    /// that revealed too late to be in it. Returns the most that it cost.
    ///
    /// # Errors
    /// When the task is not running, or the money cannot be moved; nothing changes then.
    fn decided(
        task: TaskId,
        verdict: Verdict<AccountId>,
        audits: &[AuditToPay<AccountId>],
    ) -> Result<Weight, DispatchError>;

    /// The client did not show its input: it loses its lock, of which `providers` get a part, and nobody is
    /// paid. Returns the most that it cost.
    ///
    /// # Errors
    /// When the task is not running; nothing changes then.
    fn withheld(task: TaskId, providers: &[AccountId]) -> Result<Weight, DispatchError>;

    /// A provider of `task` was gravely at fault. Returns stake of it that was locked for more than this task
    /// and is lost with it, in plancks.
    fn convicted(_task: TaskId, _provider: &AccountId) -> Option<Balance> {
        None
    }

    /// The most that [`Self::convicted`] would say of `task` now, in plancks: bonds of challenges follow it.
    fn at_stake(_task: TaskId) -> Option<Balance> {
        None
    }

    /// Who pays for `task`, while it is known.
    fn client(task: TaskId) -> Option<AccountId>;

    /// Content hash and size in bytes of the input of `task`, while it is known.
    fn input(task: TaskId) -> Option<(ContentHash, u32)>;

    /// Makes `task` known with this input, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn post_for_benchmark(task: TaskId, client: &AccountId, input: (ContentHash, u32));
}

/// Numbers tasks. Provided by task-auction.
pub trait TaskIds {
    /// A number that no task has had: for a round about something that nobody has posted.
    ///
    /// # Errors
    /// When there are no more.
    fn take() -> Result<TaskId, DispatchError>;
}

/// Wakes tasks up. Provided by task-auction, whose agenda is the only one.
pub trait TaskClock<BlockNumber> {
    /// Has `task` advanced soon after time `until` of the clock has passed.
    fn wake_after(task: TaskId, until: BlockNumber);

    /// Has `task` advanced as soon as there is entropy younger than block `since`, or nobody waits for it any
    /// longer ([`ENTROPY_PATIENCE_BLOCKS`]). That takes blocks and no time: it may be while the clock stands
    /// still.
    fn wake_with_entropy(task: TaskId, since: BlockNumber);
}

/// Checks signatures of off-chain statements. Provided by the runtime, which knows what an account is.
pub trait SignatureVerifier<AccountId> {
    /// Whether `signature` is `agent`'s of `message`.
    fn is_signed(agent: &AccountId, message: &[u8; 32], signature: &[u8; 64]) -> bool;

    /// An agent for benchmarks, and its signature of each message.
    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(messages: &[[u8; 32]]) -> (AccountId, Vec<[u8; 64]>);
}
