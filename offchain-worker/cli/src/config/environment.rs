//! Settings in environment variables, and the folder that is taken where nobody names one.

use std::path::PathBuf;

use figment::providers::Env;

/// Settings that the environment can name: `SURETY_RPC`, `SURETY_PROVIDER_LISTEN='["127.0.0.1:4001"]'` and so
/// on.
pub(super) const ENVIRONMENT: [&str; 40] = [
    "home",
    "rpc",
    "key_file",
    "log",
    "faucet",
    "provider_stash",
    "provider_listen",
    "provider_external",
    "provider_models",
    "provider_price_per_unit",
    "provider_prices",
    "provider_threads",
    "provider_device",
    "provider_device_memory_mib_max",
    "provider_device_graphs",
    "provider_device_serves",
    "provider_units_per_second",
    "provider_tasks_max",
    "provider_benchmark",
    "provider_region",
    "provider_metrics_listen",
    "provider_tip_max",
    "calls_enabled",
    "calls_open_max",
    "calls_chunk_tokens_max",
    "calls_memory_mib_max",
    "calls_batch_blocks",
    "calls_redeem_min",
    "verifier_stash",
    "verifier_models",
    "verifier_threads",
    "verifier_device",
    "verifier_device_memory_mib_max",
    "verifier_device_graphs",
    "verifier_metrics_listen",
    "verifier_tip_max",
    "task_listen",
    "task_external",
    "storage_blob_mib_max",
    "storage_total_mib_max",
];

/// What the environment says, by the names that settings have in a file.
pub(super) fn settings() -> Env {
    Env::prefixed("SURETY_")
        .only(&ENVIRONMENT)
        .map(|key| setting(key.as_str()).into())
}

/// The setting that a variable, without its prefix, stands for. Variables come as they are written: in
/// capitals.
pub(super) fn setting(key: &str) -> String {
    let key = key.to_ascii_lowercase();
    let in_section = |section: &str| {
        let rest = key.strip_prefix(section)?.strip_prefix('_')?;
        Some(format!("{section}.{rest}"))
    };
    ["provider", "calls", "verifier", "task", "storage"]
        .into_iter()
        .find_map(in_section)
        .unwrap_or_else(|| key.clone())
}

/// `${XDG_DATA_HOME:-~/.local/share}/surety`.
pub(super) fn default_home() -> Option<PathBuf> {
    let folder = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    folder("XDG_DATA_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("surety"))
}
