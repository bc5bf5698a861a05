//! Entering a model.

use frame_support::{assert_noop, assert_ok, BoundedVec};
use sp_runtime::{DispatchError, TokenError};

use crate::{mock::*, Error, Event, Model, Models};

#[test]
fn a_model_is_stored_under_the_hash_of_its_manifest() {
    TestExt::new().endow(1, 150).execute_with(|| {
        let manifest = manifest("MiniLM");
        let model = manifest.id();
        assert_ok!(ModelRegistry::register(signed(1), manifest.clone()));
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
            assert_ok!(ModelRegistry::register(signed(1), other));
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
                    ModelRegistry::register(signed(who), manifest("MiniLM")),
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
        assert_noop!(
            ModelRegistry::register(signed(1), idle),
            Error::<Test>::NoOperations
        );
    });
}

#[test]
fn a_name_is_text_and_not_empty() {
    TestExt::new().endow(1, 500).execute_with(|| {
        assert_noop!(
            ModelRegistry::register(signed(1), manifest("")),
            Error::<Test>::InvalidName
        );
        let mut garbled = manifest("MiniLM");
        garbled.name = BoundedVec::truncate_from(vec![b'M', 0xff]);
        assert_noop!(
            ModelRegistry::register(signed(1), garbled),
            Error::<Test>::InvalidName
        );
    });
}

#[test]
fn a_model_without_weights_is_refused() {
    TestExt::new().endow(1, 500).execute_with(|| {
        let mut hollow = manifest("MiniLM");
        hollow.weights_bytes = 0;
        assert_noop!(
            ModelRegistry::register(signed(1), hollow),
            Error::<Test>::EmptyWeights
        );
    });
}

#[test]
fn the_owner_has_to_have_the_deposit() {
    TestExt::new().endow(1, DEPOSIT - 1).execute_with(|| {
        assert_noop!(
            ModelRegistry::register(signed(1), manifest("MiniLM")),
            TokenError::FundsUnavailable
        );
        assert_noop!(
            ModelRegistry::register(RuntimeOrigin::none(), manifest("MiniLM")),
            DispatchError::BadOrigin
        );
    });
}
