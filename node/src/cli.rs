//! What the command line says, and its defaults where they differ from Substrate's.

use std::num::NonZeroU32;

use clap::Parser;
use sc_cli::{RunCmd, SubstrateCli};
use sc_service::{ChainSpec as _, ChainType};

use crate::chain_spec;

/// RPC calls a connection may make in a minute on a public network: polkadot.js makes a few hundred when it
/// connects.
const RPC_CALLS_PER_MINUTE: NonZeroU32 = match NonZeroU32::new(3_000) {
    Some(limit) => limit,
    None => NonZeroU32::MIN,
};

/// The node's command line.
#[derive(Debug, Parser)]
pub struct Cli {
    #[command(subcommand)]
    pub subcommand: Option<Subcommand>,

    #[clap(flatten)]
    pub run: RunCmd,

    #[clap(flatten)]
    pub storage_monitor: sc_storage_monitor::StorageMonitorParams,
}

#[derive(Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant)] // One is made per process.
pub enum Subcommand {
    /// Makes, shows and stores keys.
    #[command(subcommand)]
    Key(sc_cli::KeySubcommand),

    /// Writes a chain specification as JSON.
    ExportChainSpec(sc_cli::ExportChainSpecCmd),

    /// Executes a stored block again.
    CheckBlock(sc_cli::CheckBlockCmd),

    /// Writes stored blocks to a file.
    ExportBlocks(sc_cli::ExportBlocksCmd),

    /// Writes the state of a block as a chain specification.
    ExportState(sc_cli::ExportStateCmd),

    /// Reads blocks from a file.
    ImportBlocks(sc_cli::ImportBlocksCmd),

    /// Deletes the database of a chain.
    PurgeChain(sc_cli::PurgeChainCmd),

    /// Takes back blocks that are not final.
    Revert(sc_cli::RevertCmd),

    /// Shows what the database holds.
    ChainInfo(sc_cli::ChainInfoCmd),

    /// Measures weights and the machine.
    #[cfg(feature = "runtime-benchmarks")]
    #[command(subcommand)]
    Benchmark(frame_benchmarking_cli::BenchmarkCmd),
}

impl Cli {
    /// Defaults that depend on who uses the chain: the operator alone, or strangers.
    ///
    /// # Errors
    /// When there is no such chain.
    pub fn apply_chain_defaults(&mut self) -> sc_cli::Result<()> {
        let shared = &self.run.shared_params;
        let spec = chain_spec::load(&shared.chain_id(shared.is_dev()))?;
        match spec.chain_type() {
            ChainType::Development | ChainType::Local => {
                // Nobody depends on the identity of a validator that was started for an afternoon.
                let keys = &mut self.run.network_params.node_key_params;
                keys.unsafe_force_node_key_generation = true;
                Ok(())
            }
            ChainType::Live | ChainType::Custom(_) => self.limit_rpc(),
        }
    }

    /// Limits the RPC, unless the operator has decided how.
    ///
    /// The machine itself is not limited: its worker and its monitoring are the operator's own.
    fn limit_rpc(&mut self) -> sc_cli::Result<()> {
        let rpc = &mut self.run.rpc_params;
        if rpc.rpc_rate_limit.is_some() || !rpc.experimental_rpc_endpoint.is_empty() {
            return Ok(());
        }
        rpc.rpc_rate_limit = Some(RPC_CALLS_PER_MINUTE);
        if rpc.rpc_rate_limit_whitelisted_ips.is_empty() {
            for loopback in ["127.0.0.0/8", "::1/128"] {
                let network = loopback
                    .parse()
                    .map_err(|_| format!("{loopback} is no network"))?;
                rpc.rpc_rate_limit_whitelisted_ips.push(network);
            }
        }
        Ok(())
    }
}

impl SubstrateCli for Cli {
    fn impl_name() -> String {
        "Surety Node".into()
    }

    fn impl_version() -> String {
        env!("SUBSTRATE_CLI_IMPL_VERSION").into()
    }

    fn description() -> String {
        env!("CARGO_PKG_DESCRIPTION").into()
    }

    fn author() -> String {
        env!("CARGO_PKG_AUTHORS").into()
    }

    fn support_url() -> String {
        "see SECURITY.md and CONTRIBUTING.md in the source".into()
    }

    fn copyright_start_year() -> i32 {
        2026
    }

    fn load_spec(&self, id: &str) -> Result<Box<dyn sc_service::ChainSpec>, String> {
        Ok(Box::new(chain_spec::load(id)?))
    }

    fn setup_command(command: clap::Command) -> clap::Command {
        command
            .name(Self::executable_name())
            .version(Self::impl_version())
            .author(Self::author())
            .about(Self::description())
            .after_help("Chains: dev, local, testnet, or the path of a chain specification.")
            .propagate_version(true)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            // No pallet here has an off-chain worker, so running them after every block would be waste.
            .mut_arg("enabled", |arg| arg.default_value("never"))
    }
}
