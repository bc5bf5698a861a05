//! `surety provider status` and `why-idle`: what a provider has earned, and why it has no work.

mod why_idle;

use serde::Serialize;
use surety_chain_client::{AccountId, BlockNumber, Chain, OpenTask, OpenTasks, StakeInfo, When, address};
use surety_client::words::duration;
use surety_gpu_proofs::MeasuredView;
use surety_types::{
    BLOCK_SECONDS, TaskId,
    region::Region,
    stake::Role,
    task::{Assignment, TaskState},
};

use super::{
    Context, benchmark,
    calls::sells_nothing_new,
    payouts::{Payouts, payments},
};
use crate::{
    amount::{Amount, Plancks},
    args::StatusArgs,
    error::{CliError, Result},
    keys::parse_account,
    output::table,
};
pub(super) use why_idle::why_idle;

/// Finished tasks that earnings are added up over.
const TASKS_MAX: u32 = 1000;

/// What the chain knows of a provider. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
struct Status {
    stash: String,
    bonded: Plancks,
    locked: Plancks,
    /// Blocks since its last sign of life; nothing where it is not registered.
    last_sign_of_life: Option<BlockNumber>,
    /// Tasks that it works for now.
    working: Vec<TaskId>,
    /// Tasks that it has bid for and that are not assigned yet.
    bids: Vec<TaskId>,
    /// The newest finished tasks that were looked at, and what clients paid for its results in those of them
    /// that it was paid for.
    finished_tasks: usize,
    paid_tasks: usize,
    paid: Plancks,
    /// What its auditors got of that, and what it kept.
    to_auditors: Plancks,
    kept: Plancks,
    /// What was paid for tasks of which the node no longer keeps who got it.
    untold: Plancks,
    untold_tasks: usize,
    /// What the chain has measured of it, while that counts.
    measured: Option<Measured>,
    /// Where it is registered as being.
    region: Option<String>,
    /// What keeps it from getting work.
    problems: Vec<String>,
}

/// A speed that the chain has measured.
#[derive(Debug, PartialEq, Serialize)]
struct Measured {
    tier: &'static str,
    giga_operations: u32,
    memory_mib: u32,
    rounds_missed: u32,
    #[serde(skip)]
    words: String,
}

impl From<MeasuredView> for Measured {
    fn from(view: MeasuredView) -> Self {
        Self {
            tier: view.tier.letter(),
            giga_operations: view.giga_operations,
            memory_mib: view.memory_mib,
            rounds_missed: view.rounds_missed,
            words: benchmark::words(&view),
        }
    }
}

/// What is asked of the chain for either.
struct Seen {
    stash: AccountId,
    status: Status,
    open: Vec<OpenTask>,
    /// Where it is registered as being.
    region: Option<Region>,
    /// What the chain has measured of it, while that counts.
    measured: Option<MeasuredView>,
}

pub(super) async fn status(context: &Context, args: &StatusArgs) -> Result<()> {
    let chain = context.rpc().await?;
    let stash = stash(context, &*chain, args).await?;
    let mut seen = Seen::new(&*chain, stash).await?;
    let sells_nothing = sells_nothing_new(&*chain, &seen.stash).await?;
    seen.status.problems.extend(sells_nothing);
    context.out.result(&seen.status, || seen.status.text())
}

/// The stash that was named, or whose agent's key is here.
async fn stash(context: &Context, chain: &dyn Chain, args: &StatusArgs) -> Result<AccountId> {
    if let Some(named) = &args.stash {
        return Ok(parse_account(named)?);
    }
    let account = context.key()?.signer.account().clone();
    let found = chain.agent_stash(When::Finalized, &account).await?;
    found.ok_or_else(|| {
        CliError::Usage(format!(
            "{0} is nobody's agent on this chain: name the stash, or with its key run: surety account agent set --agent {0}",
            address(&account)
        ))
    })
}

impl Seen {
    async fn new(chain: &dyn Chain, stash: AccountId) -> Result<Self> {
        let block = chain.block(When::Finalized).await?;
        let when = When::At(block.hash);
        let stake = chain.stake(when, &stash).await?;
        let provider = chain.provider(when, &stash).await?;
        let measured = chain.benchmarked(when, &stash).await?;
        let OpenTasks { tasks: open, unread } = chain.open_tasks(when, Some(&stash)).await?;
        let region = provider.as_ref().and_then(|provider| provider.device.region);
        let quiet = provider.map(|provider| block.number.saturating_sub(provider.last_heartbeat));
        let mut problems = stake_problem(stake.as_ref());
        problems.extend(barred(chain, when, &stash).await?);
        problems.extend(silence(chain, when, quiet).await?);
        if !unread.is_empty() {
            problems.push(format!(
                "{} tasks on the chain cannot be read by this program, and are left out here: install a newer surety",
                unread.len()
            ));
        }
        let finished = chain.recent_tasks(when, TASKS_MAX).await?;
        let mut paid: Vec<_> = finished.iter().flat_map(payments).collect();
        paid.retain(|payment| payment.provider == stash);
        let paid_tasks = paid.len();
        let sum = paid
            .iter()
            .fold(0, |sum: u128, payment| sum.saturating_add(payment.price));
        let payouts = Payouts::of(chain, paid).await?;
        let status = Status {
            stash: address(&stash),
            bonded: Plancks(stake.as_ref().map_or(0, |stake| stake.bonded)),
            locked: Plancks(stake.as_ref().map_or(0, |stake| stake.locked)),
            last_sign_of_life: quiet,
            working: ids(&open, |task| is_at_work(task, &stash)),
            bids: ids(&open, |task| {
                task.bid.is_some() && !matches!(task.task.state, TaskState::Running { .. })
            }),
            finished_tasks: finished.len().saturating_sub(open.len()),
            paid_tasks,
            paid: Plancks(sum),
            to_auditors: Plancks(payouts.to_auditors),
            kept: Plancks(payouts.kept),
            untold: Plancks(payouts.untold),
            untold_tasks: payouts.untold_payments,
            measured: measured.map(Measured::from),
            region: region.map(|region| region.to_string()),
            problems,
        };
        Ok(Self {
            stash,
            status,
            open,
            region,
            measured,
        })
    }
}

fn stake_problem(stake: Option<&StakeInfo>) -> Vec<String> {
    match stake {
        Some(stake) if stake.role == Role::Provider => Vec::new(),
        Some(_) => vec![
            "its stake is bonded as a verifier's: a provider needs a stash of its own, surety provider init \
             --stash-key FILE makes one"
                .into(),
        ],
        None => vec![
            "it has no stake; with its key, run: surety account bond --role provider --amount \"1000 SURE\""
                .into(),
        ],
    }
}

/// What the chain holds against it.
async fn barred(chain: &dyn Chain, when: When, stash: &AccountId) -> Result<Vec<String>> {
    let clock = chain.clock(when).await?;
    let trust = chain.trust(when, stash).await?;
    let all = [
        (
            trust.jailed_until,
            "it was at fault, surety task explain says how",
        ),
        (
            trust.suspended_until,
            "it missed deadlines: keep surety provider up running, on a machine that keeps up",
        ),
    ];
    let texts = all.into_iter().filter_map(|(until, why)| {
        let seconds = until?.checked_sub(clock)?.saturating_mul(BLOCK_SECONDS);
        Some(format!("it gets no tasks for {}, wait: {why}", duration(seconds)))
    });
    Ok(texts.collect())
}

/// Whether the chain takes it to be there, after so many blocks without a sign of life.
async fn silence(chain: &dyn Chain, when: When, quiet: Option<BlockNumber>) -> Result<Option<String>> {
    let window = chain.provider_terms(when).await?.heartbeat_window;
    Ok(match quiet {
        None => Some("it is not registered: start surety provider up, which sees to it".into()),
        Some(blocks) if blocks > window => Some(format!(
            "its last sign of life is {blocks} blocks old, of {window} that count: start surety provider up, or see in its \
             log why it gives none"
        )),
        Some(_) => None,
    })
}

fn of<'a>(
    list: &'a [Assignment<AccountId, u128>],
    stash: &AccountId,
) -> Option<&'a Assignment<AccountId, u128>> {
    list.iter().find(|assignment| assignment.provider == *stash)
}

fn is_at_work(open: &OpenTask, stash: &AccountId) -> bool {
    match &open.task.state {
        TaskState::Running { assignments, .. } => of(assignments, stash).is_some(),
        _ => false,
    }
}

fn ids(open: &[OpenTask], is_meant: impl Fn(&OpenTask) -> bool) -> Vec<TaskId> {
    open.iter()
        .filter(|open| is_meant(open))
        .map(|open| open.id)
        .collect()
}

impl Status {
    fn text(&self) -> String {
        let list = |tasks: &[TaskId]| match tasks {
            [] => "none".to_owned(),
            tasks => tasks
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        };
        let mut rows = table(["stash", &self.stash]);
        rows.add_row(["bonded", &Amount(self.bonded.0).to_string()]);
        rows.add_row(["locked by tasks", &Amount(self.locked.0).to_string()]);
        rows.add_row(["at work for", &list(&self.working)]);
        rows.add_row(["has bid for", &list(&self.bids)]);
        let paid = format!(
            "{} for {} of the last {} tasks",
            Amount(self.paid.0),
            self.paid_tasks,
            self.finished_tasks
        );
        rows.add_row(["paid by clients", &paid]);
        rows.add_row(["of it to auditors", &Amount(self.to_auditors.0).to_string()]);
        rows.add_row(["kept", &Amount(self.kept.0).to_string()]);
        if self.untold_tasks > 0 {
            let untold = format!(
                "who got {} of it, for {} tasks: the node does not keep their blocks, an archive node tells more (--rpc)",
                Amount(self.untold.0),
                self.untold_tasks
            );
            rows.add_row(["not known", &untold]);
        }
        if let Some(measured) = &self.measured {
            rows.add_row(["measured", &measured.words]);
        }
        if let Some(region) = &self.region {
            rows.add_row(["says it is in", region]);
        }
        for problem in &self.problems {
            rows.add_row(["problem", problem]);
        }
        rows.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{Call, FakeChain, Signer, Until, sample};
    use surety_types::{ModelId, model::Operation};

    use super::*;
    use crate::{SURE, commands::payouts::tests::paid};

    pub(super) async fn bonded() -> (FakeChain, AccountId) {
        let chain = FakeChain::new();
        let stash = Signer::from_uri("//Alice").unwrap();
        let bond = Call::Bond {
            role: Role::Provider,
            amount: 100 * SURE,
        };
        chain.submit(&stash, bond, Until::Included.into()).await.unwrap();
        chain.finalize();
        (chain, stash.account().clone())
    }

    /// A task in that state, of the model of zeros.
    pub(super) fn task(state: TaskState<AccountId, u128, u32>) -> surety_chain_client::TaskRecord {
        let mut task = sample::records::tasks().remove(0);
        (task.spec.model, task.spec.operation) = (ModelId::zero(), Operation::Embed);
        (task.spec.units_max, task.spec.redundancy, task.cap) = (10, 1, 100);
        task.state = state;
        task
    }

    #[tokio::test]
    async fn what_was_paid_is_added_up_and_split_and_what_is_missing_said() {
        let (chain, stash) = bonded().await;
        chain.change(|state| {
            for (id, settled_at, price) in [(1, 7, 30), (2, 8, 12), (3, 5, 100)] {
                let payment = Assignment {
                    provider: stash.clone(),
                    price,
                };
                let TaskState::Settled {
                    claim, refund, fee, ..
                } = sample::records::tasks()
                    .into_iter()
                    .map(|task| task.state)
                    .find(|state| matches!(state, TaskState::Settled { .. }))
                    .unwrap()
                else {
                    unreachable!();
                };
                let settled = TaskState::Settled {
                    at: settled_at,
                    claim,
                    payments: vec![payment].try_into().unwrap(),
                    refund,
                    fee,
                };
                state.tasks.insert(id, task(settled));
            }
        });
        // Of the oldest nothing is known any more.
        for event in [
            paid("AuditorPaid", 1, &stash, 5),
            paid("AuditorPaid", 1, &stash, 2),
            paid("ProviderPaid", 1, &stash, 23),
        ] {
            chain.happen(7, event);
        }
        chain.happen(8, paid("ProviderPaid", 2, &stash, 12));
        chain.finalize();
        let status = Seen::new(&chain, stash).await.unwrap().status;
        assert_eq!((status.paid, status.paid_tasks), (Plancks(142), 3));
        assert_eq!((status.to_auditors, status.kept), (Plancks(7), Plancks(35)));
        assert_eq!((status.untold, status.untold_tasks), (Plancks(100), 1));
        for words in ["0.000000000007 SURE", "0.000000000035 SURE", "an archive node"] {
            assert!(status.text().contains(words), "{}", status.text());
        }
        // More than numbers of JSON hold.
        let json = serde_json::to_value(&status).unwrap();
        for name in ["bonded", "locked", "paid", "to_auditors", "kept", "untold"] {
            assert!(json[name].is_string(), "{name} in {json}");
        }
        assert_eq!(status.bonded, Plancks(100 * SURE));
        let [problem] = status.problems.as_slice() else {
            panic!("{:?}", status.problems);
        };
        assert!(problem.contains("not registered"), "{problem}");
    }
}
