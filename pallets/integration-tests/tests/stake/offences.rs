//! Who signs two of a kind.

use frame_support::{assert_err, assert_noop, assert_ok};
use sp_runtime::{DispatchError, Perquintill};
use surety_pallet_delegation::Pending;
use surety_pallet_trust_lock::Slashes;
use surety_types::{
    traits::{Jail, PoolLedger},
    trust::{FaultKind, Slash, SlashCause},
};

use crate::chain::*;

/// `(3k/n)^2` for one of the four.
fn one_of_four() -> Perquintill {
    Perquintill::from_rational(9u64, 16u64)
}

#[test]
fn all_who_backed_an_equivocator_then_lose_the_same_part_and_none_of_them_gets_away() {
    on_chain(|| {
        for (who, operator) in [(11, 2), (12, 2), (13, 3)] {
            assert_ok!(Delegation::delegate(signed(who), operator, 4_000 * SURE));
        }
        assert_ok!(Delegation::undelegate(signed(12), 2, 4_000 * SURE));
        pass_sessions(1);
        let session = equivocate(2);
        let slash = slash_of(0);
        assert_eq!(slash.cause, SlashCause::Equivocation(session));
        assert_eq!((slash.kind, slash.lock), (FaultKind::Equivocation, 0));
        assert_eq!((slash.offender, slash.part), (2, one_of_four()));
        assert!(TrustLock::is_jailed(&2) && !TrustLock::is_suspended(&2) && !can_be_elected(2));
        // Nobody comes, and who goes takes nothing along.
        assert_noop!(
            Delegation::delegate(signed(14), 2, 100 * SURE),
            DelegationError::SlashPending
        );
        assert_ok!(Delegation::undelegate(signed(11), 2, 4_000 * SURE));
        assert_noop!(Validators::validate(signed(2)), ValidatorsError::Jailed);
        pass(DEFERRAL);
        assert_eq!(backing(2), OWN);
        assert!(Delegation::is_pending(&2));
        // An idle block carries it out. It takes from 12,000 that work and 8,000 that left since.
        pass(1);
        let taken = one_of_four() * (20_000 * SURE);
        assert!(happened(TrustLockEvent::SlashCarriedOut {
            slash: 0,
            offender: 2,
            taken,
            finder: 0,
            client: 0,
        }));
        assert_eq!((backing(2), backing(3)), (OWN * 7 / 16, 16_000 * SURE));
        pass(UNBONDING);
        for who in [11, 12] {
            assert_ok!(Delegation::withdraw(signed(who)));
            assert_eq!(Balances::free_balance(who), MONEY - 4_000 * SURE * 9 / 16);
        }
        // What was lost is nobody's.
        assert_eq!(Balances::free_balance(INSURANCE), ED);
    });
}

#[test]
fn a_convict_comes_back_when_its_jail_is_over_and_it_has_its_own_bond_again() {
    on_chain(|| {
        pass_sessions(1);
        equivocate(2);
        pass(DEFERRAL + 1);
        assert_noop!(Validators::validate(signed(2)), ValidatorsError::OwnBondTooLow);
        assert_ok!(Delegation::delegate(signed(2), 2, OWN));
        assert_noop!(Validators::validate(signed(2)), ValidatorsError::Jailed);
        assert_eq!(Session::validators(), [1, 3, 4]);
        pass(JAIL - DEFERRAL);
        assert_ok!(Validators::validate(signed(2)));
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 3, 4]);
    });
}

#[test]
fn a_veto_spares_a_pool_and_its_operator_and_nothing_more_is_asked_for() {
    on_chain(|| {
        assert_ok!(Delegation::delegate(signed(11), 2, 4_000 * SURE));
        pass_sessions(1);
        let session = Session::current_index();
        assert_ok!(report(2, session, 5, 4));
        veto(0);
        assert!(!TrustLock::is_jailed(&2) && !Delegation::is_pending(&2));
        assert_ok!(Delegation::delegate(signed(12), 2, 100 * SURE));
        assert_ok!(Validators::validate(signed(2)));
        // Another one of the same slot, so that both would lose more.
        assert_ok!(report(3, session, 5, 4));
        assert!(can_be_elected(2) && !can_be_elected(3));
        pass(DEFERRAL + 1);
        assert_eq!((backing(2), backing(3)), (OWN + 4_100 * SURE, 0));
    });
}

#[test]
fn a_veto_of_one_slash_leaves_the_others_of_the_same_operator() {
    on_chain(|| {
        pass_sessions(1);
        pass(SESSION - 2);
        equivocate(2);
        // Sooner it would be the same offence. The first slash waits still.
        pass_sessions(DAY + 1);
        equivocate(2);
        veto(1);
        assert!(TrustLock::is_jailed(&2) && Delegation::is_pending(&2) && !can_be_elected(2));
        pass(DEFERRAL + 1);
        assert_eq!(backing(2), OWN * 7 / 16);
        assert!(!Delegation::is_pending(&2));
    });
}

#[test]
fn nobody_vetoes_its_own_slash_however_much_it_has() {
    on_chain(|| {
        assert_ok!(Delegation::delegate(signed(2), 2, 80_000 * SURE));
        pass_sessions(1);
        equivocate(2);
        assert_noop!(TrustLock::cancel_slash(signed(2), 0), DispatchError::BadOrigin);
        assert_noop!(
            TrustLock::carry_out_slash(signed(2), 0),
            surety_pallet_trust_lock::Error::<Test>::NotDue
        );
    });
}

#[test]
fn as_more_do_the_same_a_slash_that_waits_takes_more_and_one_that_was_carried_out_is_followed_by_another() {
    on_chain(|| {
        pass_sessions(1);
        let session = Session::current_index();
        assert_ok!(report(2, session, 5, 10));
        assert_eq!(slash_of(0).part, Perquintill::from_percent(9));
        assert_ok!(report(3, session, 5, 10));
        let two = Perquintill::from_percent(36);
        assert_eq!((slash_of(0).part, slash_of(1).part), (two, two));
        assert!(happened(TrustLockEvent::SlashRaised {
            slash: 0,
            lock: 0,
            part: two,
        }));
        pass(DEFERRAL + 1);
        assert_eq!((backing(2), backing(3)), (OWN * 64 / 100, OWN * 64 / 100));
        // A third one is found late: 81 % in all.
        assert_ok!(report(4, session, 5, 10));
        assert!(Delegation::is_pending(&2) && TrustLock::is_jailed(&2));
        pass(DEFERRAL + 1);
        for operator in [2, 3, 4] {
            let left = OWN * 19 / 100;
            assert!(left - backing(operator) <= left / 100_000_000, "{operator}");
        }
    });
}

#[test]
fn what_waited_to_be_paid_to_a_convict_is_minted_for_nobody() {
    on_chain(|| {
        pass_sessions(2);
        equivocate(2);
        pass_sessions(DAY);
        assert_eq!(Delegation::claimable(2, 2), 0);
        assert!(Delegation::claimable(3, 3) > 0);
    });
}

#[test]
fn a_veto_has_a_convict_paid_for_what_it_had_served() {
    on_chain(|| {
        let minted = surety_pallet_emission::Minted::<Test>::get();
        let pay = surety_emission::session_pay(OWN, surety_emission::tau(minted));
        pass_sessions(2);
        equivocate(2);
        pass(1);
        veto(0);
        // It is out two sessions later, as it has not asked to be elected again.
        pass_sessions(DAY - 2);
        assert!(!Session::validators().contains(&2));
        let paid = Delegation::claimable(2, 2);
        // Without the two sessions before it would be less than two, of a third of whose blocks it was kept.
        assert!(paid > 2 * pay, "{paid} {pay}");
        assert!(paid < Delegation::claimable(3, 3));
    });
}

#[test]
fn trust_4_notices_a_pool_that_does_not_wait_for_its_slash_and_a_slash_that_is_no_pools() {
    on_chain(|| {
        equivocate(2);
        let pending = Pending::<Test>::take(2);
        assert_err!(
            TrustLock::do_try_state(),
            "TRUST-4: a slash of a pool that lets stake go"
        );
        Pending::<Test>::set(2, pending);
        let slash = slash_of(0);
        let locked = Slash {
            lock: 1,
            ..slash.clone()
        };
        Slashes::<Test>::insert(0, locked);
        assert_err!(
            TrustLock::do_try_state(),
            "TRUST-4: a slash of a pool that takes a bond, or is shared"
        );
        Slashes::<Test>::insert(0, slash);
    });
}
