//! `surety provider stand`, `offer` and `withdraw`: what a stash stands behind and sells over payment
//! channels; and the part of a provider that answers over them.

use std::{path::Path, sync::Arc};

use surety_chain_client::{AccountId, Call, ChainError, ChannelChain, StandingView, When, address};
use surety_chain_rpc::RpcChain;
use surety_engine::Engine;
use surety_host::Tools;
use surety_journal::CallStore;
use surety_provider_calls::{CallsConfig, CallsError, Metrics, Models, Owed, Parts};
use surety_types::{ModelId, model::Operation};
use tokio::sync::watch;

use super::{Context, account, part::Part};
use crate::{
    amount::Amount,
    args::{OfferArgs, OfferedArgs, StandArgs},
    error::{CliError, Result},
    models,
};

pub(super) async fn stand(context: &Context, args: &StandArgs) -> Result<()> {
    let stash = context.key()?.signer.account().clone();
    let chain = context.rpc().await?;
    match standing(&*chain, &stash, args).await? {
        Some((lock, cap)) => account::submit(context, Call::Stand { lock, cap }).await,
        None => {
            context
                .out
                .step("its lock is enough by the chain's present terms: there is nothing to do");
            Ok(())
        }
    }
}

/// The lock and the cap that are meant; nothing where they are what they were.
async fn standing(
    chain: &dyn ChannelChain,
    stash: &AccountId,
    args: &StandArgs,
) -> Result<Option<(u128, u128)>> {
    let known = chain.standing(When::Finalized, stash).await?;
    let known = known.filter(|standing| standing.lock > 0);
    let cap = match (args.cap, &known) {
        (Some(cap), _) => cap.0,
        (None, Some(known)) => known.cap,
        (None, None) => {
            return Err(CliError::Usage(format!(
                "{} stands behind nothing yet: say with --cap what its receipts may cost that can still be disputed; the key \
                 has to be the stash's (--key-file)",
                address(stash)
            )));
        }
    };
    let lock = match args.lock {
        Some(lock) => lock.0,
        None if cap == 0 => 0,
        None => {
            let least = chain.least_lock(When::Finalized, stash, cap).await?;
            least.ok_or_else(|| {
                CliError::Usage(
                    "no lock would do now: too few verifiers are able to audit what is sold over channels; try again later"
                        .into(),
                )
            })?
        }
    };
    // It can only grow while anything is open.
    let before = known
        .as_ref()
        .filter(|_| args.cap.is_none() && args.lock.is_none());
    let lock = before.map_or(lock, |before| before.lock.max(lock));
    let is_same = before.is_some_and(|before| before.lock == lock && !before.is_leaving);
    Ok((!is_same).then_some((lock, cap)))
}

/// What keeps a provider that stands behind something from selling anything new, as far as that is its lock.
pub(super) async fn sells_nothing_new(chain: &dyn ChannelChain, stash: &AccountId) -> Result<Option<String>> {
    let standing = match chain.standing(When::Finalized, stash).await {
        Ok(standing) => standing,
        // There are no channels on this chain.
        Err(ChainError::Outgrown { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if standing.as_ref().is_some_and(|standing| standing.is_leaving) {
        return Ok(Some(
            "it takes no new channels, so that its lock can go: when the last has ended, say with the stash's key once more: \
             surety provider stand --cap 0; or stay: surety provider stand"
                .into(),
        ));
    }
    let Some(standing) = standing.filter(StandingView::has_old_terms) else {
        return Ok(None);
    };
    let lock = Amount(standing.lock);
    Ok(Some(match standing.needed_lock {
        Some(needed) => format!(
            "it sells nothing new over channels: the chain's terms have changed, and its lock of {lock} is below the {} that \
             its cap needs now. With the stash's key, run: surety provider stand",
            Amount(needed)
        ),
        None => "it sells nothing new over channels: too few verifiers are able to audit, and no lock would do now. Wait, and \
                 then run with the stash's key: surety provider stand"
            .into(),
    }))
}

pub(super) async fn offer(context: &Context, args: &OfferArgs) -> Result<()> {
    let (model, operation) = offered(context, &args.offered).await?;
    let call = Call::Offer {
        model,
        operation,
        unit_price: args.price.0,
        places: args.places,
        region: args.region.or(context.config.provider.region),
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
        let devices = tools.engines.devices().clone();
        let models = Models::start(parts.engines, devices, &parts.config).map_err(CallsError::from)?;
        let pauses = tools.engines.pauses().clone();
        pauses.add(models.pool());
        if parts.config.device_serves && !tools.engines.devices().is_empty() {
            pauses.tokens_on_devices();
            tracing::warn!(
                "devices choose the tokens of answers over payment channels: some of them are computed again before \
                 they are signed, and what is signed and wrong costs the standing lock"
            );
        }
        let metrics = Metrics::new(tools.vitals.registry()).map_err(CallsError::from)?;
        let (telling, owed) = watch::channel(None);
        // Nothing is bid for before it has said what it keeps.
        tools.kept.channels.send_replace(None);
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
            stands_aside: Arc::new(move |operation| pauses.concerns(operation)),
            kept_for_others: tools.kept.tasks.subscribe(),
            kept: tools.kept.channels.clone(),
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

    /// What ends it.
    pub(super) fn into_part(self) -> Part {
        self.part
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{FakeChain, Signer, sample};

    use super::*;

    #[test]
    fn both_parts_of_a_provider_count_on_the_same_fee_for_showing_a_part() {
        let fees = CallsConfig::default().fees;
        assert_eq!(fees.part, surety_worker_core::SUPPLY_FEE);
    }

    fn args(cap: Option<u128>, lock: Option<u128>) -> StandArgs {
        StandArgs {
            cap: cap.map(Amount),
            lock: lock.map(Amount),
        }
    }

    /// A provider that stands with this lock for this cap; as much as a cap is its least lock here.
    fn stands(chain: &FakeChain, lock: u128, cap: u128) -> AccountId {
        let stash = Signer::from_uri("//Stash").unwrap().account().clone();
        let standing = StandingView {
            provider: stash.clone(),
            lock,
            cap,
            ..sample::channels::standing()
        };
        chain.change(|state| state.channels.standings.insert(stash.clone(), standing));
        chain.finalize();
        stash
    }

    #[tokio::test]
    async fn whoever_stands_again_locks_what_the_present_terms_need_and_never_less() {
        let chain = FakeChain::new();
        let stash = Signer::from_uri("//Stash").unwrap().account().clone();
        let new = standing(&chain, &stash, &args(None, None)).await.unwrap_err();
        assert!(new.to_string().contains("--cap"), "{new}");
        let new = standing(&chain, &stash, &args(Some(10), None)).await;
        assert_eq!(new.unwrap(), Some((10, 10)));
        for (before, cap, after) in [(10, 10, None), (12, 10, None), (8, 10, Some((10, 10)))] {
            let stash = stands(&chain, before, cap);
            let again = standing(&chain, &stash, &args(None, None)).await;
            assert_eq!(again.unwrap(), after, "{before} for {cap}");
        }
        let stash = stands(&chain, 12, 10);
        for (given, meant) in [
            (args(Some(5), None), (5, 5)),
            (args(Some(12), None), (12, 12)),
            (args(None, Some(20)), (20, 10)),
            (args(Some(0), None), (0, 0)),
        ] {
            let meant = Some(meant);
            assert_eq!(
                standing(&chain, &stash, &given).await.unwrap(),
                meant,
                "{given:?}"
            );
        }
        chain.change(|state| state.channels.is_insurable = false);
        chain.finalize();
        let none = standing(&chain, &stash, &args(None, None)).await.unwrap_err();
        assert!(none.to_string().contains("too few verifiers"), "{none}");
        let end = standing(&chain, &stash, &args(Some(0), None)).await;
        assert_eq!(end.unwrap(), Some((0, 0)));
    }

    #[tokio::test]
    async fn whoever_leaves_is_told_how_it_goes_on_and_can_stay() {
        let chain = FakeChain::new();
        let stash = stands(&chain, 10, 10);
        chain.change(|state| {
            let standing = state.channels.standings.get_mut(&stash).unwrap();
            standing.is_leaving = true;
        });
        chain.finalize();
        let problem = sells_nothing_new(&chain, &stash).await.unwrap().unwrap();
        assert!(problem.contains("--cap 0"), "{problem}");
        let again = standing(&chain, &stash, &args(None, None)).await;
        assert_eq!(again.unwrap(), Some((10, 10)));
    }

    #[tokio::test]
    async fn old_terms_are_a_problem_that_says_what_to_do() {
        let chain = FakeChain::new();
        let stash = stands(&chain, 10, 10);
        assert_eq!(sells_nothing_new(&chain, &stash).await.unwrap(), None);
        let stash = stands(&chain, 8, 10);
        let problem = sells_nothing_new(&chain, &stash).await.unwrap().unwrap();
        assert!(problem.contains("surety provider stand"), "{problem}");
        let stash = stands(&chain, 0, 10);
        let nothing = sells_nothing_new(&chain, &stash).await.unwrap();
        assert_eq!(nothing, None, "it sells nothing");
    }
}
