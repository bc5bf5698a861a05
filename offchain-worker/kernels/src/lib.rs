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

pub use attention::{Mask, attention};
pub use cache::Cache;
pub use heads::{HeadRows, Heads};
pub use isa::{Isa, Refused, available, refused, with_isa};
pub use norm::{layer_norm, rms_norm, rotate};
pub use packed::Packed;
pub use product::product;
pub use rows::{Rows, add, gelu, gelu_tanh, swiglu};
pub use surety_exact::{ArithmeticError, GROUP, Precision, Turns};
