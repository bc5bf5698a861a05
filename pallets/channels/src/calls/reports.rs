//! What anybody can show: a provider that said two things, or committed to what is none of its receipts.
//!
//! All of it is decided here and at once, by what was signed or committed alone. A conviction takes the whole
//! standing lock and everything that is not final: a lie that is split over many batches costs no less than
//! one.

use frame_support::{BoundedVec, ensure, traits::Get};
use sp_runtime::DispatchResult;
use surety_channels::{
    BatchEvidence, BatchFault, BatchNumber, Committed, Equivocation, Said, SignedChunkStatement,
};
use surety_types::trust::FaultKind;

use crate::{
    Batches, Config, Convictions, Error, Event, NextChannel, Pallet, Provider, SignedBytes, Since, Standings,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_report_equivocation(
        reporter: &T::AccountId,
        equivocation: &Equivocation<T::AccountId>,
    ) -> DispatchResult {
        let said = &equivocation.one.statement;
        let (payee, channel) = (said.payee.clone(), said.channel);
        let provider = Self::standing(&payee)?;
        // A channel that nobody has opened says as much as one that there is.
        ensure!(provider.since.channel <= channel, Error::<T>::TooLate);
        Self::ensure_signer(&provider, &equivocation.one)?;
        Self::ensure_signer(&provider, &equivocation.other)?;
        let clash = equivocation.verify(&T::Genesis::get(), T::Signatures::is_signed);
        ensure!(clash.is_some(), Error::<T>::NoFault);
        Self::convict(payee, provider, FaultKind::Equivocation, reporter);
        Ok(())
    }

    pub(crate) fn do_report_batch(
        reporter: &T::AccountId,
        payee: &T::AccountId,
        batch: BatchNumber,
        other: Option<BatchNumber>,
        evidence: &BatchEvidence<T::AccountId>,
    ) -> DispatchResult {
        let provider = Self::standing(payee)?;
        let root = |batch| -> Result<_, Error<T>> {
            ensure!(provider.since.batch <= batch, Error::<T>::TooLate);
            let record = Batches::<T>::get(payee, batch).ok_or(Error::<T>::NoBatch)?;
            Ok(record.window.root)
        };
        let committed = Committed {
            genesis: T::Genesis::get(),
            payee: payee.clone(),
            batch: root(batch)?,
            other: other.map(root).transpose()?,
        };
        if let BatchEvidence::Contradiction { batched, said, .. } = evidence {
            let channel = batched.statement.channel;
            ensure!(provider.since.channel <= channel, Error::<T>::TooLate);
            if let Said::Signed(signed) = said {
                Self::ensure_signer(&provider, signed)?;
            }
        }
        let fault = evidence.verify(&committed, T::Signatures::is_signed);
        let kind = match fault.ok_or(Error::<T>::NoFault)? {
            BatchFault::Contradicted(_) => FaultKind::Equivocation,
            _ => FaultKind::FalseBatch,
        };
        Self::convict(payee.clone(), provider, kind, reporter);
        Ok(())
    }

    /// A provider that has something to lose.
    pub(crate) fn standing(payee: &T::AccountId) -> Result<Provider<T::AccountId>, Error<T>> {
        let provider = Standings::<T>::get(payee).filter(|provider| provider.lock > 0);
        provider.ok_or(Error::<T>::TooLate)
    }

    pub(crate) fn ensure_signer(
        provider: &Provider<T::AccountId>,
        signed: &SignedChunkStatement<T::AccountId>,
    ) -> Result<(), Error<T>> {
        let is_known = provider.signers.contains(&signed.agent);
        ensure!(is_known, Error::<T>::UnknownSigner);
        Ok(())
    }

    /// Takes the standing lock, and voids every batch that is not final. The provider may begin again, with
    /// a new lock, new signers and new channels.
    pub(crate) fn convict(
        stash: T::AccountId,
        provider: Provider<T::AccountId>,
        kind: FaultKind,
        reporter: &T::AccountId,
    ) {
        let lock = Self::take_standing(&stash, provider);
        T::Convictions::convict(&stash, kind, lock, Some(reporter));
        Self::deposit_event(Event::Convicted {
            offender: stash,
            kind,
            by: Some(reporter.clone()),
        });
    }

    /// Returns the standing lock, which stays locked and is nothing's any more.
    pub(crate) fn take_standing(stash: &T::AccountId, mut provider: Provider<T::AccountId>) -> u128 {
        let now = Self::now();
        for batch in &provider.unfinished {
            Self::change_batch(stash, *batch, |record| {
                if !record.window.is_final(now) {
                    record.window.void();
                }
            });
        }
        Self::end_offers(stash, &mut provider);
        let lock = core::mem::take(&mut provider.lock);
        provider.standing.cap = 0;
        provider.is_leaving = false;
        provider.signers = BoundedVec::new();
        provider.since = Since {
            channel: NextChannel::<T>::get(),
            batch: provider.next,
        };
        Standings::<T>::insert(stash, provider);
        lock
    }
}
