//! `surety provider init` and `surety verifier init`: from a new machine to one that can be started.
//!
//! Each step looks at what is there before it does anything: whoever is interrupted calls it again. What was
//! sent before and is not final yet is waited for first, so that nothing is paid or bonded twice.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::Serialize;
use surety_chain_client::{AccountId, Balance, Call, Chain, Signer, StakeInfo, Until, When, address, short};
use surety_host::machine;
use surety_models::known;
use surety_types::{ModelId, model::ModelManifest, stake::Role, task::TaskState};

use super::{Context, model};
use crate::{
    SURE,
    amount::{Amount, Plancks},
    args::InitArgs,
    error::{CliError, Result},
    keys::{self, Key},
    models,
    output::{Output, table},
};

/// What a stash keeps for fees, its own and its agent's, and below what it is asked for that again.
const FEES: Balance = 10 * SURE;
const FEES_MIN: Balance = SURE;
/// Tasks that are looked at for what is asked for.
const TASKS_MAX: u32 = 256;
/// Between two looks for money that somebody is asked to send.
const PAUSE: Duration = Duration::from_secs(3);

/// What there is now. Amounts are in plancks, as text.
#[derive(Debug, Serialize)]
struct Ready {
    stash: String,
    stash_key: String,
    agent: String,
    bonded: Plancks,
    model: Option<String>,
    processor: String,
    cores: u16,
    memory_mib: u32,
    /// What such a task has paid one provider, in the middle of those that the chain still knows.
    usual_payment: Option<Plancks>,
    next: &'static str,
}

pub(super) async fn run(context: &Context, role: Role, args: &InitArgs) -> Result<()> {
    let home = &context.config.home;
    let stash_key = args.stash_key.clone().unwrap_or_else(|| home.join("stash.key"));
    let agent = key(context, &context.config.key_file, "agent, which works")?;
    let stash = key(context, &stash_key, "stash, which holds the stake")?;
    let funder = args.fund_from.as_deref().map(keys::load).transpose()?;
    let chain = context.chain().await?;
    // A model that there is not is said before any money moves.
    let wanted = Wanted::new(&*chain, args.model.as_deref()).await?;
    let setup = Setup {
        out: context.out,
        chain: &*chain,
        role,
        stash: stash.signer,
        agent: agent.signer,
    };
    setup.prepare(args.bond.0, funder.as_ref()).await?;
    if let Some(name) = wanted.to_fetch(context) {
        context
            .out
            .step(&format!("fetching {name}, which the chain is asked for"));
        model::fetched(context, &name).await?;
    }
    let device = machine::profile(context.config.provider.work.threads);
    let ready = Ready {
        stash: address(setup.stash.account()),
        stash_key: stash_key.display().to_string(),
        agent: address(setup.agent.account()),
        bonded: Plancks(setup.stake().await?.map_or(0, |stake| stake.bonded)),
        usual_payment: wanted.usual_payment().map(Plancks),
        model: wanted.model.map(|manifest| models::name(&manifest)),
        processor: String::from_utf8_lossy(&device.name).into_owned(),
        cores: device.cores,
        memory_mib: device.memory_mib,
        next: match role {
            Role::Provider => "surety provider up",
            Role::Verifier => "surety verifier up",
        },
    };
    context.out.result(&ready, || ready.text())
}

/// The key in a file; a new one where there is no file.
fn key(context: &Context, path: &Path, whose: &str) -> Result<Key> {
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

/// The accounts of a worker, and the chain that is to know them.
struct Setup<'a> {
    out: Output,
    chain: &'a dyn Chain,
    role: Role,
    stash: Signer,
    agent: Signer,
}

impl Setup<'_> {
    /// Sees to it that the stash has bonded, and that it and the agent agree on each other.
    async fn prepare(&self, bond: Balance, funder: Option<&Key>) -> Result<()> {
        let signers = [
            Some(&self.stash),
            Some(&self.agent),
            funder.map(|key| &key.signer),
        ];
        for signer in signers.into_iter().flatten() {
            self.settle(signer.account()).await?;
        }
        self.fund(bond, funder).await?;
        self.bond(bond).await?;
        self.name_agent().await
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
    async fn fund(&self, bond: Balance, funder: Option<&Key>) -> Result<()> {
        let unbonded = self.unbonded(bond).await?;
        let (to, free) = (self.stash.account(), self.free(self.stash.account()).await?);
        if free >= unbonded.saturating_add(FEES_MIN) {
            return Ok(());
        }
        let needed = unbonded.saturating_add(FEES);
        let missing = needed.saturating_sub(free);
        let Some(funder) = funder else {
            return self.wait_for(needed, missing).await;
        };
        let call = Call::Transfer {
            to: to.clone(),
            amount: missing,
        };
        let what = format!("sending {} to the stash", Amount(missing));
        self.send(&funder.signer, call, &what).await
    }

    /// Waits until somebody has sent the stash what it needs.
    async fn wait_for(&self, needed: Balance, missing: Balance) -> Result<()> {
        self.out.step(&format!(
            "send {} to {}; this goes on by itself when they are there (Ctrl-C and the same command later do as well)",
            Amount(missing),
            address(self.stash.account())
        ));
        let waiting = self.out.spinner();
        waiting.set_message("waiting for the money");
        while self.free(self.stash.account()).await? < needed {
            tokio::time::sleep(PAUSE).await;
        }
        waiting.finish_and_clear();
        Ok(())
    }

    async fn bond(&self, bond: Balance) -> Result<()> {
        let amount = self.unbonded(bond).await?;
        if amount == 0 {
            return Ok(());
        }
        let role = self.role;
        self.send(
            &self.stash,
            Call::Bond { role, amount },
            &format!("bonding {}", Amount(amount)),
        )
        .await
    }

    /// Each agrees to the other.
    async fn name_agent(&self) -> Result<()> {
        let (stash, agent) = (self.stash.account(), self.agent.account());
        match self.chain.agent_stash(When::Finalized, agent).await? {
            Some(of) if of == *stash => return Ok(()),
            Some(of) => {
                return Err(CliError::Usage(format!(
                    "the key in the key file is the agent of {}: use that one's --stash-key, or another --key-file",
                    address(&of)
                )));
            }
            None => {}
        }
        if self.chain.pending_agent(When::Finalized, stash).await?.as_ref() != Some(agent) {
            let agent = agent.clone();
            self.send(&self.stash, Call::SetAgent { agent }, "naming the agent")
                .await?;
        }
        let stash = stash.clone();
        self.send(&self.agent, Call::ConfirmAgent { stash }, "confirming the agent")
            .await
    }
}

/// The model that there is most use in having.
struct Wanted {
    model: Option<ModelManifest>,
    /// What each of its providers was paid for a task.
    payments: Vec<Balance>,
}

impl Wanted {
    /// The one that is named; else, of those that the chain knows and anybody can fetch, the one that most
    /// tasks ask for. Of the exact tier: the others earn where three machines happen to agree.
    async fn new(chain: &dyn Chain, named: Option<&str>) -> Result<Self> {
        let registered: Vec<ModelId> = chain
            .models(When::Finalized)
            .await?
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        let known = known::all().into_iter().map(|model| model.manifest);
        let mut candidates: Vec<ModelManifest> = match named {
            Some(name) => known.filter(|manifest| models::name(manifest) == name).collect(),
            None => known
                .filter(|manifest| manifest.exact.is_some() && registered.contains(&manifest.id()))
                .collect(),
        };
        if let (Some(name), []) = (named, candidates.as_slice()) {
            return Err(CliError::UnknownModel(name.into()));
        }
        let mut asked: BTreeMap<ModelId, Vec<Balance>> = BTreeMap::new();
        let mut tasks: BTreeMap<ModelId, u32> = BTreeMap::new();
        for (_, task) in chain.recent_tasks(When::Finalized, TASKS_MAX).await? {
            let count = tasks.entry(task.spec.model).or_default();
            *count = count.saturating_add(1);
            if let TaskState::Settled { payments, .. } = &task.state {
                let prices = payments.iter().map(|payment| payment.price);
                asked.entry(task.spec.model).or_default().extend(prices);
            }
        }
        candidates.sort_by_key(|manifest| tasks.get(&manifest.id()).copied().unwrap_or(0));
        let model = candidates.pop();
        let payments = model.as_ref().and_then(|manifest| asked.remove(&manifest.id()));
        Ok(Self {
            model,
            payments: payments.unwrap_or_default(),
        })
    }

    /// Its name, unless its files are here.
    fn to_fetch(&self, context: &Context) -> Option<String> {
        let manifest = self.model.as_ref()?;
        let is_here = context.models().find(manifest.id()).is_ok();
        (!is_here).then(|| models::name(manifest))
    }

    fn usual_payment(&self) -> Option<Balance> {
        let mut payments = self.payments.clone();
        payments.sort_unstable();
        payments.get(payments.len() / 2).copied()
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
        let none = "none of those that the chain knows can be fetched by name: surety model list";
        rows.add_row(["model", self.model.as_deref().unwrap_or(none)]);
        if let Some(payment) = self.usual_payment {
            let text = format!(
                "{} for a provider, of which auditors get a part",
                Amount(payment.0)
            );
            rows.add_row(["such a task pays", &text]);
        }
        rows.add_row(["next", self.next]);
        rows.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{FakeChain, Funds};

    use super::*;

    const BOND: Balance = 1_000 * SURE;

    fn signer(name: &str) -> Signer {
        Signer::from_uri(name).unwrap()
    }

    fn setup(chain: &FakeChain) -> Setup<'_> {
        Setup {
            out: Output::new(true),
            chain,
            role: Role::Provider,
            stash: signer("//Stash"),
            agent: signer("//Agent"),
        }
    }

    /// To its end, while blocks become final.
    async fn prepare(chain: &FakeChain, funder: Option<&Key>) {
        let setup = setup(chain);
        tokio::select! {
            biased;
            done = setup.prepare(BOND, funder) => done.unwrap(),
            () = async {
                for _ in 0..1_000 {
                    chain.finalize();
                    tokio::task::yield_now().await;
                }
            } => panic!("it does not end"),
        }
    }

    fn give(chain: &FakeChain, who: &Signer, free: Balance) {
        let funds = Funds { free, held: 0 };
        chain.change(|state| state.funds.insert(who.account().clone(), funds));
    }

    /// What was sent, without who and to whom.
    fn sent(chain: &FakeChain) -> Vec<String> {
        let calls = chain.calls().into_iter();
        calls.map(|(_, call)| call.name().call.to_owned()).collect()
    }

    #[tokio::test]
    async fn whoever_is_killed_while_calls_are_on_their_way_pays_and_bonds_once() {
        let chain = FakeChain::new();
        let funder = Key {
            signer: signer("//Funder"),
            salt_secret: [0; 32],
        };
        chain.finalize();
        // The first attempt got as far as the money, and was killed before that was final.
        let stash = signer("//Stash");
        let transfer = Call::Transfer {
            to: stash.account().clone(),
            amount: 1,
        };
        chain
            .submit(&funder.signer, transfer, Until::Included.into())
            .await
            .unwrap();
        give(&chain, &stash, 2 * BOND);
        prepare(&chain, Some(&funder)).await;
        let once = ["transfer_keep_alive", "bond", "set_agent", "confirm_agent"];
        assert_eq!(sent(&chain), once);
        prepare(&chain, Some(&funder)).await;
        assert_eq!(sent(&chain), once, "all is there");
    }

    #[tokio::test]
    async fn a_bond_that_is_on_its_way_is_not_bonded_again() {
        let chain = FakeChain::new();
        let stash = signer("//Stash");
        give(&chain, &stash, 2 * BOND);
        chain.finalize();
        let call = Call::Bond {
            role: Role::Provider,
            amount: BOND,
        };
        chain.submit(&stash, call, Until::Included.into()).await.unwrap();
        prepare(&chain, None).await;
        assert_eq!(sent(&chain), ["bond", "set_agent", "confirm_agent"]);
    }
}
