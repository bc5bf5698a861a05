//! Sentence embeddings on the exact tier.

use rayon::prelude::*;
use surety_exact::Fault;
use surety_types::{
    model::{ModelManifest, Operation},
    ContentHash,
};
use surety_verification::content_hash;

use super::{
    bert::{BertModel, Scratch, TokensOf},
    trace::{
        hash::{roots, row_digests, Digest},
        output_leaf, TopLevel,
    },
    weights::BertWeights,
    Form,
};
use crate::{
    bert::Tokens,
    embeddings::{rows_max, Embeddings},
    engine::{report, Engine, Job, Outcome, Sink},
    error::EngineError,
    input::{items, InputError},
    model_error::ModelError,
    trace::claim,
};

/// Items that each thread gets between two events: enough to keep all busy when lengths differ, few enough that a
/// cancelled job ends within a second.
const ITEMS_PER_THREAD: usize = 32;

/// Rows that go through the products together, unless one item alone has more: enough to read each weight seldom, few
/// enough to stay in a processor's cache.
const BATCH_ROWS: usize = 96;

/// A text of one token, to see what the tokenizer says beside that.
const PROBE: &str = "a";

/// An encoder of the exact tier.
pub struct ExactBert {
    manifest: ModelManifest,
    model: BertModel,
    tokens: Tokens,
}

/// An item of the input, with its index.
struct Item {
    index: u32,
    tokens: TokensOf,
}

/// What came of one item.
struct Embedded {
    row: Vec<f32>,
    /// Of the row of its tokens.
    tokens: Digest,
    leaves: Vec<ContentHash>,
}

impl ExactBert {
    /// Makes an engine of weights that have been checked, and of `tokenizer.json`.
    ///
    /// # Errors
    /// [`ModelError`] when they do not fit together.
    pub fn new(manifest: ModelManifest, weights: BertWeights, tokenizer: &[u8]) -> Result<Self, ModelError> {
        let checked = weights.check(&manifest);
        let model = BertModel::new(weights)
            .map_err(|_| ModelError::Malformed("its tensors do not fit together".into()))?;
        checked?;
        let tokens = Tokens::load(tokenizer, model.vocabulary(), model.positions())?;
        // A template gives every text the same kinds of segments.
        let probe = tokens.of(PROBE).map_err(ModelError::Tokenizer)?;
        if probe.types.iter().any(|kind| *kind != 0) {
            let reason = "it puts items into other segments than the first";
            return Err(ModelError::Tokenizer(reason.into()));
        }
        Ok(Self {
            manifest,
            tokens,
            model,
        })
    }

    fn embed(&self, job: &Job, sink: &mut dyn Sink) -> Result<(Outcome, Vec<ContentHash>), EngineError> {
        let width = self.model.width();
        let items = self.items(job)?;
        let total = count(items.len());
        let wave = rayon::current_num_threads()
            .saturating_mul(ITEMS_PER_THREAD)
            .max(1);
        let mut values = Vec::with_capacity(items.len().saturating_mul(width));
        let (mut tokens, mut leaves) = (Vec::new(), vec![ContentHash::zero()]);
        let mut done = 0;
        report(sink, 0, total)?;
        for lines in items.chunks(wave) {
            for embedded in self.wave(done, lines)? {
                values.extend(embedded.row);
                tokens.push(embedded.tokens);
                leaves.extend(embedded.leaves);
            }
            done += count(lines.len());
            report(sink, done, total)?;
        }
        let embeddings = Embeddings::new(width, values)
            .ok_or_else(|| EngineError::Compute("rows of unequal width".into()))?;
        let output = embeddings
            .encode()
            .map_err(|error| EngineError::Compute(error.to_string()))?;
        let hash = content_hash(&output);
        if let (Some(first), [root, ..]) = (leaves.first_mut(), &roots(&tokens, vec![tokens.len()])[..]) {
            *first = ContentHash::from(*root);
        }
        leaves.push(output_leaf(&hash));
        let claim = claim(hash, leaves.iter().copied(), total);
        Ok((Outcome { output, claim }, leaves))
    }

    /// A job's items. Every provider refuses the same inputs.
    fn items<'a>(&self, job: &'a Job) -> Result<Vec<&'a str>, EngineError> {
        if job.operation != Operation::Embed || !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        Ok(items(
            &job.input,
            job.units_max.min(rows_max(self.model.width())),
        )?)
    }

    /// Some items' results, in their order.
    fn wave(&self, first: u32, lines: &[&str]) -> Result<Vec<Embedded>, EngineError> {
        let tokenised: Vec<_> = lines
            .par_iter()
            .zip(first..first.saturating_add(count(lines.len())))
            .map(|(line, index)| self.item(index, line))
            .collect();
        // In order, so that of several faults the first is told, whichever thread met one first.
        let items: Vec<Item> = tokenised.into_iter().collect::<Result<_, _>>()?;
        let results: Vec<_> = batches(&items)
            .into_par_iter()
            .map_init(Scratch::default, |scratch, batch| self.batch(batch, scratch))
            .collect();
        let mut embedded = Vec::with_capacity(items.len());
        for result in results {
            embedded.extend(result?);
        }
        Ok(embedded)
    }

    fn item(&self, index: u32, line: &str) -> Result<Item, EngineError> {
        let tokens = self.tokens.of(line).map_err(EngineError::Compute)?;
        if tokens.types.iter().any(|kind| *kind != 0) {
            return Err(EngineError::Compute("an item is not in the first segment".into()));
        }
        match tokens.ids.is_empty() {
            true => Err(InputError::NoTokens { item: index }.into()),
            false => Ok(Item { index, tokens }),
        }
    }

    fn batch(&self, items: &[Item], scratch: &mut Scratch) -> Result<Vec<Embedded>, EngineError> {
        let sequences: Vec<&TokensOf> = items.iter().map(|item| &item.tokens).collect();
        let mut trace = TopLevel::new(self.model.trace_shape());
        let pooled = match (self.model.embed(&sequences, scratch, &mut trace), items) {
            (Ok(pooled), _) => pooled,
            (Err(fault), [item]) => return Err(failed(item.index, fault)),
            // Which of them it was is found one by one; the first is told.
            (Err(_), _) => {
                let singly = items
                    .iter()
                    .map(|item| self.batch(std::slice::from_ref(item), scratch));
                return Ok(singly
                    .collect::<Result<Vec<_>, _>>()?
                    .into_iter()
                    .flatten()
                    .collect());
            }
        };
        let lengths: Vec<usize> = items.iter().map(|item| item.tokens.ids.len()).collect();
        let rows = pooled.chunks_exact(self.model.width());
        let results = rows.zip(trace.leaves(&lengths)).zip(self.token_digests(items));
        let embedded = results.map(|((row, leaves), tokens)| Embedded {
            row: row.to_vec(),
            tokens,
            leaves: leaves.concat(),
        });
        Ok(embedded.collect())
    }
}

impl ExactBert {
    /// Words of an item's row in the first leaf: how many tokens it has, and room for as many as it could have.
    fn token_words(&self) -> usize {
        1 + self.model.positions()
    }

    fn token_row(&self, item: &Item) -> Vec<u8> {
        let ids = &item.tokens.ids;
        words(
            [count(ids.len())].into_iter().chain(ids.iter().copied()),
            self.token_words(),
        )
    }

    fn token_digests(&self, items: &[Item]) -> Vec<Digest> {
        let rows: Vec<u8> = items.iter().flat_map(|item| self.token_row(item)).collect();
        row_digests(&rows, 4 * self.token_words())
    }
}

impl Engine for ExactBert {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.embed(job, sink).map(|(outcome, _)| outcome)
    }

    fn leaves(&self, job: &Job, _: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        self.embed(job, sink).map(|(_, leaves)| leaves)
    }
}

/// Cuts items into runs of about [`BATCH_ROWS`] tokens. Where the cuts are changes no result.
fn batches(items: &[Item]) -> Vec<&[Item]> {
    let mut batches = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (end, item) in items.iter().enumerate() {
        let more = item.tokens.ids.len();
        if end > start && rows + more > BATCH_ROWS {
            batches.extend(items.get(start..end));
            (start, rows) = (end, 0);
        }
        rows += more;
    }
    batches.extend(items.get(start..).filter(|rest| !rest.is_empty()));
    batches
}

fn failed(item: u32, fault: Fault) -> EngineError {
    match fault {
        Fault::Shape => EngineError::Compute("the item's tokens do not fit the model".into()),
        Fault::NotFinite => EngineError::NotFinite { item },
        Fault::ZeroNorm => EngineError::ZeroVector { item },
    }
}

/// Indices of items: bounded by `ITEMS_MAX`, so nothing is ever cut off.
fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
