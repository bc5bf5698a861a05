//! What was sealed and not opened in time: commitments and audits.
//!
//! A missed window costs a provider its pay and some time without tasks, and an auditor nothing: a line may
//! have been down, and an honest worker loses no stake for that. That the seal is opened at all is demanded
//! for hours: of a provider until [`Round::reveals_until`](surety_types::task::Round::reveals_until), of an
//! auditor until [`Round::openings_until`](surety_types::task::Round::openings_until), which a late reveal
//! moves on. Silence beyond that is a fault: if it were cheaper than a wrong answer, whoever sees that it is
//! audited would be silent.

use alloc::vec::Vec;
use frame_system::pallet_prelude::BlockNumberFor;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    model::Operation,
    task::RoundMember,
    traits::TaskClock,
    trust::{AuditState, FaultKind},
};

use crate::{AuditOf, Config, Event, MemberOf, Pallet, RoundDisputes, RoundOf};

/// Most that are found at fault for silence in one step of a round. The rest are in the next.
pub const CONVICTED_AT_ONCE: usize = 8;

impl<T: Config> Pallet<T> {
    /// Notes who has committed and not revealed when the window for that is over.
    pub(crate) fn note_missed_reveals(task: TaskId, round: &mut RoundOf<T>) {
        let late = round.members.iter_mut().filter(|member| member.owes_opening());
        late.for_each(|member| Self::note_missed_reveal(task, member));
    }

    pub(crate) fn note_missed_reveal(task: TaskId, member: &mut MemberOf<T>) {
        member.missed_reveal = true;
        let provider = member.provider.clone();
        TrustLock::<T>::note_missed(&provider);
        Self::deposit_event(Event::RevealMissed { task, provider });
    }

    /// After the reveal of a provider that had missed the window for it: its auditors have theirs, what it
    /// says may contradict others, and everybody has the whole time to challenge a verdict that it changes.
    pub(crate) fn after_late_reveal(task: TaskId, round: &mut RoundOf<T>, provider: &T::AccountId) {
        let is_audited = |audit: &AuditOf<T>| audit.provider == *provider && is_sealed::<T>(audit);
        if round.audits.iter().any(is_audited) {
            let until = Self::openings_end(round);
            round.openings_until = round.openings_until.max(Some(until));
            round.demands_until = round.demands_until.max(Some(Self::leaves_demands_end(round)));
        }
        if Self::update_verdict(task, round) {
            Self::reopen_challenges(task, round);
        }
        T::Disputes::match_up(task, round);
        T::Clock::wake_after(task, TrustLock::<T>::now());
    }

    /// Until when auditors demand leaves of what is revealed now: as long as an audit takes, in which those
    /// that are served have compared.
    pub(crate) fn leaves_demands_end(round: &RoundOf<T>) -> BlockNumberFor<T> {
        TrustLock::<T>::window_end(Self::audit_window(round))
    }

    /// Until when the round waits for something to be opened, if it does.
    pub(crate) fn awaits_openings(round: &RoundOf<T>) -> Option<BlockNumberFor<T>> {
        let still = |until: Option<_>| until.filter(|until| !TrustLock::<T>::has_passed(*until));
        let is_late = round.members.iter().any(is_late);
        let is_sealed = round.audits.iter().any(|audit| owes_seal::<T>(round, audit));
        let reveals = still(round.reveals_until).filter(|_| is_late);
        let seals = still(round.openings_until).filter(|_| is_sealed);
        // Whichever comes first: there is something to be done then.
        reveals.into_iter().chain(seals).min()
    }

    /// Finds those at fault that have not opened their commitments within the long window either, a few at a
    /// time. Says whether there were any.
    pub(crate) fn convict_silent(task: TaskId, round: &mut RoundOf<T>) -> bool {
        if !round.reveals_until.is_some_and(TrustLock::<T>::has_passed) {
            return false;
        }
        let late = round.members.iter().filter(|member| is_late(member));
        let late: Vec<_> = late
            .map(|member| member.provider.clone())
            .take(CONVICTED_AT_ONCE)
            .collect();
        for provider in &late {
            Self::convict_provider(task, round, provider, FaultKind::NoReveal, None);
        }
        if !late.is_empty() {
            Self::update_verdict(task, round);
        }
        !late.is_empty()
    }

    /// Finds auditors at fault that announced and never opened their seals, a few at a time. Says whether
    /// there were any.
    pub(crate) fn convict_absent(task: TaskId, round: &mut RoundOf<T>) -> bool {
        let owed = round.audits.iter().filter(|audit| owes_seal::<T>(round, audit));
        let owed: Vec<_> = owed.take(CONVICTED_AT_ONCE).cloned().collect();
        for audit in &owed {
            let auditor = (&audit.verifier, &audit.provider);
            Self::convict_auditor(task, round, auditor, FaultKind::AuditNoShow, None);
        }
        !owed.is_empty()
    }
}

/// Whether it has missed the window for revealing and still not opened its commitment.
fn is_late<A, B>(member: &RoundMember<A, B>) -> bool {
    member.missed_reveal && member.owes_opening()
}

fn is_sealed<T: Config>(audit: &AuditOf<T>) -> bool {
    matches!(audit.state, AuditState::Sealed(_))
}

/// Whether an auditor has to open its seal. A provider that never reveals gives it nothing to compare with,
/// and neither does one that has lost to who has sealed some items: it may be convicted for showing none.
/// Nothing is kept from anybody by that: such a seal stands by nothing else, and is not paid.
fn owes_seal<T: Config>(round: &RoundOf<T>, audit: &AuditOf<T>) -> bool {
    let operation = round.terms.operation;
    let can_compare = |member: &MemberOf<T>| match is_audited_by_items(operation, member) {
        true => member.disputable_claim().is_some(),
        false => member.claim().is_some(),
    };
    let mut members = round.members.iter();
    let is_owed = |member: &MemberOf<T>| member.provider == audit.provider && can_compare(member);
    is_sealed::<T>(audit) && members.any(is_owed)
}

/// Whether the auditors of a result that is revealed have some of its items each, and not all.
pub(crate) fn is_audited_by_items<A, B>(operation: Operation, member: &RoundMember<A, B>) -> bool {
    let units = member.claim().map_or(0, |claim| claim.units);
    operation == Operation::Embed && member.audits.items < units
}
