#![doc = include_str!("../README.md")]

mod attention;
mod cache;
mod heads;
mod isa;
mod norm;
mod packed;
mod product;
mod rows;
mod simd;
mod softmax;
pub mod weights;

pub use attention::{attention, Mask};
pub use cache::Cache;
pub use heads::{HeadRows, Heads};
pub use isa::{available, with_isa, Isa};
pub use norm::{layer_norm, rms_norm, rotate};
pub use packed::Packed;
pub use product::product;
pub use rows::{add, gelu, gelu_tanh, swiglu, Rows};
pub use surety_exact::{ArithmeticError, Precision, Turns, GROUP};
