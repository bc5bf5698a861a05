#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

extern crate alloc;

mod attention;
mod beyond;
mod choices;
mod compute;
mod delivered;
mod execute;
mod inputs;
mod items;
mod layout;
mod locate;
mod measure;
mod output;
mod plan;
mod player;
mod quanta;
mod recorder;
mod referee;
mod rows;
mod sampling;
mod span;
mod states;
mod steps;
mod tensors;
#[cfg(any(test, feature = "testsuite"))]
pub mod testsuite;
mod trace_shape;

pub use compute::{NO_NUMBER, Stop, cell};
pub use delivered::embeddings_header;
pub use execute::{Missing, execute_leaf};
pub use inputs::{Inputs, QuantRow, Source, WeightRow};
pub use items::{item_root, item_span, show_item, shown_item};
pub use layout::{LEAF_BYTES_MAX, Layout, LayoutError, Part, TaskFacts};
pub use output::{ClaimedOutput, GENERATION_WORDS, Ragged, finish_reason};
pub use plan::LeafPlan;
pub use player::{Player, PlayerError, Records};
pub use quanta::quantized_bytes;
pub use referee::CellReferee;
pub use rows::Rows;
pub use sampling::sampling_random;
pub use steps::{Op, Step};
pub use tensors::{InLayer, Tensor, VECTOR_ROW, WeightShape, tensors};
pub use trace_shape::{CHUNK_ROWS, CachedHeads, STRIDE_WIDTH, TraceShape, stride_for};

#[cfg(test)]
mod tests;
