//! `surety task quote`: what a task is likely to cost.

use serde::Serialize;
use surety_chain_client::{Balance, Chain, TaskRecord, When};
use surety_types::{ModelId, model::Operation, task::TaskState};

use super::{
    Context,
    submit::{Prepared, prepare},
    work,
};
use crate::{
    amount::{Amount, Plancks},
    args::SpecArgs,
    error::Result,
    prices::Prices,
};

/// Tasks that are looked at.
const TASKS_MAX: u32 = 256;

/// Of the prices that were paid, in percent: half of them are below what is likely, nine in ten below what
/// the cap is made for.
const LIKELY: usize = 50;
const HIGH: usize = 90;

/// Attempts to find the cap that leaves providers a price: doubled each time, at worst.
const CAP_STEPS: u32 = 64;

/// What a task is likely to cost. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Quote {
    units: u32,
    redundancy: u32,
    /// Settled tasks that the price is from; none of them: it is what providers ask when they are not told.
    tasks: usize,
    /// For one provider.
    price_per_unit: Plancks,
    /// For all providers, with the fee.
    likely: Plancks,
    /// Half as much again as the dearest tenth began at. What is not used comes back.
    pub(super) cap: Plancks,
}

pub(super) async fn run(context: &Context, spec: &SpecArgs) -> Result<()> {
    let work = work::read(spec)?;
    let chain = context.chain().await?;
    let Prepared { model, units_max, .. } = prepare(context, &*chain, spec, &work).await?;
    let quote = Quote::new(&*chain, spec, work.operation(), model, units_max).await?;
    context.out.result(&quote, || quote.text())
}

impl Quote {
    /// From what the chain knows of tasks of this model.
    ///
    /// # Errors
    /// When the chain cannot be asked.
    pub(super) async fn new(
        chain: &dyn Chain,
        spec: &SpecArgs,
        operation: Operation,
        model: ModelId,
        units: u32,
    ) -> Result<Self> {
        let when = When::At(chain.block(When::Finalized).await?.hash);
        let mut like: Vec<TaskRecord> = chain
            .recent_tasks(when, TASKS_MAX)
            .await?
            .into_iter()
            .map(|t| t.1)
            .collect();
        like.retain(|task| task.spec.model == model && task.spec.operation == operation);
        let mut prices = Vec::new();
        let mut tasks = 0;
        // What is watched more closely costs more: of its own level, if there are any.
        let level = spec.security.security().level;
        if like
            .iter()
            .any(|task| task.spec.security.level == level && !paid(task).is_empty())
        {
            like.retain(|task| task.spec.security.level == level);
        }
        for paid in like.iter().map(paid).filter(|paid| !paid.is_empty()) {
            tasks += 1;
            prices.extend(paid);
        }
        prices.sort_unstable();
        let asked = Prices::default().per_unit("", operation).0;
        let [likely, high] = [LIKELY, HIGH].map(|share| quantile(&prices, share).unwrap_or(asked));
        let all = |per_unit: Balance| per_unit.saturating_mul(units.into());
        let with_room = all(high).saturating_mul(3).div_ceil(2);
        Ok(Self {
            units,
            redundancy: spec.redundancy,
            tasks,
            price_per_unit: Plancks(likely),
            likely: Plancks(cap_for(chain, when, all(likely), spec.redundancy).await?),
            cap: Plancks(cap_for(chain, when, with_room, spec.redundancy).await?),
        })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let from = match self.tasks {
            0 => {
                "no task like it is known: by what providers ask when they are not told otherwise".to_owned()
            }
            tasks => format!("by {tasks} settled tasks like it"),
        };
        format!(
            "{} units for {} providers, {from}: likely {}, and a cap of {} leaves room; what is not used comes back",
            self.units,
            self.redundancy,
            Amount(self.likely.0),
            Amount(self.cap.0)
        )
    }
}

/// What each provider was paid for one unit.
fn paid(task: &TaskRecord) -> Vec<Balance> {
    let TaskState::Settled { claim, payments, .. } = &task.state else {
        return Vec::new();
    };
    let units = Balance::from(claim.units.max(1));
    payments
        .iter()
        .map(|payment| payment.price.div_ceil(units))
        .collect()
}

/// The value that `share` percent are not above; `sorted` is.
fn quantile(sorted: &[Balance], share: usize) -> Option<Balance> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * share).div_ceil(100)).copied()
}

/// The cap that leaves each provider `price`, and the chain its fee.
async fn cap_for(chain: &dyn Chain, when: When, price: Balance, redundancy: u32) -> Result<Balance> {
    let price = price.max(1);
    let mut cap = price.saturating_mul(redundancy.into());
    for _ in 0..CAP_STEPS {
        let missing = match chain.price_limit(when, cap, redundancy).await? {
            Some(limit) => price.saturating_sub(limit).saturating_mul(redundancy.into()),
            None => cap,
        };
        if missing == 0 {
            break;
        }
        cap = cap.saturating_add(missing);
    }
    Ok(cap)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use surety_chain_client::{AccountId, FakeChain, sample};
    use surety_types::task::{Assignment, SecurityLevel as Level};

    use super::*;
    use crate::args::{Cli, Command, TaskCommand};

    fn spec(flags: &str) -> SpecArgs {
        let line = format!("surety task quote --file text --model m {flags}");
        match Cli::try_parse_from(line.trim_end().split(' ')).unwrap().command {
            Command::Task(TaskCommand::Quote(spec)) => *spec,
            other => panic!("{other:?}"),
        }
    }

    /// A chain with a settled task of each price for ten units, at a level, of the model of zeros.
    fn chain(prices: &[(Balance, Level)]) -> FakeChain {
        let chain = FakeChain::new();
        chain.change(|state| {
            for (id, (price, level)) in (1..).zip(prices) {
                let is_settled = |task: &TaskRecord| matches!(task.state, TaskState::Settled { .. });
                let mut task = sample::records::tasks().into_iter().find(is_settled).unwrap();
                (task.spec.model, task.spec.operation) = (ModelId::zero(), Operation::Embed);
                task.spec.security.level = *level;
                if let TaskState::Settled { claim, payments, .. } = &mut task.state {
                    claim.units = 10;
                    let payment = Assignment {
                        provider: AccountId::new([1; 32]),
                        price: price * 10,
                    };
                    *payments = vec![payment].try_into().unwrap();
                }
                state.tasks.insert(id, task);
            }
        });
        chain.finalize();
        chain
    }

    async fn quoted(chain: &FakeChain, model: ModelId, flags: &str) -> Quote {
        let spec = spec(flags);
        Quote::new(chain, &spec, Operation::Embed, model, 4)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn the_price_is_what_most_have_cost_and_the_cap_has_room_for_nearly_all() {
        let prices: Vec<_> = (1..=11).map(|price| (price, Level::Standard)).collect();
        let quote = quoted(&chain(&prices), ModelId::zero(), "--redundancy 2").await;
        assert_eq!((quote.tasks, quote.price_per_unit), (11, Plancks(6)));
        // Four units, two providers, and no fee on the fake chain.
        assert_eq!(
            (quote.likely, quote.cap),
            (Plancks(6 * 4 * 2), Plancks(10 * 4 * 3 / 2 * 2))
        );
        assert_eq!(serde_json::to_value(&quote).unwrap()["cap"], "120");
    }

    #[tokio::test]
    async fn tasks_that_are_watched_alike_are_what_counts_where_there_are_any() {
        let chain = chain(&[(1, Level::Basic), (9, Level::High)]);
        let price = async |flags| quoted(&chain, ModelId::zero(), flags).await.price_per_unit;
        assert_eq!(price("--security high").await, Plancks(9));
        assert_eq!(price("--security basic").await, Plancks(1));
        assert_eq!(
            quoted(&chain, ModelId::zero(), "").await.tasks,
            2,
            "none of the standard level"
        );
    }

    #[tokio::test]
    async fn of_a_model_that_nobody_has_used_the_price_is_what_providers_ask() {
        let quote = quoted(&chain(&[(5, Level::Standard)]), ModelId::repeat_byte(7), "").await;
        let asked = Prices::default().per_unit("", Operation::Embed).0;
        assert_eq!((quote.tasks, quote.price_per_unit), (0, Plancks(asked)));
        assert!(quote.cap.0 >= asked * 4 * 3, "{}", quote.text());
    }
}
