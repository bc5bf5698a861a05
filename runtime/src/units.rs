//! Money and time.

#![warn(missing_docs)]

use crate::{Balance, BlockNumber};

/// One SURE, in plancks.
pub const SURE: Balance = 1_000_000_000_000;
/// A thousandth of a SURE.
pub const MILLI_SURE: Balance = SURE / 1_000;
/// A millionth of a SURE.
pub const MICRO_SURE: Balance = SURE / 1_000_000;

/// What an address begins with where SURE is worth something: free in ss58-registry 1.51.0. The
/// specifications of `dev` and `local` tell wallets 42, as any chain's that is for trying out.
pub const SS58_PREFIX: u16 = 7_373;

/// What an account has to hold to exist.
pub const EXISTENTIAL_DEPOSIT: Balance = 10 * MILLI_SURE;

/// Length of a BABE slot: at most one block is final in each. It cannot change after genesis.
pub const SLOT_MS: u64 = surety_types::BLOCK_SECONDS as u64 * 1_000;

/// Slots in an epoch, which is also a session: 5 minutes. It cannot change after genesis. See ADR 0002.
pub const EPOCH_SLOTS: u64 = 150;

/// Blocks in a minute, when no slot stays empty.
pub const MINUTES: BlockNumber = 30;
/// Blocks in an hour.
pub const HOURS: BlockNumber = 60 * MINUTES;
/// Blocks in a day.
pub const DAYS: BlockNumber = 24 * HOURS;

/// Deposit for something kept in storage: per entry and per byte, so that filling the state is dear.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "numbers of 32 bits times a constant are in 128"
)]
pub const fn deposit(items: u32, bytes: u32) -> Balance {
    items as Balance * 200 * MILLI_SURE + bytes as Balance * MILLI_SURE
}
