//! Whose audits are paid.
//!
//! An audit that says what the provider said, of a provider that is paid, and that nobody has proven wrong. A
//! verifier whose result differs and wins its dispute gets the finder's share of the slash instead, which is
//! much more; the provider it could be paid by earns nothing then. How much of that is
//! `surety_audit_economics::AuditPay`'s affair.
//!
//! A provider that reveals too late earns nothing, and its audits are paid all the same: they were made for a
//! result that stands, and being late must not make them free.

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
    let stands = |audit: &&AuditOf<T>| audit.state == AuditState::Confirmed;
    let is_audited = |member: &MemberOf<T>| {
        let mut audits = round.audits.iter().filter(stands);
        audits.any(|audit| audit.provider == member.provider)
    };
    let audited = round.members.iter().filter_map(|member| {
        let units = units_of::<T>(member, verdict).filter(|_| is_audited(member))?;
        let share = Pallet::<T>::audit_share(round, member, units);
        Some((&member.provider, share, units))
    });
    let audited: Vec<_> = audited.collect();
    let pay = |audit: &AuditOf<T>| {
        let mut audited = audited.iter();
        let (_, share, units) = audited.find(|(provider, ..)| **provider == audit.provider)?;
        Some(AuditToPay {
            provider: audit.provider.clone(),
            verifier: audit.verifier.clone(),
            share: *share,
            units: *units,
        })
    };
    round.audits.iter().filter(stands).filter_map(pay).collect()
}

/// How many units there are of the result of a provider that is paid, or that stands and was late.
fn units_of<T: Config>(member: &MemberOf<T>, verdict: &Verdict<T::AccountId>) -> Option<u32> {
    match verdict {
        Verdict::Agreed { majority, claim, .. } if majority.contains(&member.provider) => Some(claim.units),
        _ if member.missed_reveal => member.standing_claim().map(|claim| claim.units),
        _ => None,
    }
}
