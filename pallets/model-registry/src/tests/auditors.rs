//! Who can audit a model, and how long that takes.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::traits::BadOrigin;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    input::Work,
    limits::MODEL_AUDITORS_MAX,
    model::{Architecture, ExactForm, ModelAudits, ModelFamily, Operation, Opset, Tier},
    stake::Role,
    traits::{ModelCatalog, StakeLedger},
};

use crate::{AuditSpeeds, Auditors, Error, Models, mock::*};

fn with_model(test: impl FnOnce(surety_types::ModelId)) {
    let model = manifest("MiniLM");
    let id = model.id();
    TestExt::new()
        .endow(1, 150)
        .model(1, model)
        .execute_with(|| test(id));
}

/// A verifier with so much stake, whose agent is 1,000 above it.
fn verifier(stash: AccountId, stake: Balance) {
    MockStake::bond(stash, stash + 1_000, Role::Verifier, stake);
}

/// What is known of audits of an item.
fn audits(model: &surety_types::ModelId) -> Result<ModelAudits, sp_runtime::DispatchError> {
    ModelRegistry::audits(model, &ITEM, 0)
}

fn offer(stash: AccountId, model: surety_types::ModelId, offered: bool) -> sp_runtime::DispatchResult {
    ModelRegistry::offer_audits(signed(stash + 1_000), model, offered)
}

#[test]
fn the_stake_counts_of_verifiers_that_said_that_they_audit_the_model() {
    with_model(|model| {
        verifier(10, 300);
        verifier(11, 200);
        let able = || audits(&model).unwrap().able;
        assert_eq!(able(), 0);
        assert_ok!(offer(10, model, true));
        assert_ok!(offer(11, model, true));
        assert_eq!(able(), 500);
        verifier(11, 50);
        assert_eq!(able(), 550);
        assert_ok!(offer(10, model, false));
        assert_eq!(able(), 250);
        assert_noop!(offer(10, model, false), Error::<Test>::NothingChanges);
        assert_noop!(offer(11, model, true), Error::<Test>::NothingChanges);
        assert_noop!(offer(12, model, true), Error::<Test>::NotVerifierAgent);
        assert_noop!(
            offer(10, manifest("other").id(), true),
            Error::<Test>::UnknownModel
        );
    });
}

#[test]
fn the_stake_of_who_has_no_bond_free_does_not_count() {
    with_model(|model| {
        verifier(10, 300);
        verifier(11, 200);
        assert_ok!(offer(10, model, true));
        assert_ok!(offer(11, model, true));
        let able = |bond| ModelRegistry::audits(&model, &ITEM, bond).unwrap().able;
        assert_eq!([able(200), able(201), able(300), able(301)], [500, 300, 300, 0]);
        // An audit of something else has locked some.
        assert_ok!(MockStake::lock(&10, 150));
        assert_eq!([able(150), able(151)], [500, 200]);
    });
}

#[test]
fn of_too_many_those_with_most_stake_count() {
    with_model(|model| {
        for stash in 0..AccountId::from(MODEL_AUDITORS_MAX) {
            verifier(100 + stash, 10 + Balance::from(stash));
            assert_ok!(offer(100 + stash, model, true));
        }
        verifier(300, 10);
        assert_noop!(offer(300, model, true), Error::<Test>::TooManyAuditors);
        verifier(301, 11);
        assert_ok!(offer(301, model, true));
        let auditors = Auditors::<Test>::get(model);
        assert!(auditors.contains(&301) && !auditors.contains(&100));
    });
}

#[test]
fn who_retires_a_model_and_registers_it_again_takes_neither_its_auditors_nor_its_speed() {
    with_model(|model| {
        verifier(10, 300);
        assert_ok!(offer(10, model, true));
        let speed = audits(&model).unwrap().speed + 1;
        let said = ModelRegistry::set_audit_speed(RuntimeOrigin::root(), model, speed);
        assert_ok!(said);
        assert_ok!(ModelRegistry::retire(signed(1), model));
        assert!(audits(&model).is_err());
        assert_ok!(register(signed(1), manifest("MiniLM")));
        let audits = audits(&model).unwrap();
        assert_eq!((audits.able, audits.speed), (300, speed));
    });
}

#[test]
fn what_was_offered_of_a_model_that_is_gone_is_taken_back_and_not_offered_anew() {
    with_model(|model| {
        verifier(10, 300);
        verifier(11, 300);
        assert_ok!(offer(10, model, true));
        assert_ok!(ModelRegistry::retire(signed(1), model));
        assert_noop!(offer(11, model, true), Error::<Test>::UnknownModel);
        assert_noop!(offer(11, model, false), Error::<Test>::NothingChanges);
        assert_ok!(offer(10, model, false));
        assert!(!Auditors::<Test>::contains_key(model));
    });
}

#[test]
fn the_reference_speed_is_set_within_reason_and_not_by_who_registered_the_model_first() {
    with_model(|model| {
        let speed = || audits(&model).unwrap().speed;
        // 84 MB of weights are taken for 21 million multiplications a token, of ten thousand million a
        // second.
        let reference = 476_190;
        assert_eq!(speed(), reference);
        let set = |tokens| ModelRegistry::set_audit_speed(RuntimeOrigin::root(), model, tokens);
        assert_ok!(set(reference / 2));
        assert_eq!(speed(), reference / 2);
        let owner = ModelRegistry::set_audit_speed(signed(1), model, reference * 100);
        assert_noop!(owner, BadOrigin);
        for tokens in [0, reference / 10 - 1, reference * 101] {
            assert_noop!(set(tokens), Error::<Test>::ImplausibleSpeed);
        }
    });
}

#[test]
fn a_long_generation_is_audited_at_the_speed_of_its_length() {
    with_model(|model| {
        let registered = Models::<Test>::get(model).unwrap();
        let mut entry = registered.clone();
        entry.manifest.family = ModelFamily::Llama;
        entry.manifest.exact = Some(ExactForm {
            opset: Opset::V1,
            weight_root: Default::default(),
            architecture: Architecture {
                width: 576,
                inner: 1_536,
                ..Architecture::largest(ModelFamily::Llama)
            },
        });
        Models::<Test>::insert(model, entry);
        let speed = |operation, units_max| {
            let work = Work {
                operation,
                units_max,
                ..ITEM
            };
            ModelRegistry::audits(&model, &work, 0).unwrap().speed
        };
        let usual = speed(Operation::Generate, 100);
        assert_eq!(speed(Operation::Generate, 4_096), usual);
        assert_eq!(speed(Operation::Embed, 8_000), usual);
        let long = speed(Operation::Generate, 8_000);
        assert!(long < usual * 2 / 3, "{long} of {usual}");
        // So it is of what the reference machine is said to do.
        AuditSpeeds::<Test>::insert(model, usual / 2);
        let halved = speed(Operation::Generate, 8_000);
        assert!((long / 2 - 1..=long / 2).contains(&halved), "{halved} of {long}");
        // Under its own id again.
        Models::<Test>::insert(model, registered);
    });
}

#[test]
fn items_can_be_computed_alone_and_proven_wrong_on_the_exact_tier_and_nowhere_else() {
    with_model(|model| {
        let registered = Models::<Test>::get(model).unwrap();
        let item_parts = |tier, has_form: bool| {
            let mut entry = registered.clone();
            entry.manifest.tier = tier;
            entry.manifest.exact = has_form.then(|| ExactForm {
                opset: Opset::V1,
                weight_root: Default::default(),
                architecture: Architecture::largest(ModelFamily::Bert),
            });
            Models::<Test>::insert(model, entry);
            let audits = audits(&model).unwrap();
            // Under its own id again.
            Models::<Test>::insert(model, registered.clone());
            // Whoever can prove an item wrong needs nothing else.
            assert_eq!(audits.has_referee, audits.item_parts > 0);
            audits.item_parts
        };
        assert!(item_parts(Tier::Exact, true) > 0);
        assert_eq!(item_parts(Tier::Exact, false), 0);
        assert_eq!(item_parts(Tier::HardwareClass, true), 0);
        assert_eq!(item_parts(Tier::Tolerance, false), 0);
    });
}
