//! Sentence embeddings on the exact tier.

mod items;

use std::sync::Arc;

use rayon::prelude::*;
use surety_dispute_game::bisection::Shape;
use surety_exact::ArithmeticError;
use surety_kernels::Packed;
use surety_model_trace::{Layout, TaskFacts, TraceShape};
use surety_models::{Form, ModelError, smallest, weights::BertWeights};
use surety_types::{
    ContentHash,
    input::{IdBounds, InputReader},
    model::{Architecture, ModelManifest, Operation, Pooling},
    task::ResultClaim,
    trust::{ItemLeaves, ItemsFound},
};

use super::{
    backend::{Copies, Devices, Encoder, Fault, Runs, Standing},
    bert::{BertModel, Scratch},
    dispute::{EmbedWork, OwnTrace},
    probe::Probe,
    recheck::{encoders, random_below},
    trace::{TopLevel, hash::blob_hash},
};
use crate::{
    embeddings::Embeddings,
    engine::{Claimed, Engine, ItemParts, Job, Outcome, Sink, View, report},
    error::EngineError,
    trace::claim,
};

/// Items that each thread gets between two events: enough to keep all busy when lengths differ, few enough
/// that a cancelled job ends within a second.
const ITEMS_PER_THREAD: usize = 32;

/// An encoder of the exact tier.
pub struct ExactBert {
    manifest: ModelManifest,
    architecture: Architecture,
    model: Arc<BertModel>,
    /// On devices, where there are any.
    copies: Copies<dyn Encoder>,
}

/// An item of the input, with its index.
struct Item {
    index: u32,
    ids: Vec<u32>,
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
    leaves: Vec<ContentHash>,
    /// The device that has computed it, if it was one.
    by: Option<Standing>,
}

impl ExactBert {
    /// Makes an engine of weights that have been checked.
    ///
    /// # Errors
    /// [`ModelError`] when they do not fit together.
    pub fn new(manifest: ModelManifest, weights: BertWeights) -> Result<Self, ModelError> {
        let checked = weights.check(&manifest);
        let stated = manifest.exact.as_ref();
        let pooling = stated.map_or(Pooling::Mean, |stated| stated.architecture.pooling);
        let model = BertModel::new(weights, pooling)
            .map_err(|_| ModelError::Malformed("its tensors do not fit together".into()))?;
        let architecture = checked?;
        smallest(&manifest, &architecture)?;
        let model = Arc::new(model);
        Ok(Self {
            manifest,
            architecture,
            model,
            copies: Copies::default(),
        })
    }

    /// The same on devices: on those that give this model's numbers.
    ///
    /// # Errors
    /// [`EngineError::Device`], [`EngineError::DeviceDiffers`], where none of them can be used, or one has
    /// too little memory.
    pub fn on(self, devices: &Devices) -> Result<Self, EngineError> {
        Ok(Self {
            copies: encoders(&self.model, devices)?,
            ..self
        })
    }

    /// What the next pass runs on.
    pub(super) fn runs(&self) -> Runs<'_, dyn Encoder> {
        self.copies.next(&*self.model)
    }

    /// What others are held against.
    fn processor(&self) -> Runs<'_, dyn Encoder> {
        Runs::Processor(&*self.model)
    }

    /// Everything about a job.
    pub(super) fn own(&self, job: &Job, sink: &mut dyn Sink) -> Result<Own, EngineError> {
        self.check(job)?;
        let width = self.model.width();
        let (mut values, mut leaves) = (Vec::new(), vec![blob_hash(&job.input)]);
        for embedded in self.all(job, sink)? {
            values.extend(embedded.row);
            leaves.extend(embedded.leaves);
        }
        let embeddings = Embeddings::new(width, values)
            .ok_or_else(|| EngineError::Compute("rows of unequal width".into()))?;
        let output = embeddings
            .encode()
            .map_err(|error| EngineError::Compute(error.to_string()))?;
        let hash = blob_hash(&output);
        leaves.push(hash);
        Ok(Own {
            claim: claim(hash, leaves.iter().copied(), job.units_max),
            output,
            leaves,
        })
    }

    fn all(&self, job: &Job, sink: &mut dyn Sink) -> Result<Vec<Embedded>, EngineError> {
        let (input, total) = (self.reader(job), job.units_max);
        let wave = rayon::current_num_threads()
            .saturating_mul(ITEMS_PER_THREAD)
            .max(1);
        let mut embedded = Vec::new();
        report(sink, 0, total)?;
        for start in (0..total).step_by(wave) {
            let items = start..start.saturating_add(count(wave)).min(total);
            let items = items.map(|index| Item {
                index,
                ids: input.item(index),
            });
            embedded.extend(self.wave(&items.collect::<Vec<_>>())?);
            report(sink, count(embedded.len()), total)?;
        }
        self.recheck(&embedded, |place| {
            let index = count(place);
            let ids = input.item(index);
            Item { index, ids }
        })?;
        Ok(embedded)
    }

    /// Of each device that had a part in it, computes one item again, chosen at random. Once it differs, that
    /// device is not used any more.
    ///
    /// # Errors
    /// [`EngineError::DeviceDiffers`], [`EngineError::Device`], also where a device was found out meanwhile.
    fn recheck(&self, found: &[Embedded], item: impl Fn(usize) -> Item) -> Result<(), EngineError> {
        let mut devices: Vec<(&Standing, Vec<usize>)> = Vec::new();
        for (place, embedded) in found.iter().enumerate() {
            let Some(by) = &embedded.by else { continue };
            match devices.iter_mut().find(|(device, _)| device.is(by)) {
                Some((_, places)) => places.push(place),
                None => devices.push((by, vec![place])),
            }
        }
        for (device, places) in devices {
            let place = places.get(random_below(places.len())).copied().unwrap_or(0);
            if let Some(found) = found.get(place) {
                self.recheck_item(device, &item(place), found)?;
            }
        }
        Ok(())
    }

    fn recheck_item(&self, device: &Standing, item: &Item, found: &Embedded) -> Result<(), EngineError> {
        let item = std::slice::from_ref(item);
        let own = self.batch(&self.processor(), item, &mut Scratch::default());
        let bits = |row: &[f32]| -> Vec<u32> { row.iter().map(|value| value.to_bits()).collect() };
        let same = |own: &Embedded| bits(&own.row) == bits(&found.row) && own.leaves == found.leaves;
        if !own.is_ok_and(|own| own.iter().all(same)) {
            return Err(device.differs());
        }
        // Another job may have found it out meanwhile.
        device.dropped().map_or(Ok(()), Err)
    }

    /// Runs one item, and lets somebody look on: on the processor, since nothing is said in a dispute that
    /// only a device has seen.
    pub(super) fn look(
        &self,
        job: &Job,
        item: u32,
        probe: &mut impl Probe,
        sink: &mut dyn Sink,
    ) -> Result<(), EngineError> {
        report(sink, 0, 1)?;
        let ids = self.reader(job).item(item);
        self.model
            .embed(&[&ids], &mut Scratch::default(), probe)
            .map_err(|fault| failed(item, fault.into()))?;
        Ok(())
    }

    pub(super) fn trace_shape(&self) -> TraceShape {
        self.model.trace_shape()
    }

    pub(super) fn weights(&self) -> &BertWeights<Packed> {
        self.model.weights()
    }

    fn reader<'j>(&self, job: &'j Job) -> InputReader<'j> {
        let bounds = IdBounds {
            vocabulary: self.architecture.vocabulary,
            positions: self.architecture.positions,
        };
        InputReader::new(&job.input, bounds)
    }

    /// What a claim about a job with this output is about.
    fn facts(&self, job: &Job, units: u32, output: ContentHash) -> TaskFacts {
        TaskFacts {
            family: self.manifest.family,
            operation: job.operation,
            input: blob_hash(&job.input),
            input_bytes: u32::try_from(job.input.len()).unwrap_or(u32::MAX),
            units_max: job.units_max,
            stop: self.manifest.text.stop.clone(),
            units,
            output,
        }
    }

    /// Whether there can be a claim about a job. Every provider refuses the same ones, and no chain takes
    /// them.
    fn check(&self, job: &Job) -> Result<(), EngineError> {
        if job.operation != Operation::Embed || !self.manifest.operations.contains(&job.operation) {
            return Err(EngineError::OperationNotOffered(job.operation));
        }
        self.layout(job).map(drop)
    }

    /// Where everything is in a trace of a job, whatever its output.
    fn layout(&self, job: &Job) -> Result<Layout, EngineError> {
        let facts = self.facts(job, job.units_max, ContentHash::zero());
        Ok(Layout::new(&self.architecture, facts)?)
    }

    /// Some items' results, in their order: on as many devices as there are, and with all threads.
    fn wave(&self, items: &[Item]) -> Result<Vec<Embedded>, EngineError> {
        let rows: usize = items.iter().map(|item| item.ids.len()).sum();
        let devices = self.copies.count().max(1);
        let most = self.copies.first(&*self.model).batch_rows();
        let results: Vec<_> = batches(items, rows.div_ceil(devices).clamp(1, most))
            .into_par_iter()
            .map_init(Scratch::default, |scratch, batch| {
                self.batch(&self.runs(), batch, scratch)
            })
            .collect();
        let mut embedded = Vec::with_capacity(items.len());
        for result in results {
            embedded.extend(result?);
        }
        Ok(embedded)
    }

    fn batch(
        &self,
        on: &Runs<'_, dyn Encoder>,
        items: &[Item],
        scratch: &mut Scratch,
    ) -> Result<Vec<Embedded>, EngineError> {
        let sequences: Vec<&[u32]> = items.iter().map(|item| &item.ids[..]).collect();
        let mut trace = TopLevel::new(self.model.trace_shape());
        let pooled = match (on.embed(&sequences, scratch, &mut trace), items, on.standing()) {
            (Ok(pooled), ..) => pooled,
            (Err(fault @ Fault::Device { .. }), ..) => return Err(failed(0, fault)),
            // That it has no result is told once the processor has none either.
            (Err(_), [_], Some(device)) => {
                let own = self.batch(&self.processor(), items, scratch);
                return own.and_then(|_| Err(device.differs()));
            }
            (Err(fault), [item], None) => return Err(failed(item.index, fault)),
            // Which of them it was is found one by one; the first is told.
            (Err(_), ..) => {
                let singly = items
                    .iter()
                    .map(|item| self.batch(on, std::slice::from_ref(item), scratch));
                return Ok(singly
                    .collect::<Result<Vec<_>, _>>()?
                    .into_iter()
                    .flatten()
                    .collect());
            }
        };
        // What a device says its vectors hash to, and what has come of them.
        if let Some(device) = on.standing().filter(|_| !trace.has_pooled(&pooled)) {
            return Err(device.differs());
        }
        let lengths: Vec<usize> = items.iter().map(|item| item.ids.len()).collect();
        let rows = pooled.chunks_exact(self.model.width());
        let results = rows.zip(trace.leaves(&lengths));
        let embedded = results.map(|(row, leaves)| Embedded {
            row: row.to_vec(),
            leaves: leaves.concat(),
            by: on.standing().cloned(),
        });
        Ok(embedded.collect())
    }
}

impl Engine for ExactBert {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let Own {
            output,
            claim,
            leaves,
        } = self.own(job, sink)?;
        Ok(Outcome {
            output,
            claim,
            leaves,
        })
    }

    fn audit_items(&self, job: &Job, items: &[u32], sink: &mut dyn Sink) -> Result<ItemsFound, EngineError> {
        self.some_items(job, items, sink)
    }

    fn shows_items(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        claim: &ResultClaim,
        shown: (&[ContentHash], &[u8]),
    ) -> bool {
        self.has_items(job, own, claim, shown)
    }

    fn view_by_items(
        &self,
        job: &Job,
        items: &[u32],
        shown: (&[ContentHash], &[u8]),
        sink: &mut dyn Sink,
    ) -> Result<Option<View>, EngineError> {
        self.with_own_items(job, items, shown, sink)
    }

    fn shows_items_in_parts(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        claim: &ResultClaim,
        shown: (&[ContentHash], &[u8]),
    ) -> bool {
        self.has_proven_items(job, own, claim, shown)
    }

    fn item_parts(&self, job: &Job, items: &[u32]) -> Option<ItemParts> {
        self.parts_of_items(job, items)
    }

    fn leaf_count(&self, job: &Job) -> Option<u32> {
        self.layout(job).ok().map(|layout| layout.leaves())
    }

    fn refuted_item(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        leaves: &[ContentHash],
    ) -> Option<(u32, ItemLeaves)> {
        self.item_with_others(job, own, leaves)
    }

    fn leaves(&self, job: &Job, _: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        self.own(job, sink).map(|own| own.leaves)
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        self.check(&job)?;
        let facts = self.facts(&job, claimed.units, claimed.output);
        let layout = Layout::new(&self.architecture, facts)?;
        let differs = claimed.known.as_ref().and_then(|known| known.differs);
        let (leaves, output) = claimed.known.map(|known| (known.leaves, known.output)).unzip();
        let work = EmbedWork::new(self, job, output);
        Ok(OwnTrace::new(layout, Box::new(work), sink, leaves).differing(differs))
    }
}

/// Cuts items into runs of about so many tokens. Where the cuts are changes no result.
fn batches(items: &[Item], rows_max: usize) -> Vec<&[Item]> {
    let mut batches = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (end, item) in items.iter().enumerate() {
        let more = item.ids.len();
        if end > start && rows + more > rows_max {
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
        Fault::Arithmetic(ArithmeticError::Shape) => {
            EngineError::Compute("the item's tokens do not fit the model".into())
        }
        Fault::Arithmetic(ArithmeticError::NotFinite) => EngineError::NotFinite { item },
        Fault::Arithmetic(ArithmeticError::ZeroNorm) => EngineError::ZeroVector { item },
        Fault::Device { device, error } => EngineError::Device { device, error },
    }
}

/// Counts of items: bounded by what is paid for, so nothing is ever cut off.
fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
