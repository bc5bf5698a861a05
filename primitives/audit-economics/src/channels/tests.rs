#![allow(clippy::unwrap_used)]

use super::*;
use crate::SlashSplit;
use proptest::prelude::*;

const ONE: u128 = FixedU128::DIV;

fn fixed(value: f64) -> FixedU128 {
    FixedU128::from_inner((value * 1e18) as u128)
}

fn float(value: FixedU128) -> f64 {
    value.into_inner() as f64 / 1e18
}

fn policy() -> AuditPolicy {
    AuditPolicy {
        rates: crate::AuditRates::default(),
        able: Perquintill::one(),
        corrupt: Perquintill::from_rational(1u64, 3),
        accuracy: Perquintill::from_percent(95),
        burned: SlashSplit::default().burned(),
        reward_multiple: 40,
    }
}

/// An output that is so far in the range of all.
fn output(share: f64) -> [u8; 32] {
    let mut output = [0; 32];
    let low = (share * 2f64.powi(64)) as u64;
    output[8..16].copy_from_slice(&low.to_le_bytes());
    output
}

/// Some output.
fn hashed(number: u64) -> [u8; 32] {
    blake2_256(&number.to_le_bytes())
}

/// Poisson's law, by the book.
fn cumulated(mean: f64, points: u32) -> f64 {
    let mut exactly = (-mean).exp();
    let mut sum = exactly;
    for number in 1..=points {
        exactly *= mean / f64::from(number);
        sum += exactly;
    }
    sum
}

#[test]
fn the_highest_mean_is_never_beyond_the_most_points() {
    let mean = f64::from(POINTS_MEAN_MAX);
    let mut tail = (-mean).exp();
    for number in 1..=POINTS_MAX + 1 {
        tail *= mean / f64::from(number);
    }
    assert!(tail * 2.0 < 1e-19, "{tail}");
    assert_eq!(
        points_drawn(&[0xff; 32], FixedU128::from_u32(POINTS_MEAN_MAX)),
        POINTS_MAX
    );
    assert_eq!(points_drawn(&[0; 32], FixedU128::from_u32(POINTS_MEAN_MAX)), 0);
}

#[test]
fn nothing_is_drawn_without_stake_price_or_points() {
    let points = FixedU128::from_u32(3);
    let none = FixedU128::default();
    assert_eq!(points_mean(points, SURE, 0, 10), none);
    assert_eq!(points_mean(points, 0, 10, 10), none);
    assert_eq!(points_mean(none, SURE, 10, 10), none);
    assert_eq!(points_mean(points, SURE, 0, 0), none);
    // In the mean there is none: short of an error of the exponential, nobody draws one.
    assert_eq!(points_drawn(&output(0.999_999_999_999_999), none), 0);
    assert!(drawn_points(&[7; 32], 0, FixedU128::from_u32(16)).is_empty());
}

#[test]
fn means_are_what_they_should_be_and_stop_at_the_most() {
    let points = FixedU128::from_rational(3, 100);
    assert_eq!(
        points_mean(points, 50 * SURE, 2, 10),
        FixedU128::from_rational(3, 10)
    );
    assert_eq!(points_mean(points, 1, 1, 3), FixedU128::from_inner(10_000));
    assert_eq!(
        points_mean(FixedU128::from_inner(1), 1, 1, 3),
        FixedU128::from_inner(1),
        "rounded down"
    );
    let most = FixedU128::from_u32(POINTS_MEAN_MAX);
    for huge in [
        (u128::MAX, u128::MAX, 1, 1),
        (u128::MAX, u128::MAX, u128::MAX, 1),
        (1, 1, u128::MAX, 0),
    ] {
        let (points, price, stake, total) = huge;
        assert_eq!(
            points_mean(FixedU128::from_inner(points), price, stake, total),
            most
        );
    }
}

#[test]
fn points_are_spread_evenly_and_within_the_price() {
    let (price, mean) = (1_000_003u128, FixedU128::from_u32(10));
    let mut tenths = [0u32; 10];
    for number in 0..4_000 {
        let points = drawn_points(&hashed(number), price, mean);
        assert!(points.is_sorted());
        for point in points {
            assert!(point < price);
            tenths[(point * 10 / price) as usize] += 1;
        }
    }
    // 4,000 of each expected, with a deviation of 63: five of them.
    assert!(
        tenths.iter().all(|tenth| (3_684..4_316).contains(tenth)),
        "{tenths:?}"
    );
}

/// `tests/e2e/test_0_verdict.py` has the same: the devnet says by it which receipts were audited.
#[test]
fn where_points_are_can_be_computed_by_anybody() {
    let drawn = drawn_points(&[7; 32], 1_000_000_000_000, FixedU128::from_u32(10));
    assert_eq!(
        drawn,
        [21_221_809_825, 179_763_912_443, 341_674_005_506, 402_475_811_409]
    );
}

#[test]
fn a_point_is_in_an_item_that_there_is() {
    assert_eq!(
        (
            item_at(0, 10, 4),
            item_at(2, 10, 4),
            item_at(3, 10, 4),
            item_at(9, 10, 4)
        ),
        (0, 0, 1, 3)
    );
    assert_eq!(item_at(u128::MAX, 10, 4), 0, "no such point");
    assert_eq!((item_at(5, 0, 4), item_at(5, 10, 0)), (0, 0));
}

#[test]
fn padding_with_receipts_of_ones_own_hides_nothing() {
    // Wrong receipts of half a SURE, at 2 points per SURE: one in e is not met. Among ten verifiers.
    let (points, wrong) = (FixedU128::from_u32(2), SURE / 2);
    for padding in [0, SURE, 6 * SURE] {
        let price = wrong + padding;
        let mean = points_mean(points, price, 1, 10);
        let trials = 20_000u64;
        let missed = (0..trials).filter(|trial| {
            (0..10).all(|verifier| {
                let drawn = drawn_points(&hashed(trial * 10 + verifier), price, mean);
                // It lies wherever the provider has put it: in the middle.
                drawn
                    .iter()
                    .all(|point| !(padding / 2..padding / 2 + wrong).contains(point))
            })
        });
        let share = missed.count() as f64 / trials as f64;
        // A deviation of 0.0034: five of them.
        assert!((share - (-1f64).exp()).abs() < 0.017, "{padding}: {share}");
    }
}

#[test]
fn newcomers_are_met_more_until_enough_was_audited() {
    let rates = PointRates {
        usual: FixedU128::from_u32(1),
        newcomer: FixedU128::from_u32(3),
        probation: 100,
    };
    assert_eq!(rates.expected(0), FixedU128::from_u32(3));
    assert_eq!(rates.expected(50), FixedU128::from_u32(2));
    assert_eq!(
        (rates.expected(100), rates.expected(u128::MAX)),
        (FixedU128::from_u32(1), FixedU128::from_u32(1))
    );
    let without = PointRates {
        probation: 0,
        ..rates
    };
    assert_eq!(without.expected(0), FixedU128::from_u32(1));
}

#[test]
fn the_lock_of_the_readme() {
    // 0.1 points per SURE: k = 0.1 * 2/3 * 0.95, and half of the lock is burned.
    let points = FixedU128::from_rational(1, 10);
    let lock = |at_risk, open| policy().standing_lock(points, at_risk, open).unwrap() as f64 / SURE as f64;
    let nothing = lock(FixedU128::default(), u128::MAX);
    assert!((nothing - 31.578_947).abs() < 1e-6, "{nothing}");
    let twice = lock(FixedU128::from_u32(1), 100 * SURE);
    assert!((twice - (2.0 * 31.578_947 + 200.0)).abs() < 1e-5, "{twice}");
}

#[test]
fn what_no_lock_secures_is_refused() {
    let points = FixedU128::from_u32(1);
    let lock = |policy: AuditPolicy, points, at_risk, open| policy.standing_lock(points, at_risk, open);
    let (none, one) = (FixedU128::default(), FixedU128::from_u32(1));
    let third = Perquintill::from_rational(1u64, 3);
    let nobody = AuditPolicy {
        able: third,
        ..policy()
    };
    assert_eq!(lock(nobody, points, none, 0), Err(Refusal::NobodyAble));
    let never = Err(Refusal::NeverPunished);
    assert_eq!(lock(policy(), none, none, 0), never);
    assert_eq!(
        lock(
            AuditPolicy {
                accuracy: Perquintill::zero(),
                ..policy()
            },
            points,
            none,
            0
        ),
        never
    );
    assert_eq!(
        lock(
            AuditPolicy {
                burned: Perquintill::zero(),
                ..policy()
            },
            points,
            none,
            0
        ),
        never
    );
    let beyond = Err(Refusal::BeyondStake { needed: u128::MAX });
    let huge = FixedU128::from_inner(u128::MAX);
    assert_eq!(lock(policy(), FixedU128::from_inner(10), huge, u128::MAX), beyond);
    assert_eq!(lock(policy(), points, one, u128::MAX), beyond);
}

#[test]
fn a_levy_that_would_take_all_is_none() {
    let (pay, points) = (AuditPay::default(), FixedU128::from_u32(1));
    assert_eq!(pay.point(100), 125);
    assert_eq!(
        pay.levy(points, SURE / 100),
        Some(Perquintill::from_rational(125u64, 10_000))
    );
    assert_eq!(pay.levy(points, SURE * 4 / 5), None);
    assert_eq!(pay.levy(FixedU128::from_inner(u128::MAX), u128::MAX), None);
    assert_eq!(pay.levy(FixedU128::default(), SURE), Some(Perquintill::zero()));
}

#[test]
fn seeds_and_inputs_name_chain_provider_and_batch() {
    let seed = |genesis: u8, provider: u64, batch, entropy: Option<u8>| {
        let [genesis, epoch] = [genesis, 7].map(H256::repeat_byte);
        receipts_seed(
            &genesis,
            &provider,
            batch,
            &epoch,
            entropy.map(H256::repeat_byte).as_ref(),
        )
    };
    let one = seed(1, 2, 3, Some(4));
    for other in [
        seed(2, 2, 3, Some(4)),
        seed(1, 3, 3, Some(4)),
        seed(1, 2, 4, Some(4)),
        seed(1, 2, 3, None),
    ] {
        assert_ne!(one, other);
    }
    let input = ReceiptsInput {
        seed: one,
        provider: 2u64,
        batch: 3,
    };
    let fields = [
        (&b"seed"[..], one.encode()),
        (&b"provider"[..], 2u64.encode()),
        (&b"batch"[..], 3u32.encode()),
    ];
    assert_eq!(input.fields(), fields);
}

proptest! {
    /// Off by less than 5 * 10^-11 of probability, and never towards fewer points, beside what floats are.
    #[test]
    fn points_are_drawn_by_poissons_law(mean in 0.0..16.0f64, share in 0.0..1.0f64) {
        let drawn = points_drawn(&output(share), fixed(mean));
        let by_the_book = (0..POINTS_MAX).find(|points| share < cumulated(mean, *points));
        let by_the_book = by_the_book.unwrap_or(POINTS_MAX);
        let boundary = cumulated(mean, drawn.min(by_the_book));
        let off = if drawn < by_the_book { 1e-14 } else { 5e-11 };
        prop_assert!(drawn == by_the_book || (boundary - share).abs() < off, "{drawn} {by_the_book}");
    }

    #[test]
    fn more_stake_or_price_never_draws_fewer(
        share in 0.0..1.0f64, points in 0.001..5.0f64, price in 1u128..20 * SURE, more in 0u128..SURE,
        stake in 1u128..100,
    ) {
        let (output, points) = (output(share), fixed(points));
        let drawn = |price, stake| points_drawn(&output, points_mean(points, price, stake, 100));
        prop_assert!(drawn(price, stake) <= drawn(price + more, stake));
        prop_assert!(drawn(price, stake) <= drawn(price, stake + 1));
    }

    /// With floats: the best that a cheat can have wrong is still a loss.
    #[test]
    fn with_the_standing_lock_no_amount_of_wrong_receipts_pays(
        points in 0.01..10.0f64, at_risk in 0.0..20.0f64, open in 0.01..1_000.0f64, corrupt in 0.0..0.9f64,
        accuracy in 0.1..1.0f64,
    ) {
        let policy = AuditPolicy {
            corrupt: Perquintill::from_float(corrupt),
            accuracy: Perquintill::from_float(accuracy),
            ..policy()
        };
        let lock = policy.standing_lock(fixed(points), fixed(at_risk), (open * SURE as f64) as u128).unwrap();
        let rate = points * (1.0 - corrupt) * accuracy;
        let found = float(policy.conviction_rate(fixed(points)));
        prop_assert!(found <= rate * (1.0 + 1e-12) && found > rate * (1.0 - 1e-9));
        let lost = 0.5 * lock as f64 / SURE as f64;
        for step in 1..=1_000 {
            let wrong = open * f64::from(step) / 1_000.0;
            let kept = (-rate * wrong).exp();
            let gain = kept * wrong + at_risk * wrong - (1.0 - kept) * lost;
            prop_assert!(gain <= 1e-9 * lost, "{wrong} SURE wrong gain {gain}");
        }
        // And not much more is locked than that takes.
        let book = ((1.0 + at_risk) / rate + at_risk * open) / 0.5;
        prop_assert!((lock as f64 / SURE as f64 - book).abs() < 1e-6 * book + 1e-9);
    }

    #[test]
    fn the_levy_pays_the_points_that_are_expected(
        points in 1u128..10 * ONE, cost in 1u128..SURE / 20, price in 1u128..1_000_000 * SURE,
    ) {
        let points = FixedU128::from_inner(points);
        let pay = AuditPay::default();
        let levy = pay.levy(points, cost).unwrap();
        let raised = levy.mul_ceil(price) as f64;
        let paid = float(points) * (price as f64 / SURE as f64) * pay.point(cost) as f64;
        prop_assert!(raised >= paid * (1.0 - 1e-9));
        prop_assert!(raised <= paid * (1.0 + 1e-6) + price as f64 * 1e-17 + 1.0);
    }
}
