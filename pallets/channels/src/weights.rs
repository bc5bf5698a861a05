//! What the calls weigh.

use frame_support::weights::Weight;

macro_rules! weights {
    ($($call:ident),*) => {
        /// Weights of the calls, each at its worst.
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
    top_up,
    extend,
    stand,
    commit_batch,
    redeem,
    hold,
    close,
    close_agreed,
    end,
    sweep_one
);
