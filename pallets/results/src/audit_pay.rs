//! Whose audits are paid.
//!
//! An audit that says what the provider said, of a provider that is paid, and that nobody has proven wrong. A
//! verifier whose result differs and wins its dispute gets the finder's share of the slash instead, which is
//! much more; the provider it could be paid by earns nothing then. How much is billing's business.

use alloc::vec::Vec;
use surety_types::{
    task::Verdict,
    trust::{AuditState, AuditToPay},
};

use crate::{Config, RoundOf};

/// The audits that stand when a round ends with `verdict`: no more than a round has.
pub(crate) fn audits_to_pay<T: Config>(
    round: &RoundOf<T>,
    verdict: &Verdict<T::AccountId>,
) -> Vec<AuditToPay<T::AccountId>> {
    let Verdict::Agreed { majority, .. } = verdict else {
        return Vec::new();
    };
    let stands = |audit: &&crate::AuditOf<T>| {
        audit.state == AuditState::Confirmed && majority.contains(&audit.provider)
    };
    let audits = round.audits.iter().filter(stands);
    audits
        .map(|audit| AuditToPay {
            provider: audit.provider.clone(),
            verifier: audit.verifier.clone(),
        })
        .collect()
}
