//! The steps of a leaf, in the order in which they are computed.

use surety_types::model::ModelFamily;

/// What a step does. A `Quant` step's rows are quantized; all others' are words.
///
/// `P` are the positions that are visible at the end of the leaf's chunk, `B` their blocks of 128, `R` the
/// chunk's own. Steps have `R` rows but where something else is said. What is about later positions than a
/// decoder sees is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// BERT: the vectors of token, position and segment, added up.
    EmbedAdd,
    /// BERT: mean and inverse standard deviation of that.
    EmbedStats,
    /// The first state: vectors of tokens; with BERT, `EmbedAdd` normalised.
    Embed,
    /// Decoders: inverse root mean square of the state. BERT: mean and inverse standard deviation of
    /// `AttentionAdd`.
    AttentionStats,
    /// Decoders: the state, normalised.
    AttentionInput,
    /// Input of the three products below.
    QuantQkv,
    /// Queries.
    Query,
    /// Keys.
    Key,
    /// Values.
    Value,
    /// Qwen 3: each head of queries, normed.
    NormQuery,
    /// Qwen 3: each head of keys, normed.
    NormKey,
    /// Decoders: queries, turned by their position.
    RotateQuery,
    /// Decoders: keys, turned by their position.
    RotateKey,
    /// Queries in int12, a scale for each head.
    QuantQuery,
    /// Keys, likewise.
    QuantKey,
    /// Values, likewise.
    QuantValue,
    /// `[heads][P]`: query times key, scaled.
    Scores,
    /// `[heads][B]`: the largest of each block.
    Maxima,
    /// `[heads][P]`: `e^(score - largest)`.
    Exps,
    /// `[heads][B]`: their sums.
    Totals,
    /// One row of `P` for each head of values: the scales of all positions, turned round.
    ValueScales,
    /// `[heads][P]` quantized weights, exponentials times the values' scales, and `[heads][B]` scales. An odd
    /// `P` is made even by a 0.
    QuantWeights,
    /// One row of `P` for each number of a value: the quantized values of all positions, turned round.
    /// Likewise.
    ValuesTransposed,
    /// `[queries][B]`: each block's mix of values.
    Partials,
    /// The same of all blocks.
    Attention,
    /// The same, quantized.
    QuantOutput,
    /// The same, back at the state's width.
    Output,
    /// BERT: that, added to the state.
    AttentionAdd,
    /// That; with BERT normalised, with decoders added to the state.
    AttentionSum,
    /// Decoders: inverse root mean square of `AttentionSum`.
    MlpStats,
    /// Decoders: `AttentionSum`, normalised.
    MlpInput,
    /// Input of the products to the inner width.
    QuantMlp,
    /// Decoders: what is let through.
    Gate,
    /// To the inner width.
    Up,
    /// The activation function; with decoders, gated.
    Activation,
    /// The same, quantized.
    QuantDown,
    /// The same, back at the state's width.
    Down,
    /// BERT: that, added to `AttentionSum`.
    Add,
    /// BERT: mean and inverse standard deviation of that.
    Stats,
    /// The layer's result; with BERT normalised, with decoders added to `AttentionSum`.
    Sum,
    /// BERT: one row of `R` for each number of a state: all states, turned round. Where the first token's
    /// state is the vector, that one alone, so that the mean is over it.
    StatesTransposed,
    /// BERT, one row: the mean of each.
    Mean,
    /// BERT, one row: the same at length 1.
    Pool,
    /// Decoders: inverse root mean square of the last state.
    FinalStats,
    /// Decoders: the last state, normalised.
    FinalInput,
    /// The same, quantized.
    FinalQuant,
    /// A number for each token.
    Logits,
    /// What the trace records: the leaf itself.
    Record,
}

/// A step of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The layer it is of; what comes before the layers is of the first, what comes after them of the last.
    pub layer: u32,
    /// The operation.
    pub op: Op,
}

/// The steps of a leaf: before its layers, of each layer, after them. [`Op::Record`] comes last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub before: &'static [Op],
    pub each: &'static [Op],
    pub after: &'static [Op],
}

/// Of a chunk of tokens to be chosen.
pub(super) const SAMPLED_TOKENS: Program = Program {
    before: &[Op::FinalStats, Op::FinalInput, Op::FinalQuant, Op::Logits],
    each: &[],
    after: &[Op::Record],
};

/// Of a stride, the first or not, the last or not.
pub(super) const fn program(family: ModelFamily, first: bool, last: bool) -> Program {
    const NONE: &[Op] = &[];
    match family {
        ModelFamily::Bert => Program {
            before: if first {
                &[Op::EmbedAdd, Op::EmbedStats, Op::Embed]
            } else {
                NONE
            },
            each: BERT,
            after: if last {
                &[Op::StatesTransposed, Op::Mean, Op::Pool, Op::Record]
            } else {
                &[Op::Record]
            },
        },
        ModelFamily::Llama => decoder(first, LLAMA),
        ModelFamily::Qwen3 => decoder(first, QWEN3),
    }
}

const fn decoder(first: bool, each: &'static [Op]) -> Program {
    Program {
        before: if first { &[Op::Embed] } else { &[] },
        each,
        after: &[Op::Record],
    }
}

const BERT: &[Op] = &[
    Op::QuantQkv,
    Op::Query,
    Op::Key,
    Op::Value,
    Op::QuantQuery,
    Op::QuantKey,
    Op::QuantValue,
    Op::Scores,
    Op::Maxima,
    Op::Exps,
    Op::Totals,
    Op::ValueScales,
    Op::QuantWeights,
    Op::ValuesTransposed,
    Op::Partials,
    Op::Attention,
    Op::QuantOutput,
    Op::Output,
    Op::AttentionAdd,
    Op::AttentionStats,
    Op::AttentionSum,
    Op::QuantMlp,
    Op::Up,
    Op::Activation,
    Op::QuantDown,
    Op::Down,
    Op::Add,
    Op::Stats,
    Op::Sum,
];

/// The steps of a decoder's layer; those named are done with queries and keys before they are turned.
macro_rules! decoder_layer {
    ($($norm:expr),*) => {
        &[
            Op::AttentionStats,
            Op::AttentionInput,
            Op::QuantQkv,
            Op::Query,
            Op::Key,
            Op::Value,
            $($norm,)*
            Op::RotateQuery,
            Op::RotateKey,
            Op::QuantQuery,
            Op::QuantKey,
            Op::QuantValue,
            Op::Scores,
            Op::Maxima,
            Op::Exps,
            Op::Totals,
            Op::ValueScales,
            Op::QuantWeights,
            Op::ValuesTransposed,
            Op::Partials,
            Op::Attention,
            Op::QuantOutput,
            Op::Output,
            Op::AttentionSum,
            Op::MlpStats,
            Op::MlpInput,
            Op::QuantMlp,
            Op::Gate,
            Op::Up,
            Op::Activation,
            Op::QuantDown,
            Op::Down,
            Op::Sum,
        ]
    };
}

const LLAMA: &[Op] = decoder_layer![];

const QWEN3: &[Op] = decoder_layer![Op::NormQuery, Op::NormKey];
