//! What the leaves of a claim's trace are.

use core::{fmt, ops::Range};

use sp_core::H256;
use surety_exact::rsqrt;
use surety_types::{
    input::{ITEM_WORDS, ShapeFault, Work},
    model::{Architecture, ArchitectureError, ModelFamily, Operation, SpecialIds},
};

use crate::{TraceShape, delivered::embeddings_bytes, output::GENERATION_WORDS, plan::LeafPlan};
use surety_dispute_game::bisection::{LEAVES_MAX, LeafKind, LeafShape, Length, RowsShape, STEPS_MAX, Shape};

/// Most bytes of the steps of a leaf. Each player of a game has them in memory, and has computed them cell by
/// cell, before its time is over.
pub const LEAF_BYTES_MAX: u64 = 1 << 31;

/// What fixes a trace beside the model's architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFacts {
    /// The model's family.
    pub family: ModelFamily,
    /// What it is asked to do.
    pub operation: Operation,
    /// The content hash of the task's input.
    pub input: H256,
    /// Bytes of it.
    pub input_bytes: u32,
    /// Units that are paid for: of `Embed` all that there are.
    pub units_max: u32,
    /// Ids that end a generation.
    pub stop: SpecialIds,
    /// What is claimed to have been done: items, or tokens of prompt and continuation.
    pub units: u32,
    /// The content hash of the output, as claimed.
    pub output: H256,
}

impl TaskFacts {
    /// What of the task its input has to fit.
    pub const fn work(&self) -> Work {
        Work {
            operation: self.operation,
            input_bytes: self.input_bytes,
            units_max: self.units_max,
        }
    }
}

/// Why a claim can have no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The family has no such operation.
    Operation,
    /// There can be no model of these dimensions.
    Architecture(ArchitectureError),
    /// The task's input has a size that no input has.
    Input(ShapeFault),
    /// No computation of this task has so many units.
    Units,
    /// The trace would be larger than a game can be played over.
    TooLarge,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation => f.write_str("the model's family has no such operation"),
            Self::Architecture(error) => write!(f, "there can be no model of these dimensions: {error}"),
            Self::Input(fault) => write!(f, "the task can have no such input: {fault}"),
            Self::Units => f.write_str("no computation of this task has so many units"),
            Self::TooLarge => f.write_str("the trace would be too large for a dispute"),
        }
    }
}

impl core::error::Error for LayoutError {}

/// What a leaf is about. Leaves are in the order [`Input`](Self::Input); sequence, chunk, stride, with
/// [`SampledTokens`](Self::SampledTokens) after the strides of each chunk of a generation;
/// [`Output`](Self::Output).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The task's input.
    Input,
    /// What a stride of layers gives for a chunk.
    Rows {
        /// The item; 0 for a generation.
        sequence: u32,
        /// The chunk of its rows; 0 for an item.
        chunk: u32,
        /// Which stride of layers, from 0.
        stride: u32,
    },
    /// The tokens that are chosen after each position of a chunk.
    SampledTokens {
        /// Which chunk of positions, from 0.
        chunk: u32,
    },
    /// The output, as the claim has it.
    Output,
}

/// The dimensions that follow from an architecture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dims {
    pub width: u32,
    pub queries: u32,
    pub keys: u32,
    pub inner: u32,
    pub heads: u32,
    pub head_dim: u32,
    /// Heads of queries that share one of keys.
    pub group: u32,
    pub vocabulary: u32,
    pub epsilon: f32,
    /// What attention's scores are multiplied by: 1 / sqrt(head_dim).
    pub scale: f32,
}

/// Everything that a claim's trace is made of, as [`Shape`] and as the definition of each cell.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(super) architecture: Architecture,
    pub(super) facts: TaskFacts,
    pub(super) cut: TraceShape,
    pub(super) dims: Dims,
}

impl Layout {
    /// The layout of a claim about a model.
    ///
    /// # Errors
    /// [`LayoutError`] when there can be no trace. A claim of which this is said is wrong; a task or a model
    /// of which it would be said for each claim is not to be taken.
    pub fn new(architecture: &Architecture, facts: TaskFacts) -> Result<Self, LayoutError> {
        let cut = TraceShape::of(facts.family, architecture);
        Self::with_cut(architecture, facts, cut)
    }

    /// The same, cut in another way.
    pub(super) fn with_cut(
        architecture: &Architecture,
        facts: TaskFacts,
        cut: TraceShape,
    ) -> Result<Self, LayoutError> {
        let layout = Self::of_any_size(architecture, facts, cut)?;
        let shape = layout.facts.work().check_shape(Some(architecture.positions));
        shape.map_err(LayoutError::Input)?;
        let units = layout.facts.units;
        let possible = match layout.facts.operation {
            Operation::Embed => units > 0 && units == layout.facts.units_max,
            Operation::Generate => (1..=layout.room()).contains(&layout.new_tokens()),
        };
        match (possible, layout.is_playable()) {
            (false, _) => Err(LayoutError::Units),
            (true, false) => Err(LayoutError::TooLarge),
            (true, true) => Ok(layout),
        }
    }

    /// The same, whether or not there can be so many units, or a game over them.
    pub(super) fn of_any_size(
        architecture: &Architecture,
        facts: TaskFacts,
        cut: TraceShape,
    ) -> Result<Self, LayoutError> {
        if facts.operation != facts.family.operation() {
            return Err(LayoutError::Operation);
        }
        architecture
            .check(facts.family)
            .map_err(LayoutError::Architecture)?;
        Ok(Self {
            architecture: architecture.clone(),
            facts,
            cut,
            dims: dims(architecture).ok_or(LayoutError::TooLarge)?,
        })
    }

    /// What it is a layout of.
    pub fn facts(&self) -> &TaskFacts {
        &self.facts
    }

    /// The model's dimensions.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// How the model's traces are cut.
    pub fn cut(&self) -> &TraceShape {
        &self.cut
    }

    /// Rows of a generation that go through the model: all tokens but the last.
    pub(super) fn fed(&self) -> u32 {
        self.facts.units.saturating_sub(1)
    }

    /// Tokens of a generation's prompt.
    pub fn prompt(&self) -> u32 {
        self.facts.work().prompt_tokens()
    }

    /// Tokens that are claimed to have been added to it.
    pub fn new_tokens(&self) -> u32 {
        self.facts.units.saturating_sub(self.prompt())
    }

    /// Most tokens that can be added to it.
    pub fn room(&self) -> u32 {
        self.facts.work().room(self.architecture.positions)
    }

    /// Whether a game can be played over every leaf that a right trace may have.
    fn is_playable(&self) -> bool {
        let mut kinds = self.kinds();
        let is_deep = |plan: &LeafPlan<'_>| plan.steps() > STEPS_MAX;
        let is_large = |plan: &LeafPlan<'_>| plan.bytes().is_none_or(|bytes| bytes > LEAF_BYTES_MAX);
        let mut longest = self.longest().chain(self.fullest());
        self.count().is_some_and(|leaves| leaves <= LEAVES_MAX)
            && longest.all(|plan| plan.is_some_and(|plan| !is_deep(&plan) && !is_large(&plan)))
            && kinds.all(|rows| rows.is_some_and(|rows| rows.is_playable()))
    }

    /// The rows of every kind that a right trace may have, each where they are longest. Nodes ask for them
    /// before anybody has paid for it: there are no more of them in a model of many layers.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Option<RowsShape>> + '_ {
        let given = |part, length| self.leaf_of(part).and_then(|leaf| self.rows(leaf, length, 0));
        let output = given(Part::Output, self.output_bytes());
        let computed = self.longest().flatten().flat_map(LeafPlan::into_kinds);
        [given(Part::Input, 0), output].into_iter().chain(computed)
    }

    /// Leaves of every kind that is computed, each as long as it can be: strides are alike, but for the first
    /// and the last.
    pub(super) fn longest(&self) -> impl Iterator<Item = Option<LeafPlan<'_>>> {
        let (chunk, most) = match self.facts.operation {
            Operation::Embed => (0, self.architecture.positions),
            Operation::Generate => (self.cut.chunks(self.fed()).saturating_sub(1), self.fed()),
        };
        self.of_chunk(chunk, most)
    }

    /// Those of a generation's last chunk that is as long as any, where its very last is not. Rows of many
    /// are further down in their trees.
    pub(super) fn fullest(&self) -> impl Iterator<Item = Option<LeafPlan<'_>>> {
        let chunks = match self.facts.operation {
            Operation::Embed => 1,
            Operation::Generate => self.cut.chunks(self.fed()),
        };
        let before = chunks.checked_sub(2).into_iter();
        before.flat_map(|chunk| self.of_chunk(chunk, self.cut.rows_of(chunk, self.fed()).end))
    }

    /// Leaves of every kind of a chunk.
    fn of_chunk(&self, chunk: u32, most: u32) -> impl Iterator<Item = Option<LeafPlan<'_>>> {
        let last = self.cut.strides().saturating_sub(1);
        let strides = [Some(0), (last > 1).then_some(1), (last > 0).then_some(last)];
        let rows = strides.into_iter().flatten().map(move |stride| Part::Rows {
            sequence: 0,
            chunk,
            stride,
        });
        let choices = (self.facts.operation == Operation::Generate).then_some(Part::SampledTokens { chunk });
        rows.chain(choices)
            .map(move |part| self.plan(self.leaf_of(part)?, most))
    }

    /// Leaves of a chunk.
    pub(super) fn each(&self) -> u32 {
        match self.facts.operation {
            Operation::Embed => self.cut.strides(),
            Operation::Generate => self.cut.strides().saturating_add(1),
        }
    }

    /// Chunks of all sequences.
    pub(super) fn chunks(&self) -> u32 {
        match self.facts.operation {
            Operation::Embed => self.facts.units,
            Operation::Generate => self.cut.chunks(self.fed()),
        }
    }

    fn count(&self) -> Option<u32> {
        self.chunks().checked_mul(self.each())?.checked_add(2)
    }

    /// What a leaf is about; nothing when there is no such leaf.
    pub fn part(&self, leaf: u32) -> Option<Part> {
        let count = self.count()?;
        let Some(index) = leaf.checked_sub(1) else {
            return Some(Part::Input);
        };
        if leaf.checked_add(1)? >= count {
            return (leaf.checked_add(1)? == count).then_some(Part::Output);
        }
        let (chunk, stride) = (index.checked_div(self.each())?, index.checked_rem(self.each())?);
        Some(match self.facts.operation {
            Operation::Embed => Part::Rows {
                sequence: chunk,
                chunk: 0,
                stride,
            },
            Operation::Generate if stride < self.cut.strides() => Part::Rows {
                sequence: 0,
                chunk,
                stride,
            },
            Operation::Generate => Part::SampledTokens { chunk },
        })
    }

    /// The number of the leaf that is about something; nothing when there is none.
    pub fn leaf_of(&self, part: Part) -> Option<u32> {
        let last = self.count()?.checked_sub(1)?;
        let (group, place) = match (part, self.facts.operation) {
            (Part::Input, _) => return Some(0),
            (Part::Output, _) => return Some(last),
            (
                Part::Rows {
                    sequence,
                    chunk: 0,
                    stride,
                },
                Operation::Embed,
            ) => (sequence, stride),
            (
                Part::Rows {
                    sequence: 0,
                    chunk,
                    stride,
                },
                Operation::Generate,
            ) => (chunk, stride),
            (Part::SampledTokens { chunk }, Operation::Generate) => (chunk, self.cut.strides()),
            _ => return None,
        };
        let strides = matches!(part, Part::Rows { .. }) && place >= self.cut.strides();
        if group >= self.chunks() || strides {
            return None;
        }
        group.checked_mul(self.each())?.checked_add(place)?.checked_add(1)
    }

    /// The rows of its sequence that a computed leaf is about, of which the leaf's length is the last one's
    /// end.
    pub(super) fn positions(&self, chunk: u32, length: u32) -> Option<Range<u32>> {
        match self.facts.operation {
            Operation::Embed => (1..=self.architecture.positions)
                .contains(&length)
                .then_some(0..length),
            Operation::Generate => {
                let rows = self.cut.rows_of(chunk, self.fed());
                (!rows.is_empty() && rows.end == length).then_some(rows)
            }
        }
    }

    /// The computation of a computed leaf of this length; nothing when there is no such leaf.
    pub fn plan(&self, leaf: u32, length: u32) -> Option<LeafPlan<'_>> {
        LeafPlan::new(self, leaf, length)
    }

    /// Rows that the trace records of a leaf, of the length that a right one has.
    pub fn recorded(&self, leaf: u32, length: u32) -> Option<RowsShape> {
        let step = self.steps(leaf, length).unwrap_or(1).checked_sub(1)?;
        self.rows(leaf, length, step)
    }

    /// Bytes of the output; 0 when there would be too many to count.
    pub fn output_bytes(&self) -> u32 {
        let bytes = match self.facts.operation {
            Operation::Embed => embeddings_bytes(self.facts.units, self.dims.width),
            Operation::Generate => {
                let words = self.new_tokens().checked_add(GENERATION_WORDS);
                words.and_then(|words| words.checked_mul(4))
            }
        };
        bytes.unwrap_or(0)
    }
}

impl Shape for Layout {
    fn leaves(&self) -> u32 {
        self.count().unwrap_or(0)
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let (length, kind) = match self.part(leaf)? {
            Part::Input => (Length::Known(0), LeafKind::Fixed(self.facts.input)),
            Part::Output => {
                let length = Length::Known(self.output_bytes());
                (length, LeafKind::Fixed(self.facts.output))
            }
            Part::Rows { sequence, chunk, .. } => {
                let length = match self.facts.operation {
                    Operation::Embed => Length::Word {
                        // The second of its two in the table.
                        word: sequence.saturating_mul(ITEM_WORDS).saturating_add(1),
                        most: self.architecture.positions,
                    },
                    Operation::Generate => Length::Known(self.cut.rows_of(chunk, self.fed()).end),
                };
                (length, LeafKind::Computed)
            }
            Part::SampledTokens { chunk } => {
                let length = Length::Known(self.cut.rows_of(chunk, self.fed()).end);
                (length, LeafKind::Computed)
            }
        };
        Some(LeafShape { length, kind })
    }

    fn steps(&self, leaf: u32, length: u32) -> Option<u32> {
        self.plan(leaf, length).map(|plan| plan.steps())
    }

    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
        match (self.part(leaf)?, step) {
            (Part::Input, 0) => Some(blob_of(self.facts.input_bytes)),
            (Part::Output, 0) => (length == self.output_bytes()).then(|| blob_of(length)),
            (Part::Input | Part::Output, _) => None,
            _ => self.plan(leaf, length)?.rows_of(step),
        }
    }
}

/// A blob of so many bytes.
pub(super) const fn blob_of(bytes: u32) -> RowsShape {
    RowsShape {
        rows: 1,
        row_bytes: bytes,
        quantized: None,
    }
}

/// So many rows of so many words.
pub(super) fn words_of(rows: u32, words: u32) -> Option<RowsShape> {
    Some(RowsShape {
        rows,
        row_bytes: words.checked_mul(4)?,
        quantized: None,
    })
}

/// Of an architecture that there can be.
fn dims(architecture: &Architecture) -> Option<Dims> {
    let Architecture {
        vocabulary,
        width,
        heads,
        kv_heads,
        head_dim,
        inner,
        ..
    } = *architecture;
    Some(Dims {
        width,
        queries: heads.checked_mul(head_dim)?,
        keys: kv_heads.checked_mul(head_dim)?,
        inner,
        heads,
        head_dim,
        group: heads.checked_div(kv_heads)?,
        vocabulary,
        epsilon: f32::from_bits(architecture.epsilon),
        scale: rsqrt(head_dim as f32),
    })
}
