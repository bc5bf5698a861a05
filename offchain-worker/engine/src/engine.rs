//! What every engine is: a job goes in, a blob and a claim come out.

use std::{collections::BTreeSet, ops::ControlFlow, sync::Arc};

use surety_models::{
    ModelFiles,
    tokens::{TextCodec, TextFiles},
};
use surety_proofs::{PART_SEGMENTS, SEGMENT_BYTES, content_hash};
use surety_types::{
    ContentHash,
    model::{ModelFamily, ModelManifest, Operation, Tier},
    task::ResultClaim,
    trust::{ItemLeaves, ItemsFound},
};

use crate::{
    bert::BertEngine,
    error::EngineError,
    exact::{self, Devices, ExactLlama, OwnTrace},
};

/// What is to be computed.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to do with the input.
    pub operation: Operation,
    /// The input blob. Its hash has been checked by whoever fetched it.
    pub input: Vec<u8>,
    /// Units that the client pays for: with `Embed` the items of the input, with `Generate` the most tokens,
    /// those of the prompt included.
    pub units_max: u32,
}

/// A finished job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The output blob: safetensors, or the tokens of a generation.
    pub output: Vec<u8>,
    /// What the provider may say of it on chain: the blob's hash, the trace's root, the units done.
    pub claim: ResultClaim,
    /// The leaves under that root, in their order; none where there is nothing below them.
    pub leaves: Vec<ContentHash>,
}

/// What a claim says, beside the root of its trace.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The hash of its output.
    pub output: ContentHash,
    /// The output itself, which an own view of a generation follows. Anything for embeddings: what they
    /// should be follows from the input.
    pub bytes: Vec<u8>,
    /// Units of work.
    pub units: u32,
    /// The own view of it, as far as that is known already.
    pub known: Option<View>,
}

/// What takes a pass over all of a job to find of its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The leaves of the trace.
    pub leaves: Vec<ContentHash>,
    /// The output, where the trace is not one of a generation: that follows the output which is claimed.
    pub output: Vec<u8>,
    /// Where it differs from the claim that it was made from, where not all of that is known.
    pub differs: Option<Difference>,
}

/// The first difference between a claim and an own view of it. What is not known of the claim is zero in
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The leaf of the trace.
    pub leaf: u32,
    /// The segment of the output, where the leaf is that.
    pub segment: u32,
}

/// Which parts of a claim's leaves and of its output hold some items, and what else they are held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemParts {
    /// Length of all leaves in bytes, 32 each.
    pub leaves_bytes: u32,
    /// Parts of the leaves.
    pub leaves: BTreeSet<u32>,
    /// Length of the output in bytes.
    pub output_bytes: u32,
    /// Parts of the output.
    pub output: BTreeSet<u32>,
}

impl View {
    /// The view of a claim of which nothing is known but these leaves and this output, and of the output no
    /// more than these parts.
    pub fn by_parts(mut self, (leaves, output): (&[ContentHash], &[u8]), parts: &BTreeSet<u32>) -> Self {
        let differing = self.leaves.iter().zip(leaves).position(|(own, said)| own != said);
        let own = self.output.chunks(SEGMENT_BYTES as usize);
        let mut segments = (0u32..).zip(own.zip(output.chunks(SEGMENT_BYTES as usize)));
        let segment =
            segments.find(|(segment, (own, said))| own != said && parts.contains(&(segment / PART_SEGMENTS)));
        let last = self.leaves.len().saturating_sub(1);
        self.differs = Some(Difference {
            leaf: u32::try_from(differing.unwrap_or(last)).unwrap_or(u32::MAX),
            segment: segment.map_or(0, |(segment, _)| segment),
        });
        self
    }
}

impl Claimed {
    /// Of an output that is here.
    pub fn whole(bytes: Vec<u8>, units: u32) -> Self {
        Self {
            output: content_hash(&bytes),
            bytes,
            units,
            known: None,
        }
    }
}

/// What an engine tells while it works. Long operations add their own kinds: a generation its tokens, a
/// training its checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Part of the work is done.
    Progress {
        /// Units done.
        done: u32,
        /// Units in the input.
        total: u32,
    },
    /// A generation's next token.
    Token {
        /// Which token of the continuation, from 0.
        index: u32,
        /// Its number in the vocabulary.
        token: u32,
    },
}

/// Where an engine's events go. The answer says whether to go on, so an engine that reports often can be
/// stopped soon.
pub trait Sink {
    /// Takes an event. `Break` makes the engine return [`EngineError::Cancelled`].
    fn event(&mut self, event: Event) -> ControlFlow<()>;
}

impl<F: FnMut(Event) -> ControlFlow<()>> Sink for F {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self(event)
    }
}

/// One loaded model, ready to run jobs.
///
/// `run` blocks for as long as the computation takes; [`crate::EnginePool`] keeps it off the async threads.
/// It runs inside a rayon pool of the configured size, and an engine starts no threads of its own. The
/// outcome depends on the model and the job alone.
pub trait Engine: Send + Sync {
    /// Everything that fixes this model's answers.
    fn manifest(&self) -> &ModelManifest;

    /// Runs one job to its end.
    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError>;

    /// The own claim about a job of which somebody has given an output. It equals that of [`Engine::run`] if
    /// the output is the right one. If not, it differs from any claim that can be made with that output: the
    /// first difference between the two traces is a number that is wrong, while all that it was computed from
    /// is agreed.
    ///
    /// Where less than running the job again tells so, less is done.
    ///
    /// # Errors
    /// Those of `run`.
    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        let _ = output;
        self.run(job, sink).map(|outcome| outcome.claim)
    }

    /// What an auditor finds that computes some of a job's items, given in ascending order. Each comes out as
    /// it does among all others.
    ///
    /// # Errors
    /// [`EngineError::NoItems`] where none can be computed alone; those of `run`, of these items: what is
    /// wrong with others is not seen.
    fn audit_items(&self, job: &Job, items: &[u32], sink: &mut dyn Sink) -> Result<ItemsFound, EngineError> {
        let _ = (job, items, sink);
        Err(EngineError::NoItems)
    }

    /// Whether a claim has the same in all that was found of these items, shown by the leaves of its trace
    /// and its output.
    fn shows_items(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        claim: &ResultClaim,
        shown: (&[ContentHash], &[u8]),
    ) -> bool {
        let _ = (job, own, claim, shown);
        false
    }

    /// The same of what was shown of the leaves and of the output by [`Engine::item_parts`] alone, which were
    /// proven to be the claim's. What was not shown is zero.
    fn shows_items_in_parts(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        claim: &ResultClaim,
        shown: (&[ContentHash], &[u8]),
    ) -> bool {
        let _ = (job, own, claim, shown);
        false
    }

    /// What has to be shown of a claim about a job to hold these items against it; nothing where that cannot
    /// be told apart.
    fn item_parts(&self, job: &Job, items: &[u32]) -> Option<ItemParts> {
        let _ = (job, items);
        None
    }

    /// The own view of a claim of which these items are the only ones that were computed: all the others are
    /// as the claim has them, shown by the leaves of its trace and its output. Whoever has found another
    /// result of one of these items can challenge the claim with it, and computes no more than them.
    ///
    /// Nothing where what is shown has another form than the job's.
    ///
    /// # Errors
    /// Those of [`Engine::audit_items`].
    fn view_by_items(
        &self,
        job: &Job,
        items: &[u32],
        shown: (&[ContentHash], &[u8]),
        sink: &mut dyn Sink,
    ) -> Result<Option<View>, EngineError> {
        let _ = (job, items, shown, sink);
        Ok(None)
    }

    /// How many leaves a job's trace has; nothing where none can be told one from the other.
    fn leaf_count(&self, job: &Job) -> Option<u32> {
        let _ = job;
        None
    }

    /// The first of these items of which a trace with these leaves has others than were found: which of them
    /// it is, from 0, and its leaves there.
    fn refuted_item(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        leaves: &[ContentHash],
    ) -> Option<(u32, ItemLeaves)> {
        let _ = (job, own, leaves);
        None
    }

    /// The leaves under the trace root of [`Engine::audit`]'s claim, in their order.
    ///
    /// # Errors
    /// [`EngineError::NotTraced`] where a root is all there is; those of `audit`.
    fn leaves(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        let _ = (job, output, sink);
        Err(EngineError::NotTraced)
    }

    /// The own view of the trace of somebody's claim, to defend or to challenge it. The own claim is another
    /// where [`Engine::audit`] says so.
    ///
    /// Nothing is computed yet. What is computed later can be stopped through `sink`, as a job can.
    ///
    /// # Errors
    /// [`EngineError::NotTraced`] where a root is all there is, [`EngineError::Untraceable`] for a claim
    /// that can have no trace.
    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let _ = (job, claimed, sink);
        Err(EngineError::NotTraced)
    }

    /// The decoder behind it, which a [`Server`](crate::serving::Server) takes, on the processor; nothing
    /// where there is none.
    fn decoder(self: Arc<Self>) -> Option<Arc<ExactLlama>> {
        None
    }

    /// The same on the devices that the engine has, if it has any: what they choose is held against the
    /// processor piece by piece (`docs/adr/0047-answers-from-a-device.md`).
    fn decoder_on_devices(self: Arc<Self>) -> Option<Arc<ExactLlama>> {
        self.decoder()
    }
}

pub(crate) fn report(sink: &mut dyn Sink, done: u32, total: u32) -> Result<(), EngineError> {
    if sink.event(Event::Progress { done, total }).is_break() {
        Err(EngineError::Cancelled)
    } else {
        Ok(())
    }
}

/// Makes the engine that the manifest asks for out of files that the store has checked.
///
/// # Errors
/// [`EngineError::Model`] also where what the manifest says of text is not what its files say: whoever sends
/// ids went by that.
pub fn open(files: ModelFiles) -> Result<Arc<dyn Engine>, EngineError> {
    open_on(files, &Devices::default())
}

/// [`open`], on devices: an exact model's engine, once each of them has given what the processor does. Who
/// has not is used no more. Other models stay on the processor.
///
/// # Errors
/// Those of [`open`], [`EngineError::Device`], [`EngineError::DeviceDiffers`].
pub fn open_on(files: ModelFiles, devices: &Devices) -> Result<Arc<dyn Engine>, EngineError> {
    TextCodec::new(&TextFiles::from(&files))?;
    match (files.manifest.family, files.manifest.tier) {
        (ModelFamily::Bert, Tier::HardwareClass) => Ok(Arc::new(BertEngine::load(files)?)),
        (_, Tier::Exact) => exact::open(files, devices),
        (family, tier) => Err(EngineError::NoEngine { family, tier }),
    }
}
