//! Bringing stake in.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::{DispatchError, TokenError};
use surety_types::stake::Role;

use crate::{Error, Event, Ledgers, mock::*};

#[test]
fn bonded_stake_is_held_on_the_stash() {
    TestExt::new().endow(1, 1_000).execute_with(|| {
        assert_ok!(Staking::bond(signed(1), Role::Provider, 400));
        assert_eq!((held(1), spendable(1)), (400, 600));
        let ledger = ledger(1);
        assert_eq!(
            (ledger.role, ledger.bonded, ledger.locked),
            (Role::Provider, 400, 0)
        );
        assert_eq!(ledger.agent, None);
        System::assert_last_event(
            Event::Bonded {
                stash: 1,
                role: Role::Provider,
                amount: 400,
            }
            .into(),
        );
    });
}

#[test]
fn bonding_again_in_the_same_role_adds() {
    TestExt::new().endow(1, 1_000).execute_with(|| {
        assert_ok!(Staking::bond(signed(1), Role::Verifier, 100));
        assert_ok!(Staking::bond(signed(1), Role::Verifier, 1));
        assert_eq!((ledger(1).bonded, held(1)), (101, 101));
    });
}

#[test]
fn a_stash_has_one_role() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_noop!(
            Staking::bond(signed(1), Role::Verifier, 100),
            Error::<Test>::WrongRole
        );
    });
}

#[test]
fn who_backs_a_validator_bonds_nothing() {
    TestExt::new().endow(1, 300).execute_with(|| {
        Delegators::set(vec![1]);
        for role in [Role::Provider, Role::Verifier] {
            assert_noop!(Staking::bond(signed(1), role, 100), Error::<Test>::WrongRole);
        }
        Delegators::take();
        assert_ok!(Staking::bond(signed(1), Role::Provider, 100));
    });
}

#[test]
fn a_stash_that_left_may_come_back_in_the_other_role() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 100));
        // Until the last chunk is withdrawn, the old role still answers for it.
        assert_noop!(
            Staking::bond(signed(1), Role::Verifier, 100),
            Error::<Test>::WrongRole
        );
        pass_blocks(PERIOD);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_ok!(Staking::bond(signed(1), Role::Verifier, 100));
        assert_eq!(ledger(1).role, Role::Verifier);
    });
}

#[test]
fn less_than_the_minimum_is_refused() {
    TestExt::new().endow(1, 1_000).execute_with(|| {
        assert_noop!(
            Staking::bond(signed(1), Role::Provider, MINIMUM - 1),
            Error::<Test>::BelowMinimum
        );
        assert_ok!(Staking::bond(signed(1), Role::Provider, MINIMUM));
    });
}

#[test]
fn a_raised_minimum_asks_for_more_at_the_next_bond() {
    TestExt::new().provider(1, 100).endow(2, 1_000).execute_with(|| {
        MinBond::set(300);
        assert_noop!(
            Staking::bond(signed(2), Role::Provider, 299),
            Error::<Test>::BelowMinimum
        );
        assert_eq!(ledger(1).bonded, 100);
    });
}

#[test]
fn bonding_nothing_is_refused() {
    TestExt::new().provider(1, 100).execute_with(|| {
        assert_noop!(
            Staking::bond(signed(1), Role::Provider, 0),
            Error::<Test>::ZeroAmount
        );
    });
}

#[test]
fn more_than_is_free_cannot_be_bonded() {
    TestExt::new().endow(1, 1_000).execute_with(|| {
        assert_noop!(
            Staking::bond(signed(1), Role::Provider, 1_001),
            TokenError::FundsUnavailable
        );
        assert_ok!(Staking::bond(signed(1), Role::Provider, 1_000));
        assert!(!Ledgers::<Test>::contains_key(2));
    });
}

#[test]
fn every_call_wants_a_signature() {
    TestExt::new().execute_with(|| {
        let none = RuntimeOrigin::none;
        let refused = DispatchError::BadOrigin;
        assert_noop!(Staking::bond(none(), Role::Provider, 100), refused);
        assert_noop!(Staking::unbond(none(), 100), refused);
        assert_noop!(Staking::withdraw_unbonded(none()), refused);
        assert_noop!(Staking::rebond(none(), 100), refused);
        assert_noop!(Staking::set_agent(none(), 1), refused);
        assert_noop!(Staking::confirm_agent(none(), 1), refused);
        assert_noop!(Staking::remove_agent(none()), refused);
    });
}
