//! `surety-node benchmark`: weights of pallets, of the database and of blocks, and whether a machine is fast
//! enough.

use frame_benchmarking_cli::{BenchmarkCmd, SUBSTRATE_REFERENCE_HARDWARE};
use sc_cli::{Result, SubstrateCli};
use sp_runtime::traits::HashingFor;
use surety_runtime::opaque::Block;

use crate::{
    cli::Cli,
    service::{self, HostFunctions, PartialNode},
};

/// Runs a benchmark.
pub fn run(cli: &Cli, command: &BenchmarkCmd) -> Result<()> {
    let runner = cli.create_runner(command)?;
    runner.sync_run(|config| match command {
        BenchmarkCmd::Pallet(command) => {
            command.run_with_spec::<HashingFor<Block>, HostFunctions>(Some(config.chain_spec))
        }
        BenchmarkCmd::Storage(command) => {
            let (PartialNode { client, backend, .. }, _) = service::new_partial(&config)?;
            let database = backend.expose_db();
            let storage = backend.expose_storage();
            let cache = backend.expose_shared_trie_cache();
            command.run(config, client, database, storage, cache)
        }
        BenchmarkCmd::Overhead(command) => {
            command.run_with_default_builder_and_spec::<Block, HostFunctions>(Some(config.chain_spec))
        }
        BenchmarkCmd::Block(command) => {
            let (PartialNode { client, .. }, _) = service::new_partial(&config)?;
            command.run(client)
        }
        BenchmarkCmd::Machine(command) => command.run(&config, SUBSTRATE_REFERENCE_HARDWARE.clone()),
        BenchmarkCmd::Extrinsic(_) => {
            Err("the weights of single extrinsics come from `benchmark pallet`".into())
        }
    })
}
