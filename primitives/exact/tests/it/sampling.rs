//! Which token comes next.

use proptest::{collection::vec, prelude::*};
use surety_exact::{ArithmeticError, Sampling, SplitMix64, exp, greedy, sample};

const ALL: Sampling = Sampling {
    temperature_milli: 1000,
    top_k: 0,
    top_p_milli: 1000,
};

fn draw(logits: &[f32], how: Sampling, random: u64) -> u32 {
    sample(logits, &how, random, &mut vec![0; logits.len()]).unwrap()
}

/// Tokens by logit, the largest first, equal ones by number.
fn ranked(logits: &[f32]) -> Vec<u32> {
    let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
    tokens.sort_by(|a, b| logits[*b as usize].partial_cmp(&logits[*a as usize]).unwrap());
    tokens
}

fn logits() -> impl Strategy<Value = Vec<f32>> {
    // Few different values, so that there are ties.
    vec(
        prop_oneof![
            (-8i8..8).prop_map(|x| f32::from(x) / 2.0),
            -9.0f32..9.0,
            Just(-0.0)
        ],
        1..60,
    )
}

fn sampling() -> impl Strategy<Value = Sampling> {
    (1u32..3000, 0u32..70, 0u32..1200).prop_map(|(temperature_milli, top_k, top_p_milli)| Sampling {
        temperature_milli,
        top_k,
        top_p_milli,
    })
}

/// Equally spaced numbers over the whole range, so that counts are the true shares within one draw.
fn evenly(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| ((u128::from(i) << 64) / u128::from(count)) as u64)
}

/// A number like those of a task.
fn scattered(seed: u64) -> u64 {
    SplitMix64::mix(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[test]
fn faults_are_named() {
    for temperature_milli in [0, 1000] {
        let how = Sampling {
            temperature_milli,
            ..ALL
        };
        assert_eq!(sample(&[], &how, 0, &mut []), Err(ArithmeticError::Shape));
        assert_eq!(
            sample(&[1.0, f32::NAN], &how, 0, &mut [0; 2]),
            Err(ArithmeticError::NotFinite)
        );
        assert_eq!(
            sample(&[1.0, f32::INFINITY], &how, 0, &mut [0; 2]),
            Err(ArithmeticError::NotFinite)
        );
    }
    assert_eq!(
        sample(&[1.0, 2.0], &ALL, 0, &mut [0; 3]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(greedy(&[]), Err(ArithmeticError::Shape));
    assert_eq!(greedy(&[f32::NEG_INFINITY]), Err(ArithmeticError::NotFinite));
}

#[test]
fn of_equal_logits_the_lowest_number_wins() {
    assert_eq!(greedy(&[1.0, 3.0, 3.0, 2.0]), Ok(1));
    assert_eq!(greedy(&[-0.0, 0.0]), Ok(0));
    assert_eq!(greedy(&[0.0, -0.0]), Ok(0));
    for random in [0, u64::MAX] {
        assert_eq!(draw(&[-0.0, 0.0, -1.0], Sampling { top_k: 1, ..ALL }, random), 0);
        assert_eq!(
            draw(
                &[1.0, 3.0, 3.0],
                Sampling {
                    top_p_milli: 1,
                    ..ALL
                },
                random
            ),
            1
        );
    }
}

#[test]
fn extremes_stay_within_bounds() {
    let logits = [f32::MIN, f32::MAX, 0.0];
    for temperature_milli in [1, u32::MAX] {
        for (top_k, top_p_milli) in [(0, 0), (u32::MAX, u32::MAX)] {
            for random in [0, u64::MAX] {
                let how = Sampling {
                    temperature_milli,
                    top_k,
                    top_p_milli,
                };
                assert_eq!(draw(&logits, how, random), 1);
            }
        }
    }
    // So hot that all are alike: the last number draws the last of the order.
    assert_eq!(
        draw(
            &[0.0, 1.0, 2.0],
            Sampling {
                temperature_milli: u32::MAX,
                ..ALL
            },
            u64::MAX
        ),
        0
    );
}

#[test]
fn frequencies_are_those_of_softmax_within_four_sigma() {
    let logits: Vec<f32> = (0..40u64)
        .map(|i| (scattered(i) >> 40) as f32 / 2f32.powi(22) - 2.0)
        .collect();
    for temperature_milli in [300, 1000, 1700] {
        let how = Sampling {
            temperature_milli,
            ..ALL
        };
        let draws = 100_000u64;
        let mut counts = vec![0u32; logits.len()];
        for i in 0..draws {
            counts[draw(&logits, how, scattered(1_000_000 + i)) as usize] += 1;
        }
        let weight = |logit: &f32| (f64::from(*logit) * 1000.0 / f64::from(temperature_milli)).exp();
        let total: f64 = logits.iter().map(weight).sum();
        for (token, logit) in logits.iter().enumerate() {
            let share = weight(logit) / total;
            let expected = share * draws as f64;
            let sigma = (expected * (1.0 - share)).sqrt();
            let off = (f64::from(counts[token]) - expected).abs();
            assert!(
                off < 4.0 * sigma + 1.0,
                "token {token} at {temperature_milli}: {off} of {expected}"
            );
        }
    }
}

proptest! {
    #[test]
    fn temperature_0_is_greedy(logits in logits(), how in sampling(), random in any::<u64>()) {
        let best = greedy(&logits).unwrap();
        prop_assert_eq!(best, ranked(&logits)[0]);
        prop_assert_eq!(draw(&logits, Sampling { temperature_milli: 0, ..how }, random), best);
        prop_assert_eq!(draw(&logits, Sampling { top_k: 1, ..how }, random), best);
        prop_assert_eq!(draw(&logits, Sampling { top_p_milli: 0, ..how }, random), best);
    }

    #[test]
    fn only_the_best_k_are_drawn(logits in logits(), how in sampling(), random in any::<u64>()) {
        let keep = if how.top_k == 0 { logits.len() } else { how.top_k as usize };
        let token = draw(&logits, how, random);
        prop_assert!(ranked(&logits).iter().take(keep).any(|kept| *kept == token));
    }

    #[test]
    fn the_kept_tokens_are_the_fewest_that_have_the_share(logits in logits(), how in sampling(), random in any::<u64>()) {
        let ranked = ranked(&logits);
        let keep = if how.top_k == 0 { ranked.len() } else { ranked.len().min(how.top_k as usize) };
        let sharpness = 1000.0 / how.temperature_milli as f32;
        let weights: Vec<u64> = ranked[..keep]
            .iter()
            .map(|token| (exp((logits[*token as usize] - logits[ranked[0] as usize]) * sharpness) * 2f32.powi(30)) as u64)
            .collect();
        let wanted = weights.iter().sum::<u64>() * u64::from(how.top_p_milli.min(1000));
        // Those before it do not have the share already.
        let place = ranked.iter().position(|token| *token == draw(&logits, how, random)).unwrap();
        prop_assert!(place == 0 || weights[..place].iter().sum::<u64>() * 1000 < wanted);
    }

    #[test]
    fn a_larger_number_never_draws_a_better_token(logits in logits(), how in sampling()) {
        let ranked = ranked(&logits);
        let places: Vec<usize> = evenly(300)
            .map(|random| ranked.iter().position(|token| *token == draw(&logits, how, random)).unwrap())
            .collect();
        prop_assert!(places.is_sorted());
    }

    #[test]
    fn scratch_makes_no_difference(logits in logits(), how in sampling(), random in any::<u64>(), dirt in any::<u32>()) {
        let mut order = vec![dirt; logits.len()];
        prop_assert_eq!(sample(&logits, &how, random, &mut order).unwrap(), draw(&logits, how, random));
    }
}
