//! The part of `manifest.json` that models of the exact tier have.

use serde::{Deserialize, Serialize};
use surety_types::model::{Activation, Architecture, ExactForm, Opset, Pooling, Precision, Smoothed};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExactJson {
    /// Manifests that were written before it was said are of the first.
    #[serde(default = "first_opset")]
    opset: u16,
    weight_root: String,
    architecture: ArchitectureJson,
}

const fn first_opset() -> u16 {
    1
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchitectureJson {
    vocabulary: u32,
    width: u32,
    layers: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    inner: u32,
    positions: u32,
    /// As an integer: no parser's rounding is part of a model's id.
    epsilon_bits: u32,
    activation: ActivationName,
    smoothed: SmoothedJson,
    tied: bool,
    /// Manifests that were written before there were two do not say it.
    #[serde(default)]
    precision: PrecisionName,
    /// Likewise.
    #[serde(default)]
    pooling: PoolingName,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ActivationName {
    Gelu,
    GeluTanh,
    SwiGlu,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PrecisionName {
    #[default]
    Int8,
    Int12,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PoolingName {
    #[default]
    Mean,
    First,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SmoothedJson {
    attention: bool,
    output: bool,
    inner: bool,
    down: bool,
}

impl From<&ExactForm> for ExactJson {
    fn from(form: &ExactForm) -> Self {
        let Smoothed {
            attention,
            output,
            inner,
            down,
        } = form.architecture.smoothed;
        let architecture = form.architecture.clone();
        Self {
            opset: match form.opset {
                Opset::V1 => 1,
            },
            weight_root: format!("0x{}", hex::encode(form.weight_root)),
            architecture: ArchitectureJson {
                vocabulary: architecture.vocabulary,
                width: architecture.width,
                layers: architecture.layers,
                heads: architecture.heads,
                kv_heads: architecture.kv_heads,
                head_dim: architecture.head_dim,
                inner: architecture.inner,
                positions: architecture.positions,
                epsilon_bits: architecture.epsilon,
                activation: match architecture.activation {
                    Activation::Gelu => ActivationName::Gelu,
                    Activation::GeluTanh => ActivationName::GeluTanh,
                    Activation::SwiGlu => ActivationName::SwiGlu,
                },
                smoothed: SmoothedJson {
                    attention,
                    output,
                    inner,
                    down,
                },
                tied: architecture.tied,
                precision: match architecture.precision {
                    Precision::Int8 => PrecisionName::Int8,
                    Precision::Int12 => PrecisionName::Int12,
                },
                pooling: match architecture.pooling {
                    Pooling::Mean => PoolingName::Mean,
                    Pooling::First => PoolingName::First,
                },
            },
        }
    }
}

impl TryFrom<ExactJson> for ExactForm {
    type Error = String;

    fn try_from(json: ExactJson) -> Result<Self, String> {
        let SmoothedJson {
            attention,
            output,
            inner,
            down,
        } = json.architecture.smoothed;
        let architecture = json.architecture;
        Ok(Self {
            opset: match json.opset {
                1 => Opset::V1,
                other => {
                    return Err(format!(
                        "opset {other} is not known here: it takes a later version of surety"
                    ));
                }
            },
            weight_root: super::hash("weight_root", &json.weight_root)?,
            architecture: Architecture {
                vocabulary: architecture.vocabulary,
                width: architecture.width,
                layers: architecture.layers,
                heads: architecture.heads,
                kv_heads: architecture.kv_heads,
                head_dim: architecture.head_dim,
                inner: architecture.inner,
                positions: architecture.positions,
                epsilon: architecture.epsilon_bits,
                activation: match architecture.activation {
                    ActivationName::Gelu => Activation::Gelu,
                    ActivationName::GeluTanh => Activation::GeluTanh,
                    ActivationName::SwiGlu => Activation::SwiGlu,
                },
                smoothed: Smoothed {
                    attention,
                    output,
                    inner,
                    down,
                },
                tied: architecture.tied,
                precision: match architecture.precision {
                    PrecisionName::Int8 => Precision::Int8,
                    PrecisionName::Int12 => Precision::Int12,
                },
                pooling: match architecture.pooling {
                    PoolingName::Mean => Pooling::Mean,
                    PoolingName::First => Pooling::First,
                },
            },
        })
    }
}
