//! Amounts of SURE as people write them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use surety_chain_client::Balance;

/// Decimals of SURE.
const DECIMALS: u32 = 12;

/// Plancks in one SURE.
pub const SURE: Balance = 10u128.pow(DECIMALS);

/// An amount. Reads `12.5 SURE`, `12.5` (SURE as well) and `7 planck`; writes `12.5 SURE`. In JSON and
/// configuration files it is such a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(pub Balance);

/// Why a text is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not a number.
    #[error("{0:?} is not an amount; write for example \"12.5 SURE\" or \"7 planck\"")]
    NotANumber(String),
    /// Finer than one planck.
    #[error(
        "{0:?} has more than {DECIMALS} decimals; the smallest amount is 0.000000000001 SURE, one planck"
    )]
    TooFine(String),
    /// More than can be counted.
    #[error("{0:?} is more than there can be")]
    TooLarge(String),
    /// Another unit.
    #[error("unknown unit {0:?}; amounts are in SURE or planck")]
    UnknownUnit(String),
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        // Underscores and spaces may group digits.
        let number: String = number.chars().filter(|c| !matches!(c, '_' | ' ')).collect();
        let decimals = match unit.to_ascii_lowercase().as_str() {
            "" | "sure" => DECIMALS,
            "planck" | "plancks" => 0,
            _ => return Err(AmountError::UnknownUnit(unit.into())),
        };
        parse(&number, decimals).map_err(|make| make(text.into()))
    }
}

fn parse(number: &str, decimals: u32) -> Result<Amount, fn(String) -> AmountError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return Err(AmountError::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = decimals
        .checked_sub(fraction.len() as u32)
        .ok_or(AmountError::TooFine as fn(String) -> AmountError)?;
    let value = |part: &str| match part {
        "" => Ok(0),
        part => part
            .parse::<Balance>()
            .map_err(|_| AmountError::TooLarge as fn(String) -> AmountError),
    };
    let fraction = value(fraction)?.checked_mul(10u128.pow(missing));
    value(whole)?
        .checked_mul(10u128.pow(decimals))
        .and_then(|whole| whole.checked_add(fraction?))
        .map(Amount)
        .ok_or(AmountError::TooLarge)
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / SURE, self.0 % SURE);
        if fraction == 0 {
            return write!(f, "{whole} SURE");
        }
        let digits = format!("{fraction:0width$}", width = DECIMALS as usize);
        write!(f, "{whole}.{} SURE", digits.trim_end_matches('0'))
    }
}

/// Plancks for JSON: as text, since they may be more than the 2^53 that a number holds there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plancks(pub Balance);

impl Serialize for Plancks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an amount such as \"12.5 SURE\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Amount, E> {
                text.parse().map_err(E::custom)
            }

            // Environment variables and TOML may deliver a bare number.
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Amount, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Amount, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Amount, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        let cases = [
            ("12.5 SURE", 12 * SURE + SURE / 2),
            ("12.5", 12 * SURE + SURE / 2),
            (" 0.000000000001 sure ", 1),
            (".5", SURE / 2),
            ("1_000SURE", 1000 * SURE),
            ("7 planck", 7),
            ("1.50000000000000", SURE + SURE / 2),
        ];
        for (text, plancks) in cases {
            assert_eq!(text.parse::<Amount>(), Ok(Amount(plancks)), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_said_why() {
        let fault = |text: &str| text.parse::<Amount>().unwrap_err();
        assert!(matches!(fault(""), AmountError::NotANumber(_)));
        assert!(matches!(fault("."), AmountError::NotANumber(_)));
        assert!(matches!(fault("-1"), AmountError::NotANumber(_)));
        assert!(matches!(fault("1,5 SURE"), AmountError::NotANumber(_)));
        assert!(matches!(fault("1e3"), AmountError::UnknownUnit(_)));
        assert!(matches!(fault("3 DOT"), AmountError::UnknownUnit(_)));
        assert!(matches!(fault("0.0000000000001"), AmountError::TooFine(_)));
        assert!(matches!(fault("0.5 planck"), AmountError::TooFine(_)));
        assert!(matches!(fault(&"9".repeat(40)), AmountError::TooLarge(_)));
        assert!(matches!(
            fault("340282366920938463463374608 SURE"),
            AmountError::TooLarge(_)
        ));
    }

    #[test]
    fn what_is_written_reads_as_the_same() {
        for plancks in [0, 1, SURE, SURE / 100, 12 * SURE + 5, u128::MAX] {
            let text = Amount(plancks).to_string();
            assert_eq!(text.parse::<Amount>(), Ok(Amount(plancks)), "{text}");
        }
        assert_eq!(Amount(SURE / 100).to_string(), "0.01 SURE");
    }
}
