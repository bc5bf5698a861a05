//! Taking a model out.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_types::ModelId;

use crate::{Error, Event, Models, mock::*};

#[test]
fn the_owner_gets_the_deposit_back() {
    TestExt::new()
        .endow(1, 150)
        .model(1, manifest("MiniLM"))
        .execute_with(|| {
            let model = manifest("MiniLM").id();
            assert_ok!(ModelRegistry::retire(signed(1), model));
            System::assert_last_event(
                Event::Retired {
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
            assert_ok!(ModelRegistry::register(signed(1), manifest("new")));
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
            assert_ok!(ModelRegistry::register(signed(2), manifest("MiniLM")));
            assert_eq!(Models::<Test>::get(model).unwrap().owner, 2);
        });
}
