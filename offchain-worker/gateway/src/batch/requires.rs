//! What a batch asks of the providers of its tasks: entries of its metadata, which every client of OpenAI's
//! API can set.

use std::{collections::BTreeMap, num::NonZeroU32};

use surety_types::{
    region::Region,
    speed::{Requirements, Tier},
};

use crate::error::ApiError;

/// Entries that begin like this are for the gateway; all others are their owner's.
const PREFIX: &str = "surety_";
const MIN_TIER: &str = "surety_min_tier";
const MIN_MEMORY: &str = "surety_min_memory_mib";
const REGION: &str = "surety_region";

/// What the chain will hold its bidders to. An entry that says nothing is refused: whoever wrote it believes
/// that it does.
pub(super) fn requirements(metadata: &BTreeMap<String, String>) -> Result<Requirements, ApiError> {
    let mut asked = Requirements::default();
    for (name, value) in metadata.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let refused = |told: &str| {
            let name = format!("metadata.{name}");
            let message = format!("{name}: {told}");
            ApiError::invalid(name, message)
        };
        match name.as_str() {
            MIN_TIER => asked.tier = Some(Tier::from_letter(value).ok_or_else(|| refused("say A, B or C"))?),
            MIN_MEMORY => {
                // With a sign it would be read, too.
                let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
                let mib = value.parse::<NonZeroU32>().ok().filter(|_| is_plain);
                asked.memory_mib = mib
                    .ok_or_else(|| refused("write a whole number of MiB, from 1 on, such as 24576"))?
                    .get();
            }
            REGION => {
                let region = value.parse::<Region>();
                asked.region = Some(region.map_err(|error| refused(&error.to_string()))?);
            }
            _ => {
                let told = format!(
                    "of providers can be asked {MIN_TIER}, {MIN_MEMORY} and {REGION}, and nothing else"
                );
                return Err(refused(&told));
            }
        }
    }
    Ok(asked)
}

/// As a task keeps it.
pub(super) mod kept {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{Requirements, Tier};

    #[derive(Serialize, Deserialize)]
    struct Kept {
        tier: Option<String>,
        memory_mib: u32,
        region: Option<String>,
    }

    pub(crate) fn serialize<S: Serializer>(asked: &Requirements, to: S) -> Result<S::Ok, S::Error> {
        let kept = Kept {
            tier: asked.tier.map(|tier| tier.letter().to_owned()),
            memory_mib: asked.memory_mib,
            region: asked.region.map(|region| region.to_string()),
        };
        kept.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Requirements, D::Error> {
        let kept = Kept::deserialize(from)?;
        let read =
            |text: String| Tier::from_letter(&text).ok_or_else(|| D::Error::custom("a tier is A, B or C"));
        Ok(Requirements {
            tier: kept.tier.map(read).transpose()?,
            memory_mib: kept.memory_mib,
            region: match kept.region {
                Some(region) => Some(region.parse().map_err(D::Error::custom)?),
                None => None,
            },
        })
    }
}
