//! A second asset that providers have on hold beside their stake.
//!
//! It is asked for whenever a provider bonds, not when more is asked of everybody: like `MinBond`, that
//! reaches those who bond next. What a slash takes of the stake it takes of the collateral, too. It is given
//! back with the last of the stake.

use core::marker::PhantomData;

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use frame_support::traits::{
    Defensive,
    fungibles::{Inspect, hold},
    tokens::{self, Fortitude, Precision},
};
use scale_info::TypeInfo;
use sp_arithmetic::MultiplyRational;
use sp_runtime::{
    DispatchResult, Rounding,
    traits::{Saturating, Zero},
};

use crate::{BalanceOf, Collaterals, Config, Error, HoldReason};

/// What a stash has on hold beside its stake.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct HeldCollateral<AssetId, Balance> {
    /// The asset.
    pub asset: AssetId,
    /// How much of it, in its smallest unit. Never zero.
    pub amount: Balance,
}

/// Says what is asked of providers, and keeps it. `()` asks for nothing.
pub trait Collateral<AccountId, Balance> {
    /// Names an asset.
    type AssetId: tokens::AssetId;

    /// The asset, and how much of it each provider that bonds now has to have on hold.
    fn required() -> Option<(Self::AssetId, Balance)>;

    /// What `who` has on hold for this reason.
    fn held(asset: &Self::AssetId, who: &AccountId) -> Balance;

    /// Puts `amount` on hold.
    ///
    /// # Errors
    /// The asset's own, when less than that is free.
    fn hold(asset: &Self::AssetId, who: &AccountId, amount: Balance) -> DispatchResult;

    /// Sets all of `amount` free.
    ///
    /// # Errors
    /// The asset's own, when the account cannot take it; nothing changes then.
    fn release(asset: &Self::AssetId, who: &AccountId, amount: Balance) -> DispatchResult;

    /// Burns up to `amount` of what is on hold. Returns what was burned.
    fn burn(asset: &Self::AssetId, who: &AccountId, amount: Balance) -> Balance;

    /// Asks for an asset that nobody has had on hold yet, and gives `who` enough of it, for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn demand_for_benchmark(who: &AccountId);
}

impl<AccountId, Balance: tokens::Balance> Collateral<AccountId, Balance> for () {
    type AssetId = ();

    fn required() -> Option<((), Balance)> {
        None
    }

    fn held((): &(), _: &AccountId) -> Balance {
        Zero::zero()
    }

    fn hold((): &(), _: &AccountId, _: Balance) -> DispatchResult {
        Ok(())
    }

    fn release((): &(), _: &AccountId, _: Balance) -> DispatchResult {
        Ok(())
    }

    fn burn((): &(), _: &AccountId, _: Balance) -> Balance {
        Zero::zero()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn demand_for_benchmark(_: &AccountId) {}
}

/// What is asked of providers. Provided by the runtime.
pub trait CollateralTerms<AccountId, AssetId, Balance> {
    /// As [`Collateral::required`].
    fn required() -> Option<(AssetId, Balance)>;

    /// As [`Collateral::demand_for_benchmark`].
    #[cfg(feature = "runtime-benchmarks")]
    fn demand_for_benchmark(who: &AccountId);
}

/// Collateral in one of `Assets`, by `Terms`.
pub struct AssetCollateral<Assets, Terms>(PhantomData<(Assets, Terms)>);

impl<AccountId, Assets, Terms> Collateral<AccountId, <Assets as Inspect<AccountId>>::Balance>
    for AssetCollateral<Assets, Terms>
where
    Assets: hold::Mutate<AccountId, Reason: From<HoldReason>>,
    Terms: CollateralTerms<
            AccountId,
            <Assets as Inspect<AccountId>>::AssetId,
            <Assets as Inspect<AccountId>>::Balance,
        >,
{
    type AssetId = <Assets as Inspect<AccountId>>::AssetId;

    fn required() -> Option<(Self::AssetId, <Assets as Inspect<AccountId>>::Balance)> {
        Terms::required()
    }

    fn held(asset: &Self::AssetId, who: &AccountId) -> <Assets as Inspect<AccountId>>::Balance {
        Assets::balance_on_hold(asset.clone(), &HoldReason::Collateral.into(), who)
    }

    fn hold(
        asset: &Self::AssetId,
        who: &AccountId,
        amount: <Assets as Inspect<AccountId>>::Balance,
    ) -> DispatchResult {
        Assets::hold(asset.clone(), &HoldReason::Collateral.into(), who, amount)
    }

    fn release(
        asset: &Self::AssetId,
        who: &AccountId,
        amount: <Assets as Inspect<AccountId>>::Balance,
    ) -> DispatchResult {
        let reason = HoldReason::Collateral.into();
        Assets::release(asset.clone(), &reason, who, amount, Precision::Exact).map(|_| ())
    }

    fn burn(
        asset: &Self::AssetId,
        who: &AccountId,
        amount: <Assets as Inspect<AccountId>>::Balance,
    ) -> <Assets as Inspect<AccountId>>::Balance {
        let (reason, force) = (HoldReason::Collateral.into(), Fortitude::Force);
        Assets::burn_held(asset.clone(), &reason, who, amount, Precision::BestEffort, force)
            .defensive_unwrap_or_default()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn demand_for_benchmark(who: &AccountId) {
        Terms::demand_for_benchmark(who);
    }
}

/// Puts on hold what is missing of what is asked for now. An asset that no longer is makes way for the one
/// that is.
pub(crate) fn secure<T: Config>(stash: &T::AccountId) -> DispatchResult {
    let Some((asset, least)) = T::Collateral::required() else {
        return Ok(());
    };
    let before = Collaterals::<T>::get(stash);
    let (same, other) = match before {
        Some(held) if held.asset == asset => (held.amount, false),
        before => (Zero::zero(), before.is_some()),
    };
    let missing = least.saturating_sub(same);
    if !missing.is_zero() {
        T::Collateral::hold(&asset, stash, missing).map_err(|_| Error::<T>::NotEnoughCollateral)?;
    }
    if other {
        give_back::<T>(stash)?;
    }
    if !missing.is_zero() {
        let amount = same.saturating_add(missing);
        Collaterals::<T>::insert(stash, HeldCollateral { asset, amount });
    }
    Ok(())
}

/// Burns the same part of the collateral as was taken of all the stake there was, rounded up.
pub(crate) fn slash<T: Config>(stash: &T::AccountId, taken: BalanceOf<T>, stake: BalanceOf<T>) {
    let Some(HeldCollateral { asset, amount }) = Collaterals::<T>::get(stash) else {
        return;
    };
    let lost = amount
        .multiply_rational(taken, stake, Rounding::Up)
        .unwrap_or(amount);
    let burned = T::Collateral::burn(&asset, stash, lost.min(amount));
    // The record follows what was really burned, so that it cannot come to differ from the hold.
    let amount = amount.saturating_sub(burned);
    if amount.is_zero() {
        Collaterals::<T>::remove(stash);
    } else {
        Collaterals::<T>::insert(stash, HeldCollateral { asset, amount });
    }
}

/// Gives all of it back, where there is any.
pub(crate) fn give_back<T: Config>(stash: &T::AccountId) -> DispatchResult {
    if let Some(held) = Collaterals::<T>::get(stash) {
        T::Collateral::release(&held.asset, stash, held.amount)?;
        Collaterals::<T>::remove(stash);
    }
    Ok(())
}
