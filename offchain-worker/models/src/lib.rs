#![doc = include_str!("../README.md")]

pub mod chat;
pub mod config;
pub mod convert;
mod error;
mod form;
pub mod format;
mod hash;
pub mod known;
pub mod paths;
pub mod shards;
mod store;
pub mod tokens;
pub mod weights;

pub use error::ModelError;
pub use form::{Form, smallest};
pub use hash::{file_hash, file_hash_of};
pub use known::KnownModel;
pub use store::{ModelFile, ModelFiles, ModelStore, StoreError, StoredModel, WeightBytes, write_manifest};
