//! `surety gateway`: OpenAI's interface in front of the chain.

mod desk;
mod keys;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use serde::Serialize;
use surety_chain_client::{AccountId, Chain, RegisteredModel, When, address};
use surety_client::serve::welcome;
use surety_gateway::{
    BatchSettings, Exposed, Gateway, KeyTerms, Ledger, ModelText, NoProviders, Settings, Tokenized,
};
use surety_models::tokens::TextCodec;
use surety_network::DataPlane;
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
};

/// Connections, and requests that are answered, at once.
const CONNECTIONS: u32 = 256;
const CALLS: usize = 64;
/// Of a connection: for a file of a batch over a slow line.
const CONNECTION_TIME: Duration = Duration::from_secs(600);
const TOKEN_TIME: Duration = Duration::from_secs(60);
/// How often it is looked which providers there are.
const WELCOME: Duration = Duration::from_secs(60);
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

/// Where the gateway that runs in this home is told what to do with its keys.
fn desk_path(context: &Context) -> Result<PathBuf> {
    Ok(context.home()?.join("gateway.sock"))
}

/// Where it can be reached.
#[derive(Serialize)]
struct Up {
    http: String,
    account: String,
    models: Vec<String>,
    sources: Vec<String>,
}

async fn up(context: &Context, args: &GatewayArgs) -> Result<()> {
    let signer = context.key()?.signer;
    let ledger = Arc::new(ledger(context)?);
    let settings = settings(args);
    check_keys(&ledger, &settings)?;
    let (listener, http) = listen(args.http).await?;
    settings.check(http).map_err(exposed)?;
    // Whoever has the ledger has the desk, too.
    let mut desk = JoinSet::new();
    desk.spawn(desk::Desk::open(&desk_path(context)?)?.serve(ledger.clone()));
    let chain = context.patient_chain().await?;
    let offered = offered(context, &*chain, &args.model).await?;
    let node = context.node(&*chain, &context.config.task).await?;
    let client: Arc<AccountId> = Arc::new(signer.account().clone());
    welcome(&chain, &node, client.clone()).await?;
    let up = Up {
        http: format!("http://{http}/v1"),
        account: address(signer.account()),
        models: offered.keys().cloned().collect(),
        sources: node.endpoints().iter().map(ToString::to_string).collect(),
    };
    let (texts, on_chain) = parted(offered);
    let node = Arc::new(node);
    let terms = Terms {
        redundancy: args.redundancy,
        security: args.security.security(),
    };
    let home = context.config.home.clone();
    let tasks = ChainTasks::new(chain.clone(), node.clone(), signer, home, on_chain, terms);
    let gateway = Gateway::new(Arc::new(NoProviders), Arc::new(tasks), texts, ledger, settings);
    if !http.ip().is_loopback() {
        context.out.step(&format!(
            "{http} is not this machine's alone: what is sent there, keys included, can be read on the way; put a proxy \
             with TLS before it"
        ));
    }
    let (_stop, mut stopped) = stop_signal()?;
    context.out.result(&up, || {
        format!(
            "the gateway is up: {} for batches of {}, paid by {}, until stopped",
            up.http,
            up.models.join(", "),
            up.account
        )
    })?;
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

async fn listen(http: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let unusable = |e: std::io::Error| {
        CliError::Usage(format!("cannot listen on {http}: {e}; name another with --http"))
    };
    let listener = TcpListener::bind(http).await.map_err(unusable)?;
    let http = listener.local_addr().map_err(unusable)?;
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

fn settings(args: &GatewayArgs) -> Settings {
    Settings {
        without_key: args.without_key.map(|cap| KeyTerms {
            cap: cap.0,
            requests_per_minute: REQUESTS_WITHOUT_KEY,
            tokens_per_minute: u32::MAX,
        }),
        calls: CALLS,
        connections: CONNECTIONS,
        time: CONNECTION_TIME,
        token_time: TOKEN_TIME,
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
