//! The chains that the node knows by name, and those in files.

use std::path::PathBuf;

use sc_chain_spec::ChainSpecExtension;
use sc_service::{ChainType, GenericChainSpec, Properties};
use serde::{Deserialize, Serialize};
use sp_genesis_builder::{DEV_RUNTIME_PRESET, LOCAL_TESTNET_RUNTIME_PRESET};
use surety_runtime::{WASM_BINARY, genesis_config_presets::TESTNET_PRESET, opaque::Block};

/// What a chain specification may say beyond Substrate's own fields.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ChainSpecExtension)]
#[serde(rename_all = "camelCase")]
pub struct Extensions {
    /// Blocks that have to be part of the chain.
    pub fork_blocks: sc_client_api::ForkBlocks<Block>,
    /// Blocks that are never imported.
    pub bad_blocks: sc_client_api::BadBlocks<Block>,
    /// Where light clients start from. `sync_state_genSyncSpec` fills it in.
    pub light_sync_state: sc_sync_state_rpc::LightSyncStateExtension,
}

/// A chain specification.
pub type ChainSpec = GenericChainSpec<Extensions>;

/// What wallets show, and that the chains that the node carries are for tests: `surety faucet` gives money
/// away nowhere else.
fn properties() -> Properties {
    let mut properties = Properties::new();
    properties.insert("isTestnet".into(), true.into());
    properties.insert("tokenSymbol".into(), "SURE".into());
    properties.insert("tokenDecimals".into(), 12.into());
    properties.insert("ss58Format".into(), 42.into());
    properties
}

fn from_preset(name: &str, id: &str, kind: ChainType, preset: &str) -> Result<ChainSpec, String> {
    let wasm = WASM_BINARY.ok_or("the node was built without the Wasm runtime (SKIP_WASM_BUILD)")?;
    Ok(ChainSpec::builder(wasm, Extensions::default())
        .with_name(name)
        .with_id(id)
        .with_chain_type(kind)
        .with_protocol_id("surety")
        .with_properties(properties())
        .with_genesis_config_preset_name(preset)
        .build())
}

/// The chain called `id`, or the one in the file of that name.
pub fn load(id: &str) -> Result<ChainSpec, String> {
    match id {
        "dev" => from_preset(
            "Surety Development",
            "surety_dev",
            ChainType::Development,
            DEV_RUNTIME_PRESET,
        ),
        "" | "local" => from_preset(
            "Surety Local",
            "surety_local",
            ChainType::Local,
            LOCAL_TESTNET_RUNTIME_PRESET,
        ),
        "testnet" => from_preset(
            "Surety Testnet",
            "surety_testnet",
            ChainType::Live,
            TESTNET_PRESET,
        ),
        path => {
            let path = PathBuf::from(path);
            if !path.is_file() {
                return Err(format!(
                    "{} is neither dev, local or testnet nor a chain specification's file",
                    path.display()
                ));
            }
            ChainSpec::from_json_file(path)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use sp_runtime::BuildStorage;

    #[test]
    fn every_named_chain_builds_its_genesis() {
        for id in ["dev", "local", "testnet"] {
            let storage = load(id).unwrap().build_storage();
            assert!(storage.is_ok(), "{id}: {storage:?}");
        }
    }

    #[test]
    fn an_exported_chain_is_the_chain() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let spec = load("local").unwrap();
        std::fs::write(file.path(), spec.as_json(true).unwrap()).unwrap();
        let read = load(file.path().to_str().unwrap()).unwrap();
        assert_eq!(
            read.build_storage().unwrap().top,
            spec.build_storage().unwrap().top
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load("/nowhere/spec.json").map(|_| ()).unwrap_err();
        assert!(error.contains("/nowhere/spec.json"), "{error}");
    }
}
