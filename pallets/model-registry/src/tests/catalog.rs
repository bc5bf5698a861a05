//! What a task may ask for.

use frame_support::{BoundedVec, assert_noop, assert_ok};
use surety_types::{
    input::Work,
    model::{Architecture, ExactForm, ModelFamily, Operation, Opset},
    traits::ModelCatalog,
};

use crate::{Error, Models, Uses, mock::*};

#[test]
fn a_registered_model_can_be_asked_for_what_it_offers() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::check(&model, &ITEM));
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
            let other = manifest("other").id();
            assert_noop!(ModelRegistry::check(&other, &ITEM), Error::<Test>::UnknownModel);
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::retire(signed(1), model));
            assert_noop!(ModelRegistry::check(&model, &ITEM), Error::<Test>::UnknownModel);
        });
}

#[test]
fn work_that_its_size_alone_makes_impossible_is_refused_and_costs_nothing() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            let refused = |work: &Work| ModelRegistry::check(&model, work);
            for (input_bytes, error) in [(13, Error::<Test>::InputRagged), (8, Error::InputTooShort)] {
                assert_noop!(refused(&Work { input_bytes, ..ITEM }), error);
            }
            let mut sound = Models::<Test>::get(model).unwrap();
            let before = sound.clone();
            sound.manifest.operations = BoundedVec::truncate_from(vec![Operation::Generate]);
            sound.manifest.exact = Some(ExactForm {
                opset: Opset::V1,
                weight_root: Default::default(),
                architecture: Architecture {
                    positions: 4,
                    ..Architecture::largest(ModelFamily::Llama)
                },
            });
            Models::<Test>::insert(model, sound);
            let prompt = |tokens: u32| Work {
                operation: Operation::Generate,
                input_bytes: 4 * (6 + tokens),
                units_max: 9,
            };
            assert_noop!(refused(&prompt(0)), Error::<Test>::InputTooShort);
            assert_ok!(refused(&prompt(3)));
            assert_noop!(refused(&prompt(4)), Error::<Test>::PromptTooLong);
            Checkable::set(false);
            assert_noop!(refused(&prompt(3)), Error::<Test>::WorkTooLarge);
            Models::<Test>::insert(model, before);
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
            assert_noop!(
                ModelRegistry::check(&model, &ITEM),
                Error::<Test>::OperationNotOffered
            );
            Models::<Test>::insert(model, sound);
        });
}
