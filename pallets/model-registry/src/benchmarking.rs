//! Benchmarks, each with the largest manifest that fits, of a model with every dimension at its limit.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a benchmark that panics has failed"
)]

use alloc::boxed::Box;

use frame_benchmarking::v2::*;
use frame_support::{BoundedVec, traits::EnsureOrigin};
use frame_system::RawOrigin;
use sp_runtime::SaturatedConversion;
use surety_types::{
    ContentHash, ModelId,
    limits::{MODEL_AUDITORS_MAX, NAME_BYTES_MAX, OPERATIONS_MAX, SPECIAL_IDS_MAX},
    model::{
        Architecture, ExactForm, ModelFamily, ModelManifest, Name, Operation, Opset, SpecialIds, TextForm,
        Tier, audit_speeds,
    },
    stake::Role,
    traits::StakeLedger,
};

use crate::{AuditSpeeds, Auditors, Call, Config, Models, Pallet, asset};

/// As many ids as a manifest may list of one kind.
fn special() -> SpecialIds {
    let ids: usize = SPECIAL_IDS_MAX.saturated_into();
    BoundedVec::truncate_from([1].repeat(ids))
}

/// The largest manifest that offers `operation`.
pub(crate) fn largest(operation: Operation) -> ModelManifest {
    let operations: usize = OPERATIONS_MAX.saturated_into();
    let family = match operation {
        Operation::Embed => ModelFamily::Bert,
        Operation::Generate => ModelFamily::Llama,
    };
    ModelManifest {
        name: Name::cut(&"n".repeat(NAME_BYTES_MAX.saturated_into())),
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
            opset: Opset::V1,
            weight_root: ContentHash::repeat_byte(4),
            architecture: Architecture::largest(family),
        }),
    }
}

/// As many verifiers as can be say that they audit a model.
pub(crate) fn fill_auditors<T: Config>(model: ModelId) {
    for index in 0..MODEL_AUDITORS_MAX {
        let stash: T::AccountId = account("model auditor", index, 0);
        let agent: T::AccountId = account("model auditor agent", index, 0);
        // 1,000 SURE, and each a little more.
        let stake = 1_000_000_000_000_000u64.saturating_add(index.into());
        T::Stake::endow(&stash, &agent, Role::Verifier, stake.saturated_into());
        frame_support::assert_ok!(Pallet::<T>::do_offer_audits(&agent, model, true));
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

    #[benchmark]
    fn set_audit_speed() -> Result<(), BenchmarkError> {
        let owner: T::AccountId = account("owner", 0, 0);
        asset::endow::<T>(&owner)?;
        let model = Pallet::<T>::do_register(owner, largest(Operation::Embed))?;
        let (tokens, _) = audit_speeds(largest(Operation::Embed).work_per_token());
        let origin = T::SpeedOrigin::try_successful_origin().map_err(|()| BenchmarkError::Weightless)?;

        #[extrinsic_call]
        _(origin as T::RuntimeOrigin, model, tokens);

        assert_eq!(AuditSpeeds::<T>::get(model), Some(tokens));
        Ok(())
    }

    /// All places are taken, and the stake of everybody who has one is looked at.
    #[benchmark]
    fn offer_audits() -> Result<(), BenchmarkError> {
        let owner: T::AccountId = account("owner", 0, 0);
        asset::endow::<T>(&owner)?;
        let model = Pallet::<T>::do_register(owner, largest(Operation::Embed))?;
        fill_auditors::<T>(model);
        let (stash, agent): (T::AccountId, T::AccountId) = (account("last", 0, 0), whitelisted_caller());
        T::Stake::endow(
            &stash,
            &agent,
            Role::Verifier,
            2_000_000_000_000_000u64.saturated_into(),
        );

        #[extrinsic_call]
        _(RawOrigin::Signed(agent), model, true);

        assert!(Auditors::<T>::get(model).contains(&stash));
        Ok(())
    }

    impl_benchmark_test_suite!(Pallet, crate::mock::TestExt::new().build(), crate::mock::Test);
}
