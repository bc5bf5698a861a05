//! Taking a model out.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_types::{ModelId, traits::ModelCatalog};

use crate::{Error, Event, Models, Uses, mock::*};

#[test]
fn the_owner_gets_the_deposit_back() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::retire(signed(1), model));
            System::assert_has_event(
                Event::Retired {
                    model,
                    owner: 1,
                    tasks: 0,
                    sales: 0,
                }
                .into(),
            );
            System::assert_last_event(
                Event::Removed {
                    model,
                    owner: 1,
                    deposit: DEPOSIT,
                }
                .into(),
            );
            assert!(!Models::<Test>::contains_key(model));
            assert_eq!((held(1), spendable(1)), (0, 150));
        });
}

#[test]
fn the_deposit_that_was_held_is_returned_whatever_it_costs_today() {
    TestExt::new()
        .endow(1, 500)
        .model(1, manifest("old"))
        .execute_with(|| {
            ModelDeposit::set(300);
            assert_ok!(register(signed(1), manifest("new")));
            assert_eq!(held(1), 400);
            assert_ok!(ModelRegistry::retire(signed(1), manifest("old").id()));
            assert_eq!((held(1), spendable(1)), (300, 200));
        });
}

#[test]
fn only_the_owner_retires() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            assert_noop!(ModelRegistry::retire(signed(2), model), Error::<Test>::NotOwner);
            assert_noop!(
                ModelRegistry::retire(RuntimeOrigin::none(), model),
                DispatchError::BadOrigin
            );
        });
}

#[test]
fn an_unknown_model_cannot_be_retired() {
    TestExt::new().execute_with(|| {
        let nothing = ModelId::repeat_byte(9);
        assert_noop!(
            ModelRegistry::retire(signed(1), nothing),
            Error::<Test>::UnknownModel
        );
    });
}

#[test]
fn a_retired_model_may_be_registered_by_somebody_else() {
    TestExt::new()
        .endow(1, 150)
        .endow(2, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::retire(signed(1), model));
            assert_ok!(register(signed(2), manifest("MiniLM")));
            assert_eq!(Models::<Test>::get(model).unwrap().owner, 2);
        });
}

/// A model of account 1 that so many tasks have asked for, and that was retired then.
fn retired_under(tasks: u32, test: impl FnOnce(ModelId)) {
    TestExt::new()
        .endow(1, 150)
        .endow(2, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            for _ in 0..tasks {
                ModelRegistry::acquire(&model);
            }
            assert_ok!(ModelRegistry::retire(signed(1), model));
            System::assert_last_event(
                Event::Retired {
                    model,
                    owner: 1,
                    tasks,
                    sales: 0,
                }
                .into(),
            );
            test(model);
        });
}

#[test]
fn a_retired_model_stays_for_the_tasks_that_asked_for_it_and_goes_with_the_last() {
    retired_under(2, |model| {
        ModelRegistry::release(&model);
        assert!(Models::<Test>::contains_key(model));
        assert_eq!((held(1), spendable(1)), (DEPOSIT, 50));
        ModelRegistry::release(&model);
        System::assert_last_event(
            Event::Removed {
                model,
                owner: 1,
                deposit: DEPOSIT,
            }
            .into(),
        );
        assert!(!Models::<Test>::contains_key(model) && !Uses::<Test>::contains_key(model));
        assert_eq!((held(1), spendable(1)), (0, 150));
    });
}

#[test]
fn a_retired_model_takes_no_new_task_so_that_nobody_keeps_it() {
    retired_under(1, |model| {
        let refused = ModelRegistry::check(&model, &ITEM);
        assert_noop!(refused, Error::<Test>::TakesNoTasks);
        assert_eq!(ModelRegistry::uses(&model), 1);
    });
}

#[test]
fn a_model_is_retired_once() {
    retired_under(1, |model| {
        let again = ModelRegistry::retire(signed(1), model);
        assert_noop!(again, Error::<Test>::AlreadyRetired);
        ModelRegistry::release(&model);
        assert_ok!(register(signed(2), manifest("MiniLM")));
        assert_ok!(ModelRegistry::check(&model, &ITEM));
    });
}

#[test]
fn who_retired_a_model_cannot_keep_it_from_others_with_tasks_of_its_own() {
    retired_under(1, |model| {
        assert_ok!(register(signed(2), manifest("MiniLM")));
        assert_eq!(Models::<Test>::get(model).unwrap().owner, 2);
        assert_ok!(ModelRegistry::check(&model, &ITEM));
        let again = register(signed(1), manifest("MiniLM"));
        assert_noop!(again, Error::<Test>::AlreadyRegistered);
        assert_noop!(ModelRegistry::retire(signed(1), model), Error::<Test>::NotOwner);
        ModelRegistry::release(&model);
        assert!(Models::<Test>::contains_key(model));
    });
}

#[test]
fn who_retired_a_model_by_mistake_registers_it_again() {
    retired_under(1, |model| {
        assert_ok!(register(signed(1), manifest("MiniLM")));
        assert_ok!(ModelRegistry::check(&model, &ITEM));
    });
}
