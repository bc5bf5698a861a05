//! Who acts for whom.

use frame_support::{assert_noop, assert_ok, dispatch::DispatchResult};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{Agents, Error, Event, PendingAgents, mock::*};

#[test]
fn an_agent_acts_only_once_it_has_confirmed() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_ok!(Staking::set_agent(signed(1), 11));
        System::assert_last_event(Event::AgentNominated { stash: 1, agent: 11 }.into());
        assert_eq!(Staking::stash_of(&11, Role::Provider), None);
        assert_ok!(Staking::confirm_agent(signed(11), 1));
        System::assert_last_event(Event::AgentConfirmed { stash: 1, agent: 11 }.into());
        assert_eq!(Staking::stash_of(&11, Role::Provider), Some(1));
        assert_eq!(ledger(1).agent, Some(11));
        assert!(!PendingAgents::<Test>::contains_key(1));
    });
}

#[test]
fn an_agent_acts_only_in_the_role_of_its_stash() {
    TestExt::new().provider(1, 100).agent(1, 11).execute_with(|| {
        assert_eq!(Staking::stash_of(&11, Role::Verifier), None);
    });
}

#[test]
fn a_stash_is_not_its_own_agent_unless_it_says_so() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_eq!(Staking::stash_of(&1, Role::Provider), None);
        assert_ok!(Staking::set_agent(signed(1), 1));
        assert_ok!(Staking::confirm_agent(signed(1), 1));
        assert_eq!(Staking::stash_of(&1, Role::Provider), Some(1));
    });
}

#[test]
fn nobody_becomes_agent_without_being_nominated() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_noop!(Staking::confirm_agent(signed(11), 1), Error::<Test>::NotNominated);
        assert_ok!(Staking::set_agent(signed(1), 12));
        assert_noop!(Staking::confirm_agent(signed(11), 1), Error::<Test>::NotNominated);
    });
}

#[test]
fn only_a_bonded_stash_nominates() {
    TestExt::new().execute_with(|| {
        assert_noop!(Staking::set_agent(signed(1), 11), Error::<Test>::NotBonded);
        assert_noop!(Staking::remove_agent(signed(1)), Error::<Test>::NotBonded);
    });
}

#[test]
fn more_stake_and_another_agent_are_remembered_and_nothing_else() {
    TestExt::new().provider(1, 200).agent(1, 11).execute_with(|| {
        let pass = |blocks| System::set_block_number(System::block_number() + blocks);
        let after = |call: &dyn Fn() -> DispatchResult| {
            pass(5);
            let before = Staking::settled_for(&1);
            assert_ok!(call());
            (before, Staking::settled_for(&1))
        };
        assert_eq!(after(&|| Staking::lock(&1, 10)), (5, 5));
        assert_eq!(after(&|| Staking::set_agent(signed(1), 12)), (10, 10));
        assert_eq!(after(&|| Staking::confirm_agent(signed(12), 1)), (15, 0));
        assert_eq!(after(&|| Staking::unbond(signed(1), 50)), (5, 5));
        assert_eq!(after(&|| Staking::rebond(signed(1), 50)), (10, 0));
        assert_eq!(after(&|| Staking::remove_agent(signed(1))), (5, 0));
        assert_eq!(Staking::settled_for(&99), 0);
    });
}

#[test]
fn stashes_of_a_role_are_counted_while_they_have_stake() {
    TestExt::new().provider(1, 100).provider(2, 100).execute_with(|| {
        assert_eq!(
            (
                Staking::stashes_in(Role::Provider),
                Staking::stashes_in(Role::Verifier)
            ),
            (2, 0)
        );
        assert_ok!(Staking::unbond(signed(1), 100));
        assert_eq!(Staking::stashes_in(Role::Provider), 1);
        Staking::slash(&2, 100);
        assert_eq!(Staking::stashes_in(Role::Provider), 0);
    });
}

#[test]
fn the_last_nomination_counts() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_ok!(Staking::set_agent(signed(1), 11));
        assert_ok!(Staking::set_agent(signed(1), 12));
        assert_noop!(Staking::confirm_agent(signed(11), 1), Error::<Test>::NotNominated);
        assert_ok!(Staking::confirm_agent(signed(12), 1));
    });
}

#[test]
fn the_old_agent_acts_until_the_new_one_confirms() {
    TestExt::new().provider(1, 100).agent(1, 11).execute_with(|| {
        assert_ok!(Staking::set_agent(signed(1), 12));
        assert_eq!(Staking::stash_of(&11, Role::Provider), Some(1));
        assert_ok!(Staking::confirm_agent(signed(12), 1));
        assert_eq!(Staking::stash_of(&11, Role::Provider), None);
        assert_eq!(Staking::stash_of(&12, Role::Provider), Some(1));
        assert!(!Agents::<Test>::contains_key(11));
    });
}

#[test]
fn an_agent_serves_one_stash() {
    TestExt::new().provider(1, 100).provider(2, 100).execute_with(|| {
        assert_ok!(Staking::set_agent(signed(1), 11));
        assert_ok!(Staking::set_agent(signed(2), 11));
        assert_ok!(Staking::confirm_agent(signed(11), 1));
        assert_noop!(Staking::confirm_agent(signed(11), 2), Error::<Test>::AgentTaken);
        assert_noop!(Staking::set_agent(signed(2), 11), Error::<Test>::AgentTaken);
        assert_eq!(Staking::stash_of(&11, Role::Provider), Some(1));
    });
}

#[test]
fn a_removed_agent_acts_no_more_and_is_free_for_others() {
    TestExt::new()
        .provider(1, 100)
        .provider(2, 100)
        .agent(1, 11)
        .execute_with(|| {
            assert_ok!(Staking::set_agent(signed(1), 12));
            assert_ok!(Staking::remove_agent(signed(1)));
            System::assert_last_event(
                Event::AgentRemoved {
                    stash: 1,
                    agent: Some(11),
                }
                .into(),
            );
            assert_eq!(Staking::stash_of(&11, Role::Provider), None);
            assert_noop!(Staking::confirm_agent(signed(12), 1), Error::<Test>::NotNominated);
            assert_ok!(Staking::set_agent(signed(2), 11));
            assert_ok!(Staking::confirm_agent(signed(11), 2));
        });
}

#[test]
fn a_nomination_alone_can_be_taken_back() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_noop!(Staking::remove_agent(signed(1)), Error::<Test>::NoAgent);
        assert_ok!(Staking::set_agent(signed(1), 11));
        assert_ok!(Staking::remove_agent(signed(1)));
        System::assert_last_event(
            Event::AgentRemoved {
                stash: 1,
                agent: None,
            }
            .into(),
        );
        assert_noop!(Staking::remove_agent(signed(1)), Error::<Test>::NoAgent);
    });
}

#[test]
fn an_agent_has_an_account_from_its_nomination_until_it_is_none_whatever_money_it_has() {
    TestExt::new().provider(1, 100).provider(2, 100).execute_with(|| {
        let references = |agent| System::sufficients(&agent);
        assert_ok!(Staking::set_agent(signed(1), 99));
        assert_ok!(Staking::set_agent(signed(2), 99));
        assert_eq!(references(99), 2);
        // Nominating it again is nothing new; another takes its place.
        System::inc_account_nonce(99);
        assert_ok!(Staking::set_agent(signed(2), 99));
        assert_eq!((references(99), System::account_nonce(99)), (2, 1));
        assert_ok!(Staking::set_agent(signed(2), 98));
        assert_eq!((references(99), references(98)), (1, 1));
        assert_ok!(Staking::confirm_agent(signed(99), 1));
        assert_eq!(references(99), 1);
        assert_ok!(Staking::set_agent(signed(1), 97));
        assert_ok!(Staking::confirm_agent(signed(97), 1));
        assert_eq!((references(99), references(97)), (0, 1));
        assert!(!System::account_exists(&99));
        assert_ok!(Staking::remove_agent(signed(1)));
        assert_ok!(Staking::remove_agent(signed(2)));
        assert_eq!((references(97), references(98)), (0, 0));
    });
}

#[test]
fn an_agents_account_goes_with_the_ledger() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_ok!(Staking::set_agent(signed(1), 99));
        assert_ok!(Staking::confirm_agent(signed(99), 1));
        assert_ok!(Staking::set_agent(signed(1), 98));
        assert_eq!(Staking::slash(&1, 100), 100);
        assert_eq!(Staking::stash_of_agent(&99), None);
        assert!(!System::account_exists(&99) && !System::account_exists(&98));
    });
}
