#![doc = include_str!("../README.md")]

mod attention;
#[cfg(feature = "cuda")]
mod device;
mod error;
mod kernels;
mod machine;
mod pooling;
mod product;
mod rows;

pub use attention::{Cache, Mask};
#[cfg(feature = "cuda")]
pub use device::Device;
pub use error::Error;
pub use kernels::{Floats, Kernels, Numbers, Spans};
pub use machine::{Argument, Machine, Product, Shape, OPTIONS, SOURCE};
pub use product::{Packed, Path, Quanta, Rows, Weights};
