//! Settings as written: in flags, environment and file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::amount::Amount;

/// Settings as written. Every one may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawConfig {
    /// See [`super::Config::home`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// See [`super::Config::rpc`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rpc: Option<OneOrMore>,
    /// See [`super::Config::key_file`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// See [`super::Config::log`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// See [`super::Config::faucet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faucet: Option<String>,
    /// See [`super::ProviderConfig`].
    #[serde(skip_serializing_if = "is_default")]
    pub provider: RawProvider,
    /// See [`super::Config::calls`].
    #[serde(skip_serializing_if = "is_default")]
    pub calls: RawCalls,
    /// See [`super::Config::verifier`].
    #[serde(skip_serializing_if = "is_default")]
    pub verifier: RawWork,
    /// See [`super::DataConfig`].
    #[serde(skip_serializing_if = "is_default")]
    pub task: RawTask,
    /// See [`surety_network::StoreLimits`].
    #[serde(skip_serializing_if = "is_default")]
    pub storage: RawStorage,
}

/// A text, or a list of texts; a text may be a list with commas, as the environment has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMore {
    /// `"a"` or `"a,b"`.
    One(String),
    /// `["a", "b"]`.
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn texts(self) -> Vec<String> {
        let lists = match self {
            Self::One(text) => vec![text],
            Self::More(texts) => texts,
        };
        let texts = lists.iter().flat_map(|list| list.split(','));
        let texts = texts.map(|text| text.trim().to_owned());
        texts.filter(|text| !text.is_empty()).collect()
    }
}

/// The section `[provider]`. It has all of [`RawWork`] by name: serde refuses unknown settings only where
/// nothing is flattened into them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawProvider {
    /// See [`super::WorkConfig::stash`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stash: Option<String>,
    /// See [`super::DataConfig::listen`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<String>>,
    /// See [`super::DataConfig::external`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<Vec<String>>,
    /// See [`super::WorkConfig::models`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// Of everything that `prices` does not name; see [`super::ProviderConfig::prices`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_per_unit: Option<Amount>,
    /// By `operation` or `model/operation`; see [`super::ProviderConfig::prices`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Amount>,
    /// See [`super::WorkConfig::threads`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// See [`super::WorkConfig::device`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Memory of the device, in MiB; see [`super::WorkConfig::device_memory_bytes_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_memory_mib_max: Option<u64>,
    /// See [`super::WorkConfig::device_graphs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_graphs: Option<bool>,
    /// See [`super::WorkConfig::metrics_listen`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<String>,
    /// See [`super::WorkConfig::tip_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip_max: Option<Amount>,
    /// See [`super::ProviderConfig::units_per_second`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units_per_second: Option<u32>,
    /// See [`super::ProviderConfig::tasks_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_max: Option<usize>,
    /// See [`CallsConfig::device_serves`](surety_provider_calls::CallsConfig::device_serves).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_serves: Option<bool>,
    /// See [`super::ProviderConfig::benchmark`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<String>,
    /// See [`super::ProviderConfig::region`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl RawProvider {
    /// What it has in common with a verifier.
    pub(super) fn work(&self) -> RawWork {
        RawWork {
            stash: self.stash.clone(),
            models: self.models.clone(),
            threads: self.threads,
            device: self.device.clone(),
            device_memory_mib_max: self.device_memory_mib_max,
            device_graphs: self.device_graphs,
            metrics_listen: self.metrics_listen.clone(),
            tip_max: self.tip_max,
        }
    }
}

/// The section `[calls]`: answers over payment channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawCalls {
    /// Whether any are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// See [`surety_provider_calls::CallsConfig::open_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_max: Option<usize>,
    /// See [`surety_provider_calls::CallsConfig::chunk_tokens_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_tokens_max: Option<u32>,
    /// Memory for keys and values of each model, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib_max: Option<u64>,
    /// See [`surety_provider_calls::CallsConfig::batch_blocks`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_blocks: Option<u32>,
    /// See [`surety_provider_calls::CallsConfig::redeem_min`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redeem_min: Option<Amount>,
}

/// The section `[verifier]`, and what `[provider]` has in common with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawWork {
    /// See [`super::WorkConfig::stash`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stash: Option<String>,
    /// See [`super::WorkConfig::models`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// See [`super::WorkConfig::threads`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// See [`super::WorkConfig::device`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Memory of the device, in MiB; see [`super::WorkConfig::device_memory_bytes_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_memory_mib_max: Option<u64>,
    /// See [`super::WorkConfig::device_graphs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_graphs: Option<bool>,
    /// See [`super::WorkConfig::metrics_listen`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_listen: Option<String>,
    /// See [`super::WorkConfig::tip_max`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tip_max: Option<Amount>,
}

/// The section `[task]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawTask {
    /// See [`super::DataConfig::listen`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<String>>,
    /// See [`super::DataConfig::external`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<Vec<String>>,
}

/// The section `[storage]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RawStorage {
    /// Largest blob, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob_mib_max: Option<u64>,
    /// All blobs together, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_mib_max: Option<u64>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
