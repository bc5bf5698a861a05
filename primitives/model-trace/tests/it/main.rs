//! How traces are cut, and which numbers draw tokens.

#![allow(clippy::unwrap_used)]

mod trace_shape;
mod vectors;
