//! Glue around the validators: what they answer for, and what they are paid for.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_runtime::{Perbill, Weight};

use super::SessionIndex;
use crate::trust::SlashId;

/// What validators lose for what they sign, and for being absent. Provided by trust-lock.
pub trait ValidatorPenalties<AccountId> {
    /// `operator` has signed two of a kind in `session`: jails it, and has its pool lose `part` of what was
    /// behind it then, once the time for a veto is over.
    fn convict(operator: &AccountId, session: SessionIndex, part: Perbill) -> SlashId;

    /// Has a slash that waits take `part` in place of less. Says whether it could: not once it is carried
    /// out.
    fn raise(slash: SlashId, part: Perbill) -> bool;

    /// Whether `operator` was convicted lately. Who has only missed something is not in jail.
    fn is_in_jail(operator: &AccountId) -> bool;

    /// `operator` was absent for so long that it is no accident: it gets no work for a while, and loses no
    /// stake.
    fn note_missed(operator: &AccountId);

    /// `operator` was there for a day: that makes good for one time that it was absent.
    fn note_present(operator: &AccountId);
}

/// Hears of vetoes. Provided by validators.
pub trait EquivocationSpared<AccountId> {
    /// A slash of `operator` for what it signed in `session` was vetoed: it is asked for nothing more.
    fn spared(operator: &AccountId, session: SessionIndex);
}

/// There are no validators that stake.
impl<AccountId> EquivocationSpared<AccountId> for () {
    fn spared(_: &AccountId, _: SessionIndex) {}
}

/// Blocks have no halves, but what is expected of a validator does.
pub const MILLIONTHS: u64 = 1_000_000;

/// What a validator did, and what it would be paid for had it missed nothing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Service<Balance> {
    /// Blocks that it made.
    pub made: u32,
    /// Its part of the blocks that all made, in [`MILLIONTHS`] of a block.
    pub expected_millionths: u64,
    /// What it earned if it made what was expected, in plancks.
    pub owed: Balance,
}

/// What validators did. Provided by validators.
pub trait ValidatorService<AccountId, Balance> {
    /// Takes what each of them did since it was last taken, in the order of storage.
    fn take_services() -> Vec<(AccountId, Service<Balance>)>;

    /// Notes a service for benchmarks.
    #[cfg(feature = "runtime-benchmarks")]
    fn serve_for_benchmark(_operator: &AccountId, _service: Service<Balance>) {}
}

/// What service is worth. Provided by emission.
pub trait ServicePay<Balance> {
    /// What a pool of so much backing earns in one session, in plancks.
    fn session_pay(backing: Balance) -> Balance;

    /// What `session` was worth is counted. Pays, where a day is over.
    fn session_ended(session: SessionIndex);

    /// The most that [`Self::session_ended`] weighs.
    fn session_ended_weight() -> Weight;
}

/// Nobody is paid.
impl<Balance: Default> ServicePay<Balance> for () {
    fn session_pay(_: Balance) -> Balance {
        Balance::default()
    }

    fn session_ended(_: SessionIndex) {}

    fn session_ended_weight() -> Weight {
        Weight::zero()
    }
}
