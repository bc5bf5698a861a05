//! Slashes are deferred, can be vetoed, and are shared.

use frame_support::{assert_noop, assert_ok, dispatch::DispatchResult, traits::Hooks, weights::Weight};
use sp_runtime::DispatchError;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::JAIL_TERMS_MAX,
    stake::Role,
    traits::{Jail, StashClosed},
    trust::{FaultKind, SlashCause},
};

use super::after;
use surety_pallet_integration_tests::*;

/// 5 % of the stake that is not locked for the task.
const OF_STAKE: Balance = (BOND - LOCK) / 20;

/// Stash 3 was proven wrong by stash 1.
fn convicted(test: impl FnOnce()) {
    after(&[9, 9, 8], || {
        play_out(&[(1, 9), (3, 8)]);
        test();
    });
}

fn carry_out(slash: u32) -> DispatchResult {
    TrustLock::carry_out_slash(RuntimeOrigin::signed(FIRST_STRANGER), slash)
}

#[test]
fn a_slash_waits_before_it_is_carried_out() {
    convicted(|| {
        let slash = &slashes()[0];
        assert_eq!((slash.offender, slash.lock, slash.client), (3, LOCK, Some(900)));
        assert_eq!(slash.until, slash.proven_at + DEFERRAL);
        pass_unattended(DEFERRAL);
        assert_noop!(carry_out(0), TrustLockError::NotDue);
        assert_eq!(MockStake::slashed(3), 0);
        pass_unattended(1);
        assert_ok!(carry_out(0));
        assert_eq!(MockStake::slashed(3), LOCK + OF_STAKE);
        assert_noop!(carry_out(0), TrustLockError::UnknownSlash);
    });
}

#[test]
fn idle_blocks_carry_out_what_is_due() {
    convicted(|| {
        pass(DEFERRAL + 1);
        assert_eq!(Slashes::<Test>::iter().count(), 0);
        assert_eq!(MockStake::slashed(3), LOCK + OF_STAKE);
    });
}

#[test]
fn half_is_burned_and_the_rest_goes_to_finder_and_client() {
    convicted(|| {
        events();
        pass(DEFERRAL + 1);
        let taken = LOCK + OF_STAKE;
        assert_eq!(MockStake::awarded(1), taken * 30 / 100);
        assert_eq!(MockStake::awarded(900), taken * 20 / 100);
        let carried_out = RuntimeEvent::TrustLock(TrustLockEvent::SlashCarriedOut {
            slash: 0,
            offender: 3,
            taken,
            finder: taken * 30 / 100,
            client: taken * 20 / 100,
        });
        assert!(events().contains(&carried_out));
    });
}

#[test]
fn what_nobody_has_a_right_to_goes_to_the_insurance_pool() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        pass(AUDIT_WINDOW + REVEAL_WINDOW + 2 + OPENING_WINDOW + 1);
        // The whole lock.
        assert_eq!(faults(), [(1, FaultKind::NoReveal)]);
        assert_eq!(slashes()[0].lock, LOCK);
        pass(DEFERRAL + 1);
        let taken = LOCK;
        assert_eq!(MockStake::slashed(1), taken);
        assert_eq!(MockStake::awarded(POOL), taken * 30 / 100);
        assert_eq!(MockStake::awarded(900), taken * 20 / 100);
        assert!(!TrustLock::is_jailed(&1));
    });
}

#[test]
fn a_veto_spares_the_offender_until_it_is_too_late() {
    convicted(|| {
        let veto = || TrustLock::cancel_slash(RuntimeOrigin::root(), 0);
        let by_anybody = TrustLock::cancel_slash(RuntimeOrigin::signed(3), 0);
        assert_noop!(by_anybody, DispatchError::BadOrigin);
        assert!(TrustLock::is_jailed(&3));
        events();
        assert_ok!(veto());
        assert_eq!(
            events(),
            [
                RuntimeEvent::TrustLock(TrustLockEvent::SlashCancelled {
                    slash: 0,
                    offender: 3
                }),
                RuntimeEvent::TrustLock(TrustLockEvent::Released { stash: 3 }),
            ]
        );
        assert!(!TrustLock::is_jailed(&3));
        assert_eq!((MockStake::locked(3), Convictions::<Test>::get().len()), (0, 0));
        assert_noop!(veto(), TrustLockError::UnknownSlash);
        pass(DEFERRAL + 1);
        assert_eq!(MockStake::slashed(3), 0);
    });
    convicted(|| {
        pass(DEFERRAL + 1);
        let late = TrustLock::cancel_slash(RuntimeOrigin::root(), 0);
        assert_noop!(late, TrustLockError::UnknownSlash);
    });
}

#[test]
fn offenders_get_no_work_for_a_while() {
    convicted(|| {
        let until = System::block_number() + JAIL;
        assert_eq!(Records::<Test>::get(3).jailed_until, Some(until));
        pass_unattended(JAIL);
        assert!(TrustLock::is_jailed(&3));
        pass_unattended(1);
        assert!(!TrustLock::is_jailed(&3));
    });
}

/// Convicts stash 3 of this, of a task of its own. Returns its slash.
fn convict(kind: FaultKind) -> u32 {
    let slash = NextSlashId::<Test>::get();
    TrustLock::convict(Offence {
        cause: SlashCause::Task(TASK),
        offender: 3,
        kind,
        lock: 0,
        finders: Default::default(),
        finder: None,
        client: None,
    });
    slash
}

fn veto(slash: u32) {
    assert_ok!(TrustLock::cancel_slash(RuntimeOrigin::root(), slash));
}

fn jailed_until() -> Option<BlockNumber> {
    Records::<Test>::get(3).jailed_until
}

#[test]
fn a_veto_does_not_end_the_jail_of_a_slash_that_was_carried_out() {
    TestExt::new().execute_with(|| {
        convict(FaultKind::WrongResult);
        let first = jailed_until();
        pass(DEFERRAL + 1);
        assert_eq!(Slashes::<Test>::iter().count(), 0);
        let second = convict(FaultKind::LostDispute);
        assert!(jailed_until() > first);
        veto(second);
        assert_eq!(jailed_until(), first);
        assert!(TrustLock::is_jailed(&3));
        pass(JAIL - DEFERRAL);
        assert!(!TrustLock::is_jailed(&3));
    });
}

#[test]
fn a_slash_that_jails_nobody_does_not_keep_a_spared_stash_in_jail() {
    TestExt::new().execute_with(|| {
        let grave = convict(FaultKind::WrongResult);
        convict(FaultKind::NoReveal);
        veto(grave);
        assert!(!TrustLock::is_jailed(&3));
        assert_eq!(Slashes::<Test>::iter().count(), 1);
    });
}

#[test]
fn vetoes_in_any_order_leave_the_terms_of_the_others() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        TestExt::new().execute_with(|| {
            let mut ends = [None; 3];
            for end in &mut ends {
                convict(FaultKind::WrongResult);
                *end = jailed_until();
                pass_unattended(1);
            }
            for slash in order {
                veto(slash);
                ends[slash as usize] = None;
                assert_eq!(jailed_until(), ends.into_iter().max().flatten());
                assert_ok!(try_state());
            }
            assert!(!TrustLock::is_jailed(&3));
        });
    }
}

#[test]
fn more_terms_than_are_kept_free_nobody_early() {
    TestExt::new().execute_with(|| {
        let last = JAIL_TERMS_MAX + 1;
        let mut first = None;
        for slash in 0..=last {
            convict(FaultKind::FalseAudit);
            // The first two are those for which there is no room in the end.
            if slash == 1 {
                first = jailed_until();
            }
            if slash < 4 {
                pass_unattended(1);
            }
        }
        (0..=last).for_each(veto);
        assert_eq!(jailed_until(), first);
        pass_unattended(JAIL);
        assert!(!TrustLock::is_jailed(&3));
    });
}

#[test]
fn leaving_does_not_shorten_it() {
    convicted(|| {
        TrustLock::closed(&3);
        assert!(TrustLock::is_jailed(&3));
        pass_unattended(JAIL + 1);
        MockStake::remove(3);
        TrustLock::closed(&3);
        assert!(!Records::<Test>::contains_key(3));
        assert!(!JailedFor::<Test>::contains_key(3));
    });
}

#[test]
fn who_left_while_in_jail_is_forgotten_when_that_is_over() {
    convicted(|| {
        // The slash is carried out, and took everything.
        pass(DEFERRAL + 1);
        MockStake::remove(3);
        TrustLock::closed(&3);
        pass(JAIL - DEFERRAL - 1);
        assert!(TrustLock::is_jailed(&3) && Records::<Test>::contains_key(3));
        // As many blocks as it takes to look at all records.
        pass(1 + Records::<Test>::iter().count() as BlockNumber);
        assert!(!Records::<Test>::contains_key(3));
        // Of those who stay nothing is forgotten.
        assert!(Records::<Test>::contains_key(1) && Records::<Test>::contains_key(2));
    });
}

#[test]
fn an_idle_block_looks_at_few_records_and_all_have_their_turn() {
    TestExt::new().execute_with(|| {
        let gone = LAST_STRANGER + 1..LAST_STRANGER + 31;
        for stash in gone.clone() {
            Records::<Test>::mutate(stash, |record| record.missed = 1);
        }
        let left = || Records::<Test>::iter().count();
        pass(1);
        assert_eq!(left(), 26);
        // One that came back.
        let back = Records::<Test>::iter_keys().last().unwrap();
        MockStake::bond(back, agent_of(back), Role::Provider, BOND);
        pass(7);
        assert_eq!(Records::<Test>::iter_keys().collect::<Vec<_>>(), [back]);
        // A block without room does nothing.
        Records::<Test>::mutate(gone.end, |record| record.missed = 1);
        assert_eq!(TrustLock::on_idle(1, Weight::zero()), Weight::zero());
        assert_eq!(left(), 2);
    });
}

#[test]
fn a_fault_costs_the_clean_record() {
    TestExt::new().round_of(3).execute_with(|| {
        Records::<Test>::mutate(3, |record| record.clean_tasks = 7);
        super::revealed(&[9, 9, 8]);
        play_out(&[(1, 9), (3, 8)]);
        assert_eq!(Records::<Test>::get(3).clean_tasks, 0);
    });
}

#[test]
fn faults_of_many_at_once_cost_more_than_that_of_one() {
    after(&[9, 8, 8, 8, 8, 8, 8, 8], || {
        for _ in 0..8 {
            play_out(
                &(1..=8)
                    .map(|stash| (stash, if stash == 1 { 9 } else { 8 }))
                    .collect::<Vec<_>>(),
            );
            pass(1);
        }
        assert_eq!(Convictions::<Test>::get().len(), 7);
        pass(DEFERRAL + 9);
        // Six others of forty: (3 * 6 / 40)^2 of what is left beside the 5 %.
        let slashed: Vec<_> = (2..=8).map(MockStake::slashed).collect();
        assert!(
            slashed.iter().all(|amount| *amount > LOCK + 3 * OF_STAKE),
            "{slashed:?}"
        );
        assert_eq!(MockStake::slashed(1), 0);
    });
}

#[test]
fn no_more_is_taken_than_there_is() {
    convicted(|| {
        MockStake::remove(3);
        pass(DEFERRAL + 1);
        assert_eq!(Slashes::<Test>::iter().count(), 0);
        assert_eq!(MockStake::awarded(1), 0);
    });
}
