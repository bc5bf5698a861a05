//! `surety stake`: stake behind validators.

use serde::Serialize;
use surety_chain_client::{
    AccountId, Balance, BlockNumber, Call, Chain, DelegationRecord, StakeCall, StakeChain, When, address,
    short,
};

use super::{Context, account, validator::percent};
use crate::{
    amount::{Amount, Plancks},
    args::{RedelegateArgs, StakeCommand},
    error::{CliError, Result},
    keys::parse_account,
    output::table,
};

pub(super) async fn run(context: &Context, command: StakeCommand) -> Result<()> {
    let call = match command {
        StakeCommand::Operators => return operators(context).await,
        StakeCommand::Show { address } => return show(context, address.as_deref()).await,
        StakeCommand::Delegate { operator, amount } => StakeCall::Delegate {
            operator: parse_account(&operator)?,
            amount: amount.0,
        },
        StakeCommand::Undelegate { operator, amount } => {
            let operator = parse_account(&operator)?;
            let amount = match amount {
                Some(amount) => amount.0,
                None => all_behind(context, &operator).await?,
            };
            let is_own = *context.key()?.signer.account() == operator;
            context.out.step(paid_for_today(is_own));
            StakeCall::Undelegate { operator, amount }
        }
        StakeCommand::Redelegate(args) => redelegate(context, &args).await?,
        StakeCommand::Withdraw => StakeCall::WithdrawDelegated,
        StakeCommand::Claim { operator } => return claim(context, operator.as_deref()).await,
        StakeCommand::Settle { operator, delegator } => StakeCall::Settle {
            delegator: context.account(delegator.as_deref())?,
            operator: parse_account(&operator)?,
        },
    };
    account::submit(context, Call::Stake(call)).await
}

/// What stake that leaves gets of a day that is not over.
fn paid_for_today(is_own: bool) -> &'static str {
    match is_own {
        true => "what the pool has earned is paid with this, for the running day too",
        false => {
            "what the pool had earned up to the last day's end is paid with this. The running day is shared when it is over, among \
             all who are in the pool then: to have a part of it, take stake out after that. Where its operator has left, \
             the running day is paid with this, too"
        }
    }
}

/// An operator, as it is listed. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Operator {
    operator: String,
    backing: Plancks,
    own: Plancks,
    commission_millionths: u32,
    /// Whether it makes blocks now.
    validates: bool,
    /// Whether it can be elected.
    pub(super) is_candidate: bool,
    #[serde(skip)]
    pub(super) account: AccountId,
}

async fn operators(context: &Context) -> Result<()> {
    let chain = context.rpc().await?;
    let at = When::At(chain.block(When::Finalized).await?.hash);
    let listed = listed(&*chain, at).await?;
    context.out.result(&listed, || {
        let mut rows = table(["operator", "behind it", "its own", "commission", ""]);
        for one in &listed {
            rows.add_row([
                one.operator.clone(),
                Amount(one.backing.0).to_string(),
                Amount(one.own.0).to_string(),
                percent(one.commission_millionths),
                match (one.validates, one.is_candidate) {
                    (true, _) => "makes blocks",
                    (false, true) => "a candidate",
                    (false, false) => "not to be elected",
                }
                .into(),
            ]);
        }
        rows.to_string()
    })
}

/// All operators, those with most stake first, and of as much the lower account, as the chain sorts them.
pub(super) async fn listed(chain: &dyn StakeChain, at: When) -> Result<Vec<Operator>> {
    let present = chain.validator_sets(at).await?.present;
    let candidates = chain.candidates(at).await?;
    let wants_to = |operator: &AccountId| {
        candidates
            .iter()
            .any(|(one, candidate)| one == operator && candidate.wants_to)
    };
    let pools = chain.operators(at).await?.into_iter();
    let mut all: Vec<_> = pools
        .map(|(account, pool)| Operator {
            operator: address(&account),
            backing: Plancks(pool.fund.amount),
            own: Plancks(pool.own()),
            commission_millionths: pool.commission,
            validates: present.contains(&account),
            is_candidate: wants_to(&account),
            account,
        })
        .collect();
    all.sort_unstable_by(|one, other| (other.backing.0, &one.account).cmp(&(one.backing.0, &other.account)));
    Ok(all)
}

/// What somebody has in pools. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
struct Shown {
    address: String,
    delegations: Vec<Delegated>,
    leaving: Vec<Leaving>,
    #[serde(skip)]
    clock: BlockNumber,
}

/// Stake behind an operator.
#[derive(Debug, PartialEq, Serialize)]
struct Delegated {
    operator: String,
    worth: Plancks,
    /// On hold still, and lost by a slash.
    lost: Plancks,
    claimable: Plancks,
    #[serde(skip)]
    account: AccountId,
}

/// Stake on its way out.
#[derive(Debug, PartialEq, Serialize)]
struct Leaving {
    operator: String,
    day: u32,
    worth: Plancks,
    lost: Plancks,
    available_at_block: BlockNumber,
    /// Whether a slash that waits keeps it.
    is_kept: bool,
    #[serde(skip)]
    account: AccountId,
}

async fn show(context: &Context, who: Option<&str>) -> Result<()> {
    let account = context.account(who)?;
    let chain = context.rpc().await?;
    let shown = Shown::new(&*chain, &account).await?;
    context.out.result(&shown, || shown.text())
}

/// What a delegation is worth, and what can be claimed of it: of an operator with its commission.
async fn worth_and_due(
    chain: &dyn StakeChain,
    at: When,
    who: &AccountId,
    delegation: &DelegationRecord,
) -> Result<(Balance, Balance)> {
    let pool = chain.pool(at, &delegation.operator).await?.unwrap_or_default();
    let commission = match *who == delegation.operator {
        true => pool.earned,
        false => 0,
    };
    let due = pool.due(delegation).saturating_add(commission);
    Ok((pool.fund.worth(delegation.shares), due))
}

/// What an operator without stake of its own can claim of its pool: its commission.
async fn commission_alone(
    chain: &dyn StakeChain,
    at: When,
    who: &AccountId,
    delegations: &[Delegated],
) -> Result<Option<Delegated>> {
    if delegations.iter().any(|one| one.account == *who) {
        return Ok(None);
    }
    let earned = chain.pool(at, who).await?.map_or(0, |pool| pool.earned);
    Ok((earned > 0).then(|| Delegated {
        operator: address(who),
        worth: Plancks(0),
        lost: Plancks(0),
        claimable: Plancks(earned),
        account: who.clone(),
    }))
}

impl Shown {
    async fn new<C: Chain + StakeChain>(chain: &C, who: &AccountId) -> Result<Self> {
        let at = When::At(chain.block(When::Finalized).await?.hash);
        let stake = chain.delegated(at, who).await?;
        let (mut delegations, mut leaving) = (Vec::new(), Vec::new());
        for one in &stake.delegations {
            let (worth, due) = worth_and_due(chain, at, who, one).await?;
            delegations.push(Delegated {
                operator: address(&one.operator),
                worth: Plancks(worth),
                lost: Plancks(one.held.saturating_sub(worth)),
                claimable: Plancks(due),
                account: one.operator.clone(),
            });
        }
        if let Some(own) = commission_alone(chain, at, who, &delegations).await? {
            delegations.push(own);
        }
        for chunk in &stake.leaving {
            let fund = chain.left(at, &chunk.operator, chunk.day).await?;
            let pending = chain.pending_slashes(at, &chunk.operator).await?;
            let worth = fund.worth(chunk.shares);
            leaving.push(Leaving {
                operator: address(&chunk.operator),
                day: chunk.day,
                worth: Plancks(worth),
                lost: Plancks(chunk.held.saturating_sub(worth)),
                available_at_block: chunk.available_at,
                is_kept: pending.is_some_and(|pending| pending.since <= chunk.day),
                account: chunk.operator.clone(),
            });
        }
        Ok(Self {
            address: address(who),
            delegations,
            leaving,
            clock: chain.clock(at).await?,
        })
    }

    fn text(&self) -> String {
        if self.delegations.is_empty() && self.leaving.is_empty() {
            return format!(
                "{} has no stake behind anybody: surety stake operators lists whom to back",
                self.address
            );
        }
        let mut rows = table(["behind", "worth", "to be claimed", "slashed", ""]);
        for one in &self.delegations {
            rows.add_row([
                short(&one.account),
                Amount(one.worth.0).to_string(),
                Amount(one.claimable.0).to_string(),
                Amount(one.lost.0).to_string(),
                match one.worth.0.saturating_add(one.lost.0) {
                    0 => "commission of its own pool".into(),
                    _ => String::new(),
                },
            ]);
        }
        for chunk in &self.leaving {
            let when = match (chunk.is_kept, chunk.available_at_block <= self.clock) {
                (true, _) => "kept until a slash that waits is decided".into(),
                (false, true) => "can be withdrawn".into(),
                (false, false) => format!(
                    "can be withdrawn at {} of the chain's clock, which shows {}",
                    chunk.available_at_block, self.clock
                ),
            };
            rows.add_row([
                short(&chunk.account),
                Amount(chunk.worth.0).to_string(),
                String::new(),
                Amount(chunk.lost.0).to_string(),
                format!("left on day {}; {when}", chunk.day),
            ]);
        }
        format!("{}\n\n{rows}", self.address)
    }
}

/// All that the key in the key file has behind an operator.
async fn all_behind(context: &Context, operator: &AccountId) -> Result<Balance> {
    let who = context.key()?.signer.account().clone();
    let chain = context.rpc().await?;
    let at = When::At(chain.block(When::Finalized).await?.hash);
    let stake = chain.delegated(at, &who).await?;
    match stake.delegations.iter().find(|one| one.operator == *operator) {
        Some(one) => Ok(worth_and_due(&*chain, at, &who, one).await?.0),
        None => Err(CliError::Usage(format!(
            "{} has nothing behind {}: see surety stake show",
            address(&who),
            address(operator)
        ))),
    }
}

async fn redelegate(context: &Context, args: &RedelegateArgs) -> Result<StakeCall> {
    let (operator, to) = (parse_account(&args.from)?, parse_account(&args.to)?);
    let amount = match args.amount {
        Some(amount) => amount.0,
        None => {
            let who = context.key()?.signer.account().clone();
            let chain = context.rpc().await?;
            let shown = Shown::new(&*chain, &who).await?;
            let mut chunks = shown.leaving.iter();
            let found = chunks.find(|chunk| chunk.account == operator && chunk.day == args.day);
            let missing = || {
                CliError::Usage(format!(
                    "nothing of {} left {} on day {}: see surety stake show",
                    address(&who),
                    address(&operator),
                    args.day
                ))
            };
            found.ok_or_else(missing)?.worth.0
        }
    };
    Ok(StakeCall::Redelegate {
        operator,
        day: args.day,
        to,
        amount,
    })
}

async fn claim(context: &Context, operator: Option<&str>) -> Result<()> {
    let mut calls = match operator {
        Some(text) => vec![parse_account(text)?],
        None => {
            let who = context.key()?.signer.account().clone();
            let chain = context.rpc().await?;
            owing(&*chain, &who).await?
        }
    }
    .into_iter()
    .map(|operator| Call::Stake(StakeCall::Claim { operator }))
    .collect::<Vec<_>>();
    let call = match calls.len() {
        0 => {
            return Err(CliError::Usage(
                "nothing has been earned since the last claim: rewards are shared when a day is over".into(),
            ));
        }
        1 => calls.remove(0),
        _ => Call::Batch(calls),
    };
    account::submit(context, call).await
}

/// The operators that owe somebody something.
async fn owing<C: Chain + StakeChain>(chain: &C, who: &AccountId) -> Result<Vec<AccountId>> {
    let shown = Shown::new(chain, who).await?;
    let owing = shown.delegations.into_iter().filter(|one| one.claimable.0 > 0);
    Ok(owing.map(|one| one.account).collect())
}

#[cfg(test)]
#[path = "stake_tests.rs"]
mod tests;
