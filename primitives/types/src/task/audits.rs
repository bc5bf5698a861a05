//! How a task's results are audited.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::{FixedU128, Permill};

use crate::{
    limits::{AUDIT_ITEMS_MAX, DEMAND_PARTS_MAX},
    model::Operation,
};

/// How a task's results are audited, as it was fixed when it was posted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct AuditTerms {
    /// What is asked of the model.
    pub operation: Operation,
    /// Size of the input, in bytes.
    pub input_bytes: u32,
    /// Most tokens of an item.
    pub item_tokens: u32,
    /// Tokens that the model's reference machine audits in 1,000 seconds.
    pub speed: u32,
    /// Part of all verifiers' stake that could audit the model (w).
    pub able: Permill,
    /// Stake of all verifiers, in plancks. More of it later lowers nobody's odds of auditing.
    pub verifier_stake: u128,
    /// Most parts of content that one item is held against: none where no item is computed alone, as of a
    /// generation.
    pub item_parts: u32,
}

impl Default for AuditTerms {
    /// Everybody is able to, and in no time.
    fn default() -> Self {
        Self {
            operation: Operation::Embed,
            input_bytes: 0,
            item_tokens: 1,
            speed: u32::MAX,
            able: Permill::one(),
            verifier_stake: u128::MAX,
            item_parts: 4,
        }
    }
}

impl AuditTerms {
    /// Most items that an auditor may have where it does not have all: so many that one demand names what
    /// they are held against.
    pub fn items_max(&self) -> u32 {
        let items = DEMAND_PARTS_MAX.saturating_sub(3).checked_div(self.item_parts);
        items.unwrap_or(0).min(AUDIT_ITEMS_MAX)
    }

    /// Most parts of content that so many items are held against, with those of a trace's first and last
    /// leaf, and of the output's beginning.
    pub fn demand_parts(&self, items: u32) -> u32 {
        items.saturating_mul(self.item_parts).saturating_add(3)
    }
}

/// How the result of one provider is audited, fixed when it gets the task.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct AuditRate {
    /// Auditors expected (`lambda`).
    pub expected: FixedU128,
    /// Items that each of them computes; all of them where the task has no more.
    pub items: u32,
}

impl Default for AuditRate {
    /// No auditors, of the whole.
    fn default() -> Self {
        Self {
            expected: FixedU128::from_u32(0),
            items: u32::MAX,
        }
    }
}
