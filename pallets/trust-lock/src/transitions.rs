//! Phase changes.
//!
//! ```text
//! phase          ends                              next
//! Committing     all committed                     Auditing
//!                time, seats filled from reserves  Committing
//!                time, majority committed          Auditing
//!                time                              Challengeable, Failed(NotEnoughResults)
//! Auditing       time                              Revealing
//! Revealing      all commitments opened, or time   Challengeable
//! Challengeable  time                              none: locks released, verdict handed over
//! ```
//!
//! A new phase ends in this block at the earliest, and what is due is due after its block. One call of
//! [`Pallet::do_advance`] is therefore one change of phase at most, and its cost is bounded.

use alloc::vec::Vec;
use frame_support::{
    dispatch::DispatchResult, ensure, storage::with_storage_layer, traits::Get, weights::Weight, BoundedVec,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{DispatchError, Saturating};
use surety_types::{
    limits,
    task::{Assignment, MemberProgress, PerMember, Round, RoundMember, RoundPhase},
    traits::{StakeLedger, TaskClock, TaskOutcome, TaskTrust},
    TaskId,
};

use crate::{types::describe, verdict, Config, Error, Event, Pallet, RoundOf, Rounds, WeightInfo};

pub(crate) type AssignmentOf<T> = Assignment<<T as frame_system::Config>::AccountId, <T as Config>::Balance>;

impl<T: Config> TaskTrust<T::AccountId, T::Balance, BlockNumberFor<T>> for Pallet<T> {
    fn lock_for(price: T::Balance) -> T::Balance {
        price.saturating_mul(T::LockMultiple::get().into())
    }

    fn open(
        task: TaskId,
        redundancy: u32,
        units_max: u32,
        assignments: &PerMember<AssignmentOf<T>>,
    ) -> DispatchResult {
        with_storage_layer(|| Self::do_open(task, redundancy, units_max, assignments))
    }

    fn advance(task: TaskId) -> DispatchResult {
        with_storage_layer(|| Self::do_advance(task))
    }
}

impl<T: Config> Pallet<T> {
    /// Most that one [`TaskTrust::advance`] costs, without what it asks of [`Config::Outcome`].
    ///
    /// A change of phase that a call can bring as well costs no more than the call.
    pub fn advance_weight() -> Weight {
        T::WeightInfo::replace_members()
            .max(T::WeightInfo::close())
            .max(T::WeightInfo::commit())
            .max(T::WeightInfo::reveal())
    }

    fn do_open(
        task: TaskId,
        redundancy: u32,
        units_max: u32,
        assignments: &PerMember<AssignmentOf<T>>,
    ) -> DispatchResult {
        ensure!(!Rounds::<T>::contains_key(task), Error::<T>::RoundExists);
        let seats = u32::try_from(assignments.len()).unwrap_or(u32::MAX);
        ensure!(
            redundancy > 0 && seats == redundancy,
            Error::<T>::WrongMemberCount
        );

        let until = Self::window_end(T::CommitWindow::get());
        let mut round = Round {
            redundancy,
            units_max,
            members: BoundedVec::default(),
            dropped: BoundedVec::default(),
            phase: RoundPhase::Committing { until },
        };
        for assignment in assignments {
            ensure!(
                !is_known::<T>(&round, &assignment.provider),
                Error::<T>::DuplicateMember
            );
            let member = Self::seat(assignment)?;
            round
                .members
                .try_push(member)
                .map_err(|_| Error::<T>::WrongMemberCount)?;
        }
        Rounds::<T>::insert(task, round);
        T::Clock::wake_after(task, until);
        Self::deposit_event(Event::RoundOpened { task, until });
        Ok(())
    }

    fn do_advance(task: TaskId) -> DispatchResult {
        let Some(mut round) = Rounds::<T>::get(task) else {
            return Ok(());
        };
        let (_, until) = describe(&round.phase);
        if !Self::has_passed(until) {
            return Ok(());
        }
        match &round.phase {
            RoundPhase::Committing { .. } => Self::end_committing(task, &mut round),
            RoundPhase::Auditing { .. } => Self::start_revealing(task, &mut round),
            RoundPhase::Revealing { .. } => Self::conclude(task, &mut round),
            RoundPhase::Challengeable { verdict, .. } => {
                let verdict = verdict.clone();
                Self::close(task, &round);
                return T::Outcome::decided(task, verdict);
            }
        }
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    pub(crate) fn start_committing_again(task: TaskId, round: &mut RoundOf<T>) {
        let until = Self::window_end(T::CommitWindow::get());
        Self::enter(task, round, RoundPhase::Committing { until });
    }

    pub(crate) fn start_auditing(task: TaskId, round: &mut RoundOf<T>) {
        let until = Self::window_end(T::AuditWindow::get());
        Self::enter(task, round, RoundPhase::Auditing { until });
    }

    pub(crate) fn start_revealing(task: TaskId, round: &mut RoundOf<T>) {
        let until = Self::window_end(T::RevealWindow::get());
        Self::enter(task, round, RoundPhase::Revealing { until });
    }

    /// Reaches the verdict, and opens it to challenges.
    pub(crate) fn conclude(task: TaskId, round: &mut RoundOf<T>) {
        let verdict = verdict::verdict(round);
        Self::deposit_event(Event::VerdictReached {
            task,
            verdict: verdict.clone(),
        });
        let until = Self::window_end(T::ChallengeWindow::get());
        Self::enter(task, round, RoundPhase::Challengeable { until, verdict });
    }

    fn end_committing(task: TaskId, round: &mut RoundOf<T>) {
        if Self::replace_missing(task, round) {
            Self::start_committing_again(task, round);
        } else if verdict::has_quorum(round) {
            Self::start_auditing(task, round);
        } else {
            Self::conclude(task, round);
        }
    }

    /// Releases the locks and forgets the round.
    pub(crate) fn close(task: TaskId, round: &RoundOf<T>) {
        for member in &round.members {
            T::Stake::unlock(&member.provider, member.lock);
        }
        Rounds::<T>::remove(task);
        Self::deposit_event(Event::RoundClosed { task });
    }

    fn enter(task: TaskId, round: &mut RoundOf<T>, phase: RoundPhase<T::AccountId, BlockNumberFor<T>>) {
        let (name, until) = describe(&phase);
        round.phase = phase;
        T::Clock::wake_after(task, until);
        Self::deposit_event(Event::PhaseChanged {
            task,
            phase: name,
            until,
        });
    }

    /// Gives the seats of members that committed nothing to reserves, as far as there are any. Says whether it gave
    /// any. A member that nobody replaces keeps its seat, and its chance in the next window.
    fn replace_missing(task: TaskId, round: &mut RoundOf<T>) -> bool {
        let room = (limits::REDUNDANCY_MAX as usize).saturating_sub(round.dropped.len());
        let working = |member: &RoundMember<_, _>| member.progress == MemberProgress::Working;
        let seats = round
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| working(member));
        let mut vacancies: Vec<usize> = seats.map(|(seat, _)| seat).take(room).collect();
        vacancies.reverse();
        let vacant = vacancies.len();
        // Reserves may turn out not to be fit. Every batch uses some up, and there never were more than bids.
        for _ in 0..limits::BIDS_MAX {
            let wanted = u32::try_from(vacancies.len()).unwrap_or(u32::MAX);
            let reserves = if wanted == 0 {
                Vec::new()
            } else {
                T::Outcome::take_reserves(task, wanted)
            };
            if reserves.is_empty() {
                break;
            }
            Self::fill(task, round, &mut vacancies, &reserves);
        }
        vacancies.len() < vacant
    }

    /// Seats `reserves`, as far as they are fit, from the end of `vacancies`.
    pub(crate) fn fill(
        task: TaskId,
        round: &mut RoundOf<T>,
        vacancies: &mut Vec<usize>,
        reserves: &[AssignmentOf<T>],
    ) {
        for reserve in reserves {
            let Some(seat) = vacancies.last() else { break };
            if Self::replace(task, round, *seat, reserve) {
                vacancies.pop();
            }
        }
    }

    /// Puts `reserve` in the place of the member in `seat`. Says whether that was possible.
    fn replace(task: TaskId, round: &mut RoundOf<T>, seat: usize, reserve: &AssignmentOf<T>) -> bool {
        let Some(leaver) = round.members.get(seat).map(|member| member.provider.clone()) else {
            return false;
        };
        if is_known::<T>(round, &reserve.provider) || round.dropped.try_push(leaver.clone()).is_err() {
            return false;
        }
        let (Ok(newcomer), Some(member)) = (Self::seat(reserve), round.members.get_mut(seat)) else {
            round.dropped.pop();
            return false;
        };
        let by = newcomer.provider.clone();
        let RoundMember { lock, .. } = core::mem::replace(member, newcomer);
        T::Stake::unlock(&leaver, lock);
        Self::deposit_event(Event::ProviderReplaced {
            task,
            dropped: leaver,
            by,
        });
        true
    }

    /// Locks the stake that the assignment asks for.
    fn seat(assignment: &AssignmentOf<T>) -> Result<RoundMember<T::AccountId, T::Balance>, DispatchError> {
        let lock = <Self as TaskTrust<_, _, _>>::lock_for(assignment.price);
        T::Stake::lock(&assignment.provider, lock)?;
        Ok(RoundMember {
            provider: assignment.provider.clone(),
            lock,
            progress: MemberProgress::Working,
        })
    }

    pub(crate) fn has_passed(until: BlockNumberFor<T>) -> bool {
        frame_system::Pallet::<T>::block_number() > until
    }

    fn window_end(window: BlockNumberFor<T>) -> BlockNumberFor<T> {
        frame_system::Pallet::<T>::block_number().saturating_add(window)
    }
}

/// Whether `provider` is on the round, or was.
fn is_known<T: Config>(round: &RoundOf<T>, provider: &T::AccountId) -> bool {
    round.members.iter().any(|member| member.provider == *provider) || round.dropped.contains(provider)
}
