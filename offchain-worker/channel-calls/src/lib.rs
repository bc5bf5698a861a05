#![doc = include_str!("../README.md")]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod answer;
mod claim;
mod keys;
pub mod message;
pub mod payee;
pub mod payer;
mod store;

pub use answer::{CHUNK_BYTES_MAX, Model, OUTPUT_BYTES_MAX, Unfit};
pub use claim::{claimed_output, claimed_units_max, segment_of_end};
pub use keys::{ReceiptSalts, Sign, Verify};
pub use message::{Ask, FromPayee, Refusal, ToPayee};
pub use payee::{Payee, PayeeConfig, PayeeEffect};
pub use payer::{Payer, PayerConfig, PayerEffect};
pub use store::{LoadError, ReadRow, Row, Step, Store, Table, Uncommitted, call_key};

pub use sp_core::crypto::AccountId32 as AccountId;

/// Milliseconds of a clock of the caller's that never goes back. Where it begins does not matter.
pub type Millis = u64;
