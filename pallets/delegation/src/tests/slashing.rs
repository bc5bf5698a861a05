//! Losing stake.

use frame_support::{assert_noop, assert_ok, dispatch::Pays};
use sp_runtime::Perquintill;
use surety_types::traits::PoolLedger;

use crate::{Error, Event, Totals, mock::*};

fn percent(part: u64) -> Perquintill {
    Perquintill::from_percent(part)
}

/// Convicts operator 1 of what it did in the running session, and carries it out at once.
fn slash(part: Perquintill) -> Balance {
    let since = Session::get();
    Delegation::note_pending(&1, since);
    Delegation::slash(&1, part, since)
}

#[test]
fn everybody_loses_the_same_part_and_the_operators_burns_at_once() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 500)
        .execute_with(|| {
            let issued = Balances::total_issuance();
            assert_eq!(slash(percent(10)), 150);
            System::assert_last_event(
                Event::Slashed {
                    operator: 1,
                    part: percent(10),
                    amount: 150,
                }
                .into(),
            );
            assert_eq!((Delegation::own(&1), Delegation::backing(&1)), (900, 1_350));
            assert_eq!((held(1), held(2)), (900, 500));
            assert_eq!((working(2), stake(2).delegations[0].lost), (vec![(1, 450)], 50));
            assert_eq!(Delegation::unburned(), 50);
            assert_eq!(Balances::total_issuance(), issued - 100);

            // Whoever comes to it burns the rest.
            let paid = Delegation::settle(signed(9), 2, 1).unwrap().pays_fee;
            assert_eq!(paid, Pays::No);
            assert_eq!((held(2), Delegation::unburned()), (450, 0));
            assert_eq!(Balances::total_issuance(), issued - 150);
            assert_noop!(
                Delegation::settle(signed(9), 2, 1),
                Error::<Test>::NothingToSettle
            );
            assert_noop!(Delegation::settle(signed(9), 8, 1), Error::<Test>::NotDelegated);
        });
}

#[test]
fn what_was_slashed_cannot_be_taken_out_first() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 500)
        .execute_with(|| {
            slash(percent(10));
            assert_noop!(
                Delegation::undelegate(signed(2), 1, 451),
                Error::<Test>::NotEnoughStake
            );
            assert_ok!(Delegation::undelegate(signed(2), 1, 450));
            assert_eq!((held(2), working(2)), (450, vec![]));
            pass_blocks(PERIOD);
            assert_ok!(Delegation::withdraw(signed(2)));
            assert_eq!((held(2), spendable(2)), (0, 450));
        });
}

#[test]
fn who_left_since_the_offence_is_slashed_and_who_left_before_is_not() {
    let ext = TestExt::new().pool(1, 1_000);
    let ext = ext
        .delegation(2, 1, 500)
        .delegation(3, 1, 500)
        .delegation(4, 1, 500);
    ext.execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(2), 1, 500));
        pass_days(1);
        let since = Session::get();
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        pass_days(1);
        assert_ok!(Delegation::undelegate(signed(4), 1, 500));
        Delegation::note_pending(&1, since);
        assert_eq!(Delegation::slash(&1, percent(50), since), 1_000);
        assert!(!Delegation::is_pending(&1));
        pass_blocks(PERIOD);
        for who in [2, 3, 4] {
            assert_ok!(Delegation::withdraw(signed(who)));
        }
        assert_eq!([2, 3, 4].map(spendable), [500, 250, 250]);
    });
}

#[test]
fn who_leaves_in_a_days_last_session_answers_for_the_next_one_in_which_its_operator_works_still() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 500)
        .execute_with(|| {
            Session::set(2 * DAY - 1);
            assert_ok!(Delegation::undelegate(signed(2), 1, 500));
            assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
            let next = 2 * DAY;
            Session::set(next);
            Delegation::note_pending(&1, next);
            pass_blocks(PERIOD);
            for who in [1, 2] {
                assert_noop!(Delegation::withdraw(signed(who)), Error::<Test>::SlashPending);
            }
            assert_eq!(Delegation::slash(&1, percent(50), next), 750);
            for who in [1, 2] {
                assert_ok!(Delegation::withdraw(signed(who)));
            }
            assert_eq!([1, 2].map(spendable), [500, 250]);
        });
}

#[test]
fn what_leaves_while_one_slash_waits_answers_for_the_next_one_too() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 400)
        .execute_with(|| {
            // Convicted at a day's end, it is in the set for two sessions of the next day.
            Session::set(2 * DAY - 1);
            Delegation::note_pending(&1, Session::get());
            Session::set(2 * DAY);
            assert_ok!(Delegation::undelegate(signed(2), 1, 400));
            Delegation::note_pending(&1, Session::get());
            pass_days(3);
            assert_eq!(Delegation::slash(&1, percent(50), 2 * DAY - 1), 700);
            // The other one still waits.
            pass_blocks(PERIOD);
            assert_noop!(Delegation::withdraw(signed(2)), Error::<Test>::SlashPending);
            assert_eq!(Delegation::slash(&1, percent(50), 2 * DAY), 350);
            assert_ok!(Delegation::withdraw(signed(2)));
            assert_eq!(spendable(2), 100);
        });
}

#[test]
fn a_pool_takes_no_stake_while_a_slash_waits() {
    TestExt::new()
        .pool(1, 1_000)
        .endow(1, 1_000)
        .endow(2, 1_000)
        .execute_with(|| {
            Delegation::note_pending(&1, Session::get());
            Delegation::note_pending(&1, Session::get());
            assert_eq!(Delegation::pool(1).unwrap().least, None);
            for _ in 0..2 {
                assert_noop!(
                    Delegation::delegate(signed(2), 1, 100),
                    Error::<Test>::SlashPending
                );
                assert_noop!(
                    Delegation::delegate(signed(1), 1, 100),
                    Error::<Test>::SlashPending
                );
                Delegation::spare(&1);
            }
            assert_ok!(Delegation::delegate(signed(2), 1, 100));
            // A veto of nothing.
            Delegation::spare(&1);
            assert_eq!(Delegation::backing(&1), 1_100);
        });
}

#[test]
fn who_comes_after_a_slash_has_what_it_brought() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .endow(3, 1_000)
        .execute_with(|| {
            slash(percent(30));
            assert_ok!(Delegation::delegate(signed(3), 1, 700));
            let all = [1, 2, 3].map(|who| working(who)[0].1);
            assert_eq!(all, [700, 700, 700]);
            reward(1, 300);
            assert_eq!(
                [1, 2, 3].map(|who| Delegation::claimable(who, 1)),
                [100, 100, 100]
            );
            slash(percent(50));
            assert_eq!([1, 2, 3].map(|who| working(who)[0].1), [350, 350, 350]);
        });
}

#[test]
fn a_pool_that_lost_nearly_everything_takes_no_more() {
    TestExt::new()
        .pool(1, 10_000)
        .delegation(2, 1, 10_000)
        .endow(3, 1_000)
        .execute_with(|| {
            slash(Perquintill::from_parts(999_000_000_000_000_000));
            assert_eq!(Delegation::backing(&1), 20);
            MinDelegation::set(1);
            assert_ok!(Delegation::delegate(signed(3), 1, 100));
            slash(percent(10));
            assert_noop!(Delegation::delegate(signed(3), 1, 100), Error::<Test>::Depleted);
            assert_eq!(Delegation::pool(1).unwrap().least, None);
            assert_ok!(Delegation::undelegate(signed(3), 1, working(3)[0].1));
        });
}

#[test]
fn a_pool_that_lost_everything_goes_as_it_is_settled() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .delegation(3, 1, 1_000)
        .execute_with(|| {
            assert_ok!(Delegation::undelegate(signed(3), 1, 500));
            reward(1, 250);
            assert_eq!(slash(Perquintill::one()), 3_000);
            assert_eq!((held(1), held(2), Delegation::backing(&1)), (0, 1_000, 0));
            for who in [1, 2, 3] {
                assert_ok!(Delegation::settle(signed(9), who, 1));
            }
            assert_eq!([1, 2, 3].map(held), [0, 0, 0]);
            // What it had earned before is nobody else's.
            assert_eq!([1, 2, 3].map(spendable), [100, 100, 50]);
            assert_eq!(ClosedPools::get(), [1]);
            assert_eq!(Totals::<Test>::get(), Default::default());
        });
}

#[test]
fn nobody_leaves_into_what_was_slashed_to_nothing_on_the_same_day() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .delegation(3, 1, 1_000)
        .execute_with(|| {
            // Of one planck nothing is left by any slash.
            MinDelegation::set(1);
            assert_ok!(Delegation::undelegate(signed(2), 1, 1));
            slash(percent(1));
            assert_noop!(
                Delegation::undelegate(signed(3), 1, 100),
                Error::<Test>::LeaveTomorrow
            );
            pass_days(1);
            assert_ok!(Delegation::undelegate(signed(3), 1, 100));
            assert_ok!(Delegation::settle(signed(9), 2, 1));
            assert_eq!(leaving(2), []);
        });
}

#[test]
fn an_operators_chunks_burn_at_once_too() {
    TestExt::new().pool(1, 3_000).execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
        assert_eq!(slash(percent(50)), 1_500);
        assert_eq!((held(1), Delegation::unburned()), (1_500, 0));
    });
}

#[test]
fn a_slash_takes_from_four_days_whatever_it_is_asked_for() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .execute_with(|| {
            for _ in 0..8 {
                assert_ok!(Delegation::undelegate(signed(2), 1, 100));
                pass_days(1);
            }
            Delegation::note_pending(&1, 0);
            Delegation::slash(&1, percent(50), 0);
            let worth = leaving(2).iter().map(|(_, _, worth)| *worth).collect::<Vec<_>>();
            assert_eq!(worth, [100, 100, 100, 100, 100, 50, 50, 50]);
        });
}

/// The operator is kept a validator for want of others, and convicted again four days later.
#[test]
fn who_left_on_the_first_offences_day_is_slashed_however_often_its_operator_is_convicted_again() {
    let ext = TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 500)
        .delegation(3, 1, 500);
    ext.execute_with(|| {
        pass_days(1);
        let first = Session::get();
        assert_ok!(Delegation::undelegate(signed(2), 1, 500));
        Delegation::note_pending(&1, first);
        pass_days(6);
        Delegation::note_pending(&1, Session::get());
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        assert_eq!(Delegation::slash(&1, percent(10), first), 200);
        pass_blocks(PERIOD);
        for who in [2, 3] {
            assert_noop!(Delegation::withdraw(signed(who)), Error::<Test>::SlashPending);
        }
        Delegation::spare(&1);
        for who in [2, 3] {
            assert_ok!(Delegation::withdraw(signed(who)));
        }
        assert_eq!([2, 3].map(spendable), [450, 450]);
    });
}

#[test]
fn who_leaves_once_its_operator_is_convicted_again_answers_for_that_too() {
    let ext = TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 500)
        .delegation(3, 1, 500);
    ext.execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(2), 1, 500));
        pass_days(1);
        Delegation::note_pending(&1, Session::get());
        Delegation::note_pending(&1, Session::get());
        pass_days(6);
        let last = Session::get();
        Delegation::note_pending(&1, last);
        pass_days(1);
        assert_ok!(Delegation::undelegate(signed(3), 1, 500));
        Delegation::spare(&1);
        Delegation::spare(&1);
        assert_eq!(Delegation::slash(&1, percent(10), last), 150);
        pass_blocks(PERIOD);
        for who in [2, 3] {
            assert_ok!(Delegation::withdraw(signed(who)));
        }
        assert_eq!([2, 3].map(spendable), [500, 450]);
    });
}

/// Its operator left as finality came to stand still, and is a validator for as long as that lasts.
#[test]
fn an_operator_that_signs_after_it_has_left_answers_with_what_it_took_out_last() {
    let ext = TestExt::new()
        .pool(1, 3_000)
        .pool(9, SELF_BOND)
        .delegation(2, 1, 500)
        .delegation(3, 1, 500);
    ext.execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
        pass_days(1);
        let day = today();
        assert_ok!(Delegation::undelegate(signed(1), 1, 2_000));
        assert_ok!(Delegation::undelegate(signed(2), 1, 500));
        pass_days(5);
        // While the clock stands still it goes nowhere.
        assert!(!stake(1).leaving[1].is_movable);
        assert_noop!(
            Delegation::redelegate(signed(1), 1, day, 9, 2_000),
            Error::<Test>::TooEarly
        );
        let since = Session::get();
        Delegation::note_pending(&1, since);
        pass_blocks(PERIOD);
        // What it took out while it had more at work was in time.
        assert_ok!(Delegation::withdraw(signed(1)));
        assert_eq!(spendable(1), 1_000);
        assert!(stake(1).leaving[0].is_kept);
        assert_noop!(Delegation::withdraw(signed(1)), Error::<Test>::SlashPending);

        assert_eq!(Delegation::slash(&1, percent(50), since), 250 + 1_000);
        assert_eq!((held(1), Delegation::unburned()), (1_000, 250));
        for who in [1, 2] {
            assert_ok!(Delegation::withdraw(signed(who)));
        }
        // Who left it on the same day was in time, too.
        assert_eq!([1, 2].map(spendable), [2_000, 500]);
    });
}

#[test]
fn an_operator_that_has_stake_of_its_own_at_work_answers_with_no_more_than_that() {
    TestExt::new().pool(1, 3_000).execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(1), 1, 2_000));
        pass_days(2);
        assert_eq!(slash(percent(50)), 500);
        pass_blocks(PERIOD);
        assert_ok!(Delegation::withdraw(signed(1)));
        assert_eq!(spendable(1), 2_000);
    });
}

#[test]
fn an_operator_that_loses_all_that_it_took_out_keeps_no_chunk() {
    TestExt::new().pool(1, 1_000).execute_with(|| {
        assert_ok!(Delegation::undelegate(signed(1), 1, 1_000));
        pass_days(3);
        assert_eq!(slash(Perquintill::one()), 1_000);
        assert_eq!((held(1), leaving(1)), (0, vec![]));
        assert_eq!(Totals::<Test>::get(), Default::default());
    });
}

#[test]
fn free_settling_of_what_did_not_divide_is_not_for_free() {
    TestExt::new()
        .pool(1, 1_000)
        .delegation(2, 1, 1_000)
        .execute_with(|| {
            slash(Perquintill::from_parts(1));
            // A planck of two thousand, rounded up.
            assert_eq!(Delegation::backing(&1), 1_999);
            let paid = Delegation::settle(signed(9), 2, 1).unwrap().pays_fee;
            assert_eq!((held(2), paid), (999, Pays::Yes));
        });
}
