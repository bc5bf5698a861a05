//! Sums as decimal text: JSON's numbers lose digits in many readers.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub fn serialize<S: Serializer>(amount: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(amount)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}
