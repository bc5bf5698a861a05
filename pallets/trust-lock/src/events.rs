//! What the pallet tells the world: a section of [`crate::pallet`].

use frame_support::pallet_macros::pallet_section;

/// How rounds, audits, disputes, committees and slashes went on.
#[pallet_section]
mod events {
    /// How a round went on.
    #[pallet::event]
    #[pallet::generate_deposit(pub(super) fn deposit_event)]
    pub enum Event<T: Config> {
        /// Providers were put to work on a task, and their stake was locked.
        RoundOpened {
            /// The task.
            task: TaskId,
            /// Last time for commitments.
            until: BlockNumberFor<T>,
        },
        /// A provider committed to a result.
        Committed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// What it will have to open.
            commitment: H256,
        },
        /// A provider that committed nothing in time was replaced, and its stake unlocked.
        ProviderReplaced {
            /// On which task.
            task: TaskId,
            /// Who is off it.
            dropped: T::AccountId,
            /// Who is on it now.
            by: T::AccountId,
        },
        /// A round entered a phase, or the same one again with providers replaced.
        PhaseChanged {
            /// Of which task.
            task: TaskId,
            /// The phase it is in now.
            phase: PhaseName,
            /// Last time of that phase.
            until: BlockNumberFor<T>,
        },
        /// A provider opened its commitment.
        Revealed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// What it had committed to.
            claim: ResultClaim,
        },
        /// A provider has not opened its commitment in time, and is not paid. It still has to.
        RevealMissed {
            /// For which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
        },
        /// It is known how the task went, or known better than before. Carried out when the challenge window has
        /// passed and no dispute is open.
        VerdictReached {
            /// Which task.
            task: TaskId,
            /// The verdict, with everybody's part in it.
            verdict: Verdict<T::AccountId>,
        },
        /// The round is over, and the stake behind it unlocked.
        RoundClosed {
            /// Of which task.
            task: TaskId,
        },
        /// A verifier drew itself and sealed its own result; its bond was locked.
        AuditAnnounced {
            /// For which task.
            task: TaskId,
            /// The stash of the provider that it audits.
            provider: T::AccountId,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// How often auditors had been drawn again.
            tranche: u8,
            /// What it will have to open.
            seal: H256,
        },
        /// A verifier opened its seal.
        AuditRevealed {
            /// For which task.
            task: TaskId,
            /// The stash of the provider that it audited.
            provider: T::AccountId,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// What it computed.
            claim: ResultClaim,
            /// Whether that is what the provider said.
            agrees: bool,
        },
        /// Auditors never opened their seals, so others may draw themselves.
        AuditorsDrawnAgain {
            /// For which task.
            task: TaskId,
            /// How often that has been so.
            tranche: u8,
            /// Last time for them.
            until: BlockNumberFor<T>,
        },
        /// Two parties say different things, and play.
        DisputeOpened {
            /// The dispute's number.
            dispute: DisputeId,
            /// About which task.
            task: TaskId,
            /// Who stands by the claim.
            defender: PartyOf<T>,
            /// Who says that it is wrong.
            challenger: PartyOf<T>,
            /// The claim.
            claim: ResultClaim,
            /// On hold on the challenger's account, in plancks.
            bond: T::Balance,
        },
        /// A move was made. What it was is in the extrinsic.
        MovePlayed {
            /// In which dispute.
            dispute: DisputeId,
            /// By which side.
            side: Side,
            /// Its number in the dispute, from 1.
            number: u32,
            /// Who is to move next; nobody when the dispute is over or beyond.
            next: Option<Side>,
        },
        /// A dispute came to one cell.
        CellReached {
            /// Which dispute.
            dispute: DisputeId,
            /// What is in dispute now.
            cell: Cell,
            /// Whether it is for others to decide, because no block can compute it again.
            beyond: bool,
        },
        /// A dispute is over.
        DisputeEnded {
            /// Which.
            dispute: DisputeId,
            /// About which task it was.
            task: TaskId,
            /// Who won and why. Nothing when nobody could decide it, and when one of the parties lost elsewhere.
            outcome: Option<Outcome>,
        },
        /// A challenger lost its bond.
        BondForfeited {
            /// In which dispute.
            dispute: DisputeId,
            /// Whose it was.
            challenger: T::AccountId,
            /// Who got a part of it.
            defender: T::AccountId,
            /// That part, in plancks.
            awarded: T::Balance,
            /// What was burned, in plancks.
            burned: T::Balance,
        },
        /// A challenger got its bond back.
        BondReturned {
            /// In which dispute.
            dispute: DisputeId,
            /// Whose it is.
            challenger: T::AccountId,
            /// How much, in plancks.
            amount: T::Balance,
        },
        /// A piece of output has to be supplied on chain.
        DataDemanded {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// Who wants it.
            by: T::AccountId,
            /// Which 1 KiB.
            segment: u32,
            /// Last time for it.
            until: BlockNumberFor<T>,
        },
        /// A piece of output was supplied. It is in the extrinsic.
        DataSupplied {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// Which 1 KiB.
            segment: u32,
        },
        /// Somebody was found at fault.
        FaultFound {
            /// On which task.
            task: TaskId,
            /// Its stash.
            offender: T::AccountId,
            /// What it did.
            kind: FaultKind,
        },
        /// A slash will be carried out.
        SlashDeferred {
            /// Its number.
            slash: SlashId,
            /// On which task.
            task: TaskId,
            /// The offender's stash.
            offender: T::AccountId,
            /// For what.
            kind: FaultKind,
            /// Locked stake that it takes at least, in plancks.
            lock: T::Balance,
            /// It can be vetoed up to this time, and until it is carried out.
            until: BlockNumberFor<T>,
        },
        /// A slash was vetoed.
        SlashCancelled {
            /// Its number.
            slash: SlashId,
            /// The stash that was spared.
            offender: T::AccountId,
        },
        /// A slash was carried out.
        SlashCarriedOut {
            /// Its number.
            slash: SlashId,
            /// The offender's stash.
            offender: T::AccountId,
            /// What it lost in all, in plancks.
            taken: T::Balance,
            /// The part for whoever proved the fault, or for the insurance pool.
            finder: T::Balance,
            /// The part for the client, or for the insurance pool.
            client: T::Balance,
        },
        /// A stash gets no work for a while.
        Jailed {
            /// Which.
            stash: T::AccountId,
            /// Up to this time.
            until: BlockNumberFor<T>,
        },
        /// A stash gets no work for a while and cannot unbond, because it missed a deadline. It loses no stake for that.
        Suspended {
            /// Which.
            stash: T::AccountId,
            /// Up to this time.
            until: BlockNumberFor<T>,
        },
        /// A stash gets work again before its time, because of a veto.
        Released {
            /// Which.
            stash: T::AccountId,
        },
        /// A client was paid because it had been told a wrong result.
        InsurancePaid {
            /// Of which task.
            task: TaskId,
            /// The client.
            client: T::AccountId,
            /// How much, in plancks.
            amount: T::Balance,
        },
        /// Verifiers are called together about a cell that no block can compute again.
        CommitteeConvened {
            /// Of which dispute.
            dispute: DisputeId,
            /// What they are asked: their seals name it.
            question: H256,
            /// Whether all are asked at once, because they are few.
            all_at_once: bool,
        },
        /// A verifier took a seat and sealed its answer. It keeps the seat unless others draw better.
        SeatTaken {
            /// In which dispute.
            dispute: DisputeId,
            /// Ballots before this one.
            ballot: u32,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// What it will have to open.
            seal: H256,
            /// Who lost the seat by it.
            instead_of: Option<T::AccountId>,
        },
        /// Seats are filled; answers are opened from now on.
        BallotOpened {
            /// In which dispute.
            dispute: DisputeId,
            /// Ballots before this one.
            ballot: u32,
            /// How many sealed an answer.
            members: u32,
        },
        /// A member opened its answer.
        VoteRevealed {
            /// In which dispute.
            dispute: DisputeId,
            /// The verifier's stash.
            verifier: T::AccountId,
            /// Hash of the value that it computed.
            value: H256,
        },
        /// A ballot is over, or too few came for it.
        BallotEnded {
            /// In which dispute.
            dispute: DisputeId,
            /// Rounds so far.
            rounds: u32,
            /// The value that rounds had a quorum for, if any had.
            leader: Option<H256>,
            /// How many in a row up to the last one.
            streak: u32,
        },
        /// A committee is over.
        CommitteeEnded {
            /// In which dispute.
            dispute: DisputeId,
            /// What it decided, if it did.
            decision: Decision,
            /// Who was right. Nobody knows when nothing was decided: the dispute waits a while for others to decide.
            winner: Option<Side>,
        },
        /// Somebody showed that a provider said two different things of one task.
        EquivocationReported {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
            /// Who showed it.
            by: T::AccountId,
        },
        /// A piece of a task's input has to be supplied on chain. The time for commitments moves on meanwhile.
        InputDemanded {
            /// Of which task.
            task: TaskId,
            /// The stash of the provider that wants it.
            provider: T::AccountId,
            /// Which 1 KiB.
            segment: u32,
            /// Last time for it.
            until: BlockNumberFor<T>,
            /// Last time for commitments now.
            commit_until: BlockNumberFor<T>,
        },
        /// A piece of input was supplied. It is in the extrinsic.
        InputSupplied {
            /// Of which task.
            task: TaskId,
            /// Which 1 KiB.
            segment: u32,
            /// Who supplied it.
            by: T::AccountId,
        },
        /// What was demanded is needed no more: the provider that had demanded it, or a majority, has committed.
        InputDemandLifted {
            /// Of which task.
            task: TaskId,
            /// The provider's stash.
            provider: T::AccountId,
        },
        /// A piece of input was not supplied in time: the task fails, and its client loses its lock.
        InputWithheld {
            /// Of which task.
            task: TaskId,
            /// The stash of the provider that had demanded it.
            provider: T::AccountId,
            /// Which 1 KiB.
            segment: u32,
        },
    }
}
