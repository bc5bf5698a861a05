#![doc = include_str!("../README.md")]

mod address;
mod call;
mod chain;
mod error;
mod event;
mod fake;
mod refusal;
mod rpc;
mod sample;
mod signer;

pub use address::{address, short};
pub use call::{Call, CallName};
pub use chain::{
    Balance, BidRecord, BlockNumber, BlockRef, BlockStream, Chain, ChainInfo, CommitteeRecord, DemandRecord,
    DisputeRecord, Funds, Included, OpenTask, Parameter, ProviderRecord, RegisteredModel, RoundRecord,
    SlashRecord, StakeInfo, SubmitOptions, TaskInfo, TaskRecord, TrustInfo, Until, When,
};
pub use error::{ChainError, DispatchFault, ErrorClass};
pub use event::{ChainEvent, EventField};
pub use fake::{FakeChain, FakeState};
pub use refusal::Refusal;
pub use rpc::{RpcChain, RpcConfig};
pub use signer::{checked_draw, is_hash_signed, is_signed, Signer, VrfDraw};
pub use sp_core::{crypto::AccountId32 as AccountId, H256 as Hash};
pub use sp_runtime::FixedU128;
