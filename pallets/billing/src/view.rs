//! What view functions answer.

use surety_types::{
    TaskId,
    history::{Earning, Page, TaskHistory},
};

use crate::{BalanceOf, Config, Pallet};

impl<T: Config> Pallet<T> {
    /// No sum is kept: a settlement would write one for each of hundreds of payees, and events tell.
    pub(crate) fn earnings_of(
        provider: &T::AccountId,
        before: Option<TaskId>,
    ) -> Page<Earning<BalanceOf<T>>> {
        let page = T::Tasks::page(before);
        let earned = page.items.into_iter().filter_map(|(task, work)| {
            let mut assignments = work.assignments.into_iter();
            let own = assignments.find(|assignment| assignment.provider == *provider)?;
            Some(Earning {
                task,
                amount: own.price,
                is_settled: work.is_settled,
            })
        });
        Page {
            items: earned.collect(),
            next: page.next,
        }
    }
}
