//! Why calls do nothing: a section of [`crate::pallet`].

use frame_support::pallet_macros::pallet_section;

/// Typed errors.
#[pallet_section]
mod errors {
    /// Why nothing was done.
    #[pallet::error]
    pub enum Error<T> {
        /// The task has a round already.
        RoundExists,
        /// The task has no round.
        UnknownRound,
        /// The redundancy is not the number of providers, or is zero.
        WrongMemberCount,
        /// A provider is assigned to the task twice.
        DuplicateMember,
        /// The signer is not the agent of a provider.
        NotProviderAgent,
        /// The provider is not on this task, or not any more.
        NotMember,
        /// The round is not in the phase for this call, or its time is over.
        WrongPhase,
        /// The provider has committed before.
        AlreadyCommitted,
        /// The provider has not committed.
        NotCommitted,
        /// The provider has revealed before.
        AlreadyRevealed,
        /// Claim and salt do not open the commitment.
        CommitmentMismatch,
        /// The claim reports more units than the client pays for.
        TooManyUnits,
        /// No result of the task can be like this claim.
        ImpossibleClaim,
        /// The signer is not the agent of a verifier.
        NotVerifierAgent,
        /// The stash was at fault, or missed a deadline, and gets no work for a while.
        InJail,
        /// The proof does not show that the verifier drew itself, or it did not.
        NotDrawn,
        /// The verifier audits this provider already.
        AlreadyAuditing,
        /// The task has all the audits it can take.
        TooManyAudits,
        /// The verifier does not audit this provider.
        NotAuditor,
        /// The provider has not revealed.
        NotRevealed,
        /// Claim and salt do not open the seal.
        SealMismatch,
        /// The provider's result has no trace that can be played over, or no longer counts.
        NotDisputable,
        /// The task has all the challenges or disputes that it can take.
        TooManyDisputes,
        /// There is no such dispute, or it is over.
        UnknownDispute,
        /// The signer plays on neither side of the dispute.
        NotPlayer,
        /// A party of the dispute lost elsewhere: it only waits to be ended.
        Moot,
        /// The other side is to move, or the move is not one that can be made now.
        NotNow,
        /// The dispute has another number of moves: this one was made for an earlier state.
        StaleMove,
        /// What was posted or shown is not what is in dispute.
        WrongMove,
        /// The opening does not prove the cell's inputs.
        Unproven,
        /// The time for it has not run out, and nothing else is due.
        NotDue,
        /// The dispute can be decided by playing.
        NotBeyond,
        /// Something else has to be supplied first, by the provider or of the input.
        AlreadyDemanded,
        /// The task has all the demands that it can take, or the provider has demanded all the input it can.
        TooManyDemands,
        /// Nothing is demanded of the provider, or of the input.
        NotDemanded,
        /// This is not the piece of the output or input that was demanded.
        WrongSegment,
        /// There is no such slash, or it was carried out.
        UnknownSlash,
        /// No committee sits about the dispute.
        NoCommittee,
        /// The committee has come to another ballot: this seal was made for an earlier one.
        StaleBallot,
        /// The verifier gains or loses by the dispute.
        IsParty,
        /// The verifier has taken a seat already.
        AlreadySeated,
        /// The verifier had a seat of this committee before and did not open its answer.
        WasAbsent,
        /// All seats are taken by verifiers that drew better, or have more stake.
        Outranked,
        /// The verifier's stake or key is newer than what it draws itself with.
        Unsettled,
        /// The verifier has no seat in this ballot.
        NotSeated,
        /// More is at risk than the stake of all providers could secure.
        ValueAtRiskTooHigh,
        /// As the parameters are, no stake would make cheating a loss.
        NeverPunished,
        /// The statements do not contradict each other, or the chain.
        NoEquivocation,
        /// The key that signed is not the provider's agent, and was not when it committed.
        WrongSigner,
        /// The signature is not of this statement for this chain.
        BadSignature,
        /// The provider was found at fault before.
        AlreadyAtFault,
        /// The task's input has no such piece.
        NoSuchSegment,
        /// A majority has committed: the input is to be had.
        EnoughCommitted,
    }
}
