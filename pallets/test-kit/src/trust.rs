//! A mock of `results` that writes down what it is asked, and decides nothing by itself.

use std::cell::{Cell, RefCell};

use sp_runtime::{DispatchError, DispatchResult, Weight};
use surety_types::{
    TaskId,
    model::ModelAudits,
    task::{Assignment, AuditTerms, PerMember, Security, SecurityLevel, TaskSpec},
    traits::TaskTrust,
};

use crate::{AccountId, Balance, BlockNumber};

/// What [`TaskTrust::open`] was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedRound {
    /// Task id.
    pub task: TaskId,
    /// Most units paid for.
    pub units_max: u32,
    /// How the task is secured.
    pub security: Security,
    /// Who was assigned, at which price.
    pub assignments: PerMember<Assignment<AccountId, Balance>>,
}

type OnAdvance = fn(TaskId) -> DispatchResult;

const LOCK_MULTIPLE_DEFAULT: Balance = 2;

thread_local! {
    static OPENED: RefCell<Vec<OpenedRound>> = const { RefCell::new(Vec::new()) };
    static ADVANCED: RefCell<Vec<TaskId>> = const { RefCell::new(Vec::new()) };
    static LOCK_MULTIPLE: Cell<Balance> = const { Cell::new(LOCK_MULTIPLE_DEFAULT) };
    static RISK_MAX: Cell<u128> = const { Cell::new(u128::MAX) };
    static LEAST_PRICE: Cell<Balance> = const { Cell::new(0) };
    static REFUSES: Cell<bool> = const { Cell::new(false) };
    static ON_ADVANCE: Cell<Option<OnAdvance>> = const { Cell::new(None) };
}

/// Mock of [`TaskTrust`]. It moves no stake.
pub struct MockTrust;

impl MockTrust {
    /// What [`TaskTrust::advance`] says that it cost.
    pub const ADVANCE_WEIGHT: Weight = Weight::from_parts(30_000, 0);

    /// What [`TaskTrust::secure`] answers to more than [`MockTrust::set_risk_max`].
    pub const TOO_RISKY: DispatchError = DispatchError::Other("TooRisky");

    /// What [`TaskTrust::open`] answers after [`MockTrust::refuse`].
    pub const REFUSED: DispatchError = DispatchError::Other("Refused");

    /// Forgets everything; the lock is twice the price again.
    pub fn reset() {
        OPENED.take();
        ADVANCED.take();
        LOCK_MULTIPLE.set(LOCK_MULTIPLE_DEFAULT);
        REFUSES.set(false);
        RISK_MAX.set(u128::MAX);
        LEAST_PRICE.set(0);
        ON_ADVANCE.set(None);
    }

    /// Sets how many times its price a provider locks.
    pub fn set_lock_multiple(multiple: Balance) {
        LOCK_MULTIPLE.set(multiple);
    }

    /// Sets the highest value at risk of a task. Half of it and more is watched at the high level.
    pub fn set_risk_max(plancks: u128) {
        RISK_MAX.set(plancks);
    }

    /// Sets what providers of any task are paid at least.
    pub fn set_least_price(plancks: Balance) {
        LEAST_PRICE.set(plancks);
    }

    /// Lets rounds fail to open, or work again.
    pub fn refuse(refuses: bool) {
        REFUSES.set(refuses);
    }

    /// Has `handler` called by every [`TaskTrust::advance`], for example to hand a verdict to the pallet
    /// under test.
    pub fn on_advance(handler: OnAdvance) {
        ON_ADVANCE.set(Some(handler));
    }

    /// Rounds opened so far, in order.
    pub fn opened() -> Vec<OpenedRound> {
        OPENED.with_borrow(Clone::clone)
    }

    /// The round last opened for `task`.
    pub fn round(task: TaskId) -> Option<OpenedRound> {
        OPENED.with_borrow(|rounds| rounds.iter().rev().find(|round| round.task == task).cloned())
    }

    /// Tasks for which [`TaskTrust::advance`] was called so far, in order.
    pub fn advanced() -> Vec<TaskId> {
        ADVANCED.with_borrow(Clone::clone)
    }
}

impl TaskTrust<AccountId, Balance, BlockNumber> for MockTrust {
    fn secure(
        _: Balance,
        spec: &TaskSpec,
        _: ModelAudits,
    ) -> Result<(SecurityLevel, AuditTerms), DispatchError> {
        let security = &spec.security;
        let level = match RISK_MAX.get() {
            most if security.value_at_risk > most => return Err(Self::TOO_RISKY),
            most if security.value_at_risk >= most / 2 => SecurityLevel::High,
            _ => security.level,
        };
        Ok((level, AuditTerms::default()))
    }

    fn lock_for(price: Balance, _: &Security, _: &AuditTerms) -> Balance {
        price.saturating_mul(LOCK_MULTIPLE.get())
    }

    fn least_price(_: u32, _: &AuditTerms) -> Balance {
        LEAST_PRICE.get()
    }

    fn open(
        task: TaskId,
        units_max: u32,
        security: Security,
        _: AuditTerms,
        assignments: &PerMember<Assignment<AccountId, Balance>>,
    ) -> DispatchResult {
        if REFUSES.get() {
            return Err(Self::REFUSED);
        }
        let assignments = assignments.clone();
        let round = OpenedRound {
            task,
            units_max,
            security,
            assignments,
        };
        OPENED.with_borrow_mut(|rounds| rounds.push(round));
        Ok(())
    }

    fn audit_bond(price: Balance) -> Balance {
        price
    }

    fn is_open(_: TaskId) -> bool {
        false
    }

    fn advance(task: TaskId) -> Result<Weight, DispatchError> {
        ADVANCED.with_borrow_mut(|tasks| tasks.push(task));
        let handled = ON_ADVANCE.get().map_or(Ok(()), |handler| handler(task));
        handled.map(|()| Self::ADVANCE_WEIGHT)
    }
}
