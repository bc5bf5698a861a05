//! `surety provider init` and `surety verifier init`: from a new machine to one that can be started.
//!
//! Each step looks at what is there before it does anything: whoever is interrupted calls it again. What was
//! sent before and is not final yet is waited for first, so that nothing is paid or bonded twice.

mod estimate;
mod wanted;

use std::path::Path;

use serde::Serialize;
use surety_chain_client::{AccountId, Balance, Call, Chain, Signer, StakeInfo, Until, When, address, short};
use surety_host::{Speeds, machine};
use surety_types::{
    model::{ModelManifest, Operation},
    stake::Role,
};

use super::{
    Context, faucet, model,
    payouts::Payouts,
    reach::{self, Reach},
};
use crate::{
    SURE,
    amount::{Amount, Plancks},
    args::InitArgs,
    error::{CliError, Result},
    keys::{self, Key},
    models,
    output::{Output, table},
};
use estimate::{Estimate, Speed};
use wanted::{Room, Wanted};

/// What a stash keeps for fees, its own and its agent's, and below what it is asked for that again.
const FEES: Balance = 10 * SURE;
const FEES_MIN: Balance = 3 * SURE;

/// What there is now. Amounts are in plancks, as text.
#[derive(Debug, Serialize)]
struct Ready {
    stash: String,
    stash_key: String,
    agent: String,
    bonded: Plancks,
    model: Option<String>,
    /// Why this machine does not get models that more tasks ask for.
    passed_over: Vec<String>,
    processor: String,
    cores: u16,
    memory_mib: u32,
    /// Whether others reach it; a verifier need not be reached.
    reach: Vec<Reach>,
    /// What a provider may earn; nothing where too few tasks say it.
    estimate: Option<Estimate>,
    /// Why there is no estimate.
    #[serde(skip)]
    unestimated: Option<String>,
    next: &'static str,
    #[serde(skip)]
    is_provider: bool,
}

pub(super) async fn run(context: &Context, role: Role, args: &InitArgs) -> Result<()> {
    let home = &context.config.home;
    let stash_key = args.stash_key.clone().unwrap_or_else(|| home.join("stash.key"));
    let agent = key(context, &context.config.key_file, "agent, which works")?;
    let stash = key(context, &stash_key, "stash, which holds the stake")?;
    let funder = args.fund_from.as_deref().map(keys::load).transpose()?;
    let chain = context.chain().await?;
    // A model that there is not is said before any money moves.
    let store = context.models();
    let is_here = |model| store.find(model).is_ok();
    let wanted = Wanted::new(&*chain, is_here, Room::here(home), args.model.as_deref()).await?;
    let setup = Setup {
        out: context.out,
        chain: &*chain,
        role,
        stash: stash.signer,
        agent: agent.signer,
        source: match funder {
            Some(key) => Source::Key(Box::new(key.signer)),
            None => Source::others(context.config.faucet.as_deref()),
        },
    };
    setup.prepare(args.bond.0).await?;
    for lack in &wanted.passed_over {
        context.out.step(lack);
    }
    let missing = wanted.model.as_ref().filter(|manifest| !is_here(manifest.id()));
    if let Some(name) = missing.map(models::name) {
        context
            .out
            .step(&format!("fetching {name}, which the chain is asked for"));
        model::fetched(context, &name).await?;
    }
    let reach = match role {
        Role::Provider => reached(context, &*chain).await,
        Role::Verifier => Vec::new(),
    };
    let estimate = match (&wanted.model, role) {
        (Some(model), Role::Provider) => Some(estimated(context, &*chain, &wanted, model).await?),
        _ => None,
    };
    let (estimate, unestimated) = match estimate {
        Some(Ok(estimate)) => (Some(estimate), None),
        Some(Err(reason)) => (None, Some(reason)),
        None => (None, None),
    };
    let device = machine::profile(context.config.provider.work.threads);
    let ready = Ready {
        stash: address(setup.stash.account()),
        stash_key: stash_key.display().to_string(),
        agent: address(setup.agent.account()),
        bonded: Plancks(setup.stake().await?.map_or(0, |stake| stake.bonded)),
        model: wanted.model.as_ref().map(models::name),
        passed_over: wanted.passed_over,
        estimate,
        unestimated,
        processor: device.name.to_string(),
        cores: device.cores,
        memory_mib: device.memory_mib,
        reach,
        next: match role {
            Role::Provider => "surety provider up",
            Role::Verifier => "surety verifier up",
        },
        is_provider: role == Role::Provider,
    };
    context.out.result(&ready, || ready.text())
}

/// What this machine may earn with a model, or why that cannot be said.
async fn estimated(
    context: &Context,
    chain: &dyn Chain,
    wanted: &Wanted,
    model: &ModelManifest,
) -> Result<std::result::Result<Estimate, String>> {
    let market = wanted.newest.market(model.id());
    let payouts = Payouts::of(chain, market.newest_payments()).await?;
    let operation = model.operations.first().copied().unwrap_or(Operation::Embed);
    let measured = Speeds::open(&context.config.home).last(model.id(), operation);
    let assumed = (context.config.provider.units_per_second, 1_000);
    let (units, millis) = measured.unwrap_or(assumed);
    let speed = Speed {
        units,
        millis,
        is_measured: measured.is_some(),
    };
    Ok(market.estimate(payouts, speed))
}

/// Whether others reach what this provider will listen on. It is no reason to stop: ports may be forwarded
/// later.
async fn reached(context: &Context, chain: &dyn Chain) -> Vec<Reach> {
    context
        .out
        .step("asking peers of the chain to connect to this machine");
    let all = reach::try_out(chain, &context.config.provider.data).await;
    all.unwrap_or_else(|error| {
        context
            .out
            .step(&format!("cannot try whether others reach it: {error}"));
        Vec::new()
    })
}

/// The key in a file; a new one where there is no file.
pub(super) fn key(context: &Context, path: &Path, whose: &str) -> Result<Key> {
    if !path.exists() {
        let account = keys::create(path)?;
        context.out.step(&format!(
            "{} is the new {whose}: its twelve words are in {}. Copy them to a safe place",
            address(&account),
            path.display()
        ));
    }
    Ok(keys::load(path)?)
}

/// Where the money comes from that the stash lacks.
enum Source {
    /// The account of this key.
    Key(Box<Signer>),
    /// A faucet, at this URL.
    Faucet(String),
    /// Somebody who is asked to send it.
    Somebody,
}

impl Source {
    fn others(faucet: Option<&str>) -> Self {
        faucet.map_or(Self::Somebody, |url| Self::Faucet(url.to_owned()))
    }
}

/// The accounts of a worker, and the chain that is to know them.
struct Setup<'a> {
    out: Output,
    chain: &'a dyn Chain,
    role: Role,
    stash: Signer,
    agent: Signer,
    source: Source,
}

impl Setup<'_> {
    /// Sees to it that the stash has bonded, and that it and the agent agree on each other.
    async fn prepare(&self, bond: Balance) -> Result<()> {
        let funder = match &self.source {
            Source::Key(signer) => Some(&**signer),
            Source::Faucet(_) | Source::Somebody => None,
        };
        for signer in [Some(&self.stash), Some(&self.agent), funder]
            .into_iter()
            .flatten()
        {
            self.settle(signer.account()).await?;
        }
        self.fund(bond).await?;
        self.enlist(bond).await
    }

    /// Waits until all that an account has sent so far is final: what is on its way would be sent again.
    async fn settle(&self, account: &AccountId) -> Result<()> {
        let (mut sent, mut blocks) = (
            self.chain.sent(account).await?,
            self.chain.finalized_blocks().await?,
        );
        let all = sent.all;
        if sent.finalized < all {
            let text = format!("waiting until what {} has sent before is final", short(account));
            self.out.step(&text);
        }
        while sent.finalized < all {
            blocks.next().await?;
            sent = self.chain.sent(account).await?;
        }
        Ok(())
    }

    async fn stake(&self) -> Result<Option<StakeInfo>> {
        Ok(self.chain.stake(When::Finalized, self.stash.account()).await?)
    }

    async fn free(&self, account: &AccountId) -> Result<Balance> {
        Ok(self.chain.funds(When::Finalized, account).await?.free)
    }

    async fn send(&self, signer: &Signer, call: Call, what: &str) -> Result<()> {
        self.out.step(what);
        self.chain.submit(signer, call, Until::Finalized.into()).await?;
        Ok(())
    }

    /// What has to be bonded still.
    async fn unbonded(&self, bond: Balance) -> Result<Balance> {
        match self.stake().await? {
            Some(stake) if stake.role != self.role => Err(CliError::Usage(format!(
                "{} has bonded in the other role: take that stake out first, or use another --stash-key",
                address(self.stash.account())
            ))),
            stake => Ok(bond.saturating_sub(stake.map_or(0, |stake| stake.bonded))),
        }
    }

    /// Sees to it that the stash has what it is to bond, and what it and its agent need for fees.
    async fn fund(&self, bond: Balance) -> Result<()> {
        let unbonded = self.unbonded(bond).await?;
        let (to, free) = (self.stash.account(), self.free(self.stash.account()).await?);
        let enough = unbonded.saturating_add(FEES_MIN);
        if free >= enough {
            return Ok(());
        }
        let needed = unbonded.saturating_add(FEES);
        let missing = needed.saturating_sub(free);
        let given = match &self.source {
            Source::Key(signer) => {
                let call = Call::Transfer {
                    to: to.clone(),
                    amount: missing,
                };
                let what = format!("sending {} to the stash", Amount(missing));
                return self.send(signer, call, &what).await;
            }
            Source::Faucet(url) => faucet::ask(self.out, url, to).await,
            Source::Somebody => 0,
        };
        if free.saturating_add(given) >= enough {
            return faucet::wait_for(self.out, self.chain, to, enough).await;
        }
        self.out.step(&format!(
            "send {} to {}; this goes on by itself when they are there (Ctrl-C and the same command later do as well)",
            Amount(missing.saturating_sub(given)),
            address(to)
        ));
        faucet::wait_for(self.out, self.chain, to, enough).await
    }

    /// Bonds what is missing and names the agent, in one extrinsic where both are to be done: a stash that
    /// has bonded and named nobody would be of no use.
    async fn enlist(&self, bond: Balance) -> Result<()> {
        let (stash, agent) = (self.stash.account(), self.agent.account());
        let is_confirmed = match self.chain.agent_stash(When::Finalized, agent).await? {
            Some(of) if of != *stash => {
                return Err(CliError::Usage(format!(
                    "the key in the key file is the agent of {}: use that one's --stash-key, or another --key-file",
                    address(&of)
                )));
            }
            of => of.is_some(),
        };
        let pending = self.chain.pending_agent(When::Finalized, stash).await?;
        let amount = self.unbonded(bond).await?;
        let (mut calls, mut words) = (Vec::new(), Vec::new());
        if amount > 0 {
            let role = self.role;
            calls.push(Call::Bond { role, amount });
            words.push(format!("bonding {}", Amount(amount)));
        }
        if !is_confirmed && pending.as_ref() != Some(agent) {
            calls.push(Call::SetAgent { agent: agent.clone() });
            words.push("naming the agent".into());
        }
        if calls.len() > 1 {
            calls = vec![Call::Batch(calls)];
        }
        for call in calls {
            self.send(&self.stash, call, &words.join(" and ")).await?;
        }
        if is_confirmed {
            return Ok(());
        }
        // Signed by another key, so that it is no part of the batch.
        let stash = stash.clone();
        self.send(&self.agent, Call::ConfirmAgent { stash }, "confirming the agent")
            .await
    }
}

impl Ready {
    fn text(&self) -> String {
        let mut rows = table(["stash", &self.stash]);
        rows.add_row(["its key", &format!("{}: keep it elsewhere", self.stash_key)]);
        rows.add_row(["bonded", &Amount(self.bonded.0).to_string()]);
        rows.add_row(["agent", &self.agent]);
        let device = format!(
            "{}, {} threads, {} MiB",
            self.processor, self.cores, self.memory_mib
        );
        rows.add_row(["machine", &device]);
        if !self.reach.is_empty() {
            rows.add_row(["reached", &reach::summary(&self.reach).1]);
        }
        let none = match self.passed_over.is_empty() {
            true => "none of those that the chain knows can be fetched by name: surety model list",
            false => "none that this machine has room for",
        };
        rows.add_row(["model", self.model.as_deref().unwrap_or(none)]);
        for lack in &self.passed_over {
            rows.add_row(["passed over", lack]);
        }
        if let Some(estimate) = &self.estimate {
            rows.add_row(["may earn", &estimate.text()]);
            rows.add_row(["by", &estimate.reasons()]);
        }
        if let Some(reason) = &self.unestimated {
            rows.add_row(["may earn", reason]);
        }
        if self.is_provider {
            let measured = "where a device is used, several times a day, for a minute: benchmark = \"off\" in \
                            [provider] of config.toml for never, \"on\" for the processor, too";
            rows.add_row(["measured", measured]);
        }
        rows.add_row(["next", self.next]);
        rows.to_string()
    }
}

#[cfg(test)]
#[path = "init_tests.rs"]
mod tests;
