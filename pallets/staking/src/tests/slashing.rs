//! Losing stake.

use frame_support::{assert_noop, assert_ok, traits::fungible::Mutate};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{Agents, BondedInAll, Error, Event, Ledgers, mock::*};

#[test]
fn a_slash_burns_the_locked_part_first() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::lock(&1, 200));
        let issued = Balances::total_issuance();
        assert_eq!(Staking::slash(&1, 150), 150);
        System::assert_last_event(
            Event::Slashed {
                stash: 1,
                amount: 150,
            }
            .into(),
        );
        assert_eq!((ledger(1).bonded, ledger(1).locked), (350, 50));
        assert_eq!((held(1), Balances::total_issuance()), (350, issued - 150));
        // What was unlocked is as free as it was.
        assert_eq!(Staking::unlocked_stake(&1), 300);
    });
}

#[test]
fn a_slash_goes_on_to_unlocked_stake_and_then_to_the_youngest_chunk() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 100));
        pass_blocks(1);
        assert_ok!(Staking::unbond(signed(1), 100));
        assert_ok!(Staking::lock(&1, 50));
        assert_eq!(Staking::slash(&1, 330), 330);
        let ledger = ledger(1);
        let amounts: Vec<_> = ledger.unlocking.iter().map(|chunk| chunk.amount).collect();
        assert_eq!((ledger.bonded, ledger.locked, amounts), (0, 0, vec![100, 70]));
        assert_eq!(held(1), 170);
    });
}

#[test]
fn unbonding_does_not_escape_a_slash() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 500));
        pass_blocks(PERIOD);
        assert_eq!(Staking::slash(&1, 200), 200);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_eq!((held(1), spendable(1)), (0, 300));
    });
}

#[test]
fn no_more_is_slashed_than_there_is_and_an_empty_ledger_closes() {
    TestExt::new().provider(1, 500).agent(1, 11).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 100));
        assert_ok!(Staking::lock(&1, 300));
        assert_eq!(Staking::slash(&1, 1_000), 500);
        System::assert_last_event(Event::Closed { stash: 1 }.into());
        assert!(!Ledgers::<Test>::contains_key(1));
        assert!(!Agents::<Test>::contains_key(11));
        assert_eq!(ClosedStashes::get(), [1]);
        assert_eq!((held(1), spendable(1)), (0, 0));
        // The task that had locked it does not know yet.
        Staking::unlock(&1, 300);
    });
}

#[test]
fn slashing_nothing_or_nobody_burns_nothing() {
    TestExt::new().provider(1, 500).execute_with(|| {
        let events = System::event_count();
        assert_eq!(Staking::slash(&1, 0), 0);
        assert_eq!(Staking::slash(&2, 100), 0);
        assert_eq!(System::event_count(), events);
        assert_eq!(held(1), 500);
    });
}

#[test]
fn a_slash_spares_what_is_not_stake() {
    TestExt::new().endow(1, 1_000).execute_with(|| {
        assert_ok!(Staking::bond(signed(1), Role::Provider, 400));
        assert_eq!(Staking::slash(&1, 1_000), 400);
        assert_eq!(spendable(1), 600);
    });
}

#[test]
fn after_a_slash_below_the_minimum_only_topping_up_or_leaving_is_possible() {
    TestExt::new().endow(1, 200).execute_with(|| {
        assert_ok!(Staking::bond(signed(1), Role::Provider, 100));
        assert_eq!(Staking::slash(&1, 30), 30);
        assert_noop!(Staking::unbond(signed(1), 1), Error::<Test>::BelowMinimum);
        assert_noop!(
            Staking::bond(signed(1), Role::Provider, 29),
            Error::<Test>::BelowMinimum
        );
        assert_ok!(Staking::bond(signed(1), Role::Provider, 30));
        assert_eq!(Staking::slash(&1, 30), 30);
        assert_ok!(Staking::unbond(signed(1), 70));
    });
}

#[test]
fn what_is_seized_is_shared_and_the_rest_burned() {
    TestExt::new()
        .provider(1, 500)
        .endow(7, 0)
        .endow(8, 0)
        .execute_with(|| {
            assert_ok!(Staking::lock(&1, 200));
            let issued = Balances::total_issuance();
            assert_eq!(Staking::seize(&1, 200, 50, &[(7, 75), (8, 50)]), 250);
            assert_eq!((spendable(7), spendable(8)), (75, 50));
            assert_eq!(Balances::total_issuance(), issued - 125);
            assert_eq!((ledger(1).bonded, ledger(1).locked, held(1)), (250, 0, 250));
        });
}

#[test]
fn seizing_spares_what_other_tasks_have_locked_as_long_as_there_is_anything_else() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 100));
        assert_ok!(Staking::lock(&1, 150));
        assert_ok!(Staking::lock(&1, 200));
        assert_eq!(Staking::seize(&1, 150, 100, &[]), 250);
        let ledger = ledger(1);
        let chunks: Vec<_> = ledger.unlocking.iter().map(|chunk| chunk.amount).collect();
        assert_eq!((ledger.bonded, ledger.locked, chunks), (200, 200, vec![50]));
        // Nothing but others' locks is left.
        assert_eq!(Staking::seize(&1, 0, 1_000, &[]), 250);
        assert_eq!(held(1), 0);
    });
}

#[test]
fn a_lock_that_a_slash_has_reached_gives_back_no_stake_that_was_locked_since() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::lock(&1, 100));
        assert_ok!(Staking::lock(&1, 400));
        assert!(Staking::covers_locks(&1));
        assert_eq!(Staking::seize(&1, 100, 50, &[]), 150);
        assert_eq!((ledger(1).bonded, ledger(1).locked), (350, 400));
        assert!(!Staking::covers_locks(&1));
        assert_noop!(Staking::lock(&1, 1), Error::<Test>::NotEnoughUnlocked);
        // What is bonded first makes up for what is missing.
        assert_ok!(Balances::mint_into(&1, 200));
        assert_ok!(Staking::bond(signed(1), Role::Provider, 200));
        assert!(Staking::covers_locks(&1));
        assert_ok!(Staking::lock(&1, 150));
        Staking::unlock(&1, 400);
        assert_eq!(ledger(1).locked, 150);
    });
}

#[test]
fn a_ledger_without_stake_stays_as_long_as_something_is_locked() {
    TestExt::new().provider(1, 500).agent(1, 11).execute_with(|| {
        assert_ok!(Staking::lock(&1, 400));
        assert_eq!(Staking::seize(&1, 0, 1_000, &[]), 500);
        System::assert_last_event(Event::Closed { stash: 1 }.into());
        assert_eq!(ClosedStashes::get(), [1]);
        assert!(!Agents::<Test>::contains_key(11));
        assert_eq!((ledger(1).bonded, ledger(1).locked), (0, 400));
        assert_noop!(Staking::set_agent(signed(1), 12), Error::<Test>::NotBonded);
        // Who comes again with less has nothing to put behind new work.
        assert_ok!(Balances::mint_into(&1, 300));
        assert_ok!(Staking::bond(signed(1), Role::Provider, 300));
        assert!(!Staking::covers_locks(&1));
        assert_eq!(Staking::unlocked_stake(&1), 0);
        assert_eq!(Staking::seize(&1, 0, 1_000, &[]), 300);
        Staking::unlock(&1, 400);
        assert!(!Ledgers::<Test>::contains_key(1));
        assert_eq!(ClosedStashes::get(), [1, 1]);
    });
}

#[test]
fn shares_beyond_what_there_was_are_cut_the_last_first() {
    TestExt::new()
        .provider(1, 100)
        .endow(7, 0)
        .endow(8, 0)
        .execute_with(|| {
            assert_eq!(Staking::seize(&1, 0, 1_000, &[(7, 80), (8, 80)]), 100);
            assert_eq!((spendable(7), spendable(8)), (80, 20));
        });
}

#[test]
fn a_share_for_an_account_that_cannot_take_it_is_burned() {
    TestExt::new().provider(1, 100).execute_with(|| {
        let issued = Balances::total_issuance();
        assert_eq!(Staking::seize(&1, 0, 50, &[(9, EXISTENTIAL_DEPOSIT - 1)]), 50);
        assert_eq!(Balances::total_issuance(), issued - 50);
        assert_eq!(Staking::seize(&2, 10, 10, &[(9, 20)]), 0);
    });
}

#[test]
fn the_stake_of_a_role_is_known_in_all() {
    TestExt::new()
        .provider(1, 300)
        .provider(2, 200)
        .endow(3, 150)
        .execute_with(|| {
            assert_ok!(Staking::bond(signed(3), Role::Verifier, 150));
            assert_eq!(Staking::bonded_in_all(Role::Provider), 500);
            assert_eq!(Staking::bonded_in_all(Role::Verifier), 150);
            assert_eq!(Staking::bonded(&3, Role::Verifier), 150);
            assert_eq!(Staking::bonded(&3, Role::Provider), 0);
            assert_ok!(Staking::unbond(signed(1), 100));
            assert_eq!(Staking::bonded_in_all(Role::Provider), 400);
            assert_eq!(Staking::stake(&1), 300);
            Staking::slash(&2, 1_000);
            assert_eq!(BondedInAll::<Test>::get(Role::Provider).bonded, 200);
        });
}
