#![doc = include_str!("../README.md")]

pub mod access;
pub mod address;
mod announced;
pub mod call;
pub mod counters;
mod event_loop;
mod fetch;
pub mod identity;
mod limits;
pub mod memory;
pub mod node;
mod outline;
mod pace;
mod places;
pub mod plane;
mod reach;
mod shared;
pub mod store;
pub mod stream;
mod swarm;
mod wire;

pub use access::{AccessGate, Asked, Decision, Readers, TICKET_BYTES_MAX, Ticket};
pub use address::{AddressError, Scope, check_listen, parse_endpoint};
pub use call::{CallError, CallListener, CallReceiver, CallSender, CallStream};
pub use counters::Counters;
pub use libp2p::bytes::Bytes;
pub use limits::Limits;
pub use node::{NetworkConfig, Node};
pub use plane::{
    Announcement, Attempt, DataPlane, FetchOptions, OutputLocation, PeerError, PlaneError, Statement,
};
pub use reach::Reachability;
pub use store::{BlobStore, StoreError, StoreLimits};
pub use stream::{StreamEnd, StreamPage, StreamWriter};
#[doc(hidden)]
pub use wire::reads_back;
