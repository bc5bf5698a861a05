//! How closely tasks are watched, and what is locked for them.

use frame_support::{assert_noop, assert_ok};
use proptest::prelude::*;
use sp_runtime::{DispatchError, FixedU128, Permill};
use surety_audit_economics::{SlashSplit, Terms, honesty_pays};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::{AUDIT_ITEMS_MAX, AUDITORS_EXPECTED_MAX, DEMAND_PARTS_MAX},
    model::{ModelAudits, Operation},
    stake::Role,
    task::{Assignment, AuditTerms, PerMember, RoundPhase, Security, SecurityLevel, TaskSpec},
    traits::{StakeLedger, TaskTrust},
    trust::FaultKind,
};

use super::revealed;
use surety_pallet_integration_tests::*;

fn secured(level: SecurityLevel, value_at_risk: Balance) -> Security {
    Security { level, value_at_risk }
}

/// A task of so many items, of this security.
fn spec(units_max: u32, redundancy: u32, security: Security) -> TaskSpec {
    TaskSpec {
        model: Default::default(),
        operation: Operation::Embed,
        input: Default::default(),
        input_bytes: 100_000,
        units_max,
        redundancy,
        sources: Default::default(),
        security,
        requirements: Default::default(),
    }
}

/// A model that all verifiers audit, 1,000 tokens a second.
const AUDITS: ModelAudits = ModelAudits {
    speed: 1_000_000,
    item_tokens: 512,
    able: u128::MAX,
    item_parts: 4,
    has_referee: true,
};

fn level(redundancy: u32, security: Security) -> Result<SecurityLevel, DispatchError> {
    Results::secure(PRICE, &spec(UNITS_MAX, redundancy, security), AUDITS).map(|(level, _)| level)
}

fn lock_for(price: Balance, security: &Security) -> Balance {
    Results::lock_for(price, security, &AuditTerms::default())
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
        let lock = |level, risk| lock_for(PRICE, &secured(level, risk));
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
        assert_eq!(MockStake::locked(5), lock_for(PRICE, &security));
    });
}

#[test]
fn the_level_rises_as_far_as_the_stake_there_is_makes_necessary() {
    TestExt::new().execute_with(|| {
        // 40 stashes of 1,000 each: a task of forty providers could lock a thousand of each.
        let of_forty = |risk| level(40, secured(SecurityLevel::Basic, risk));
        assert_eq!(of_forty(0), Ok(SecurityLevel::Basic));
        assert_eq!(of_forty(1), Ok(SecurityLevel::Standard));
        assert_eq!(of_forty(290), Ok(SecurityLevel::High));
        let refused: DispatchError = ResultsError::ValueAtRiskTooHigh.into();
        assert_eq!(of_forty(1_000), Err(refused));
        assert_eq!(of_forty(u128::MAX), Err(refused));
        // Fewer providers could lock more.
        assert_eq!(
            level(1, secured(SecurityLevel::Basic, 1_000)),
            Ok(SecurityLevel::Basic)
        );
    });
}

#[test]
fn nothing_is_secured_where_nobody_is_honest() {
    TestExt::new().execute_with(|| {
        VerifiersCorrupt::set(Permill::one());
        let security = secured(SecurityLevel::High, 1);
        let refused: DispatchError = ResultsError::NobodyAudits.into();
        assert_eq!(level(1, security), Err(refused));
        assert_eq!(lock_for(PRICE, &security), u128::MAX);
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
        let lock = lock_for(PRICE, &security);
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
            let lock = lock_for(price, &security);
            let honest = sp_runtime::Perquintill::from_percent(u64::from(100 - corrupt));
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

#[test]
fn a_task_that_nobody_able_could_audit_is_refused() {
    TestExt::new().execute_with(|| {
        VerifiersAble::set(Permill::zero());
        VerifiersCorrupt::set(Permill::from_percent(33));
        let all = MockStake::bonded_in_all(Role::Verifier);
        let secure = |able| {
            let audits = ModelAudits { able, ..AUDITS };
            Results::secure(PRICE, &spec(10, 1, secured(SecurityLevel::Standard, 0)), audits)
        };
        let refused: DispatchError = ResultsError::NobodyAudits.into();
        for able in [0, all / 4, all * 33 / 100] {
            assert_eq!(secure(able), Err(refused), "{able}");
        }
        let (_, audits) = secure(all / 2).unwrap();
        assert_eq!(audits.able, Permill::from_percent(50));
        // Fewer who can audit take a larger lock.
        let risky = secured(SecurityLevel::Standard, 10 * PRICE);
        assert!(Results::lock_for(PRICE, &risky, &audits) > lock_for(PRICE, &risky));
        // Nobody who has said so is needed where all are taken to be able to.
        VerifiersAble::set(Permill::one());
        assert!(secure(0).is_ok());
    });
}

#[test]
fn no_lock_counts_on_more_auditors_than_are_ever_expected() {
    TestExt::new().execute_with(|| {
        VerifiersCorrupt::set(Permill::from_percent(33));
        let risky = secured(SecurityLevel::High, 50 * PRICE);
        let lock = |expected| {
            AuditorsHigh::set(FixedU128::from_u32(expected));
            lock_for(PRICE, &risky)
        };
        assert!(lock(AUDITORS_EXPECTED_MAX - 1) > lock(AUDITORS_EXPECTED_MAX));
        assert_eq!(lock(3 * AUDITORS_EXPECTED_MAX), lock(AUDITORS_EXPECTED_MAX));
    });
}

#[test]
fn nothing_is_put_at_risk_on_a_model_of_which_no_lie_can_be_proven_and_no_text_is_asked_of_it() {
    TestExt::new().execute_with(|| {
        let secure = |operation, risk, has_referee| {
            let security = secured(SecurityLevel::Standard, risk);
            let task = TaskSpec {
                operation,
                ..spec(10, 1, security)
            };
            let audits = ModelAudits {
                has_referee,
                item_parts: if has_referee { 4 } else { 0 },
                ..AUDITS
            };
            Results::secure(PRICE, &task, audits).map(|_| ())
        };
        let refused: DispatchError = ResultsError::NoReferee.into();
        assert_eq!(secure(Operation::Embed, 0, false), Ok(()));
        assert_eq!(secure(Operation::Embed, 1, false), Err(refused));
        assert_eq!(secure(Operation::Generate, 0, false), Err(refused));
        assert_eq!(secure(Operation::Embed, 1, true), Ok(()));
        assert_eq!(secure(Operation::Generate, 0, true), Ok(()));
    });
}

#[test]
fn a_task_whose_audits_would_take_too_long_is_refused() {
    TestExt::new().execute_with(|| {
        let secure = |units, speed, risk| {
            let security = secured(SecurityLevel::Standard, risk);
            Results::secure(PRICE, &spec(units, 1, security), ModelAudits { speed, ..AUDITS }).map(|_| ())
        };
        let refused: DispatchError = ResultsError::AuditTooLong.into();
        // An item of 512 tokens takes 15,360 seconds in all at a tenth of a token a second.
        assert_eq!(secure(1, 100, 0), Ok(()));
        assert_eq!(secure(1, 50, 0), Err(refused));
        // However few of them each auditor has: whoever plays computes all.
        assert_eq!(secure(10_000, 1_000_000, 0), Ok(()));
        assert_eq!(secure(10_000, 1_000_000, 10 * PRICE), Ok(()));
        assert_eq!(secure(15_000, 1_000_000, 0), Err(refused));
    });
}

#[test]
fn a_task_that_pays_less_than_its_work_is_worth_is_refused() {
    TestExt::new().execute_with(|| {
        // 100,000 bytes are 50 items with 24,900 ids of their own: 24.9 seconds.
        let secure = |audits| Results::secure(PRICE, &spec(UNITS_MAX, 1, Security::default()), audits);
        WorkPrice::set(4);
        assert_ok!(secure(AUDITS));
        let twice_as_fast = ModelAudits {
            speed: 2 * AUDITS.speed,
            ..AUDITS
        };
        WorkPrice::set(5);
        assert_noop!(secure(AUDITS), ResultsError::PriceTooLow);
        let (_, terms) = secure(twice_as_fast).unwrap();
        assert_eq!(Results::least_price(UNITS_MAX, &terms), 63);
    });
}

#[test]
fn an_audit_of_a_long_prompt_is_paid_what_it_costs() {
    TestExt::new().round_of(1).execute_with(|| {
        // 1,900 tokens of prompt, and 100 more: its provider saves no more of the former than its auditor.
        let of = |prompt: u32| {
            let mut round = round().unwrap();
            round.units_max = 2_000;
            round.terms.operation = Operation::Generate;
            round.terms.input_bytes = 4 * (6 + prompt);
            round
        };
        assert_eq!(Results::computing_cost(&of(0), 1_000), 250);
        assert_eq!(Results::computing_cost(&of(1_900), 1_000), 870);
    });
}

#[test]
fn auditors_have_as_long_as_the_dearest_audit_takes() {
    TestExt::new().execute_with(|| {
        let assignments = PerMember::truncate_from(vec![Assignment {
            provider: 1,
            price: PRICE,
        }]);
        let terms = AuditTerms {
            item_tokens: 512,
            input_bytes: 10_000,
            speed: 50_000,
            ..Default::default()
        };
        assert_ok!(Results::open(
            TASK,
            UNITS_MAX,
            Security::default(),
            terms,
            &assignments
        ));
        all_commit(&[(1, 9)]);
        // 512 tokens, three times over at 50 a second, and a second for the input: 16 blocks of 2 s.
        assert_eq!(round().unwrap().members[0].audits.items, 1);
        let RoundPhase::Auditing { until } = round().unwrap().phase else {
            panic!("auditing has begun");
        };
        let seeded = AUDIT_WINDOW.max(16);
        assert_eq!(until, System::block_number() + seeded);
    });
}

/// Items that each auditor of a task has, and the time that there is for them, in blocks.
fn audited(units: u32, audits: ModelAudits) -> (u32, BlockNumber) {
    audited_at(units, Security::default(), audits)
}

/// The same of a task of this security.
fn audited_at(units: u32, security: Security, audits: ModelAudits) -> (u32, BlockNumber) {
    let mut told = None;
    TestExt::new().execute_with(|| {
        let spec = spec(units, 1, security);
        let (_, terms) = Results::secure(PRICE, &spec, audits).unwrap();
        let assignments = PerMember::truncate_from(vec![Assignment {
            provider: 1,
            price: PRICE,
        }]);
        assert_ok!(Results::open(TASK, units, security, terms, &assignments));
        all_commit(&[(1, 9)]);
        let round = round().unwrap();
        let RoundPhase::Auditing { until } = round.phase else {
            panic!("auditing has begun");
        };
        told = Some((round.members[0].audits.items, until - System::block_number()));
    });
    told.unwrap()
}

#[test]
fn where_no_item_is_computed_alone_each_auditor_has_all_and_the_time_for_all() {
    let slow = ModelAudits {
        speed: 50_000,
        ..AUDITS
    };
    assert_eq!(audited(100, slow).0, 1);
    let whole = ModelAudits {
        item_parts: 0,
        ..slow
    };
    // 100 items of 512 tokens, three times over at 50 a second, and a second for the input.
    assert_eq!(audited(100, whole), (u32::MAX, 3_073_u64.div_ceil(2)));
}

#[test]
fn who_would_have_more_items_than_one_demand_can_have_shown_has_all_and_is_paid_for_all() {
    let of = |item_parts| {
        let audits = ModelAudits { item_parts, ..AUDITS };
        audited_at(1_000, secured(SecurityLevel::High, PRICE / 10), audits)
    };
    let (items, usual) = of(4);
    assert!((2..AUDIT_ITEMS_MAX).contains(&items), "{items}");
    let most = (DEMAND_PARTS_MAX - 3) / items;
    assert_eq!(of(most), (items, usual));
    let (all, long) = of(most + 1);
    assert_eq!(all, u32::MAX);
    assert!(long > usual, "{long} of {usual}");
}

/// All of the task takes 78 seconds: 50 items of 512 tokens, three times over at 1,000 a second, and a second
/// for the input.
fn takes_78_seconds() {
    Rounds::<Test>::mutate(TASK, |round| {
        round.as_mut().unwrap().terms = AuditTerms {
            item_tokens: 512,
            input_bytes: 10_000,
            speed: 1_000_000,
            ..Default::default()
        };
    });
}

#[test]
fn a_committee_has_time_to_compute_all() {
    TestExt::new().round_of(2).execute_with(|| {
        takes_78_seconds();
        // Wrong in the tokens.
        let lie = TOO_LARGE + 1;
        all_commit(&[(1, 9), (2, lie)]);
        pass(AUDITING + 1);
        all_reveal(&[(1, 9), (2, lie)]);
        play_out(&[(1, 9), (2, lie)]);
        pass(SEED_BLOCKS);
        let more = 39 - u32::try_from(AUDIT_WINDOW).unwrap();
        assert_eq!(committee().unwrap().state.left(), SEAT_WINDOW + more);
    });
}

#[test]
fn stake_that_is_bonded_before_the_draw_lowers_nobodys_odds() {
    TestExt::new().execute_with(|| {
        let (all, more) = (MockStake::bonded_in_all(Role::Verifier), 1_000 * BOND);
        let assignments = PerMember::truncate_from(vec![Assignment {
            provider: 1,
            price: PRICE,
        }]);
        let posted = spec(UNITS_MAX, 1, Security::default());
        let (level, terms) = Results::secure(PRICE, &posted, AUDITS).unwrap();
        assert_ok!(Results::open(
            TASK,
            UNITS_MAX,
            secured(level, 0),
            terms,
            &assignments
        ));
        let newcomer = FIRST_VERIFIER + VERIFIERS;
        MockStake::bond(newcomer, agent_of(newcomer), Role::Verifier, more);
        all_commit(&[(1, 9)]);
        assert_eq!(round().unwrap().draw.unwrap().verifier_stake, all);
    });
}

#[test]
fn whoever_plays_or_is_shown_nothing_has_time_to_compute_all() {
    TestExt::new().round_of(2).execute_with(|| {
        takes_78_seconds();
        all_commit(&[(1, 9), (2, 8)]);
        pass(AUDITING + 1);
        all_reveal(&[(1, 9), (2, 8)]);
        let more = 39 - AUDIT_WINDOW;
        let until = System::block_number() + OPENING_WINDOW + more;
        assert_eq!(round().unwrap().openings_until, Some(until));
        let clocks = disputes()[0].1.game.clocks();
        assert_eq!(u64::from(clocks.challenger), u64::from(CLOCK) + more);
    });
}
