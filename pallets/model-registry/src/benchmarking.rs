//! Benchmarks, each with the largest manifest that fits.

use frame_benchmarking::v2::*;
use frame_support::BoundedVec;
use frame_system::RawOrigin;
use sp_runtime::SaturatedConversion;
use surety_types::{
    limits::{NAME_BYTES_MAX, OPERATIONS_MAX},
    model::{
        Activation, Architecture, ExactForm, ModelFamily, ModelManifest, Operation, Precision, Smoothed, Tier,
    },
    ContentHash,
};

use crate::{asset, Call, Config, Models, Pallet};

/// The largest manifest that offers `operation`.
pub(crate) fn largest(operation: Operation) -> ModelManifest {
    let name: usize = NAME_BYTES_MAX.saturated_into();
    let operations: usize = OPERATIONS_MAX.saturated_into();
    ModelManifest {
        name: BoundedVec::truncate_from([b'n'].repeat(name)),
        family: ModelFamily::Bert,
        tier: Tier::Exact,
        operations: BoundedVec::truncate_from([operation].repeat(operations)),
        weights: ContentHash::repeat_byte(1),
        weights_bytes: u64::MAX,
        tokenizer: ContentHash::repeat_byte(2),
        config: ContentHash::repeat_byte(3),
        exact: Some(ExactForm {
            weight_root: ContentHash::repeat_byte(4),
            architecture: Architecture {
                vocabulary: u32::MAX,
                width: u32::MAX,
                layers: u32::MAX,
                heads: u32::MAX,
                kv_heads: u32::MAX,
                head_dim: u32::MAX,
                inner: u32::MAX,
                positions: u32::MAX,
                epsilon: u32::MAX,
                activation: Activation::SwiGlu,
                smoothed: Smoothed::default(),
                tied: true,
                precision: Precision::Int8,
            },
        }),
    }
}

#[benchmarks]
mod benches {
    use super::*;

    #[benchmark]
    fn register() -> Result<(), BenchmarkError> {
        let owner: T::AccountId = whitelisted_caller();
        asset::endow::<T>(&owner)?;
        let manifest = largest(Operation::Embed);

        #[extrinsic_call]
        _(RawOrigin::Signed(owner), manifest.clone());

        assert!(Models::<T>::contains_key(manifest.id()));
        Ok(())
    }

    #[benchmark]
    fn retire() -> Result<(), BenchmarkError> {
        let owner: T::AccountId = whitelisted_caller();
        asset::endow::<T>(&owner)?;
        let model = Pallet::<T>::do_register(owner.clone(), largest(Operation::Embed))?;

        #[extrinsic_call]
        _(RawOrigin::Signed(owner), model);

        assert!(!Models::<T>::contains_key(model));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
