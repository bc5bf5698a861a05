//! An account has a bond as provider or verifier, or stake in pools, and a place costs what it says.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::Permill;
use surety_types::stake::Role;

use crate::chain::*;

#[test]
fn nobody_has_a_bond_and_stake_in_pools() {
    on_chain(|| {
        let bond = |who| Staking::bond(signed(who), Role::Provider, 500 * SURE);
        assert_noop!(bond(2), StakingError::WrongRole);
        assert_ok!(Delegation::delegate(signed(11), 2, 100 * SURE));
        assert_noop!(bond(11), StakingError::WrongRole);
        // What is on its way out counts, on both sides.
        assert_ok!(Delegation::undelegate(signed(11), 2, 100 * SURE));
        pass(UNBONDING - 1);
        assert_noop!(bond(11), StakingError::WrongRole);
        pass(1);
        assert_ok!(Delegation::withdraw(signed(11)));
        assert_ok!(bond(11));
        let open = |who| Delegation::open(signed(who), OWN, Permill::zero());
        let delegate = |who| Delegation::delegate(signed(who), 2, 100 * SURE);
        assert_noop!(delegate(11), DelegationError::WrongRole);
        assert_ok!(Staking::unbond(signed(11), 500 * SURE));
        pass(UNBONDING - 1);
        assert_noop!(delegate(11), DelegationError::WrongRole);
        pass(1);
        assert_ok!(Staking::withdraw_unbonded(signed(11)));
        assert_ok!(open(11));
    });
}

#[test]
fn a_candidates_place_cannot_be_kept_by_what_a_friend_leaves_in_its_pool() {
    on_chain(|| {
        let join = |operator| {
            assert_ok!(Delegation::open(signed(operator), SELF_BOND, Permill::zero()));
            assert_ok!(Session::set_keys(signed(operator), key(operator), Vec::new()));
        };
        CandidatesMax::set(7);
        for operator in [21, 22, 23] {
            join(operator);
            assert_ok!(Validators::validate(signed(operator)));
            assert_ok!(Delegation::delegate(signed(12), operator, 10 * SURE));
            assert_ok!(Delegation::undelegate(signed(operator), operator, SELF_BOND));
        }
        join(24);
        assert_noop!(
            Validators::validate(signed(24)),
            ValidatorsError::TooManyCandidates
        );
        pass_sessions(1);
        assert_ok!(Validators::validate(signed(24)));
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 3, 4, 24]);
    });
}
