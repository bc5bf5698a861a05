//! Choosing the next token.

use crate::{ArithmeticError, exp, finite};

/// A weight of 1 in the integers that are summed and compared.
const UNIT: f32 = 1_073_741_824.0;

/// How a token is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Thousandths; 0 takes the best token always.
    pub temperature_milli: u32,
    /// Only so many of the best; 0 for all.
    pub top_k: u32,
    /// Only as many of the best as have so much of the probability, in thousandths; 1000 for all.
    pub top_p_milli: u32,
}

/// The token of the largest logit, the first of equal ones.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no logits, [`ArithmeticError::NotFinite`] when one is not.
pub fn greedy(logits: &[f32]) -> Result<u32, ArithmeticError> {
    check(logits)?;
    let mut best: Option<(u32, f32)> = None;
    for (token, logit) in (0u32..).zip(logits) {
        if best.is_none_or(|(_, most)| *logit > most) {
            best = Some((token, *logit));
        }
    }
    best.map(|(token, _)| token).ok_or(ArithmeticError::Shape)
}

/// Draws a token with a uniform 64-bit number. At temperature 0 it is [`greedy`], and nothing else of `how`
/// counts.
///
/// Tokens are ordered by logit, largest first, then by number. The first `top_k` are kept; their weights are
/// `floor(2^30 e^((logit - largest) * (1000 / temperature)))`; then the fewest from the front whose weights
/// make `top_p` of the sum. Of the kept ones, that token is drawn at which the running sum first exceeds
/// `floor(random * sum / 2^64)`. Everything after the exponential is integer arithmetic.
///
/// `order` is scratch, as long as the logits.
///
/// # Errors
/// [`ArithmeticError::Shape`] for no logits or a scratch of another length, [`ArithmeticError::NotFinite`]
/// when a logit is not.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "at most 2^32 weights below 2^31 are added, and products of 64 bits are in 128"
)]
pub fn sample(
    logits: &[f32],
    how: &Sampling,
    random: u64,
    order: &mut [u32],
) -> Result<u32, ArithmeticError> {
    if how.temperature_milli == 0 {
        return greedy(logits);
    }
    check(logits)?;
    let kept = best(logits, how.top_k, order)?;
    let largest = kept.first().map_or(0.0, |token| logit(logits, *token));
    let sharpness = 1000.0 / how.temperature_milli as f32;
    let weight = |token: u32| (exp((logit(logits, token) - largest) * sharpness) * UNIT) as u64;
    let total: u64 = kept.iter().map(|token| weight(*token)).sum();
    let wanted = u128::from(total) * u128::from(how.top_p_milli.min(1000));
    let mut sum = 0u64;
    let mut nucleus = 0;
    for token in kept.iter() {
        sum += weight(*token);
        nucleus += 1;
        if u128::from(sum) * 1000 >= wanted {
            break;
        }
    }
    let drawn = ((u128::from(random) * u128::from(sum)) >> 64) as u64;
    let mut running = 0u64;
    for token in kept.iter().take(nucleus) {
        running += weight(*token);
        if running > drawn {
            return Ok(*token);
        }
    }
    Err(ArithmeticError::Shape)
}

/// At least one, no more than there are numbers for, all finite.
fn check(logits: &[f32]) -> Result<(), ArithmeticError> {
    if logits.is_empty() || u32::try_from(logits.len()).is_err() {
        Err(ArithmeticError::Shape)
    } else {
        finite(logits)
    }
}

fn logit(logits: &[f32], token: u32) -> f32 {
    logits.get(token as usize).copied().unwrap_or(f32::MIN)
}

/// The tokens of the `top_k` largest logits, in order.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "at most 2^32 weights below 2^31 are added, and products of 64 bits are in 128"
)]
fn best<'a>(logits: &[f32], top_k: u32, order: &'a mut [u32]) -> Result<&'a [u32], ArithmeticError> {
    if order.len() != logits.len() {
        return Err(ArithmeticError::Shape);
    }
    for (slot, token) in order.iter_mut().zip(0..) {
        *slot = token;
    }
    // -0 and 0 are equal logits.
    let key = |token: &u32| (core::cmp::Reverse(ordered(logit(logits, *token) + 0.0)), *token);
    let keep = match top_k as usize {
        0 => order.len(),
        k => k.min(order.len()),
    };
    if keep < order.len() {
        order.select_nth_unstable_by_key(keep - 1, key);
    }
    let kept = order.get_mut(..keep).ok_or(ArithmeticError::Shape)?;
    kept.sort_unstable_by_key(key);
    Ok(kept)
}

/// An integer that orders finite numbers as they are ordered.
fn ordered(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}
