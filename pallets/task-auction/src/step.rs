//! One step of one task: what is due for it by time, if anything. Every state leaves by time alone:
//!
//! | state | due when | then |
//! |---|---|---|
//! | `Bidding{until}` | now > until | `Revealing` |
//! | `Revealing{until}` | now > until | `Drawing`; once `Revealing`, for longer, if bids are still sealed |
//! | `Drawing{since}` | entropy of the first block after `since` is there | `Running`, or `Failed(NotEnoughBids)` |
//! | `Drawing{since}` | block > since + [`ENTROPY_PATIENCE_BLOCKS`] and no draw can be held | `Cancelled` |
//! | `Running` | its round says | it says |
//! | finished at `at` | block > at + `FinishedRetention` | removed |
//!
//! `now` is what the clock shows, by which windows are measured; a block is one of the chain.
//!
//! A step does one transition; it is at most one draw or one removal of [`limits::BIDS_MAX`] bids.

use frame_support::{storage::with_storage_layer, traits::Get, weights::Weight};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    DispatchError, DispatchResult,
    traits::{Saturating, Zero},
};
use surety_types::{
    TaskId, limits,
    task::FailureReason,
    traits::{ENTROPY_PATIENCE_BLOCKS, Escrow, ModelCatalog, StakeLedger, TaskClock, TaskTrust},
};

use crate::{
    AwaitingEntropy, Balance, BidCounts, Bids, Config, Event, OpenTasks, Pallet, Rankings, Substitutes,
    TaskOf, TaskStateOf, Tasks, WeightInfo,
};

/// What a step did.
pub(crate) enum Step<BlockNumber> {
    /// There is no such task.
    Unknown,
    /// Nothing: nothing is due before this time of the clock has passed.
    Waits { until: BlockNumber },
    /// Bids can be opened now, or not any more.
    PhaseChanged,
    /// A draw was held.
    Drawn { opened: u32, unopened: u32 },
    /// No draw can be held: the task was called off.
    CalledOff { deposits: u32 },
    /// `results` was asked to look at the round, which cost so much.
    Trusted { weight: Weight },
    /// The task was finished long ago and is gone now.
    Removed { bids: u32 },
}

impl<BlockNumber> Step<BlockNumber> {
    pub(crate) fn weight<T: Config>(&self) -> Weight {
        match self {
            Self::Unknown | Self::PhaseChanged => T::WeightInfo::open_reveals(),
            // It may be entropy that was looked for.
            Self::Waits { .. } => {
                T::WeightInfo::open_reveals().saturating_add(T::WeightInfo::sweep_entropy())
            }
            Self::Drawn { opened, unopened } => {
                T::WeightInfo::draw(*opened).saturating_add(T::WeightInfo::forfeit(*unopened))
            }
            // A draw was tried first.
            Self::CalledOff { deposits } => {
                T::WeightInfo::draw(limits::BIDS_MAX).saturating_add(T::WeightInfo::cancel(*deposits))
            }
            Self::Trusted { weight } => *weight,
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
            .max(T::TrustWeight::get().saturating_add(Self::outcome_weight()))
            .max(T::WeightInfo::remove(limits::BIDS_MAX))
    }

    /// Carries out what is due for a task.
    pub(crate) fn step(id: TaskId) -> Result<Step<BlockNumberFor<T>>, DispatchError> {
        let now = Self::now();
        let Some(task) = Tasks::<T>::get(id) else {
            if !T::Trust::is_open(id) {
                return Ok(Step::Unknown);
            }
            // Nobody has posted what it is about.
            let weight = T::Trust::advance(id)?;
            return Ok(Step::Trusted { weight });
        };
        match task.state {
            TaskStateOf::<T>::Bidding { until } if now > until => {
                Self::open_reveals(id, task, Self::reveals_until(until));
                Ok(Step::PhaseChanged)
            }
            TaskStateOf::<T>::Revealing { until } if now > until => {
                let later = Self::late_reveals_until(until);
                if now <= later && BidCounts::<T>::get(id).are_waited_for() {
                    BidCounts::<T>::mutate(id, |count| count.late = true);
                    Self::open_reveals(id, task, later);
                } else {
                    Self::start_drawing(id, task);
                }
                Ok(Step::PhaseChanged)
            }
            TaskStateOf::<T>::Bidding { until } | TaskStateOf::<T>::Revealing { until } => {
                Ok(Step::Waits { until })
            }
            TaskStateOf::<T>::Drawing { since } => Self::draw_or_call_off(id, task, since),
            TaskStateOf::<T>::Running { .. } => {
                // This may end in `decided`, which writes the task: nothing of it may be held over the call.
                let weight = T::Trust::advance(id)?;
                // It may have asked for reserves.
                Ok(Step::Trusted {
                    weight: weight.saturating_add(T::WeightInfo::take_reserves()),
                })
            }
            TaskStateOf::<T>::Settled { at, .. }
            | TaskStateOf::<T>::Failed { at, .. }
            | TaskStateOf::<T>::Cancelled { at, .. } => {
                let last = at.saturating_add(T::FinishedRetention::get());
                let block = frame_system::Pallet::<T>::block_number();
                if block <= last {
                    let left = last.saturating_sub(block);
                    return Ok(Step::Waits {
                        until: now.saturating_add(left),
                    });
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
        Self::wake_after(id, until);
    }

    /// Closes the bids. The author of this block may have known its own output while it chose which openings
    /// to include: that of the first later one counts.
    fn start_drawing(id: TaskId, mut task: TaskOf<T>) {
        let since = frame_system::Pallet::<T>::block_number();
        task.state = TaskStateOf::<T>::Drawing { since };
        Tasks::<T>::insert(id, task);
        AwaitingEntropy::<T>::insert(id, since);
    }

    /// Ends a task that was not assigned; its money was moved, of which the client paid `fee`. Returns how
    /// many deposits went back.
    pub(crate) fn call_off(id: TaskId, mut task: TaskOf<T>, fee: Balance) -> u32 {
        let mut deposits = 0u32;
        for (provider, bid) in Self::bids_of(id) {
            if bid.opened.is_none() {
                T::Stake::unlock(&provider, bid.deposit);
                deposits.saturating_inc();
            }
        }
        let at = frame_system::Pallet::<T>::block_number();
        task.state = TaskStateOf::<T>::Cancelled { at, fee };
        Self::finish(id, task);
        Self::deposit_event(Event::TaskCancelled { task: id });
        deposits
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
        Self::finish(id, task);
        Self::deposit_event(Event::TaskFailed { task: id, reason });
    }

    /// Writes a task that has ended, and has it removed when it has been readable for long enough.
    pub(crate) fn finish(id: TaskId, task: TaskOf<T>) {
        Substitutes::<T>::remove(id);
        OpenTasks::<T>::remove(id);
        AwaitingEntropy::<T>::remove(id);
        T::Models::release(&task.spec.model);
        Tasks::<T>::insert(id, task);
        Self::wake_after(id, Self::now().saturating_add(T::FinishedRetention::get()));
    }

    fn draw_or_call_off(
        id: TaskId,
        task: TaskOf<T>,
        since: BlockNumberFor<T>,
    ) -> Result<Step<BlockNumberFor<T>>, DispatchError> {
        // One that could not be called off in time is no draw any more: once the block that counts is
        // forgotten, its entropy would be a matter of choice.
        let drawn = match AwaitingEntropy::<T>::contains_key(id) {
            true => with_storage_layer(|| Self::try_draw(id, &task, since)),
            false => Ok(None),
        };
        match drawn {
            Ok(Some(step)) => Ok(step),
            _ if is_overdue::<T>(since) => {
                Self::deposit_event(Event::DrawAbandoned { task: id });
                // Nobody is at fault.
                T::Escrow::refund(id)?;
                Ok(Step::CalledOff {
                    deposits: Self::call_off(id, task, Zero::zero()),
                })
            }
            Ok(None) => Ok(Step::Waits { until: Self::now() }),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_draw_overdue(id: TaskId) -> bool {
        let task = Tasks::<T>::get(id);
        task.is_some_and(
            |task| matches!(task.state, TaskStateOf::<T>::Drawing { since } if is_overdue::<T>(since)),
        )
    }

    /// Returns how many bids went with it.
    fn remove(id: TaskId) -> u32 {
        Tasks::<T>::remove(id);
        // The limit is never reached: a task has no more bids than that.
        let bids = Bids::<T>::clear_prefix(id, limits::BIDS_MAX, None).unique;
        BidCounts::<T>::remove(id);
        Rankings::<T>::remove(id);
        Self::deposit_event(Event::TaskRemoved { task: id });
        bids
    }
}

/// Whether something has waited for entropy, or a draw has failed, for too long.
pub(crate) fn is_overdue<T: Config>(since: BlockNumberFor<T>) -> bool {
    let block = frame_system::Pallet::<T>::block_number();
    block > since.saturating_add(ENTROPY_PATIENCE_BLOCKS.into())
}
