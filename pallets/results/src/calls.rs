//! What accounts do.

mod audits;
mod data;
mod equivocation;
mod inputs;
mod items;
mod openings;
mod work;

#[cfg(any(feature = "std", feature = "try-runtime", feature = "runtime-benchmarks"))]
pub(crate) use data::held;

use frame_support::ensure;
use sp_runtime::DispatchError;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    stake::Role,
    task::{RoundMember, RoundPhase},
    traits::StakeLedger,
};

use crate::{Config, Error, Pallet, RoundOf, Rounds};

impl<T: Config> Pallet<T> {
    /// The round of a running task.
    ///
    /// # Errors
    /// `UnknownRound`.
    pub fn round(task: TaskId) -> Result<RoundOf<T>, DispatchError> {
        Ok(Rounds::<T>::get(task).ok_or(Error::<T>::UnknownRound)?)
    }

    fn provider_of(agent: &T::AccountId) -> Result<T::AccountId, DispatchError> {
        Ok(T::Stake::stash_of(agent, Role::Provider).ok_or(Error::<T>::NotProviderAgent)?)
    }

    /// The stash that an agent audits for.
    ///
    /// # Errors
    /// `NotVerifierAgent`.
    pub fn verifier_of(agent: &T::AccountId) -> Result<T::AccountId, DispatchError> {
        Ok(T::Stake::stash_of(agent, Role::Verifier).ok_or(Error::<T>::NotVerifierAgent)?)
    }

    /// A provider of a round.
    ///
    /// # Errors
    /// `NotMember`.
    pub fn member<'a>(
        round: &'a mut RoundOf<T>,
        provider: &T::AccountId,
    ) -> Result<&'a mut RoundMember<T::AccountId, T::Balance>, DispatchError> {
        let member = round
            .members
            .iter_mut()
            .find(|member| member.provider == *provider);
        Ok(member.ok_or(Error::<T>::NotMember)?)
    }

    /// Refuses what can only be done while the verdict can be challenged.
    ///
    /// # Errors
    /// `WrongPhase`.
    pub fn ensure_challengeable(round: &RoundOf<T>) -> Result<(), DispatchError> {
        let open = matches!(round.phase, RoundPhase::Challengeable { until, .. } if !TrustLock::<T>::has_passed(until));
        ensure!(open, Error::<T>::WrongPhase);
        Ok(())
    }
}
