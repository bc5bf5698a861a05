//! How a task's results are audited.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::{FixedU128, Permill};

use crate::model::Operation;

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
    /// Whether an auditor may have some of the items and not all: not of a generation, nor of a model that
    /// computes no item alone.
    pub sampled: bool,
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
            sampled: true,
        }
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
