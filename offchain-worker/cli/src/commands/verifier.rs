//! `surety verifier`.

use std::sync::Arc;

use serde::Serialize;
use surety_chain_client::address;
use surety_host::{Audits, Beside, Host, Tools, Traces, Vitals};
use surety_types::stake::Role;
use surety_worker_core::{Config as CoreConfig, NoBids, SecretSalts, Verifier};

use super::{worker, Context};
use crate::{args::VerifierCommand, assembly::WorkerParts, config::DataConfig, error::Result, models};

pub(super) async fn run(context: &Context, command: VerifierCommand) -> Result<()> {
    match command {
        VerifierCommand::Up(_) => up(context).await,
    }
}

/// Printed once the verifier is at work.
#[derive(Serialize)]
struct Up {
    state: &'static str,
    stash: String,
    agent: String,
    models: Vec<String>,
}

async fn up(context: &Context) -> Result<()> {
    let config = &context.config.verifier;
    let key = context.key()?;
    // What is wrong here is found before anything is said to the chain.
    let (journal, records) = worker::open_journal(&context.config.home)?;
    let stored = worker::chosen_models(&context.models(), &config.models)?;
    let chain = context.patient_chain().await?;
    let stash = worker::find_stash(&*chain, &key, config.stash.as_ref()).await?;
    worker::check_stake(&*chain, &stash, Role::Verifier).await?;
    let mut core = CoreConfig::new(stash.clone(), NoBids, SecretSalts::new(key.salt_secret));
    core.agent = Some(key.signer.account().clone());
    let core = Verifier::new(core, records.clone())?;
    let metrics = worker::metrics_listener(config.run).await?;
    // It asks others and is asked by nobody.
    let nowhere = DataConfig {
        listen: Vec::new(),
        external: Vec::new(),
    };
    let node = Arc::new(context.node(&*chain, &nowhere).await?);
    let vitals = Arc::new(Vitals::new()?);
    let engines = worker::load(context, config.threads, &stored, &vitals).await?;
    let up = Up {
        state: "up",
        stash: address(&stash),
        agent: address(key.signer.account()),
        models: stored.iter().map(models::name).collect(),
    };
    context.out.result(&up, || up.text())?;
    let tools = Tools {
        chain,
        signer: key.signer,
        stash,
        plane: node.clone(),
        engines,
        traces: Traces::default(),
        audits: Audits::default(),
        outputs: Arc::default(),
        tip_max: config.run.tip_max.0,
        vitals,
    };
    let worker = context.assembly.worker(WorkerParts {
        tools,
        core: Box::new(core),
        journal: Arc::new(journal),
    });
    let result = Host::new(
        worker.tools,
        Beside::Slashes,
        worker.core,
        worker.journal,
        &records,
    )
    .with_metrics(metrics)
    .run(worker::stop_signal()?)
    .await;
    if let Some(node) = Arc::into_inner(node) {
        node.stop().await;
    }
    tracing::info!("stopped");
    Ok(result?)
}

impl Up {
    fn text(&self) -> String {
        format!(
            "verifier is up\n  stash   {}\n  agent   {}\n  models  {}",
            self.stash,
            self.agent,
            self.models.join(", ")
        )
    }
}
