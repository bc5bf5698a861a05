//! Mocks of the glue traits in `surety_types::traits`, one each, and what else pallet tests share.
//!
//! Accounts are `u64`, balances `u128`, block numbers `u64`. The state of a mock lives in a thread-local, so
//! it can be set up before there are externalities, and tests on different threads do not see each other. It
//! does **not** roll back with a failed storage layer; a test that needs that has to look at the pallet's own
//! storage. Call [`reset`] when externalities are built: a property test runs many cases on one thread.

mod entropy;
mod escrow;
mod models;
mod openings;
mod outcome;
mod pools;
mod providers;
mod stake;
mod trust;

pub use entropy::MockEntropy;
pub use escrow::MockEscrow;
pub use models::MockModels;
pub use openings::{send_opening, validity_of};
pub use outcome::{MockClock, MockOutcome};
pub use pools::NoPools;
pub use providers::MockProviders;
pub use stake::MockStake;
pub use trust::{MockTrust, OpenedRound};

/// Account ids of the mocks.
pub type AccountId = u64;

/// Balances of the mocks, in plancks.
pub type Balance = u128;

/// Block numbers of the mocks.
pub type BlockNumber = u64;

/// Puts every mock of this thread back to its initial state.
pub fn reset() {
    MockClock::reset();
    MockEntropy::reset();
    MockEscrow::reset();
    MockModels::reset();
    MockOutcome::reset();
    MockProviders::reset();
    MockStake::reset();
    MockTrust::reset();
}
