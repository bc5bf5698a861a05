//! `surety channel offers`: what providers sell over payment channels.

use std::collections::BTreeMap;

use serde::Serialize;
use surety_chain_client::{Chain, ChannelChain, OfferView, When, address};
use surety_types::ModelId;

use super::Context;
use crate::{
    amount::{Amount, Plancks},
    args::OffersArgs,
    error::Result,
    models,
    output::table,
};

/// An offer, as it is listed. Amounts are in plancks, as text.
#[derive(Debug, PartialEq, Serialize)]
struct Listed {
    provider: String,
    model: String,
    /// Its name, where the chain has it.
    name: Option<String>,
    operation: &'static str,
    unit_price: Plancks,
    places: u32,
    /// Of those, as its provider said last.
    busy: u32,
    /// What it can still sell before receipts are final.
    room: Plancks,
    /// A country, as its provider says.
    region: Option<String>,
    /// Receipts of its newest batches that can no longer be disputed, and what they cost.
    settled_receipts: u32,
    settled: Plancks,
    /// Whether it was ever found at fault over channels, and how often lately, over tasks or channels.
    was_convicted: bool,
    faults: u32,
    /// Deadlines of tasks that it has missed and not made good for.
    missed: u32,
    /// Blocks since its stake grew, or it got another agent.
    settled_for: u32,
}

impl Listed {
    fn new(view: &OfferView, names: &BTreeMap<ModelId, String>) -> Self {
        let record = view.record;
        Self {
            provider: address(&view.provider),
            model: format!("{:?}", view.model),
            name: names.get(&view.model).cloned(),
            operation: view.operation.name(),
            unit_price: Plancks(view.unit_price),
            places: view.places,
            busy: view.busy,
            room: Plancks(view.room),
            region: view.region.map(|region| region.to_string()),
            settled_receipts: record.settled.receipts,
            settled: Plancks(record.settled.price),
            was_convicted: record.was_convicted,
            faults: record.faults,
            missed: record.missed,
            settled_for: record.settled_for,
        }
    }

    /// What is held against it.
    fn faults(&self) -> String {
        let mut all = Vec::new();
        match (self.was_convicted, self.faults) {
            (_, 1..) => all.push(format!("{} lately", self.faults)),
            (true, 0) => all.push("once".to_owned()),
            (false, 0) => {}
        }
        if self.missed > 0 {
            all.push(format!("{} deadlines", self.missed));
        }
        all.join(", ")
    }

    fn row(&self) -> [String; 8] {
        [
            self.provider.clone(),
            self.name.clone().unwrap_or_else(|| self.model.clone()),
            self.operation.to_owned(),
            Amount(self.unit_price.0).to_string(),
            format!("{} of {}", self.places.saturating_sub(self.busy), self.places),
            self.region.clone().unwrap_or_default(),
            format!("{} for {}", self.settled_receipts, Amount(self.settled.0)),
            self.faults(),
        ]
    }
}

pub(super) async fn list(context: &Context, args: &OffersArgs) -> Result<()> {
    let chain = context.rpc().await?;
    let model = match &args.model {
        Some(name) => Some(models::registered(&*chain, &context.models(), name).await?.0),
        None => None,
    };
    let listed = offers(&*chain, model).await?;
    context.out.result(&listed, || {
        let mut table = table([
            "provider",
            "model",
            "operation",
            "a unit",
            "free places",
            "says it is in",
            "settled lately",
            "faults",
        ]);
        for one in &listed {
            table.add_row(one.row());
        }
        table.to_string()
    })
}

/// The cheapest first.
async fn offers<C: Chain + ChannelChain>(chain: &C, model: Option<ModelId>) -> Result<Vec<Listed>> {
    let when = When::At(chain.block(When::Finalized).await?.hash);
    let mut offers = chain.offers(when).await?;
    offers.retain(|offer| model.is_none_or(|model| offer.model == model));
    offers.sort_by_key(|offer| offer.unit_price);
    let known = chain.models(when).await?.into_iter();
    let names = known
        .map(|(id, model)| (id, models::name(&model.manifest)))
        .collect();
    Ok(offers.iter().map(|view| Listed::new(view, &names)).collect())
}

#[cfg(test)]
mod tests {
    use surety_chain_client::sample;

    use super::*;

    #[test]
    fn an_offer_says_where_it_is_what_it_settled_and_what_is_held_against_its_provider() {
        let mut view = sample::channels::offer();
        let names = BTreeMap::from([(view.model, "small".to_owned())]);
        let [provider, model, operation, price, places, region, settled, faults] =
            Listed::new(&view, &names).row();
        assert_eq!((provider, model.as_str()), (address(&view.provider), "small"));
        assert_eq!((operation.as_str(), price), ("embed", Amount(1).to_string()));
        assert_eq!((places.as_str(), region.as_str()), ("1 of 2", "DE"));
        assert_eq!(settled, format!("5 for {}", Amount(6)));
        assert_eq!(faults, "8 lately, 9 deadlines");
        (view.record.faults, view.record.missed, view.region) = (0, 0, None);
        let row = Listed::new(&view, &BTreeMap::new()).row();
        assert_eq!(
            (row[1].as_str(), row[5].as_str()),
            (format!("{:?}", view.model).as_str(), "")
        );
        assert_eq!(row[7], "once");
    }
}
