//! What `results` asks of this pallet: further providers, the money to be moved, and to be woken.

use alloc::vec::Vec;
use frame_support::{ensure, weights::Weight};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{
    DispatchError, DispatchResult,
    traits::{One, Saturating},
};
use surety_types::{
    ContentHash, TaskId, limits,
    task::{Assignment, AuditTerms, FailureReason, PerMember, ResultClaim, Security, Verdict},
    traits::{Escrow, ProviderDirectory, StakeLedger, TaskClock, TaskIds, TaskOutcome, TaskTrust},
    trust::AuditToPay,
};

use crate::{
    Agenda, AssignmentOf, AwaitingEntropy, Balance, Config, Error, Event, NextTaskId, Pallet, Substitutes,
    TaskOf, TaskStateOf, Tasks, WeightInfo, draw,
};

impl<T: Config> TaskOutcome<T::AccountId, Balance> for Pallet<T> {
    /// Reserves that could not start now are passed over, and not offered again either.
    fn take_reserves(id: TaskId, count: u32) -> Vec<AssignmentOf<T>> {
        Tasks::<T>::mutate_extant(id, |task| {
            let (security, audits) = (task.spec.security, task.audits);
            let TaskStateOf::<T>::Running { reserves, .. } = &mut task.state else {
                return Vec::new();
            };
            let mut taken = Vec::new();
            let wanted = usize::try_from(count).unwrap_or(usize::MAX);
            Substitutes::<T>::mutate(id, |substitutes| {
                while taken.len() < wanted && !reserves.is_empty() {
                    let next = reserves.remove(0);
                    // Both lists have room for every bid, so the push never fails; if it did, nobody would
                    // work unpaid.
                    if Self::can_start(&next, (&security, &audits))
                        && substitutes.try_push(next.clone()).is_ok()
                    {
                        taken.push(next);
                    }
                }
            });
            taken
        })
    }

    fn decided(
        id: TaskId,
        verdict: Verdict<T::AccountId>,
        audits: &[AuditToPay<T::AccountId>],
    ) -> Result<Weight, DispatchError> {
        let task = Tasks::<T>::get(id).ok_or(Error::<T>::UnknownTask)?;
        ensure!(
            matches!(task.state, TaskStateOf::<T>::Running { .. }),
            Error::<T>::WrongPhase
        );
        let majority = match &verdict {
            Verdict::Agreed { majority, .. } => majority.as_slice(),
            Verdict::Failed(_) => &[],
        };
        let late = Self::late(id, &task, (majority, audits))?;
        if !late.is_empty() {
            T::Escrow::pay_audits(id, &late, audits)?;
        }
        let providers = majority.len().saturating_add(late.len());
        match verdict {
            Verdict::Agreed { claim, majority, .. } => Self::settle(id, task, claim, (&majority, audits))?,
            Verdict::Failed(reason) => Self::fail(id, task, reason)?,
        }
        Ok(decided_weight::<T>(providers, audits.len()))
    }

    /// Costs less than a settlement with as many payments.
    fn withheld(id: TaskId, providers: &[T::AccountId]) -> Result<Weight, DispatchError> {
        let task = Tasks::<T>::get(id).ok_or(Error::<T>::UnknownTask)?;
        ensure!(
            matches!(task.state, TaskStateOf::<T>::Running { .. }),
            Error::<T>::WrongPhase
        );
        T::Escrow::forfeit(id, providers)?;
        Self::note_failure(id, task, FailureReason::InputWithheld);
        Ok(decided_weight::<T>(providers.len(), 0))
    }

    fn client(id: TaskId) -> Option<T::AccountId> {
        Tasks::<T>::get(id).map(|task| task.client)
    }

    fn input(id: TaskId) -> Option<(ContentHash, u32)> {
        Tasks::<T>::get(id).map(|task| (task.spec.input, task.spec.input_bytes))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn post_for_benchmark(id: TaskId, client: &T::AccountId, (input, input_bytes): (ContentHash, u32)) {
        crate::benchmarking::put_task::<T>(id, client, input, input_bytes);
    }
}

impl<T: Config> TaskIds for Pallet<T> {
    fn take() -> Result<TaskId, DispatchError> {
        NextTaskId::<T>::try_mutate(|next| {
            let id = *next;
            *next = id.checked_add(1).ok_or(Error::<T>::Overflow)?;
            Ok(id)
        })
    }
}

impl<T: Config> TaskClock<BlockNumberFor<T>> for Pallet<T> {
    /// Never for this time or an earlier one: the sweep may be past them, and a task that is due again at
    /// once waits until the clock moves on, so that no task can keep a sweep busy.
    fn wake_after(id: TaskId, until: BlockNumberFor<T>) {
        let time = until.max(Self::now()).saturating_add(One::one());
        Agenda::<T>::insert(time, id, ());
    }

    fn wake_with_entropy(id: TaskId, since: BlockNumberFor<T>) {
        AwaitingEntropy::<T>::insert(id, since);
    }
}

impl<T: Config> Pallet<T> {
    /// Most that one step of a round can cost here: it may call in reserves, and it may decide.
    pub fn outcome_weight() -> Weight {
        T::WeightInfo::take_reserves()
            .saturating_add(T::WeightInfo::decided(limits::REDUNDANCY_MAX, limits::AUDITS_MAX))
    }

    fn can_start(assignment: &AssignmentOf<T>, (security, audits): (&Security, &AuditTerms)) -> bool {
        T::Providers::is_available(&assignment.provider)
            && T::Stake::unlocked_stake(&assignment.provider)
                >= T::Trust::lock_for(assignment.price, security, audits)
    }

    fn settle(
        id: TaskId,
        mut task: TaskOf<T>,
        claim: ResultClaim,
        (majority, audits): (&PerMember<T::AccountId>, &[AuditToPay<T::AccountId>]),
    ) -> DispatchResult {
        let payments = Self::payments(id, &task, &claim, majority)?;
        let settlement = T::Escrow::settle(id, &payments, audits)?;
        let (fee, refund) = (settlement.fee, settlement.refund);
        let at = frame_system::Pallet::<T>::block_number();
        task.state = TaskStateOf::<T>::Settled {
            at,
            claim: claim.clone(),
            payments: payments.clone(),
            refund,
            fee,
        };
        Self::finish(id, task);
        Self::deposit_event(Event::TaskSettled {
            task: id,
            claim,
            payments,
            fee,
            refund,
        });
        Ok(())
    }

    /// Providers that are not paid and whose audits are, with what each would have been paid.
    fn late(
        id: TaskId,
        task: &TaskOf<T>,
        (majority, audits): (&[T::AccountId], &[AuditToPay<T::AccountId>]),
    ) -> Result<PerMember<AssignmentOf<T>>, DispatchError> {
        let mut late = PerMember::<AssignmentOf<T>>::new();
        for audit in audits {
            let is_known = |known: &AssignmentOf<T>| known.provider == audit.provider;
            if majority.contains(&audit.provider) || late.iter().any(is_known) {
                continue;
            }
            let payment = Self::payment(id, task, (&audit.provider, audit.units))?;
            let pushed = late.try_push(payment);
            pushed.map_err(|_| Error::<T>::RedundancyTooHigh)?;
        }
        Ok(late)
    }

    /// What each of the majority is paid for the units it did.
    fn payments(
        id: TaskId,
        task: &TaskOf<T>,
        claim: &ResultClaim,
        majority: &PerMember<T::AccountId>,
    ) -> Result<PerMember<AssignmentOf<T>>, DispatchError> {
        let mut payments = PerMember::new();
        for provider in majority {
            let payment = Self::payment(id, task, (provider, claim.units))?;
            let pushed = payments.try_push(payment);
            pushed.map_err(|_| Error::<T>::RedundancyTooHigh)?;
        }
        Ok(payments)
    }

    /// What a provider of a running task is paid for so many units.
    fn payment(
        id: TaskId,
        task: &TaskOf<T>,
        (provider, units): (&T::AccountId, u32),
    ) -> Result<AssignmentOf<T>, DispatchError> {
        let TaskStateOf::<T>::Running { assignments, .. } = &task.state else {
            return Err(Error::<T>::WrongPhase.into());
        };
        let agreed = |assignment: &&AssignmentOf<T>| assignment.provider == *provider;
        let price = match assignments.iter().find(agreed) {
            Some(first) => first.price,
            None => {
                let substitutes = Substitutes::<T>::get(id);
                let agreed = substitutes.iter().find(agreed);
                agreed.ok_or(Error::<T>::NotAssigned)?.price
            }
        };
        Ok(Assignment {
            provider: provider.clone(),
            price: draw::metered(price, units, task.spec.units_max),
        })
    }
}

/// What it costs to decide that so many are paid.
fn decided_weight<T: Config>(providers: usize, audits: usize) -> Weight {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    T::WeightInfo::decided(count(providers), count(audits))
}
