//! Which openings of commitments are let into the pool and into blocks. They carry no signature and pay
//! nothing.

use frame_support::{
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    weights::Weight,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use surety_dispute_game::bisection::{Clocks, Game};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    opening::pooled,
    task::{MemberProgress, ResultClaim, RoundPhase},
};

use crate::{Config, DisputeContexts, DisputeReferee, Error, Pallet, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    /// Lets an opening in that [`Self::do_reveal`] carries out in this block, and no other. So what enters a
    /// block without a fee is one opening for each commitment, which was paid for.
    ///
    /// Changes nothing. It costs the round, a hash, and a look at the claim where the opening is the right
    /// one.
    ///
    /// # Errors
    /// `Future` when it is too early, `Stale` when it is too late or the commitment is open already,
    /// `BadProof` when it is not opened by this, `Call` when there is none.
    pub(crate) fn authorize_reveal(
        _: TransactionSource,
        task: &TaskId,
        provider: &T::AccountId,
        claim: &ResultClaim,
        salt: &H256,
    ) -> TransactionValidityWithRefund {
        let round = Rounds::<T>::get(task).ok_or(InvalidTransaction::Call)?;
        Self::ensure_revealing(&round)?;
        Self::ensure_opens(&round, *task, provider, claim, salt).map_err(|error| match error {
            Error::AlreadyRevealed => InvalidTransaction::Stale,
            Error::CommitmentMismatch | Error::TooManyUnits | Error::ImpossibleClaim => {
                InvalidTransaction::BadProof
            }
            _ => InvalidTransaction::Call,
        })?;
        Ok((pooled("Results.reveal", *task, provider), Weight::zero()))
    }

    /// Whether commitments of a round can be opened now, in time or late. The phase for it begins with the
    /// first that is, when nobody has advanced the round.
    pub(crate) fn ensure_revealing(round: &RoundOf<T>) -> Result<(), InvalidTransaction> {
        match round.phase {
            RoundPhase::Auditing { .. } if Self::is_audited(round) => Ok(()),
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => Err(InvalidTransaction::Future),
            RoundPhase::Revealing { .. } => Ok(()),
            RoundPhase::Challengeable { .. } => Self::ensure_still(round.reveals_until),
        }
    }

    /// Whether the time has not passed until which something has to be opened.
    pub(crate) fn ensure_still(until: Option<BlockNumberFor<T>>) -> Result<(), InvalidTransaction> {
        match until {
            Some(until) if !TrustLock::<T>::has_passed(until) => Ok(()),
            _ => Err(InvalidTransaction::Stale),
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
        // Nobody waits for it any more, and it must not make anybody wait again.
        let is_late = matches!(round.phase, RoundPhase::Challengeable { .. });
        ensure!(!is_late || member.fault.is_none(), Error::<T>::AlreadyAtFault);
        ensure!(
            surety_proofs::commitment(task, provider, claim, salt) == commitment,
            Error::<T>::CommitmentMismatch
        );
        ensure!(claim.units <= round.units_max, Error::<T>::TooManyUnits);
        ensure!(!Self::is_impossible(task, claim), Error::<T>::ImpossibleClaim);
        Ok(())
    }

    /// Whether the task has a referee, and it could not even begin with this claim.
    fn is_impossible(task: TaskId, claim: &ResultClaim) -> bool {
        let begins = |context| {
            let referee = T::Referee::claim_referee(&context, claim)?;
            Game::new(claim.trace_root, &referee, Clocks::equal(1)).ok()
        };
        DisputeContexts::<T>::get(task).is_some_and(|context| begins(context).is_none())
    }
}
