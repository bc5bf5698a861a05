//! `surety account`: keys, money and stake.

use std::{future::Future, pin::pin, time::Duration};

use serde::Serialize;
use surety_chain_client::{
    AccountId, Call, Chain, ChainError, Funds, Refusal, Signer, StakeInfo, Until, When, address,
};
use surety_types::stake::Role;

use super::{Context, faucet};
use crate::{
    amount::{Amount, Plancks},
    args::{AccountCommand, AgentCommand, RoleArg},
    error::{CliError, Result},
    keys::{self, KeyError, parse_account},
    output::{Output, table},
};

pub(super) async fn run(context: &Context, command: AccountCommand) -> Result<()> {
    let call = match command {
        AccountCommand::New { .. } => return new(context).await,
        AccountCommand::Show { address } => return show(context, address.as_deref()).await,
        AccountCommand::Bond { role, amount } => Call::Bond {
            role: match role {
                RoleArg::Provider => Role::Provider,
                RoleArg::Verifier => Role::Verifier,
            },
            amount: amount.0,
        },
        AccountCommand::Unbond { amount } => Call::Unbond { amount: amount.0 },
        AccountCommand::Rebond { amount } => Call::Rebond { amount: amount.0 },
        AccountCommand::Withdraw => Call::WithdrawUnbonded,
        AccountCommand::Agent(AgentCommand::Set { agent }) => Call::SetAgent {
            agent: parse_account(&agent)?,
        },
        AccountCommand::Agent(AgentCommand::Confirm { stash }) => Call::ConfirmAgent {
            stash: parse_account(&stash)?,
        },
        AccountCommand::Agent(AgentCommand::Remove) => Call::RemoveAgent,
        AccountCommand::Fund { to, amount } => Call::Transfer {
            to: parse_account(&to)?,
            amount: amount.0,
        },
    };
    submit(context, call).await
}

/// What `surety account new` made.
#[derive(Serialize)]
struct NewAccount {
    address: String,
    key_file: String,
}

async fn new(context: &Context) -> Result<()> {
    let path = &context.config.key_file;
    let made = match keys::create(path) {
        // The faucet may not have answered when the key was made.
        Err(KeyError::Exists { .. }) if context.config.faucet.is_some() => {
            context.out.step(&format!(
                "there is a key in {}, which stays as it is",
                path.display()
            ));
            keys::load(path)?.signer.account().clone()
        }
        made => {
            let made = made?;
            context.out.step(&format!(
                "Its twelve words are in {}. Whoever has them has its money: copy them to a safe place.",
                path.display()
            ));
            made
        }
    };
    let account = NewAccount {
        address: address(&made),
        key_file: path.display().to_string(),
    };
    if let Some(url) = &context.config.faucet {
        let chain = context.chain().await?;
        let before = chain.funds(When::Finalized, &made).await?.free;
        match faucet::ask(context.out, url, &made).await {
            0 => context
                .out
                .step("no money has come from it: the same command asks again"),
            given => faucet::wait_for(context.out, &*chain, &made, before.saturating_add(given)).await?,
        }
    }
    // The address alone is the result, for scripts to take.
    context.out.result(&account, || account.address.clone())
}

/// What a call came to.
#[derive(Serialize)]
pub(super) struct Submitted {
    /// The call, as `Pallet.call`.
    call: String,
    /// Who signed it.
    signer: String,
    /// Block that carried it out, final.
    pub(super) block: u32,
    block_hash: String,
    extrinsic: String,
    /// The block, for whoever asks about its state.
    #[serde(skip)]
    pub(super) at: When,
}

impl Submitted {
    pub(super) fn text(&self) -> String {
        format!("{} by {}: final in block {}", self.call, self.signer, self.block)
    }
}

/// How long nothing is said of what is waited for: several times what a block needs to become final.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Waits, and says so whenever nothing came for a while.
async fn saying<T>(outcome: impl Future<Output = T>, silence: Duration, say: impl Fn()) -> T {
    let mut outcome = pin!(outcome);
    loop {
        match tokio::time::timeout(silence, &mut outcome).await {
            Ok(outcome) => return outcome,
            Err(_) => say(),
        }
    }
}

/// Signs and submits one call, waits until it is final, and says so.
pub(super) async fn submit(context: &Context, call: Call) -> Result<()> {
    let key = context.key()?;
    let chain = context.chain().await?;
    let submitted = send(context.out, &*chain, &key.signer, call).await?;
    context.out.result(&submitted, || submitted.text())
}

/// Signs and submits one call, and waits until it is final.
pub(super) async fn send(out: Output, chain: &dyn Chain, signer: &Signer, call: Call) -> Result<Submitted> {
    let name = format!("{}.{}", call.name().pallet, call.name().call);
    let waiting = out.spinner();
    waiting.set_message(format!("{name}: waiting until it is final"));
    let submitted = chain.submit(signer, call, Until::Finalized.into());
    let included = saying(submitted, SILENCE_MAX, || {
        out.step(&format!(
            "{name}: still waiting until it is final. If the chain's finality stands still, this takes as long as that"
        ));
    })
    .await;
    let included = match included {
        Ok(included) => included,
        Err(error) => return Err(explained(chain, signer.account(), error).await),
    };
    waiting.finish_and_clear();
    Ok(Submitted {
        call: name,
        signer: address(signer.account()),
        block: included.block.number,
        block_hash: format!("{:?}", included.block.hash),
        extrinsic: format!("{:?}", included.extrinsic),
        at: When::At(included.block.hash),
    })
}

/// An error for people: of one that is about money it is said how much there is.
async fn explained(chain: &dyn Chain, signer: &AccountId, error: ChainError) -> CliError {
    let is_of_money = match &error {
        ChainError::Rejected(Refusal::Payment) => true,
        ChainError::Dispatch(fault) => fault.pallet.is_none() && fault.name == "Token",
        _ => false,
    };
    match chain.funds(When::Best, signer).await {
        Ok(funds) if is_of_money => CliError::Unpaid {
            account: address(signer),
            free: Amount(funds.free),
            source: error,
        },
        _ => error.into(),
    }
}

/// Everything about an account. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
struct AccountView {
    address: String,
    free: Plancks,
    held: Plancks,
    stake: Option<StakeView>,
    /// Whom it acts for as an agent.
    agent_of: Option<String>,
    /// Whom it has named as its agent, and who has not agreed yet.
    agent_pending: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct StakeView {
    role: String,
    bonded: Plancks,
    locked: Plancks,
    unlocking: Vec<Unlocking>,
    agent: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Unlocking {
    amount: Plancks,
    available_at_block: u32,
}

async fn show(context: &Context, who: Option<&str>) -> Result<()> {
    let account = context.account(who)?;
    let chain = context.chain().await?;
    let view = view(&*chain, &account).await?;
    context.out.result(&view, || view.text())
}

async fn view(chain: &dyn Chain, account: &AccountId) -> Result<AccountView> {
    let when = When::At(chain.block(When::Finalized).await?.hash);
    let Funds { free, held } = chain.funds(when, account).await?;
    Ok(AccountView {
        address: address(account),
        free: Plancks(free),
        held: Plancks(held),
        stake: chain.stake(when, account).await?.map(StakeView::from),
        agent_of: chain.agent_stash(when, account).await?.as_ref().map(address),
        agent_pending: chain.pending_agent(when, account).await?.as_ref().map(address),
    })
}

impl From<StakeInfo> for StakeView {
    fn from(stake: StakeInfo) -> Self {
        Self {
            role: match stake.role {
                Role::Provider => "provider".into(),
                Role::Verifier => "verifier".into(),
            },
            bonded: Plancks(stake.bonded),
            locked: Plancks(stake.locked),
            unlocking: stake
                .unlocking
                .iter()
                .map(|chunk| Unlocking {
                    amount: Plancks(chunk.amount),
                    available_at_block: chunk.available_at,
                })
                .collect(),
            agent: stake.agent.as_ref().map(address),
        }
    }
}

impl AccountView {
    fn text(&self) -> String {
        let mut table = table(["account", &self.address]);
        table.add_row(["free", &Amount(self.free.0).to_string()]);
        table.add_row(["held", &Amount(self.held.0).to_string()]);
        if let Some(stake) = &self.stake {
            table.add_row(["bonded as", &stake.role]);
            table.add_row(["bonded", &Amount(stake.bonded.0).to_string()]);
            table.add_row(["locked by tasks", &Amount(stake.locked.0).to_string()]);
            for chunk in &stake.unlocking {
                let text = format!(
                    "{} from block {} on",
                    Amount(chunk.amount.0),
                    chunk.available_at_block
                );
                table.add_row(["on its way out", &text]);
            }
            table.add_row(["agent", stake.agent.as_deref().unwrap_or("none")]);
        }
        if let Some(pending) = &self.agent_pending {
            table.add_row(["agent, not confirmed", pending]);
        }
        if let Some(stash) = &self.agent_of {
            table.add_row(["agent of", stash]);
        }
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{DispatchFault, FakeChain};

    use super::*;
    use crate::SURE;

    #[tokio::test]
    async fn what_takes_long_is_spoken_of() {
        let said = std::cell::Cell::new(0);
        let long = tokio::time::sleep(Duration::from_millis(500));
        saying(long, Duration::from_millis(100), || said.set(said.get() + 1)).await;
        assert!(said.get() >= 1);
        saying(async {}, Duration::from_secs(60), || panic!("it is there")).await;
    }

    #[tokio::test]
    async fn where_money_is_missing_it_is_said_whose_and_how_much_there_is() {
        let (chain, poor) = (FakeChain::new(), Signer::from_uri("//Poor").unwrap());
        let funds = Funds {
            free: 7 * SURE,
            held: 0,
        };
        chain.change(|state| state.funds.insert(poor.account().clone(), funds));
        let fault = |pallet: Option<&str>, name: &str| {
            ChainError::Dispatch(DispatchFault {
                pallet: pallet.map(str::to_owned),
                name: name.into(),
                docs: "Funds are unavailable".into(),
            })
        };
        for error in [ChainError::Rejected(Refusal::Payment), fault(None, "Token")] {
            let said = explained(&chain, poor.account(), error).await.to_string();
            assert!(
                said.contains("7 SURE") && said.contains(&address(poor.account())),
                "{said}"
            );
        }
        let other = explained(&chain, poor.account(), fault(Some("Staking"), "Token")).await;
        assert!(matches!(other, CliError::Chain(_)), "{other}");
    }

    #[tokio::test]
    async fn an_account_is_shown_with_its_stake_and_agent() {
        let chain = FakeChain::new();
        let stash = Signer::from_uri("//Alice").unwrap();
        let agent = Signer::from_uri("//Alice//agent").unwrap();
        let submit = |signer: Signer, call| {
            let chain = chain.clone();
            async move { chain.submit(&signer, call, Until::Included.into()).await.unwrap() }
        };
        let bond = Call::Bond {
            role: Role::Provider,
            amount: 100 * SURE,
        };
        submit(stash.clone(), bond).await;
        let set = Call::SetAgent {
            agent: agent.account().clone(),
        };
        submit(stash.clone(), set).await;
        chain.change(|state| {
            let funds = Funds {
                free: 5 * SURE,
                held: 100 * SURE,
            };
            state.funds.insert(stash.account().clone(), funds);
        });
        chain.finalize();
        let shown = view(&chain, stash.account()).await.unwrap();
        assert_eq!(shown.agent_pending, Some(address(agent.account())));
        let confirm = Call::ConfirmAgent {
            stash: stash.account().clone(),
        };
        submit(agent.clone(), confirm).await;
        chain.finalize();
        let shown = view(&chain, stash.account()).await.unwrap();
        insta::assert_snapshot!(shown.text());
        let shown = view(&chain, agent.account()).await.unwrap();
        assert_eq!(shown.agent_of, Some(address(stash.account())));
    }
}
