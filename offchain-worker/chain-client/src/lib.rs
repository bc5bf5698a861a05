//! The chain as the worker and the command line see it: the trait [`Chain`], [`RpcChain`] over a node's RPC, and
//! [`FakeChain`] for tests.
//!
//! Nothing here depends on the runtime's code. Calls and storage are found by name in the metadata of the chain at
//! hand, and their bytes are the SCALE encoding of the records in `surety-types`; what does not fit is refused when
//! connecting, not in the middle of a task.

mod call;
mod chain;
mod error;
mod event;
mod fake;
mod rpc;
mod sample;
mod signer;

pub use call::{Call, CallName};
pub use chain::{
    Balance, BidRecord, BlockNumber, BlockRef, Chain, ChainInfo, CommitteeRecord, DemandRecord,
    DisputeRecord, FinalisedBlocks, Funds, Included, OpenTask, Parameter, ProviderRecord, RegisteredModel,
    RoundRecord, SlashRecord, StakeInfo, TaskInfo, TaskRecord, TrustInfo, Until, When,
};
pub use error::{ChainError, DispatchFault};
pub use event::{ChainEvent, EventField};
pub use fake::{FakeChain, FakeState};
pub use rpc::{RpcChain, RpcConfig};
pub use signer::{is_signed, Signer, VrfDraw};
pub use sp_core::{crypto::AccountId32 as AccountId, H256 as Hash};
pub use sp_runtime::FixedU128;
