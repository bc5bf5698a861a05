//! Who referenda speak as beside root, and what each of these origins may do.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::traits::{EitherOf, EnsureOrigin, EnsureOriginWithArg, OriginTrait};
use frame_system::{EnsureRoot, RawOrigin};
pub use pallet::*;

use crate::{
    AccountId, Balance, OriginCaller, Runtime, RuntimeOrigin,
    params::{
        RuntimeParametersKey,
        dynamic::{
            auction::ParametersKey as Auction, provider_registry::ParametersKey as Providers,
            results::ParametersKey as Results,
        },
    },
    units::SURE,
};

// The lint takes the macro's paths for ones that could be shorter.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::pallet_prelude::*;
    use frame_system::pallet_prelude::BlockNumberFor;

    /// Gives the runtime its origins. No storage, no calls.
    #[pallet::pallet]
    pub struct Pallet<T>(_);

    /// Needs nothing.
    #[pallet::config]
    pub trait Config: frame_system::Config {}

    /// Who a referendum speaks as. Each has a track of its own.
    #[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
    #[pallet::origin]
    pub enum Origin {
        /// Has root's calls made that the technical committee has whitelisted.
        WhitelistedCaller,
        /// Sets parameters of the market.
        ParameterAdmin,
        /// Pays a little out of the treasury.
        Spender,
        /// Pays much out of the treasury, and takes back what was not paid yet.
        Treasurer,
        /// Ends a referendum that is going on.
        ReferendumCanceller,
        /// Vetoes slashes.
        SlashVetoer,
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "std")]
        fn integrity_test() {
            use crate::configs::tracks::{SlashDeferral, is_in_time};

            let deferral = SlashDeferral::get();
            assert!(is_in_time(deferral), "a veto takes longer than {deferral} blocks");
        }
    }
}

impl Config for Runtime {}

/// Most that the treasurer may spend at once.
pub const TREASURER_LIMIT: Balance = 100_000 * SURE;

/// Most that a spender may.
pub const SPENDER_LIMIT: Balance = 1_000 * SURE;

/// Root, or somebody else.
pub type RootOr<Who> = EitherOf<EnsureRoot<AccountId>, Who>;

macro_rules! ensure_origins {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("Lets [`Origin::", stringify!($name), "`] through.")]
            pub struct $name;

            impl EnsureOrigin<RuntimeOrigin> for $name {
                type Success = ();

                fn try_origin(origin: RuntimeOrigin) -> Result<(), RuntimeOrigin> {
                    match *origin.caller() == OriginCaller::Origins(Origin::$name) {
                        true => Ok(()),
                        false => Err(origin),
                    }
                }

                #[cfg(feature = "runtime-benchmarks")]
                fn try_successful_origin() -> Result<RuntimeOrigin, ()> {
                    Ok(Origin::$name.into())
                }
            }
        )*
    };
}

// Who spends is told how much: see `SpendLimit`.
ensure_origins! { WhitelistedCaller ParameterAdmin Treasurer ReferendumCanceller SlashVetoer }

/// How much of the treasury an origin may spend at once.
pub struct SpendLimit;

impl EnsureOrigin<RuntimeOrigin> for SpendLimit {
    type Success = Balance;

    fn try_origin(origin: RuntimeOrigin) -> Result<Balance, RuntimeOrigin> {
        let limit = match origin.caller() {
            OriginCaller::system(RawOrigin::Root) => Some(Balance::MAX),
            OriginCaller::Origins(Origin::Treasurer) => Some(TREASURER_LIMIT),
            OriginCaller::Origins(Origin::Spender) => Some(SPENDER_LIMIT),
            _ => None,
        };
        limit.ok_or(origin)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn try_successful_origin() -> Result<RuntimeOrigin, ()> {
        Ok(RuntimeOrigin::root())
    }
}

/// Who may set a parameter: root, and for those of the market the parameters' admin.
pub struct ParameterOrigin;

impl EnsureOriginWithArg<RuntimeOrigin, RuntimeParametersKey> for ParameterOrigin {
    type Success = ();

    fn try_origin(origin: RuntimeOrigin, key: &RuntimeParametersKey) -> Result<(), RuntimeOrigin> {
        match is_for_admin(key) {
            true => <RootOr<ParameterAdmin> as EnsureOrigin<_>>::try_origin(origin),
            false => <EnsureRoot<AccountId> as EnsureOrigin<_>>::try_origin(origin),
        }
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn try_successful_origin(_: &RuntimeParametersKey) -> Result<RuntimeOrigin, ()> {
        Ok(RuntimeOrigin::root())
    }
}

/// Whatever is new is root's alone until it stands here. So are stake, slashes, what is minted, who decides
/// and who may provide, and whatever could make a lie pay or cost honest people stake: locks, audits,
/// disputes, and the time in which somebody has to answer.
fn is_for_admin(key: &RuntimeParametersKey) -> bool {
    match key {
        RuntimeParametersKey::ModelRegistry(_) | RuntimeParametersKey::Billing(_) => true,
        RuntimeParametersKey::ProviderRegistry(key) => matches!(key, Providers::HeartbeatWindow(_)),
        RuntimeParametersKey::Auction(key) => matches!(
            key,
            Auction::BidWindow(_)
                | Auction::RevealWindow(_)
                | Auction::UnitsMax(_)
                | Auction::InputBytesMax(_)
                | Auction::RedundancyMax(_)
                | Auction::FinishedRetention(_)
        ),
        // Who is late for these is not paid, and loses nothing else.
        RuntimeParametersKey::Results(key) => {
            matches!(key, Results::CommitWindow(_) | Results::RevealWindow(_))
        }
        _ => false,
    }
}
