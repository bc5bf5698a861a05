//! The part of a verifier that audits what is sold over payment channels.

use std::{path::Path, sync::Arc};

use surety_chain_rpc::RpcChain;
use surety_engine::{Engine, EnginePool, PoolConfig};
use surety_host::Tools;
use surety_journal::CallStore;
use surety_point_audits::{Parts, book::Limits};
use tokio::sync::watch;

use super::{bond, part::Part};
use crate::error::Result;

/// Begins to audit.
pub(super) fn start(
    (tools, channels): (&Tools, Arc<RpcChain>),
    (engines, threads): (Vec<Arc<dyn Engine>>, usize),
    home: &Path,
    stop: watch::Sender<bool>,
) -> Result<Part> {
    let sizes = PoolConfig {
        threads,
        ..PoolConfig::default()
    };
    let pool = EnginePool::on(sizes, tools.engines.devices().clone())?;
    let agent = tools.signer.account().clone();
    tokio::spawn(bond::warn(channels.clone(), agent, stop.subscribe()));
    let parts = Parts {
        chain: tools.chain.clone(),
        channels,
        signer: tools.signer.clone(),
        stash: tools.stash.clone(),
        plane: tools.plane.clone(),
        store: Arc::new(CallStore::open(&home.join("points.redb"))?),
        engines: engines
            .into_iter()
            .map(|engine| (engine.manifest().id(), engine))
            .collect(),
        pool,
        limits: Limits::default(),
    };
    let run = surety_point_audits::run(parts, stop.subscribe());
    Ok(Part::start("audits of receipts", run, stop))
}
