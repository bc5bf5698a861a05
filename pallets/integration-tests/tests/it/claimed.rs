//! Results that nobody has posted: their provider answers for them as for a task's.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_results::Claimed;
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::{
    task::{AuditTerms, FailureReason, Verdict},
    traits::StakeLedger,
    trust::FaultKind,
};

use super::*;

const STRANGER: AccountId = FIRST_STRANGER;
/// What stash 1 has locked for all that it has signed.
const STANDING: Balance = 600;

fn claimed(result: u8) -> frame_support::dispatch::DispatchResult {
    Results::open_claimed(
        TASK,
        Claimed {
            provider: 1,
            price: PRICE,
            claim: claim(result),
            units_max: UNITS_MAX,
            terms: AuditTerms::default(),
            context: 1,
        },
    )
}

#[test]
fn a_wrong_one_costs_what_its_provider_has_locked_elsewhere() {
    TestExt::new().execute_with(|| {
        assert_ok!(MockStake::lock(&1, STANDING));
        MockOutcome::set_standing(TASK, 1, STANDING);
        assert_ok!(claimed(8));
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(slashes()[0].lock, STANDING);
        assert_eq!(money(STRANGER), MONEY);
        pass(CHALLENGE_WINDOW + 1);
        let lost = Verdict::Failed(FailureReason::NoAgreement);
        assert_eq!(decision(), Some(lost));
        assert_eq!(round(), None);
        pass(DEFERRAL);
        assert!(MockStake::awarded(STRANGER) >= STANDING * 30 / 100);
    });
}

#[test]
fn a_challengers_bond_follows_what_is_locked_elsewhere_so_that_all_places_burn_as_much() {
    const LARGE: Balance = 80_000;
    TestExt::new().execute_with(|| {
        assert_ok!(claimed(9));
        let bond = || Disputes::challenge_bond(TASK, &round().unwrap(), &claim(9));
        let small = bond();
        MockOutcome::set_standing(TASK, 1, LARGE);
        let places = Balance::from(surety_types::limits::CHALLENGES_MAX);
        // Half of it is burned when it is lost, and half of the lock.
        assert_eq!(bond() - small, LARGE / places - CHALLENGE_BOND);
        let before = money(STRANGER);
        assert_ok!(challenge(STRANGER, 1));
        assert_eq!(before - money(STRANGER), bond());
    });
}

#[test]
fn a_right_one_stands_and_its_challenger_pays() {
    TestExt::new().execute_with(|| {
        assert_ok!(claimed(9));
        assert_ok!(challenge(STRANGER, 1));
        let before = money(1);
        play_out(&[(1, 9), (STRANGER, 7)]);
        assert_eq!(faults(), []);
        assert_eq!(money(1), before + CHALLENGE_BOND / 2);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!(round(), None);
    });
}

#[test]
fn one_that_was_never_audited_makes_nobody_a_known_provider() {
    TestExt::new().execute_with(|| {
        assert_ok!(claimed(9));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!(Records::<Test>::get(1).clean_tasks, 0);
    });
}

#[test]
fn two_rounds_have_two_numbers() {
    TestExt::new().execute_with(|| {
        assert_ok!(claimed(9));
        assert_noop!(claimed(9), ResultsError::RoundExists);
    });
}
