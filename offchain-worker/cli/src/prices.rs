//! What a provider asks for one unit of work, by model and operation.

use std::{collections::BTreeMap, str::FromStr};

use surety_types::model::Operation;

use crate::{SURE, amount::Amount};

/// What is asked when nothing was said.
fn default_price(operation: Operation) -> Amount {
    match operation {
        // A line is some tens of tokens.
        Operation::Embed => Amount(SURE / 1000),
        Operation::Generate => Amount(SURE / 10_000),
    }
}

/// Prices of a unit. The most special one counts: that of a model's operation, of an operation, of anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    any: Option<Amount>,
    /// By `operation` and by `model/operation`.
    named: BTreeMap<String, Amount>,
}

impl Prices {
    /// Checks what was written: `any` for everything, `named` by `operation` or `model/operation`.
    ///
    /// # Errors
    /// All that is wrong with it, as (setting, reason).
    pub fn new(any: Option<Amount>, named: BTreeMap<String, Amount>) -> Result<Self, Vec<(String, String)>> {
        let mut problems = Vec::new();
        let mut check = |name: &str, price: Amount| {
            if price.0 == 0 {
                problems.push((name.to_owned(), "must be more than nothing".to_owned()));
            }
        };
        any.into_iter().for_each(|price| check("price_per_unit", price));
        for (name, price) in &named {
            check(&format!("prices.{name}"), *price);
        }
        for name in named.keys() {
            let operation = name.rsplit('/').next().unwrap_or(name);
            let known = Operation::ALL.map(Operation::name);
            if !known.contains(&operation) {
                let text = format!("there is no operation {operation:?}, only {}", known.join(", "));
                problems.push((format!("prices.{name}"), text));
            }
        }
        if problems.is_empty() {
            Ok(Self { any, named })
        } else {
            Err(problems)
        }
    }

    /// What a unit of this model's operation costs.
    pub fn per_unit(&self, model: &str, operation: Operation) -> Amount {
        let name = operation.name();
        let special = self.named.get(&format!("{model}/{name}"));
        let price = special.or_else(|| self.named.get(name)).copied();
        price.or(self.any).unwrap_or_else(|| default_price(operation))
    }
}

/// A price as it stands after `--price`: `AMOUNT`, `OPERATION=AMOUNT` or `MODEL/OPERATION=AMOUNT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceArg {
    /// What it is for; nothing: everything.
    pub name: Option<String>,
    /// For one unit.
    pub price: Amount,
}

impl FromStr for PriceArg {
    type Err = crate::amount::AmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, price) = match text.split_once('=') {
            Some((name, price)) => (Some(name.trim().to_owned()), price),
            None => (None, text),
        };
        Ok(Self {
            name,
            price: price.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_most_special_price_counts() {
        let named = [("generate", 2), ("mine/generate", 3), ("mine/embed", 4)];
        let named = named.map(|(name, price)| (name.to_owned(), Amount(price)));
        let prices = Prices::new(Some(Amount(1)), named.into()).unwrap();
        assert_eq!(prices.per_unit("mine", Operation::Generate), Amount(3));
        assert_eq!(prices.per_unit("mine", Operation::Embed), Amount(4));
        assert_eq!(prices.per_unit("other", Operation::Generate), Amount(2));
        assert_eq!(prices.per_unit("other", Operation::Embed), Amount(1));
        let silent = Prices::default();
        assert!(silent.per_unit("m", Operation::Generate) < silent.per_unit("m", Operation::Embed));
    }

    #[test]
    fn prices_of_nothing_and_for_nothing_known_are_refused() {
        let named = [("translate", 1), ("m/embed", 0)];
        let named = named.map(|(name, price)| (name.to_owned(), Amount(price)));
        let problems = Prices::new(Some(Amount(0)), named.into()).unwrap_err();
        let names: Vec<&str> = problems.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["price_per_unit", "prices.m/embed", "prices.translate"]);
    }

    #[test]
    fn a_flag_names_what_its_price_is_for() {
        let parse = |text: &str| text.parse::<PriceArg>();
        let plain = PriceArg {
            name: None,
            price: Amount(SURE),
        };
        assert_eq!(parse("1 SURE"), Ok(plain));
        let named = PriceArg {
            name: Some("m/generate".into()),
            price: Amount(7),
        };
        assert_eq!(parse("m/generate=7 planck"), Ok(named));
        assert!(parse("generate=").is_err() && parse("=much").is_err());
    }
}
