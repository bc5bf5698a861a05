//! Sentence embeddings on the exact tier.

mod items;

use std::sync::Arc;

use rayon::prelude::*;
use surety_dispute_game::bisection::ROWS_MAX;
use surety_exact::ArithmeticError;
use surety_kernels::Packed;
use surety_model_trace::{Layout, Rows, TaskFacts, TraceShape, encoder_tokens};
use surety_models::{
    Form, ModelError,
    tokens::{Tokens, TokensOf},
    units_max,
    weights::BertWeights,
};
use surety_proofs::content_hash;
use surety_types::{
    ContentHash,
    model::{Architecture, ModelManifest, Operation},
    task::ResultClaim,
};

use super::{
    bert::{BertModel, Scratch},
    dispute::{EmbedWork, OwnTrace},
    probe::Probe,
    trace::{
        TopLevel, given_leaf,
        hash::{Digest, blob_hash, roots, row_digests},
    },
};
use crate::{
    embeddings::{Embeddings, rows_max},
    engine::{Engine, FoundItems, Job, Outcome, Sink, report},
    error::EngineError,
    input::{ITEMS_MAX, InputError, items},
    trace::claim,
};

/// Items that each thread gets between two events: enough to keep all busy when lengths differ, few enough
/// that a cancelled job ends within a second.
const ITEMS_PER_THREAD: usize = 32;

/// Rows that go through the products together, unless one item alone has more: enough to read each weight
/// seldom, few enough to stay in a processor's cache.
const BATCH_ROWS: usize = 96;

/// A text of one token, to see what the tokenizer says beside that.
const PROBE: &str = "a";

/// An encoder of the exact tier.
pub struct ExactBert {
    manifest: ModelManifest,
    architecture: Architecture,
    /// More could not be disputed.
    items_max: u32,
    model: BertModel,
    tokens: Tokens,
}

/// An item of the input, with its index.
struct Item {
    index: u32,
    tokens: TokensOf,
}

/// The own view of a job.
pub(super) struct Own {
    pub(super) output: Vec<u8>,
    pub(super) leaves: Vec<ContentHash>,
    claim: ResultClaim,
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
        let architecture = checked?;
        let most = ITEMS_MAX.min(ROWS_MAX);
        let tokens = Tokens::load(tokenizer, model.vocabulary(), model.positions())?;
        // A template gives every text the same kinds of segments.
        let probe = tokens.of(PROBE).map_err(ModelError::Tokenizer)?;
        if probe.types.iter().any(|kind| *kind != 0) {
            let reason = "it puts items into other segments than the first";
            return Err(ModelError::Tokenizer(reason.into()));
        }
        Ok(Self {
            items_max: units_max(&manifest, &architecture, most)?,
            manifest,
            architecture,
            tokens,
            model,
        })
    }

    /// Everything about a job of which `units` items are claimed to have been done; about all items when
    /// nobody claims anything.
    pub(super) fn own(&self, job: &Job, units: Option<u32>, sink: &mut dyn Sink) -> Result<Own, EngineError> {
        let width = self.model.width();
        let mut items = self.items(job)?;
        let there = items.len();
        let units = units.map_or(there, |units| units as usize);
        items.truncate(units);
        let mut values = Vec::with_capacity(units.saturating_mul(width));
        let (mut tokens, mut leaves) = (Vec::new(), Vec::new());
        for embedded in self.all(&items, sink)? {
            values.extend(embedded.row);
            tokens.push(embedded.tokens);
            leaves.extend(embedded.leaves);
        }
        // Items that are claimed without being there: what no trace has is in their place.
        values.resize(units.saturating_mul(width), 0.0);
        tokens.resize(units, Digest::default());
        leaves.resize(
            units.saturating_mul(self.trace_shape().strides() as usize),
            ContentHash::zero(),
        );
        let embeddings = Embeddings::new(width, values)
            .ok_or_else(|| EngineError::Compute("rows of unequal width".into()))?;
        let output = embeddings
            .encode()
            .map_err(|error| EngineError::Compute(error.to_string()))?;
        let hash = blob_hash(&output);
        let first = if units == there {
            ContentHash::from(
                roots(&tokens, vec![tokens.len()])
                    .first()
                    .copied()
                    .unwrap_or_default(),
            )
        } else {
            given_leaf(&self.token_rows(job, count(units))?)
        };
        let leaves: Vec<_> = [first].into_iter().chain(leaves).chain([hash]).collect();
        Ok(Own {
            claim: claim(hash, leaves.iter().copied(), count(units)),
            output,
            leaves,
        })
    }

    fn all(&self, items: &[&str], sink: &mut dyn Sink) -> Result<Vec<Embedded>, EngineError> {
        let total = count(items.len());
        let wave = rayon::current_num_threads()
            .saturating_mul(ITEMS_PER_THREAD)
            .max(1);
        let mut embedded = Vec::with_capacity(items.len());
        report(sink, 0, total)?;
        for lines in items.chunks(wave) {
            embedded.extend(self.wave(count(embedded.len()), lines)?);
            report(sink, count(embedded.len()), total)?;
        }
        Ok(embedded)
    }

    /// Runs one item, and lets somebody look on.
    pub(super) fn look(
        &self,
        job: &Job,
        item: u32,
        probe: &mut impl Probe,
        sink: &mut dyn Sink,
    ) -> Result<(), EngineError> {
        report(sink, 0, 1)?;
        let items = self.items(job)?;
        let line = items.get(item as usize).ok_or(EngineError::NotInTrace)?;
        let tokens = self.item(item, line)?.tokens;
        self.model
            .embed(&[&tokens], &mut Scratch::default(), probe)
            .map_err(|fault| failed(item, fault))?;
        Ok(())
    }

    /// What the first leaf of a trace records, when `units` items are claimed to have been done. Where the
    /// input has another number of items its first word is one that no item has, so that the claim is wrong
    /// there.
    pub(super) fn token_rows(&self, job: &Job, units: u32) -> Result<Rows, EngineError> {
        let items = self.items(job)?;
        let tokens: Vec<_> = items
            .par_iter()
            .zip(0..count(items.len()))
            .map(|(line, index)| Ok(self.item(index, line)?.tokens.ids))
            .collect();
        let mut tokens = tokens.into_iter().collect::<Result<Vec<_>, EngineError>>()?;
        tokens.resize(units as usize, Vec::new());
        let there = items.len();
        let ids = tokens.iter().map(|ids| &ids[..]);
        let mut rows = encoder_tokens(ids, count(self.model.positions()));
        if let (true, Rows::Bytes { bytes, .. }) = (there != units as usize, &mut rows) {
            bytes.iter_mut().take(4).for_each(|byte| *byte = u8::MAX);
        }
        Ok(rows)
    }

    pub(super) fn trace_shape(&self) -> TraceShape {
        self.model.trace_shape()
    }

    pub(super) fn weights(&self) -> &BertWeights<Packed> {
        self.model.weights()
    }

    /// A job's items. Every provider refuses the same inputs.
    fn items<'a>(&self, job: &'a Job) -> Result<Vec<&'a str>, EngineError> {
        if job.operation != Operation::Embed || !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        Ok(items(
            &job.input,
            job.units_max
                .min(rows_max(self.model.width()))
                .min(self.items_max),
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
        if tokens.ids.is_empty() {
            Err(InputError::NoTokens { item: index }.into())
        } else {
            Ok(Item { index, tokens })
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
    /// Of the rows of items' tokens.
    fn token_digests(&self, items: &[Item]) -> Vec<Digest> {
        let tokens = items.iter().map(|item| &item.tokens.ids[..]);
        match encoder_tokens(tokens, count(self.model.positions())) {
            Rows::Bytes { row_bytes, bytes } => row_digests(&bytes, row_bytes as usize),
            _ => Vec::new(),
        }
    }
}

impl Engine for ExactBert {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let Own { output, claim, .. } = self.own(job, None, sink)?;
        Ok(Outcome { output, claim })
    }

    fn audit_items(
        &self,
        job: &Job,
        choose: &dyn Fn(u32) -> Option<Vec<u32>>,
        sink: &mut dyn Sink,
    ) -> Result<Option<FoundItems>, EngineError> {
        self.some_items(job, choose, sink)
    }

    fn shows_items(
        &self,
        own: &FoundItems,
        claim: &ResultClaim,
        leaves: &[ContentHash],
        output: &[u8],
    ) -> bool {
        self.has_items(own, claim, leaves, output)
    }

    fn leaves(&self, job: &Job, _: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        self.own(job, None, sink).map(|own| own.leaves)
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        output: Vec<u8>,
        units: u32,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        self.items(&job)?;
        let facts = TaskFacts {
            family: self.manifest.family,
            operation: job.operation,
            input: content_hash(&job.input),
            units,
            output: content_hash(&output),
        };
        let layout = Layout::new(&self.architecture, facts)?;
        let work = EmbedWork::new(self, job, units);
        Ok(OwnTrace::new(layout, Box::new(work), sink))
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

fn failed(item: u32, fault: ArithmeticError) -> EngineError {
    match fault {
        ArithmeticError::Shape => EngineError::Compute("the item's tokens do not fit the model".into()),
        ArithmeticError::NotFinite => EngineError::NotFinite { item },
        ArithmeticError::ZeroNorm => EngineError::ZeroVector { item },
    }
}

/// Indices of items: bounded by `ITEMS_MAX`, so nothing is ever cut off.
fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
