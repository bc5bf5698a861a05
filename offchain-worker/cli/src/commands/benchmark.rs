//! The part of a provider that shows the chain how fast its machine is.

use std::{
    num::NonZero,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use async_trait::async_trait;
use surety_benchmark::{Failed, Hold, Machine, Metrics, Parts, Pause, RunMemory, in_words};
use surety_chain_rpc::RpcChain;
use surety_cuda::open_device_memory;
use surety_engine::Devices;
use surety_gpu_proofs::{BATCHES, MeasuredView, Processor, ROW, ROWS_MAX};
use surety_host::{Pauses, Tools, machine};
use tokio::sync::watch;

use super::{part::Part, worker::Mode};
use crate::{
    config::{Participation, WorkConfig},
    error::{CliError, Result},
};

/// The part of a machine's free memory that a run on the processor takes.
const FREE_PART: u64 = 4;

/// Begins to take part in rounds, where that is wanted.
pub(super) fn start(
    (tools, rounds): (&Tools, Arc<RpcChain>),
    (wanted, config, mode): (Participation, &WorkConfig, Mode),
    home: &Path,
    stop: watch::Sender<bool>,
) -> Result<Option<Part>> {
    let devices = tools.engines.devices().clone();
    let takes_part = match wanted {
        Participation::Auto => !devices.is_empty(),
        Participation::On => true,
        Participation::Off => false,
    };
    if !takes_part {
        return Ok(None);
    }
    let metrics = Metrics::new(tools.vitals.registry());
    let parts = Parts {
        chain: tools.chain.clone(),
        rounds,
        signer: tools.signer.clone(),
        stash: tools.stash.clone(),
        machine: Arc::new(Provided {
            pauses: tools.engines.pauses().clone(),
            devices,
            device_bytes_max: config.device_memory_bytes_max.unwrap_or(u64::MAX),
            threads: NonZero::new(config.threads).unwrap_or(NonZero::<usize>::MIN),
        }),
        journal: home.join("benchmark.journal"),
        metrics: metrics.map_err(|error| CliError::Internal(error.to_string()))?,
        tip: config.tip_max.0,
        takes_part: mode == Mode::Up,
    };
    let stopped = stop.subscribe();
    let run = async move {
        // A defect of it ends no promised work.
        if let Err(error) = tokio::spawn(surety_benchmark::run(parts, stopped)).await {
            tracing::error!(%error, "the benchmark has ended; everything else goes on");
        }
        Ok::<(), CliError>(())
    };
    Ok(Some(Part::start("rounds of the benchmark", run, stop)))
}

/// This machine, or its first device.
struct Provided {
    pauses: Pauses,
    devices: Devices,
    device_bytes_max: u64,
    threads: NonZero<usize>,
}

#[async_trait]
impl Machine for Provided {
    async fn pause(&self, at_most: Duration) -> std::result::Result<Pause, String> {
        let pause = self.pauses.begin(at_most).await;
        pause
            .map(|pause| Box::new(pause) as Pause)
            .map_err(|error| error.to_string())
    }

    fn hold(&self, at_most: Duration) -> Hold {
        Box::new(self.pauses.hold(at_most))
    }

    fn memory(&self, stop: &Arc<AtomicBool>) -> std::result::Result<(RunMemory, u32), Failed> {
        let Some(device) = self.devices.iter().next() else {
            let unknown = || Failed::Device("the system does not tell how much memory is free".into());
            let free = machine::free_memory_bytes().ok_or_else(unknown)?;
            let rows = (free / FREE_PART).checked_div(ROW as u64).unwrap_or_default();
            let memory = in_words(Processor::new(self.threads), |_| {
                Failed::Memory("this machine has not so much memory".into())
            });
            return some_rows(memory, u32::try_from(rows).unwrap_or(u32::MAX));
        };
        let name = device.name().to_owned();
        if let Some(why) = device.dropped() {
            return Err(Failed::Device(format!("{name} is used no more: {why}")));
        }
        let unnumbered = || Failed::Device(format!("{name} has no number"));
        let number = device.number().ok_or_else(unnumbered)?;
        // The bound is on what this program takes: its models have a part of that, others' memory is none.
        let bytes_max = self.device_bytes_max.saturating_sub(device.memory_taken());
        let opened = open_device_memory(number, bytes_max, stop.clone())
            .map_err(|error| failed(error.is_memory(), format!("{name}: {error}")))?;
        let memory = in_words(opened.memory, move |error| {
            failed(error.is_memory(), format!("{name}: {error}"))
        });
        some_rows(memory, opened.rows_max)
    }
}

fn failed(is_memory: bool, why: String) -> Failed {
    match is_memory {
        true => Failed::Memory(why),
        false => Failed::Device(why),
    }
}

fn some_rows(memory: RunMemory, rows_max: u32) -> std::result::Result<(RunMemory, u32), Failed> {
    match rows_max >= BATCHES {
        true => Ok((memory, rows_max.min(ROWS_MAX))),
        false => Err(Failed::Memory("no memory is free for a run".into())),
    }
}

/// In words.
pub(super) fn words(measured: &MeasuredView) -> String {
    let missed = match measured.rounds_missed {
        0 => "",
        _ => "; it has missed the last round, and may miss no other for now",
    };
    format!(
        "tier {}, {} * 10^9 operations a second over {} MiB{missed}",
        measured.tier.letter(),
        measured.giga_operations,
        measured.memory_mib
    )
}
