//! The benchmark: a day on which every operator has made its blocks, and fees were paid.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use frame_benchmarking::{account, v2::*};
use frame_support::traits::{Get, fungible::Mutate};
use surety_emission::{CAP, SURE};
use surety_types::traits::{PoolLedger, Service, ValidatorService};

use crate::{Config, OPERATORS_MAX, Pallet, asset};

#[benchmarks]
mod benches {
    use super::*;

    #[benchmark]
    fn pay_day(n: Linear<1, OPERATORS_MAX>) -> Result<(), BenchmarkError> {
        for index in 0..n {
            let operator: T::AccountId = account("operator", index, 0);
            T::Pools::open_for_benchmark(&operator, SURE.into());
            let service = Service {
                made: 2,
                expected_millionths: 1_500_000,
                owed: SURE.into(),
                paid: (0, 0),
            };
            T::Services::serve_for_benchmark(&operator, service);
        }
        for pot in [T::ValidatorPot::get(), T::Pools::pot()] {
            T::Currency::mint_into(&pot, SURE.saturating_mul(1_000).into())?;
        }
        let before = asset::minted::<T>();

        #[block]
        {
            Pallet::<T>::pay_day(0)?;
        }

        // At the cap nothing is paid, and nothing measured.
        assert!(before < asset::minted::<T>() && asset::minted::<T>() <= CAP);
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
