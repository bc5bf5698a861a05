//! The exact form of a model as a file: safetensors with quantized rows.
//!
//! The metadata says `"format": "surety-exact"`. What a name stands for:
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `L.q`, `L.scales` of a linear layer `L` | I8 or I16, F32 | `[outputs, inputs]`, `[outputs, groups(inputs)]` |
//! | `L.bias`, where it has one | F32 | `[outputs]` |
//! | `T.q`, `T.scales` of a table `T` | I8 or I16, F32 | `[rows, width]`, `[rows, groups(width)]` |
//! | norms, and a `pre` for the input of linear layers | F32 | `[width]` |
//! | `rotary.turns` | U64 | `[head_dim / 2]` |
//!
//! Rows are int8 or int12, all of one precision. Linear layers and tables keep the stems of the published
//! names. Query, key and value share the `pre` of their layer's `attention.pre`, gate and up the one of
//! `mlp.pre`; others have their own, `L.pre`. An absent `pre` is all ones. Tensors stand in the file by the
//! size of their elements, largest first, then by name.

mod assemble;
mod header;
mod parts;
mod read;
mod write;

pub(crate) use header::{Dtype, Entry, PREFIX_BYTES, header_bytes, parse};
pub use parts::{Part, Parts, weight_root};
pub use read::{Weights, read};
pub use write::write;

const FORMAT_KEY: &str = "format";
const FORMAT: &str = "surety-exact";
