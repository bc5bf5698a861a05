//! The sweep: tasks move on although nobody calls.
//!
//! - Triggered by `on_idle`, with what a block's extrinsics left. Nothing relies on it: calls look at the
//!   time themselves.
//! - Looks at what waits for entropy, by blocks; then walks the agenda, time by time, from [`AgendaSweptTo`]
//!   to what the clock shows. Never starts a task for which the worst step would not fit; the cursor passes
//!   a time only when nothing is left in it.
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
use surety_types::{
    TaskId,
    traits::{BlockEntropy, TaskClock},
};

use crate::{
    Agenda, AgendaSweptTo, AwaitingEntropy, Config, Event, Pallet, TaskStateOf, Tasks, WeightInfo,
    step::{Step, is_overdue},
};

/// Most agenda entries read in one go. Reading one by one would walk over what was just removed again and
/// again.
pub(crate) const LOOK_TASKS_MAX: u32 = 16;

/// Most tasks that wait for entropy and are looked at in one block.
const AWAITED_MAX: u32 = 4 * LOOK_TASKS_MAX;

/// What looking at them costs, in looks at the agenda: those read keys, and this what is kept at them, too.
const AWAITED_LOOKS: u64 = 8;

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
        if !Self::sweep_awaiting(&mut meter) {
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

    /// Looks at what waits for entropy. Says whether there is room for more.
    fn sweep_awaiting(meter: &mut WeightMeter) -> bool {
        let looks = T::WeightInfo::sweep_look().saturating_mul(AWAITED_LOOKS);
        if meter.try_consume(looks).is_err() {
            return false;
        }
        let waiting: Vec<_> = AwaitingEntropy::<T>::iter().take(AWAITED_MAX as usize).collect();
        let most = T::WeightInfo::sweep_entropy().saturating_add(Self::sweep_task_weight_max());
        for (id, since) in waiting {
            if !meter.can_consume(most) {
                return false;
            }
            meter.consume(T::WeightInfo::sweep_entropy());
            if T::Entropy::first_after(since).is_some() || is_overdue::<T>(since) {
                meter.consume(Self::sweep_with_entropy(id));
            }
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

    /// Goes on with a task that has waited for entropy. One whose draw failed stays where it is: by the
    /// clock, which may stand still, the block that counts could be forgotten before it is tried again. One
    /// that cannot even be called off is no draw any more, and a round that failed does not wait for entropy.
    fn sweep_with_entropy(id: TaskId) -> Weight {
        let state = Tasks::<T>::get(id).map(|task| task.state);
        let is_draw = matches!(state, Some(TaskStateOf::<T>::Drawing { .. }));
        if !is_draw {
            AwaitingEntropy::<T>::remove(id);
        }
        let step = with_storage_layer(|| Self::step(id));
        let weight = match step {
            Ok(step) => step.weight::<T>(),
            Err(error) => {
                if !is_draw || Self::is_draw_overdue(id) {
                    AwaitingEntropy::<T>::remove(id);
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

        // Parameters that somebody sets have to be held to this where they are wired.
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
            .saturating_add(T::WeightInfo::sweep_look().saturating_mul(AWAITED_LOOKS))
            .saturating_add(T::WeightInfo::sweep_entropy())
            .saturating_add(Self::sweep_task_weight_max());
        let block = T::BlockWeights::get().max_block;
        assert!(
            one.saturating_mul(4).all_lte(block),
            "sweeping one task ({one:?}) takes more than a quarter of a block ({block:?})"
        );
    }
}
