//! Why a provider has no work: what is missing, and what it leaves of the tasks that take bids.

use serde::Serialize;
use surety_chain_client::{BidTerms, Chain, OpenTask, TaskRecord, When, address};
use surety_client::words::asked_of;
use surety_types::{
    TaskId,
    limits::BIDS_MAX,
    model::ModelManifest,
    region::Region,
    speed::{MeasuredView, Requirements},
    task::TaskState,
};
use surety_worker_core::{Policy, demand_cost, demand_reserve};

use super::{Context, Seen, is_at_work, stash};
use crate::{
    amount::Amount,
    args::StatusArgs,
    commands::{
        provider::{input_bytes_max, price_list},
        worker::chosen_models,
    },
    error::Result,
};

/// Why it has no work.
#[derive(Debug, PartialEq, Serialize)]
struct Idle {
    /// Whatever the task.
    problems: Vec<String>,
    /// Of tasks that take bids, those that it has not bid for.
    tasks: Vec<Passed>,
}

/// What is there for the fees of showing what may be demanded on the chain, in plancks.
struct Money {
    /// Of stash and agent together.
    free: u128,
    /// Kept for the tasks that it has, or has bid for.
    kept: u128,
    /// Who is to be sent more.
    stash: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Passed {
    task: TaskId,
    reason: String,
}

pub(in crate::commands) async fn why_idle(context: &Context) -> Result<()> {
    let chain = context.chain().await?;
    let stash = stash(context, &*chain, &StatusArgs::default()).await?;
    let config = &context.config.provider;
    let (stored, unusable) = match chosen_models(&context.models(), &config.work.models) {
        Ok(stored) => (stored, None),
        Err(e) => (Vec::new(), Some(e.to_string())),
    };
    let prices = price_list(config, input_bytes_max(&context.config.storage), &stored);
    let seen = Seen::new(&*chain, stash).await?;
    let mut idle = seen.idle(&*chain, &prices, &stored).await?;
    idle.problems.splice(0..0, unusable);
    context.out.result(&idle, || idle.text())
}

impl Seen {
    async fn idle(self, chain: &dyn Chain, prices: &dyn Policy, stored: &[ModelManifest]) -> Result<Idle> {
        let money = self.money(chain).await?;
        let free = self.status.bonded.0.saturating_sub(self.status.locked.0);
        let is_missed =
            |open: &&OpenTask| matches!(open.task.state, TaskState::Bidding { .. }) && open.bid.is_none();
        let mut problems = self.status.problems;
        let mut tasks = Vec::new();
        for open in self.open.iter().filter(is_missed) {
            let terms = chain.bid_terms(When::Finalized, open.id).await?;
            let is_full = chain.bids(When::Finalized, open.id).await?.len() >= BIDS_MAX as usize;
            let is_here = stored
                .iter()
                .any(|manifest| manifest.id() == open.task.spec.model);
            let unmet = unmet(&open.task.spec.requirements, self.region, self.measured.as_ref());
            let other = || reason(&open.task, (prices, is_here), (terms, is_full), (free, &money));
            tasks.push(Passed {
                task: open.id,
                reason: unmet.unwrap_or_else(other),
            });
        }
        if tasks.is_empty() && !self.open.iter().any(|task| is_at_work(task, &self.stash)) {
            problems.push(
                "no task takes bids that it has not bid for: wait, or see with surety task list what is asked for"
                    .into(),
            );
        }
        Ok(Idle { problems, tasks })
    }

    async fn money(&self, chain: &dyn Chain) -> Result<Money> {
        let stake = chain.stake(When::Finalized, &self.stash).await?;
        let agent = stake
            .and_then(|stake| stake.agent)
            .filter(|agent| *agent != self.stash);
        let deposit = chain.info().existential_deposit;
        let mut free = 0u128;
        for account in agent.iter().chain([&self.stash]) {
            let funds = chain.funds(When::Finalized, account).await?;
            free = free.saturating_add(funds.for_fees(deposit));
        }
        let kept = self.open.iter().map(|open| {
            let (task, round) = (&open.task, open.round.as_ref());
            demand_reserve(task, round, open.bid.is_some(), &self.stash)
        });
        Ok(Money {
            free,
            kept: kept.fold(0, u128::saturating_add),
            stash: address(&self.stash),
        })
    }
}

/// What a task asks of its providers and this one is not: its bid would be refused.
fn unmet(asked: &Requirements, declared: Option<Region>, measured: Option<&MeasuredView>) -> Option<String> {
    if asked.are_met_by(declared, measured) {
        return None;
    }
    let wanted = asked_of(asked)?;
    let hint = match asked.region {
        Some(region) if declared != Some(region) => {
            "where this one is, it says with provider.region of its configuration, once surety provider up runs with it"
        }
        _ => {
            "see with surety provider status what was measured of this one; it is measured in rounds of the benchmark"
        }
    };
    Some(format!(
        "it takes bids of providers {wanted} alone: {hint}; else leave it"
    ))
}

/// Why nothing is bid for a task that takes bids, and what to do about it.
fn reason(
    task: &TaskRecord,
    (prices, is_here): (&dyn Policy, bool),
    (terms, is_full): (Option<BidTerms>, bool),
    (free, money): (u128, &Money),
) -> String {
    let (spec, cost) = (&task.spec, demand_cost(task));
    let (model, units) = (spec.model, spec.units_max);
    match (prices.offer(spec), terms) {
        (_, None) => "its cap does not cover the chain's fee, so that nobody can be paid: leave it".into(),
        (None, _) if !is_here => {
            format!("its model is not here: get it with surety model fetch, if surety model show {model:?} has it")
        }
        (None, _) => "it asks for more than is taken here, or for an operation that its model does not offer: raise \
                      storage.blob_mib_max for larger inputs, or leave it"
            .into(),
        (Some(offer), Some(terms)) if offer.price > terms.price_limit => format!(
            "it pays at most {} for {units} units, and {} are asked: ask less with --price, or leave it",
            Amount(terms.price_limit),
            Amount(offer.price)
        ),
        (Some(_), Some(terms)) if terms.lock > free => format!(
            "it locks {} of stake, and {} are free: surety account bond adds to it",
            Amount(terms.lock),
            Amount(free)
        ),
        (Some(_), Some(_)) if money.kept.saturating_add(cost) > money.free => format!(
            "to show on the chain what may be demanded of it takes up to {} in fees, beside {} that are kept for other \
             tasks, and {} are free: send more to the stash, {}",
            Amount(cost),
            Amount(money.kept),
            Amount(money.free),
            money.stash
        ),
        (Some(_), Some(_)) if is_full => "all its places for bids are taken, and those with the best ranks keep them: \
                                          the more stake was bonded long before a task is posted, the better the \
                                          rank; surety account bond adds to it"
            .into(),
        (Some(_), Some(_)) => "nothing on the chain is in the way: a bid is on its way, or there is work enough for the \
                               time that a task gives; else see that surety provider up runs, and what it logs"
            .into(),
    }
}

impl Idle {
    fn text(&self) -> String {
        let tasks = self
            .tasks
            .iter()
            .map(|passed| format!("task {}: {}", passed.task, passed.reason));
        self.problems
            .iter()
            .cloned()
            .chain(tasks)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{AccountId, FakeChain, ProviderRecord, sample};
    use surety_types::{ModelId, model::Operation};
    use surety_worker_core::{PriceList, Rate};

    use super::{
        super::tests::{bonded, task},
        *,
    };
    use crate::{SURE, models};

    fn prices(price_per_unit: u128) -> PriceList {
        let rate = Rate {
            price_per_unit,
            units_per_second: 1,
            seconds_ahead: 0,
        };
        PriceList::new(1 << 20, 1000).with(ModelId::zero(), Operation::Embed, rate)
    }

    /// A provider that is on the chain's list, and a task that takes bids.
    async fn listed() -> (FakeChain, AccountId) {
        let (chain, stash) = bonded().await;
        chain.change(|state| {
            let provider = ProviderRecord {
                last_heartbeat: state.number,
                ..sample::records::provider()
            };
            state.providers.insert(stash.clone(), provider);
            state.tasks.insert(1, task(TaskState::Bidding { until: 9 }));
        });
        chain.finalize();
        (chain, stash)
    }

    /// Why nothing is bid for that task, and what is wrong whatever the task, with these models here.
    async fn reasons(
        (chain, stash): &(FakeChain, AccountId),
        price: u128,
        stored: &[ModelManifest],
    ) -> (String, Vec<String>) {
        chain.finalize();
        let seen = Seen::new(chain, stash.clone()).await.unwrap();
        let idle = seen.idle(chain, &prices(price), stored).await.unwrap();
        (idle.tasks[0].reason.clone(), idle.problems)
    }

    fn here() -> [ModelManifest; 1] {
        let nowhere = surety_models::ModelStore::new(std::path::Path::new("/"));
        [models::local(&nowhere, models::DEFAULT).unwrap()]
    }

    #[tokio::test]
    async fn who_gets_no_work_learns_why() {
        let (world, here) = (listed().await, here());
        let (chain, stash) = &world;
        let (dear, problems) = reasons(&world, 11, &here).await;
        assert!(dear.contains("--price"), "{dear}");
        assert_eq!(problems, [""; 0]);
        chain.change(|state| state.lock = 200 * SURE);
        let (poor, _) = reasons(&world, 1, &here).await;
        assert!(poor.contains("surety account bond"), "{poor}");
        chain.change(|state| state.lock = 0);
        let (broke, _) = reasons(&world, 1, &here).await;
        assert!(broke.contains("send more to the stash"), "{broke}");
        chain.change(|state| state.funds.entry(stash.clone()).or_default().free = 6 * SURE);
        let (fine, _) = reasons(&world, 1, &here).await;
        assert!(fine.contains("nothing on the chain"), "{fine}");
        chain.change(|state| {
            for number in 0..BIDS_MAX {
                let other = AccountId::new([number as u8; 32]);
                state.bids.insert((1, other), sample::records::bid_record());
            }
        });
        let (full, _) = reasons(&world, 1, &here).await;
        assert!(full.contains("all its places for bids are taken"), "{full}");
        chain.change(|state| state.bids.clear());
        chain.change(|state| state.tasks.get_mut(&1).unwrap().spec.model = ModelId::repeat_byte(7));
        let (absent, _) = reasons(&world, 1, &[]).await;
        assert!(absent.contains("surety model fetch"), "{absent}");
        chain.change(|state| state.unreadable_bids.insert(1));
        chain.finalize();
        let seen = Seen::new(chain, stash.clone()).await.unwrap();
        let problems = seen.status.problems;
        assert!(
            problems[0].contains("1 tasks on the chain cannot be read"),
            "{problems:?}"
        );
    }

    #[tokio::test]
    async fn who_is_not_what_a_task_asks_for_learns_what_it_would_have_to_be() {
        let (world, here) = (listed().await, here());
        let (chain, stash) = &world;
        chain.change(|state| state.funds.entry(stash.clone()).or_default().free = 6 * SURE);
        let asks = |asked: Requirements| {
            chain.change(|state| state.tasks.get_mut(&1).unwrap().spec.requirements = asked);
        };
        asks(Requirements {
            region: "FR".parse().ok(),
            ..Default::default()
        });
        let (elsewhere, _) = reasons(&world, 1, &here).await;
        assert!(
            elsewhere.contains("in FR") && elsewhere.contains("provider.region"),
            "{elsewhere}"
        );
        asks(Requirements {
            memory_mib: 1,
            ..Default::default()
        });
        let (unmeasured, _) = reasons(&world, 1, &here).await;
        assert!(
            unmeasured.contains("over 1 MiB") && unmeasured.contains("benchmark"),
            "{unmeasured}"
        );
        asks(Requirements {
            region: "DE".parse().ok(),
            ..Default::default()
        });
        let (met, _) = reasons(&world, 1, &here).await;
        assert!(met.contains("nothing on the chain"), "{met}");
    }
}
