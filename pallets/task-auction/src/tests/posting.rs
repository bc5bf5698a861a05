use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockEscrow, MockModels, MockTrust};
use surety_types::{
    limits,
    task::{SecurityLevel, TaskSpec},
    traits::Escrow,
};

use crate::{Error, Event, NextTaskId, TaskStateOf, mock::*};

fn refused(change: impl FnOnce(&mut TaskSpec), error: Error<Test>) {
    let mut spec = spec(2);
    change(&mut spec);
    assert_noop!(TaskAuction::post(signed(CLIENT), spec, CAP), error);
}

#[test]
fn a_posted_task_takes_bids_and_its_cap_is_in_escrow() {
    TestExt::new().execute_with(|| {
        assert_ok!(TaskAuction::post(signed(CLIENT), spec(3), CAP));
        let expected = crate::TaskOf::<Test> {
            client: CLIENT,
            spec: spec(3),
            cap: CAP,
            audits: surety_types::task::AuditTerms::default(),
            posted_at: 1,
            state: TaskStateOf::<Test>::Bidding {
                until: 1 + BID_WINDOW,
            },
        };
        assert_eq!(task(0), expected);
        assert_eq!(MockEscrow::held(0), CAP);
        assert_eq!(
            events(),
            [Event::TaskPosted {
                task: 0,
                client: CLIENT,
                cap: CAP
            }]
        );
    });
}

#[test]
fn ids_count_up_from_0() {
    TestExt::new().execute_with(|| {
        assert_eq!([post(1), post(1), post(2)], [0, 1, 2]);
        assert_eq!(NextTaskId::<Test>::get(), 3);
    });
}

#[test]
fn every_fault_of_a_specification_is_named() {
    TestExt::new().execute_with(|| {
        refused(|spec| spec.redundancy = 0, Error::ZeroRedundancy);
        refused(
            |spec| spec.redundancy = limits::REDUNDANCY_MAX + 1,
            Error::RedundancyTooHigh,
        );
        refused(|spec| spec.input_bytes = 0, Error::InputEmpty);
        refused(
            |spec| spec.input_bytes = INPUT_BYTES_MAX + 1,
            Error::InputTooLarge,
        );
        refused(|spec| spec.units_max = 0, Error::ZeroUnits);
        refused(|spec| spec.units_max = UNITS_MAX + 1, Error::TooManyUnits);
        refused(|spec| spec.sources.clear(), Error::NoSources);
        let no_address = b"/ip4/127.0.0.1".to_vec().try_into().unwrap();
        refused(
            |spec| spec.sources.try_push(no_address).unwrap(),
            Error::InvalidSource,
        );
    });
}

#[test]
fn what_is_at_the_bounds_is_accepted() {
    TestExt::new().execute_with(|| {
        let mut spec = spec(limits::REDUNDANCY_MAX);
        spec.input_bytes = INPUT_BYTES_MAX;
        spec.units_max = UNITS_MAX;
        let source = spec.sources.first().cloned().unwrap();
        while spec.sources.try_push(source.clone()).is_ok() {}
        assert_ok!(TaskAuction::post(signed(CLIENT), spec, CAP));
    });
}

#[test]
fn a_parameter_can_lower_the_highest_redundancy_but_not_raise_it() {
    TestExt::new().execute_with(|| {
        RedundancyMax::set(2);
        refused(|spec| spec.redundancy = 3, Error::RedundancyTooHigh);
        RedundancyMax::set(limits::REDUNDANCY_MAX + 10);
        refused(
            |spec| spec.redundancy = limits::REDUNDANCY_MAX + 1,
            Error::RedundancyTooHigh,
        );
    });
}

#[test]
fn the_catalogue_and_the_escrow_have_a_say() {
    TestExt::new().execute_with(|| {
        assert_noop!(
            TaskAuction::post(signed(CLIENT), spec(1), MockEscrow::FEE_MIN),
            MockEscrow::CAP_BELOW_FEE
        );
        MockEscrow::make_poor(CLIENT);
        assert_noop!(
            TaskAuction::post(signed(CLIENT), spec(1), CAP),
            MockEscrow::TOO_POOR
        );
        MockModels::add(MODEL, &[]);
        assert_noop!(
            TaskAuction::post(signed(ANYBODY), spec(1), CAP),
            MockModels::OPERATION_NOT_OFFERED
        );
        MockModels::remove(MODEL);
        assert_noop!(
            TaskAuction::post(signed(ANYBODY), spec(1), CAP),
            MockModels::UNKNOWN_MODEL
        );
    });
}

#[test]
fn a_retired_model_takes_no_new_task_and_goes_with_the_last_however_that_ends() {
    let ends: [fn(u64); 3] = [
        |task| {
            assert_ok!(TaskAuction::cancel(signed(CLIENT), task));
        },
        // Nobody bids on it.
        |task| {
            run_to(1 + BID_WINDOW + REVEAL_WINDOW + 3);
            assert!(matches!(state(task), TaskStateOf::<Test>::Failed { .. }));
        },
        |task| {
            assert_ok!(place(task, 0, 500));
            run_to(1 + BID_WINDOW + 1);
            assert_ok!(open(task, 0, 500));
            run_to(1 + BID_WINDOW + REVEAL_WINDOW + 3);
            assert_ok!(decide(task, agreed(&[0], 25)));
        },
    ];
    for end in ends {
        TestExt::new().providers(3).execute_with(|| {
            let (first, second) = (post(1), post(1));
            MockModels::retire(MODEL);
            assert_noop!(
                TaskAuction::post(signed(CLIENT), spec(1), CAP),
                MockModels::TAKES_NO_TASKS
            );
            assert_ok!(TaskAuction::cancel(signed(CLIENT), first));
            assert!(MockModels::contains(MODEL));
            end(second);
            assert!(!MockModels::contains(MODEL));
        });
    }
}

#[test]
fn ids_never_wrap_around() {
    TestExt::new().execute_with(|| {
        NextTaskId::<Test>::put(u64::MAX);
        assert_noop!(
            TaskAuction::post(signed(CLIENT), spec(1), CAP),
            Error::<Test>::Overflow
        );
    });
}

#[test]
fn the_trust_lock_sets_the_level_or_refuses_what_is_at_risk() {
    TestExt::new().execute_with(|| {
        MockTrust::set_risk_max(100);
        let at_risk = |value_at_risk| {
            let mut spec = spec(1);
            spec.security.value_at_risk = value_at_risk;
            spec
        };
        assert_ok!(TaskAuction::post(signed(CLIENT), at_risk(49), CAP));
        assert_ok!(TaskAuction::post(signed(CLIENT), at_risk(50), CAP));
        let level = |id| task(id).spec.security.level;
        assert_eq!(
            [level(0), level(1)],
            [SecurityLevel::Standard, SecurityLevel::High]
        );
        assert_noop!(
            TaskAuction::post(signed(CLIENT), at_risk(101), CAP),
            MockTrust::TOO_RISKY
        );
    });
}
