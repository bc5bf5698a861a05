//! What validators did and were not paid for yet.

use alloc::vec::Vec;
use sp_runtime::{Permill, traits::Saturating};
use surety_types::traits::{MILLIONTHS, Service, ValidatorPenalties, ValidatorService};

use crate::{Candidates, Config, Pallet, ServiceOf, Services};

/// Who has made so much of what was expected of it was there.
const PRESENT_PART: Permill = Permill::from_percent(90);

impl<T: Config> Pallet<T> {
    /// Adds to what a candidate did.
    pub(crate) fn add_service(operator: &T::AccountId, more: ServiceOf<T>) {
        Services::<T>::mutate(operator, |kept| {
            let service = kept.get_or_insert_default();
            service.made = service.made.saturating_add(more.made);
            service.expected_millionths = service
                .expected_millionths
                .saturating_add(more.expected_millionths);
            service.owed = service.owed.saturating_add(more.owed);
            let (made, expected) = &mut service.paid;
            *made = made.saturating_add(more.paid.0);
            *expected = expected.saturating_add(more.paid.1);
        });
    }

    /// Has an operator paid for what was taken from it, if it has a pool still.
    pub(crate) fn give_back(operator: &T::AccountId, service: ServiceOf<T>) {
        if Candidates::<T>::contains_key(operator) {
            Self::add_service(operator, service);
        }
    }
}

impl<T: Config> ValidatorService<T::AccountId, T::Balance> for Pallet<T> {
    fn take_services() -> Vec<(T::AccountId, Service<T::Balance>)> {
        let services: Vec<_> = Services::<T>::drain().collect();
        for (operator, service) in &services {
            let made = u64::from(service.all_made()).saturating_mul(MILLIONTHS);
            // As much as is paid in full: one block a day makes good for nothing.
            if made >= PRESENT_PART.mul_ceil(service.all_expected_millionths()) {
                T::Penalties::note_present(operator);
            }
        }
        services
    }

    fn take_owed(operator: &T::AccountId) -> Option<Service<T::Balance>> {
        Services::<T>::mutate(operator, |kept| kept.as_mut()?.take_owed())
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn serve_for_benchmark(operator: &T::AccountId, service: Service<T::Balance>) {
        Candidates::<T>::mutate(operator, |kept| {
            kept.get_or_insert_default();
        });
        // There is something that it makes good for.
        T::Penalties::note_missed(operator);
        Services::<T>::insert(operator, service);
    }
}
