//! `surety quote`: what a task is likely to cost, and the least that it can be posted for.
//!
//! By what providers have asked, not by what was paid: where few bid, each is paid all that the cap leaves
//! for it, and a cap made of that would grow from task to task. Each provider counts once, however many tasks
//! it has bid for.

use std::collections::BTreeMap;

use serde::Serialize;
use surety_chain_client::{AccountId, Balance, Chain, TaskRecord, When};
use surety_types::{
    TaskId,
    task::{SecurityLevel, shortlist},
};

use super::{
    Context,
    least::{Wanted, cap_for},
    submit::prepare,
    work,
};
use crate::{
    amount::{Amount, Plancks},
    args::SpecArgs,
    error::{CliError, Result},
    prices::Prices,
};

/// Tasks that are looked at, and those like this one of which bids are read.
const TASKS_MAX: u32 = 256;
const ALIKE_MAX: usize = 16;

/// No task is posted with a cap of its own accord where providers ask more than so many times what they ask
/// when they are not told otherwise: whoever makes prices by the caps that it sees drives them no higher.
const USUAL_TIMES_MAX: Balance = 10;

/// What a task is likely to cost. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Quote {
    units: u32,
    redundancy: u32,
    /// Who has bid for tasks like it. Nobody: the price is what providers ask when they are not told.
    providers: usize,
    /// What is asked of one provider in the middle of all.
    price_per_unit: Plancks,
    /// What was asked is this often what providers ask when they are not told otherwise.
    #[serde(skip)]
    times_usual: Balance,
    /// For all providers, with the fee. It is the cap where no more bid than are shortlisted.
    likely: Plancks,
    /// Half as much again as is asked. What is not used comes back.
    cap: Plancks,
    /// With a lower cap the chain takes no such task: its work is worth more than that.
    least: Plancks,
}

pub(in crate::commands) async fn run(context: &Context, spec: &SpecArgs) -> Result<()> {
    let work = work::read(spec)?;
    let chain = context.chain().await?;
    let prepared = prepare(context, &*chain, spec, &work).await?;
    let quote = Quote::new(&*chain, spec, &prepared.wanted(spec.redundancy)).await?;
    context.out.result(&quote, || quote.text())
}

impl Quote {
    /// From what the chain knows of tasks of this model.
    ///
    /// # Errors
    /// When the chain cannot be asked.
    pub(super) async fn new(chain: &dyn Chain, spec: &SpecArgs, wanted: &Wanted<'_>) -> Result<Self> {
        Self::of(chain, spec.security.security().level, wanted).await
    }

    /// The same of a task that is watched so closely.
    ///
    /// # Errors
    /// When the chain cannot be asked.
    pub(super) async fn of(chain: &dyn Chain, level: SecurityLevel, wanted: &Wanted<'_>) -> Result<Self> {
        let redundancy = wanted.redundancy;
        let (operation, units) = (wanted.operation(), wanted.units());
        let when = When::At(chain.block(When::Finalized).await?.hash);
        let mut like = chain.recent_tasks(when, TASKS_MAX).await?;
        like.retain(|(_, task)| task.spec.model == wanted.model && task.spec.operation == operation);
        // What is watched more closely may cost more: of its own level, if there are any.
        let (alike, others): (Vec<_>, Vec<_>) = like
            .into_iter()
            .partition(|(_, task)| task.spec.security.level == level);
        let mut prices = asked(chain, when, &alike).await?;
        if prices.is_empty() {
            prices = asked(chain, when, &others).await?;
        }
        let usual = Prices::default().per_unit("", operation).0.max(1);
        let middle = prices.get(prices.len() / 2).copied().unwrap_or(usual);
        let with_room = middle.saturating_mul(units.into()).saturating_mul(3).div_ceil(2);
        let least_price = wanted.least_price(chain, when).await?;
        let least = cap_for(chain, when, least_price, redundancy).await?;
        let cap = cap_for(chain, when, with_room.max(least_price), redundancy).await?;
        // Who is drawn is paid what the first asks that is not on the shortlist, or all that the cap leaves.
        let shortlisted = usize::try_from(shortlist(redundancy)).unwrap_or(usize::MAX);
        let likely = match prices.get(shortlisted) {
            Some(outside) => {
                // A bid below the least counts as the least.
                let price = outside.saturating_mul(units.into()).max(least_price);
                cap_for(chain, when, price, redundancy).await?.min(cap)
            }
            None => cap,
        };
        Ok(Self {
            units,
            redundancy,
            providers: prices.len(),
            price_per_unit: Plancks(middle),
            times_usual: middle.div_ceil(usual),
            likely: Plancks(likely),
            cap: Plancks(cap),
            least: Plancks(least),
        })
    }

    /// The cap of a task whose client has said none.
    ///
    /// # Errors
    /// When so much is asked that the client has to say that it is right.
    pub(super) fn default_cap(&self) -> Result<Amount> {
        if self.times_usual > USUAL_TIMES_MAX {
            return Err(CliError::Usage(format!(
                "providers have asked {} a unit, over {USUAL_TIMES_MAX} times what they ask when they are not told \
                 otherwise: say with --cap what the task may cost at most, such as --cap \"{}\"",
                Amount(self.price_per_unit.0),
                Amount(self.cap.0)
            )));
        }
        Ok(Amount(self.cap.0))
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let from = match self.providers {
            0 => "nobody has bid for a task like it: by what providers ask when they are not told otherwise"
                .into(),
            known => format!("by what {known} providers have asked for tasks like it"),
        };
        let likely = match self.likely == self.cap {
            true => "with so few bids the cap itself is what is paid for units that are used".into(),
            false => format!("likely {}", Amount(self.likely.0)),
        };
        format!(
            "{} units for {} providers, {from}, {} a unit: a cap of {} leaves room, {likely}; a quarter of the cap is \
             locked beside it until the task is over; with less than {} it cannot be posted",
            self.units,
            self.redundancy,
            Amount(self.price_per_unit.0),
            Amount(self.cap.0),
            Amount(self.least.0)
        )
    }
}

/// What each provider asked last for one unit, in ascending order.
async fn asked(chain: &dyn Chain, when: When, newest_first: &[(TaskId, TaskRecord)]) -> Result<Vec<Balance>> {
    let mut asked: BTreeMap<AccountId, Balance> = BTreeMap::new();
    for (id, task) in newest_first.iter().take(ALIKE_MAX) {
        let units = Balance::from(task.spec.units_max.max(1));
        for (provider, bid) in chain.bids(when, *id).await? {
            if let Some(bid) = bid.opened {
                asked.entry(provider).or_insert(bid.price.div_ceil(units));
            }
        }
    }
    let mut prices: Vec<_> = asked.into_values().collect();
    prices.sort_unstable();
    Ok(prices)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser;
    use surety_chain_client::{BidRecord, FakeChain, Hash, Parameter, sample};
    use surety_types::{
        ModelId,
        input::Work,
        model::Operation,
        task::{Assignment, Bid, SecurityLevel as Level, TaskState},
    };

    use super::*;
    use crate::args::{Cli, Command};

    const USUAL: Balance = crate::SURE / 1000;

    fn spec(flags: &str) -> SpecArgs {
        let line = format!("surety quote --file text --model m {flags}");
        match Cli::try_parse_from(line.trim_end().split(' ')).unwrap().command {
            Command::Quote(spec) => *spec,
            other => panic!("{other:?}"),
        }
    }

    /// A settled task of ten units, of the model of zeros: these providers have asked so much a unit, and the
    /// first of them was paid so much a unit.
    fn settle(chain: &FakeChain, level: Level, bids: &[(u8, Balance)], paid: Balance) {
        let is_settled = |task: &TaskRecord| matches!(task.state, TaskState::Settled { .. });
        let mut task = sample::records::tasks().into_iter().find(is_settled).unwrap();
        (task.spec.model, task.spec.operation) = (ModelId::zero(), Operation::Embed);
        (task.spec.security.level, task.spec.units_max) = (level, 10);
        if let TaskState::Settled { claim, payments, .. } = &mut task.state {
            claim.units = 10;
            let payment = Assignment {
                provider: AccountId::new([bids[0].0; 32]),
                price: paid * 10,
            };
            *payments = vec![payment].try_into().unwrap();
        }
        chain.change(|state| {
            let id = state.tasks.keys().next_back().map_or(0, |last| last + 1);
            state.tasks.insert(id, task);
            for (provider, price) in bids {
                let bid = Bid {
                    price: price * 10,
                    seconds: 1,
                    salt: Hash::zero(),
                };
                let record = BidRecord {
                    seal: Hash::zero(),
                    opened: Some(bid),
                    deposit: 0,
                };
                state.bids.insert((id, AccountId::new([*provider; 32])), record);
            }
        });
        chain.finalize();
    }

    /// A chain on which work may be worth so much at least.
    fn worth(second: Balance) -> FakeChain {
        let chain = FakeChain::new();
        let set = Parameter {
            group: "Results".into(),
            name: "WorkPrice".into(),
            value: second.to_string(),
        };
        chain.change(|state| {
            state.parameters.push(set);
            state.audit_speeds.insert(ModelId::zero(), 1);
        });
        chain.finalize();
        chain
    }

    /// Of four units, on a chain without a fee.
    async fn quoted(chain: &FakeChain, model: ModelId, flags: &str) -> Quote {
        let (spec, registered) = (spec(flags), sample::records::model());
        let work = Work {
            operation: Operation::Embed,
            input_bytes: 0,
            units_max: 4,
        };
        let wanted = Wanted {
            model,
            registered: &registered,
            work,
            redundancy: spec.redundancy,
        };
        Quote::new(chain, &spec, &wanted).await.unwrap()
    }

    #[tokio::test]
    async fn what_few_bidders_were_paid_makes_the_next_cap_no_higher() {
        let (chain, bids) = (worth(0), [(1, USUAL), (2, USUAL), (3, USUAL)]);
        let mut caps = Vec::new();
        for _ in 0..5 {
            let quote = quoted(&chain, ModelId::zero(), "").await;
            // All that the cap leaves for each of three providers.
            settle(&chain, Level::Standard, &bids, quote.cap.0 / 3 / 4);
            caps.push(quote.cap.0);
        }
        assert_eq!(caps, [USUAL * 4 * 3 * 3 / 2; 5]);
    }

    #[tokio::test]
    async fn a_provider_counts_once_however_much_it_asks_and_however_often() {
        let chain = worth(0);
        settle(&chain, Level::Standard, &[(1, 10), (2, 11), (3, 12)], 12);
        for _ in 0..8 {
            settle(&chain, Level::Standard, &[(9, 1_000_000)], 1_000_000);
        }
        let quote = quoted(&chain, ModelId::zero(), "").await;
        assert_eq!((quote.providers, quote.price_per_unit), (4, Plancks(12)));
    }

    #[tokio::test]
    async fn with_more_bids_than_are_shortlisted_the_next_price_is_what_is_likely() {
        let chain = worth(0);
        let bids: Vec<_> = (1..=9).map(|who| (who, Balance::from(who) + 100)).collect();
        settle(&chain, Level::Standard, &bids, 105);
        let quote = quoted(&chain, ModelId::zero(), "--redundancy 2").await;
        // The shortlist has four.
        assert_eq!(quote.likely, Plancks(105 * 4 * 2));
        assert_eq!(
            (quote.price_per_unit, quote.cap),
            (Plancks(105), Plancks(105 * 4 * 3 / 2 * 2))
        );
        assert_eq!(serde_json::to_value(&quote).unwrap()["cap"], "1260");
        assert!(!quote.text().contains("the cap itself"), "{}", quote.text());
        let quote = quoted(&chain, ModelId::zero(), "--redundancy 5").await;
        assert_eq!(quote.likely, quote.cap);
        assert!(
            quote.text().contains("the cap itself is what is paid"),
            "{}",
            quote.text()
        );
    }

    #[tokio::test]
    async fn nothing_is_quoted_below_what_the_work_is_worth() {
        // Four items have a token each at least, and one takes 1,000 seconds.
        let (chain, least) = (worth(7), 7 * 4_000);
        let bids: Vec<_> = (1..=9).map(|who| (who, 1)).collect();
        settle(&chain, Level::Standard, &bids, 1);
        let quote = quoted(&chain, ModelId::zero(), "--redundancy 2").await;
        let all = Plancks(least * 2);
        assert_eq!((&quote.least, &quote.likely, &quote.cap), (&all, &all, &all));
        let said = quote.text();
        let ends = format!("with less than {} it cannot be posted", Amount(least * 2));
        assert!(said.ends_with(&ends), "{said}");
    }

    #[tokio::test]
    async fn tasks_that_are_watched_alike_are_what_counts_where_there_are_any() {
        let chain = worth(0);
        settle(&chain, Level::Basic, &[(1, 1)], 1);
        settle(&chain, Level::High, &[(2, 9)], 9);
        let price = async |flags| quoted(&chain, ModelId::zero(), flags).await.price_per_unit;
        assert_eq!(price("--security high").await, Plancks(9));
        assert_eq!(price("--security basic").await, Plancks(1));
        let quote = quoted(&chain, ModelId::zero(), "").await;
        assert_eq!(quote.providers, 2, "none of the standard level");
    }

    #[tokio::test]
    async fn of_a_model_that_nobody_has_used_the_price_is_what_providers_ask() {
        let chain = worth(0);
        settle(&chain, Level::Standard, &[(1, 5)], 5);
        let quote = quoted(&chain, ModelId::repeat_byte(7), "").await;
        assert_eq!((quote.providers, quote.price_per_unit), (0, Plancks(USUAL)));
        assert_eq!(quote.default_cap().unwrap(), Amount(USUAL * 4 * 3 * 3 / 2));
    }

    #[tokio::test]
    async fn where_far_more_is_asked_than_usual_the_client_has_to_say_the_cap() {
        let chain = worth(0);
        settle(&chain, Level::Standard, &[(1, USUAL * 10)], 1);
        quoted(&chain, ModelId::zero(), "").await.default_cap().unwrap();
        settle(&chain, Level::Standard, &[(1, USUAL * 10 + 1)], 1);
        let refused = quoted(&chain, ModelId::zero(), "")
            .await
            .default_cap()
            .unwrap_err();
        assert!(refused.to_string().contains("--cap"), "{refused}");
        assert_eq!(refused.exit_code(), 2);
    }
}
