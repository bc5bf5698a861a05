#![doc = include_str!("../README.md")]

pub mod deliver;
mod error;
mod files;
pub mod grants;
pub mod inputs;
pub mod post;
pub mod record;
pub mod serve;
pub mod statement;
pub mod stream;
#[cfg(any(test, feature = "testsuite"))]
pub mod testsuite;
pub mod transcript;

pub use error::{ClientError, Result};
pub use files::write_atomically;
