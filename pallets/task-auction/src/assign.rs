//! The draw of one task: from bids in storage to a round in `results`. Who wins is decided in
//! [`crate::draw`].

use alloc::vec::Vec;
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::{DispatchError, traits::Saturating};
use surety_types::{
    TaskId, limits,
    speed::Requirements,
    task::{FailureReason, PerBid, PerMember},
    traits::{
        BlockEntropy, ENTROPY_BLOCKS, ENTROPY_PATIENCE_BLOCKS, Escrow, ProviderDirectory, StakeLedger,
        TaskTrust,
    },
};

use crate::{
    AwaitingEntropy, Balance, BidRecord, Bids, Config, Error, Event, Pallet, TaskOf, TaskStateOf, Tasks,
    draw::{self, Candidate, Drawn},
    step::Step,
};

/// Entropy, and the block whose author gave it.
pub(crate) type Entropy<T> = (H256, BlockNumberFor<T>);

impl<T: Config> Pallet<T> {
    /// Holds the draw. `None` while there is no entropy that is younger than block `since`, in which bids
    /// were closed, and for good once there is none that counts.
    pub(crate) fn try_draw(
        id: TaskId,
        task: &TaskOf<T>,
        since: BlockNumberFor<T>,
    ) -> Result<Option<Step<BlockNumberFor<T>>>, DispatchError> {
        Self::draw_entropy(since)
            .map(|entropy| Self::hold_draw(id, task, entropy))
            .transpose()
    }

    /// That of the first block after `since`. Where nobody has asked in time for it to be known still, or had
    /// to wait for it for longer than a draw waits, there is none: whoever calls would choose among later
    /// blocks, or between a draw and none.
    fn draw_entropy(since: BlockNumberFor<T>) -> Option<Entropy<T>> {
        let kept = since.saturating_add(ENTROPY_BLOCKS.into());
        let patience = since.saturating_add(ENTROPY_PATIENCE_BLOCKS.into());
        let is_kept = frame_system::Pallet::<T>::block_number() <= kept;
        T::Entropy::first_after(since).filter(|(_, block)| is_kept && *block <= patience)
    }

    pub(crate) fn hold_draw(
        id: TaskId,
        task: &TaskOf<T>,
        (entropy, entropy_block): Entropy<T>,
    ) -> Result<Step<BlockNumberFor<T>>, DispatchError> {
        let redundancy = task.spec.redundancy;
        let limit = T::Escrow::price_limit(task.cap, redundancy)?;
        let mut bids = Self::bids_of(id);
        bids.sort_by(|(a, _), (b, _)| a.cmp(b));
        let salts = bids
            .iter()
            .filter_map(|(_, bid)| bid.opened.as_ref().map(|opened| &opened.salt));
        let seed = draw::seed(id, salts, &entropy);
        let lock = T::Trust::lock_for(limit, &task.spec.security, &task.audits);
        let least = T::Trust::least_price(task.spec.units_max, &task.audits);
        let candidates = Self::candidates(&bids, (least, limit), lock, &task.spec.requirements);

        match draw::draw(&candidates, redundancy, limit, seed) {
            Some(drawn) => {
                let assignments = Self::assign(id, task.clone(), drawn)?;
                Self::deposit_event(Event::TaskAssigned {
                    task: id,
                    assignments,
                    seed,
                    entropy,
                    entropy_block,
                    limit,
                    candidates,
                });
            }
            None => Self::fail(id, task.clone(), FailureReason::NotEnoughBids)?,
        }
        // Last, because it cannot fail.
        let unopened = Self::forfeit_unopened(id, &bids);
        let opened = u32::try_from(bids.len())
            .unwrap_or(limits::BIDS_MAX)
            .saturating_sub(unopened);
        Ok(Step::Drawn { opened, unopened })
    }

    /// The bids of a task, in no particular order.
    pub(crate) fn bids_of(id: TaskId) -> Vec<(T::AccountId, BidRecord)> {
        Bids::<T>::iter_prefix(id)
            .take(limits::BIDS_MAX as usize)
            .collect()
    }

    /// Takes the deposits of bids that were not opened. Returns how many.
    pub(crate) fn forfeit_unopened(id: TaskId, bids: &[(T::AccountId, BidRecord)]) -> u32 {
        let mut forfeited = 0u32;
        for (provider, bid) in bids.iter().filter(|(_, bid)| bid.opened.is_none()) {
            let amount = T::Stake::slash(provider, bid.deposit);
            Self::deposit_event(Event::BidForfeited {
                task: id,
                provider: provider.clone(),
                amount,
            });
            forfeited = forfeited.saturating_add(1);
        }
        forfeited
    }

    /// Opened bids within the limit of providers that could start now, are what the task asks for, and could
    /// back any price up to the limit. Who asks less than the least asks that: auditors are paid a part of
    /// it.
    fn candidates(
        bids: &[(T::AccountId, BidRecord)],
        (least, limit): (Balance, Balance),
        lock: Balance,
        requirements: &Requirements,
    ) -> PerBid<Candidate<T::AccountId>> {
        let candidates: Vec<_> = bids
            .iter()
            .filter_map(|(provider, bid)| Some((provider, bid.opened.as_ref()?)))
            .filter(|(provider, bid)| {
                bid.price <= limit
                    && T::Providers::is_available(provider)
                    && T::Providers::meets(provider, requirements)
                    && T::Stake::unlocked_stake(provider) >= lock
            })
            .map(|(provider, bid)| Candidate {
                provider: provider.clone(),
                // The parameter may have grown since the task was posted.
                price: bid.price.max(least.min(limit)),
                seconds: bid.seconds,
                weight: T::Providers::weight(provider),
            })
            .collect();
        // There are no more bids than that.
        PerBid::truncate_from(candidates)
    }

    /// Gives the task to the drawn and opens its round.
    fn assign(
        id: TaskId,
        mut task: TaskOf<T>,
        drawn: Drawn<T::AccountId>,
    ) -> Result<PerMember<crate::AssignmentOf<T>>, DispatchError> {
        let assignments = PerMember::try_from(drawn.winners).map_err(|_| Error::<T>::RedundancyTooHigh)?;
        let reserves = PerBid::truncate_from(drawn.reserves);
        let (units_max, security, audits) = (task.spec.units_max, task.spec.security, task.audits);
        task.state = TaskStateOf::<T>::Running {
            assignments: assignments.clone(),
            reserves,
        };
        AwaitingEntropy::<T>::remove(id);
        // Before the round opens, because that may look at the task.
        Tasks::<T>::insert(id, task);
        T::Trust::open(id, units_max, security, audits, &assignments)?;
        Ok(assignments)
    }

    /// Some seed for benchmarks and tests of what follows a draw.
    #[cfg(feature = "runtime-benchmarks")]
    pub(crate) fn benchmark_entropy() -> Entropy<T> {
        (H256::repeat_byte(1), frame_system::Pallet::<T>::block_number())
    }
}
