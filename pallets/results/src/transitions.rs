//! Phase changes.
//!
//! ```text
//! phase          ends                              next
//! Committing     all committed                     Auditing
//!                time, seats filled from reserves  Committing
//!                time, majority committed          Auditing
//!                time                              Challengeable, Failed(NotEnoughResults)
//!                time, input demanded in vain      none: locks released, Failed(InputWithheld) handed over
//! Auditing       entropy, or none for long         Auditing, its window begins
//!                a demand is met                   Auditing, its window begins again
//!                time, nothing demanded            Revealing
//!                the same, all found at fault      Challengeable
//! Revealing      all opened that are owed, or time Challengeable
//! Challengeable  time, nothing open                none: locks released, verdict handed over
//! ```
//!
//! A challengeable round whose time is over stays for as long as a dispute, a demand or a contradiction of
//! its own is open, or something that was sealed is not. Each of those ends by time alone, too: by a side's
//! clock, by the decision window, by the supply window, by the opening window.
//!
//! Time is that of `BlockNumberProvider`, which may stand still, and may leap. Entropy comes with blocks, and
//! nobody waits for it longer than [`ENTROPY_PATIENCE_BLOCKS`] of them.
//!
//! What is demanded in the first audit window is shown, or its provider convicted, before `Auditing` ends: by
//! the supply window at the latest. The window begins again with the last showing, in which nothing can be
//! demanded, so it ends by time whatever is demanded.
//!
//! While a piece of the input is demanded, `Committing` ends later: by the input window for each of the few
//! demands that a member may make. A demand's time is over before the phase's.
//!
//! A new phase ends in this block at the earliest, and what is due is due after its block. One call of
//! [`Pallet::do_advance`] is therefore one change of phase at most, and its cost is bounded.

use alloc::vec::Vec;
use frame_support::{
    dispatch::DispatchResult, ensure, storage::with_storage_layer, traits::Get, weights::Weight,
};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_runtime::{DispatchError, Saturating};
use surety_audit_economics::audit_seed;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    ContentHash, TaskId, limits,
    model::ModelAudits,
    stake::Role,
    task::{
        Assignment, AuditDraw, AuditTerms, MemberProgress, PerMember, Round, RoundMember, RoundPhase,
        Security, SecurityLevel, TaskSpec, Verdict,
    },
    traits::{
        BlockEntropy, ENTROPY_BLOCKS, ENTROPY_PATIENCE_BLOCKS, StakeLedger, TaskClock, TaskOutcome, TaskTrust,
    },
};

use crate::{
    Config, DisputeContexts, DisputeReferee, Error, Event, MemberOf, Pallet, RoundDisputes, RoundOf, Rounds,
    WeightInfo, audit_pay::audits_to_pay, types::describe, verdict,
};

pub(crate) type AssignmentOf<T> =
    Assignment<<T as frame_system::Config>::AccountId, <T as surety_pallet_trust_lock::Config>::Balance>;

impl<T: Config> TaskTrust<T::AccountId, T::Balance, BlockNumberFor<T>> for Pallet<T> {
    fn secure(
        price: T::Balance,
        spec: &TaskSpec,
        audits: ModelAudits,
    ) -> Result<(SecurityLevel, AuditTerms), DispatchError> {
        Self::do_secure(price, spec, audits)
    }

    fn lock_for(price: T::Balance, security: &Security, audits: &AuditTerms) -> T::Balance {
        Self::do_lock_for(price, security, audits)
    }

    fn audit_bond(price: T::Balance) -> T::Balance {
        Self::do_audit_bond(price)
    }

    fn least_price(units_max: u32, audits: &AuditTerms) -> T::Balance {
        Self::do_least_price(units_max, audits)
    }

    fn open(
        task: TaskId,
        units_max: u32,
        security: Security,
        audits: AuditTerms,
        assignments: &PerMember<AssignmentOf<T>>,
    ) -> DispatchResult {
        with_storage_layer(|| Self::do_open(task, units_max, (security, audits), assignments))
    }

    fn is_open(task: TaskId) -> bool {
        Rounds::<T>::contains_key(task)
    }

    fn advance(task: TaskId) -> Result<Weight, DispatchError> {
        with_storage_layer(|| Self::do_advance(task))
    }
}

impl<T: Config> Pallet<T> {
    fn do_open(
        task: TaskId,
        units_max: u32,
        (security, audits): (Security, AuditTerms),
        assignments: &PerMember<AssignmentOf<T>>,
    ) -> DispatchResult {
        ensure!(!Rounds::<T>::contains_key(task), Error::<T>::RoundExists);
        ensure!(!assignments.is_empty(), Error::<T>::WrongMemberCount);

        let until = TrustLock::<T>::window_end(T::CommitWindow::get());
        let mut round = Round::new(units_max, until);
        (round.security, round.terms) = (security, audits);
        for assignment in assignments {
            ensure!(
                !is_known::<T>(&round, &assignment.provider),
                Error::<T>::DuplicateMember
            );
            let member = Self::seat(assignment, &round)?;
            round
                .members
                .try_push(member)
                .map_err(|_| Error::<T>::WrongMemberCount)?;
        }
        if let Some(context) = T::Referee::dispute_context(task)? {
            DisputeContexts::<T>::insert(task, context);
        }
        Rounds::<T>::insert(task, round);
        T::Clock::wake_after(task, until);
        Self::deposit_event(Event::RoundOpened { task, until });
        Ok(())
    }

    fn do_advance(task: TaskId) -> Result<Weight, DispatchError> {
        // Looking at a round, and finding out the seed for it.
        let look = <T as Config>::WeightInfo::seed_auditors();
        let Some(mut round) = Rounds::<T>::get(task) else {
            return Ok(look);
        };
        if matches!(round.phase, RoundPhase::Challengeable { .. }) {
            return Self::advance_challengeable(task, round);
        }
        if Self::is_input_withheld(&round) {
            return Self::fail_withheld(task, round);
        }
        if round.awaits_seed() {
            Self::seed_auditors(task, &mut round);
            Rounds::<T>::insert(task, round);
            return Ok(look);
        }
        if Self::end_demand(task, &mut round) {
            T::Clock::wake_after(task, TrustLock::<T>::now());
            Rounds::<T>::insert(task, round);
            return Ok(Self::phase_weight());
        }
        let (_, until) = describe(&round.phase);
        // Who was found at fault is not waited for.
        let owes_some = round.members.iter().any(RoundMember::owes_opening);
        let is_opened = matches!(round.phase, RoundPhase::Revealing { .. }) && !owes_some;
        let is_due = is_opened || TrustLock::<T>::has_passed(until);
        if round.demands > 0 {
            // They have been looked at, each of them.
            return Ok(Self::phase_weight());
        }
        if !is_due {
            return Ok(look);
        }
        match &round.phase {
            RoundPhase::Committing { .. } => Self::end_committing(task, &mut round),
            RoundPhase::Auditing { .. } if owes_some => Self::start_revealing(task, &mut round),
            RoundPhase::Auditing { .. } | RoundPhase::Revealing { .. } | RoundPhase::Challengeable { .. } => {
                Self::conclude(task, &mut round)
            }
        }
        Rounds::<T>::insert(task, round);
        Ok(Self::phase_weight())
    }

    /// Does one thing that is due, or closes the round when nothing is left.
    fn advance_challengeable(task: TaskId, mut round: RoundOf<T>) -> Result<Weight, DispatchError> {
        let goes_on = Ok(Self::phase_weight());
        let is_over = TrustLock::<T>::has_passed(describe(&round.phase).1);
        if let Some(id) = Self::due_dispute(&round) {
            if T::Disputes::poll(id, &mut round) {
                return goes_on;
            }
            // Cannot be: both are written together.
            round.disputes.retain(|open| open.id != id);
        } else if !T::Disputes::match_up(task, &mut round)
            && !Self::end_demand(task, &mut round)
            && !Self::convict_silent(task, &mut round)
        {
            let is_quiet = round.disputes.is_empty() && round.demands == 0;
            if !is_over || !is_quiet {
                return goes_on;
            }
            if let Some(until) = Self::awaits_openings(&round) {
                T::Clock::wake_after(task, until);
                return goes_on;
            }
            if !Self::convict_absent(task, &mut round) {
                return Self::close_by_steps(task, &round);
            }
        }
        T::Clock::wake_after(task, TrustLock::<T>::now());
        Rounds::<T>::insert(task, round);
        goes_on
    }

    /// Forgets what was shown, a bounded part of it in one step, and closes the round with the last.
    fn close_by_steps(task: TaskId, round: &RoundOf<T>) -> Result<Weight, DispatchError> {
        let (parts, has_more) = Self::forget_shown(task);
        if has_more {
            T::Clock::wake_after(task, TrustLock::<T>::now());
            return Ok(<T as Config>::WeightInfo::close(0, parts));
        }
        let verdict = verdict::verdict(round);
        let audits = audits_to_pay::<T>(round, &verdict);
        Self::close(task, round);
        let outcome = T::Outcome::decided(task, verdict, &audits)?;
        let audits = u32::try_from(round.audits.len()).unwrap_or(u32::MAX);
        Ok(outcome.saturating_add(<T as Config>::WeightInfo::close(audits, parts)))
    }

    pub(crate) fn start_committing_again(task: TaskId, round: &mut RoundOf<T>) {
        let until = TrustLock::<T>::window_end(T::CommitWindow::get());
        Self::enter_phase(task, round, RoundPhase::Committing { until });
    }

    /// Ends the time for commitments, and with it all that could still be chosen: which block gives the
    /// seed, whose stake counts, and how old keys have to be.
    pub(crate) fn start_auditing(task: TaskId, round: &mut RoundOf<T>) {
        let begun_at = frame_system::Pallet::<T>::block_number();
        round.draw = Some(AuditDraw {
            begun_at,
            settled_by: begun_at.saturating_sub(T::VerifierSeasoning::get().into()),
            epoch_randomness: T::EpochRandomness::get(),
            verifier_stake: Self::drawn_stake(round),
            seed: None,
        });
        let until = TrustLock::<T>::window_end(Self::audit_window(round));
        Self::set_phase(task, round, RoundPhase::Auditing { until });
        T::Clock::wake_with_entropy(task, begun_at);
    }

    /// What the stake of a verifier is held against in the draw: all that there was when the task was posted,
    /// or less. Who bonds more just before the draw is not in it, and must not make others' part smaller.
    fn drawn_stake(round: &RoundOf<T>) -> T::Balance {
        let now = T::Stake::bonded_in_all(Role::Verifier);
        match round.terms.verifier_stake {
            // There was none yet; whoever has come since is all there is.
            0 => now,
            posted => now.min(posted.into()),
        }
    }

    /// Opens the audit window, once there is what auditors draw themselves with. A chain whose blocks have
    /// had no entropy for long gets on with its epoch's randomness alone: what a verifier draws from that is
    /// still known to its own key alone.
    pub(crate) fn seed_auditors(task: TaskId, round: &mut RoundOf<T>) {
        let Some(draw) = &mut round.draw else { return };
        let now = frame_system::Pallet::<T>::block_number();
        let kept = draw.begun_at.saturating_add(ENTROPY_BLOCKS.into());
        let entropy = T::Entropy::first_after(draw.begun_at).filter(|_| now <= kept);
        let patience = draw.begun_at.saturating_add(ENTROPY_PATIENCE_BLOCKS.into());
        if entropy.is_none() && now <= patience {
            return;
        }
        let output = entropy.as_ref().map(|(output, _)| output);
        let seed = audit_seed(&Self::genesis(), task, &draw.epoch_randomness, output);
        draw.seed = Some(seed);
        let until = TrustLock::<T>::window_end(Self::audit_window(round));
        round.phase = RoundPhase::Auditing { until };
        round.demands_until = Some(until);
        T::Clock::wake_after(task, until);
        Self::deposit_event(Event::AuditorsSeeded {
            task,
            seed,
            entropy,
            until,
        });
    }

    pub(crate) fn start_revealing(task: TaskId, round: &mut RoundOf<T>) {
        let until = TrustLock::<T>::window_end(T::RevealWindow::get());
        Self::enter_phase(task, round, RoundPhase::Revealing { until });
    }

    /// Reaches the verdict, and opens it to challenges. Whoever could have revealed and did not is not paid,
    /// and owes it.
    pub(crate) fn conclude(task: TaskId, round: &mut RoundOf<T>) {
        if matches!(round.phase, RoundPhase::Revealing { .. }) {
            Self::note_missed_reveals(task, round);
            round.openings_until = Some(Self::openings_end(round));
            round.reveals_until = round.openings_until;
            round.demands_until = Some(Self::leaves_demands_end(round));
        }
        let verdict = verdict::verdict(round);
        round.announced = accepted(&verdict);
        Self::deposit_event(Event::VerdictReached {
            task,
            verdict: verdict.clone(),
        });
        let until = TrustLock::<T>::window_end(T::ChallengeWindow::get());
        Self::enter_phase(task, round, RoundPhase::Challengeable { until, verdict });
        if T::Disputes::match_up(task, round) {
            T::Clock::wake_after(task, TrustLock::<T>::now());
        }
    }

    fn end_committing(task: TaskId, round: &mut RoundOf<T>) {
        if Self::replace_missing(task, round) {
            Self::start_committing_again(task, round);
            return;
        }
        // Short of a majority nobody owes what it has committed to. So it does not show that the others could
        // compute on the input: it may be anything, of a client's own provider.
        if verdict::has_quorum(round) {
            for member in &round.members {
                if member.progress == MemberProgress::Working {
                    TrustLock::<T>::note_missed(&member.provider);
                }
            }
            Self::start_auditing(task, round);
        } else {
            Self::conclude(task, round);
        }
    }

    /// Releases the locks, makes good for a wrong verdict that was announced, and forgets the round.
    pub(crate) fn close(task: TaskId, round: &RoundOf<T>) {
        let verdict = verdict::verdict(round);
        for member in &round.members {
            T::Stake::unlock(&member.provider, member.lock);
            // What was only disputed, and never audited, says little of whoever has said it.
            let is_audited = round.draw.is_some();
            if is_audited
                && matches!(&verdict, Verdict::Agreed { majority, .. } if majority.contains(&member.provider))
            {
                TrustLock::<T>::note_clean_task(&member.provider);
            }
        }
        for audit in &round.audits {
            T::Stake::unlock(&audit.verifier, audit.bond);
        }
        if round.announced.is_some() && accepted(&verdict) != round.announced {
            Self::insure(task, round);
        }
        Rounds::<T>::remove(task);
        DisputeContexts::<T>::remove(task);
        Self::forget_commitments(task, &round.members);
        Self::deposit_event(Event::RoundClosed { task });
    }

    /// Pays the client as much as the dearest of those who told it a wrong result would have got.
    fn insure(task: TaskId, round: &RoundOf<T>) {
        let at_fault = round.members.iter().filter(|member| member.has_lost());
        let price = at_fault.map(|member| member.price).max();
        let (Some(price), Some(client)) = (price, T::Outcome::client(task)) else {
            return;
        };
        TrustLock::<T>::insure(task, client, price);
    }

    pub(crate) fn enter_phase(
        task: TaskId,
        round: &mut RoundOf<T>,
        phase: RoundPhase<T::AccountId, BlockNumberFor<T>>,
    ) {
        T::Clock::wake_after(task, describe(&phase).1);
        Self::set_phase(task, round, phase);
    }

    fn set_phase(task: TaskId, round: &mut RoundOf<T>, phase: RoundPhase<T::AccountId, BlockNumberFor<T>>) {
        let (name, until) = describe(&phase);
        round.phase = phase;
        Self::deposit_event(Event::PhaseChanged {
            task,
            phase: name,
            until,
        });
    }

    /// Gives the seats of members that committed nothing to reserves, as far as there are any. Says whether
    /// it gave any. A member that nobody replaces keeps its seat, and its chance in the next window.
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
            Self::fill_vacancies(task, round, &mut vacancies, &reserves);
        }
        vacancies.len() < vacant
    }

    /// Seats `reserves`, as far as they are fit, from the end of `vacancies`.
    pub(crate) fn fill_vacancies(
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
        let (Ok(newcomer), Some(member)) = (Self::seat(reserve, round), round.members.get_mut(seat)) else {
            round.dropped.pop();
            return false;
        };
        let by = newcomer.provider.clone();
        let RoundMember { lock, .. } = core::mem::replace(member, newcomer);
        T::Stake::unlock(&leaver, lock);
        // Of those who were replaced no more than have committed: a task of one seat is a cheap way to say
        // that a whole list of reserves could have computed on what only the last of them was given.
        if verdict::has_quorum(round) && round.dropped.len() <= verdict::committed(round) as usize {
            TrustLock::<T>::note_missed(&leaver);
        }
        Self::deposit_event(Event::ProviderReplaced {
            task,
            dropped: leaver,
            by,
        });
        true
    }

    /// Locks the stake that the assignment asks for.
    fn seat(assignment: &AssignmentOf<T>, round: &RoundOf<T>) -> Result<MemberOf<T>, DispatchError> {
        let secured = (&round.security, &round.terms);
        let Assignment { provider, price } = assignment.clone();
        let lock = Self::do_lock_for(price, secured.0, secured.1);
        T::Stake::lock(&provider, lock)?;
        let audits = Self::audit_rate(&provider, price, round.units_max, secured);
        Ok(RoundMember {
            audits,
            ..RoundMember::new(provider, price, lock)
        })
    }

    /// Brings the verdict up to what the round's results come to now. Says whether it has changed.
    pub fn update_verdict(task: TaskId, round: &mut RoundOf<T>) -> bool {
        let now = verdict::verdict(round);
        let RoundPhase::Challengeable { verdict, .. } = &mut round.phase else {
            return false;
        };
        if *verdict == now {
            return false;
        }
        *verdict = now.clone();
        round.announced = round.announced.or(accepted(&now));
        Self::deposit_event(Event::VerdictReached { task, verdict: now });
        true
    }
}

/// Whether `provider` is on the round, or was.
fn is_known<T: Config>(round: &RoundOf<T>, provider: &T::AccountId) -> bool {
    round.members.iter().any(|member| member.provider == *provider) || round.dropped.contains(provider)
}

/// The output that a verdict accepts.
pub fn accepted<A>(verdict: &Verdict<A>) -> Option<ContentHash> {
    match verdict {
        Verdict::Agreed { claim, .. } => Some(claim.output),
        Verdict::Failed(_) => None,
    }
}
