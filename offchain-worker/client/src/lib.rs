#![doc = include_str!("../README.md")]

pub mod amount;
pub mod deliver;
pub mod demands;
mod error;
mod files;
pub mod follow;
pub mod http;
pub mod inputs;
pub mod nearest;
pub mod post;
pub mod record;
pub mod serve;
pub mod statement;
pub mod stream;
#[cfg(any(test, feature = "testsuite"))]
pub mod testsuite;
pub mod text;
pub mod transcript;
pub mod words;

pub use error::{ClientError, Result};
pub use files::write_atomically;
