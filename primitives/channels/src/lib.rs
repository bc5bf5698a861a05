#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

extern crate alloc;

pub mod batch;
pub mod counted;
pub mod demanded;
pub mod equivocation;
pub mod fault;
pub mod points;
pub mod request;
pub mod seasoned;
pub mod statement;
pub mod sum_tree;
pub mod tally;
pub mod view;
pub mod voucher;
pub mod window;

pub use batch::{
    Absence, Batch, BatchEntry, BatchRoot, ChannelOpening, ProvenChannel, ProvenReceipt, ReceiptLeaf,
    ReceiptOpening, Unbatchable,
};
pub use counted::{Counted, counted_for, demandable_for, deposit_season, kept_back_for, paid_after};
pub use demanded::{DEMANDS_AT_BASE, Demanded};
pub use equivocation::{Clash, Equivocation, extends, goes_on, incompatible};
pub use fault::{BatchEvidence, BatchFault, Batched, Committed, Said, SumFlaw};
pub use points::{NOT_COMPUTED, POINTS_MAX, PointsFound, computed, points_seal};
pub use request::Request;
pub use seasoned::Seasoned;
pub use statement::{ChunkStatement, End, Ending, Misstated, SignedChunkStatement};
pub use sum_tree::{SumNode, SumPath, SumTree, Sums};
pub use surety_types::region::{NotARegion, Region};
pub use tally::{Tally, Unpaid};
pub use voucher::{Cancel, ChannelTerms, SignedCancel, SignedVoucher, Voucher, VoucherRefusal, wallet_bytes};
pub use window::{BatchWindow, BeyondCap, Closed, NotCounted, NotHeld, Purse, Standing, Struck};

/// Channels are numbered in the order in which they were opened, from 0. A number is never used again.
pub type ChannelId = u64;

/// A provider's batches are numbered in the order in which they were committed, from 0.
pub type BatchNumber = u32;

/// Requests of a channel are numbered in the order in which its payee took them, from 0.
pub type Nonce = u32;

/// A time, or a last time, on the chain's clock (`surety-pallet-finality-clock`).
pub type Time = u32;

/// Most receipts of a batch.
pub const RECEIPTS_MAX: u32 = 1 << 20;

/// Most batches that one call redeems from.
pub const REDEEMED_MAX: u32 = 8;

/// Most requests of a channel that are answered at once.
pub const OPEN_REQUESTS_MAX: u32 = 64;
