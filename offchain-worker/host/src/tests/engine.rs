//! An engine that does what tests want to see.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use surety_engine::{
    Engine, EngineError, Event, ItemParts, Job, Outcome, Sink, content_hash,
    generation::{FinishReason, Generation},
};
use surety_proofs::{LEAF_BYTES, Proof, merkle_root};
use surety_types::{
    ContentHash,
    input::{IdBounds, InputReader, ShapeFault, Work},
    model::{ModelFamily, ModelManifest, Operation, Tier},
    task::ResultClaim,
    trust::{ItemFound, ItemLeaves, ItemsFound},
};

/// What it pretends to have.
pub const BOUNDS: IdBounds = IdBounds {
    vocabulary: 100,
    positions: 8,
};

/// Counts lines, and refuses inputs that say so, or fails once as a device does. Goes on from a prompt by
/// saying its tokens again, each when it is let.
pub struct Puppet {
    manifest: ModelManifest,
    runs: AtomicUsize,
    ended: AtomicUsize,
    tokens_let: AtomicUsize,
    /// The outputs that it was to audit.
    audited: Mutex<Vec<ContentHash>>,
}

impl Default for Puppet {
    fn default() -> Self {
        Self {
            manifest: manifest(),
            runs: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            tokens_let: AtomicUsize::new(0),
            audited: Mutex::default(),
        }
    }
}

impl Puppet {
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Whether no job runs any more: one that was cancelled goes on until it notices.
    pub fn is_idle(&self) -> bool {
        self.ended.load(Ordering::SeqCst) == self.runs()
    }

    pub fn audited(&self) -> Vec<ContentHash> {
        self.audited.lock().unwrap().clone()
    }

    pub fn let_tokens(&self, count: usize) {
        self.tokens_let.fetch_add(count, Ordering::SeqCst);
    }

    pub fn let_no_tokens(&self) {
        self.tokens_let.store(0, Ordering::SeqCst);
    }

    /// Waits until a token may be made, or the job is cancelled.
    fn wait_for_leave(&self, sink: &mut dyn Sink) -> Result<(), EngineError> {
        loop {
            let take = |left: usize| left.checked_sub(1);
            if self
                .tokens_let
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_ok()
            {
                return Ok(());
            }
            if sink.event(Event::Progress { done: 0, total: 1 }).is_break() {
                return Err(EngineError::Cancelled);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn make(&self, job: &Job, sink: &mut dyn Sink) -> Result<(Vec<u8>, u32), EngineError> {
        match job.operation {
            Operation::Embed if job.input.starts_with(b"refuse") => Err(ShapeFault::TooShort.into()),
            Operation::Embed if job.input.starts_with(b"differ") && self.runs() == 1 => {
                Err(EngineError::DeviceDiffers {
                    device: "cuda:0".into(),
                })
            }
            Operation::Embed => {
                let units = lines(job);
                Ok((format!("{units} items").into_bytes(), units))
            }
            Operation::Generate => self.generate(job, sink),
        }
    }

    fn generate(&self, job: &Job, sink: &mut dyn Sink) -> Result<(Vec<u8>, u32), EngineError> {
        let reader = InputReader::new(&job.input, BOUNDS);
        let prompt = reader.prompt();
        let work = Work {
            operation: job.operation,
            input_bytes: job.input.len() as u32,
            units_max: job.units_max,
        };
        work.check_shape(Some(BOUNDS.positions))?;
        let most = reader.settings().new_tokens(work.room(BOUNDS.positions));
        let mut tokens = Vec::new();
        for (index, token) in (0..most).zip(prompt.iter().copied().cycle()) {
            self.wait_for_leave(sink)?;
            tokens.push(token);
            if sink.event(Event::Token { index, token }).is_break() {
                return Err(EngineError::Cancelled);
            }
        }
        let generation = Generation {
            tokens,
            finish_reason: FinishReason::Length,
        };
        Ok((generation.encode(), work.prompt_tokens() + most))
    }
}

impl Engine for Puppet {
    fn manifest(&self) -> &ModelManifest {
        &self.manifest
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let made = self.make(job, sink);
        self.ended.fetch_add(1, Ordering::SeqCst);
        let (output, units) = made?;
        let mut leaves: Vec<_> = (0..units).map(|item| item_leaf(&job.input, item)).collect();
        leaves.push(content_hash(&output));
        let claim = ResultClaim {
            output: content_hash(&output),
            trace_root: merkle_root(leaves.iter().copied()),
            units,
        };
        Ok(Outcome {
            output,
            claim,
            leaves,
        })
    }

    fn audit(&self, job: &Job, output: &[u8], sink: &mut dyn Sink) -> Result<ResultClaim, EngineError> {
        self.audited.lock().unwrap().push(content_hash(output));
        self.run(job, sink).map(|outcome| outcome.claim)
    }

    fn audit_items(&self, job: &Job, items: &[u32], _: &mut dyn Sink) -> Result<ItemsFound, EngineError> {
        let found = items.iter().map(|item| ItemFound {
            leaves: item_root(item_leaf(&job.input, *item)),
            row: ContentHash::zero(),
        });
        Ok(ItemsFound::truncate_from(found.collect()))
    }

    fn leaf_count(&self, job: &Job) -> Option<u32> {
        Some(lines(job) + 1)
    }

    fn item_parts(&self, job: &Job, items: &[u32]) -> Option<ItemParts> {
        Some(ItemParts {
            leaves_bytes: self.leaf_count(job)? * LEAF_BYTES,
            leaves: items.iter().map(|item| item / 256).collect(),
            ..ItemParts::default()
        })
    }

    fn shows_items_in_parts(
        &self,
        job: &Job,
        own: (&[u32], &ItemsFound),
        claim: &ResultClaim,
        shown: (&[ContentHash], &[u8]),
    ) -> bool {
        self.shows_items(job, own, claim, shown)
    }

    fn refuted_item(
        &self,
        _: &Job,
        (items, found): (&[u32], &ItemsFound),
        leaves: &[ContentHash],
    ) -> Option<(u32, ItemLeaves)> {
        let mut own = (0..).zip(items.iter().zip(found));
        own.find_map(|(place, (item, found))| {
            let leaf = leaves[*item as usize];
            let proof = Proof::new(leaves, *item).unwrap();
            let shown = ItemLeaves {
                leaves: vec![leaf].try_into().unwrap(),
                siblings: proof.0.to_vec().try_into().unwrap(),
            };
            (item_root(leaf) != found.leaves).then_some((place, shown))
        })
    }

    fn shows_items(
        &self,
        _: &Job,
        (items, found): (&[u32], &ItemsFound),
        _: &ResultClaim,
        (leaves, _): (&[ContentHash], &[u8]),
    ) -> bool {
        let mut own = items.iter().zip(found);
        own.all(|(item, found)| leaves.get(*item as usize).copied().map(item_root) == Some(found.leaves))
    }
}

fn lines(job: &Job) -> u32 {
    job.input.iter().filter(|b| **b == b'\n').count() as u32
}

/// What is sealed of an item of one leaf.
pub fn item_root(leaf: ContentHash) -> ContentHash {
    merkle_root(core::iter::once(leaf))
}

/// What is in its trace of an item.
pub fn item_leaf(input: &[u8], item: u32) -> ContentHash {
    content_hash(&[input, &item.to_le_bytes()].concat())
}

pub fn manifest() -> ModelManifest {
    ModelManifest {
        name: b"puppet".to_vec().try_into().unwrap(),
        family: ModelFamily::Bert,
        tier: Tier::HardwareClass,
        operations: vec![Operation::Embed, Operation::Generate].try_into().unwrap(),
        weights: ContentHash::zero(),
        weights_bytes: 0,
        text: Default::default(),
        config: ContentHash::zero(),
        exact: None,
    }
}
