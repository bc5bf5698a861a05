//! The bounds that the functions' docs state, over their whole range.

use surety_exact::{erf, exp, gelu, gelu_tanh, rsqrt, silu, sin_cos_turn, sqrt, tanh};

/// Every `step`-th float of a size between two others, of both signs. Floats lie densest around 0, so sizes
/// start at 2^-40 where nothing new happens below.
fn floats(least: f32, most: f32, step: usize) -> impl Iterator<Item = f32> {
    (least.to_bits()..=most.to_bits())
        .step_by(step)
        .chain([most.to_bits()])
        .flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)])
}

const TINY: f32 = 9.094_947e-13;

/// Asserts that no error reaches the bound, and that the bound is not idle talk: some error is over a third
/// of it.
fn bound(name: &str, bound: f64, errors: impl Iterator<Item = (f32, f64)>) {
    let (at, worst) = errors.fold((0.0, 0.0f64), |worst, (x, error)| {
        assert!(!error.is_nan(), "{name}({x}) is not a number");
        if error > worst.1 { (x, error) } else { worst }
    });
    println!("{name}: {worst:e} at {at:e}");
    assert!(
        worst < bound,
        "{name}({at:e}) is off by {worst:e}, over {bound:e}"
    );
    assert!(
        worst > bound / 3.0,
        "{name} is never off by more than {worst:e}: state a tighter bound than {bound:e}"
    );
}

fn relative(found: f32, right: f64) -> f64 {
    ((f64::from(found) - right) / right).abs()
}

fn absolute(found: f32, right: f64) -> f64 {
    (f64::from(found) - right).abs()
}

fn exact_gelu(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

#[test]
fn exp_is_within_its_bound() {
    let inside = floats(TINY, 88.0, 997).filter(|x| *x >= -87.0);
    bound(
        "exp",
        1e-7,
        inside.map(|x| (x, relative(exp(x), f64::from(x).exp()))),
    );
}

#[test]
fn exp_is_cut_at_both_ends_and_exact_at_0() {
    assert_eq!(exp(0.0).to_bits(), 1f32.to_bits());
    assert_eq!(exp(-0.0).to_bits(), 1f32.to_bits());
    for x in [-87.1, -1e30, f32::MIN, f32::NEG_INFINITY] {
        assert_eq!(exp(x), exp(-87.0), "{x}");
    }
    for x in [88.1, 1e30, f32::MAX, f32::INFINITY] {
        assert_eq!(exp(x), exp(88.0), "{x}");
    }
    assert!(exp(-87.0).is_normal() && exp(88.0).is_finite());
    // A weight of more than 1 would let softmax and sampling overshoot.
    assert!(floats(1e-30, 88.0, 997).all(|x| x > 0.0 || exp(x) <= 1.0));
}

#[test]
fn tanh_is_within_its_bound() {
    bound(
        "tanh",
        1e-7,
        floats(TINY, 100.0, 997).map(|x| (x, absolute(tanh(x), f64::from(x).tanh()))),
    );
}

#[test]
fn erf_is_within_its_bound() {
    bound(
        "erf",
        6e-7,
        floats(TINY, 100.0, 997).map(|x| (x, absolute(erf(x), libm::erf(f64::from(x))))),
    );
}

#[test]
fn gelu_is_within_its_bound() {
    let error = |x: f32| absolute(gelu(x), exact_gelu(f64::from(x))) / f64::from(x.abs().max(1.0));
    bound("gelu", 2.5e-7, floats(TINY, 1000.0, 997).map(|x| (x, error(x))));
}

#[test]
fn gelu_tanh_is_within_its_bound() {
    let error = |x: f32| {
        let y = f64::from(x);
        let inner = (2.0 / core::f64::consts::PI).sqrt() * (y + 0.044_715 * y * y * y);
        absolute(gelu_tanh(x), 0.5 * y * (1.0 + inner.tanh())) / f64::from(x.abs().max(1.0))
    };
    bound(
        "gelu_tanh",
        2e-7,
        floats(TINY, 1000.0, 997).map(|x| (x, error(x))),
    );
}

#[test]
fn silu_is_within_its_bound() {
    let error = |x: f32| relative(silu(x), f64::from(x) / (1.0 + (-f64::from(x)).exp()));
    let inside = floats(TINY, 1000.0, 997).filter(|x| *x >= -88.0);
    bound("silu", 2e-7, inside.map(|x| (x, error(x))));
}

#[test]
fn silu_is_negligible_where_exp_is_cut() {
    for x in floats(88.0, f32::MAX, 10_007).filter(|x| *x < 0.0) {
        assert!((0.0..=-x * 6.2e-39).contains(&-silu(x)), "{x}");
    }
}

#[test]
fn sine_and_cosine_are_within_their_bound() {
    let turns = || {
        (0..=u32::MAX)
            .step_by(2003)
            .chain((0..8).map(|eighth| (eighth << 29) - u32::from(eighth > 0)))
    };
    let angle = |turn: u32| f64::from(turn) / 2f64.powi(32) * core::f64::consts::TAU;
    bound(
        "sin",
        5e-7,
        turns().map(|turn| (turn as f32, absolute(sin_cos_turn(turn).0, angle(turn).sin()))),
    );
    bound(
        "cos",
        5e-7,
        turns().map(|turn| (turn as f32, absolute(sin_cos_turn(turn).1, angle(turn).cos()))),
    );
}

#[test]
fn quarter_turns_are_exact() {
    let quarters = [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)];
    for (quarter, expected) in (0u32..).zip(quarters) {
        assert_eq!(sin_cos_turn(quarter << 30), expected);
    }
}

#[test]
fn roots_are_rounded_correctly() {
    for x in floats(f32::from_bits(1), f32::MAX, 1009).filter(|x| *x > 0.0) {
        // The square root of a float, computed in f64, lies too far from any tie to be rounded twice.
        let root = f64::from(x).sqrt() as f32;
        assert_eq!(sqrt(x), root, "{x:e}");
        assert_eq!(rsqrt(x), 1.0 / root, "{x:e}");
    }
}

#[test]
fn a_finite_argument_gives_a_finite_value() {
    for x in floats(0.0, f32::MAX, 10_007) {
        for value in [exp(x), tanh(x), erf(x), gelu(x), gelu_tanh(x), silu(x)] {
            assert!(value.is_finite(), "{x:e}");
        }
    }
}

#[test]
fn no_infinity_passes_as_a_number_through_an_activation() {
    for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for value in [gelu(x), gelu_tanh(x), silu(x)] {
            assert!(!value.is_finite(), "{x} {value}");
        }
    }
}
