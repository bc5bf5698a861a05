//! What must hold between any two blocks. The ids are explained in the README.

use frame_support::{ensure, traits::Get};
use pallet_session::{Pallet as Session, historical::HistoricalSessions};
use sp_runtime::TryRuntimeError;
use surety_types::traits::ValidatorPenalties;

use crate::{Authored, Candidates, Config, KeyOwners, Pallet, Punished, RunningKeys, Services};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        validator_1_who_signs_can_be_proved::<T>()?;
        validator_2_the_running_keys_are_the_validators::<T>()?;
        validator_3_candidates_are_bounded_and_free::<T>()?;
        validator_4_candidates_alone_are_paid::<T>()?;
        validator_5_validators_alone_make_blocks::<T>()?;
        validator_6_parts_only_rise::<T>()
    }
}

fn validator_1_who_signs_can_be_proved<T: Config>() -> Result<(), TryRuntimeError> {
    let running = Session::<T>::current_index();
    for session in [running, running.saturating_add(1)] {
        ensure!(
            HistoricalSessions::<T>::get(session) == KeyOwners::<T>::root_of(session),
            "VALIDATOR-1: a session has another root than its keys"
        );
    }
    Ok(())
}

fn validator_2_the_running_keys_are_the_validators<T: Config>() -> Result<(), TryRuntimeError> {
    let running = RunningKeys::<T>::get();
    ensure!(
        running
            .iter()
            .map(|(operator, _)| operator)
            .eq(&Session::<T>::validators()),
        "VALIDATOR-2: keys of others than the validators"
    );
    Ok(())
}

fn validator_3_candidates_are_bounded_and_free<T: Config>() -> Result<(), TryRuntimeError> {
    ensure!(
        Candidates::<T>::count() <= T::CandidatesMax::get(),
        "VALIDATOR-3: more candidates than there may be"
    );
    for (operator, candidate) in Candidates::<T>::iter() {
        ensure!(
            !candidate.wants_to || !Pallet::<T>::has_bond(&operator) || !T::Penalties::is_in_jail(&operator),
            "VALIDATOR-3: who is in jail can be elected"
        );
    }
    Ok(())
}

fn validator_4_candidates_alone_are_paid<T: Config>() -> Result<(), TryRuntimeError> {
    let paid = Services::<T>::iter_keys().all(Candidates::<T>::contains_key);
    ensure!(paid, "VALIDATOR-4: who is no candidate would be paid");
    Ok(())
}

fn validator_5_validators_alone_make_blocks<T: Config>() -> Result<(), TryRuntimeError> {
    let validators = Session::<T>::validators();
    let known = Authored::<T>::iter_keys().all(|author| validators.contains(&author));
    ensure!(known, "VALIDATOR-5: who is no validator made a block");
    Ok(())
}

fn validator_6_parts_only_rise<T: Config>() -> Result<(), TryRuntimeError> {
    for (_, punishment) in Punished::<T>::iter() {
        ensure!(
            punishment.before <= punishment.part,
            "VALIDATOR-6: less is lost in all than before"
        );
    }
    Ok(())
}
