//! The auction as `results` sees it: reserves, verdicts and an agenda.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use sp_runtime::{DispatchError, Weight};
use surety_types::{
    ContentHash, TaskId,
    task::{Assignment, FailureReason, Verdict},
    traits::{BlockEntropy, ENTROPY_PATIENCE_BLOCKS, TaskClock, TaskOutcome},
    trust::AuditToPay,
};

use crate::{AccountId, Balance, BlockNumber, MockEntropy};

thread_local! {
    static RESERVES: RefCell<BTreeMap<TaskId, Vec<Assignment<AccountId, Balance>>>> =
        const { RefCell::new(BTreeMap::new()) };
    static DECIDED: RefCell<Vec<(TaskId, Verdict<AccountId>)>> = const { RefCell::new(Vec::new()) };
    static AUDITS: RefCell<Vec<(TaskId, AuditToPay<AccountId>)>> = const { RefCell::new(Vec::new()) };
    static REFUSES: Cell<bool> = const { Cell::new(false) };
    static INPUTS: RefCell<BTreeMap<TaskId, (ContentHash, u32)>> = const { RefCell::new(BTreeMap::new()) };
    static WITHHELD: RefCell<Vec<(TaskId, Vec<AccountId>)>> = const { RefCell::new(Vec::new()) };
    static STANDING: RefCell<BTreeMap<(TaskId, AccountId), Balance>> = const { RefCell::new(BTreeMap::new()) };
    static WAKES: RefCell<Vec<(TaskId, BlockNumber)>> = const { RefCell::new(Vec::new()) };
    static AWAITING_ENTROPY: RefCell<Vec<(TaskId, BlockNumber)>> = const { RefCell::new(Vec::new()) };
}

/// Mock of [`TaskOutcome`].
pub struct MockOutcome;

impl MockOutcome {
    /// Who pays for every task.
    pub const CLIENT: AccountId = 900;

    /// What [`TaskOutcome::decided`] answers after [`MockOutcome::refuse`].
    pub const REFUSED: DispatchError = DispatchError::Other("Refused");

    /// Forgets everything.
    pub fn reset() {
        RESERVES.take();
        DECIDED.take();
        AUDITS.take();
        REFUSES.set(false);
        INPUTS.take();
        WITHHELD.take();
        STANDING.take();
    }

    /// Sets what a provider loses for more than the task, once, when it is at fault.
    pub fn set_standing(task: TaskId, provider: AccountId, lock: Balance) {
        STANDING.with_borrow_mut(|all| all.insert((task, provider), lock));
    }

    /// Sets content hash and size of the task's input.
    pub fn set_input(task: TaskId, input: (ContentHash, u32)) {
        INPUTS.with_borrow_mut(|all| all.insert(task, input));
    }

    /// Tasks whose input was withheld, each with who shares in the client's lock.
    pub fn withheld() -> Vec<(TaskId, Vec<AccountId>)> {
        WITHHELD.with_borrow(Clone::clone)
    }

    /// Sets the task's reserves, best first.
    pub fn set_reserves(task: TaskId, reserves: &[Assignment<AccountId, Balance>]) {
        RESERVES.with_borrow_mut(|all| all.insert(task, reserves.to_vec()));
    }

    /// Reserves of the task not taken yet, best first.
    pub fn reserves(task: TaskId) -> Vec<Assignment<AccountId, Balance>> {
        RESERVES.with_borrow(|all| all.get(&task).cloned().unwrap_or_default())
    }

    /// Lets verdicts be turned down, or accepted again.
    pub fn refuse(refuses: bool) {
        REFUSES.set(refuses);
    }

    /// Verdicts accepted so far, in order.
    pub fn decisions() -> Vec<(TaskId, Verdict<AccountId>)> {
        DECIDED.with_borrow(Clone::clone)
    }

    /// Audits of `task` that are to be paid, as provider and verifier, in order.
    pub fn audits_to_pay(task: TaskId) -> Vec<(AccountId, AccountId)> {
        AUDITS.with_borrow(|all| {
            let of_task = all.iter().filter(|(id, _)| *id == task);
            of_task
                .map(|(_, audit)| (audit.provider, audit.verifier))
                .collect()
        })
    }

    /// The verdict accepted for `task`.
    pub fn decision(task: TaskId) -> Option<Verdict<AccountId>> {
        DECIDED.with_borrow(|all| {
            all.iter()
                .find(|(id, _)| *id == task)
                .map(|(_, verdict)| verdict.clone())
        })
    }
}

impl TaskOutcome<AccountId, Balance> for MockOutcome {
    fn take_reserves(task: TaskId, count: u32) -> Vec<Assignment<AccountId, Balance>> {
        RESERVES.with_borrow_mut(|all| {
            let Some(reserves) = all.get_mut(&task) else {
                return Vec::new();
            };
            let count = reserves.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            reserves.drain(..count).collect()
        })
    }

    fn decided(
        task: TaskId,
        verdict: Verdict<AccountId>,
        audits: &[AuditToPay<AccountId>],
    ) -> Result<Weight, DispatchError> {
        if REFUSES.get() {
            return Err(Self::REFUSED);
        }
        DECIDED.with_borrow_mut(|all| all.push((task, verdict)));
        AUDITS.with_borrow_mut(|all| all.extend(audits.iter().map(|audit| (task, audit.clone()))));
        Ok(Weight::zero())
    }

    /// Counts as a decision, too.
    fn withheld(task: TaskId, providers: &[AccountId]) -> Result<Weight, DispatchError> {
        let decided = Self::decided(task, Verdict::Failed(FailureReason::InputWithheld), &[])?;
        WITHHELD.with_borrow_mut(|all| all.push((task, providers.to_vec())));
        Ok(decided)
    }

    fn convicted(task: TaskId, provider: &AccountId) -> Option<Balance> {
        STANDING.with_borrow_mut(|all| all.remove(&(task, *provider)))
    }

    fn at_stake(task: TaskId) -> Option<Balance> {
        let of_task = |all: &BTreeMap<(TaskId, AccountId), Balance>| {
            let locks = all.iter().filter(|((of, _), _)| *of == task);
            locks.map(|(_, lock)| *lock).max()
        };
        STANDING.with_borrow(of_task)
    }

    fn client(_: TaskId) -> Option<AccountId> {
        Some(Self::CLIENT)
    }

    fn input(task: TaskId) -> Option<(ContentHash, u32)> {
        INPUTS.with_borrow(|all| all.get(&task).copied())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn post_for_benchmark(task: TaskId, _: &AccountId, input: (ContentHash, u32)) {
        Self::set_input(task, input);
    }
}

/// Mock of [`TaskClock`].
pub struct MockClock;

impl MockClock {
    /// Forgets everything.
    pub fn reset() {
        WAKES.take();
        AWAITING_ENTROPY.take();
    }

    /// Every wake asked for and not taken yet, in order.
    pub fn wakes() -> Vec<(TaskId, BlockNumber)> {
        WAKES.with_borrow(Clone::clone)
    }

    /// The block after which `task` last asked to be woken.
    pub fn last_wake(task: TaskId) -> Option<BlockNumber> {
        WAKES.with_borrow(|wakes| {
            wakes
                .iter()
                .rev()
                .find(|(id, _)| *id == task)
                .map(|(_, until)| *until)
        })
    }

    /// Takes the tasks for which there is entropy in block `now`, or which have waited long enough for it.
    pub fn take_with_entropy(now: BlockNumber) -> Vec<TaskId> {
        let is_due = |(_, since): &(TaskId, BlockNumber)| {
            let patience = since.saturating_add(ENTROPY_PATIENCE_BLOCKS.into());
            MockEntropy::first_after(*since).is_some() || now > patience
        };
        AWAITING_ENTROPY.with_borrow_mut(|awaiting| {
            let due = awaiting.iter().filter(|wait| is_due(wait));
            let due = due.map(|(task, _)| *task).collect();
            awaiting.retain(|wait| !is_due(wait));
            due
        })
    }

    /// Takes the tasks that are to be woken at block `now`: those whose block has passed.
    pub fn take_due(now: BlockNumber) -> Vec<TaskId> {
        WAKES.with_borrow_mut(|wakes| {
            let due = wakes
                .iter()
                .filter(|(_, until)| *until < now)
                .map(|(task, _)| *task)
                .collect();
            wakes.retain(|(_, until)| *until >= now);
            due
        })
    }
}

impl TaskClock<BlockNumber> for MockClock {
    fn wake_after(task: TaskId, until: BlockNumber) {
        WAKES.with_borrow_mut(|wakes| wakes.push((task, until)));
    }

    fn wake_with_entropy(task: TaskId, since: BlockNumber) {
        // The last word counts, as on the agenda.
        AWAITING_ENTROPY.with_borrow_mut(|awaiting| {
            awaiting.retain(|(waiting, _)| *waiting != task);
            awaiting.push((task, since));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_are_taken_best_first_and_once() {
        MockOutcome::reset();
        let reserve = |provider| Assignment { provider, price: 5 };
        MockOutcome::set_reserves(3, &[reserve(1), reserve(2), reserve(4)]);
        assert_eq!(MockOutcome::take_reserves(3, 2), vec![reserve(1), reserve(2)]);
        assert_eq!(MockOutcome::take_reserves(3, 2), vec![reserve(4)]);
        assert!(MockOutcome::take_reserves(3, 2).is_empty());
    }

    #[test]
    fn a_wake_is_due_only_after_its_block() {
        MockClock::reset();
        MockClock::wake_after(7, 10);
        assert!(MockClock::take_due(10).is_empty());
        assert_eq!(MockClock::take_due(11), vec![7]);
        assert_eq!(MockClock::last_wake(7), None);
    }
}
