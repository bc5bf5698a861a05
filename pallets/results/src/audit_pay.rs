//! Whose audits are paid.
//!
//! An audit that says what the provider said, of a provider that is paid, and that nobody has proven wrong. A
//! verifier whose result differs and wins its dispute gets the finder's share of the slash instead, which is
//! much more; the provider it could be paid by earns nothing then. How much of that is
//! `surety_audit_economics::AuditPay`'s affair.

use alloc::vec::Vec;
use surety_types::{
    task::Verdict,
    trust::{AuditState, AuditToPay},
};

use crate::{AuditOf, Config, MemberOf, Pallet, RoundOf};

/// The audits that stand when a round ends with `verdict`: no more than a round has.
pub(crate) fn audits_to_pay<T: Config>(
    round: &RoundOf<T>,
    verdict: &Verdict<T::AccountId>,
) -> Vec<AuditToPay<T::AccountId>> {
    let Verdict::Agreed { majority, claim, .. } = verdict else {
        return Vec::new();
    };
    let stands = |audit: &&AuditOf<T>| audit.state == AuditState::Confirmed;
    let is_paid = |member: &&MemberOf<T>| {
        let mut audits = round.audits.iter().filter(stands);
        majority.contains(&member.provider) && audits.any(|audit| audit.provider == member.provider)
    };
    let members = round.members.iter().filter(is_paid);
    let shares: Vec<_> = members
        .map(|member| {
            let share = Pallet::<T>::audit_share(round, member, claim.units);
            (&member.provider, share)
        })
        .collect();
    let pay = |audit: &AuditOf<T>| {
        let mut shares = shares.iter();
        let (_, share) = shares.find(|(provider, _)| **provider == audit.provider)?;
        Some(AuditToPay {
            provider: audit.provider.clone(),
            verifier: audit.verifier.clone(),
            share: *share,
        })
    };
    round.audits.iter().filter(stands).filter_map(pay).collect()
}
