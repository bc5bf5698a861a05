//! `surety serve`: what web pages cannot do by themselves, over HTTP.

mod loaded;

use std::{
    future::pending,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use async_trait::async_trait;
use serde::Serialize;
use surety_chain_client::Chain;
use surety_client::{
    http::{self, Backend, FoundModel, Kept, Models, Upkeep, router},
    serve::welcome,
};
use surety_models::{ModelStore, tokens::TextCodec};
use surety_network::DataPlane;
use tokio::net::TcpListener;

use loaded::Loaded;

use super::Context;
use crate::{
    args::ServeArgs,
    chat,
    error::{CliError, Result},
    models,
};

/// Where it can be reached.
#[derive(Serialize)]
struct Up {
    http: String,
    sources: Vec<String>,
}

pub(super) async fn run(context: &Context, args: &ServeArgs) -> Result<()> {
    // Without a key nothing that is demanded of an input is shown on the chain.
    let signer = match context.config.key_file.exists() {
        true => Some(context.key()?.signer),
        false => None,
    };
    let chain = context.patient_chain().await?;
    let node = context.node(&*chain, &context.config.task).await?;
    let kept = Kept::open(context.config.home.join("serve-inputs"), &node).await?;
    let kept = Arc::new(kept);
    welcome(&chain, &node, kept.clone()).await?;
    let unusable = |e: &dyn std::fmt::Display| {
        CliError::Usage(format!(
            "cannot listen on {}: {e}; name another with --http",
            args.http
        ))
    };
    let listener = TcpListener::bind(args.http).await.map_err(|e| unusable(&e))?;
    let address = listener.local_addr().map_err(|e| unusable(&e))?;
    let endpoints = node.endpoints();
    let up = Up {
        http: format!("http://{address}"),
        sources: endpoints.iter().map(ToString::to_string).collect(),
    };
    let backend = Backend {
        models: Arc::new(Found {
            chain: chain.clone(),
            store: context.models(),
            codecs: Loaded::new(),
            may_fetch: args.fetch_tokenizers,
        }),
        renderer: Arc::new(chat::renderer()),
        chain,
        plane: Arc::new(node),
        home: context.config.home.clone(),
        kept,
    };
    let routes = router(backend.clone(), &args.allow_origin).map_err(|e| CliError::Usage(e.to_string()))?;
    if signer.is_none() {
        context.out.step(&format!(
            "there is no key at {}: pieces of inputs that providers demand on the chain are not shown, and a client loses \
             its lock by that; make one with surety account new and send it 1 SURE",
            context.config.key_file.display()
        ));
    }
    if !address.ip().is_loopback() {
        context.out.step(&format!(
            "{address} is not this machine's alone: whoever reaches it can have inputs kept here, and reads what is sent on \
             the way; put a proxy with TLS and limits of its own before it"
        ));
    }
    context
        .out
        .result(&up, || format!("serving {} until stopped", up.http))?;
    // Whoever has a proxy before it has it on this machine, with limits of its own.
    let proxies = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    tokio::select! {
        () = surety_http_server::serve(&listener, routes, http::LIMITS, &proxies, pending()) => {
            Err(CliError::Internal("the HTTP server has ended".into()))
        }
        () = Upkeep::new(backend.clone(), signer).run() => Ok(()),
        () = backend.plane.stopped() => Err(CliError::Internal("the data plane has stopped".into())),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The chain's models, with the tokenizers that were asked for so far.
struct Found {
    chain: Arc<dyn Chain>,
    store: ModelStore,
    codecs: Loaded<TextCodec>,
    /// Whether what somebody asks for may be downloaded.
    may_fetch: bool,
}

#[async_trait]
impl Models for Found {
    async fn find(&self, named: &str) -> std::result::Result<FoundModel, String> {
        let found = models::registered(&*self.chain, &self.store, named).await;
        let (id, model) = found.map_err(|e| e.to_string())?;
        let (store, manifest) = (self.store.clone(), model.manifest.clone());
        let may_fetch = self.may_fetch;
        let load = async move {
            let loaded = match may_fetch {
                true => models::text(&store, &manifest).await,
                false => models::text_here(&store, &manifest).await,
            };
            loaded.map_err(|e| e.to_string())
        };
        let codec = self.codecs.get(id, load).await?;
        Ok((id, model, codec))
    }
}
