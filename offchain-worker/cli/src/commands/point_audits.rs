//! The part of a verifier that audits what is sold over payment channels.

use std::{path::Path, sync::Arc};

use surety_chain_rpc::RpcChain;
use surety_engine::{Engine, EnginePool, PoolConfig};
use surety_host::Tools;
use surety_journal::CallStore;
use surety_point_audits::{AuditsError, Parts, book::Limits};
use tokio::{sync::watch, task::JoinHandle};

use crate::error::{CliError, Result};

/// It, at work.
pub(super) struct PointAudits {
    task: JoinHandle<std::result::Result<(), AuditsError>>,
    stop: watch::Sender<bool>,
}

impl PointAudits {
    /// Begins to audit. When it cannot go on, everything is told to stop.
    pub(super) fn start(
        (tools, channels): (&Tools, Arc<RpcChain>),
        (engines, threads): (Vec<Arc<dyn Engine>>, usize),
        home: &Path,
        stop: watch::Sender<bool>,
    ) -> Result<Self> {
        let pool = EnginePool::new(PoolConfig {
            threads,
            ..PoolConfig::default()
        })?;
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
        let (ended, stopped) = (stop.clone(), stop.subscribe());
        let task = tokio::spawn(async move {
            let outcome = surety_point_audits::run(parts, stopped).await;
            if let Err(error) = &outcome {
                tracing::error!(%error, "audits of receipts have ended");
                ended.send_replace(true);
            }
            outcome
        });
        Ok(Self { task, stop })
    }

    /// Ends it, and says how it went.
    pub(super) async fn stop(self) -> Result<()> {
        self.stop.send_replace(true);
        let outcome = self.task.await;
        let ended = |error| CliError::Internal(format!("audits of receipts have ended: {error}"));
        Ok(outcome.map_err(ended)??)
    }
}
