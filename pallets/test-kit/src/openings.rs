//! Calls without a signature, as a pool and a block take them.

use frame_support::{
    pallet_prelude::{TransactionSource, TransactionValidity},
    traits::{Authorize, UnfilteredDispatchable},
};
use frame_system::RawOrigin;
use sp_core::storage::StateVersion;
use sp_runtime::DispatchResult;

use crate::AccountId;

/// Carries an opening out. Whatever it is, a pool lets it in if and only if it succeeds, and by that nothing
/// changes.
///
/// # Panics
/// When pool and call differ, or the pool changes something.
pub fn send_opening<C>(call: C) -> DispatchResult
where
    C: Authorize + UnfilteredDispatchable,
    C::RuntimeOrigin: From<RawOrigin<AccountId>>,
{
    let before = sp_io::storage::root(StateVersion::V1);
    let validity = validity_of(&call);
    assert_eq!(sp_io::storage::root(StateVersion::V1), before);
    let done = call
        .dispatch_bypass_filter(RawOrigin::Authorized.into())
        .map(|_| ())
        .map_err(|refused| refused.error);
    assert_eq!(validity.is_ok(), done.is_ok(), "{validity:?}, {done:?}");
    done
}

/// What a pool makes of a call without a signature.
///
/// # Panics
/// When the call needs one.
pub fn validity_of(call: &impl Authorize) -> TransactionValidity {
    let (validity, _) = call
        .authorize(TransactionSource::External)
        .expect("the call needs no signature")?;
    Ok(validity)
}
