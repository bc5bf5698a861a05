//! How the authors of a sentence encoder make a vector of its states, where their files say so.

use serde::Deserialize;
use serde_json::{Map, Value};
use surety_types::model::Pooling;

use crate::error::ModelError;

/// Lists the modules of a sentence encoder.
pub const MODULES: &str = "modules.json";
/// Says how it pools.
pub const POOLING_CONFIG: &str = "1_Pooling/config.json";

/// The folder of [`POOLING_CONFIG`].
const POOLING_FOLDER: &str = "1_Pooling";
/// The modules of an encoder whose vectors are those that are computed here.
const KINDS: [&str; 3] = ["Transformer", "Pooling", "Normalize"];

/// What was written before there was a field of this name.
const MODE: &str = "pooling_mode";
const MODE_PREFIX: &str = "pooling_mode_";

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

impl Module {
    /// Its kind without the packages that it is in.
    fn kind(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or_default()
    }
}

fn refused<T>(reason: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Pooling(reason.into()))
}

/// What `modules.json` and `1_Pooling/config.json` say; nothing where there are no such files.
///
/// # Errors
/// [`ModelError::Pooling`] where they say of an encoder that its vectors are made in another way than is
/// known here.
pub fn pooling(modules: Option<&[u8]>, config: Option<&[u8]>) -> Result<Option<Pooling>, ModelError> {
    let Some(modules) = modules else {
        return match config {
            // What the authors' code makes of it is the mean, whatever it says.
            Some(_) => refused(format!("{POOLING_CONFIG} is there without {MODULES}")),
            None => Ok(None),
        };
    };
    let modules: Vec<Module> = read(MODULES, modules)?;
    let kinds: Vec<&str> = modules.iter().map(Module::kind).collect();
    if let Some(foreign) = kinds.iter().find(|kind| !KINDS.contains(kind)) {
        return refused(format!(
            "{MODULES} has a module {foreign}, which is not supported"
        ));
    }
    if !kinds.contains(&"Normalize") {
        return refused(format!(
            "{MODULES} has no module Normalize: vectors of other lengths than 1 are not supported"
        ));
    }
    if kinds != KINDS {
        return refused(format!(
            "{MODULES} has the modules {}, but only {} are supported",
            kinds.join(", "),
            KINDS.join(", ")
        ));
    }
    for (module, expected) in modules.iter().zip(["", POOLING_FOLDER]) {
        if module.path != expected {
            return refused(format!(
                "{MODULES} has a module in {:?}, not in {expected:?}",
                module.path
            ));
        }
    }
    match config {
        Some(config) => mode(config).map(Some),
        None => refused(format!("{POOLING_CONFIG} is missing")),
    }
}

fn mode(config: &[u8]) -> Result<Pooling, ModelError> {
    let config: Map<String, Value> = read(POOLING_CONFIG, config)?;
    let modes: Vec<&str> = match config.get(MODE) {
        Some(Value::String(mode)) => vec![mode],
        Some(Value::Array(modes)) => modes.iter().map(|mode| mode.as_str().unwrap_or("?")).collect(),
        Some(_) => return refused(format!("{POOLING_CONFIG} has a {MODE} that is no name")),
        None => config
            .iter()
            .filter(|(_, is_used)| **is_used == Value::Bool(true))
            .filter_map(|(name, _)| name.strip_prefix(MODE_PREFIX))
            .collect(),
    };
    match modes[..] {
        [] | ["mean" | "mean_tokens"] => Ok(Pooling::Mean),
        ["cls" | "cls_token"] => Ok(Pooling::First),
        _ => refused(format!(
            "{POOLING_CONFIG} pools by {}, but only the mean and the first token (cls) are supported",
            modes.join(" and ")
        )),
    }
}

fn read<'j, T: Deserialize<'j>>(file: &str, bytes: &'j [u8]) -> Result<T, ModelError> {
    serde_json::from_slice(bytes).map_err(|error| ModelError::Pooling(format!("{file}: {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn modules(kinds: &[&str]) -> Value {
        let module = |(number, kind): (usize, &&str)| {
            json!({
                "idx": number, "name": number.to_string(), "type": format!("sentence_transformers.models.{kind}"),
                "path": if number == 0 { String::new() } else { format!("{number}_{kind}") },
            })
        };
        kinds.iter().enumerate().map(module).collect()
    }

    fn said(modules: &Value, config: &Value) -> Result<Option<Pooling>, ModelError> {
        let [modules, config] = [modules, config].map(|json| json.to_string().into_bytes());
        pooling(Some(&modules), Some(&config))
    }

    #[test]
    fn the_mean_and_the_first_token_are_read_in_either_form() {
        for (config, expected) in [
            (json!({"pooling_mode": "mean"}), Pooling::Mean),
            (
                json!({"pooling_mode": "cls", "include_prompt": true}),
                Pooling::First,
            ),
            (json!({"pooling_mode": ["cls"]}), Pooling::First),
            (
                json!({"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}),
                Pooling::Mean,
            ),
            (
                json!({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": false}),
                Pooling::First,
            ),
            // What the authors' code takes then.
            (json!({"word_embedding_dimension": 384}), Pooling::Mean),
        ] {
            assert_eq!(said(&modules(&KINDS), &config), Ok(Some(expected)), "{config}");
        }
        assert_eq!(pooling(None, None), Ok(None));
    }

    #[test]
    fn every_other_way_to_a_vector_is_refused_by_its_name() {
        let mean = json!({"pooling_mode": "mean"});
        let with = |config: Value| said(&modules(&KINDS), &config);
        for (refused, name) in [
            (with(json!({"pooling_mode": "max"})), "by max"),
            (with(json!({"pooling_mode": "lasttoken"})), "by lasttoken"),
            (with(json!({"pooling_mode": ["cls", "mean"]})), "by cls and mean"),
            (
                with(json!({"pooling_mode_weightedmean_tokens": true})),
                "by weightedmean_tokens",
            ),
            (
                with(json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})),
                "by cls_token and mean_tokens",
            ),
            (with(json!({"pooling_mode": 3})), "no name"),
            (with(json!([])), POOLING_CONFIG),
            (said(&modules(&KINDS[..2]), &mean), "no module Normalize"),
            (
                said(&modules(&["Transformer", "Pooling", "Dense", "Normalize"]), &mean),
                "module Dense",
            ),
            (
                said(&modules(&["Pooling", "Transformer", "Normalize"]), &mean),
                "the modules Pooling, Transformer",
            ),
            (said(&json!({}), &mean), MODULES),
            (pooling(None, Some(b"{}")), "without modules.json"),
            (
                pooling(Some(modules(&KINDS).to_string().as_bytes()), None),
                "is missing",
            ),
        ] {
            let error = refused.unwrap_err();
            assert!(
                matches!(&error, ModelError::Pooling(reason) if reason.contains(name)),
                "{name}: {error}"
            );
        }
        let mut elsewhere = modules(&KINDS);
        elsewhere[0]["path"] = "0_Transformer".into();
        assert!(
            said(&elsewhere, &mean)
                .unwrap_err()
                .to_string()
                .contains("0_Transformer")
        );
    }
}
