//! Benchmarks, each with the largest manifest that fits, of a model with every dimension at its limit.

use alloc::boxed::Box;

use frame_benchmarking::v2::*;
use frame_support::BoundedVec;
use frame_system::RawOrigin;
use sp_runtime::SaturatedConversion;
use surety_types::{
    ContentHash,
    limits::{NAME_BYTES_MAX, OPERATIONS_MAX, SPECIAL_IDS_MAX},
    model::{Architecture, ExactForm, ModelFamily, ModelManifest, Operation, SpecialIds, TextForm, Tier},
};

use crate::{Call, Config, Models, Pallet, asset};

/// As many ids as a manifest may list of one kind.
fn special() -> SpecialIds {
    let ids: usize = SPECIAL_IDS_MAX.saturated_into();
    BoundedVec::truncate_from([1].repeat(ids))
}

/// The largest manifest that offers `operation`.
pub(crate) fn largest(operation: Operation) -> ModelManifest {
    let name: usize = NAME_BYTES_MAX.saturated_into();
    let operations: usize = OPERATIONS_MAX.saturated_into();
    let family = match operation {
        Operation::Embed => ModelFamily::Bert,
        Operation::Generate => ModelFamily::Llama,
    };
    ModelManifest {
        name: BoundedVec::truncate_from([b'n'].repeat(name)),
        family,
        tier: Tier::Exact,
        operations: BoundedVec::truncate_from([operation].repeat(operations)),
        weights: ContentHash::repeat_byte(1),
        weights_bytes: u64::MAX,
        text: TextForm {
            tokenizer: ContentHash::repeat_byte(2),
            template: Some(ContentHash::repeat_byte(5)),
            before: special(),
            after: special(),
            unknown: Some(1),
            padding: Some(1),
            stop: special(),
        },
        config: ContentHash::repeat_byte(3),
        exact: Some(ExactForm {
            weight_root: ContentHash::repeat_byte(4),
            architecture: Architecture::largest(family),
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
        _(RawOrigin::Signed(owner), Box::new(manifest.clone()));

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
