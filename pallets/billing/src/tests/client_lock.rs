//! What a client locks beside its escrow.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::{Permill, TokenError};
use surety_types::traits::Escrow;

use crate::{Event, Totals, mock::*};

/// A quarter of the cap is locked.
fn locking(test: impl FnOnce()) {
    TestExt::new().execute_with(|| {
        ClientLock::set(Permill::from_percent(25));
        test();
    });
}

#[test]
fn a_quarter_of_the_cap_is_locked_beside_it() {
    locking(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_001));
        // Rounded up.
        assert_eq!((Billing::held(0), in_pot()), (5_001, 5_001 + 1_251));
        let locked = Event::ClientLocked {
            task: 0,
            client: CLIENT,
            amount: 1_251,
        };
        assert_eq!(events().pop(), Some(locked));
    });
}

#[test]
fn it_goes_back_at_settlement_and_pays_nobody() {
    locking(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();
        let settlement = Billing::settle(0, &[payment(ALICE, 4_000)], &[]).unwrap();
        assert_eq!(settlement.refund, 800);
        assert_eq!((free(CLIENT), in_pot()), (1_000_000 - 4_200, 0));
        let unlocked = Event::ClientUnlocked {
            task: 0,
            client: CLIENT,
            amount: 1_250,
        };
        assert_eq!(events().pop(), Some(unlocked));
    });
}

#[test]
fn it_goes_back_when_a_task_fails_or_is_cancelled() {
    locking(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::refund(0));
        assert_eq!((free(CLIENT), in_pot()), (1_000_000, 0));
    });
}

#[test]
fn what_is_locked_was_fixed_when_the_task_was_posted() {
    locking(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        ClientLock::set(Permill::one());
        assert_ok!(Billing::refund(0));
        assert_eq!((free(CLIENT), in_pot()), (1_000_000, 0));
    });
}

#[test]
fn payments_cannot_eat_into_it() {
    locking(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        let refused = Billing::settle(0, &[payment(ALICE, 5_001)], &[]);
        assert_eq!(refused, Err(crate::Error::<Test>::PaymentsExceedEscrow.into()));
    });
}

#[test]
fn who_has_the_cap_and_not_the_lock_posts_nothing() {
    locking(|| {
        assert_noop!(Billing::open(0, &CLIENT, 900_000), TokenError::FundsUnavailable);
        assert_eq!(in_pot(), 0);
    });
}

#[test]
fn half_of_a_lost_lock_is_shared_and_half_is_burned() {
    locking(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();
        let (alice, bob) = (free(ALICE), free(BOB));
        assert_ok!(Billing::forfeit(0, &[ALICE, BOB, TREASURY]));
        // 625 for three: 208 each, and what is left over is burned, too.
        assert_eq!((free(ALICE), free(BOB)), (alice + 208, bob + 208));
        assert_eq!((free(CLIENT), in_pot()), (1_000_000 - 1_250, 0));
        assert_eq!(issuance(), issued - 626);
        let totals = Totals::<Test>::get();
        assert_eq!(
            (totals.opened, totals.paid, totals.burned, totals.refunded),
            (6_250, 624, 626, 5_000)
        );
        let share = |provider| Event::ProviderCompensated {
            task: 0,
            provider,
            amount: 208,
        };
        assert_eq!(
            events(),
            [
                Event::EscrowRefunded {
                    task: 0,
                    client: CLIENT,
                    amount: 5_000
                },
                share(ALICE),
                share(BOB),
                share(TREASURY),
                Event::ClientForfeited {
                    task: 0,
                    client: CLIENT,
                    shared: 624,
                    burned: 626
                },
            ]
        );
        assert_noop!(Billing::forfeit(0, &[ALICE]), crate::Error::<Test>::UnknownEscrow);
    });
}

#[test]
fn a_share_that_cannot_be_taken_and_a_lock_that_nobody_waited_for_are_burned() {
    locking(|| {
        let issued = issuance();
        assert_ok!(Billing::open(0, &CLIENT, 100));
        assert_ok!(Billing::open(1, &CLIENT, 100));
        // Twelve would have to be shared by two: one has no account to put 6 on.
        assert_ok!(Billing::forfeit(0, &[GHOST, ALICE]));
        assert_eq!((free(GHOST), issuance()), (0, issued - 19));
        assert_ok!(Billing::forfeit(1, &[]));
        assert_eq!(issuance(), issued - 19 - 25);
        assert_eq!(in_pot(), 0);
    });
}

#[test]
fn a_client_that_is_its_own_provider_loses_by_withholding() {
    locking(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        assert_ok!(Billing::forfeit(0, &[CLIENT]));
        assert_eq!((free(CLIENT), in_pot()), (1_000_000 - 625, 0));
    });
}

#[test]
fn without_a_lock_withholding_costs_nothing() {
    TestExt::new().execute_with(|| {
        assert_ok!(Billing::open(0, &CLIENT, 5_000));
        events();
        assert_ok!(Billing::forfeit(0, &[ALICE]));
        assert_eq!(events().len(), 1);
    });
}
