//! Audits of some of a task's items: they are opened with an answer, and shown to be empty words where
//! they are.

use frame_support::{
    dispatch::DispatchResult,
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    weights::Weight,
};
use sp_core::H256;
use sp_runtime::SaturatedConversion;
use surety_audit_economics::{answer_hashes, drawn_items, items_seal};
use surety_types::{
    TaskId,
    opening::pooled,
    trust::{AuditAnswer, AuditState, FaultKind, ItemLeaves, ItemsFound, ItemsOpened},
};

use super::audits::is_of;
use crate::{Config, DisputeContexts, DisputeReferee, Error, Event, Pallet, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    /// Whoever calls: the opening proves that it is what the verifier sealed, and its answer too.
    pub(crate) fn do_reveal_items(
        task: TaskId,
        provider: &T::AccountId,
        verifier: &T::AccountId,
        found: ItemsFound,
        answer: &AuditAnswer,
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        ensure!(Self::ensure_audits_open(&round).is_ok(), Error::<T>::WrongPhase);
        let seal = Self::ensure_opens_items(&round, task, (provider, verifier), &found, answer)?;
        if let Some(audit) = Self::audit(&mut round, verifier, provider) {
            let block = frame_system::Pallet::<T>::block_number().saturated_into();
            audit.items = Some(ItemsOpened { seal, block });
        }
        Self::deposit_event(Event::ItemsRevealed {
            task,
            provider: provider.clone(),
            verifier: verifier.clone(),
            found,
            agrees: answer.agrees,
        });
        Self::note_opened(task, &mut round, (provider, verifier), answer.agrees)?;
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    /// Lets an opening in that [`Self::do_reveal_items`] carries out now, and no other.
    ///
    /// Changes nothing. It costs the round and a hash over what was found.
    ///
    /// # Errors
    /// As for an audit of the whole.
    pub(crate) fn authorize_reveal_items(
        _: TransactionSource,
        task: &TaskId,
        provider: &T::AccountId,
        verifier: &T::AccountId,
        found: &ItemsFound,
        answer: &AuditAnswer,
    ) -> TransactionValidityWithRefund {
        let round = Rounds::<T>::get(task).ok_or(InvalidTransaction::Call)?;
        Self::ensure_audits_open(&round)?;
        let opened = Self::ensure_opens_items(&round, *task, (provider, verifier), found, answer);
        opened.map_err(|error| match error {
            Error::NotRevealed => InvalidTransaction::Future,
            Error::AlreadyRevealed => InvalidTransaction::Stale,
            Error::SealMismatch => InvalidTransaction::BadProof,
            _ => InvalidTransaction::Call,
        })?;
        let validity = pooled("Results.reveal_audit", *task, &(provider, verifier));
        Ok((validity, Weight::zero()))
    }

    /// Whether this opens what the verifier sealed about the provider, and may. Returns the seal.
    fn ensure_opens_items(
        round: &RoundOf<T>,
        task: TaskId,
        (provider, verifier): (&T::AccountId, &T::AccountId),
        found: &ItemsFound,
        answer: &AuditAnswer,
    ) -> Result<H256, Error<T>> {
        let mut members = round.members.iter();
        let member = members.find(|member| member.provider == *provider);
        let member = member.ok_or(Error::<T>::NotMember)?;
        let said = member.claim().ok_or(Error::<T>::NotRevealed)?;
        let mut audits = round.audits.iter();
        let audit = audits.find(|audit| is_of::<T>(audit, verifier, provider));
        let AuditState::Sealed(seal) = audit.ok_or(Error::<T>::NotAuditor)?.state else {
            return Err(Error::<T>::AlreadyRevealed);
        };
        let opened = items_seal(task, provider, verifier, found, &answer_hashes(answer));
        ensure!(opened == seal, Error::<T>::SealMismatch);
        // Nobody confirms less of it than was its own.
        let own = member.audits.items.min(said.units);
        let is_whole = own < said.units && found.len() == own as usize;
        ensure!(!answer.agrees || is_whole, Error::<T>::IncompleteAudit);
        Ok(seal)
    }

    /// Shows that a verifier that confirmed a result by its items has sealed something else than the result's
    /// trace has of one of them: it has not computed it, and not compared it.
    pub(crate) fn do_refute_audit(
        finder: T::AccountId,
        task: TaskId,
        (provider, verifier): (T::AccountId, T::AccountId),
        (found, answer): (&ItemsFound, &AuditAnswer),
        (place, shown): (u32, &ItemLeaves),
    ) -> DispatchResult {
        let mut round = Self::round(task)?;
        let said = Self::said(&round, &provider)
            .cloned()
            .ok_or(Error::<T>::NotRevealed)?;
        let audit = Self::audit(&mut round, &verifier, &provider).ok_or(Error::<T>::NotAuditor)?;
        ensure!(audit.state == AuditState::Confirmed, Error::<T>::NothingRefuted);
        let seal = items_seal(task, &provider, &verifier, found, &answer_hashes(answer));
        let opened = audit.items.is_some_and(|opened| opened.seal == seal);
        ensure!(opened, Error::<T>::SealMismatch);
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let drawn = drawn_items(&audit.draw.0, said.units, count);
        let of_place = drawn.get(place as usize).zip(found.get(place as usize));
        let (item, sealed) = of_place.ok_or(Error::<T>::NothingRefuted)?;
        let context = DisputeContexts::<T>::get(task).ok_or(Error::<T>::NotDisputable)?;
        let root = T::Referee::item_root(&context, &said, *item, shown);
        ensure!(
            root.is_some_and(|root| root != sealed.leaves),
            Error::<T>::NothingRefuted
        );
        let auditor = (&verifier, &provider);
        Self::convict_auditor(task, &mut round, auditor, FaultKind::ConfirmedWrong, Some(finder));
        Rounds::<T>::insert(task, round);
        Ok(())
    }
}
