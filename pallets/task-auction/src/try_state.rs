//! What must hold between any two blocks, one function an invariant. The ids are explained in the README.

use alloc::collections::{BTreeMap, BTreeSet};
use frame_support::ensure;
use sp_runtime::TryRuntimeError;
use surety_types::{
    ModelId, TaskId, limits,
    traits::{Escrow, ModelCatalog},
};

use crate::{
    Agenda, AgendaSweptTo, AssignmentOf, AwaitingEntropy, Balance, BidCount, BidCounts, Bids, Config,
    NextTaskId, OpenTasks, Pallet, Rankings, Substitutes, TaskOf, TaskStateOf, Tasks,
};

impl<T: Config> Pallet<T> {
    /// Checks every invariant.
    pub fn do_try_state() -> Result<(), TryRuntimeError> {
        Self::auc_1_ids_were_given_out()?;
        Self::auc_2_bids_are_counted()?;
        Self::auc_3_escrow_is_the_cap_until_the_end()?;
        Self::auc_4_every_task_is_on_the_agenda()?;
        Self::auc_5_assignments_rest_on_bids()?;
        Self::auc_6_settlements_add_up()?;
        Self::auc_7_only_running_tasks_have_substitutes()?;
        Self::auc_8_no_bid_is_opened_early()?;
        Self::auc_9_tasks_that_go_on_are_listed()?;
        Self::auc_10_tasks_that_go_on_have_their_models()?;
        Self::auc_11_the_best_ranks_have_the_places()
    }

    fn auc_1_ids_were_given_out() -> Result<(), TryRuntimeError> {
        let next = NextTaskId::<T>::get();
        ensure!(
            Tasks::<T>::iter_keys().all(|id| id < next),
            "AUC-1: a task id that was not given out"
        );
        Ok(())
    }

    fn auc_2_bids_are_counted() -> Result<(), TryRuntimeError> {
        let mut found = BTreeMap::<TaskId, BidCount>::new();
        for (id, _, bid) in Bids::<T>::iter() {
            let count = found.entry(id).or_default();
            count.placed = count.placed.saturating_add(1);
            count.opened = count.opened.saturating_add(bid.opened.is_some().into());
        }
        let counted: BTreeMap<_, _> = BidCounts::<T>::iter()
            .map(|(id, count)| (id, BidCount { late: false, ..count }))
            .collect();
        ensure!(found == counted, "AUC-2: bids and their counts differ");
        ensure!(
            counted.values().all(|count| count.placed <= limits::BIDS_MAX),
            "AUC-2: a task with too many bids"
        );
        ensure!(
            counted.keys().all(Tasks::<T>::contains_key),
            "AUC-2: bids without a task"
        );
        Ok(())
    }

    fn auc_3_escrow_is_the_cap_until_the_end() -> Result<(), TryRuntimeError> {
        for (id, task) in Tasks::<T>::iter() {
            let expected = if is_finished::<T>(&task) { 0 } else { task.cap };
            ensure!(
                T::Escrow::held(id) == expected,
                "AUC-3: escrow that is neither the cap nor gone"
            );
        }
        Ok(())
    }

    fn auc_4_every_task_is_on_the_agenda() -> Result<(), TryRuntimeError> {
        let swept = AgendaSweptTo::<T>::get();
        let mut awaited: BTreeSet<TaskId> = AwaitingEntropy::<T>::iter_keys().collect();
        for id in &awaited {
            let state = Tasks::<T>::get(id).map(|task| task.state);
            ensure!(
                matches!(
                    state,
                    Some(TaskStateOf::<T>::Drawing { .. } | TaskStateOf::<T>::Running { .. })
                ),
                "AUC-4: entropy that nobody waits for"
            );
        }
        for (time, id) in Agenda::<T>::iter_keys() {
            ensure!(time > swept, "AUC-4: something is left of a time that was swept");
            awaited.insert(id);
        }
        ensure!(
            Tasks::<T>::iter_keys().all(|id| awaited.contains(&id)),
            "AUC-4: a task that nobody will look at"
        );
        Ok(())
    }

    fn auc_5_assignments_rest_on_bids() -> Result<(), TryRuntimeError> {
        for (id, task) in Tasks::<T>::iter() {
            let TaskStateOf::<T>::Running {
                assignments,
                reserves,
            } = &task.state
            else {
                continue;
            };
            ensure!(
                u32::try_from(assignments.len()) == Ok(task.spec.redundancy),
                "AUC-5: not as many providers as asked for"
            );
            let substitutes = Substitutes::<T>::get(id);
            let mut seen = BTreeSet::new();
            for assignment in assignments.iter().chain(&substitutes).chain(reserves) {
                ensure!(
                    seen.insert(&assignment.provider),
                    "AUC-5: a provider that stands twice on a task"
                );
                Self::auc_5_price_is_bid_or_better(id, assignment)?;
            }
            let paid = assignments
                .iter()
                .try_fold(Balance::default(), |sum, assignment| {
                    sum.checked_add(assignment.price)
                });
            ensure!(
                paid.is_some_and(|paid| paid <= task.cap),
                "AUC-5: prices above the cap"
            );
        }
        Ok(())
    }

    fn auc_5_price_is_bid_or_better(id: TaskId, assignment: &AssignmentOf<T>) -> Result<(), TryRuntimeError> {
        let asked = Bids::<T>::get(id, &assignment.provider)
            .and_then(|bid| bid.opened)
            .map(|bid| bid.price);
        ensure!(
            asked.is_some_and(|asked| asked.max(1) <= assignment.price),
            "AUC-5: a price without a bid for it"
        );
        Ok(())
    }

    fn auc_6_settlements_add_up() -> Result<(), TryRuntimeError> {
        for task in Tasks::<T>::iter_values() {
            let TaskStateOf::<T>::Settled {
                payments,
                refund,
                fee,
                ..
            } = &task.state
            else {
                continue;
            };
            let sum = payments
                .iter()
                .map(|payment| payment.price)
                .chain([*refund, *fee])
                .try_fold(Balance::default(), |sum, amount| sum.checked_add(amount));
            ensure!(
                sum == Some(task.cap),
                "AUC-6: payments, fee and refund are not the cap"
            );
        }
        Ok(())
    }

    fn auc_7_only_running_tasks_have_substitutes() -> Result<(), TryRuntimeError> {
        for id in Substitutes::<T>::iter_keys() {
            let state = Tasks::<T>::get(id).map(|task| task.state);
            ensure!(
                matches!(state, Some(TaskStateOf::<T>::Running { .. })),
                "AUC-7: substitutes of a task that does not run"
            );
        }
        Ok(())
    }

    fn auc_8_no_bid_is_opened_early() -> Result<(), TryRuntimeError> {
        for (id, _, bid) in Bids::<T>::iter() {
            let state = Tasks::<T>::get(id).map(|task| task.state);
            let bidding = matches!(state, Some(TaskStateOf::<T>::Bidding { .. }));
            ensure!(
                !bidding || bid.opened.is_none(),
                "AUC-8: a bid was opened while bids were taken"
            );
        }
        Ok(())
    }

    fn auc_9_tasks_that_go_on_are_listed() -> Result<(), TryRuntimeError> {
        for (id, task) in Tasks::<T>::iter() {
            ensure!(
                OpenTasks::<T>::contains_key(id) != is_finished::<T>(&task),
                "AUC-9: a task that goes on is not listed, or one that is finished is"
            );
        }
        ensure!(
            OpenTasks::<T>::iter_keys().all(Tasks::<T>::contains_key),
            "AUC-9: a task is listed that is gone"
        );
        Ok(())
    }

    fn auc_10_tasks_that_go_on_have_their_models() -> Result<(), TryRuntimeError> {
        let mut uses = BTreeMap::<ModelId, u32>::new();
        for task in Tasks::<T>::iter_values() {
            let count = uses.entry(task.spec.model).or_default();
            *count = count.saturating_add(u32::from(!is_finished::<T>(&task)));
        }
        ensure!(
            uses.iter().all(|(model, count)| T::Models::uses(model) == *count),
            "AUC-10: a model is kept for other tasks than those that go on"
        );
        Ok(())
    }

    fn auc_11_the_best_ranks_have_the_places() -> Result<(), TryRuntimeError> {
        for (id, ranking) in Rankings::<T>::iter() {
            ensure!(
                ranking.places.iter().is_sorted(),
                "AUC-11: places that are not in the order of their ranks"
            );
            let ranked: BTreeSet<_> = ranking.places.into_iter().map(|place| place.provider).collect();
            let bidders: BTreeSet<_> = Bids::<T>::iter_key_prefix(id).collect();
            ensure!(
                ranked == bidders,
                "AUC-11: a bid without a place, or a place without a bid"
            );
            ensure!(
                !BidCounts::<T>::get(id).has_room(),
                "AUC-11: bidders are ranked though there are places"
            );
        }
        Ok(())
    }
}

fn is_finished<T: Config>(task: &TaskOf<T>) -> bool {
    matches!(
        task.state,
        TaskStateOf::<T>::Settled { .. }
            | TaskStateOf::<T>::Failed { .. }
            | TaskStateOf::<T>::Cancelled { .. }
    )
}
