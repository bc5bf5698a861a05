//! Which openings of commitments are let into the pool and into blocks. They carry no signature and pay nothing.

use frame_support::{
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    traits::Get,
    weights::Weight,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{traits::Saturating, SaturatedConversion};
use surety_types::{
    opening::pooled,
    task::{MemberProgress, ResultClaim, RoundPhase},
    TaskId,
};

use crate::{Config, Error, Pallet, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    /// Lets an opening in that [`Self::do_reveal`] carries out in this block, and no other. So what enters a block without
    /// a fee is one opening for each commitment, which was paid for.
    ///
    /// Changes nothing. It costs the round, a hash, and a look at the claim where the opening is the right one.
    ///
    /// # Errors
    /// `Future` when it is too early, `Stale` when it is too late or the commitment is open already, `BadProof` when it is
    /// not opened by this, `Call` when there is none.
    pub(crate) fn authorize_reveal(
        _: TransactionSource,
        task: &TaskId,
        provider: &T::AccountId,
        claim: &ResultClaim,
        salt: &H256,
    ) -> TransactionValidityWithRefund {
        let round = Rounds::<T>::get(task).ok_or(InvalidTransaction::Call)?;
        let until = Self::reveals_until(&round)?;
        Self::ensure_opens(&round, *task, provider, claim, salt).map_err(|error| match error {
            Error::AlreadyRevealed => InvalidTransaction::Stale,
            Error::CommitmentMismatch | Error::TooManyUnits | Error::ImpossibleClaim => {
                InvalidTransaction::BadProof
            }
            _ => InvalidTransaction::Call,
        })?;
        let now = frame_system::Pallet::<T>::block_number();
        let blocks_left: u64 = until.saturating_sub(now).saturated_into();
        Ok((
            pooled("TrustLock.reveal", *task, provider, blocks_left),
            Weight::zero(),
        ))
    }

    /// The last block in which commitments of a round can be opened, if they can in this one. The phase for it begins with
    /// the first that is, when nobody has advanced the round.
    pub(crate) fn reveals_until(round: &RoundOf<T>) -> Result<BlockNumberFor<T>, InvalidTransaction> {
        match round.phase {
            RoundPhase::Auditing { until } if Self::has_passed(until) => {
                Ok(Self::window_end(T::RevealWindow::get()))
            }
            RoundPhase::Revealing { until } if !Self::has_passed(until) => Ok(until),
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => Err(InvalidTransaction::Future),
            RoundPhase::Revealing { .. } | RoundPhase::Challengeable { .. } => Err(InvalidTransaction::Stale),
        }
    }

    /// Whether claim and salt open what the provider committed to, and may.
    pub(crate) fn ensure_opens(
        round: &RoundOf<T>,
        task: TaskId,
        provider: &T::AccountId,
        claim: &ResultClaim,
        salt: &H256,
    ) -> Result<(), Error<T>> {
        let mut members = round.members.iter();
        let member = members
            .find(|member| member.provider == *provider)
            .ok_or(Error::<T>::NotMember)?;
        let commitment = match member.progress {
            MemberProgress::Working => Err(Error::<T>::NotCommitted),
            MemberProgress::Committed(commitment) => Ok(commitment),
            MemberProgress::Revealed(_) => Err(Error::<T>::AlreadyRevealed),
        }?;
        ensure!(
            surety_verification::commitment(task, provider, claim, salt) == commitment,
            Error::<T>::CommitmentMismatch
        );
        ensure!(claim.units <= round.units_max, Error::<T>::TooManyUnits);
        ensure!(!Self::is_impossible(task, claim), Error::<T>::ImpossibleClaim);
        Ok(())
    }
}
