//! The sweep: tasks move on although nobody calls.
//!
//! - Triggered by `on_idle`, with what a block's extrinsics left. Nothing relies on it: calls look at the time
//!   themselves.
//! - Walks the agenda block by block from [`AgendaSweptTo`] to the present. Never starts a task for which the worst
//!   step would not fit; the cursor passes a block only when nothing is left in it.
//! - A task that fails leaves no trace but an event and is put on the agenda again, [`RETRY_BLOCKS`] later.
//! - Nothing is ever put on the agenda for the present block or before, so what is read in one go stays as it is.

use alloc::vec::Vec;
use frame_support::{
    storage::with_storage_layer,
    traits::Get,
    weights::{Weight, WeightMeter},
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::traits::{One, Saturating};
use surety_types::{traits::TaskClock, TaskId};

use crate::{step::Step, Agenda, AgendaSweptTo, Config, Event, Pallet, WeightInfo};

/// Most agenda entries read in one go. Reading one by one would walk over what was just removed again and again.
pub(crate) const LOOK_TASKS_MAX: u32 = 16;

/// Blocks until a step that failed is tried again: some time for the cause to go away, without flooding the events.
pub(crate) const RETRY_BLOCKS: u32 = 16;

impl<T: Config> Pallet<T> {
    /// Advances tasks whose agenda block has come, as far as `limit` allows. Returns what it used.
    pub(crate) fn sweep(now: BlockNumberFor<T>, limit: Weight) -> Weight {
        let mut meter = WeightMeter::with_limit(limit);
        if meter.try_consume(T::WeightInfo::sweep_base()).is_err() {
            return meter.consumed();
        }
        let started = AgendaSweptTo::<T>::get();
        let mut swept = started;
        while swept < now {
            let block = swept.saturating_add(One::one());
            if !Self::sweep_block(block, now, &mut meter) {
                break;
            }
            swept = block;
        }
        if swept != started {
            AgendaSweptTo::<T>::put(swept);
        }
        meter.consumed()
    }

    /// Whether nothing is left of the block.
    fn sweep_block(block: BlockNumberFor<T>, now: BlockNumberFor<T>, meter: &mut WeightMeter) -> bool {
        let task_max = Self::sweep_task_weight_max();
        loop {
            if meter.try_consume(T::WeightInfo::sweep_look()).is_err() {
                return false;
            }
            let due = Self::look(block);
            if due.is_empty() {
                return true;
            }
            for id in due {
                if !meter.can_consume(task_max) {
                    return false;
                }
                meter.consume(Self::sweep_task(block, id, now));
            }
        }
    }

    pub(crate) fn look(block: BlockNumberFor<T>) -> Vec<TaskId> {
        Agenda::<T>::iter_key_prefix(block)
            .take(LOOK_TASKS_MAX as usize)
            .collect()
    }

    pub(crate) fn sweep_task(block: BlockNumberFor<T>, id: TaskId, now: BlockNumberFor<T>) -> Weight {
        Agenda::<T>::remove(block, id);
        let step = with_storage_layer(|| Self::step(id, now));
        let weight = step
            .as_ref()
            .map_or_else(|_| Self::step_weight_max(), Step::weight::<T>);
        match step {
            Ok(Step::Waits { until }) => Self::wake_after(id, until),
            Ok(_) => {}
            Err(error) => {
                let until = now.saturating_add(RETRY_BLOCKS.into());
                Self::wake_after(id, until);
                Self::deposit_event(Event::AdvancePostponed {
                    task: id,
                    error,
                    until,
                });
            }
        }
        weight.saturating_add(T::WeightInfo::sweep_task())
    }

    /// Most that a sweep spends on one task.
    fn sweep_task_weight_max() -> Weight {
        Self::step_weight_max().saturating_add(T::WeightInfo::sweep_task())
    }

    /// Checks relations between the parameters on which progress depends.
    #[cfg(feature = "std")]
    pub(crate) fn check_configuration() {
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
            .saturating_add(T::WeightInfo::sweep_look())
            .saturating_add(Self::sweep_task_weight_max());
        let block = T::BlockWeights::get().max_block;
        assert!(
            one.saturating_mul(4).all_lte(block),
            "sweeping one task ({one:?}) takes more than a quarter of a block ({block:?})"
        );
    }
}
