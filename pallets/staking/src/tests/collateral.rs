//! Another asset, on hold beside a provider's stake, and who may provide.

use frame_support::{assert_noop, assert_ok};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{Collaterals, Error, Event, HeldCollateral, Ledgers, mock::*};

/// Stash 1 can bond 500 as a provider, has 200 of gold and is asked for 80.
fn asked() -> TestExt {
    TestExt::new().endow(1, 500).owns(1, GOLD, 200).requires(GOLD, 80)
}

fn bond(amount: Balance) {
    assert_ok!(Staking::bond(signed(1), Role::Provider, amount));
}

fn leave() {
    let all = ledger(1).bonded;
    if all > 0 {
        assert_ok!(Staking::unbond(signed(1), all));
    }
    pass_blocks(PERIOD);
    assert_ok!(Staking::withdraw_unbonded(signed(1)));
}

#[test]
fn collateral_is_held_with_a_providers_first_stake_and_free_with_its_last() {
    asked().execute_with(|| {
        bond(100);
        assert_eq!(collateral(1, GOLD), (80, 120));
        let held = HeldCollateral {
            asset: GOLD,
            amount: 80,
        };
        assert_eq!(Staking::collateral(1), Some(held));
        bond(100);
        assert_eq!(collateral(1, GOLD), (80, 120));
        assert_ok!(Staking::unbond(signed(1), 100));
        pass_blocks(PERIOD);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_eq!(collateral(1, GOLD), (80, 120));
        leave();
        assert_eq!(collateral(1, GOLD), (0, 200));
        assert_eq!(Staking::collateral(1), None);
    });
}

#[test]
fn who_has_less_than_is_asked_for_cannot_bond_as_a_provider() {
    let poor = TestExt::new().endow(1, 500).owns(1, GOLD, 79).endow(2, 500);
    poor.requires(GOLD, 80).execute_with(|| {
        for stash in [1, 2] {
            assert_noop!(
                Staking::bond(signed(stash), Role::Provider, 100),
                Error::<Test>::NotEnoughCollateral
            );
        }
        // Verifiers need none.
        assert_ok!(Staking::bond(signed(1), Role::Verifier, 100));
        assert_eq!(collateral(1, GOLD), (0, 79));
    });
}

#[test]
fn collateral_cannot_be_spent_while_it_is_on_hold() {
    asked().endow(2, 0).execute_with(|| {
        bond(100);
        assert!(Assets::transfer(signed(1), GOLD, 2, 121).is_err());
        assert_ok!(Assets::transfer(signed(1), GOLD, 2, 120));
        assert_eq!(collateral(1, GOLD), (80, 0));
    });
}

#[test]
fn a_slash_takes_the_same_part_of_the_collateral_rounded_up() {
    asked().execute_with(|| {
        bond(300);
        // What is on its way out counts, too.
        assert_ok!(Staking::unbond(signed(1), 100));
        assert_eq!(Staking::slash(&1, 100), 100);
        // 80 / 3 are burned, and 27 of those are.
        assert_eq!(collateral(1, GOLD), (53, 120));
        assert_eq!(Assets::total_supply(GOLD), 175);
        // What is handed to somebody was taken, too.
        assert_eq!(Staking::seize(&1, 0, 50, &[(ADMIN, 30)]), 50);
        // 53 / 4.
        assert_eq!(collateral(1, GOLD), (39, 120));
        assert_eq!(Staking::slash(&1, 1_000), 150);
        assert_eq!(collateral(1, GOLD), (0, 120));
        assert_eq!(Assets::total_supply(GOLD), 122);
        assert!(!Collaterals::<Test>::contains_key(1));
    });
}

#[test]
fn what_a_slash_took_is_asked_for_with_the_next_stake() {
    asked().execute_with(|| {
        bond(400);
        assert_ok!(Staking::unbond(signed(1), 200));
        assert_eq!(Staking::slash(&1, 100), 100);
        assert_eq!(collateral(1, GOLD), (60, 120));
        assert_ok!(Staking::rebond(signed(1), 10));
        assert_eq!(collateral(1, GOLD), (80, 100));
        assert_eq!(Staking::slash(&1, 150), 150);
        assert_eq!(collateral(1, GOLD), (40, 100));
        bond(100);
        assert_eq!(collateral(1, GOLD), (80, 60));
    });
}

#[test]
fn more_is_asked_of_whoever_bonds_next_and_of_nobody_else() {
    TestExt::new().endow(1, 500).owns(1, GOLD, 200).execute_with(|| {
        bond(100);
        Required::set(Some((GOLD, 80)));
        assert_eq!(collateral(1, GOLD), (0, 200));
        assert_ok!(Staking::lock(&1, 100));
        bond(1);
        assert_eq!(collateral(1, GOLD), (80, 120));
        // Less, or nothing: what is there stays until the stash leaves.
        Required::set(Some((GOLD, 10)));
        bond(1);
        Required::set(None);
        bond(1);
        assert_eq!(collateral(1, GOLD), (80, 120));
        Staking::unlock(&1, 100);
        leave();
        assert_eq!(collateral(1, GOLD), (0, 200));
    });
}

#[test]
fn an_asset_that_is_no_longer_asked_for_makes_way_for_the_one_that_is() {
    asked().owns(1, SILVER, 50).execute_with(|| {
        bond(100);
        Required::set(Some((SILVER, 51)));
        assert_noop!(
            Staking::bond(signed(1), Role::Provider, 1),
            Error::<Test>::NotEnoughCollateral
        );
        Required::set(Some((SILVER, 50)));
        bond(1);
        assert_eq!((collateral(1, GOLD), collateral(1, SILVER)), ((0, 200), (50, 0)));
        // Nothing of it is as good as nothing.
        Required::set(Some((GOLD, 0)));
        bond(1);
        assert_eq!(collateral(1, SILVER), (0, 50));
        assert!(!Collaterals::<Test>::contains_key(1));
    });
}

#[test]
fn whoever_administers_the_asset_can_keep_collateral_and_no_stake() {
    asked().endow(ADMIN, 0).execute_with(|| {
        bond(100);
        assert_ok!(Assets::block(signed(ADMIN), GOLD, 1));
        leave();
        System::assert_has_event(Event::CollateralKept { stash: 1 }.into());
        assert_eq!((held(1), spendable(1)), (0, 500));
        assert!(!Ledgers::<Test>::contains_key(1));
        assert_eq!(collateral(1, GOLD), (80, 120));
        assert!(Staking::withdraw_unbonded(signed(1)).is_err());
        assert_ok!(Assets::thaw(signed(ADMIN), GOLD, 1));
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_eq!(collateral(1, GOLD), (0, 200));
        assert_noop!(Staking::withdraw_unbonded(signed(1)), Error::<Test>::NotBonded);
    });
}

/// They are asked for none.
#[test]
fn what_is_kept_of_a_providers_collateral_does_not_answer_for_a_verifier_nor_wait_for_it() {
    asked().endow(ADMIN, 0).execute_with(|| {
        bond(100);
        assert_ok!(Assets::block(signed(ADMIN), GOLD, 1));
        leave();
        assert_ok!(Staking::bond(signed(1), Role::Verifier, 400));
        assert_eq!(Staking::slash(&1, 50), 50);
        assert_eq!(Staking::seize(&1, 0, 50, &[]), 50);
        assert_eq!(collateral(1, GOLD), (80, 120));
        // Nor do its stake and the other asset wait for each other.
        assert_ok!(Staking::unbond(signed(1), 100));
        pass_blocks(PERIOD);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_eq!((held(1), collateral(1, GOLD)), (200, (80, 120)));
        assert_ok!(Assets::thaw(signed(ADMIN), GOLD, 1));
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_eq!((held(1), collateral(1, GOLD)), (200, (0, 200)));
        assert_noop!(
            Staking::withdraw_unbonded(signed(1)),
            Error::<Test>::NothingToWithdraw
        );
    });
}

#[test]
fn who_is_not_admitted_bonds_as_a_verifier_alone() {
    TestExt::new().endow(1, 500).provider(2, 500).execute_with(|| {
        Refused::set(vec![1, 2]);
        assert_noop!(
            Staking::bond(signed(1), Role::Provider, 100),
            Error::<Test>::NotAdmitted
        );
        assert_ok!(Staking::bond(signed(1), Role::Verifier, 100));
        // Whoever has bonded can leave.
        assert_ok!(Staking::unbond(signed(2), 500));
        pass_blocks(PERIOD);
        assert_ok!(Staking::withdraw_unbonded(signed(2)));
    });
}
