#![doc = include_str!("../README.md")]

mod attention;
mod backend;
mod capped;
mod copy;
#[cfg(feature = "cuda")]
mod device;
mod error;
mod graphs;
mod heads;
mod kernels;
mod mixing;
mod pages;
mod patience;
mod pooling;
mod product;
mod proofs;
mod ring;
mod rows;
mod sequences;
mod tiles;
mod trace;
mod weights;

pub use attention::{Heads, Mask, Quantized};
pub use backend::{
    Argument, Capture, GpuBackend, Landing, NoLanding, OPTIONS, Product, SOURCE, Shape, TABLE,
};
pub use capped::{Capped, CappedMemory};
pub use copy::{Kept, Stage};
#[cfg(feature = "cuda")]
pub use device::{Device, DevicePiece, Graph, PinnedLanding};
pub use error::Error;
pub use graphs::{GraphMemory, Graphs};
pub use heads::{Behind, HeadRows, Rotation};
pub use kernels::{Floats, Kernels, Numbers, Spans};
pub use mixing::Mixing;
pub use pages::{Cache, Pages};
pub use patience::ANSWER_MAX;
pub use product::{Packed, Path, Rows};
pub use proofs::{
    DeviceMemory, DeviceMemoryError, OpenedMemory, bytes_needed, open_device_memory, rows_within,
};
pub use ring::{Departed, Ring, Slot};
pub use rows::{Norm, NormRows};
pub use sequences::{SequenceRows, Sequences};
pub use trace::{HeadsInRows, StateInRows, TraceRows, hashes_rows_of};
pub use weights::{Quanta, Weights};
