//! What a gateway asks.

use std::collections::BTreeSet;

use async_trait::async_trait;
use surety_chain_client::{When, parse_address};
use surety_channel_calls::{CHUNK_BYTES_MAX, Table, call_key, payer::Wanted};
use surety_channels::Request;
use surety_gateway::{
    Embedded, EmbeddingAsk, Generating, GenerationAsk, NoProof, Offered, Proof, Receipt, Upstream,
    UpstreamError, Verdict,
};
use surety_journal::CallStore;
use surety_proofs::content_hash;
use surety_types::{
    ModelId,
    input::{encode_items, encode_prompt},
    model::Operation,
};

use crate::{
    AccountId, Providers, Sold, StartError,
    ask::Asked,
    channel::Holds,
    confirm::{Confirmations, Outcome, Sample, sample},
    journal,
    market::Need,
    race::{Race, with},
    run::Run,
};

/// Tokens of a chunk: what is paid for ahead, and may be lost. Providers say fewer at once; with fewer ahead
/// they would wait for vouchers.
const CHUNK_TOKENS: u32 = 16;

/// Items of a request for vectors: all of them are paid for ahead. Providers take twice as many, unless their
/// operators say otherwise.
const ITEMS_MAX: u32 = 128;

impl Providers {
    /// What a unit may cost of a request for so many, of all together that are asked the same, by none of
    /// those to `avoid`.
    fn quoted(&self, of: (ModelId, Operation), units: u32, avoid: &[String]) -> Option<u128> {
        let spending = &self.shared.config.spending;
        let cheapest = self.shared.cheapest(of, units, &accounts(avoid))?;
        let slack = u128::from(spending.slack_percent).saturating_add(100);
        let one = cheapest.saturating_mul(slack).div_ceil(100);
        let racers = u128::try_from(self.shared.config.race.max(1)).unwrap_or(u128::MAX);
        Some(one.min(spending.unit_price_max).saturating_mul(racers))
    }

    /// What one of those may cost that are asked the same.
    fn share(&self, price_max: u128) -> u128 {
        let racers = u128::try_from(self.shared.config.race.max(1)).unwrap_or(u128::MAX);
        price_max.checked_div(racers).unwrap_or_default()
    }

    fn sold(&self, name: &str, operation: Operation) -> Result<&Sold, UpstreamError> {
        let sold = self.shared.config.models.get(name);
        let sold = sold.filter(|sold| sold.operations.contains(&operation));
        sold.ok_or(UpstreamError::NoProvider)
    }

    fn asked(
        sold: &Sold,
        operation: Operation,
        (call, input): (u64, Vec<u8>),
        (units, chunk_units): (u32, u32),
        price_max: u128,
    ) -> Asked {
        let unit_price_max = price_max.checked_div(units.into()).unwrap_or_default();
        let request = Request {
            model: sold.model,
            operation,
            input: content_hash(&input),
            input_bytes: u32::try_from(input.len()).unwrap_or(u32::MAX),
            units_max: units,
            // Whoever is asked says how much.
            unit_price: 0,
        };
        Asked {
            wanted: Wanted {
                request,
                input,
                chunk_units,
                facts: sold.facts.clone(),
                call: Some(call),
            },
            need: Need {
                model: sold.model,
                operation,
                units,
                unit_price_max,
            },
            is_race: false,
        }
    }

    /// The items as a request.
    fn asked_items(sold: &Sold, ask: &EmbeddingAsk<'_>) -> Result<Asked, UpstreamError> {
        let input = encode_items(ask.items, &sold.facts.bounds).map_err(|fault| malformed(&fault))?;
        let units = u32::try_from(ask.items.len()).unwrap_or(u32::MAX);
        let (of, units) = ((ask.call, input), (units, units));
        Ok(Self::asked(sold, Operation::Embed, of, units, ask.price_max))
    }

    /// The vectors of as many items as one request may have. The first receipt is that of whoever has
    /// computed all of them.
    async fn embed_some(
        &self,
        sold: &Sold,
        ask: &EmbeddingAsk<'_>,
        avoid: &[String],
    ) -> Result<Embedded, UpstreamError> {
        let asked = Self::asked_items(sold, ask)?;
        let call = self.shared.begin(&asked, avoid).await?;
        let mut run = Run::new(self.shared.clone(), call);
        let confirming = self.confirm(sold, ask, (run.provider(), avoid))?;
        let answer = run.all().await;
        let item_bytes = usize::try_from(sold.facts.item_bytes).unwrap_or(usize::MAX);
        let bytes = answer.as_ref().ok().map(|(bytes, _)| bytes.as_slice());
        let confirmed = match confirming {
            Some(confirming) => confirming.end(run.provider(), bytes, item_bytes).await,
            None => Outcome::default(),
        };
        let fault = confirmed.fault(run.provider());
        let (mut receipts, spent) = (confirmed.receipts, confirmed.spent);
        let (bytes, receipt) = match answer {
            Ok(whole) => whole,
            Err(error) => return Err(with(error, receipts, spent)),
        };
        receipts.insert(0, receipt);
        match fault {
            Some(error) => Err(with(error, receipts, spent)),
            None => Ok(Embedded {
                vectors: vectors(&bytes, sold.facts.item_bytes),
                receipts,
                spent,
            }),
        }
    }

    /// Has others compute a few of the items, too, where that is wanted: nobody else than the one who
    /// computes all of them, nor whoever is to be avoided.
    fn confirm(
        &self,
        sold: &Sold,
        ask: &EmbeddingAsk<'_>,
        (provider, avoid): (&AccountId, &[String]),
    ) -> Result<Option<Confirmations>, UpstreamError> {
        let most = self.shared.config.race.saturating_sub(1);
        if most == 0 {
            return Ok(None);
        }
        let places = sample(ask.items.len());
        let some: Vec<Vec<u32>> = places
            .iter()
            .filter_map(|place| ask.items.get(*place).cloned())
            .collect();
        let price_max = part_of(ask, some.len());
        let items = &some;
        let asked = Self::asked_items(
            sold,
            &EmbeddingAsk {
                items,
                price_max,
                ..*ask
            },
        )?;
        let mut refused = accounts(avoid);
        refused.insert(provider.clone());
        let sample = Sample { places, asked };
        Ok(Some(Confirmations::begin(&self.shared, sample, &refused, most)))
    }
}

/// Those that are named.
pub(crate) fn accounts(names: &[String]) -> BTreeSet<AccountId> {
    names.iter().filter_map(|name| parse_address(name)).collect()
}

/// Items that one request for vectors has at most.
fn items_at_once(sold: &Sold) -> u32 {
    let at_once = CHUNK_BYTES_MAX.checked_div(sold.facts.item_bytes);
    at_once.unwrap_or_default().clamp(1, ITEMS_MAX)
}

/// What so many of the items may cost, in plancks.
fn part_of(ask: &EmbeddingAsk<'_>, count: usize) -> u128 {
    let wide = |count: usize| u128::try_from(count).unwrap_or(u128::MAX);
    let each = ask.price_max.checked_div(wide(ask.items.len()));
    each.unwrap_or_default().saturating_mul(wide(count))
}

/// Vectors of numbers of 32 bits, little-endian, one after the other. A payer takes whole ones alone.
fn vectors(bytes: &[u8], item_bytes: u32) -> Vec<Vec<f32>> {
    let item_bytes = usize::try_from(item_bytes).unwrap_or(usize::MAX).max(1);
    let vector = |item: &[u8]| {
        let (words, _) = item.as_chunks();
        words.iter().map(|word| f32::from_le_bytes(*word)).collect()
    };
    bytes.chunks_exact(item_bytes).map(vector).collect()
}

/// The gateway has checked it: this is a model that is described in two ways.
fn malformed(fault: &dyn std::fmt::Display) -> UpstreamError {
    tracing::error!(%fault, "what is to be asked is no input of its model");
    UpstreamError::NoProvider
}

#[async_trait]
impl Upstream for Providers {
    fn models(&self) -> Vec<Offered> {
        let mut offered = Vec::new();
        for (name, sold) in &self.shared.config.models {
            for operation in &sold.operations {
                let unit_price_max = self.quoted((sold.model, *operation), 1, &[]);
                offered.extend(unit_price_max.map(|unit_price_max| Offered {
                    name: name.clone(),
                    generates: *operation == Operation::Generate,
                    unit_price_max,
                }));
            }
        }
        offered
    }

    fn unit_price_max(&self, model: &str, generates: bool, units: u32, avoid: &[String]) -> Option<u128> {
        let operation = match generates {
            true => Operation::Generate,
            false => Operation::Embed,
        };
        let sold = self.sold(model, operation).ok()?;
        let units = match operation {
            Operation::Generate => units,
            Operation::Embed => units.min(items_at_once(sold)),
        };
        self.quoted((sold.model, operation), units, avoid)
    }

    async fn generate(
        &self,
        ask: &GenerationAsk,
        avoid: &[String],
    ) -> Result<Box<dyn Generating>, UpstreamError> {
        let sold = self.sold(&ask.model, Operation::Generate)?;
        let input = encode_prompt(&ask.prompt, &ask.settings, &sold.facts.bounds);
        let input = input.map_err(|fault| malformed(&fault))?;
        let prompt = u32::try_from(ask.prompt.len()).unwrap_or(u32::MAX);
        let units = prompt.saturating_add(ask.settings.max_tokens);
        let asked = Self::asked(
            sold,
            Operation::Generate,
            (ask.call, input),
            (units, CHUNK_TOKENS),
            self.share(ask.price_max),
        );
        let race = self.shared.config.race;
        if race > 1
            && let Some(race) = Race::begin(&self.shared, &asked, avoid, race).await?
        {
            return Ok(Box::new(race));
        }
        let call = self.shared.begin(&asked, avoid).await?;
        Ok(Box::new(Run::new(self.shared.clone(), call)))
    }

    async fn embed(&self, ask: &EmbeddingAsk<'_>, avoid: &[String]) -> Result<Embedded, UpstreamError> {
        let sold = self.sold(ask.model, Operation::Embed)?;
        let at_once = usize::try_from(items_at_once(sold)).unwrap_or(usize::MAX);
        let items = ask.items.get(..at_once).unwrap_or(ask.items);
        let price_max = self.share(part_of(ask, items.len()));
        let some = EmbeddingAsk {
            items,
            price_max,
            ..*ask
        };
        self.embed_some(sold, &some, avoid).await
    }

    async fn verdict(&self, receipt: &Receipt) -> Verdict {
        self.verdict_of(receipt).await
    }

    async fn proof(&self, receipt: &Receipt) -> Result<Proof, NoProof> {
        self.proof_of(receipt).await
    }
}

impl Providers {
    /// By the chain, and by what is held here. A receipt is held until a final batch has it, or its provider
    /// has shown that a batch has it; of a channel that has ended it is kept which never were.
    async fn verdict_of(&self, receipt: &Receipt) -> Verdict {
        match self.is_wrong(receipt).await {
            Ok(true) => return Verdict::Wrong,
            Ok(false) => {}
            // It may be: nothing is promised of it.
            Err(error) => {
                tracing::warn!(%error, "cannot see what has become of a receipt");
                return Verdict::Unbatched;
            }
        }
        let market = self.shared.market();
        let Some(handle) = market.channels.get(&receipt.channel) else {
            // Nothing of a channel that has ended is paid or disputed any more.
            return self.verdict_of_forgotten(receipt, Verdict::Final).await;
        };
        let is_counted = receipt.nonce < handle.status().purse.next;
        match handle.holds(receipt.nonce).await {
            // What was counted may be another receipt of that number, until its provider has shown it.
            Some(Holds::Unshown) | None => Verdict::Unbatched,
            Some(Holds::Shown) => Verdict::Challengeable,
            // Its channel may just have ended.
            Some(Holds::Nothing) if is_counted => self.verdict_of_forgotten(receipt, Verdict::Final).await,
            Some(Holds::Nothing) => self.verdict_of_forgotten(receipt, Verdict::Challengeable).await,
        }
    }

    /// Of a receipt that nothing more is expected of: that of what was `settled`, unless its channel has
    /// ended before.
    async fn verdict_of_forgotten(&self, receipt: &Receipt, settled: Verdict) -> Verdict {
        let key = call_key(receipt.channel, receipt.nonce);
        let of = move |store: &CallStore| {
            // It is held until its channel's task is told of the end, which writes both at once: in another
            // order it might be seen in neither.
            let mut rows = store.read(Table::Held, &key)?;
            rows.extend(store.read(Table::Unproven, &key)?);
            Ok(rows)
        };
        match journal::read(&self.shared.config.store, of).await {
            Ok(rows) if rows.is_empty() => settled,
            Ok(_) => Verdict::Unproven,
            Err(error) => {
                tracing::warn!(%error, "cannot see what has become of a receipt");
                Verdict::Unbatched
            }
        }
    }

    /// Whether something here shows that its provider has lied, or a batch that the chain keeps has it as one
    /// that was found wrong.
    async fn is_wrong(&self, receipt: &Receipt) -> Result<bool, StartError> {
        let config = &self.shared.config;
        let key = call_key(receipt.channel, receipt.nonce);
        let of = move |store: &CallStore| store.read(Table::Evidence, &key);
        if !journal::read(&config.store, of).await?.is_empty() {
            return Ok(true);
        }
        let Some(provider) = parse_address(&receipt.provider) else {
            return Ok(false);
        };
        let batches = config.channels.batches(When::Finalized, &provider).await?;
        let mut windows = batches.iter().map(|batch| &batch.window);
        Ok(windows.any(|window| window.has_struck(receipt.channel, receipt.nonce)))
    }
}
