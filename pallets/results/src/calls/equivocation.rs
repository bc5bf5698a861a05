//! Reports of providers that said two different things of one task.
//!
//! A provider signs a [`CommitStatement`](surety_proofs::CommitStatement) when it hands its result to the
//! client. It counts as long as the task has its round: from then on nothing is locked for it, and nothing
//! that the provider might still sign can change what was paid.

use frame_support::{dispatch::DispatchResult, ensure};
use frame_system::pallet_prelude::BlockNumberFor;
use sp_core::H256;
use sp_runtime::traits::Zero;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::SignedStatement;
use surety_types::{
    TaskId,
    stake::Role,
    task::{ResultClaim, RoundMember, RoundPhase},
    traits::{SignatureVerifier, StakeLedger, TaskClock},
    trust::{CommitNote, FaultKind},
};

use crate::{
    CommitNotes, Config, DisputeContexts, DisputeReferee, Error, Event, MemberOf, Pallet, RoundOf, Rounds,
};

impl<T: Config> Pallet<T> {
    pub(crate) fn do_report_equivocation(
        reporter: T::AccountId,
        one: SignedStatement<T::AccountId>,
        other: Option<SignedStatement<T::AccountId>>,
    ) -> DispatchResult {
        let (task, provider) = (one.statement.task, one.statement.provider.clone());
        let mut round = Self::round(task)?;
        let member = Self::member(&mut round, &provider)?.clone();
        let kind = FaultKind::Equivocation;
        ensure!(member.fault != Some(kind), Error::<T>::AlreadyAtFault);
        ensure!(
            Self::contradicts(&one, other.as_ref(), &member),
            Error::<T>::NoEquivocation
        );
        for signed in core::iter::once(&one).chain(&other) {
            ensure!(Self::is_of_agent(signed), Error::<T>::WrongSigner);
            ensure!(Self::is_signed(signed), Error::<T>::BadSignature);
        }
        Self::find_two_faced(task, &mut round, &provider, reporter);
        Self::update_verdict(task, &mut round);
        // In the reveal phase it may have been the last that was waited for.
        if matches!(
            round.phase,
            RoundPhase::Revealing { .. } | RoundPhase::Challengeable { .. }
        ) {
            T::Clock::wake_after(task, TrustLock::<T>::now());
        }
        Rounds::<T>::insert(task, round);
        Ok(())
    }

    /// Finds a provider at fault that has said two things.
    fn find_two_faced(task: TaskId, round: &mut RoundOf<T>, provider: &T::AccountId, finder: T::AccountId) {
        let kind = FaultKind::Equivocation;
        let known = Self::member(round, provider).ok().and_then(|member| member.fault);
        if known.is_none_or(|known| kind.is_graver_than(known)) {
            Self::convict_provider(task, round, provider, kind, Some(finder.clone()));
        } else {
            Self::note_equivocation(task, round, provider);
        }
        Self::deposit_event(Event::EquivocationReported {
            task,
            provider: provider.clone(),
            by: finder,
        });
    }

    /// Whether a provider has shown another output on chain than it reveals. It is found at fault then, by
    /// who had it shown.
    pub(crate) fn compare_with_shown(
        task: TaskId,
        round: &mut RoundOf<T>,
        provider: &T::AccountId,
        claim: &ResultClaim,
    ) {
        let Some(shown) = CommitNotes::<T>::get(task, provider).and_then(|note| note.shown) else {
            return;
        };
        let bytes = Self::claimed_bytes(task, claim);
        if shown.content != claim.output || bytes.is_some_and(|bytes| bytes != shown.bytes) {
            Self::find_two_faced(task, round, provider, shown.demander);
        }
    }

    /// How long the output is that is claimed, where that follows from the claim.
    pub(crate) fn claimed_bytes(task: TaskId, claim: &ResultClaim) -> Option<u32> {
        T::Referee::output_bytes(&DisputeContexts::<T>::get(task)?, claim)
    }

    /// Writes down what a provider commits to, and which of its agents did.
    pub fn note_commitment(task: TaskId, provider: &T::AccountId, agent: &T::AccountId, commitment: H256) {
        let agent = agent.clone();
        let note = CommitNote {
            agent,
            commitment,
            shown: None,
        };
        CommitNotes::<T>::insert(task, provider, note);
    }

    /// Forgets it with the round.
    pub(crate) fn forget_commitments(task: TaskId, members: &[MemberOf<T>]) {
        for member in members {
            CommitNotes::<T>::remove(task, &member.provider);
        }
    }

    /// Whether a statement differs from another of the same provider about the same task, or from what it
    /// said on chain.
    fn contradicts(
        one: &SignedStatement<T::AccountId>,
        other: Option<&SignedStatement<T::AccountId>>,
        member: &RoundMember<T::AccountId, T::Balance>,
    ) -> bool {
        let said = &one.statement;
        match other {
            Some(other) => {
                let other = &other.statement;
                said.task == other.task && said.provider == other.provider && said != other
            }
            None => {
                let committed = CommitNotes::<T>::get(said.task, &said.provider);
                let revealed = member.claim().map(|claim| claim.output);
                let is_other = |note: CommitNote<T::AccountId>| {
                    let shown = note.shown.map(|shown| shown.content);
                    note.commitment != said.commitment || shown.is_some_and(|output| output != said.output)
                };
                committed.is_some_and(is_other) || revealed.is_some_and(|output| output != said.output)
            }
        }
    }

    /// Whether the key that signed is the provider's agent, or was when it committed.
    fn is_of_agent(signed: &SignedStatement<T::AccountId>) -> bool {
        let provider = &signed.statement.provider;
        let committed = CommitNotes::<T>::get(signed.statement.task, provider);
        committed.is_some_and(|note| note.agent == signed.agent)
            || T::Stake::stash_of(&signed.agent, Role::Provider).as_ref() == Some(provider)
    }

    fn is_signed(signed: &SignedStatement<T::AccountId>) -> bool {
        let message = signed.statement.message(&Self::genesis());
        T::Signatures::is_signed(&signed.agent, &message, &signed.signature)
    }

    /// The hash of the first block, which names the chain. It is never pruned.
    pub fn genesis() -> H256 {
        let hash = frame_system::Pallet::<T>::block_hash(BlockNumberFor::<T>::zero());
        // Of other lengths than 32 bytes there are none.
        let mut genesis = H256::zero();
        for (to, from) in genesis.as_bytes_mut().iter_mut().zip(hash.as_ref()) {
            *to = *from;
        }
        genesis
    }
}
