//! The sweep: tasks move on although nobody calls.
//!
//! - Triggered by `on_idle`, with what a block's extrinsics left. Nothing relies on it: calls look at the
//!   time themselves.
//! - Holds the draws that are due, by blocks; then walks the agenda, time by time, from [`AgendaSweptTo`] to
//!   what the clock shows. Never starts a task for which the worst step would not fit; the cursor passes a
//!   time only when nothing is left in it.
//! - A task that fails leaves no trace but an event and is put on the agenda again, [`RETRY_BLOCKS`] later;
//!   a draw that fails is tried again in the next block.
//! - Nothing is ever put on the agenda for the present time or before, so what is read in one go stays as it
//!   is.

use alloc::vec::Vec;
use frame_support::{
    storage::with_storage_layer,
    weights::{Weight, WeightMeter},
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    DispatchError,
    traits::{One, Saturating},
};
use surety_types::{TaskId, traits::TaskClock};

use crate::{Agenda, AgendaSweptTo, Config, Draws, Event, Pallet, WeightInfo, step::Step};

/// Most agenda entries read in one go. Reading one by one would walk over what was just removed again and
/// again.
pub(crate) const LOOK_TASKS_MAX: u32 = 16;

/// How many times as many draws are looked at in one go: tasks that were posted together are drawn together.
const DRAW_LOOKS: u32 = 4;

/// Time until a step that failed is tried again: some time for the cause to go away, without flooding the
/// events.
pub(crate) const RETRY_BLOCKS: u32 = 16;

impl<T: Config> Pallet<T> {
    /// Advances tasks whose time has come, as far as `limit` allows. Returns what it used.
    pub(crate) fn sweep(limit: Weight) -> Weight {
        let mut meter = WeightMeter::with_limit(limit);
        if meter.try_consume(T::WeightInfo::sweep_base()).is_err() {
            return meter.consumed();
        }
        if !Self::sweep_draws(&mut meter) {
            return meter.consumed();
        }
        let now = Self::now();
        let started = AgendaSweptTo::<T>::get();
        let mut swept = started;
        while swept < now {
            let time = swept.saturating_add(One::one());
            if !Self::sweep_time(time, &mut meter) {
                break;
            }
            swept = time;
        }
        if swept != started {
            AgendaSweptTo::<T>::put(swept);
        }
        meter.consumed()
    }

    /// Looks at draws that wait. Says whether there is room for more.
    fn sweep_draws(meter: &mut WeightMeter) -> bool {
        let looks = T::WeightInfo::sweep_look().saturating_mul(DRAW_LOOKS.into());
        if meter.try_consume(looks).is_err() {
            return false;
        }
        let most = LOOK_TASKS_MAX.saturating_mul(DRAW_LOOKS) as usize;
        let waiting: Vec<_> = Draws::<T>::iter_keys().take(most).collect();
        for id in waiting {
            if !meter.can_consume(Self::sweep_task_weight_max()) {
                return false;
            }
            meter.consume(Self::sweep_draw(id));
        }
        true
    }

    /// Whether nothing is left of the time.
    fn sweep_time(time: BlockNumberFor<T>, meter: &mut WeightMeter) -> bool {
        let task_max = Self::sweep_task_weight_max();
        loop {
            if meter.try_consume(T::WeightInfo::sweep_look()).is_err() {
                return false;
            }
            let due = Self::look(time);
            if due.is_empty() {
                return true;
            }
            for id in due {
                if !meter.can_consume(task_max) {
                    return false;
                }
                meter.consume(Self::sweep_task(time, id));
            }
        }
    }

    pub(crate) fn look(time: BlockNumberFor<T>) -> Vec<TaskId> {
        Agenda::<T>::iter_key_prefix(time)
            .take(LOOK_TASKS_MAX as usize)
            .collect()
    }

    pub(crate) fn sweep_task(time: BlockNumberFor<T>, id: TaskId) -> Weight {
        Agenda::<T>::remove(time, id);
        let step = with_storage_layer(|| Self::step(id));
        let weight = step
            .as_ref()
            .map_or_else(|_| Self::step_weight_max(), Step::weight::<T>);
        match step {
            Ok(Step::Waits { until }) => Self::wake_after(id, until),
            Ok(_) => {}
            Err(error) => Self::postpone(id, error),
        }
        weight.saturating_add(T::WeightInfo::sweep_task())
    }

    fn postpone(id: TaskId, error: DispatchError) {
        let until = Self::now().saturating_add(RETRY_BLOCKS.into());
        Self::wake_after(id, until);
        Self::deposit_event(Event::AdvancePostponed {
            task: id,
            error,
            until,
        });
    }

    /// Tries to draw. Who waits for entropy stays where it is, and so does one whose draw failed: by the
    /// clock, which may stand still, somebody could wait for entropy that it likes. One that cannot even be
    /// called off is no draw any more.
    fn sweep_draw(id: TaskId) -> Weight {
        let step = with_storage_layer(|| Self::step(id));
        let weight = match step {
            Ok(step) => step.weight::<T>(),
            Err(error) => {
                if Self::is_draw_overdue(id) {
                    Draws::<T>::remove(id);
                    Self::postpone(id, error);
                }
                Self::step_weight_max()
            }
        };
        weight.saturating_add(T::WeightInfo::sweep_task())
    }

    /// Most that a sweep spends on one task.
    fn sweep_task_weight_max() -> Weight {
        Self::step_weight_max().saturating_add(T::WeightInfo::sweep_task())
    }

    /// Most that an opening of a bid weighs.
    pub fn answer_weight() -> Weight {
        T::WeightInfo::reveal_bid().saturating_add(T::WeightInfo::authorize_reveal_bid())
    }

    /// Checks relations between the parameters on which progress depends.
    #[cfg(feature = "std")]
    pub(crate) fn check_configuration() {
        use frame_support::traits::Get;
        use sp_runtime::traits::Zero;
        use surety_types::limits;

        assert!(!T::BidWindow::get().is_zero(), "there must be a block for bids");
        assert!(
            !T::RevealWindow::get().is_zero(),
            "there must be a block for reveals"
        );
        let redundancy_max = T::RedundancyMax::get();
        assert!(
            (1..=limits::REDUNDANCY_MAX).contains(&redundancy_max),
            "storage has room for {} providers a task, not {redundancy_max}",
            limits::REDUNDANCY_MAX
        );
        let one = T::WeightInfo::sweep_base()
            .saturating_add(T::WeightInfo::sweep_look().saturating_mul(DRAW_LOOKS.into()))
            .saturating_add(Self::sweep_task_weight_max());
        let block = T::BlockWeights::get().max_block;
        assert!(
            one.saturating_mul(4).all_lte(block),
            "sweeping one task ({one:?}) takes more than a quarter of a block ({block:?})"
        );
    }
}
