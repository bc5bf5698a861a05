//! Glue about pools of delegated stake.

use sp_runtime::{Perquintill, Weight};

/// Sessions are numbered as pallet-session does.
pub type SessionIndex = u32;

/// Stake that many have put behind one operator. Provided by delegation, which alone moves it.
pub trait PoolLedger<AccountId, Balance> {
    /// Stake behind `operator` that works, its own included. Zero for who has no pool.
    fn backing(operator: &AccountId) -> Balance;

    /// The part of [`Self::backing`] that is the operator's own.
    fn own(operator: &AccountId) -> Balance;

    /// Whether a slash of `operator` waits to be carried out.
    fn is_pending(operator: &AccountId) -> bool;

    /// Where rewards wait until they are claimed.
    fn pot() -> AccountId;

    /// Shares `amount`, which was put into [`Self::pot`] before, among all who back `operator`. No more is
    /// shared than what is there and promised to nobody.
    ///
    /// Returns what was shared. That is less than `amount` where the pot has less, and nothing where nobody
    /// backs `operator`: the rest stays in the pot, and is the caller's to burn or to share otherwise.
    fn reward(operator: &AccountId, amount: Balance) -> Balance;

    /// `operator` is convicted, now, of what it did in session `since`. Until [`Self::spare`] or
    /// [`Self::slash`] is called for that, its pool takes no stake, and stake that left it since then stays,
    /// whatever it is convicted of beside.
    fn note_pending(operator: &AccountId, since: SessionIndex);

    /// A slash that was noted is vetoed.
    fn spare(operator: &AccountId);

    /// Carries out a slash that was noted: all that backed `operator` in session `since` or later loses
    /// `part`. Returns what that is, in plancks; it is burned as its owners are next heard of, at the latest
    /// before they can move what is left.
    fn slash(operator: &AccountId, part: Perquintill, since: SessionIndex) -> Balance;

    /// The most that [`Self::slash`] weighs.
    fn slash_weight() -> Weight;

    /// Opens a pool in which the operator has `own`, or the least that it needs.
    #[cfg(feature = "runtime-benchmarks")]
    fn open_for_benchmark(operator: &AccountId, own: Balance);
}

/// Who has stake in pools. Provided by delegation.
pub trait PoolStakes<AccountId> {
    /// Whether `who` has stake in any pool, or on its way out of one.
    fn is_staked(who: &AccountId) -> bool;
}

/// There are no pools.
impl<AccountId> PoolStakes<AccountId> for () {
    fn is_staked(_: &AccountId) -> bool {
        false
    }
}

/// Which session runs. Provided by the runtime.
pub trait Sessions {
    /// The running session.
    fn current() -> SessionIndex;

    /// Has session `session` run.
    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(session: SessionIndex);
}
