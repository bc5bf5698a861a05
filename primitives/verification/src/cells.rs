//! What every cell of a computation is: the one definition of a right answer, cell by cell, for both families of models
//! of the exact tier.
//!
//! A trace has [leaves](Part), a computed leaf has [steps](Step), a step has rows, a row has cells: an `f32`, a token, or
//! one byte of a quantised value. Each cell is a function of a few pieces of what comes before it (earlier steps of its leaf,
//! earlier leaves, the output as claimed) and of the model's weights. [`cell`] is that function, and it says nothing of
//! where the pieces come from: it asks [`Inputs`] for one after the other.
//!
//! | inputs | are | for |
//! |---|---|---|
//! | [`execute_leaf`]'s | in memory | a worker that unfolds a leaf |
//! | [`Player::open`](crate::bisection::Trace::open)'s | the same, written down with what shows that they are committed | a defender's opening |
//! | [`CellReferee`]'s | read from that opening, each shown to be under the roots | the runtime |
//! | a measure's | zeros, and counted | how long an opening can be |
//!
//! So a worker, an opening and the runtime cannot disagree about what a cell reads, or in which order.
//!
//! **Total.** Where the arithmetic has no value ([`surety_exact::Fault`]) a word is [`NO_NUMBER`] and a byte 0, and the
//! computation goes on: every trace has every cell. But nothing that is recorded may be [`NO_NUMBER`]: there the
//! referee refutes it, and the own trace of whoever finds one has a digest there that no other trace can have.

mod attention;
mod choices;
mod compute;
mod execute;
mod given;
mod inputs;
mod layout;
mod locate;
mod measure;
mod memory;
mod plan;
mod player;
mod quanta;
mod recorder;
mod referee;
mod rows;
mod span;
mod states;
mod steps;
mod tensors;

pub use compute::{cell, Stop, NO_NUMBER};
pub use execute::{execute_leaf, Missing};
pub use given::{
    embeddings_header, encoder_tokens, generation_output, prompt_tokens, Prompt, GENERATION_WORDS,
    PROMPT_WORDS,
};
pub use inputs::{Inputs, QuantRow, Source, WeightRow};
pub use layout::{Layout, LayoutError, Part, TaskFacts};
pub use memory::{MemoryModel, MemoryTrace};
pub use plan::LeafPlan;
pub use player::{Player, PlayerError, Records};
pub use quanta::quantised_bytes;
pub use referee::CellReferee;
pub use rows::Rows;
pub use steps::{Op, Step};
pub use tensors::{tensors, InLayer, Tensor, WeightShape, VECTOR_ROW};

#[cfg(test)]
mod tests;
