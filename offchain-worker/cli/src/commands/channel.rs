//! `surety channel`: deposits at providers that answer at once.

use serde::Serialize;
use surety_chain_client::{
    AccountId, Call, Chain, ChannelChain, ChannelRules, ChannelView, When, address, short,
};

use super::{Context, account, offers};
use crate::{
    amount::{Amount, Plancks},
    args::{ChannelCommand, OpenArgs},
    error::{CliError, Result},
    keys::parse_account,
    output::table,
};

pub(super) async fn run(context: &Context, command: ChannelCommand) -> Result<()> {
    match command {
        ChannelCommand::Offers(args) => offers::list(context, &args).await,
        ChannelCommand::List { incoming } => list(context, incoming).await,
        ChannelCommand::Open(args) => open(context, &args).await,
        ChannelCommand::TopUp { channel, amount } => {
            let amount = amount.0;
            account::submit(context, Call::TopUp { channel, amount }).await
        }
        ChannelCommand::Close {
            channel,
            agreed: false,
        } => close(context, channel).await,
        ChannelCommand::Close {
            channel,
            agreed: true,
        } => give_back(context, channel).await,
    }
}

/// A channel, as it is listed. Amounts are in plancks, as text.
#[derive(Serialize)]
struct Listed {
    channel: u64,
    payer: String,
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
            payer: address(&view.payer),
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

async fn list(context: &Context, is_incoming: bool) -> Result<()> {
    let account = context.key()?.signer.account().clone();
    let chain = context.rpc().await?;
    let when = When::At(chain.block(When::Finalized).await?.hash);
    let now = ChannelChain::time(&*chain, when).await?;
    let channels = match is_incoming {
        true => {
            chain
                .channels_of(when, &stash_of(&*chain, &account).await?)
                .await?
        }
        false => chain.channels_by(when, &account).await?,
    };
    let listed: Vec<Listed> = channels.iter().map(|view| Listed::new(view, now)).collect();
    context.out.result(&listed, || {
        let other = if is_incoming { "payer" } else { "provider" };
        let mut table = table(["channel", other, "deposit", "paid", "left", "", "until"]);
        for (one, view) in listed.iter().zip(&channels) {
            table.add_row([
                one.channel.to_string(),
                short(if is_incoming { &view.payer } else { &view.payee }),
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

/// Whom a provider's key stands for: its own stash, or that of which it is the agent.
async fn stash_of(chain: &dyn Chain, account: &AccountId) -> Result<AccountId> {
    let stash = chain.agent_stash(When::Finalized, account).await?;
    Ok(stash.unwrap_or_else(|| account.clone()))
}

async fn known(chain: &dyn ChannelChain, channel: u64) -> Result<ChannelView> {
    let view = chain.channel(When::Finalized, channel).await?;
    view.ok_or_else(|| {
        CliError::Usage(format!(
            "the chain has no channel {channel}: it has ended, or was never opened; see surety channel list"
        ))
    })
}

async fn close(context: &Context, channel: u64) -> Result<()> {
    let chain = context.rpc().await?;
    let view = known(&*chain, channel).await?;
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

async fn give_back(context: &Context, channel: u64) -> Result<()> {
    let account = context.key()?.signer.account().clone();
    let chain = context.rpc().await?;
    let view = known(&*chain, channel).await?;
    check_payee(&*chain, &account, &view).await?;
    check_paid(&*chain, &view).await?;
    account::submit(context, Call::CloseAgreed { channel }).await
}

/// Says what its provider would give up of a channel that the chain has counted and still pays.
async fn check_paid(chain: &dyn ChannelChain, view: &ChannelView) -> Result<()> {
    let pending = view.purse.pending(0);
    let standing = chain.standing(When::Finalized, &view.payee).await?;
    // With a conviction all that was not paid is void.
    let pays = standing.is_some_and(|standing| standing.since_channel <= view.channel);
    if pending == 0 || !pays {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "channel {} still pays you {}, which is counted: surety provider up, or drain, redeems that when it is due; \
         then close it again",
        view.channel,
        Amount(pending)
    )))
}

/// Says with which key a channel's provider gives money back, where this is another one.
async fn check_payee(chain: &dyn Chain, account: &AccountId, view: &ChannelView) -> Result<()> {
    if *account == view.payee || stash_of(chain, account).await? == view.payee {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "channel {} pays {}: name the key of that stash, or of its agent, with --key-file; its payer closes it without --agreed",
        view.channel,
        address(&view.payee)
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{FakeChain, Signer, StandingView, sample};

    use super::*;

    #[tokio::test]
    async fn a_providers_stash_and_its_agent_give_money_back_and_others_learn_who_can() {
        let chain = FakeChain::new();
        let [stash, agent, payer] = ["//Stash", "//Agent", "//Payer"].map(|uri| {
            let signer = Signer::from_uri(uri).unwrap();
            signer.account().clone()
        });
        chain.change(|state| state.agents.insert(agent.clone(), stash.clone()));
        chain.finalize();
        let view = ChannelView {
            payee: stash.clone(),
            payer: payer.clone(),
            ..sample::channels::channel()
        };
        for account in [&stash, &agent] {
            check_payee(&chain, account, &view).await.unwrap();
        }
        let refused = check_payee(&chain, &payer, &view).await.unwrap_err().to_string();
        assert!(
            refused.contains(&address(&stash)) && refused.contains("--key-file"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn what_is_counted_and_not_paid_is_not_given_back_while_the_chain_pays_it() {
        let chain = FakeChain::new();
        let mut view = sample::channels::channel();
        let stands_since = |since_channel| {
            let provider = view.payee.clone();
            let standing = StandingView {
                provider: provider.clone(),
                since_channel,
                ..sample::channels::standing()
            };
            chain.change(|state| state.channels.standings.insert(provider, standing));
            chain.finalize();
        };
        stands_since(view.channel);
        (view.purse.counted, view.purse.signed, view.purse.paid) = (6, 6, 4);
        let refused = check_paid(&chain, &view).await.unwrap_err().to_string();
        let left = Amount(2).to_string();
        assert!(refused.contains(&left) && refused.contains("drain"), "{refused}");
        // It is paid, or was signed for no more, or was convicted since.
        for (signed, paid) in [(6, 6), (4, 4)] {
            (view.purse.signed, view.purse.paid) = (signed, paid);
            check_paid(&chain, &view).await.unwrap();
        }
        (view.purse.signed, view.purse.paid) = (6, 4);
        stands_since(view.channel + 1);
        check_paid(&chain, &view).await.unwrap();
    }
}
