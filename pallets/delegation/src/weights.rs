//! What the calls weigh. Each is benchmarked at its worst: a full pool, a delegator with as much as one can
//! have, something to pay and something to burn wherever that can be.

use frame_support::weights::Weight;

macro_rules! weights {
    ($($call:ident),*) => {
        /// Weights of the calls, and of what other pallets have done, each at its worst.
        pub trait WeightInfo {
            $(
                #[doc = concat!("Weight of `", stringify!($call), "`.")]
                fn $call() -> Weight;
            )*
        }

        /// For tests, where nothing is charged.
        impl WeightInfo for () {
            $(fn $call() -> Weight {
                Weight::zero()
            })*
        }
    };
}

weights!(
    open,
    delegate,
    undelegate,
    redelegate,
    withdraw,
    claim,
    settle,
    set_commission,
    reward,
    note_pending,
    slash
);
