//! What members of committees do: take seats and open their answers.

use frame_support::{
    dispatch::DispatchResult,
    ensure,
    pallet_prelude::{InvalidTransaction, TransactionSource, TransactionValidityWithRefund},
    weights::Weight,
};
use sp_core::H256;
use sp_runtime::{DispatchError, FixedU128, SaturatedConversion, traits::Saturating};
use surety_audit_economics::{
    AuditThreshold, SeatInput,
    draw::{SEAT_CONTEXT, SEAT_LABEL, borrowed},
};
use surety_dispute_game::{
    committee::{CANDIDATES_EXPECTED, Candidate, Entry, seat_rank, vote_rank},
    quorum_streak::{CommitteeError, Stage},
};
use surety_pallet_results::{Pallet as Results, RoundOf};
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    opening::pooled,
    stake::Role,
    traits::{DrawVerifier, Jail, StakeLedger},
    trust::{AuditProof, DisputeId},
};

use crate::{CommitteeOf, Committees, Config, DisputeOf, Disputes, Error, Event, Pallet, game::is_moot};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_join_committee(
        agent: &T::AccountId,
        id: DisputeId,
        ballot: u32,
        proof: Option<AuditProof>,
        seal: H256,
    ) -> DispatchResult {
        let verifier = Results::<T>::verifier_of(agent)?;
        let (_, dispute, mut committee) = Self::sitting(id)?;
        Self::ensure_fit(&verifier, &committee)?;
        ensure!(!is_party::<T>(&dispute, agent, &verifier), Error::<T>::IsParty);
        ensure!(committee.state.rounds() == ballot, Error::<T>::StaleBallot);
        Self::take_time(&mut committee)?;
        let known = committee
            .candidates
            .iter()
            .any(|other| other.verifier == verifier);
        ensure!(!known, Error::<T>::AlreadySeated);
        ensure!(Self::is_settled(&verifier, &committee), Error::<T>::Unsettled);
        let stake: u128 = T::Stake::bonded(&verifier, Role::Verifier).into();
        let rank = Self::rank(agent, stake, id, &committee, proof.as_ref())?;
        let candidate = Candidate {
            verifier: verifier.clone(),
            rank,
            stake,
            seal,
        };
        let instead_of = match committee.enter(candidate) {
            Entry::Seated => None,
            Entry::InsteadOf(other) => Some(other),
            Entry::Outranked => return Err(Error::<T>::Outranked.into()),
        };
        Committees::<T>::insert(id, committee);
        Self::deposit_event(Event::SeatTaken {
            dispute: id,
            ballot,
            verifier,
            seal,
            instead_of,
        });
        Ok(())
    }

    /// Whoever calls: the opening proves that it is what the verifier sealed.
    pub(crate) fn do_reveal_vote(
        id: DisputeId,
        verifier: T::AccountId,
        value: H256,
        salt: H256,
    ) -> DispatchResult {
        let (mut round, mut dispute, mut committee) = Self::sitting(id)?;
        Self::take_time(&mut committee)?;
        let opened = committee.state.reveal(&verifier, value, salt);
        opened.map_err(refusal::<T>)?;
        TrustLock::<T>::note_presence(&verifier);
        Self::deposit_event(Event::VoteRevealed {
            dispute: id,
            verifier,
            value,
        });
        if committee.fund.is_some() {
            Committees::<T>::insert(id, committee);
            Self::store(&mut round, id, dispute);
            return Ok(());
        }
        if !committee.state.is_revealing() {
            Self::end_ballot(id, &mut committee);
        }
        Self::settle(id, &mut dispute, committee);
        match dispute.game.outcome() {
            Some(outcome) => Self::finish(&mut round, id, dispute, Some(outcome)),
            None => Self::store(&mut round, id, dispute),
        }
        Ok(())
    }

    /// Lets an opening in that [`Self::do_reveal_vote`] carries out now, and no other. So what enters a block
    /// without a fee is one opening for each seat, which was paid for.
    ///
    /// Changes nothing. It costs the round, the dispute, the committee and a hash.
    ///
    /// # Errors
    /// `Future` when it is too early, `Stale` when it is too late or the answer is open already, `BadProof`
    /// when it is not opened by this, `Call` when there is none.
    pub(crate) fn authorize_reveal_vote(
        _: TransactionSource,
        id: &DisputeId,
        verifier: &T::AccountId,
        value: &H256,
        salt: &H256,
    ) -> TransactionValidityWithRefund {
        let (_, _, mut committee) = Self::sitting(*id).map_err(|_| InvalidTransaction::Call)?;
        ensure!(!Self::is_stage_over(&committee), InvalidTransaction::Stale);
        let opened = committee.state.reveal(verifier, *value, *salt);
        opened.map_err(|error| match error {
            CommitteeError::NotNow => InvalidTransaction::Future,
            CommitteeError::Twice => InvalidTransaction::Stale,
            CommitteeError::WrongOpening => InvalidTransaction::BadProof,
            CommitteeError::NotDrawn | CommitteeError::BadDraw => InvalidTransaction::Call,
        })?;
        let validity = pooled("Disputes.reveal_vote", (*id).into(), verifier);
        Ok((validity, Weight::zero()))
    }

    pub(crate) fn do_advance_committee(id: DisputeId) -> DispatchResult {
        let (mut round, dispute, committee) = Self::sitting(id)?;
        let goes_on = committee.state.decision().is_none() && Self::is_stage_over(&committee);
        let due = goes_on || Self::awaits_seed(&committee) || Self::has_work(&committee);
        ensure!(due, Error::<T>::NotDue);
        Self::poll_dispute(&mut round, id, dispute);
        Ok(())
    }

    /// Whether a verifier may have a seat. In a vote of all its stake counts against every answer when it
    /// does not come, so only jail keeps it away; in a draw others take the seat of one that has missed a
    /// deadline, of this committee or before.
    fn ensure_fit(verifier: &T::AccountId, committee: &CommitteeOf<T>) -> DispatchResult {
        match committee.state.stage() {
            Stage::Summoning => ensure!(!TrustLock::<T>::is_in_jail(verifier), Error::<T>::InJail),
            _ => {
                ensure!(!TrustLock::<T>::is_jailed(verifier), Error::<T>::InJail);
                ensure!(
                    !committee.state.absent().contains(verifier),
                    Error::<T>::WasAbsent
                );
            }
        }
        Ok(())
    }

    /// A committee that sits, with its dispute and the dispute's round.
    #[allow(clippy::type_complexity)] // Three records.
    fn sitting(id: DisputeId) -> Result<(RoundOf<T>, DisputeOf<T>, CommitteeOf<T>), DispatchError> {
        let dispute = Disputes::<T>::get(id).ok_or(Error::<T>::UnknownDispute)?;
        let round = Results::<T>::round(dispute.task)?;
        let committee = Committees::<T>::get(id);
        let winds_up = committee
            .as_ref()
            .is_some_and(|committee| committee.fund.is_some());
        ensure!(winds_up || !is_moot::<T>(&round, &dispute), Error::<T>::Moot);
        let committee = committee.ok_or(Error::<T>::NoCommittee)?;
        Ok((round, dispute, committee))
    }

    /// Takes the time that has passed from the stage. Refuses when it is over: what comes too late would be
    /// undone with what follows from that.
    fn take_time(committee: &mut CommitteeOf<T>) -> DispatchResult {
        let over = Self::is_stage_over(committee) || Self::awaits_seed(committee);
        ensure!(!over, Error::<T>::NotNow);
        let blocks = Self::committee_blocks(committee);
        committee.state.tick(blocks);
        committee.ticked_at = committee.ticked_at.max(TrustLock::<T>::now());
        Ok(())
    }

    /// Whether a verifier's stake and key are old enough for this committee. Otherwise it could try keys,
    /// move stake to those names that are drawn, or bring stake to a vote whose question it knows. In blocks
    /// of the chain, because those make the epochs whose randomness is part of the seed.
    fn is_settled(verifier: &T::AccountId, committee: &CommitteeOf<T>) -> bool {
        let now = frame_system::Pallet::<T>::block_number();
        let since: u32 = now.saturating_sub(committee.draw.settled_by).saturated_into();
        T::Stake::settled_for(verifier) >= since
    }

    /// A verifier's place among candidates.
    fn rank(
        agent: &T::AccountId,
        stake: u128,
        dispute: DisputeId,
        committee: &CommitteeOf<T>,
        proof: Option<&AuditProof>,
    ) -> Result<u128, DispatchError> {
        match committee.state.stage() {
            Stage::Summoning => return Ok(vote_rank(stake)),
            Stage::Drawing => {}
            Stage::Round(_) | Stage::Voting(_) | Stage::Over(_) => return Err(Error::<T>::NotNow.into()),
        }
        let input = SeatInput {
            seed: committee.draw.seed.ok_or(Error::<T>::NotNow)?,
            dispute,
            ballot: committee.state.rounds(),
        };
        let fields = input.fields();
        let proof = proof.ok_or(Error::<T>::NotDrawn)?;
        let output = T::Draws::output(agent, SEAT_LABEL, &borrowed(&fields), SEAT_CONTEXT, proof);
        let output = output.ok_or(Error::<T>::NotDrawn)?;
        let expected = FixedU128::from_u32(CANDIDATES_EXPECTED);
        let threshold = AuditThreshold::weighted(expected, stake, committee.draw.verifier_stake.into());
        ensure!(threshold.draws(&output), Error::<T>::NotDrawn);
        Ok(seat_rank(&output, stake))
    }
}

/// Whether a verifier gains or loses by a dispute.
fn is_party<T: Config>(dispute: &DisputeOf<T>, agent: &T::AccountId, verifier: &T::AccountId) -> bool {
    let parties = [dispute.defender.account(), dispute.challenger.account()];
    parties.contains(&agent) || parties.contains(&verifier)
}

const fn refusal<T: Config>(error: CommitteeError) -> Error<T> {
    match error {
        CommitteeError::NotNow => Error::NotNow,
        CommitteeError::NotDrawn | CommitteeError::BadDraw => Error::NotSeated,
        CommitteeError::Twice => Error::AlreadyRevealed,
        CommitteeError::WrongOpening => Error::SealMismatch,
    }
}
