//! What verifiers do: announce audits and open them.

use frame_support::{
    dispatch::DispatchResult,
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    weights::Weight,
};
use sp_core::H256;
use sp_runtime::{DispatchError, SaturatedConversion, traits::Saturating};
use surety_audit_economics::{AuditInput, AuditThreshold, audit_seal, draw};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId, limits,
    opening::pooled,
    stake::Role,
    task::{ResultClaim, RoundPhase},
    traits::{DrawVerifier, Jail, StakeLedger, TaskClock},
    trust::{Audit, AuditProof, AuditState, FaultKind},
};

use crate::{AuditDrawOf, AuditOf, Config, Error, Event, Pallet, RoundDisputes, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_announce_audit(
        agent: &T::AccountId,
        task: TaskId,
        provider: &T::AccountId,
        proof: &AuditProof,
        seal: H256,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        let (verifier, output) = Self::drawn_auditor(agent, task, &mut round, provider, proof)?;
        let price = Self::member(&mut round, provider)?.price;
        let bond = Self::do_audit_bond(price);
        let audit = Audit {
            verifier: verifier.clone(),
            provider: provider.clone(),
            bond,
            draw: output.into(),
            items: None,
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
            seal,
        });
        Ok(())
    }

    /// The verifier that an agent shows to be drawn for a provider's result, now that audits can be
    /// announced, and to have sealed nothing about it yet; and the output that it drew itself with.
    pub(crate) fn drawn_auditor(
        agent: &T::AccountId,
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        proof: &AuditProof,
    ) -> Result<(T::AccountId, [u8; 32]), DispatchError> {
        let verifier = Self::verifier_of(agent)?;
        ensure!(!TrustLock::<T>::is_jailed(&verifier), Error::<T>::InJail);
        let (draw, seed) = Self::drawing(round)?;
        ensure!(Self::is_settled(&verifier, &draw), Error::<T>::Unsettled);
        let member = Self::member(round, provider)?;
        ensure!(member.owes_opening(), Error::<T>::NotDisputable);
        let expected = member.audits.expected;
        Self::ensure_place(round, &verifier, provider)?;
        let input = AuditInput {
            seed,
            task,
            provider: provider.clone(),
        };
        let stake = T::Stake::bonded(&verifier, Role::Verifier);
        let threshold = AuditThreshold::weighted(expected, stake.into(), draw.verifier_stake.into());
        let output = Self::drawn(agent, &input, threshold, proof).ok_or(Error::<T>::NotDrawn)?;
        Ok((verifier, output))
    }

    /// Whoever calls: the opening proves that it is what the verifier sealed.
    pub(crate) fn do_reveal_audit(
        task: TaskId,
        provider: &T::AccountId,
        verifier: &T::AccountId,
        claim: ResultClaim,
        salt: H256,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        ensure!(Self::ensure_audits_open(&round).is_ok(), Error::<T>::WrongPhase);
        let agrees = Self::ensure_opens_audit(&round, task, (provider, verifier), &claim, &salt)?;
        Self::deposit_event(Event::AuditRevealed {
            task,
            provider: provider.clone(),
            verifier: verifier.clone(),
            claim,
            agrees,
        });
        Self::note_opened(task, &mut round, (provider, verifier), agrees)?;
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    /// What comes of an audit whose seal was opened.
    pub(crate) fn note_opened(
        task: TaskId,
        round: &mut RoundOf<T>,
        (provider, verifier): (&T::AccountId, &T::AccountId),
        agrees: bool,
    ) -> DispatchResult {
        let member = Self::member(round, provider)?;
        let (has_lost, slash) = (member.has_lost(), member.slash);
        let is_equivocation = member.fault == Some(FaultKind::Equivocation);
        let is_void = !agrees && is_equivocation && Self::is_shown_to_auditors(round);
        let mut is_news = false;
        if let Some(audit) = Self::audit(round, verifier, provider) {
            audit.state = if agrees {
                AuditState::Confirmed
            } else {
                AuditState::Differs
            };
            // Nobody could challenge or refute it before.
            is_news = agrees && (has_lost || audit.items.is_some());
        }
        if is_void {
            Self::release_audit(round, verifier, provider);
        }
        TrustLock::<T>::note_presence(verifier);
        match slash {
            Some(slash) if !agrees => TrustLock::<T>::add_finder(slash, verifier),
            _ if is_news => Self::reopen_challenges(task, round),
            _ => {}
        }
        if matches!(round.phase, RoundPhase::Challengeable { .. }) {
            T::Disputes::match_up(task, round);
            // It may have been the last that the round waited for.
            T::Clock::wake_after(task, TrustLock::<T>::now());
        }
        Ok(())
    }

    /// Lets an opening in that [`Self::do_reveal_audit`] carries out now, and no other. So what enters a
    /// block without a fee is one opening for each announcement, for which a bond is locked.
    ///
    /// Changes nothing. It costs the round and a hash.
    ///
    /// # Errors
    /// `Future` when it is too early, `Stale` when it is too late or the seal is open already, `BadProof`
    /// when it is not opened by this, `Call` when there is none.
    pub(crate) fn authorize_reveal_audit(
        _: TransactionSource,
        task: &TaskId,
        provider: &T::AccountId,
        verifier: &T::AccountId,
        claim: &ResultClaim,
        salt: &H256,
    ) -> TransactionValidityWithRefund {
        let round = Rounds::<T>::get(task).ok_or(InvalidTransaction::Call)?;
        Self::ensure_audits_open(&round)?;
        let opened = Self::ensure_opens_audit(&round, *task, (provider, verifier), claim, salt);
        opened.map_err(|error| match error {
            Error::NotRevealed => InvalidTransaction::Future,
            Error::AlreadyRevealed => InvalidTransaction::Stale,
            Error::SealMismatch => InvalidTransaction::BadProof,
            _ => InvalidTransaction::Call,
        })?;
        let validity = pooled("Results.reveal_audit", *task, &(provider, verifier));
        Ok((validity, Weight::zero()))
    }

    /// Whether seals of a round's audits can be opened now, in time or late.
    pub(crate) fn ensure_audits_open(round: &RoundOf<T>) -> Result<(), InvalidTransaction> {
        match round.phase {
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => Err(InvalidTransaction::Future),
            RoundPhase::Revealing { .. } => Ok(()),
            RoundPhase::Challengeable { .. } => Self::ensure_still(round.openings_until),
        }
    }

    /// Whether claim and salt open what the verifier sealed about the provider, and may. Says whether they
    /// agree.
    fn ensure_opens_audit(
        round: &RoundOf<T>,
        task: TaskId,
        (provider, verifier): (&T::AccountId, &T::AccountId),
        claim: &ResultClaim,
        salt: &H256,
    ) -> Result<bool, Error<T>> {
        let mut members = round.members.iter();
        let member = members.find(|member| member.provider == *provider);
        let said = member.ok_or(Error::<T>::NotMember)?.claim();
        let said = said.ok_or(Error::<T>::NotRevealed)?;
        let mut audits = round.audits.iter();
        let audit = audits.find(|audit| is_of::<T>(audit, verifier, provider));
        let AuditState::Sealed(seal) = audit.ok_or(Error::<T>::NotAuditor)?.state else {
            return Err(Error::<T>::AlreadyRevealed);
        };
        ensure!(
            audit_seal(task, provider, verifier, claim, salt) == seal,
            Error::<T>::SealMismatch
        );
        Ok(claim == said)
    }

    /// Whether the audit window of a round is over: its time has passed, and nothing is demanded that
    /// auditors wait for.
    pub(crate) fn is_audited(round: &RoundOf<T>) -> bool {
        let is_over =
            matches!(round.phase, RoundPhase::Auditing { until } if TrustLock::<T>::has_passed(until));
        is_over && !round.awaits_seed() && round.demands == 0
    }

    /// What auditors draw themselves with now, and its seed, if they may.
    fn drawing(round: &RoundOf<T>) -> Result<(AuditDrawOf<T>, H256), DispatchError> {
        let is_open = matches!(round.phase, RoundPhase::Auditing { .. }) && !Self::is_audited(round);
        let draw = round.draw.clone().filter(|_| is_open);
        let seeded = draw.and_then(|draw| draw.seed.map(|seed| (draw, seed)));
        Ok(seeded.ok_or(Error::<T>::WrongPhase)?)
    }

    /// Whether a verifier's stake and key are as old as the draw asks for. Otherwise an author that knows its
    /// own output beforehand could try keys, and move stake to those names that are drawn.
    fn is_settled(verifier: &T::AccountId, draw: &AuditDrawOf<T>) -> bool {
        let now = frame_system::Pallet::<T>::block_number();
        let since: u32 = now.saturating_sub(draw.settled_by).saturated_into();
        T::Stake::settled_for(verifier) >= since
    }

    /// Whether a verifier can get a place among a provider's auditors.
    fn ensure_place(
        round: &RoundOf<T>,
        verifier: &T::AccountId,
        provider: &T::AccountId,
    ) -> Result<(), Error<T>> {
        let audits = || round.audits.iter().filter(|audit| audit.provider == *provider);
        ensure!(
            audits().all(|audit| audit.verifier != *verifier),
            Error::<T>::AlreadyAuditing
        );
        ensure!(
            audits().count() < limits::AUDITS_PER_MEMBER_MAX as usize,
            Error::<T>::TooManyAudits
        );
        Ok(())
    }

    /// The output with which an agent drew itself, if it did.
    fn drawn(
        agent: &T::AccountId,
        input: &AuditInput<T::AccountId>,
        threshold: AuditThreshold,
        proof: &AuditProof,
    ) -> Option<[u8; 32]> {
        let fields = input.fields();
        let output = T::Draws::output(agent, draw::LABEL, &draw::borrowed(&fields), draw::CONTEXT, proof);
        output.filter(|output| threshold.draws(output))
    }

    /// The audit of a provider by a verifier.
    pub fn audit<'a>(
        round: &'a mut RoundOf<T>,
        verifier: &T::AccountId,
        provider: &T::AccountId,
    ) -> Option<&'a mut AuditOf<T>> {
        let mut audits = round.audits.iter_mut();
        audits.find(|audit| is_of::<T>(audit, verifier, provider))
    }

    /// Ends an audit with which nothing is wrong.
    pub fn release_audit(round: &mut RoundOf<T>, verifier: &T::AccountId, provider: &T::AccountId) {
        if let Some(audit) = Self::audit(round, verifier, provider) {
            audit.state = AuditState::Over;
            T::Stake::unlock(verifier, core::mem::take(&mut audit.bond));
        }
    }
}

pub(crate) fn is_of<T: Config>(audit: &AuditOf<T>, verifier: &T::AccountId, provider: &T::AccountId) -> bool {
    audit.verifier == *verifier && audit.provider == *provider
}
