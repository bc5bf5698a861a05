//! What providers may sell, and how long it stays.

use frame_support::{BoundedVec, assert_noop, assert_ok};
use surety_types::{
    ModelId,
    model::{Architecture, ExactForm, ModelFamily, ModelManifest, Operation, Opset},
    traits,
};

use crate::{Error, Models, Uses, mock::*};

fn check(model: ModelId, operation: Operation) -> sp_runtime::DispatchResult {
    <ModelRegistry as traits::SoldModels>::check(&model, operation)
}

/// A decoder on the exact tier.
fn decoder() -> ModelManifest {
    ModelManifest {
        family: ModelFamily::Llama,
        operations: BoundedVec::truncate_from(vec![Operation::Generate]),
        exact: Some(ExactForm {
            opset: Opset::V1,
            weight_root: Default::default(),
            architecture: Architecture::largest(ModelFamily::Llama),
        }),
        ..manifest("decoder")
    }
}

#[test]
fn what_can_be_shown_to_be_wrong_can_be_sold_and_nothing_else() {
    TestExt::new()
        .endow(1, 500)
        .model(1, manifest("MiniLM"))
        .model(1, decoder())
        .execute_with(|| {
            let (plain, exact) = (manifest("MiniLM").id(), decoder().id());
            assert_ok!(check(exact, Operation::Generate));
            assert_noop!(check(plain, Operation::Embed), Error::<Test>::NotExact);
            assert_noop!(check(exact, Operation::Embed), Error::<Test>::OperationNotOffered);
            let unknown = ModelId::repeat_byte(9);
            assert_noop!(check(unknown, Operation::Embed), Error::<Test>::UnknownModel);
            let speed = <ModelRegistry as traits::SoldModels>::speed;
            assert_eq!(speed(&unknown), None);
            let said = speed(&exact).unwrap() + 1;
            assert_ok!(ModelRegistry::set_audit_speed(RuntimeOrigin::root(), exact, said));
            assert_eq!(speed(&exact), Some(said));
            Checkable::set(false);
            assert_noop!(check(exact, Operation::Generate), Error::<Test>::WorkTooLarge);
        });
}

#[test]
fn a_retired_model_stays_while_it_is_sold_and_goes_with_the_last_of_all_its_uses() {
    TestExt::new().endow(1, 150).model(1, decoder()).execute_with(|| {
        let model = decoder().id();
        <ModelRegistry as traits::ModelCatalog>::acquire(&model);
        <ModelRegistry as traits::SoldModels>::acquire(&model);
        assert_ok!(ModelRegistry::retire(signed(1), model));
        assert_noop!(check(model, Operation::Generate), Error::<Test>::TakesNoTasks);
        <ModelRegistry as traits::ModelCatalog>::release(&model);
        // Tasks and sales are counted apart.
        assert_eq!(<ModelRegistry as traits::ModelCatalog>::uses(&model), 0);
        assert_eq!(<ModelRegistry as traits::SoldModels>::uses(&model), 1);
        assert!(Models::<Test>::contains_key(model));
        <ModelRegistry as traits::SoldModels>::release(&model);
        assert!(!Models::<Test>::contains_key(model) && !Uses::<Test>::contains_key(model));
        assert_eq!((held(1), spendable(1)), (0, 150));
    });
}
