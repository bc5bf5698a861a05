//! `config.json`, within bounds.

use candle_transformers::models::bert::Config;
use surety_models::ModelError;

/// Bounds well above any published encoder of this family: they keep products of dimensions from overflowing
/// and a hostile file from asking for the machine's memory.
const DIMENSIONS_MAX: [(&str, usize); 7] = [
    ("vocab_size", 4_000_000),
    ("hidden_size", 16_384),
    ("num_hidden_layers", 256),
    ("num_attention_heads", 256),
    ("intermediate_size", 65_536),
    ("max_position_embeddings", 65_536),
    ("type_vocab_size", 256),
];

/// Reads and checks a configuration.
pub(super) fn parse(json: &[u8]) -> Result<Config, ModelError> {
    let config: Config =
        serde_json::from_slice(json).map_err(|error| ModelError::Config(error.to_string()))?;
    let values = [
        config.vocab_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.num_attention_heads,
        config.intermediate_size,
        config.max_position_embeddings,
        config.type_vocab_size,
    ];
    for ((field, max), value) in DIMENSIONS_MAX.into_iter().zip(values) {
        if value == 0 || value > max {
            return Err(ModelError::Dimension { field, value, max });
        }
    }
    if config
        .model_type
        .as_deref()
        .is_some_and(|family| family != "bert")
    {
        return Err(ModelError::Config("model_type is not bert".into()));
    }
    if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
        return Err(ModelError::Config(
            "hidden_size is no multiple of num_attention_heads".into(),
        ));
    }
    // Written so that NaN fails too.
    if !(config.layer_norm_eps > 0.0 && config.layer_norm_eps < 1.0) {
        return Err(ModelError::Config("layer_norm_eps is not between 0 and 1".into()));
    }
    Ok(config)
}
