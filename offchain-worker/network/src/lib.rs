//! The data plane: blobs move between peers by content hash, and are checked on arrival.
//!
//! - [`store`] keeps blobs on disk under their content hash.
//! - [`stream`] is what a provider tells its client of a task while it computes it.
//! - [`plane`] is the trait that the rest of the worker sees, and its errors.
//! - [`node`] implements it over libp2p: noise and yamux over TCP, and QUIC.
//! - [`memory`] implements it within one process, for tests.
//!
//! No libp2p type is part of the interface: addresses are [`surety_types::multiaddr::Endpoint`]s, keys are files.

pub mod address;
mod announced;
mod event_loop;
mod fetch;
pub mod identity;
pub mod memory;
pub mod node;
pub mod plane;
pub mod store;
pub mod stream;
mod wire;

pub use address::{check_listen, parse_endpoint, AddressError};
pub use libp2p::bytes::Bytes;
pub use node::{Limits, NetworkConfig, Node};
pub use plane::{Attempt, DataPlane, Fault, OutputLocation, PlaneError, Readers, Statement};
pub use store::{BlobStore, StoreError, StoreLimits};
pub use stream::{StreamEnd, StreamPage, StreamToken, StreamWriter};
