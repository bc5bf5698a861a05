//! What the leaves of a claim's trace are.

use core::{fmt, ops::Range};

use sp_core::H256;
use surety_exact::rsqrt;
use surety_types::model::{Activation, Architecture, ModelFamily, Operation};

use super::{
    given::{embeddings_bytes, GENERATION_WORDS, PROMPT_WORDS},
    plan::LeafPlan,
};
use crate::{
    bisection::{LeafKind, LeafShape, Length, RowsShape, Shape, LEAVES_MAX, ROWS_MAX, STEPS_MAX},
    TraceShape,
};

/// What fixes a trace beside the model's architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFacts {
    /// The model's family.
    pub family: ModelFamily,
    /// What it is asked to do.
    pub operation: Operation,
    /// The content hash of the task's input.
    pub input: H256,
    /// What is claimed to have been done: items, or tokens of prompt and continuation.
    pub units: u32,
    /// The content hash of the output, as claimed.
    pub output: H256,
}

/// Why a claim can have no trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// The family has no such operation.
    Operation,
    /// The architecture's dimensions do not fit together.
    Architecture,
    /// No computation of this model has so many units.
    Units,
    /// The trace would be larger than a game can be played over.
    TooLarge,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operation => "the model's family has no such operation",
            Self::Architecture => "the architecture's dimensions do not fit together",
            Self::Units => "no computation of this model has so many units",
            Self::TooLarge => "the trace would be too large for a dispute",
        })
    }
}

impl core::error::Error for LayoutError {}

/// What a leaf is about. Leaves are in the order [`Tokens`](Self::Tokens); sequence, chunk, stride, with
/// [`Choices`](Self::Choices) after the strides of each chunk of a generation; [`Output`](Self::Output).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What goes into the model.
    Tokens,
    /// What a stride of layers gives for a chunk.
    Rows {
        /// The item; 0 for a generation.
        sequence: u32,
        /// The chunk of its rows; 0 for an item.
        chunk: u32,
        /// The stride of layers.
        stride: u32,
    },
    /// The tokens that are chosen after each position of a chunk.
    Choices {
        /// The chunk.
        chunk: u32,
    },
    /// What is delivered.
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
    /// Of scores.
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
    /// [`LayoutError`] when there can be no trace. A claim of which this is said is wrong; a task or a model of which it
    /// would be said for each claim is not to be taken.
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
        let offered = match facts.family {
            ModelFamily::Bert => Operation::Embed,
            ModelFamily::Llama => Operation::Generate,
        };
        if facts.operation != offered {
            return Err(LayoutError::Operation);
        }
        let dims = dims(facts.family, architecture).ok_or(LayoutError::Architecture)?;
        let layout = Self {
            architecture: architecture.clone(),
            facts,
            cut,
            dims,
        };
        let units = layout.facts.units;
        let possible = match layout.facts.operation {
            Operation::Embed => units > 0,
            Operation::Generate => (2..=architecture.positions).contains(&units),
        };
        match (possible, layout.is_playable()) {
            (false, _) => Err(LayoutError::Units),
            (true, false) => Err(LayoutError::TooLarge),
            (true, true) => Ok(layout),
        }
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

    /// Whether a game can be played over every leaf that a right trace may have.
    fn is_playable(&self) -> bool {
        let Some(leaves) = self.count() else {
            return false;
        };
        let given = |part, length| {
            let rows = self.leaf_of(part).and_then(|leaf| self.rows(leaf, length, 0));
            rows.is_some_and(|rows| rows.is_playable())
        };
        let (last, most) = match self.facts.operation {
            Operation::Embed => (0, self.architecture.positions),
            Operation::Generate => (self.cut.chunks(self.fed()).saturating_sub(1), self.fed()),
        };
        let output = match self.output_length() {
            Length::Known(length) => given(Part::Output, length),
            Length::Word { .. } => true,
        };
        let computed = |part| {
            let plan = self.leaf_of(part).and_then(|leaf| self.plan(leaf, most));
            plan.is_some_and(|plan| {
                let rows = (0..plan.steps()).map(|step| plan.rows_of(step));
                plan.steps() <= STEPS_MAX
                    && rows
                        .into_iter()
                        .all(|rows| rows.is_some_and(|rows| rows.is_playable()))
            })
        };
        let mut strides = (0..self.cut.strides()).map(|stride| Part::Rows {
            sequence: 0,
            chunk: last,
            stride,
        });
        leaves <= LEAVES_MAX
            && given(Part::Tokens, 0)
            && output
            && strides.all(computed)
            && (self.facts.operation == Operation::Embed || computed(Part::Choices { chunk: last }))
    }

    /// Leaves of a chunk.
    fn each(&self) -> u32 {
        match self.facts.operation {
            Operation::Embed => self.cut.strides(),
            Operation::Generate => self.cut.strides().saturating_add(1),
        }
    }

    /// Chunks of all sequences.
    fn chunks(&self) -> u32 {
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
            return Some(Part::Tokens);
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
            Operation::Generate => Part::Choices { chunk },
        })
    }

    /// The number of the leaf that is about something; nothing when there is none.
    pub fn leaf_of(&self, part: Part) -> Option<u32> {
        let last = self.count()?.checked_sub(1)?;
        let (group, place) = match (part, self.facts.operation) {
            (Part::Tokens, _) => return Some(0),
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
            (Part::Choices { chunk }, Operation::Generate) => (chunk, self.cut.strides()),
            _ => return None,
        };
        let strides = matches!(part, Part::Rows { .. }) && place >= self.cut.strides();
        if group >= self.chunks() || strides {
            return None;
        }
        group.checked_mul(self.each())?.checked_add(place)?.checked_add(1)
    }

    /// The rows of its sequence that a computed leaf is about, of which the leaf's length is the last one's end.
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

    fn output_length(&self) -> Length {
        match self.facts.operation {
            Operation::Embed => {
                Length::Known(embeddings_bytes(self.facts.units, self.dims.width).unwrap_or(0))
            }
            Operation::Generate => Length::Word { row: 0, word: 1 },
        }
    }

    fn tokens_shape(&self) -> Option<RowsShape> {
        let (rows, words) = match self.facts.operation {
            Operation::Embed => (self.facts.units, self.architecture.positions.checked_add(1)?),
            Operation::Generate => (1, self.facts.units.checked_add(PROMPT_WORDS)?),
        };
        words_of(rows.min(ROWS_MAX.saturating_add(1)), words)
    }
}

impl Shape for Layout {
    fn leaves(&self) -> u32 {
        self.count().unwrap_or(0)
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let (length, kind) = match self.part(leaf)? {
            Part::Tokens => (Length::Known(0), LeafKind::Given),
            Part::Output => (self.output_length(), LeafKind::Fixed(self.facts.output)),
            Part::Rows { sequence, chunk, .. } => {
                let length = match self.facts.operation {
                    Operation::Embed => Length::Word {
                        row: sequence,
                        word: 0,
                    },
                    Operation::Generate => Length::Known(self.cut.rows_of(chunk, self.fed()).end),
                };
                (length, LeafKind::Computed)
            }
            Part::Choices { chunk } => {
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
            (Part::Tokens, 0) => self.tokens_shape(),
            (Part::Output, 0) => {
                let long = self.facts.operation == Operation::Embed || length / 4 >= GENERATION_WORDS;
                (long && length > 0).then_some(RowsShape {
                    rows: 1,
                    row_bytes: length,
                    quantised: None,
                })
            }
            (Part::Tokens | Part::Output, _) => None,
            _ => self.plan(leaf, length)?.rows_of(step),
        }
    }
}

/// So many rows of so many words.
pub(super) fn words_of(rows: u32, words: u32) -> Option<RowsShape> {
    Some(RowsShape {
        rows,
        row_bytes: words.checked_mul(4)?,
        quantised: None,
    })
}

fn dims(family: ModelFamily, architecture: &Architecture) -> Option<Dims> {
    let Architecture {
        vocabulary,
        width,
        layers,
        heads,
        kv_heads,
        head_dim,
        inner,
        positions,
        ..
    } = *architecture;
    let queries = heads.checked_mul(head_dim)?;
    let keys = kv_heads.checked_mul(head_dim)?;
    let positive = [vocabulary, width, layers, queries, keys, inner, positions];
    // Quantised values come before their scales, which must not lie across two segments.
    let whole = [width, queries, inner]
        .iter()
        .all(|width| width.is_multiple_of(4));
    if positive.contains(&0) || !whole || !heads.is_multiple_of(kv_heads) {
        return None;
    }
    let gated = architecture.activation == Activation::SwiGlu;
    let fits = match family {
        ModelFamily::Bert => !gated && kv_heads == heads && queries == width,
        ModelFamily::Llama => gated && head_dim.is_multiple_of(2),
    };
    fits.then_some(Dims {
        width,
        queries,
        keys,
        inner,
        heads,
        head_dim,
        group: heads.checked_div(kv_heads)?,
        vocabulary,
        epsilon: f32::from_bits(architecture.epsilon),
        scale: rsqrt(head_dim as f32),
    })
}
