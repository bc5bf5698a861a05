//! `surety provider stand`, `offer` and `withdraw`: what a stash stands behind and sells over payment
//! channels; and the part of a provider that answers over them.

use std::{path::Path, sync::Arc};

use surety_chain_client::{Call, ChannelChain, When};
use surety_chain_rpc::RpcChain;
use surety_engine::Engine;
use surety_host::Tools;
use surety_journal::CallStore;
use surety_provider_calls::{CallsConfig, CallsError, Metrics, Models, Owed, Parts};
use surety_types::{ModelId, model::Operation};
use tokio::sync::watch;

use super::{Context, account, part::Part};
use crate::{
    args::{OfferArgs, OfferedArgs, StandArgs},
    error::{CliError, Result},
    models,
};

pub(super) async fn stand(context: &Context, args: &StandArgs) -> Result<()> {
    let cap = args.cap.0;
    let lock = match args.lock {
        Some(lock) => lock.0,
        None if cap == 0 => 0,
        None => {
            let stash = context.key()?.signer.account().clone();
            let least = context
                .rpc()
                .await?
                .least_lock(When::Finalized, &stash, cap)
                .await?;
            least.ok_or_else(|| {
                CliError::Usage(
                    "no lock would do now: too few verifiers are able to audit what is sold over channels; try again later"
                        .into(),
                )
            })?
        }
    };
    account::submit(context, Call::Stand { lock, cap }).await
}

pub(super) async fn offer(context: &Context, args: &OfferArgs) -> Result<()> {
    let (model, operation) = offered(context, &args.offered).await?;
    let call = Call::Offer {
        model,
        operation,
        unit_price: args.price.0,
        places: args.places,
    };
    account::submit(context, call).await
}

pub(super) async fn withdraw(context: &Context, args: &OfferedArgs) -> Result<()> {
    let (model, operation) = offered(context, args).await?;
    account::submit(context, Call::WithdrawOffer { model, operation }).await
}

/// The model on the chain, and what of it is meant.
async fn offered(context: &Context, args: &OfferedArgs) -> Result<(ModelId, Operation)> {
    let chain = context.chain().await?;
    let (id, model) = models::registered(&*chain, &context.models(), &args.model).await?;
    let able = &model.manifest.operations;
    let operation = match (args.operation.map(Operation::from), &able[..]) {
        (Some(operation), _) if able.contains(&operation) => operation,
        (None, [only]) => *only,
        (Some(operation), _) => {
            return Err(CliError::Usage(format!(
                "{} does not {}",
                args.model,
                operation.name()
            )));
        }
        (None, _) => {
            return Err(CliError::Usage(format!(
                "{} can do several things: name one with --operation",
                args.model
            )));
        }
    };
    Ok((id, operation))
}

/// The part of a provider that answers over payment channels.
pub(super) struct Calls {
    part: Part,
    owed: watch::Receiver<Option<Owed>>,
}

/// What it is made of.
pub(super) struct CallsParts<'a> {
    pub(super) tools: &'a Tools,
    pub(super) channels: Arc<RpcChain>,
    pub(super) engines: Vec<Arc<dyn Engine>>,
    pub(super) config: CallsConfig,
    pub(super) home: &'a Path,
    /// Whether new requests are taken.
    pub(super) takes_new: bool,
}

impl Calls {
    /// Begins to answer. When it cannot go on, everything is told to stop. Nothing where the data plane
    /// takes no calls.
    pub(super) fn start(parts: CallsParts<'_>, stop: watch::Sender<bool>) -> Result<Option<Self>> {
        let tools = parts.tools;
        let Some(listener) = tools.plane.calls() else {
            tracing::warn!("the data plane takes no calls: nothing is answered over payment channels");
            return Ok(None);
        };
        let models = Models::start(parts.engines, &parts.config).map_err(CallsError::from)?;
        let metrics = Metrics::new(tools.vitals.registry()).map_err(CallsError::from)?;
        let (telling, owed) = watch::channel(None);
        let parts = Parts {
            chain: tools.chain.clone(),
            channels: parts.channels,
            signer: tools.signer.clone(),
            stash: tools.stash.clone(),
            store: Arc::new(CallStore::open(&parts.home.join("calls.redb"))?),
            models,
            config: parts.config,
            metrics,
            takes_new: parts.takes_new,
            owed: telling,
        };
        let run = surety_provider_calls::run(parts, listener, stop.subscribe());
        let part = Part::start("calls over payment channels", run, stop);
        Ok(Some(Self { part, owed }))
    }

    /// What is open over channels, once that is known.
    pub(super) fn owed(&self) -> watch::Receiver<Option<Owed>> {
        self.owed.clone()
    }

    /// Ends it, and says how it went.
    pub(super) async fn stop(self) -> Result<()> {
        self.part.stop().await
    }
}
