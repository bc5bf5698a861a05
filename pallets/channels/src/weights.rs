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
    add_signer,
    report_equivocation,
    report_batch,
    dispute,
    demand_receipt,
    demand_point,
    show_receipt,
    show_point,
    end_demand,
    announce_points,
    open_points,
    authorize_open_points,
    refute_points,
    end_points,
    offer,
    withdraw_offer,
    report_busy,
    sweep_one,
    sweep_batches
);
