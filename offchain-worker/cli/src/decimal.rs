//! Decimals as people write them, in thousandths: what a blob holds are integers, so that no parser rounds.

use surety_types::input::TEMPERATURE_MILLI_MAX;

/// Thousandths from text such as `0.8`.
///
/// # Errors
/// When it is no number, or finer than a thousandth.
pub fn thousandths(text: &str) -> Result<u32, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err("write a number such as 0.8".into());
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 3 {
        return Err("three decimals are as fine as it gets".into());
    }
    // Digits alone: only a number too large does not parse.
    let value = format!("{whole}{fraction:0<3}").parse();
    value.map_err(|_| "that is too large".into())
}

/// A temperature, in thousandths.
///
/// # Errors
/// When it is no number, or out of range.
pub fn temperature(text: &str) -> Result<u32, String> {
    within(text, 0, TEMPERATURE_MILLI_MAX, "must be between 0 and 10")
}

/// A share of the probability, in thousandths.
///
/// # Errors
/// When it is no number, or out of range.
pub fn top_p(text: &str) -> Result<u32, String> {
    within(text, 1, 1000, "must be between 0.001 and 1")
}

fn within(text: &str, min: u32, max: u32, otherwise: &str) -> Result<u32, String> {
    let value = thousandths(text)?;
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(otherwise.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_taken_exactly_or_not_at_all() {
        let cases = [
            ("0", 0),
            ("1", 1000),
            ("0.8", 800),
            (".95", 950),
            ("2.", 2000),
            ("0.0010", 1),
            ("10", 10_000),
        ];
        for (text, value) in cases {
            assert_eq!(thousandths(text), Ok(value), "{text}");
        }
        for text in ["", ".", "-1", "1,5", "1e3", "0.0001", "nan", "99999999999"] {
            assert!(thousandths(text).is_err(), "{text}");
        }
    }

    #[test]
    fn temperatures_and_shares_have_ranges() {
        assert_eq!(temperature("10.000"), Ok(10_000));
        assert!(temperature("10.001").is_err());
        assert_eq!(top_p("1"), Ok(1000));
        assert!(top_p("0").is_err() && top_p("1.1").is_err());
    }
}
