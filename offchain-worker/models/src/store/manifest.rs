//! A model's manifest as `manifest.json`.

mod exact;

use serde::{Deserialize, Serialize};
use surety_types::{
    ContentHash,
    model::{ExactForm, ModelFamily, ModelManifest, Operation, TextForm, Tier},
};

use self::exact::ExactJson;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestJson {
    name: String,
    family: Family,
    tier: TierName,
    operations: Vec<OperationName>,
    weights: String,
    weights_bytes: u64,
    text: TextJson,
    config: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exact: Option<ExactJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextJson {
    tokenizer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    template: Option<String>,
    before: Vec<u32>,
    after: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unknown: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    padding: Option<u32>,
    stop: Vec<u32>,
}

impl TextJson {
    fn new(form: &TextForm) -> Self {
        Self {
            tokenizer: format!("{:?}", form.tokenizer),
            template: form.template.map(|hash| format!("{hash:?}")),
            before: form.before.to_vec(),
            after: form.after.to_vec(),
            unknown: form.unknown,
            padding: form.padding,
            stop: form.stop.to_vec(),
        }
    }

    fn read(self) -> Result<TextForm, String> {
        let few = |ids: Vec<u32>| ids.try_into().map_err(|_| "too many special tokens");
        Ok(TextForm {
            tokenizer: hash("tokenizer", &self.tokenizer)?,
            template: self.template.map(|text| hash("template", &text)).transpose()?,
            before: few(self.before)?,
            after: few(self.after)?,
            unknown: self.unknown,
            padding: self.padding,
            stop: few(self.stop)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Family {
    Bert,
    Llama,
    Qwen3,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TierName {
    Exact,
    HardwareClass,
    Tolerance,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OperationName {
    Embed,
    Generate,
}

/// The manifest as JSON text.
pub(super) fn to_json(manifest: &ModelManifest) -> String {
    let hash = |hash: &ContentHash| format!("0x{}", hex::encode(hash));
    let json = ManifestJson {
        name: manifest.name.to_string(),
        family: match manifest.family {
            ModelFamily::Bert => Family::Bert,
            ModelFamily::Llama => Family::Llama,
            ModelFamily::Qwen3 => Family::Qwen3,
        },
        tier: match manifest.tier {
            Tier::Exact => TierName::Exact,
            Tier::HardwareClass => TierName::HardwareClass,
            Tier::Tolerance => TierName::Tolerance,
        },
        operations: manifest
            .operations
            .iter()
            .map(|operation| match operation {
                Operation::Embed => OperationName::Embed,
                Operation::Generate => OperationName::Generate,
            })
            .collect(),
        weights: hash(&manifest.weights),
        weights_bytes: manifest.weights_bytes,
        text: TextJson::new(&manifest.text),
        config: hash(&manifest.config),
        exact: manifest.exact.as_ref().map(ExactJson::from),
    };
    // Strings and integers alone: nothing that could fail to serialise.
    serde_json::to_string_pretty(&json).unwrap_or_default()
}

/// The manifest in some JSON text, or what is wrong with it.
pub(super) fn from_json(bytes: &[u8]) -> Result<ModelManifest, String> {
    let json: ManifestJson = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let operations: Vec<Operation> = json
        .operations
        .iter()
        .map(|operation| match operation {
            OperationName::Embed => Operation::Embed,
            OperationName::Generate => Operation::Generate,
        })
        .collect();
    let manifest = ModelManifest {
        name: json
            .name
            .into_bytes()
            .try_into()
            .map_err(|_| "the name is too long")?,
        family: match json.family {
            Family::Bert => ModelFamily::Bert,
            Family::Llama => ModelFamily::Llama,
            Family::Qwen3 => ModelFamily::Qwen3,
        },
        tier: match json.tier {
            TierName::Exact => Tier::Exact,
            TierName::HardwareClass => Tier::HardwareClass,
            TierName::Tolerance => Tier::Tolerance,
        },
        operations: operations.try_into().map_err(|_| "too many operations")?,
        weights: hash("weights", &json.weights)?,
        weights_bytes: json.weights_bytes,
        text: json.text.read()?,
        config: hash("config", &json.config)?,
        exact: json.exact.map(ExactForm::try_from).transpose()?,
    };
    if let Some(exact) = &manifest.exact {
        let checked = exact.architecture.check(manifest.family);
        checked.map_err(|error| format!("the architecture cannot be registered: {error}"))?;
        let vocabulary = exact.architecture.vocabulary;
        if let Some(id) = manifest.text.ids().find(|id| *id >= vocabulary) {
            return Err(format!("there is no token {id} in a vocabulary of {vocabulary}"));
        }
    }
    Ok(manifest)
}

fn hash(field: &str, text: &str) -> Result<ContentHash, String> {
    let mut bytes = [0; 32];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_slice(digits, &mut bytes)
        .map_err(|_| format!("`{field}` is no hash of 32 bytes in hex"))?;
    Ok(ContentHash::from(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use surety_types::model::{Architecture, Pooling, Precision};

    use super::*;
    use crate::known;

    #[test]
    fn a_manifest_reads_back_as_written() {
        let mut manifest = known::all_minilm_l6_v2().manifest;
        for tier in [Tier::Exact, Tier::HardwareClass, Tier::Tolerance] {
            manifest.tier = tier;
            manifest.exact = known::all_minilm_l6_v2_exact()
                .manifest
                .exact
                .filter(|_| tier == Tier::Exact);
            let read = from_json(to_json(&manifest).as_bytes()).unwrap();
            assert_eq!(read, manifest);
            assert_eq!(read.id(), manifest.id());
        }
    }

    #[test]
    fn every_family_reads_back_as_written() {
        let mut manifest = known::all_minilm_l6_v2().manifest;
        for family in ModelFamily::ALL {
            manifest.family = family;
            assert_eq!(from_json(to_json(&manifest).as_bytes()).unwrap(), manifest);
        }
        assert!(to_json(&manifest).contains("\"family\": \"qwen3\""));
    }

    #[test]
    fn what_is_wrong_with_a_manifest_is_said() {
        let good = to_json(&known::all_minilm_l6_v2().manifest);
        let wrong = |from: &str, to: &str| from_json(good.replace(from, to).as_bytes()).unwrap_err();
        assert!(wrong("\"bert\"", "\"gpt\"").contains("gpt"));
        assert!(wrong("0xa22e", "0xa2").contains("weights"));
        assert!(wrong("\"name\"", "\"nom\"").contains("nom"));
        assert!(wrong("all-MiniLM", &"x".repeat(65)).contains("name"));
        assert!(from_json(&good.as_bytes()[..40]).is_err());
    }

    #[test]
    fn what_is_wrong_with_an_exact_form_is_said() {
        let good = to_json(&known::all_minilm_l6_v2_exact().manifest);
        let wrong = |from: &str, to: &str| from_json(good.replace(from, to).as_bytes()).unwrap_err();
        assert!(from_json(good.as_bytes()).is_ok());
        assert!(wrong("\"opset\": 1", "\"opset\": 2").contains("later version"));
        assert!(wrong("\"weight_root\": \"0x", "\"weight_root\": \"0xg").contains("weight_root"));
        assert!(wrong("\"gelu\"", "\"relu\"").contains("relu"));
        assert!(wrong("\"kv_heads\"", "\"keys\"").contains("keys"));
        assert!(wrong("\"width\": 384", "\"width\": 4294967296").contains("u32"));
        assert!(wrong("\"int12\"", "\"int11\"").contains("int11"));
        assert!(wrong("\"mean\"", "\"max\"").contains("max"));
    }

    #[test]
    fn a_manifest_that_no_chain_would_register_is_not_read() {
        let good = to_json(&known::all_minilm_l6_v2_exact().manifest);
        let wrong = |from: &str, to: &str| from_json(good.replace(from, to).as_bytes()).unwrap_err();
        for (from, to, said) in [
            (
                "\"layers\": 6",
                "\"layers\": 150994656",
                "layers must not be more than 160",
            ),
            ("\"layers\": 6", "\"layers\": 0", "a dimension is 0"),
            ("\"heads\": 12", "\"heads\": 7", "the heads must be"),
            (
                "\"inner\": 1536",
                "\"inner\": 4294967295",
                "the inner width must not be more than",
            ),
            ("\"gelu\"", "\"swi-glu\"", "activation"),
        ] {
            let error = wrong(from, to);
            assert!(
                error.contains("cannot be registered") && error.contains(said),
                "{error}"
            );
        }
    }

    #[test]
    fn an_exact_form_that_says_neither_precision_nor_pooling_is_int8_and_the_mean() {
        let mut manifest = known::all_minilm_l6_v2_exact().manifest;
        manifest.exact.as_mut().unwrap().architecture.pooling = Pooling::First;
        let good = to_json(&manifest);
        assert_eq!(from_json(good.as_bytes()).unwrap(), manifest);
        let mut older: serde_json::Value = serde_json::from_str(&good).unwrap();
        let architecture = older["exact"]["architecture"].as_object_mut().unwrap();
        assert_eq!(architecture.remove("precision").unwrap(), "int12");
        assert_eq!(architecture.remove("pooling").unwrap(), "first");
        let form = from_json(older.to_string().as_bytes()).unwrap().exact.unwrap();
        let Architecture {
            precision, pooling, ..
        } = form.architecture;
        assert_eq!((precision, pooling), (Precision::Int8, Pooling::Mean));
    }
}
