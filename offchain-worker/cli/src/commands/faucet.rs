//! `surety faucet`: money to begin with, for newcomers of a test network.

use serde::Serialize;
use surety_chain_client::{AccountId, Balance, Chain, When, address};
use surety_faucet::{Faucet, Limits, Purse, Site, StartError, machine_clock, serve};
use tokio::net::TcpListener;

use super::{Context, worker::stop_signal};
use crate::{
    amount::{Amount, Plancks},
    args::{FaucetArgs, FaucetCommand},
    error::{CliError, Result},
    output::Output,
};

/// Where it can be reached. Amounts are in plancks, as text.
#[derive(Serialize)]
struct Up {
    http: String,
    account: String,
    amount: Plancks,
}

pub(super) async fn run(context: &Context, command: FaucetCommand) -> Result<()> {
    match command {
        FaucetCommand::Up(args) => up(context, &args).await,
    }
}

/// What a faucet says that it has sent. Where it refuses, money may be on its way all the same: of an answer
/// that was missed.
pub(super) async fn ask(out: Output, url: &str, account: &AccountId) -> Balance {
    out.step(&format!("asking the faucet at {url}"));
    match surety_faucet::ask(url, account).await {
        Ok(given) => {
            out.step(&format!("it sends {}", Amount(given.amount)));
            given.amount
        }
        Err(error) => {
            out.step(&error.to_string());
            0
        }
    }
}

/// Waits until an account has so much.
pub(super) async fn wait_for(
    out: Output,
    chain: &dyn Chain,
    account: &AccountId,
    enough: Balance,
) -> Result<()> {
    let waiting = out.spinner();
    waiting.set_message("waiting for the money");
    let mut blocks = chain.finalized_blocks().await?;
    while chain.funds(When::Finalized, account).await?.free < enough {
        blocks.next().await?;
    }
    waiting.finish_and_clear();
    Ok(())
}

async fn up(context: &Context, args: &FaucetArgs) -> Result<()> {
    let purse = Purse {
        signer: context.key()?.signer,
        amount: args.amount.0,
    };
    let up = Up {
        http: format!("http://{}", args.http),
        account: address(purse.signer.account()),
        amount: Plancks(args.amount.0),
    };
    let chain = context.patient_chain().await?;
    let limits = Limits {
        per_client: args.per_client,
        per_hour: args.per_hour,
    };
    let file = context.home()?.join("faucet.redb");
    let faucet = Faucet::open(chain, purse, limits, (&file, machine_clock())).await?;
    let listener = TcpListener::bind(args.http).await.map_err(|e| {
        CliError::Usage(format!(
            "cannot listen on {}: {e}; name another with --http",
            args.http
        ))
    })?;
    let (_stop, mut stopped) = stop_signal()?;
    context.out.result(&up, || {
        format!(
            "giving {} from {} to whoever asks at {} until stopped",
            Amount(up.amount.0),
            up.account,
            up.http
        )
    })?;
    let site = Site {
        faucet,
        proxies: args
            .trusted_proxy
            .iter()
            .map(|address| address.to_canonical())
            .collect(),
    };
    let stop = async move {
        // The sender lives as long as this function.
        stopped.wait_for(|is_stopped| *is_stopped).await.ok();
    };
    serve(&listener, site, stop).await;
    Ok(())
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Chain(error) => Self::Chain(error),
            StartError::RealMoney | StartError::TooLittle { .. } => Self::Usage(error.to_string()),
            StartError::Store(error) => Self::Claims(error),
        }
    }
}
