//! Rounds about what nobody has posted: a result that a provider has signed elsewhere, for which it answers
//! as for a task's. Such a round begins where others end, with a verdict that can be challenged.

use frame_support::{BoundedVec, dispatch::DispatchResult, ensure, traits::Get};
use sp_runtime::traits::Zero;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    TaskId,
    task::{AuditTerms, MemberProgress, ResultClaim, Round, RoundMember, RoundPhase},
    traits::TaskClock,
};

use crate::{Config, DisputeContextOf, DisputeContexts, Error, Pallet, Rounds, verdict};

/// A result that a provider stands by.
pub struct Claimed<T: Config> {
    /// Its stash.
    pub provider: T::AccountId,
    /// What it is paid for it, in plancks.
    pub price: T::Balance,
    /// What it says.
    pub claim: ResultClaim,
    /// Most units that are paid for.
    pub units_max: u32,
    /// How such work is audited: says how long it takes to compute.
    pub terms: AuditTerms,
    /// What a referee has to know of it.
    pub context: DisputeContextOf<T>,
}

impl<T: Config> Pallet<T> {
    /// Opens a round about a result, under a number that no task has. Nothing is locked for it:
    /// [`TaskOutcome::convicted`](surety_types::traits::TaskOutcome::convicted) says what a fault costs, and
    /// hears of the end.
    ///
    /// # Errors
    /// `RoundExists`.
    pub fn open_claimed(task: TaskId, claimed: Claimed<T>) -> DispatchResult {
        ensure!(!Rounds::<T>::contains_key(task), Error::<T>::RoundExists);
        let until = TrustLock::<T>::window_end(T::ChallengeWindow::get());
        let mut round = Round::new(claimed.units_max, until);
        round.terms = claimed.terms;
        let member = RoundMember {
            progress: MemberProgress::Revealed(claimed.claim),
            ..RoundMember::new(claimed.provider, claimed.price, Zero::zero())
        };
        round.members = BoundedVec::truncate_from([member].into());
        let verdict = verdict::verdict(&round);
        round.phase = RoundPhase::Challengeable { until, verdict };
        DisputeContexts::<T>::insert(task, claimed.context);
        Rounds::<T>::insert(task, round);
        T::Clock::wake_after(task, until);
        Ok(())
    }
}
