//! Bonds of challengers.

use sp_runtime::traits::Saturating;
use surety_pallet_results::asset;

use crate::{Config, HoldReason};

/// Burns half of a bond, but for the part that is spared, and gives the rest back. Returns both.
pub(crate) fn halve<T: Config>(
    challenger: &T::AccountId,
    bond: T::Balance,
    spared: T::Balance,
) -> (T::Balance, T::Balance) {
    let half = T::Balance::from(Into::<u128>::into(bond.saturating_sub(spared)) / 2);
    asset::burn::<T>(HoldReason::Challenge, challenger, half);
    let rest = bond.saturating_sub(half);
    asset::release::<T>(HoldReason::Challenge, challenger, rest);
    (half, rest)
}

/// Takes a bond: half of it goes to `defender`, the rest is burned. Returns what each of the two got.
pub(crate) fn forfeit<T: Config>(
    challenger: &T::AccountId,
    defender: &T::AccountId,
    bond: T::Balance,
) -> (T::Balance, T::Balance) {
    let half = T::Balance::from(Into::<u128>::into(bond) / 2);
    let awarded = asset::hand_over::<T>(HoldReason::Challenge, challenger, defender, half);
    let rest = bond.saturating_sub(half);
    asset::burn::<T>(HoldReason::Challenge, challenger, rest);
    (awarded, bond.saturating_sub(awarded))
}
