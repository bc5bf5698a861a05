//! One step of one task: what is due for it by time, if anything. Every state leaves by time alone:
//!
//! | state | due when | then |
//! |---|---|---|
//! | `Bidding{until}` | now > until | `Revealing` |
//! | `Revealing{until}` | now > until + 1 and there is entropy | `Running`, or `Failed(NotEnoughBids)` |
//! | `Revealing{until}` | now > until + [`DRAW_PATIENCE_BLOCKS`] and no draw can be held | `Cancelled` |
//! | `Running` | the trust lock says | it says |
//! | finished at `at` | now > at + `FinishedRetention` | removed |
//!
//! A step does one transition; it is at most one draw or one removal of [`limits::BIDS_MAX`] bids.

use frame_support::{storage::with_storage_layer, traits::Get, weights::Weight};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    traits::{One, Saturating},
    DispatchError, DispatchResult,
};
use surety_types::{
    limits,
    task::FailureReason,
    traits::{Escrow, StakeLedger, TaskClock, TaskTrust},
    TaskId,
};

use crate::{BidCounts, Bids, Config, Event, Pallet, Substitutes, TaskOf, TaskStateOf, Tasks, WeightInfo};

/// Blocks after the reveals close in which a draw is attempted before the task is called off. BABE gives entropy in
/// every block with a VRF output; this many without one mean that something is broken.
pub(crate) const DRAW_PATIENCE_BLOCKS: u32 = 100;

/// What a step did.
pub(crate) enum Step<BlockNumber> {
    /// There is no such task.
    Unknown,
    /// Nothing: nothing is due before this block has passed.
    Waits { until: BlockNumber },
    /// Bids can be opened now.
    RevealsOpened,
    /// A draw was held.
    Drawn { opened: u32, unopened: u32 },
    /// No draw can be held: the task was called off.
    CalledOff { deposits: u32 },
    /// The trust lock was asked.
    Trusted,
    /// The task was finished long ago and is gone now.
    Removed { bids: u32 },
}

impl<BlockNumber> Step<BlockNumber> {
    pub(crate) fn weight<T: Config>(&self) -> Weight {
        match self {
            Self::Unknown | Self::Waits { .. } | Self::RevealsOpened => T::WeightInfo::open_reveals(),
            Self::Drawn { opened, unopened } => {
                T::WeightInfo::draw(*opened).saturating_add(T::WeightInfo::forfeit(*unopened))
            }
            // A draw was tried first.
            Self::CalledOff { deposits } => {
                T::WeightInfo::draw(limits::BIDS_MAX).saturating_add(T::WeightInfo::cancel(*deposits))
            }
            Self::Trusted => T::TrustWeight::get().saturating_add(Pallet::<T>::outcome_weight()),
            Self::Removed { bids } => T::WeightInfo::remove(*bids),
        }
    }
}

impl<T: Config> Pallet<T> {
    /// Most that a step costs.
    pub fn step_weight_max() -> Weight {
        let draw = T::WeightInfo::draw(limits::BIDS_MAX);
        draw.saturating_add(T::WeightInfo::forfeit(limits::BIDS_MAX))
            .max(draw.saturating_add(T::WeightInfo::cancel(limits::BIDS_MAX)))
            .max(Step::<()>::Trusted.weight::<T>())
            .max(T::WeightInfo::remove(limits::BIDS_MAX))
    }

    /// Carries out what is due for a task at `now`.
    pub(crate) fn step(id: TaskId, now: BlockNumberFor<T>) -> Result<Step<BlockNumberFor<T>>, DispatchError> {
        let Some(task) = Tasks::<T>::get(id) else {
            return Ok(Step::Unknown);
        };
        match task.state {
            TaskStateOf::<T>::Bidding { until } if now > until => {
                Self::open_reveals(id, task, Self::reveals_until(until));
                Ok(Step::RevealsOpened)
            }
            TaskStateOf::<T>::Revealing { until } if now > Self::last_block_without_draw(until) => {
                Self::draw_or_call_off(id, task, until, now)
            }
            TaskStateOf::<T>::Bidding { until } => Ok(Step::Waits { until }),
            TaskStateOf::<T>::Revealing { until } => Ok(Step::Waits {
                until: Self::last_block_without_draw(until),
            }),
            TaskStateOf::<T>::Running { .. } => {
                // This may end in `decided`, which writes the task: nothing of it may be held over the call.
                T::Trust::advance(id)?;
                Ok(Step::Trusted)
            }
            TaskStateOf::<T>::Settled { at, .. }
            | TaskStateOf::<T>::Failed { at, .. }
            | TaskStateOf::<T>::Cancelled { at } => {
                let until = at.saturating_add(T::FinishedRetention::get());
                if now <= until {
                    return Ok(Step::Waits { until });
                }
                Ok(Step::Removed {
                    bids: Self::remove(id),
                })
            }
        }
    }

    pub(crate) fn open_reveals(id: TaskId, mut task: TaskOf<T>, until: BlockNumberFor<T>) {
        task.state = TaskStateOf::<T>::Revealing { until };
        Tasks::<T>::insert(id, task);
        Self::wake_after(id, Self::last_block_without_draw(until));
    }

    /// Ends a task that was not assigned; nobody is at fault. Returns how many deposits went back.
    pub(crate) fn call_off(id: TaskId, mut task: TaskOf<T>) -> Result<u32, DispatchError> {
        T::Escrow::refund(id)?;
        let mut deposits = 0u32;
        for (provider, bid) in Self::bids_of(id) {
            if bid.opened.is_none() {
                T::Stake::unlock(&provider, bid.deposit);
                deposits.saturating_inc();
            }
        }
        let at = frame_system::Pallet::<T>::block_number();
        task.state = TaskStateOf::<T>::Cancelled { at };
        Self::finish(id, task, at);
        Self::deposit_event(Event::TaskCancelled { task: id });
        Ok(deposits)
    }

    pub(crate) fn fail(id: TaskId, task: TaskOf<T>, reason: FailureReason) -> DispatchResult {
        T::Escrow::refund(id)?;
        Self::note_failure(id, task, reason);
        Ok(())
    }

    /// The money was moved: writes down that the task failed.
    pub(crate) fn note_failure(id: TaskId, mut task: TaskOf<T>, reason: FailureReason) {
        let at = frame_system::Pallet::<T>::block_number();
        task.state = TaskStateOf::<T>::Failed { at, reason };
        Self::finish(id, task, at);
        Self::deposit_event(Event::TaskFailed { task: id, reason });
    }

    /// Writes a task that has ended, and has it removed when it has been readable for long enough.
    pub(crate) fn finish(id: TaskId, task: TaskOf<T>, at: BlockNumberFor<T>) {
        Substitutes::<T>::remove(id);
        Tasks::<T>::insert(id, task);
        Self::wake_after(id, at.saturating_add(T::FinishedRetention::get()));
    }

    /// In the block after the reveals close, the newest entropy is of the block in which they closed: its author knew
    /// it while it chose which reveals to include.
    fn last_block_without_draw(reveals_until: BlockNumberFor<T>) -> BlockNumberFor<T> {
        reveals_until.saturating_add(One::one())
    }

    fn draw_or_call_off(
        id: TaskId,
        task: TaskOf<T>,
        until: BlockNumberFor<T>,
        now: BlockNumberFor<T>,
    ) -> Result<Step<BlockNumberFor<T>>, DispatchError> {
        let drawn = with_storage_layer(|| Self::try_draw(id, &task, until));
        match drawn {
            Ok(Some(step)) => Ok(step),
            _ if now > until.saturating_add(DRAW_PATIENCE_BLOCKS.into()) => {
                Self::deposit_event(Event::DrawAbandoned { task: id });
                Ok(Step::CalledOff {
                    deposits: Self::call_off(id, task)?,
                })
            }
            Ok(None) => Ok(Step::Waits { until: now }),
            Err(error) => Err(error),
        }
    }

    /// Returns how many bids went with it.
    fn remove(id: TaskId) -> u32 {
        Tasks::<T>::remove(id);
        // The limit is never reached: a task has no more bids than that.
        let bids = Bids::<T>::clear_prefix(id, limits::BIDS_MAX, None).unique;
        BidCounts::<T>::remove(id);
        Self::deposit_event(Event::TaskRemoved { task: id });
        bids
    }
}
