//! How closely tasks are watched, and what is locked for them.

use frame_support::{assert_noop, assert_ok};
use proptest::prelude::*;
use sp_runtime::{DispatchError, FixedU128, Permill};
use surety_audit_economics::{SlashSplit, Terms, honesty_pays};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::AUDITORS_EXPECTED_MAX,
    stake::Role,
    task::{Security, SecurityLevel},
    traits::TaskTrust,
    trust::FaultKind,
};

use super::revealed;
use surety_pallet_integration_tests::*;

fn secured(level: SecurityLevel, value_at_risk: Balance) -> Security {
    Security { level, value_at_risk }
}

/// A stash that is no newcomer, and has the stake for a task at the basic level.
fn settled(stash: AccountId) {
    MockStake::bond(stash, agent_of(stash), Role::Provider, 5 * BOND);
    Records::<Test>::mutate(stash, |record| record.clean_tasks = 10);
}

#[test]
fn no_more_auditors_are_expected_than_there_are_places_for() {
    TestExt::new().execute_with(|| {
        AuditorsExpected::set(1_000.into());
        AuditorsNewcomer::set(1_000.into());
        let expected = Results::auditors_expected(&1, SecurityLevel::Standard);
        assert_eq!(expected, FixedU128::from_u32(AUDITORS_EXPECTED_MAX));
    });
}

#[test]
fn a_level_says_how_many_auditors_are_expected() {
    TestExt::new().execute_with(|| {
        settled(1);
        let expected = SecurityLevel::ALL.map(|level| Results::auditors_expected(&1, level));
        let hundredths = expected.map(|expected| expected.into_inner() * 100 / 1_000_000_000_000_000_000);
        assert_eq!(hundredths, [15, 100, 300]);
        // Of a newcomer as many at any level.
        let of_newcomer = SecurityLevel::ALL.map(|level| Results::auditors_expected(&2, level));
        assert_eq!(of_newcomer, [FixedU128::from_u32(3); 3]);
    });
}

#[test]
fn a_round_is_drawn_for_at_its_tasks_level() {
    for (level, drawn) in [(SecurityLevel::Basic, false), (SecurityLevel::High, true)] {
        TestExt::new().execute_with(|| {
            settled(1);
            assert_ok!(open_secured(TASK, secured(level, 0), [1]));
            all_commit(&[(1, 9)]);
            // Of ten verifiers with the same stake one draws itself below 0.015 at the basic level, below 0.3
            // at the high.
            let announced = announce_with(FIRST_VERIFIER, 1, 9, 0x20);
            assert_eq!(announced.is_ok(), drawn, "{level:?}");
        });
    }
}

#[test]
fn what_is_at_risk_raises_the_lock_beyond_the_usual_multiple() {
    TestExt::new().execute_with(|| {
        let lock = |level, risk| Results::lock_for(PRICE, &secured(level, risk));
        assert_eq!(lock(SecurityLevel::Standard, 0), LOCK);
        assert!(lock(SecurityLevel::Standard, 200) > LOCK);
        assert!(lock(SecurityLevel::Basic, 200) > lock(SecurityLevel::Standard, 200));
        assert!(lock(SecurityLevel::Standard, 200) > lock(SecurityLevel::High, 200));
        assert_ok!(open_secured(TASK, secured(SecurityLevel::High, 200), [1]));
        assert_eq!(MockStake::locked(1), lock(SecurityLevel::High, 200));
    });
}

#[test]
fn a_reserve_locks_as_much_as_who_it_replaces() {
    TestExt::new().reserves([5]).execute_with(|| {
        let security = secured(SecurityLevel::High, 200);
        assert_ok!(open_secured(TASK, security, [1]));
        pass(COMMIT_WINDOW + 1);
        assert_eq!(members(), [5]);
        assert_eq!(MockStake::locked(5), Results::lock_for(PRICE, &security));
    });
}

#[test]
fn the_level_rises_as_far_as_the_stake_there_is_makes_necessary() {
    TestExt::new().execute_with(|| {
        // 40 stashes of 1,000 each: a task of forty providers could lock a thousand of each.
        let level = |risk| Results::secure(PRICE, 40, &secured(SecurityLevel::Basic, risk));
        assert_eq!(level(0), Ok(SecurityLevel::Basic));
        assert_eq!(level(1), Ok(SecurityLevel::Standard));
        assert_eq!(level(290), Ok(SecurityLevel::High));
        let refused: DispatchError = ResultsError::ValueAtRiskTooHigh.into();
        assert_eq!(level(1_000), Err(refused));
        assert_eq!(level(u128::MAX), Err(refused));
        // Fewer providers could lock more.
        assert_eq!(
            Results::secure(PRICE, 1, &secured(SecurityLevel::Basic, 1_000)),
            Ok(SecurityLevel::Basic)
        );
    });
}

#[test]
fn nothing_is_secured_where_nobody_is_honest() {
    TestExt::new().execute_with(|| {
        VerifiersCorrupt::set(Permill::one());
        let security = secured(SecurityLevel::High, 1);
        let refused: DispatchError = ResultsError::NeverPunished.into();
        assert_eq!(Results::secure(PRICE, 1, &security), Err(refused));
        assert_eq!(Results::lock_for(PRICE, &security), u128::MAX);
        assert_noop!(open_secured(TASK, security, [1]), MockStake::NOT_ENOUGH);
    });
}

#[test]
fn a_larger_lock_is_lost_whole() {
    TestExt::new().execute_with(|| {
        let security = secured(SecurityLevel::High, 200);
        assert_ok!(open_secured(TASK, security, [1, 2, 3]));
        revealed(&[9, 9, 8]);
        while slashes().is_empty() {
            play_out(&[(1, 9), (2, 9), (3, 8)]);
            pass(1);
        }
        let lock = Results::lock_for(PRICE, &security);
        let of_liar: Vec<_> = slashes()
            .into_iter()
            .filter(|slash| slash.offender == 3)
            .collect();
        assert_eq!(of_liar.len(), 1);
        assert_eq!((of_liar[0].kind, of_liar[0].lock), (FaultKind::WrongResult, lock));
    });
}

proptest! {
    #[test]
    fn every_lock_makes_honesty_pay_by_its_burned_part(
        price in 1..1_000_000u128, risk in 0..1_000_000_000u128, level in 0..3usize, corrupt in 0..=60u32,
    ) {
        TestExt::new().execute_with(|| {
            VerifiersCorrupt::set(Permill::from_percent(corrupt));
            let security = secured(SecurityLevel::ALL[level], risk);
            let lock = Results::lock_for(price, &security);
            let honest = sp_runtime::Perquintill::from_percent(u64::from(corrupt));
            let expected = [0.15, 1.0, 3.0][level];
            let audited = surety_audit_economics::honest_audit(FixedU128::from_float(expected), honest);
            let caught = sp_runtime::Perquintill::from_percent(95) * audited.deconstruct();
            let terms = Terms { reward: price, saved: price, outside: risk };
            let burned = SlashSplit::default().shares(lock).burned;
            let caught = sp_runtime::Perquintill::from_parts(caught);
            assert!(honesty_pays(caught, &terms, burned));
        });
    }
}
