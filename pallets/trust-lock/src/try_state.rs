//! What must hold between any two blocks. The ids are explained in the README.

use frame_support::ensure;
use sp_runtime::{TryRuntimeError, traits::Zero};
use surety_types::{traits::PoolLedger, trust::SlashCause};

use crate::{Config, Convictions, JailedFor, NextSlashId, Pallet, Records, Slashes, SlashesSweptTo};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Says which does not hold.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        trust_1_slashes_wait_in_order::<T>()?;
        trust_2_jail_ends_with_its_last_term::<T>()?;
        trust_3_who_was_convicted_lately_is_kept_once::<T>()?;
        trust_4_pools_know_what_waits::<T>()
    }
}

fn trust_1_slashes_wait_in_order<T: Config>() -> Result<(), TryRuntimeError> {
    let (swept, next) = (SlashesSweptTo::<T>::get(), NextSlashId::<T>::get());
    ensure!(swept <= next, "TRUST-1: the sweep is ahead of the slashes");
    for (id, slash) in Slashes::<T>::iter() {
        ensure!(
            swept <= id && id < next && slash.proven_at <= slash.until,
            "TRUST-1: a slash that nobody will carry out"
        );
    }
    Ok(())
}

fn trust_2_jail_ends_with_its_last_term<T: Config>() -> Result<(), TryRuntimeError> {
    for (stash, kept) in JailedFor::<T>::iter() {
        ensure!(
            kept.end().is_some() && Records::<T>::get(&stash).jailed_until == kept.end(),
            "TRUST-2: a jail that ends at another time than its last term"
        );
    }
    for (stash, record) in Records::<T>::iter() {
        ensure!(
            record.jailed_until.is_none() || JailedFor::<T>::contains_key(&stash),
            "TRUST-2: a jail without a term"
        );
    }
    Ok(())
}

fn trust_3_who_was_convicted_lately_is_kept_once<T: Config>() -> Result<(), TryRuntimeError> {
    let convictions = Convictions::<T>::get();
    for (place, known) in convictions.iter().enumerate() {
        let mut earlier = convictions.iter().take(place);
        ensure!(
            !earlier.any(|other| other.offender == known.offender),
            "TRUST-3: an offender counts twice"
        );
        ensure!(
            known.faults > 0 && known.first <= known.last,
            "TRUST-3: an offender without a fault"
        );
    }
    Ok(())
}

fn trust_4_pools_know_what_waits<T: Config>() -> Result<(), TryRuntimeError> {
    for slash in
        Slashes::<T>::iter_values().filter(|slash| matches!(slash.cause, SlashCause::Equivocation(_)))
    {
        ensure!(
            T::Pools::is_pending(&slash.offender),
            "TRUST-4: a slash of a pool that lets stake go"
        );
        ensure!(
            slash.lock.is_zero() && slash.finders.is_empty(),
            "TRUST-4: a slash of a pool that takes a bond, or is shared"
        );
    }
    Ok(())
}
