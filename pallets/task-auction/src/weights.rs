//! What the calls and the sweep cost. A runtime uses the figures that its own benchmarks gave.

use frame_support::weights::Weight;

/// Costs of this pallet's work, each measured at its bounds.
pub trait WeightInfo {
    /// [`crate::Pallet::post`], with the most sources.
    fn post() -> Weight;
    /// [`crate::Pallet::bid`], where there is a place.
    fn bid() -> Weight;
    /// [`crate::Pallet::bid`], the first that displaces another.
    fn displace_bid() -> Weight;
    /// [`crate::Pallet::reveal_bid`], the first of its task.
    fn reveal_bid() -> Weight;
    /// An opening of a bid is found to be right.
    fn authorize_reveal_bid() -> Weight;
    /// [`crate::Pallet::cancel`], with `b` deposits to give back, and the fee to take where there are any.
    fn cancel(b: u32) -> Weight;
    /// A step that opens the reveals.
    fn open_reveals() -> Weight;
    /// A step that draws providers from `b` opened bids, the redundancy being the highest.
    fn draw(b: u32) -> Weight;
    /// What a draw costs more for `b` bids that were not opened.
    fn forfeit(b: u32) -> Weight;
    /// A verdict for which `m` providers and `a` auditors are paid.
    fn decided(m: u32, a: u32) -> Weight;
    /// Calling in reserves, of the most there can be.
    fn take_reserves() -> Weight;
    /// A step that removes a finished task with `b` bids.
    fn remove(b: u32) -> Weight;
    /// A sweep that finds nothing to look at.
    fn sweep_base() -> Weight;
    /// Looking at one block of the agenda, for as many entries as are read at once.
    fn sweep_look() -> Weight;
    /// Looking whether there is entropy for one task that waits for it.
    fn sweep_entropy() -> Weight;
    /// Taking one task off the agenda and putting it back for later.
    fn sweep_task() -> Weight;
}

/// Round figures for tests: enough for a bounded sweep to notice its bound.
impl WeightInfo for () {
    fn post() -> Weight {
        Weight::from_parts(50_000, 0)
    }
    fn bid() -> Weight {
        Weight::from_parts(40_000, 0)
    }
    fn displace_bid() -> Weight {
        Weight::from_parts(90_000, 0)
    }
    fn reveal_bid() -> Weight {
        Weight::from_parts(40_000, 0)
    }
    fn authorize_reveal_bid() -> Weight {
        Weight::from_parts(10_000, 0)
    }
    fn cancel(b: u32) -> Weight {
        Weight::from_parts(40_000, 0).saturating_add(Weight::from_parts(5_000, 0).saturating_mul(b.into()))
    }
    fn open_reveals() -> Weight {
        Weight::from_parts(10_000, 0)
    }
    fn draw(b: u32) -> Weight {
        Weight::from_parts(100_000, 0).saturating_add(Weight::from_parts(5_000, 0).saturating_mul(b.into()))
    }
    fn forfeit(b: u32) -> Weight {
        Weight::from_parts(10_000, 0).saturating_mul(b.into())
    }
    fn decided(m: u32, a: u32) -> Weight {
        let paid = u64::from(m).saturating_add(a.into());
        Weight::from_parts(50_000, 0).saturating_add(Weight::from_parts(10_000, 0).saturating_mul(paid))
    }
    fn take_reserves() -> Weight {
        Weight::from_parts(20_000, 0)
    }
    fn remove(b: u32) -> Weight {
        Weight::from_parts(10_000, 0).saturating_add(Weight::from_parts(1_000, 0).saturating_mul(b.into()))
    }
    fn sweep_base() -> Weight {
        Weight::from_parts(1_000, 0)
    }
    fn sweep_look() -> Weight {
        Weight::from_parts(2_000, 0)
    }
    fn sweep_entropy() -> Weight {
        Weight::from_parts(2_000, 0)
    }
    fn sweep_task() -> Weight {
        Weight::from_parts(5_000, 0)
    }
}
