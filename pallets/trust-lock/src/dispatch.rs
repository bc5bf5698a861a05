//! The calls, with their errors and weights: a section of [`crate::pallet`]. What they do is in [`crate::calls`].

use frame_support::pallet_macros::pallet_section;

/// The calls.
#[pallet_section]
mod dispatch {
    #[pallet::call]
    impl<T: Config> Pallet<T> {
        /// Commits the signer's stash to a result of `task` without showing it.
        ///
        /// `commitment` is [`surety_proofs::commitment`] of the task, the **stash**, the claim and a salt. It
        /// cannot be taken back or changed. The last commitment opens the audit window.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase` after the deadline, `NotMember`, `AlreadyCommitted`.
        #[pallet::call_index(0)]
        #[pallet::weight((T::WeightInfo::commit(), DispatchClass::Operational))]
        pub fn commit(origin: OriginFor<T>, task: TaskId, commitment: H256) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_commit(&agent, task, commitment)
        }

        /// Opens the commitment of the stash `provider`. Without signature and fee, as a general transaction: the opening
        /// proves itself, and anybody may pass it on. One that would fail enters no block, so that there is at most one for
        /// each commitment, which was paid for.
        ///
        /// Possible as soon as the audit window has passed. The last reveal brings the verdict. Who reveals later than the
        /// window for it is not paid, and can until [`Round::openings_until`](surety_types::task::Round::openings_until).
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase` before and after its time, `NotMember`, `NotCommitted`, `AlreadyRevealed`,
        /// `CommitmentMismatch`, `TooManyUnits`, `ImpossibleClaim`; `BadOrigin` when it is signed. Pools refuse it instead:
        /// as `Future` or `Stale` by its time, as `Stale` the second time, as `BadProof` when the opening is not the right
        /// one, as `Call` when there is nothing to open.
        #[pallet::call_index(1)]
        #[pallet::weight((T::WeightInfo::reveal(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal)]
        #[pallet::weight_of_authorize(T::WeightInfo::authorize_reveal())]
        pub fn reveal(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            claim: ResultClaim,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal(task, provider, claim, salt)
        }

        /// Announces, for the signer's stash, that it audits `provider`, and seals what it computed itself.
        ///
        /// `proof` is of the VRF of the signer's key over [`surety_audit_economics::AuditInput`], whose output has to be
        /// below the threshold for the stash's stake. `seal` is [`surety_audit_economics::audit_seal`]. Locks the bond.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `InJail`, `UnknownRound`, `WrongPhase` outside the audit window and later tranches,
        /// `NotMember`, `NotDisputable`, `AlreadyAuditing`, `NotDrawn`, `TooManyAudits`; staking's own when the bond
        /// cannot be locked.
        #[pallet::call_index(2)]
        #[pallet::weight(T::WeightInfo::announce_audit())]
        pub fn announce_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            proof: AuditProof,
            seal: H256,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_announce_audit(&agent, task, &provider, &proof, seal)
        }

        /// Opens the seal of the audit of `provider` by the stash `verifier`. Without signature and fee, like
        /// [`Pallet::reveal`]. Possible once the provider has revealed, until
        /// [`Round::openings_until`](surety_types::task::Round::openings_until). Another result than the provider's opens a
        /// dispute.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotRevealed`, `NotAuditor`, `AlreadyRevealed`, `SealMismatch`;
        /// `BadOrigin` when it is signed. Pools refuse it instead, as they do [`Pallet::reveal`].
        #[pallet::call_index(3)]
        #[pallet::weight((T::WeightInfo::reveal_audit(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal_audit)]
        #[pallet::weight_of_authorize(T::WeightInfo::authorize_reveal_audit())]
        pub fn reveal_audit(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            verifier: T::AccountId,
            claim: ResultClaim,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal_audit(task, &provider, &verifier, claim, salt)
        }

        /// Says that a provider's result is wrong. Anybody may, while the verdict can be challenged; the bond is put on
        /// hold. It is returned unless the challenger loses: then half goes to the defender and half is burned.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotDisputable`, `TooManyDisputes`; the currency's own.
        #[pallet::call_index(4)]
        #[pallet::weight(T::WeightInfo::challenge())]
        pub fn challenge(origin: OriginFor<T>, task: TaskId, provider: T::AccountId) -> DispatchResult {
            let challenger = ensure_signed(origin)?;
            Self::do_challenge(challenger, task, &provider)
        }

        /// Demands that a provider shows a piece of its output on chain. Anybody may, one piece at a time; a demand of the task's
        /// client takes the place of anybody else's, which gets its price back. Costs a price that the provider
        /// earns by it. A provider that does not supply it in time has withheld it, and loses its lock.
        ///
        /// # Errors
        /// `UnknownRound`, `WrongPhase`, `NotMember`, `NotRevealed`, `AlreadyDemanded`, `TooManyDemands`; the
        /// currency's own.
        #[pallet::call_index(5)]
        #[pallet::weight(T::WeightInfo::demand())]
        pub fn demand(
            origin: OriginFor<T>,
            task: TaskId,
            provider: T::AccountId,
            segment: u32,
        ) -> DispatchResult {
            let by = ensure_signed(origin)?;
            Self::do_demand(by, task, &provider, segment)
        }

        /// Supplies, for the signer's stash, the piece of output that was demanded: of an output of `output_bytes`
        /// bytes. The last piece does where the output has fewer.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `NotMember`, `NotDemanded`, `WrongPhase` when it is too late,
        /// `WrongSegment`.
        #[pallet::call_index(6)]
        #[pallet::weight((T::WeightInfo::supply(), DispatchClass::Operational))]
        pub fn supply(
            origin: OriginFor<T>,
            task: TaskId,
            output_bytes: u32,
            opening: SegmentOpening,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_supply(&agent, task, output_bytes, &opening)
        }

        /// Plays move `number` of a dispute, counted from 0. For the agents of providers and auditors, and for
        /// challengers that are neither.
        ///
        /// With its number a move that is sent twice, because it seemed lost, is refused the second time: two moves
        /// later it might be a legal one, and a wrong one.
        ///
        /// # Errors
        /// `UnknownDispute`, `NotPlayer`, `Moot`, `StaleMove`, `NotNow`, `WrongMove`, `Unproven`.
        #[pallet::call_index(7)]
        #[pallet::weight((T::WeightInfo::play(), DispatchClass::Operational))]
        pub fn play(origin: OriginFor<T>, dispute: DisputeId, number: u32, played: Move) -> DispatchResult {
            let player = ensure_signed(origin)?;
            Self::do_play(&player, dispute, number, played)
        }

        /// Ends a dispute whose time is over, or in which a party has lost elsewhere. Anybody may; the agenda does it
        /// as well.
        ///
        /// # Errors
        /// `UnknownDispute`, `NotDue`.
        #[pallet::call_index(8)]
        #[pallet::weight(T::WeightInfo::advance_dispute().max(T::WeightInfo::advance_committee()))]
        pub fn advance_dispute(origin: OriginFor<T>, dispute: DisputeId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_advance_dispute(dispute)
        }

        /// Vetoes a slash. Only as long as it is not carried out.
        ///
        /// # Errors
        /// `UnknownSlash`.
        #[pallet::call_index(9)]
        #[pallet::weight(T::WeightInfo::cancel_slash())]
        pub fn cancel_slash(origin: OriginFor<T>, slash: SlashId) -> DispatchResult {
            T::VetoOrigin::ensure_origin(origin)?;
            Self::do_cancel_slash(slash)
        }

        /// Carries out a slash that has waited long enough. Anybody may; idle blocks do it as well.
        ///
        /// # Errors
        /// `UnknownSlash`, `NotDue`.
        #[pallet::call_index(10)]
        #[pallet::weight(T::WeightInfo::carry_out_slash())]
        pub fn carry_out_slash(origin: OriginFor<T>, slash: SlashId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_carry_out_slash(slash)
        }

        /// Decides a dispute about a cell that no block can compute again: the last resort, beside and after its committee.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NotBeyond`.
        #[pallet::call_index(14)]
        #[pallet::weight(T::WeightInfo::play())]
        pub fn decide_dispute(origin: OriginFor<T>, dispute: DisputeId, winner: Side) -> DispatchResult {
            T::DecideOrigin::ensure_origin(origin)?;
            Self::do_decide_dispute(dispute, winner)
        }

        /// Takes, for the signer's stash, a seat in the ballot of a dispute's committee that comes after `ballot` others, and
        /// seals what it computed itself. While a round is drawn with a proof of the VRF of the signer's key over
        /// [`surety_audit_economics::SeatInput`], whose output has to be below the threshold for the stash's stake; the
        /// best draws are seated when the time is over. Without one when all are summoned.
        ///
        /// `seal` is [`surety_dispute_game::snowflake::seal`] of the committee's question, `ballot`, the **stash**,
        /// [`surety_dispute_game::committee::value_hash`] and a salt.
        ///
        /// # Errors
        /// `NotVerifierAgent`, `InJail`, `UnknownDispute`, `Moot`, `NoCommittee`, `IsParty`, `StaleBallot`, `NotNow`,
        /// `AlreadySeated`, `WasAbsent`, `Unsettled`, `NotDrawn`, `Outranked`.
        #[pallet::call_index(11)]
        #[pallet::weight(T::WeightInfo::join_committee())]
        pub fn join_committee(
            origin: OriginFor<T>,
            dispute: DisputeId,
            ballot: u32,
            proof: Option<AuditProof>,
            seal: H256,
        ) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_join_committee(&agent, dispute, ballot, proof, seal)
        }

        /// Opens the answer that the stash `verifier` has sealed. Without signature and fee, like [`Pallet::reveal`]. The last
        /// one ends the ballot.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NoCommittee`, `NotNow`, `NotSeated`, `AlreadyRevealed`, `SealMismatch`; `BadOrigin` when
        /// it is signed. Pools refuse it instead, as they do [`Pallet::reveal`].
        #[pallet::call_index(12)]
        #[pallet::weight((T::WeightInfo::reveal_vote(), DispatchClass::Operational))]
        #[pallet::authorize(Self::authorize_reveal_vote)]
        #[pallet::weight_of_authorize(T::WeightInfo::authorize_reveal_vote())]
        pub fn reveal_vote(
            origin: OriginFor<T>,
            dispute: DisputeId,
            verifier: T::AccountId,
            value: H256,
            salt: H256,
        ) -> DispatchResult {
            ensure_authorized(origin)?;
            Self::do_reveal_vote(dispute, verifier, value, salt)
        }

        /// Has a committee go on whose time for what it does is over. Anybody may; the agenda does it as well.
        ///
        /// # Errors
        /// `UnknownDispute`, `Moot`, `NoCommittee`, `NotDue`.
        #[pallet::call_index(13)]
        #[pallet::weight(T::WeightInfo::advance_committee())]
        pub fn advance_committee(origin: OriginFor<T>, dispute: DisputeId) -> DispatchResult {
            ensure_signed(origin)?;
            Self::do_advance_committee(dispute)
        }

        /// Shows that a provider signed two different statements about one task, or, without the second one, a statement
        /// that is not what it committed to or revealed on chain. Anybody may; who does gets the finder's share of the
        /// slash. Possible as long as the task has its round.
        ///
        /// # Errors
        /// `UnknownRound`, `NotMember`, `AlreadyAtFault`, `NoEquivocation`, `WrongSigner`, `BadSignature`.
        #[pallet::call_index(15)]
        #[pallet::weight(T::WeightInfo::report_equivocation())]
        pub fn report_equivocation(
            origin: OriginFor<T>,
            statement: SignedStatement<T::AccountId>,
            other: Option<SignedStatement<T::AccountId>>,
        ) -> DispatchResult {
            let reporter = ensure_signed(origin)?;
            Self::do_report_equivocation(reporter, statement, other)
        }

        /// Demands, for the signer's stash, that a piece of the task's input is shown on chain: for a provider that cannot
        /// fetch it. The price is the client's, unless the piece is not supplied in time: then the task fails, the client
        /// loses its lock, and the signer has the price back. The time for commitments moves on by as much as the client
        /// has.
        ///
        /// # Errors
        /// `NotProviderAgent`, `UnknownRound`, `WrongPhase`, `NotMember`, `AlreadyCommitted`, `AlreadyAtFault`,
        /// `TooManyDemands`, `AlreadyDemanded`, `EnoughCommitted`, `NoSuchSegment`; the currency's own.
        #[pallet::call_index(16)]
        #[pallet::weight((T::WeightInfo::demand_input(), DispatchClass::Operational))]
        pub fn demand_input(origin: OriginFor<T>, task: TaskId, segment: u32) -> DispatchResult {
            let agent = ensure_signed(origin)?;
            Self::do_demand_input(agent, task, segment)
        }

        /// Supplies the piece of a task's input that was demanded. Anybody may: it proves itself.
        ///
        /// # Errors
        /// `UnknownRound`, `NotDemanded`, `WrongPhase` when it is too late, `WrongSegment`.
        #[pallet::call_index(17)]
        #[pallet::weight((T::WeightInfo::supply_input(), DispatchClass::Operational))]
        pub fn supply_input(origin: OriginFor<T>, task: TaskId, opening: SegmentOpening) -> DispatchResult {
            let by = ensure_signed(origin)?;
            Self::do_supply_input(by, task, &opening)
        }
    }
}
