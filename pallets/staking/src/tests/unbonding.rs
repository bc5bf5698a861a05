//! Taking stake out, and changing one's mind.

use frame_support::{assert_noop, assert_ok};
use surety_types::{
    limits::UNLOCKING_MAX,
    stake::{Role, UnlockChunk},
    traits::StakeLedger,
};

use crate::{Agents, Error, Event, Ledgers, PendingAgents, mock::*};

#[test]
fn unbonded_stake_stays_held_until_its_block() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 200));
        let available_at = 1 + PERIOD;
        System::assert_last_event(
            Event::Unbonded {
                stash: 1,
                amount: 200,
                available_at,
            }
            .into(),
        );
        assert_eq!((ledger(1).bonded, held(1), spendable(1)), (300, 500, 0));

        pass_blocks(PERIOD - 1);
        assert_noop!(
            Staking::withdraw_unbonded(signed(1)),
            Error::<Test>::NothingToWithdraw
        );
        pass_blocks(1);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        System::assert_last_event(
            Event::Withdrawn {
                stash: 1,
                amount: 200,
            }
            .into(),
        );
        assert_eq!((held(1), spendable(1)), (300, 200));
    });
}

#[test]
fn only_chunks_that_are_due_are_withdrawn() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 50));
        pass_blocks(3);
        assert_ok!(Staking::unbond(signed(1), 60));
        pass_blocks(PERIOD - 3);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        let left = UnlockChunk {
            amount: 60,
            available_at: 4 + PERIOD,
        };
        assert_eq!((ledger(1).unlocking.into_inner(), spendable(1)), (vec![left], 50));
    });
}

#[test]
fn a_shortened_period_does_not_make_young_chunks_wait_for_old_ones() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 50));
        UnbondingPeriod::set(2);
        assert_ok!(Staking::unbond(signed(1), 60));
        pass_blocks(2);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_eq!((held(1), spendable(1)), (440, 60));
    });
}

#[test]
fn unbonding_twice_in_a_block_makes_one_chunk() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 50));
        assert_ok!(Staking::unbond(signed(1), 60));
        let chunk = UnlockChunk {
            amount: 110,
            available_at: 1 + PERIOD,
        };
        assert_eq!(ledger(1).unlocking.into_inner(), vec![chunk]);
    });
}

#[test]
fn chunks_are_bounded_and_withdrawing_makes_room() {
    let chunks = u64::from(UNLOCKING_MAX);
    TestExt::new().provider(1, 500).execute_with(|| {
        UnbondingPeriod::set(chunks);
        for _ in 0..chunks {
            assert_ok!(Staking::unbond(signed(1), 1));
            pass_blocks(1);
        }
        System::set_block_number(chunks);
        UnbondingPeriod::set(chunks + 1);
        assert_noop!(Staking::unbond(signed(1), 1), Error::<Test>::TooManyChunks);
        pass_blocks(1);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        assert_ok!(Staking::unbond(signed(1), 1));
    });
}

#[test]
fn what_stays_is_nothing_or_the_minimum() {
    TestExt::new().provider(1, 150).execute_with(|| {
        assert_noop!(Staking::unbond(signed(1), 51), Error::<Test>::BelowMinimum);
        assert_ok!(Staking::unbond(signed(1), 50));
        assert_ok!(Staking::unbond(signed(1), 100));
        assert_eq!(ledger(1).bonded, 0);
    });
}

#[test]
fn locked_stake_cannot_be_unbonded() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::lock(&1, 350));
        assert_noop!(Staking::unbond(signed(1), 151), Error::<Test>::StakeLocked);
        assert_ok!(Staking::unbond(signed(1), 150));
        assert_noop!(Staking::unbond(signed(1), 350), Error::<Test>::StakeLocked);
    });
}

#[test]
fn more_than_is_bonded_cannot_be_unbonded() {
    TestExt::new().provider(1, 100).endow(2, 100).execute_with(|| {
        assert_noop!(Staking::unbond(signed(1), 101), Error::<Test>::NotEnoughBonded);
        assert_noop!(Staking::unbond(signed(1), 0), Error::<Test>::ZeroAmount);
        assert_noop!(Staking::unbond(signed(2), 1), Error::<Test>::NotBonded);
        assert_noop!(Staking::withdraw_unbonded(signed(2)), Error::<Test>::NotBonded);
        assert_noop!(
            Staking::withdraw_unbonded(signed(1)),
            Error::<Test>::NothingToWithdraw
        );
    });
}

#[test]
fn rebonding_takes_the_youngest_chunks_first() {
    TestExt::new().provider(1, 500).execute_with(|| {
        for amount in [50, 60, 70] {
            assert_ok!(Staking::unbond(signed(1), amount));
            pass_blocks(1);
        }
        assert_ok!(Staking::rebond(signed(1), 100));
        System::assert_last_event(
            Event::Rebonded {
                stash: 1,
                amount: 100,
            }
            .into(),
        );
        let ledger = ledger(1);
        let amounts: Vec<_> = ledger.unlocking.iter().map(|chunk| chunk.amount).collect();
        assert_eq!((ledger.bonded, amounts), (420, vec![50, 30]));
        assert_eq!(held(1), 500);
    });
}

#[test]
fn a_stash_on_its_way_out_can_turn_back() {
    TestExt::new().provider(1, 200).agent(1, 11).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 200));
        assert_eq!(Staking::stash_of(&11, Role::Provider), None);
        assert_noop!(Staking::rebond(signed(1), 99), Error::<Test>::BelowMinimum);
        assert_ok!(Staking::rebond(signed(1), 100));
        assert_eq!(Staking::stash_of(&11, Role::Provider), Some(1));
    });
}

#[test]
fn more_than_is_on_its_way_out_cannot_be_rebonded() {
    TestExt::new().provider(1, 500).endow(2, 100).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 50));
        assert_noop!(Staking::rebond(signed(1), 51), Error::<Test>::NotEnoughUnlocking);
        assert_noop!(Staking::rebond(signed(1), 0), Error::<Test>::ZeroAmount);
        assert_noop!(Staking::rebond(signed(2), 1), Error::<Test>::NotBonded);
    });
}

#[test]
fn a_full_exit_takes_ledger_agent_and_nomination_along() {
    TestExt::new().provider(1, 200).agent(1, 11).execute_with(|| {
        assert_ok!(Staking::set_agent(signed(1), 12));
        assert_ok!(Staking::unbond(signed(1), 200));
        assert!(Ledgers::<Test>::contains_key(1) && ClosedStashes::get().is_empty());
        pass_blocks(PERIOD);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        System::assert_last_event(Event::Closed { stash: 1 }.into());
        assert!(!Ledgers::<Test>::contains_key(1));
        assert!(!Agents::<Test>::contains_key(11));
        assert!(!PendingAgents::<Test>::contains_key(1));
        assert_eq!(ClosedStashes::get(), [1]);
        assert_eq!((held(1), spendable(1)), (0, 200));
    });
}

#[test]
fn a_suspended_stake_cannot_unbond() {
    TestExt::new().provider(1, 500).execute_with(|| {
        assert_ok!(Staking::unbond(signed(1), 100));
        SuspendedStashes::set(vec![1]);
        assert_noop!(Staking::unbond(signed(1), 100), Error::<Test>::Suspended);
        // What is on its way out stays on its way.
        pass_blocks(PERIOD);
        assert_ok!(Staking::withdraw_unbonded(signed(1)));
        SuspendedStashes::take();
        assert_ok!(Staking::unbond(signed(1), 100));
    });
}
