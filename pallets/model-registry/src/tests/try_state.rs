//! The checker notices each kind of damage.

use frame_support::{BoundedVec, assert_err, assert_ok};

use crate::{Auditors, ModelUse, Models, Uses, asset, mock::*};

/// Does `damage` to a sound state, and expects the checker to say `complaint`.
#[track_caller]
fn damaged(damage: impl FnOnce(), complaint: &'static str) {
    TestExt::new()
        .endow(1, 500)
        .model(1, manifest("MiniLM"))
        .build()
        .execute_with(|| {
            assert_ok!(ModelRegistry::do_try_state());
            damage();
            assert_err!(ModelRegistry::do_try_state(), complaint);
        });
}

#[test]
fn model_1_notices_a_manifest_under_a_wrong_hash() {
    let swap = || {
        Models::<Test>::mutate(manifest("MiniLM").id(), |entry| {
            entry.as_mut().unwrap().manifest = manifest("other");
        });
    };
    damaged(swap, "MODEL-1: a model is not stored under its hash");
}

#[test]
fn model_2_notices_a_manifest_that_should_have_been_refused() {
    let slip_in = || {
        let mut entry = Models::<Test>::get(manifest("MiniLM").id()).unwrap();
        entry.manifest.weights_bytes = 0;
        Models::<Test>::insert(entry.manifest.id(), entry);
    };
    damaged(slip_in, "MODEL-2: a manifest should have been refused");
}

#[test]
fn model_3_notices_a_hold_that_differs_from_the_deposits() {
    let complaint = "MODEL-3: the hold differs from the deposits";
    damaged(|| asset::release::<Test>(&1, 1).unwrap(), complaint);
    damaged(|| asset::hold::<Test>(&1, 1).unwrap(), complaint);
    // Of an owner whose models are gone.
    let forgotten = || Models::<Test>::remove(manifest("MiniLM").id());
    damaged(forgotten, complaint);
}

#[test]
fn model_4_notices_a_use_by_nothing_or_of_no_model() {
    let complaint = "MODEL-4: a use by nothing, or of no model";
    let used = |model, tasks, sales| {
        let retired = false;
        let used = ModelUse {
            tasks,
            sales,
            retired,
        };
        Uses::<Test>::insert(model, used);
    };
    damaged(|| used(manifest("MiniLM").id(), 0, 0), complaint);
    damaged(|| used(manifest("other").id(), 1, 0), complaint);
    damaged(|| used(manifest("other").id(), 0, 1), complaint);
}

#[test]
fn model_5_notices_a_list_of_no_auditors_or_with_one_twice() {
    let listed = |auditors: &[AccountId]| {
        let auditors = BoundedVec::truncate_from(auditors.to_vec());
        Auditors::<Test>::set(manifest("MiniLM").id(), auditors);
    };
    let complaint = "MODEL-5: no auditors, or one twice";
    damaged(|| listed(&[]), complaint);
    damaged(|| listed(&[7, 8, 7]), complaint);
}
