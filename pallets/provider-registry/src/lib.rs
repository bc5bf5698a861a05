#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

extern crate alloc;

pub use pallet::*;
pub use weights::WeightInfo;

#[cfg(feature = "runtime-benchmarks")]
mod benchmarking;
mod calls;
mod directory;
#[cfg(test)]
mod mock;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "std", feature = "try-runtime"))]
mod try_state;
mod view;
mod weights;

use frame_system::pallet_prelude::BlockNumberFor;
use surety_types::{history::ProviderView, provider::Provider};

/// A registered provider.
pub type ProviderOf<T> = Provider<BlockNumberFor<T>>;

/// A provider, as clients see it.
pub type ProviderViewOf<T> = ProviderView<<T as frame_system::Config>::AccountId, BlockNumberFor<T>>;

/// The pallet itself; see the crate's documentation.
// The pallet macro turns its own attributes into paths that this lint finds too long.
#[allow(unused_qualifications)]
#[frame_support::pallet]
pub mod pallet {
    use frame_support::{pallet_prelude::*, traits::tokens};
    use frame_system::pallet_prelude::*;
    use surety_types::{
        ModelId, TaskId,
        history::{Page, TaskHistory},
        multiaddr::{Endpoints, MultiaddrFault},
        provider::DeviceProfile,
        traits::{Admission, Jail, MeasuredSpeed, StakeLedger},
    };

    use super::*;

    const STORAGE_VERSION: StorageVersion = StorageVersion::new(0);

    /// The pallet.
    #[pallet::pallet]
    #[pallet::storage_version(STORAGE_VERSION)]
    pub struct Pallet<T>(_);

    /// What the pallet needs of a runtime.
    #[pallet::config]
    pub trait Config: frame_system::Config {
        /// Balances of the ledger of stake. No money moves here.
        type Balance: tokens::Balance;

        /// Says which stash an agent acts for.
        type Stake: StakeLedger<Self::AccountId, Self::Balance>;

        /// Blocks for which a sign of life counts.
        type HeartbeatWindow: Get<BlockNumberFor<Self>>;

        /// Who may provide.
        type Admission: Admission<Self::AccountId>;

        /// Who gets no work because it was at fault.
        type Jail: Jail<Self::AccountId>;

        /// How fast providers were measured to be.
        type Speed: MeasuredSpeed<Self::AccountId>;

        /// Who worked on what, for views alone.
        type Tasks: TaskHistory<Self::AccountId, Self::Balance>;

        /// Weights of the calls.
        type WeightInfo: WeightInfo;
    }

    /// Each provider, by its stash.
    #[pallet::storage]
    pub type Providers<T: Config> = StorageMap<_, Blake2_128Concat, T::AccountId, ProviderOf<T>>;

    /// What happened.
    #[pallet::event]
    #[pallet::generate_deposit(pub(crate) fn deposit_event)]
    pub enum Event<T: Config> {
        /// A provider entered the list.
        Registered {
            /// Provider's stash.
            provider: T::AccountId,
        },
        /// A provider brought its entry up to date.
        Updated {
            /// Provider's stash.
            provider: T::AccountId,
        },
        /// A provider gave a sign of life.
        HeartbeatReceived {
            /// Provider's stash.
            provider: T::AccountId,
        },
        /// A provider left the list.
        Deregistered {
            /// Provider's stash.
            provider: T::AccountId,
        },
    }

    /// Why a call was refused.
    #[pallet::error]
    pub enum Error<T> {
        /// The caller is not the agent of a bonded provider. Bond the stash as a provider, name the caller by
        /// `set_agent`, and confirm with it.
        NotAgent,
        /// The provider is not on the list. Register it first.
        NotRegistered,
        /// No endpoint was given. Name at least one at which clients and auditors reach the provider.
        NoEndpoints,
        /// An endpoint is not `/`-separated printable ASCII. Write it like
        /// `/ip4/203.0.113.7/udp/4001/quic-v1/p2p/PEER-ID`.
        MultiaddrSyntax,
        /// The host part of an endpoint is none. Use `ip4`, `ip6`, `dns`, `dns4` or `dns6` with a value of
        /// that kind.
        MultiaddrHost,
        /// The transport part of an endpoint is none. Use `tcp/PORT` or `udp/PORT/quic-v1`, with a port that
        /// is not 0.
        MultiaddrTransport,
        /// An endpoint does not end in `p2p/PEER-ID`. Add the peer id, so that whoever answers can be
        /// authenticated.
        MultiaddrPeerId,
        /// Providers have to have an identity that a registrar has judged, and the stash has none. Set one by
        /// `Identity.set_identity`, ask for a judgement, and register once it is `Reasonable` or `KnownGood`.
        NotAdmitted,
    }

    impl<T> From<MultiaddrFault> for Error<T> {
        fn from(fault: MultiaddrFault) -> Self {
            match fault {
                MultiaddrFault::Syntax => Error::MultiaddrSyntax,
                MultiaddrFault::Host => Error::MultiaddrHost,
                MultiaddrFault::Transport => Error::MultiaddrTransport,
                MultiaddrFault::PeerId => Error::MultiaddrPeerId,
            }
        }
    }

    #[pallet::hooks]
    impl<T: Config> Hooks<BlockNumberFor<T>> for Pallet<T> {
        #[cfg(feature = "try-runtime")]
        fn try_state(_now: BlockNumberFor<T>) -> Result<(), sp_runtime::TryRuntimeError> {
            Self::do_try_state()
        }
    }

    #[pallet::view_functions]
    impl<T: Config> Pallet<T> {
        /// A provider by its stash, and whether it would be given work now; nothing when it is not on the
        /// list.
        pub fn provider(stash: T::AccountId) -> Option<ProviderViewOf<T>> {
            Self::view(stash)
        }

        /// Providers that were given tasks of a model lately, and can be expected to bid for the next one:
        /// each once in a page. Nobody declares which models it has. A page looks at 256 numbers of tasks,
        /// the newest, or those before `before`: where the page before it says to go on.
        pub fn providers_of(model: ModelId, before: Option<TaskId>) -> Page<ProviderViewOf<T>> {
            Self::page_of(model, before)
        }
    }

    /// Calls; each is an origin check and a `do_*`.
    #[pallet::call(weight = <T as Config>::WeightInfo)]
    impl<T: Config> Pallet<T> {
        /// Lists the provider that the caller is the agent of, or brings its entry up to date. Counts as a
        /// heartbeat.
        #[pallet::call_index(0)]
        pub fn register(origin: OriginFor<T>, device: DeviceProfile, endpoints: Endpoints) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_register(agent, device, endpoints)
        }

        /// Gives a sign of life for the provider that the caller is the agent of.
        #[pallet::call_index(1)]
        pub fn heartbeat(origin: OriginFor<T>) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_heartbeat(agent)
        }

        /// Takes the caller off the list, or else the provider that it is the agent of.
        #[pallet::call_index(2)]
        pub fn deregister(origin: OriginFor<T>) -> DispatchResult {
            let who = ensure_signed(origin)?;
            Self::do_deregister(who)
        }
    }
}
