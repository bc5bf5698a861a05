//! What a provider stands behind.

use sp_arithmetic::{FixedU128, Perquintill};
use surety_audit_economics::{AuditPay, AuditPolicy, PointRates, SURE};

use crate::rules::Rules;

/// What a receipt costs, in plancks; each answer is of one chunk.
pub const CHUNK: u128 = SURE / 20;

/// Receipts of a life.
pub const RECEIPTS: u32 = 1_000;

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
