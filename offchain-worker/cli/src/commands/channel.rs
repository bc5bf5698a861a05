//! `surety channel`: deposits at providers that answer at once.

use serde::Serialize;
use surety_chain_client::{Call, Chain, ChannelChain, ChannelRules, ChannelView, When, address, short};

use super::{Context, account};
use crate::{
    amount::{Amount, Plancks},
    args::{ChannelCommand, OpenArgs},
    error::{CliError, Result},
    keys::parse_account,
    output::table,
};

pub(super) async fn run(context: &Context, command: ChannelCommand) -> Result<()> {
    match command {
        ChannelCommand::List => list(context).await,
        ChannelCommand::Open(args) => open(context, &args).await,
        ChannelCommand::TopUp { channel, amount } => {
            let amount = amount.0;
            account::submit(context, Call::TopUp { channel, amount }).await
        }
        ChannelCommand::Close { channel } => close(context, channel).await,
    }
}

/// A channel, as it is listed. Amounts are in plancks, as text.
#[derive(Serialize)]
struct Listed {
    channel: u64,
    provider: String,
    deposit: Plancks,
    paid: Plancks,
    /// What its provider has earned in final batches, and not asked for yet.
    earned: Plancks,
    left: Plancks,
    state: &'static str,
    /// On the chain's clock: the last time of this state.
    until: u32,
}

impl Listed {
    fn new(view: &ChannelView, now: u32) -> Self {
        let purse = &view.purse;
        let until = purse.closing.map_or(view.expiry, |until| until.min(view.expiry));
        let until = until.max(purse.held_until);
        Self {
            channel: view.channel,
            provider: address(&view.payee),
            deposit: Plancks(purse.deposit),
            paid: Plancks(purse.paid),
            earned: Plancks(purse.counted.saturating_sub(purse.paid)),
            left: Plancks(purse.deposit.saturating_sub(purse.paid.max(purse.counted))),
            state: match purse.closing {
                _ if until < now => "over",
                Some(_) => "closing",
                None => "open",
            },
            until,
        }
    }
}

async fn list(context: &Context) -> Result<()> {
    let account = context.key()?.signer.account().clone();
    let chain = context.rpc().await?;
    let when = When::At(chain.block(When::Finalized).await?.hash);
    let now = ChannelChain::time(&*chain, when).await?;
    let channels = chain.channels_by(when, &account).await?;
    let listed: Vec<Listed> = channels.iter().map(|view| Listed::new(view, now)).collect();
    context.out.result(&listed, || {
        let mut table = table(["channel", "provider", "deposit", "paid", "left", "", "until"]);
        for (one, view) in listed.iter().zip(&channels) {
            table.add_row([
                one.channel.to_string(),
                short(&view.payee),
                Amount(one.deposit.0).to_string(),
                Amount(one.paid.0).to_string(),
                Amount(one.left.0).to_string(),
                one.state.into(),
                one.until.to_string(),
            ]);
        }
        table.to_string()
    })
}

async fn open(context: &Context, args: &OpenArgs) -> Result<()> {
    let key = context.key()?.signer.account().clone();
    let chain = context.rpc().await?;
    let rules: ChannelRules = chain.rules(When::Finalized).await?;
    let now = ChannelChain::time(&*chain, When::Finalized).await?;
    if args.deposit.0 < rules.min_deposit {
        let least = Amount(rules.min_deposit);
        return Err(CliError::Usage(format!(
            "a channel has a deposit of {least} at least"
        )));
    }
    let call = Call::Open {
        payee: parse_account(&args.provider)?,
        key,
        deposit: args.deposit.0,
        expiry: now.saturating_add(rules.max_life),
    };
    account::submit(context, call).await
}

async fn close(context: &Context, channel: u64) -> Result<()> {
    let chain = context.rpc().await?;
    let view = chain.channel(When::Finalized, channel).await?;
    let view = view.ok_or_else(|| {
        CliError::Usage(format!(
            "the chain has no channel {channel}: it has ended, or was never opened; see surety channel list"
        ))
    })?;
    let now = ChannelChain::time(&*chain, When::Finalized).await?;
    let is_over = view.purse.refund(now, view.expiry).is_some();
    let call = match is_over {
        true => Call::End { channel },
        false => Call::Close { channel },
    };
    account::submit(context, call).await?;
    if !is_over {
        context.out.step(&format!(
            "what is left comes back after its provider has had its time: surety channel close {channel} again then, or \
             leave it to a gateway that runs"
        ));
    }
    Ok(())
}
