#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;
use serde_json::Value;
use sp_arithmetic::PerThing;
use sp_core::H256;
use surety_types::limits::AUDITS_PER_MEMBER_MAX;

const ONE: u128 = FixedU128::DIV;

fn fixed(parts: u128) -> FixedU128 {
    FixedU128::from_inner(parts)
}

fn percent(percent: u64) -> Perquintill {
    Perquintill::from_percent(percent)
}

fn policy() -> AuditPolicy {
    AuditPolicy {
        rates: AuditRates::default(),
        able: Perquintill::one(),
        corrupt: Perquintill::from_rational(1u64, 3),
        accuracy: percent(95),
        burned: SlashSplit::default().burned(),
        reward_multiple: 40,
    }
}

fn terms(reward: u128, saved: u128, outside: u128) -> Terms {
    Terms {
        reward,
        saved,
        outside,
    }
}

/// Micro-units of 10^-18: six digits after the point.
fn micro(text: &str) -> i128 {
    text.replace('.', "").parse().unwrap()
}

#[test]
fn exp_keeps_its_error_bound_on_golden_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("../vectors/exp_minus.json")).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() > 400);
    for vector in vectors {
        let x = fixed(vector["x"].as_str().unwrap().parse().unwrap());
        let exact = micro(vector["exp_minus"].as_str().unwrap());
        let error = i128::from(exp_minus(x).deconstruct()) * 1_000_000 - exact;
        // The documentation's bounds: at most 0.23 units above, less than 1.23 below.
        assert!((-1_230_000..=230_000).contains(&error), "{error} at {x:?}");
        let missed =
            (ONE as i128 * 1_000_000 - exact) - i128::from(at_least_one(x).deconstruct()) * 1_000_000;
        assert!(
            (0..4_000_000).contains(&missed) || at_least_one(x).is_zero(),
            "{missed} at {x:?}"
        );
    }
}

#[test]
fn exp_is_exact_at_the_ends() {
    assert_eq!(exp_minus(fixed(0)), Perquintill::one());
    assert_eq!(exp_minus(fixed(u128::MAX)), Perquintill::zero());
    assert_eq!(at_least_one(fixed(0)), Perquintill::zero());
}

#[test]
fn rates_are_those_of_the_protocol() {
    let rates = AuditRates::default();
    let settled = SecurityLevel::ALL.map(|level| rates.expected(level, 200).into_inner() * 100 / ONE);
    assert_eq!(settled, [15, 100, 300]);
    for level in SecurityLevel::ALL {
        assert_eq!(rates.expected(level, 0), FixedU128::from_u32(3));
        assert_eq!(rates.expected(level, u32::MAX), rates.expected(level, 200));
    }
    // Half-way between 3 and 1.
    assert_eq!(
        rates.expected(SecurityLevel::Standard, 100),
        FixedU128::from_u32(2)
    );
}

#[test]
fn without_probation_nobody_is_a_newcomer() {
    let rates = AuditRates {
        probation_tasks: 0,
        ..AuditRates::default()
    };
    assert_eq!(rates.expected(SecurityLevel::Basic, 0), rates.basic);
}

#[test]
fn fewer_verifiers_than_auditors_all_audit() {
    let all = AuditThreshold::equal(FixedU128::from_u32(3), 3);
    assert!(all.draws(&[0xff; 32]));
    assert!(!AuditThreshold::equal(FixedU128::from_u32(3), 4).draws(&[0xff; 32]));
}

#[test]
fn nobody_is_drawn_for_no_auditors_or_without_stake() {
    assert!(!AuditThreshold::equal(fixed(0), 10).draws(&[0; 32]));
    assert!(!AuditThreshold::weighted(FixedU128::from_u32(3), 0, 10).draws(&[0; 32]));
}

#[test]
fn only_the_first_half_of_an_output_draws() {
    let half = AuditThreshold::equal(FixedU128::from_u32(1), 2);
    let mut output = [0; 32];
    output[15] = 0x7f;
    assert!(half.draws(&output));
    output[15] = 0x81;
    assert!(!half.draws(&output));
}

#[test]
fn as_many_audit_as_expected() {
    let expected = FixedU128::from_rational(15, 100);
    let threshold = AuditThreshold::equal(expected, 30);
    let drawn = (0..200_000u32)
        .filter(|n| threshold.draws(&sp_crypto_hashing::blake2_256(&n.to_le_bytes())))
        .count();
    // Mean 1,000, standard deviation 32: five of them.
    assert!((840..1160).contains(&drawn), "{drawn}");
}

#[test]
fn a_lock_of_forty_rewards_covers_what_the_readme_says() {
    let policy = policy();
    let covered = SecurityLevel::ALL.map(|level| {
        let caught = policy.caught(policy.rates.expected(level, 200));
        // Half of 40 R is burned; saving all of the work gains less than R.
        (0..2_000u128)
            .take_while(|v| honesty_pays(caught, &terms(100, 100, *v), 2_000))
            .count()
    });
    assert_eq!(covered, [90, 871, 1626]);
}

#[test]
fn the_level_rises_until_the_stake_suffices() {
    let policy = policy();
    let plan =
        |outside, available| policy.plan(SecurityLevel::Basic, 200, &terms(100, 90, outside), available);
    let level = |outside| plan(outside, 4_000).unwrap().level;
    assert_eq!([level(0), level(500), level(1_500)], SecurityLevel::ALL);
    assert_eq!(plan(0, 4_000).unwrap().lock, 4_000);
    let Err(Refusal::BeyondStake { needed }) = plan(100_000, 4_000) else {
        panic!("100,000 plancks at risk are not secured by 4,000");
    };
    assert_eq!(plan(100_000, needed).unwrap().lock, needed);
    assert_eq!(plan(100_000, needed - 1), Err(Refusal::BeyondStake { needed }));
}

#[test]
fn a_newcomer_is_watched_more_and_needs_no_more_stake() {
    let policy = policy();
    let terms = terms(100, 90, 500);
    let new = policy.plan(SecurityLevel::Basic, 0, &terms, 4_000).unwrap();
    let old = policy.plan(SecurityLevel::Basic, 200, &terms, 4_000).unwrap();
    assert!(new.level < old.level && new.expected > old.expected && new.lock <= old.lock);
}

#[test]
fn what_is_never_punished_is_refused() {
    let terms = terms(100, 90, 0);
    for policy in [
        AuditPolicy {
            accuracy: percent(0),
            ..policy()
        },
        AuditPolicy {
            burned: percent(0),
            ..policy()
        },
    ] {
        let refused = policy.plan(SecurityLevel::Basic, 0, &terms, u128::MAX);
        assert_eq!(refused, Err(Refusal::NeverPunished));
    }
}

#[test]
fn a_task_that_nobody_honest_may_be_able_to_audit_is_refused() {
    let terms = terms(100, 90, 0);
    let able = |able| AuditPolicy {
        able: Perquintill::from_parts(able),
        ..policy()
    };
    let third = policy().corrupt.deconstruct();
    for few in [0, third - 1, third] {
        let plan = able(few).plan(SecurityLevel::Basic, 0, &terms, u128::MAX);
        assert_eq!(plan, Err(Refusal::NobodyAble));
        let items = able(few).items(10, FixedU128::from_u32(3), &terms, u128::MAX);
        assert_eq!(items, Err(Refusal::NobodyAble));
    }
    let plan = able(third + third / 1_000).plan(SecurityLevel::High, 200, &terms, u128::MAX);
    assert!(plan.is_ok_and(|plan| plan.lock > 4_000));
}

#[test]
fn the_protocols_example_of_sampled_items() {
    let (policy, one) = (policy(), FixedU128::from_u32(1));
    let caught = policy.caught(one).deconstruct() as f64 / 1e18;
    assert!((0.455..0.465).contains(&caught), "{caught}");
    let items = |n, outside| {
        policy
            .items(n, one, &terms(1_000, 1_000, outside), 40_000)
            .unwrap()
    };
    assert_eq!([items(1_000, 0), items(1_000, 100)], [1, 11]);
    assert_eq!([items(1, 0), items(1, 100), items(5, 100)], [1, 1, 1]);
    // More than are opened on chain: the whole task.
    assert_eq!([items(1_000, 1_200), items(1_000, 1_300)], [124, 1_000]);
}

#[test]
fn items_are_drawn_with_equal_chances_and_never_twice() {
    let mut seen = [0u32; 10];
    for n in 0..20_000u32 {
        let output = sp_crypto_hashing::blake2_256(&n.to_le_bytes());
        let drawn = drawn_items(&output, 10, 3);
        assert!(drawn.len() == 3 && drawn.is_sorted_by(|a, b| a < b));
        drawn.iter().for_each(|item| seen[*item as usize] += 1);
    }
    // Mean 6,000, standard deviation 65: five of them.
    assert!(
        seen.iter().all(|count| (5_675..6_325).contains(count)),
        "{seen:?}"
    );
    assert_eq!(drawn_items(&[7; 32], 4, 9), [0, 1, 2, 3]);
    assert!(drawn_items(&[7; 32], 0, 9).is_empty());
    assert_eq!(drawn_items(&[7; 32], u32::MAX, 3).len(), 3);
}

#[test]
fn the_window_follows_the_work() {
    let work = AuditWork {
        operation: surety_types::model::Operation::Embed,
        units_max: 1_000,
        input_bytes: 100_000,
        item_tokens: 512,
        speed: 1_000_000,
    };
    // One item of 512 tokens three times over, and the input.
    assert_eq!(work.seconds(1), 2 + 1);
    assert_eq!(work.tokens(1_000), 512_000);
    assert_eq!(work.seconds(1_000), 1_536 + 1);
    assert_eq!(work.seconds(u32::MAX), work.seconds(1_000));
    let generation = AuditWork {
        operation: surety_types::model::Operation::Generate,
        ..work
    };
    assert_eq!((generation.tokens(1), generation.seconds(1)), (1_000, 3 + 1));
    let slow = AuditWork { speed: 0, ..work };
    assert!(slow.seconds(1_000) > 300_000);
}

#[test]
fn what_work_is_worth_follows_its_tokens_and_ids_that_items_share_count_once() {
    let work = AuditWork {
        operation: surety_types::model::Operation::Embed,
        units_max: 1_000,
        input_bytes: 4 * (2_000 + 20_000),
        item_tokens: 512,
        speed: 1_000_000,
    };
    // 1,000 tokens a second.
    assert_eq!((work.worth(7), work.worth(0)), (7 * 20, 0));
    let whole = AuditWork {
        input_bytes: u32::MAX,
        ..work
    };
    assert_eq!(whole.worth(7), 7 * 512);
    // A token each at least, rounded up.
    let short = AuditWork {
        input_bytes: 0,
        units_max: 1_001,
        ..work
    };
    assert_eq!((short.worth(1), short.worth(1_000)), (2, 1_001));
    let generation = AuditWork {
        operation: surety_types::model::Operation::Generate,
        ..work
    };
    assert_eq!(generation.worth(7), 7);
    let slowest = AuditWork {
        units_max: u32::MAX,
        speed: 0,
        ..generation
    };
    assert_eq!(slowest.worth(u128::MAX), u128::MAX);
}

proptest! {
    /// A cheat with `wrong` of `n` items wrong is convicted with `p (1 - C(n - wrong, m) / C(n, m))`.
    #[test]
    fn whatever_share_is_wrong_sampled_items_make_honesty_pay(
        reward in 1_000..1_000_000u128, outside in 0..10_000_000u128, n in 1..400u32, wrong in 1..400u32,
        paid in 1..=400u32, expected in 1..4 * ONE, able in 50..=100u64,
    ) {
        let policy = AuditPolicy { able: percent(able), ..policy() };
        let all = terms(reward, reward, outside);
        let (expected, n) = (fixed(expected), n.max(paid));
        let Ok(lock) = policy.least_lock(expected, &all) else { return Ok(()) };
        let m = policy.items(n, expected, &all, lock).unwrap();
        prop_assert!((1..=n).contains(&m));
        // Fewer items than were paid for at most, paid in proportion.
        let (wrong, m) = (wrong.min(paid), m.min(paid));
        let missed: f64 = (0..m)
            .map(|drawn| f64::from((paid - wrong).saturating_sub(drawn)) / f64::from(paid - drawn))
            .product();
        let caught = policy.caught(expected).deconstruct() as f64 / 1e18 * (1.0 - missed);
        let earned = reward as f64 * f64::from(paid) / f64::from(n);
        let gain = earned * f64::from(wrong) / f64::from(paid) + outside as f64;
        let lost = policy.burned.mul_floor(lock) as f64;
        prop_assert!(caught * (earned + lost) > gain * (1.0 - 1e-9), "{caught} {gain} {m}");
    }

    #[test]
    fn more_at_risk_never_means_fewer_items(
        n in 1..2_000u32, reward in 1..1_000_000u128, outside in 0..1_000_000u128, more in 0..1_000_000u128,
    ) {
        let policy = policy();
        let items = |outside| {
            let terms = terms(reward, reward, outside);
            policy.items(n, FixedU128::from_u32(1), &terms, 40 * reward).unwrap()
        };
        prop_assert!(items(outside + more) >= items(outside));
    }
}

#[test]
fn a_lock_beyond_all_money_is_refused_and_not_cut() {
    let refused = policy().least_lock(FixedU128::from_u32(1), &terms(1, 1, u128::MAX));
    assert_eq!(refused, Err(Refusal::BeyondStake { needed: u128::MAX }));
}

#[test]
fn a_lone_fault_costs_the_base_and_a_third_of_the_stake_everything() {
    let base = percent(5);
    assert_eq!(correlated_fraction(base, 0, 300), base);
    assert_eq!(correlated_fraction(base, 0, 0), base);
    assert_eq!(correlated_fraction(base, 100, 300), percent(100));
    assert_eq!(correlated_fraction(base, u128::MAX, 0), percent(100));
    // A sixth: half of the way, squared. 5 % + 95 % / 4.
    assert_eq!(
        correlated_fraction(base, 50, 300),
        Perquintill::from_rational(2_875u64, 10_000)
    );
}

#[test]
fn a_slash_is_split_in_half_three_tenths_and_a_fifth() {
    let split = SlashSplit::default();
    assert_eq!(
        split.shares(1_000),
        SlashShares {
            burned: 500,
            finder: 300,
            client: 200
        }
    );
    assert_eq!(
        split.shares(1),
        SlashShares {
            burned: 1,
            finder: 0,
            client: 0
        }
    );
    assert_eq!(split.burned(), percent(50));
}

proptest! {
    #[test]
    fn exp_turns_sums_into_products(a in 0..40 * ONE, b in 0..40 * ONE) {
        let parts = |x| i128::from(exp_minus(fixed(x)).deconstruct());
        let product = parts(a) * parts(b) / ONE as i128;
        // Two factors of at most one, off by less than two each, the product by as much, and the division.
        prop_assert!((product - parts(a + b)).abs() <= 7);
    }

    #[test]
    fn exp_falls(x in 0..46 * ONE, step in 0..ONE) {
        prop_assert!(exp_minus(fixed(x + step)).deconstruct() <= exp_minus(fixed(x)).deconstruct() + 2);
    }

    #[test]
    fn whatever_the_weights_an_honest_audit_is_as_likely_as_promised(
        stakes in prop::collection::vec(1u64..1_000, 1..40), expected in 1..5 * ONE, honest in any::<u64>(),
    ) {
        let total: u128 = stakes.iter().map(|stake| u128::from(*stake)).sum();
        let (mut nobody, mut corrupt) = (1.0f64, 0u128);
        for (i, stake) in stakes.iter().enumerate() {
            if honest >> (i % 64) & 1 == 1 {
                let threshold = AuditThreshold::weighted(fixed(expected), (*stake).into(), total);
                nobody *= 1.0 - threshold.0 as f64 / 2f64.powi(128);
            } else {
                corrupt += u128::from(*stake);
            }
        }
        let honest = Perquintill::from_rational(corrupt, total).left_from_one();
        let promised = honest_audit(fixed(expected), honest);
        prop_assert!(1.0 - nobody >= promised.deconstruct() as f64 / 1e18 - 1e-12);
    }

    #[test]
    fn the_least_loss_is_the_least_that_makes_honesty_pay(
        caught in 1..=1_000_000_000_000_000_000u64, reward in any::<u64>(), saved in any::<u64>(), outside in any::<u64>(),
    ) {
        let caught = Perquintill::from_parts(caught);
        let terms = terms(reward.into(), saved.into(), outside.into());
        let loss = least_loss(caught, &terms).unwrap();
        prop_assert!(honesty_pays(caught, &terms, loss));
        prop_assert!(loss == 0 || !honesty_pays(caught, &terms, loss - 1));
    }

    #[test]
    fn a_planned_lock_makes_honesty_pay_by_its_burned_part(
        reward in 1..1_000_000u128, saved in 0..1_000_000u128, outside in 0..100_000_000u128,
        clean_tasks in 0..300u32, available in 0..10_000_000_000u128,
    ) {
        let policy = policy();
        let terms = terms(reward, saved, outside);
        if let Ok(plan) = policy.plan(SecurityLevel::Basic, clean_tasks, &terms, available) {
            let burned = SlashSplit::default().shares(plan.lock).burned;
            prop_assert!(honesty_pays(policy.caught(plan.expected), &terms, burned));
            prop_assert!(plan.lock <= available && plan.lock >= 40 * reward);
        }
    }

    #[test]
    fn shares_of_a_slash_add_up_to_it(amount in any::<u128>(), finder in 0..=100u64, client in 0..=100u64) {
        let split = SlashSplit { finder: percent(finder), client: percent(client) };
        let shares = split.shares(amount);
        let sum = shares.burned.checked_add(shares.finder).and_then(|sum| sum.checked_add(shares.client));
        prop_assert_eq!(sum, Some(amount));
        prop_assert!(shares.burned >= split.burned().mul_floor(amount));
    }

    #[test]
    fn slashes_grow_with_correlated_faults(others in any::<u64>(), more in any::<u64>(), total in any::<u64>()) {
        let fraction = |others: u128| correlated_fraction(percent(5), others, total.into());
        let (others, more) = (u128::from(others), u128::from(more));
        prop_assert!(fraction(others + more) >= fraction(others));
        prop_assert!(fraction(others) >= percent(5));
    }
}

#[test]
fn chain_task_epoch_and_entropy_count_in_the_seed() {
    let [chain, epoch, entropy, other] = [0, 1, 2, 3].map(H256::repeat_byte);
    let seeds = [
        audit_seed(&chain, 7, &epoch, Some(&entropy)),
        audit_seed(&other, 7, &epoch, Some(&entropy)),
        audit_seed(&chain, 8, &epoch, Some(&entropy)),
        audit_seed(&chain, 7, &other, Some(&entropy)),
        audit_seed(&chain, 7, &epoch, Some(&other)),
        audit_seed(&chain, 7, &epoch, None),
    ];
    let different: std::collections::BTreeSet<_> = seeds.into_iter().collect();
    assert_eq!(different.len(), seeds.len());
    assert_eq!(audit_seed(&chain, 7, &epoch, Some(&entropy)), seeds[0]);
}

/// Probability that at least `least` of `verifiers` are drawn, of whom `expected` are in the mean.
fn tail(verifiers: u32, expected: f64, least: u32) -> f64 {
    let chance = expected / f64::from(verifiers);
    let (mut exactly, mut sum) = ((1.0 - chance).powi(verifiers as i32), 0.0);
    for drawn in 0..verifiers {
        if drawn >= least {
            sum += exactly;
        }
        exactly *= f64::from(verifiers - drawn) / f64::from(drawn + 1) * chance / (1.0 - chance);
    }
    sum
}

#[test]
fn more_auditors_than_there_are_places_are_practically_never_drawn() {
    let rates = AuditRates::default();
    let of_newcomer = SecurityLevel::ALL.map(|level| rates.expected(level, 0));
    let most = of_newcomer.into_iter().max().unwrap().into_inner() as f64 / ONE as f64;
    assert_eq!(most, 3.0);
    for verifiers in [30, 100, 1_000, 100_000] {
        let full = tail(verifiers, most, AUDITS_PER_MEMBER_MAX + 1);
        assert!(full < 3.1e-15, "{verifiers}: {full}");
    }
}
