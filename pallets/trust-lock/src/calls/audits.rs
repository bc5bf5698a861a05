//! What verifiers' agents do: announce audits and reveal them.

use frame_support::{dispatch::DispatchResult, ensure, traits::Get};
use sp_core::H256;
use sp_runtime::{traits::Saturating, DispatchError, FixedU128};
use surety_types::{
    stake::Role,
    task::{AuditDraw, MemberProgress, ResultClaim, RoundPhase},
    traits::{DrawVerifier, Jail, StakeLedger},
    trust::{Audit, AuditProof, AuditState},
    TaskId,
};
use surety_verification::audit::{audit_seal, draw, AuditInput, AuditThreshold};

use crate::{AuditOf, Config, Error, Event, MemberOf, Pallet, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_announce_audit(
        agent: &T::AccountId,
        task: TaskId,
        provider: &T::AccountId,
        proof: &AuditProof,
        seal: H256,
    ) -> DispatchResult {
        let verifier = Self::verifier_of(agent)?;
        ensure!(!Self::is_jailed(&verifier), Error::<T>::InJail);
        let mut round = Self::round(task)?;
        let drawing = Self::drawing(&round)?;
        let expected = Self::auditors_wanted(&round, provider);
        let member = Self::member(&mut round, provider)?.clone();
        let input = AuditInput {
            seed: drawing.seed,
            task,
            provider: provider.clone(),
            commitment: Self::audited(&member)?,
            tranche: drawing.tranche,
        };
        let known = round
            .audits
            .iter()
            .any(|audit| is_of::<T>(audit, &verifier, provider));
        ensure!(!known, Error::<T>::AlreadyAuditing);
        ensure!(
            Self::is_drawn(
                agent,
                &verifier,
                &input,
                (expected, drawing.verifier_stake),
                proof
            ),
            Error::<T>::NotDrawn
        );
        let bond = member.price.saturating_mul(T::AuditBondMultiple::get().into());
        let audit = Audit {
            verifier: verifier.clone(),
            provider: provider.clone(),
            bond,
            state: AuditState::Sealed(seal),
        };
        let room = round.audits.try_push(audit);
        ensure!(room.is_ok(), Error::<T>::TooManyAudits);
        T::Stake::lock(&verifier, bond)?;
        Rounds::<T>::insert(task, round);
        Self::deposit_event(Event::AuditAnnounced {
            task,
            provider: provider.clone(),
            verifier,
            tranche: drawing.tranche,
            seal,
        });
        Ok(())
    }

    pub(crate) fn do_reveal_audit(
        agent: &T::AccountId,
        task: TaskId,
        provider: &T::AccountId,
        claim: ResultClaim,
        salt: H256,
    ) -> DispatchResult {
        let verifier = Self::verifier_of(agent)?;
        let mut round = Self::round(task)?;
        let until = match round.phase {
            RoundPhase::Revealing { until } | RoundPhase::Challengeable { until, .. } => Some(until),
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => None,
        };
        let open = until.is_some_and(|until| !Self::has_passed(until));
        ensure!(open, Error::<T>::WrongPhase);
        let member = Self::member(&mut round, provider)?;
        let said = member.claim().cloned().ok_or(Error::<T>::NotRevealed)?;
        let convicted = member.fault.is_some();

        let audit = Self::audit(&mut round, &verifier, provider).ok_or(Error::<T>::NotAuditor)?;
        let AuditState::Sealed(seal) = audit.state else {
            return Err(Error::<T>::NotAuditor.into());
        };
        ensure!(
            audit_seal(task, provider, &verifier, &claim, &salt) == seal,
            Error::<T>::SealMismatch
        );
        let agrees = claim == said;
        audit.state = if agrees {
            AuditState::Confirmed
        } else {
            AuditState::Differs
        };
        Self::note_presence(&verifier);
        Self::deposit_event(Event::AuditRevealed {
            task,
            provider: provider.clone(),
            verifier: verifier.clone(),
            claim,
            agrees,
        });
        if !agrees && convicted {
            Self::release_audit(&mut round, &verifier, provider);
        }
        if matches!(round.phase, RoundPhase::Challengeable { .. }) {
            Self::match_up(task, &mut round);
        }
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    /// What auditors draw themselves with now, if they may.
    fn drawing(round: &RoundOf<T>) -> Result<AuditDraw<T::Balance>, DispatchError> {
        let drawing = round.draw.clone().filter(|draw| match round.phase {
            RoundPhase::Auditing { until } => !Self::has_passed(until),
            RoundPhase::Challengeable { until, .. } => draw.tranche > 0 && !Self::has_passed(until),
            RoundPhase::Committing { .. } | RoundPhase::Revealing { .. } => false,
        });
        Ok(drawing.ok_or(Error::<T>::WrongPhase)?)
    }

    /// The hash that stands for a provider's result in a draw: its commitment, or the trace root once that is open.
    fn audited(member: &MemberOf<T>) -> Result<H256, DispatchError> {
        match (&member.progress, member.fault) {
            (MemberProgress::Committed(commitment), None) => Ok(*commitment),
            (MemberProgress::Revealed(claim), None) => Ok(claim.trace_root),
            _ => Err(Error::<T>::NotDisputable.into()),
        }
    }

    fn is_drawn(
        agent: &T::AccountId,
        verifier: &T::AccountId,
        input: &AuditInput<T::AccountId>,
        (expected, verifier_stake): (FixedU128, T::Balance),
        proof: &AuditProof,
    ) -> bool {
        let fields = input.fields();
        let output = T::Draws::output(agent, draw::LABEL, &draw::borrowed(&fields), draw::CONTEXT, proof);
        let stake = T::Stake::bonded(verifier, Role::Verifier);
        let threshold = AuditThreshold::weighted(expected, stake.into(), verifier_stake.into());
        output.is_some_and(|output| threshold.draws(&output))
    }

    pub(crate) fn audit<'a>(
        round: &'a mut RoundOf<T>,
        verifier: &T::AccountId,
        provider: &T::AccountId,
    ) -> Option<&'a mut AuditOf<T>> {
        let mut audits = round.audits.iter_mut();
        audits.find(|audit| is_of::<T>(audit, verifier, provider))
    }

    /// Ends an audit with which nothing is wrong.
    pub(crate) fn release_audit(round: &mut RoundOf<T>, verifier: &T::AccountId, provider: &T::AccountId) {
        if let Some(audit) = Self::audit(round, verifier, provider) {
            audit.state = AuditState::Over;
            T::Stake::unlock(verifier, core::mem::take(&mut audit.bond));
        }
    }
}

fn is_of<T: Config>(audit: &AuditOf<T>, verifier: &T::AccountId, provider: &T::AccountId) -> bool {
    audit.verifier == *verifier && audit.provider == *provider
}
