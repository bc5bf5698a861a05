//! What a task may ask for.

use frame_support::{BoundedVec, assert_noop, assert_ok};
use surety_types::{model::Operation, traits::ModelCatalog};

use crate::{Error, Models, Uses, mock::*};

#[test]
fn a_registered_model_can_be_asked_for_what_it_offers() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::check(&model, Operation::Embed));
            ModelRegistry::acquire(&model);
            ModelRegistry::acquire(&model);
            assert_eq!(ModelRegistry::uses(&model), 2);
            ModelRegistry::release(&model);
            assert_eq!(ModelRegistry::uses(&model), 1);
            ModelRegistry::release(&model);
            assert!(!Uses::<Test>::contains_key(model) && Models::<Test>::contains_key(model));
        });
}

#[test]
fn an_unknown_model_cannot_be_asked_for() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let embed = Operation::Embed;
            let other = manifest("other").id();
            assert_noop!(ModelRegistry::check(&other, embed), Error::<Test>::UnknownModel);
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::retire(signed(1), model));
            assert_noop!(ModelRegistry::check(&model, embed), Error::<Test>::UnknownModel);
        });
}

/// There is only one operation yet, so a model that lacks it has to be written past the checks.
#[test]
fn a_model_cannot_be_asked_for_what_it_does_not_offer() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            let sound = Models::<Test>::get(model).unwrap();
            let mut idle = sound.clone();
            idle.manifest.operations = BoundedVec::new();
            Models::<Test>::insert(model, idle);
            let embed = Operation::Embed;
            assert_noop!(
                ModelRegistry::check(&model, embed),
                Error::<Test>::OperationNotOffered
            );
            Models::<Test>::insert(model, sound);
        });
}
