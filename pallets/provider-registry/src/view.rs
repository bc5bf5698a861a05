//! What view functions answer.

use alloc::collections::BTreeSet;

use surety_types::{
    ModelId, TaskId,
    history::{Page, ProviderView, TaskHistory},
    traits::{MeasuredSpeed, ProviderDirectory},
};

use crate::{Config, Pallet, ProviderViewOf, Providers};

impl<T: Config> Pallet<T> {
    pub(crate) fn view(stash: T::AccountId) -> Option<ProviderViewOf<T>> {
        let entry = Providers::<T>::get(&stash)?;
        let is_available = Self::is_available(&stash);
        let measured = T::Speed::measured(&stash);
        Some(ProviderView {
            stash,
            entry,
            is_available,
            measured,
        })
    }

    pub(crate) fn page_of(model: ModelId, before: Option<TaskId>) -> Page<ProviderViewOf<T>> {
        let page = T::Tasks::page(before);
        let of_model = page.items.into_iter().filter(|(_, work)| work.model == model);
        let assignments = of_model.flat_map(|(_, work)| work.assignments);
        let stashes: BTreeSet<_> = assignments.map(|assignment| assignment.provider).collect();
        Page {
            items: stashes.into_iter().filter_map(Self::view).collect(),
            next: page.next,
        }
    }
}
