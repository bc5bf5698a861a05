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

    /// The most that [`Self::spared`] weighs.
    fn spared_weight() -> Weight;
}

/// There are no validators that stake.
impl<AccountId> EquivocationSpared<AccountId> for () {
    fn spared(_: &AccountId, _: SessionIndex) {}

    fn spared_weight() -> Weight {
        Weight::zero()
    }
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
    /// Blocks of the same day, made and expected, that it was paid for already but for their fees.
    pub paid: (u32, u64),
}

impl<Balance> Service<Balance> {
    /// Blocks that it made in all.
    pub const fn all_made(&self) -> u32 {
        self.made.saturating_add(self.paid.0)
    }

    /// Those that were expected in all, in [`MILLIONTHS`] of a block.
    pub const fn all_expected_millionths(&self) -> u64 {
        self.expected_millionths.saturating_add(self.paid.1)
    }
}

impl<Balance: Default + PartialEq> Service<Balance> {
    /// Takes what is owed, if anything is: its blocks stay noted as paid, and count for the fees of the day.
    pub fn take_owed(&mut self) -> Option<Self> {
        if self.owed == Balance::default() {
            return None;
        }
        let paid = Self {
            paid: (self.all_made(), self.all_expected_millionths()),
            ..Self::default()
        };
        Some(core::mem::replace(self, paid))
    }
}

/// What validators did. Provided by validators.
pub trait ValidatorService<AccountId, Balance> {
    /// Takes what each of them did since it was last taken, in the order of storage.
    fn take_services() -> Vec<(AccountId, Service<Balance>)>;

    /// Takes what `operator` is owed for since then ([`Service::take_owed`]).
    fn take_owed(operator: &AccountId) -> Option<Service<Balance>>;

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

/// Pays before a day is over. Provided by emission.
pub trait LeavingPay<AccountId> {
    /// Stake is about to leave the pool of `operator`, its own or the last that there is: shares among all
    /// who are in it still what the operator is owed since it was last paid. Fees are shared when the day is
    /// over.
    fn pay_leaving(operator: &AccountId);

    /// Has `operator` serve for something that [`Self::pay_leaving`] pays.
    #[cfg(feature = "runtime-benchmarks")]
    fn serve_for_benchmark(_operator: &AccountId) {}
}

/// Nobody is paid.
impl<AccountId> LeavingPay<AccountId> for () {
    fn pay_leaving(_: &AccountId) {}
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
