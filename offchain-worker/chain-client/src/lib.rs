#![doc = include_str!("../README.md")]

mod address;
mod call;
mod chain;
mod error;
mod event;
#[cfg(any(test, feature = "testsuite"))]
mod fake;
mod refusal;
pub mod sample;
mod signer;

pub use address::{address, parse_address, short};
pub use call::{Argument, Call, CallName};
pub use chain::{
    Balance, BidRecord, BidTerms, BlockNumber, BlockRef, BlockStream, Chain, ChainInfo, CommitRecord,
    CommitteeRecord, DemandRecord, DisputeRecord, Funds, Included, ItemsOpening, OpenTask, OpenTasks,
    Parameter, PartKey, PartlyRead, ProviderRecord, ProviderTerms, RegisteredModel, RoundRecord, Sent,
    SlashRecord, StakeInfo, SubmitOptions, TaskInfo, TaskRecord, TrustInfo, Until, When, is_open,
};
pub use error::{ChainError, DispatchFault, ErrorClass};
pub use event::{ChainEvent, EventField};
#[cfg(any(test, feature = "testsuite"))]
pub use fake::{FakeChain, FakeState};
pub use refusal::Refusal;
pub use signer::{Signer, VrfDraw, checked_draw, is_message_signed, is_signed};
pub use sp_core::{H256 as Hash, crypto::AccountId32 as AccountId};
pub use sp_runtime::FixedU128;
