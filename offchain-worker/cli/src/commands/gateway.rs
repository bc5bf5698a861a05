//! `surety gateway`: OpenAI's interface in front of the chain.

mod desk;
mod keys;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU64,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use surety_chain_client::{AccountId, Chain, ChainError, RegisteredModel, Signer, When, address};
use surety_chain_rpc::RpcChain;
use surety_client::serve::welcome;
use surety_gateway::{
    BatchSettings, Exposed, Gateway, KeyTerms, Ledger, ModelText, NoProviders, Settings, Tokenized, Upstream,
};
use surety_journal::CallStore;
use surety_models::tokens::TextCodec;
use surety_network::{DataPlane, Node};
use surety_payer_calls::{Config, Patience, Providers, Sold, Spending, StartError, signed_for};
use surety_types::ModelId;
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    Context,
    task::batch::{ChainTasks, Terms},
    worker::stop_signal,
};
use crate::{
    args::{GatewayArgs, GatewayCommand},
    chat,
    error::{CliError, Result},
    models,
    output::Output,
};

/// Connections, and requests that are answered, at once.
const CONNECTIONS: u32 = 256;
const CALLS: usize = 64;
/// Of a connection: for a file of a batch over a slow line.
const CONNECTION_TIME: Duration = Duration::from_secs(600);
const TOKEN_TIME: Duration = Duration::from_secs(60);
/// A provider that is there answers within a second.
const PROOF_TIME: Duration = Duration::from_secs(15);
/// How often it is looked which providers there are.
const WELCOME: Duration = Duration::from_secs(60);
/// What a unit may cost beyond the cheapest offer, in hundredths.
const SLACK_PERCENT: u32 = 25;
/// One request in so many is asked of another provider than the best.
const TRIES: u64 = 16;
/// Demands of receipts at once.
const DEMANDS: usize = 16;
/// Of whoever needs no key, a minute.
const REQUESTS_WITHOUT_KEY: u32 = 600;

pub(super) async fn run(context: &Context, command: GatewayCommand) -> Result<()> {
    match command {
        GatewayCommand::Up(args) => up(context, &args).await,
        GatewayCommand::Keys(command) => keys::run(context, command),
    }
}

fn ledger(context: &Context) -> Result<Ledger> {
    Ok(Ledger::open(&ledger_path(context)?)?)
}

fn ledger_path(context: &Context) -> Result<PathBuf> {
    Ok(context.home()?.join("gateway.redb"))
}

/// What is promised over channels. Calls that were open when the last gateway died have cost what was signed
/// for them by it, and all that was reserved for them where it is lost.
fn channels(context: &Context, ledger: &Ledger) -> Result<Arc<CallStore>> {
    let path = context.home()?.join("channels.redb");
    let kept = path.exists().then(|| CallStore::open(&path)).transpose()?;
    let told = match kept {
        Some(_) => "what was signed for them counts as spent",
        None => "channels.redb is not there: all that was reserved for them counts as spent",
    };
    let signed = kept.as_ref().map(signed_for).transpose();
    let signed = signed.map_err(|error| CliError::Usage(error.to_string()))?;
    let interrupted = ledger.settle_interrupted(signed)?;
    if interrupted > 0 {
        let told = format!("{interrupted} calls were interrupted: {told}");
        context.out.step(&told);
    }
    // Not before: one that is empty would say that nothing was signed.
    Ok(Arc::new(match kept {
        Some(store) => store,
        None => CallStore::open(&path)?,
    }))
}

/// Where the gateway that runs in this home is told what to do with its keys.
fn desk_path(context: &Context) -> Result<PathBuf> {
    Ok(context.home()?.join("gateway.sock"))
}

/// Where it can be reached.
#[derive(Serialize)]
struct Up {
    http: String,
    account: String,
    /// What batches can ask for.
    models: Vec<String>,
    /// What is answered at once.
    at_once: Vec<String>,
    sources: Vec<String>,
}

impl Up {
    fn text(&self) -> String {
        let at_once = match self.at_once.is_empty() {
            true => "nothing yet".into(),
            false => self.at_once.join(", "),
        };
        format!(
            "the gateway is up: {} for batches of {}, and answers at once of {at_once}, paid by {}, until stopped",
            self.http,
            self.models.join(", "),
            self.account
        )
    }
}

async fn up(context: &Context, args: &GatewayArgs) -> Result<()> {
    let signer = context.key()?.signer;
    let ledger = Arc::new(ledger(context)?);
    let settings = settings(args);
    check_keys(&ledger, &settings)?;
    let store = channels(context, &ledger)?;
    let (listener, http) = listen(context.out, args.http, &settings).await?;
    // Whoever has the ledger has the desk, too.
    let mut desk = JoinSet::new();
    desk.spawn(desk::Desk::open(&desk_path(context)?)?.serve(ledger.clone()));
    let rpc = context.patient_rpc().await?;
    let chain: Arc<dyn Chain> = rpc.clone();
    let offered = offered(context, &*chain, &args.model).await?;
    let node = Arc::new(context.node(&*chain, &context.config.task).await?);
    let client: Arc<AccountId> = Arc::new(signer.account().clone());
    welcome(&chain, &node, client.clone()).await?;
    let (texts, on_chain) = parted(offered);
    let upstream = upstream(context, args, (rpc, node.clone(), store), &signer, &on_chain).await?;
    let up = Up {
        http: format!("http://{http}/v1"),
        account: address(signer.account()),
        models: on_chain.keys().cloned().collect(),
        at_once: upstream.models().into_iter().map(|model| model.name).collect(),
        sources: node.endpoints().iter().map(ToString::to_string).collect(),
    };
    let terms = Terms {
        redundancy: args.redundancy,
        security: args.security.security(),
    };
    let home = context.config.home.clone();
    let tasks = ChainTasks::new(chain.clone(), node.clone(), signer, home, on_chain, terms);
    let gateway = Gateway::new(upstream, Arc::new(tasks), texts, ledger, settings);
    let (_stop, mut stopped) = stop_signal()?;
    context.out.result(&up, || up.text())?;
    let stop = async move {
        // The sender lives as long as this function.
        stopped.wait_for(|is_stopped| *is_stopped).await.ok();
    };
    let welcoming = async {
        loop {
            tokio::time::sleep(WELCOME).await;
            // Providers that have registered since have places kept, too.
            if let Err(error) = welcome(&chain, &node, client.clone()).await {
                tracing::warn!(%error, "cannot see which providers there are");
            }
        }
    };
    let served = tokio::select! {
        served = gateway.serve(&listener, http, stop) => served.map_err(exposed),
        () = welcoming => Ok(()),
        () = node.stopped() => Err(CliError::Internal("the data plane has stopped".into())),
    };
    drop(gateway);
    // Whoever still has it is a task that ends with this program.
    if let Some(node) = Arc::into_inner(node) {
        node.stop().await;
    }
    served
}

/// Providers that answer at once.
async fn upstream(
    context: &Context,
    args: &GatewayArgs,
    (chain, plane, store): (Arc<RpcChain>, Arc<Node>, Arc<CallStore>),
    signer: &Signer,
    models: &OnChain,
) -> Result<Arc<dyn Upstream>> {
    let sold = |(name, (_, model)): (&String, &(ModelId, RegisteredModel))| {
        Some((name.clone(), Sold::new(&model.manifest)?))
    };
    let models: BTreeMap<String, Sold> = models.iter().filter_map(sold).collect();
    if args.budget.0 == 0 || models.is_empty() {
        return Ok(Arc::new(NoProviders));
    }
    let (deposit, budget) = (args.deposit.0, args.budget.0);
    let config = Config {
        chain: chain.clone(),
        channels: chain,
        signer: signer.clone(),
        plane,
        store,
        models,
        spending: Spending {
            budget,
            deposit,
            least_left: deposit / 4,
            channels_max: args.channels.into(),
            unit_price_max: args.unit_price_max.map_or(u128::MAX, |price| price.0),
            slack_percent: SLACK_PERCENT,
            demands_max: DEMANDS,
        },
        patience: patience(args),
        race: args.race.into(),
        tries: NonZeroU64::new(TRIES),
        region: args.region,
    };
    match Providers::start(context.assembly.payer(config)).await {
        Ok(providers) => Ok(Arc::new(providers)),
        // It has none of it, and batches go on.
        Err(StartError::Chain(ChainError::Outgrown { what, .. })) => {
            context.out.step(&format!(
                "nothing is answered at once: this chain has no payment channels ({what})"
            ));
            Ok(Arc::new(NoProviders))
        }
        Err(StartError::Chain(error)) => Err(error.into()),
        Err(error @ StartError::Journal(_)) => Err(CliError::Usage(error.to_string())),
    }
}

fn patience(args: &GatewayArgs) -> Patience {
    let patience = Patience::default();
    Patience {
        batched: args.demand_after.unwrap_or(patience.batched),
        ..patience
    }
}

fn check_keys(ledger: &Ledger, settings: &Settings) -> Result<()> {
    if settings.without_key.is_none() && !ledger.keys()?.iter().any(|key| key.opens()) {
        return Err(CliError::Usage(
            "there is no API key yet: make one with surety gateway keys create --cap AMOUNT, or let requests from this \
             machine go without, with --without-key AMOUNT"
                .into(),
        ));
    }
    Ok(())
}

async fn listen(out: Output, http: SocketAddr, settings: &Settings) -> Result<(TcpListener, SocketAddr)> {
    let unusable = |e: std::io::Error| {
        CliError::Usage(format!("cannot listen on {http}: {e}; name another with --http"))
    };
    let listener = TcpListener::bind(http).await.map_err(unusable)?;
    let http = listener.local_addr().map_err(unusable)?;
    settings.check(http).map_err(exposed)?;
    if !http.ip().is_loopback() {
        out.step(&format!(
            "{http} is not this machine's alone: what is sent there, keys included, can be read on the way; put a proxy \
             with TLS before it"
        ));
    }
    Ok((listener, http))
}

fn exposed(why: Exposed) -> CliError {
    CliError::Usage(why.to_string())
}

type Texts = BTreeMap<String, Arc<dyn ModelText>>;
type OnChain = BTreeMap<String, (ModelId, RegisteredModel)>;

/// What the gateway has of each model, and what the chain has.
fn parted(offered: Offered) -> (Texts, OnChain) {
    let (mut texts, mut on_chain) = (Texts::new(), OnChain::new());
    for (name, (id, registered, codec)) in offered {
        let text = Tokenized {
            codec,
            renderer: Arc::new(chat::renderer()),
        };
        texts.insert(name.clone(), Arc::new(text));
        on_chain.insert(name, (id, registered));
    }
    (texts, on_chain)
}

/// Who has the connections of many. Whoever has a proxy before it usually has it on this machine.
fn proxies(args: &GatewayArgs) -> Vec<IpAddr> {
    let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    own.into_iter()
        .chain(args.trusted_proxy.iter().copied())
        .collect()
}

fn settings(args: &GatewayArgs) -> Settings {
    Settings {
        without_key: args.without_key.map(|cap| KeyTerms {
            cap: cap.0,
            requests_per_minute: REQUESTS_WITHOUT_KEY,
            tokens_per_minute: u32::MAX,
        }),
        calls: CALLS,
        connections: CONNECTIONS,
        connections_per_address: args.connections_per_address,
        proxies: proxies(args),
        time: CONNECTION_TIME,
        token_time: TOKEN_TIME,
        proof_time: PROOF_TIME,
        batches: BatchSettings {
            tasks: args.tasks.into(),
            ..BatchSettings::default()
        },
    }
}

type Offered = BTreeMap<String, (ModelId, RegisteredModel, TextCodec)>;

/// The models that can be asked for: those that were named, or all on the chain whose tokenizer is here.
async fn offered(context: &Context, chain: &dyn Chain, named: &[String]) -> Result<Offered> {
    let store = context.models();
    let mut offered = Offered::new();
    for name in named {
        let (id, registered) = models::registered(chain, &store, name).await?;
        // Who names it wants it here.
        let codec = models::text(&store, &registered.manifest).await?;
        offered.insert(models::name(&registered.manifest), (id, registered, codec));
    }
    if !named.is_empty() {
        return Ok(offered);
    }
    for (id, model) in chain.models(When::Finalized).await? {
        let name = models::name(&model.manifest);
        // Of several models of one name none is meant, unless one of them is here.
        let is_meant = models::registered(chain, &store, &name).await;
        let codec = match is_meant {
            Ok((meant, _)) if meant == id => models::text_here(&store, &model.manifest).await,
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        match codec {
            Ok(codec) => drop(offered.insert(name, (id, model, codec))),
            Err(error) => context.out.step(&format!("{name} is not offered: {error}")),
        }
    }
    match offered.is_empty() {
        false => Ok(offered),
        true => Err(CliError::Usage(
            "there is no model to offer: name one that surety model list calls registered, with --model"
                .into(),
        )),
    }
}
