//! The chains that the node knows by name, and those in files.

use std::path::PathBuf;

use sc_chain_spec::ChainSpecExtension;
use sc_service::{ChainType, GenericChainSpec, Properties};
use serde::{Deserialize, Serialize};
use sp_core::crypto::set_default_ss58_version;
use sp_genesis_builder::{DEV_RUNTIME_PRESET, LOCAL_TESTNET_RUNTIME_PRESET};
use surety_runtime::{
    WASM_BINARY, genesis_config_presets::TESTNET_PRESET, opaque::Block, units::SS58_PREFIX,
};

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
fn properties(ss58_format: u16) -> Properties {
    let mut properties = Properties::new();
    properties.insert("isTestnet".into(), true.into());
    properties.insert("tokenSymbol".into(), "SURE".into());
    properties.insert("tokenDecimals".into(), 12.into());
    properties.insert("ss58Format".into(), ss58_format.into());
    properties
}

/// Has the node write addresses as wallets are told to by the specification, and read those, too: an
/// unregistered prefix is refused otherwise.
pub fn use_addresses_of(spec: &dyn sc_service::ChainSpec) {
    let properties = spec.properties();
    let format = properties.get("ss58Format").and_then(|value| value.as_u64());
    if let Some(format) = format.and_then(|format| u16::try_from(format).ok()) {
        set_default_ss58_version(format.into());
    }
}

/// What addresses begin with on chains whose keys everybody knows, as on all that are for trying out.
const SS58_GENERIC: u16 = 42;

fn from_preset(name: &str, id: &str, kind: ChainType, preset: &str) -> Result<ChainSpec, String> {
    let ss58_format = match kind {
        ChainType::Live => SS58_PREFIX,
        _ => SS58_GENERIC,
    };
    let wasm = WASM_BINARY.ok_or("the node was built without the Wasm runtime (SKIP_WASM_BUILD)")?;
    Ok(ChainSpec::builder(wasm, Extensions::default())
        .with_name(name)
        .with_id(id)
        .with_chain_type(kind)
        .with_protocol_id("surety")
        .with_properties(properties(ss58_format))
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
    fn wallets_are_told_what_money_and_addresses_look_like() {
        for (id, ss58_format) in [("dev", 42), ("local", 42), ("testnet", 7_373)] {
            let properties = load(id).unwrap().properties();
            assert_eq!(properties["ss58Format"], ss58_format, "{id}");
            assert_eq!(properties["tokenSymbol"], "SURE", "{id}");
            assert_eq!(properties["tokenDecimals"], 12, "{id}");
        }
    }

    #[test]
    fn a_node_of_the_testnet_reads_its_addresses_and_those_of_any_chain() {
        use sp_core::crypto::{AccountId32, Ss58Codec};

        let account = AccountId32::new([7; 32]);
        let own = account.to_ss58check_with_version(SS58_PREFIX.into());
        let generic = account.to_ss58check_with_version(SS58_GENERIC.into());
        assert!(AccountId32::from_ss58check(&own).is_err());
        let of = |ss58_format| {
            let spec = ChainSpec::builder(&[], Extensions::default());
            use_addresses_of(&spec.with_properties(properties(ss58_format)).build());
        };
        of(SS58_PREFIX);
        assert_eq!(account.to_ss58check(), own);
        for address in [own, generic] {
            assert_eq!(AccountId32::from_ss58check(&address), Ok(account.clone()));
        }
        // Tests share it.
        of(SS58_GENERIC);
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
