#![doc = include_str!("../README.md")]

mod address;
mod call;
mod chain;
mod channels;
mod error;
mod event;
#[cfg(any(test, feature = "testsuite"))]
mod fake;
mod gpu_proofs;
mod refusal;
pub mod sample;
mod signer;
mod stake;

pub use address::{address, parse_address, short};
pub use call::{Call, argument::Argument, name::CallName, stake::StakeCall};
pub use chain::{
    Balance, BidRecord, BidTerms, BlockNumber, BlockRef, BlockStream, Chain, ChainInfo, CommitRecord,
    CommitteeRecord, DemandRecord, DisputeRecord, Funds, Included, ItemsOpening, OpenTask, OpenTasks,
    Parameter, PartKey, PartlyRead, ProviderRecord, ProviderTerms, RegisteredModel, RoundRecord, Sent,
    SlashRecord, StakeInfo, SubmitOptions, TaskInfo, TaskRecord, TrustInfo, Until, When, is_open,
};
pub use channels::{
    BatchView, ChannelChain, ChannelOpenings, ChannelRules, ChannelView, DemandView, DisputedView, OfferView,
    PointsView, PoolView, ReceiptAtPoint, ReceiptSource, Remedy, StandingView,
};
pub use error::{ChainError, DispatchFault, ErrorClass};
pub use event::{ChainEvent, EventField};
#[cfg(any(test, feature = "testsuite"))]
pub use fake::{
    FakeChain, FakeChannels, FakeDelegation, FakeDemand, FakeGpuProofs, FakeOffer, FakePoints, FakeState,
};
pub use gpu_proofs::{GpuProofsChain, GpuRound};
pub use refusal::Refusal;
pub use signer::{
    MessageSigner, MessageVerifier, Signer, VrfDraw, checked_draw, checked_points, is_message_signed,
    is_signed, message_verifier,
};
pub use sp_core::{H256 as Hash, crypto::AccountId32 as AccountId};
pub use sp_runtime::FixedU128;
pub use stake::{
    CandidateRecord, Day, DelegatedStake, DelegationRecord, LeavingRecord, OperatorPool, PendingSlashes,
    ServiceRecord, SessionKeys, StakeChain, StakeFund, ValidatorSets,
};
pub use surety_channels::Region;
