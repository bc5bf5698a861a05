//! What is on top of an architecture, and whether its weights are as their authors trained them.

use serde::Deserialize;
use serde_json::Value;
use surety_types::model::ModelFamily;

use super::{json, refused};
use crate::error::ModelError;

/// Encoders whose states are the same whatever is on top of them. One that gives labels or scores, such as a
/// reranker, would be another model without its head.
const ENCODERS: [&str; 3] = ["BertModel", "BertForMaskedLM", "BertForPreTraining"];

/// What decoders of which the next token is asked are called, behind the name of their architecture.
const DECODER: &str = "ForCausalLM";

#[derive(Deserialize)]
struct Json {
    architectures: Option<Vec<String>>,
    quantization_config: Option<Value>,
}

/// Refuses what would be converted to something else than its authors mean.
///
/// # Errors
/// [`ModelError::Config`].
pub(super) fn check(bytes: &[u8], family: ModelFamily) -> Result<(), ModelError> {
    let json: Json = json(bytes)?;
    if json.quantization_config.is_some() {
        return refused(
            "there is a quantization_config: convert the weights that these were quantized from, as their authors \
             published them",
        );
    }
    let (is_computed, known): (fn(&str) -> bool, _) = match family {
        ModelFamily::Bert => (|name| ENCODERS.contains(&name), ENCODERS.join(", ")),
        ModelFamily::Llama | ModelFamily::Qwen3 => (|name| name.ends_with(DECODER), format!("one {DECODER}")),
    };
    let mut named = json.architectures.iter().flatten();
    match named.find(|name| !is_computed(name)) {
        Some(name) => refused(format!(
            "architectures has {name:?}, whose outputs are not computed here: only those of {known}"
        )),
        None => Ok(()),
    }
}
