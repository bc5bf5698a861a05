//! Runs what the command line asks for.

use std::sync::Arc;

use sc_cli::{Result, SubstrateCli};
use sc_network::config::NetworkBackendType;
use sc_service::{Configuration, TaskManager};
use surety_runtime::opaque::Block;

use crate::{
    chain_spec,
    cli::{Cli, Subcommand},
    service::{self, Backend, Client, PartialNode},
};

/// Runs the node or one of its commands.
pub fn run() -> Result<()> {
    let mut cli = Cli::from_args();
    match cli.subcommand.take() {
        None => {
            cli.apply_chain_defaults()?;
            let runner = cli.create_runner(&cli.run)?;
            runner.run_node_until_exit(|config| async move { start(config, &cli) })
        }
        Some(Subcommand::Key(command)) => command.run(&cli),
        Some(Subcommand::ExportChainSpec(command)) => command.run(cli.load_spec(&command.chain)?),
        Some(Subcommand::PurgeChain(command)) => cli
            .create_runner(&command)?
            .sync_run(|config| command.run(config.database)),
        Some(Subcommand::ChainInfo(command)) => cli
            .create_runner(&command)?
            .sync_run(|config| command.run::<Block>(&config)),
        #[cfg(feature = "runtime-benchmarks")]
        Some(Subcommand::Benchmark(command)) => crate::benchmark::run(&cli, &command),
        Some(subcommand) => run_on_stored_chain(&cli, subcommand),
    }
}

/// Starts the node on the network backend that the operator chose.
fn start(config: Configuration, cli: &Cli) -> Result<TaskManager> {
    chain_spec::use_addresses_of(&*config.chain_spec);
    let storage_monitor = cli.storage_monitor.clone();
    let task_manager = match config.network.network_backend {
        NetworkBackendType::Libp2p => {
            service::new_full::<sc_network::NetworkWorker<_, _>>(config, storage_monitor)
        }
        NetworkBackendType::Litep2p => {
            service::new_full::<sc_network::Litep2pNetworkBackend>(config, storage_monitor)
        }
    };
    task_manager.map_err(sc_cli::Error::Service)
}

/// Commands that need the client, but no network.
fn run_on_stored_chain(cli: &Cli, subcommand: Subcommand) -> Result<()> {
    match subcommand {
        Subcommand::CheckBlock(command) => cli.create_runner(&command)?.async_run(|config| {
            let (
                PartialNode {
                    client, task_manager, ..
                },
                import_queue,
            ) = service::new_partial(&config)?;
            Ok((command.run(client, import_queue), task_manager))
        }),
        Subcommand::ExportBlocks(command) => cli.create_runner(&command)?.async_run(|config| {
            let (
                PartialNode {
                    client, task_manager, ..
                },
                _,
            ) = service::new_partial(&config)?;
            Ok((command.run(client, config.database), task_manager))
        }),
        Subcommand::ExportState(command) => cli.create_runner(&command)?.async_run(|config| {
            let (
                PartialNode {
                    client, task_manager, ..
                },
                _,
            ) = service::new_partial(&config)?;
            Ok((command.run(client, config.chain_spec), task_manager))
        }),
        Subcommand::ImportBlocks(command) => cli.create_runner(&command)?.async_run(|config| {
            let (
                PartialNode {
                    client, task_manager, ..
                },
                import_queue,
            ) = service::new_partial(&config)?;
            Ok((command.run(client, import_queue), task_manager))
        }),
        Subcommand::Revert(command) => cli.create_runner(&command)?.async_run(|config| {
            let (
                PartialNode {
                    client,
                    task_manager,
                    backend,
                    ..
                },
                _,
            ) = service::new_partial(&config)?;
            // Consensus keeps its own record of epochs and votes, which has to follow.
            let revert_consensus = Box::new(|client: Arc<Client>, backend: Arc<Backend>, blocks| {
                sc_consensus_babe::revert(client.clone(), backend, blocks)?;
                sc_consensus_grandpa::revert(client, blocks)?;
                Ok(())
            });
            Ok((command.run(client, backend, Some(revert_consensus)), task_manager))
        }),
        _ => Err("this command needs no stored chain".into()),
    }
}
