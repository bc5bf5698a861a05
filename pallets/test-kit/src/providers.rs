//! A list of providers.

use std::{cell::RefCell, collections::BTreeMap};

use surety_types::traits::ProviderDirectory;

use crate::AccountId;

struct Entry {
    available: bool,
    weight: u32,
}

thread_local! {
    static PROVIDERS: RefCell<BTreeMap<AccountId, Entry>> = const { RefCell::new(BTreeMap::new()) };
}

/// Mock of [`ProviderDirectory`].
pub struct MockProviders;

impl MockProviders {
    /// The weight of a provider about which nothing is known.
    pub const NEUTRAL: u32 = 1_000;

    /// Forgets everything.
    pub fn reset() {
        PROVIDERS.with_borrow_mut(BTreeMap::clear);
    }

    /// Adds an available provider of neutral weight.
    pub fn add(stash: AccountId) {
        Self::edit(stash, |entry| entry.available = true);
    }

    /// Says whether the provider may be given work.
    pub fn set_available(stash: AccountId, available: bool) {
        Self::edit(stash, |entry| entry.available = available);
    }

    /// Sets the provider's weight, in thousandths of a neutral one.
    pub fn set_weight(stash: AccountId, weight: u32) {
        Self::edit(stash, |entry| entry.weight = weight);
    }

    fn edit(stash: AccountId, change: impl FnOnce(&mut Entry)) {
        PROVIDERS.with_borrow_mut(|providers| {
            let entry = providers.entry(stash).or_insert(Entry {
                available: true,
                weight: Self::NEUTRAL,
            });
            change(entry);
        });
    }
}

impl ProviderDirectory<AccountId> for MockProviders {
    fn is_available(stash: &AccountId) -> bool {
        PROVIDERS.with_borrow(|providers| providers.get(stash).is_some_and(|entry| entry.available))
    }

    fn weight(stash: &AccountId) -> u32 {
        PROVIDERS.with_borrow(|providers| providers.get(stash).map_or(Self::NEUTRAL, |entry| entry.weight))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(stash: &AccountId) {
        Self::add(*stash);
    }
}
