//! Entering a model.

use frame_support::{BoundedVec, assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::{DispatchError, TokenError};
use surety_types::model::{
    Activation, Architecture, ExactForm, ModelFamily, ModelManifest, Operation, Opset, Pooling,
};

use crate::{Error, Event, Model, Models, mock::*};

#[test]
fn a_model_is_stored_under_the_hash_of_its_manifest() {
    TestExt::new().endow(1, 150).execute_with(|| {
        let manifest = manifest("MiniLM");
        let model = manifest.id();
        assert_ok!(register(signed(1), manifest.clone()));
        System::assert_last_event(
            Event::Registered {
                model,
                owner: 1,
                deposit: DEPOSIT,
            }
            .into(),
        );
        let entry = Model {
            owner: 1,
            manifest,
            deposit: DEPOSIT,
        };
        assert_eq!(Models::<Test>::get(model), Some(entry));
        assert_eq!((held(1), spendable(1)), (DEPOSIT, 50));
    });
}

#[test]
fn any_change_of_the_manifest_makes_another_model() {
    TestExt::new()
        .endow(1, 500)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let mut other = manifest("MiniLM");
            other.weights_bytes += 1;
            assert_ok!(register(signed(1), other));
            assert_eq!((Models::<Test>::iter().count(), held(1)), (2, 2 * DEPOSIT));
        });
}

#[test]
fn a_model_is_registered_once() {
    TestExt::new()
        .endow(1, 500)
        .endow(2, 500)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            for who in [1, 2] {
                assert_noop!(
                    register(signed(who), manifest("MiniLM")),
                    Error::<Test>::AlreadyRegistered
                );
            }
        });
}

#[test]
fn a_model_without_operations_is_refused() {
    TestExt::new().endow(1, 500).execute_with(|| {
        let mut idle = manifest("MiniLM");
        idle.operations = BoundedVec::new();
        assert_noop!(register(signed(1), idle), Error::<Test>::NoOperations);
    });
}

#[test]
fn a_model_has_a_name() {
    TestExt::new().endow(1, 500).execute_with(|| {
        assert_noop!(register(signed(1), manifest("")), Error::<Test>::InvalidName);
    });
}

#[test]
fn a_model_without_weights_is_refused() {
    TestExt::new().endow(1, 500).execute_with(|| {
        let mut hollow = manifest("MiniLM");
        hollow.weights_bytes = 0;
        assert_noop!(register(signed(1), hollow), Error::<Test>::EmptyWeights);
    });
}

#[test]
fn the_owner_has_to_have_the_deposit() {
    TestExt::new().endow(1, DEPOSIT - 1).execute_with(|| {
        assert_noop!(
            register(signed(1), manifest("MiniLM")),
            TokenError::FundsUnavailable
        );
        assert_noop!(
            register(RuntimeOrigin::none(), manifest("MiniLM")),
            DispatchError::BadOrigin
        );
    });
}

/// A manifest of a model on the exact tier with every dimension at its limit, but for what `change` says.
fn exact(family: ModelFamily, change: impl FnOnce(&mut Architecture)) -> ModelManifest {
    let mut architecture = Architecture::largest(family);
    change(&mut architecture);
    ModelManifest {
        family,
        operations: BoundedVec::truncate_from(vec![family.operation()]),
        exact: Some(ExactForm {
            opset: Opset::V1,
            weight_root: H256::repeat_byte(4),
            architecture,
        }),
        ..manifest("exact")
    }
}

#[test]
fn a_model_at_every_limit_can_be_registered() {
    TestExt::new().endow(1, 500).execute_with(|| {
        for family in ModelFamily::ALL {
            assert_ok!(register(signed(1), exact(family, |_| ())));
        }
    });
}

#[test]
fn a_model_of_which_no_task_can_be_disputed_is_refused() {
    TestExt::new().endow(1, 500).execute_with(|| {
        Checkable::set(false);
        for family in ModelFamily::ALL {
            assert_noop!(
                register(signed(1), exact(family, |_| ())),
                Error::<Test>::TooManyPositions
            );
        }
        Checkable::set(true);
    });
}

#[test]
fn what_a_node_would_have_to_work_for_is_refused_at_the_door() {
    use ModelFamily::{Bert, Llama};
    type Change = fn(&mut Architecture);
    let cases: [(ModelFamily, Change, Error<Test>); 18] = [
        // The hostile encoder: a layout of it took 13 seconds.
        (
            Bert,
            |a| {
                (a.width, a.heads, a.kv_heads, a.head_dim) = (8, 1, 1, 8);
                (a.layers, a.inner, a.positions) = (150_994_656, 4, 1);
            },
            Error::TooManyLayers,
        ),
        (Llama, |a| a.layers += 1, Error::TooManyLayers),
        (Llama, |a| a.layers = 0, Error::ZeroDimension),
        (Bert, |a| a.heads = 0, Error::ZeroDimension),
        (Llama, |a| a.kv_heads = 0, Error::ZeroDimension),
        (Llama, |a| a.vocabulary += 1, Error::VocabularyTooLarge),
        (Llama, |a| a.width += 4, Error::TooWide),
        (Llama, |a| a.heads *= 2, Error::TooManyHeads),
        (Llama, |a| a.head_dim = u32::MAX, Error::HeadsTooWide),
        (Llama, |a| a.inner += 4, Error::InnerTooWide),
        (Bert, |a| a.positions = 1 + (1 << 14), Error::TooManyPositions),
        (Llama, |a| a.positions = 1, Error::TooFewPositions),
        (Llama, |a| a.kv_heads = 3, Error::UnevenHeads),
        // Heads that do not share the width of a state.
        (Bert, |a| a.width -= 4, Error::UnevenHeads),
        (Llama, |a| a.inner = 2, Error::UnalignedWidth),
        (
            Bert,
            |a| a.activation = Activation::SwiGlu,
            Error::ForeignActivation,
        ),
        (Llama, |a| a.pooling = Pooling::First, Error::ForeignPooling),
        (Llama, |a| a.epsilon = f32::NAN.to_bits(), Error::InvalidEpsilon),
    ];
    TestExt::new().endow(1, 500).execute_with(|| {
        for (family, change, error) in cases {
            assert_noop!(register(signed(1), exact(family, change)), error);
        }
    });
}

#[test]
fn an_exact_model_offers_what_its_family_can_do() {
    TestExt::new().endow(1, 500).execute_with(|| {
        let mut manifest = exact(ModelFamily::Bert, |_| ());
        manifest.operations = BoundedVec::truncate_from(vec![Operation::Embed, Operation::Generate]);
        assert_noop!(register(signed(1), manifest), Error::<Test>::ForeignOperation);
    });
}
