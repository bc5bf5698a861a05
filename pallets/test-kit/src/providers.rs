//! A list of providers.

use std::{cell::RefCell, collections::BTreeMap};

use surety_types::{
    region::Region,
    speed::{MeasuredView, Requirements},
    traits::ProviderDirectory,
};

use crate::AccountId;

struct Entry {
    available: bool,
    weight: u32,
    measured: Option<MeasuredView>,
    region: Option<Region>,
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

    /// Says what was measured of the provider, if that counts.
    pub fn set_measured(stash: AccountId, measured: Option<MeasuredView>) {
        Self::edit(stash, |entry| entry.measured = measured);
    }

    /// Says where the provider says that it is.
    pub fn set_region(stash: AccountId, region: Option<Region>) {
        Self::edit(stash, |entry| entry.region = region);
    }

    fn edit(stash: AccountId, change: impl FnOnce(&mut Entry)) {
        PROVIDERS.with_borrow_mut(|providers| {
            let entry = providers.entry(stash).or_insert(Entry {
                available: true,
                weight: Self::NEUTRAL,
                measured: None,
                region: None,
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

    fn meets(stash: &AccountId, requirements: &Requirements) -> bool {
        PROVIDERS.with_borrow(|providers| {
            let entry = providers.get(stash);
            let declared = entry.and_then(|entry| entry.region);
            requirements.are_met_by(declared, entry.and_then(|entry| entry.measured.as_ref()))
        })
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn register_for_benchmark(stash: &AccountId) {
        Self::add(*stash);
        let measured = MeasuredView {
            tier: surety_types::speed::Tier::C,
            giga_operations: 1,
            memory_mib: 1,
            rounds_missed: 0,
        };
        Self::set_measured(*stash, Some(measured));
        Self::set_region(*stash, "DE".parse().ok());
    }
}
