//! Who and what there is, how long and how much.

use frame_support::parameter_types;
use sp_core::H256;
use sp_runtime::{FixedU128, Permill};
use surety_types::TaskId;

use crate::{AccountId, Balance, BlockNumber};

/// The task of most tests.
pub const TASK: TaskId = 7;
pub const PRICE: Balance = 100;
/// Stake locked for [`PRICE`].
pub const LOCK: Balance = 200;
pub const BOND: Balance = 1_000;
pub const UNITS_MAX: u32 = 50;
/// Stashes 1 to this one are bonded as providers.
pub const STASHES: AccountId = 40;
/// Stashes from here on are bonded as verifiers: as many as follow.
pub const FIRST_VERIFIER: AccountId = 51;
pub const VERIFIERS: AccountId = 10;
/// Accounts with money of their own, from this one to the next.
pub const FIRST_STRANGER: AccountId = 500;
pub const LAST_STRANGER: AccountId = 519;
pub const MONEY: Balance = 100_000;
pub const POOL: AccountId = 950;
pub const POOL_MONEY: Balance = 1_000;
/// An auditor's bond for a provider that is paid [`PRICE`].
pub const AUDIT_BOND: Balance = 300;
/// What a committee is paid at most: 150 times what it costs to compute an item of a task that pays
/// [`PRICE`].
pub const COMMITTEE_POT: Balance = 300;
/// What each member is paid of it, where they are no more than a streak has seats.
pub const MEMBER_PAY: Balance = 5;
/// What a challenger loses with its dispute. It puts a committee's pay on hold beside that.
pub const CHALLENGE_BOND: Balance = 500;
/// What a piece of output costs.
pub const SUPPLY_PRICE: Balance = 7;

pub const COMMIT_WINDOW: BlockNumber = 10;
pub const AUDIT_WINDOW: BlockNumber = 3;
pub const REVEAL_WINDOW: BlockNumber = 6;
pub const CHALLENGE_WINDOW: BlockNumber = 4;
pub const OPENING_WINDOW: BlockNumber = 15;
pub const CLOCK: u32 = 5;
pub const DECISION_WINDOW: BlockNumber = 6;
pub const SUPPLY_WINDOW: BlockNumber = 5;
pub const INPUT_WINDOW: BlockNumber = 4;
pub const DEFERRAL: BlockNumber = 8;
pub const JAIL: BlockNumber = 30;
/// No other window is as long: whoever reads one in its place is noticed.
pub const SUSPENSION: BlockNumber = 12;
pub const SEAT_WINDOW: u32 = 3;
pub const VOTE_WINDOW: u32 = 2;
pub const SEASONING: u32 = 5;
pub const AUDIT_SEASONING: u32 = 7;
/// From the block with the last commitment to that in which it is known what auditors draw themselves with.
pub const SEED_BLOCKS: BlockNumber = 2;
/// From the block with the last commitment to the last of the audit window.
pub const AUDITING: BlockNumber = SEED_BLOCKS + AUDIT_WINDOW;

parameter_types! {
    pub const CommitWindow: BlockNumber = COMMIT_WINDOW;
    pub const AuditWindow: BlockNumber = AUDIT_WINDOW;
    pub const AuditWindowMax: BlockNumber = 10_000;
    pub const GenerationAuditCost: Permill = Permill::from_percent(25);
    pub static WorkPrice: Balance = 0;
    pub AuditPremium: FixedU128 = FixedU128::from_rational(5, 4);
    pub static VerifiersAble: Permill = Permill::one();
    pub const RevealWindow: BlockNumber = REVEAL_WINDOW;
    pub const OpeningWindow: BlockNumber = OPENING_WINDOW;
    pub const ChallengeWindow: BlockNumber = CHALLENGE_WINDOW;
    pub const LockMultiple: u32 = 2;
    pub const InsurancePool: AccountId = POOL;
    pub const AuditBondMultiple: u32 = 3;
    pub const ChallengeBondMultiple: u32 = 5;
    pub const DefenseCost: Balance = 10;
    pub const DisputeClock: u32 = CLOCK;
    pub const DecisionWindow: BlockNumber = DECISION_WINDOW;
    pub static PricePerKib: Balance = SUPPLY_PRICE;
    pub const SupplyWindow: BlockNumber = SUPPLY_WINDOW;
    pub const InputWindow: BlockNumber = INPUT_WINDOW;
    pub const SlashDeferral: BlockNumber = DEFERRAL;
    pub const StakePart: Permill = Permill::from_percent(5);
    pub const FinderShare: Permill = Permill::from_percent(30);
    pub const ClientShare: Permill = Permill::from_percent(20);
    pub const CorrelationWindow: BlockNumber = 50;
    pub const JailPeriod: BlockNumber = JAIL;
    pub const SuspensionPeriod: BlockNumber = SUSPENSION;
    pub const ProbationTasks: u32 = 10;
    pub const SeatWindow: u32 = SEAT_WINDOW;
    pub const VoteWindow: u32 = VOTE_WINDOW;
    pub const SeatSeasoning: u32 = SEASONING;
    pub const VerifierSeasoning: u32 = AUDIT_SEASONING;
    pub const AuditAccuracy: Permill = Permill::from_percent(95);
    /// None: locks are the usual multiple of the price.
    pub static VerifiersCorrupt: Permill = Permill::zero();
    pub AuditorsBasic: FixedU128 = FixedU128::from_rational(15, 100);
    pub static AuditorsHigh: FixedU128 = FixedU128::from_u32(3);
    pub const EpochRandomness: H256 = H256::repeat_byte(0xe9);
    pub static AuditorsExpected: FixedU128 = FixedU128::from_u32(1);
    pub static AuditorsNewcomer: FixedU128 = FixedU128::from_u32(3);
    /// Whether authors of blocks give entropy.
    pub static HasEntropy: bool = true;
    /// What the clock shows, if it stands still.
    pub static FinalityStoppedAt: Option<BlockNumber> = None;
}
