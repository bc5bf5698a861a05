//! The tokens that end a generation.

use serde::Deserialize;
use surety_types::model::SpecialIds;

use super::{json, refused};
use crate::error::ModelError;

/// Where published decoders say how they are sampled, and what ends that.
pub const GENERATION_CONFIG: &str = "generation_config.json";

#[derive(Deserialize)]
struct Config {
    vocab_size: u32,
    eos_token_id: Option<EndTokens>,
}

#[derive(Deserialize)]
struct GenerationConfig {
    eos_token_id: Option<EndTokens>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum EndTokens {
    One(u32),
    Several(Vec<u32>),
}

/// Those that `generation_config.json` lists, as its authors' code goes by; where it lists none, those of
/// `config.json`.
///
/// # Errors
/// [`ModelError::Config`].
pub fn stop_tokens(config: &[u8], generation: Option<&[u8]>) -> Result<SpecialIds, ModelError> {
    let config: Config = json(config)?;
    let generation: Option<GenerationConfig> = match generation {
        Some(bytes) => serde_json::from_slice(bytes)
            .map_err(|error| ModelError::Config(format!("{GENERATION_CONFIG}: {error}")))?,
        None => None,
    };
    let stated = generation.and_then(|generation| generation.eos_token_id);
    let tokens = match stated.or(config.eos_token_id) {
        None => Vec::new(),
        Some(EndTokens::One(token)) => vec![token],
        Some(EndTokens::Several(tokens)) => tokens,
    };
    let are_known = tokens.iter().all(|token| *token < config.vocab_size);
    match SpecialIds::try_from(tokens) {
        Ok(tokens) if are_known => Ok(tokens),
        _ => refused("eos_token_id is not a few tokens of the vocabulary"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_ends_a_generation_is_what_its_own_configuration_lists() {
        let stop = |config: &str, generation: Option<&str>| {
            stop_tokens(config.as_bytes(), generation.map(str::as_bytes)).map(|stop| stop.to_vec())
        };
        let config = r#"{"vocab_size": 10, "eos_token_id": 2}"#;
        for (generation, expected) in [
            (None, vec![2]),
            (Some("{}"), vec![2]),
            (Some(r#"{"eos_token_id": null}"#), vec![2]),
            (Some(r#"{"eos_token_id": 7}"#), vec![7]),
            (Some(r#"{"eos_token_id": [7, 2]}"#), vec![7, 2]),
        ] {
            assert_eq!(stop(config, generation), Ok(expected), "{generation:?}");
        }
        assert_eq!(stop(r#"{"vocab_size": 10}"#, None), Ok(vec![]));
        for generation in ["[", r#"{"eos_token_id": 10}"#, r#"{"eos_token_id": -1}"#] {
            let refused = stop(config, Some(generation));
            assert!(matches!(refused, Err(ModelError::Config(_))), "{generation}");
        }
    }
}
