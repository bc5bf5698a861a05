//! What a provider stands behind.

use sp_arithmetic::{FixedU128, Perquintill};
use surety_audit_economics::{AuditPay, AuditPolicy, PointRates, SURE};

use crate::rules::Rules;

/// What a receipt costs, in plancks; each answer is of one chunk.
pub const CHUNK: u128 = SURE / 20;

/// Receipts of a life.
pub const RECEIPTS: u32 = 1_000;

/// Receipts of an hour, where lives have several.
pub const AN_HOUR: u32 = RECEIPTS;

/// Places for disputes of a provider's receipts.
pub const PLACES: u32 = 16;

/// The bond of a challenge is as many times the price at least.
const BOND_MULTIPLE: u128 = 5;

/// What computing an answer costs, in per cent of its price.
pub const WORK_PERCENT: u128 = 70;

/// What of a provider's batches is void when one of its receipts is found wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voided {
    /// All that are not final.
    AllOpen,
    /// The one that has the receipt.
    TheBatch,
}

/// What clients ask of a provider before final batches have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// As much as they like.
    None,
    /// Each as much as its lock covers.
    Each,
    /// All together as much as its lock covers, each in proportion to what it has deposited.
    All,
    /// The same, but that a deposit counts in part until it has stood for a season.
    Seasoned,
}

/// What bounds cheats that take hours. [`Chain::AS_IT_IS`] is how it is; the others show why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Filling all places for disputes burns what the standing lock has to lose.
    pub bonds_by_lock: bool,
    /// What a late batch holds back stays until that is final, however long its window stands still.
    pub holds_last: bool,
    /// What is demanded has to be shown, whether or not the cap has room for it.
    pub due_at_once: bool,
    /// A channel whose money was given back can be disputed and demanded of until its time is over.
    pub record_stays: bool,
    /// How clients bound what they ask of a provider and no final batch has.
    pub bound: Bound,
    /// Clients compare what is counted with what was signed, and can demand it then.
    pub compares: bool,
    /// What they demand they draw by its price, of all that was not shown, and not of what they have asked
    /// for.
    pub draws_of_all: bool,
    /// What is counted is paid a while later, and not while its channel's client demands something; a
    /// conviction voids it.
    pub pay_waits: bool,
    /// What is demanded of what was counted is shown out of batches that are final.
    pub shows_final: bool,
    /// What is demanded of an answer that broke off is met by what is shown to go on from there, and not by
    /// whatever is longer.
    pub goes_on: bool,
}

impl Chain {
    /// The chain and its software.
    pub const AS_IT_IS: Self = Self {
        bonds_by_lock: true,
        holds_last: true,
        due_at_once: true,
        record_stays: true,
        bound: Bound::Seasoned,
        compares: true,
        draws_of_all: true,
        pay_waits: true,
        shows_final: true,
        goes_on: true,
    };
}

/// An offer's terms. Amounts in plancks.
#[derive(Clone, Debug)]
pub struct Offer {
    /// How audits convict.
    pub policy: AuditPolicy,
    /// Points per SURE.
    pub points: FixedU128,
    /// The same while it is new, and until how much of it was audited.
    pub rates: PointRates,
    /// What a wrong answer is worth elsewhere, as a multiple of its price (v).
    pub at_risk: FixedU128,
    /// Most that its batches may cost which are not final (E).
    pub cap: u128,
    /// What auditing a point costs.
    pub point_cost: u128,
    /// What a transaction costs.
    pub transaction: u128,
    /// What a conviction voids.
    pub voided: Voided,
    /// What bounds cheats that take hours.
    pub chain: Chain,
    /// Verifiers, all with the same stake.
    pub verifiers: u32,
}

impl Offer {
    /// One point per SURE, and a wrong answer is worth half its price.
    pub fn usual() -> Self {
        let points = FixedU128::from_u32(1);
        Self {
            policy: Rules::default().policy,
            rates: PointRates {
                usual: points,
                newcomer: FixedU128::from_u32(3),
                probation: 100 * SURE,
            },
            points,
            at_risk: FixedU128::from_rational(1, 2),
            cap: 100 * SURE,
            point_cost: CHUNK / 10,
            transaction: SURE / 1_000,
            voided: Voided::AllOpen,
            chain: Chain::AS_IT_IS,
            verifiers: 100,
        }
    }

    /// A wrong answer is worth nothing elsewhere: the least lock that there is.
    pub fn without_risk() -> Self {
        Self {
            at_risk: FixedU128::from_u32(0),
            ..Self::usual()
        }
    }

    /// With a cap for what is sold in an hour, for lives of several.
    pub fn by_the_hour() -> Self {
        Self {
            cap: CHUNK * u128::from(AN_HOUR),
            ..Self::usual()
        }
    }

    /// What is lost of the standing lock.
    pub fn burned(&self, points: FixedU128) -> u128 {
        self.policy.burned.mul_ceil(self.lock(points))
    }

    /// What a challenge of a receipt puts on hold.
    pub fn bond(&self) -> u128 {
        let of_price = CHUNK * BOND_MULTIPLE;
        let of_lock = 2 * self.burned(self.points) / u128::from(PLACES);
        if self.chain.bonds_by_lock {
            of_price.max(of_lock)
        } else {
            of_price
        }
    }

    /// The standing lock of `points` per SURE; nothing where none would do.
    pub fn lock(&self, points: FixedU128) -> u128 {
        self.policy
            .standing_lock(points, self.at_risk, self.cap)
            .unwrap_or(0)
    }

    /// The part of what is redeemed that points are paid of.
    pub fn levy(&self, points: FixedU128) -> Perquintill {
        AuditPay::default()
            .levy(points, self.point_cost)
            .unwrap_or(Perquintill::one())
    }
}
