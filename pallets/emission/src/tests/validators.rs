//! Operators are paid for their days.

use frame_support::{
    assert_ok,
    traits::{Hooks, fungible::Mutate, tokens::Preservation},
};
use frame_system::RawOrigin;
use sp_runtime::TokenError;
use surety_emission::{SESSIONS_PER_YEAR, SURE};
use surety_types::traits::{LeavingPay, ServicePay};

use crate::{Event, Minted, mock::*};

fn two_operators() -> TestExt {
    TestExt::new()
        .endow(1_003, 1_000 * SURE)
        .pool(1, 600_000 * SURE)
        .pool(2, 400_000 * SURE)
}

#[test]
fn a_day_pays_what_is_earned_of_what_is_owed_and_fees_by_blocks() {
    two_operators().execute_with(|| {
        let minted = Minted::<Test>::get();
        collect_fees(30 * SURE);
        serve(1, 20, 20, 60 * SURE);
        serve(2, 10, 20, 45 * SURE);
        Emission::session_ended(287);

        // Ten of eighteen blocks, with which all would have been paid.
        let earned = [60 * SURE, 25 * SURE];
        assert_eq!(rewards(1), earned[0] + 20 * SURE);
        assert_eq!(rewards(2), earned[1] + 10 * SURE);
        assert_eq!(Minted::<Test>::get() - minted, 85 * SURE);
        assert_eq!((in_pot(POOLS), in_pot(FEES)), (115 * SURE, 0));
        let paid = Event::DayPaid {
            session: 287,
            minted: 85 * SURE,
            fees: 30 * SURE,
        };
        assert_eq!(events(), [paid]);
        // And once.
        Emission::session_ended(575);
        assert_eq!(in_pot(POOLS), 115 * SURE);
        assert!(events().is_empty());
    });
}

#[test]
fn only_the_last_session_of_a_day_pays() {
    two_operators().execute_with(|| {
        serve(1, 1, 1, SURE);
        for session in [0, 1, 286, 288, 574] {
            Emission::session_ended(session);
        }
        assert_eq!(in_pot(POOLS), 0);
        // A day of no sessions is one of one.
        RewardSessions::set(0);
        Emission::session_ended(7);
        assert_eq!(rewards(1), SURE);
    });
}

#[test]
fn a_session_is_worth_its_part_of_seven_percent_a_year() {
    two_operators().execute_with(|| {
        let year = Emission::session_pay(100 * SURE) * u128::from(SESSIONS_PER_YEAR);
        assert!(year <= 7 * SURE && 7 * SURE - year < u128::from(SESSIONS_PER_YEAR));
    });
}

#[test]
fn whom_nobody_backs_gets_nothing_and_its_fees_wait() {
    two_operators().execute_with(|| {
        let minted = Minted::<Test>::get();
        collect_fees(30 * SURE);
        serve(1, 10, 10, 6 * SURE);
        serve(3, 20, 20, 60 * SURE);
        Emission::session_ended(287);

        assert_eq!((rewards(1), in_pot(POOLS)), (16 * SURE, 16 * SURE));
        assert_eq!(Minted::<Test>::get() - minted, 6 * SURE);
        assert_eq!(in_pot(FEES), 20 * SURE);
    });
}

#[test]
fn a_day_that_cannot_be_paid_is_paid_with_the_next() {
    two_operators().execute_with(|| {
        // The pot has lost its account, and what there is to pay is less than opens one.
        assert_ok!(Balances::force_set_balance(RawOrigin::Root.into(), POOLS, 0));
        let minted = Minted::<Test>::get();
        serve(1, 1, 1, EXISTENTIAL_DEPOSIT - 1);
        Emission::session_ended(287);
        let said = Event::DayNotPaid {
            session: 287,
            error: TokenError::BelowMinimum.into(),
        };
        assert_eq!(events(), [said]);
        assert_eq!((Minted::<Test>::get(), Services::contains_key(1)), (minted, true));

        let keep = Preservation::Preserve;
        assert_ok!(<Balances as Mutate<_>>::transfer(
            &1_003,
            &POOLS,
            EXISTENTIAL_DEPOSIT,
            keep
        ));
        Emission::session_ended(575);
        assert_eq!(rewards(1), EXISTENTIAL_DEPOSIT - 1);
        assert!(!Services::contains_key(1));
    });
}

#[test]
fn who_leaves_before_a_day_is_over_gets_what_it_is_owed_then_and_its_part_of_the_fees_with_the_day() {
    two_operators().execute_with(|| {
        let minted = Minted::<Test>::get();
        collect_fees(30 * SURE);
        serve(1, 20, 20, 60 * SURE);
        serve(2, 10, 20, 45 * SURE);
        Emission::pay_leaving(&1);
        assert_eq!(rewards(1), 60 * SURE);
        assert_eq!(
            (Minted::<Test>::get() - minted, in_pot(FEES)),
            (60 * SURE, 30 * SURE)
        );
        let paid = Event::LeavingPaid {
            operator: 1,
            minted: 60 * SURE,
        };
        assert_eq!(events(), [paid]);
        // Once, and only who served.
        Emission::pay_leaving(&1);
        Emission::pay_leaving(&3);
        assert!(events().is_empty());

        Emission::session_ended(287);
        assert_eq!((rewards(1), rewards(2)), (80 * SURE, 25 * SURE + 10 * SURE));
        assert_eq!(in_pot(FEES), 0);
    });
}

#[test]
fn who_leaves_when_nothing_can_be_paid_is_paid_with_the_day() {
    two_operators().execute_with(|| {
        assert_ok!(Balances::force_set_balance(RawOrigin::Root.into(), POOLS, 0));
        let minted = Minted::<Test>::get();
        serve(1, 1, 1, EXISTENTIAL_DEPOSIT - 1);
        Emission::pay_leaving(&1);
        let said = Event::LeavingNotPaid {
            operator: 1,
            error: TokenError::BelowMinimum.into(),
        };
        assert_eq!(events(), [said]);
        assert_eq!((Minted::<Test>::get(), Services::contains_key(1)), (minted, true));
    });
}

#[test]
#[should_panic(expected = "a day of all operators has to be paid in a block")]
fn a_runtime_in_which_a_day_fits_no_block_is_noticed() {
    let _reset = TestExt::new();
    DayWeight::set(u64::MAX);
    Emission::integrity_test();
}
