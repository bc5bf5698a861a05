//! One task on this provider: what we promised, what the chain shows, and what follows from the two.

mod demanded;

use std::collections::BTreeSet;

use sp_core::H256;
use surety_types::{
    ContentHash,
    model::Operation,
    task::{Assignment, Bid, MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskSpec, TaskState},
    trust::Content,
};

use crate::{
    AccountId, Balance, BlockNumber, Config, Effect, EffectKind, KeptView, Record, RoundRecord, TaskSnapshot,
    absence::Absence,
    attempts::Attempts,
    duel::Duels,
    inputs::InputDemands,
    places::{Clocks, TraceKey, Wanted},
    provider::confirmations::Confirmations,
    schedule::Subject,
};

/// A result, once and for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedResult {
    pub claim: ResultClaim,
    pub salt: H256,
    pub commitment: H256,
}

/// A task we have to do with.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProviderTask {
    /// Journalled.
    pub bid: Option<Bid<Balance>>,
    /// Journalled.
    pub result: Option<SealedResult>,
    /// The blob of its trace's leaves. Journalled.
    pub leaves: Option<ContentHash>,
    /// No result will come of it: the input is faulty, or the chain holds a commitment that is not ours.
    pub abandoned: bool,
    /// Stake that has to be free for it in the draw, in plancks, as the chain said last.
    pub lock: Balance,
    /// Finalised state has shown our bid and shows it no longer: another has its place, for good.
    pub displaced: bool,
    /// The chain has refused our bid for want of free stake, and has not enough of it yet for all we know.
    pub unbacked: bool,
    /// The input is here. A restart asks for it again.
    pub input_ready: bool,
    /// What was to be shown was no longer here: the disk was lost, and not the journal.
    lost: BTreeSet<Content>,
    /// Whether it was fetched for this task, before a restart, too. Journalled.
    pub input_fetched: bool,
    /// As finalised state showed it last. Nothing between a restart and the first finalised block.
    pub seen: Option<TaskSnapshot>,
    /// As the best block shows it, while that is ahead of the finalised one.
    pub best: Option<TaskSnapshot>,
    best_at: BlockNumber,
    pub absence: Absence,
    pub duels: Duels,
    pub inputs: InputDemands,
    pub confirmations: Confirmations,
    pub attempts: Attempts,
}

/// What a snapshot asks of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Nothing, for now.
    Nothing,
    /// Make up our mind about bidding.
    Consider,
    /// The chain shows a bid that the journal lacks.
    AdoptBid(H256),
    /// This, by this time of the running clock.
    Do(EffectKind, BlockNumber),
    /// Nothing, ever again.
    Over,
}

impl ProviderTask {
    /// Whether computing has been given up, so that there is no commitment to come.
    pub fn has_given_up(&self) -> bool {
        let given_up = |kind| self.attempts.is_given_up(kind);
        self.abandoned || given_up(EffectKind::Fetch) || given_up(EffectKind::Compute)
    }

    /// Takes finalised state in.
    pub fn see(&mut self, snapshot: TaskSnapshot, config: &Config, block: BlockNumber, clock: BlockNumber) {
        self.absence.end(block);
        let had_bid = self.seen.as_ref().is_some_and(|seen| seen.bid.is_some());
        self.displaced |= had_bid && snapshot.bid.is_none();
        self.lock = snapshot.terms.map_or(self.lock, |terms| terms.lock);
        self.duels.see(&snapshot.disputes, config, &mut self.attempts);
        self.inputs
            .see(&snapshot, &config.stash, clock, &mut self.attempts);
        self.seen = Some(snapshot);
    }

    /// Takes the best block's state in. A state that does not list the task says nothing of it.
    pub fn see_best(&mut self, snapshot: TaskSnapshot, block: BlockNumber) {
        (self.best, self.best_at) = (Some(snapshot), block);
    }

    /// As the newest block shows it that is known.
    pub fn newest(&self) -> Option<&TaskSnapshot> {
        self.best.as_ref().or(self.seen.as_ref())
    }

    /// Finality has overtaken what we know of the best block.
    pub fn forget_best_before(&mut self, block: BlockNumber) {
        if self.best_at < block {
            self.best = None;
        }
    }

    /// What a state asks of us for the task itself, for its output, and about who has confirmed it.
    fn wants_in(&self, seen: &TaskSnapshot, stash: &AccountId, clock: BlockNumber) -> Vec<Wanted> {
        let wanted = match self.want_of(seen, stash, clock) {
            Want::Do(kind, by) => Some(Wanted::new(kind, by)),
            _ => None,
        };
        let demanded = self.demanded(seen, stash, clock);
        let confirmed = self.confirmations.wants(seen, stash, self.leaves.is_some());
        let mut all = Vec::new();
        for wanted in wanted.into_iter().chain(demanded).chain(confirmed) {
            // A result that was lost is computed again once, whatever it is needed for.
            if all.iter().all(|other: &Wanted| other.kind != wanted.kind) {
                all.push(wanted);
            }
        }
        all
    }

    /// The piece of an input to demand that cannot be had.
    fn missing_input(&self, seen: &TaskSnapshot, config: &Config, clock: BlockNumber) -> Option<Wanted> {
        if self.input_ready || self.abandoned || self.result.is_some() {
            return None;
        }
        self.inputs.want(seen, config, clock, &self.attempts)
    }

    /// Our own view of a claim, where it is the trace that we have kept: of what we have said, and of
    /// whatever else is said of embeddings. A generation's follows the tokens that are claimed.
    fn kept(&self, spec: &TaskSpec, claim: &ResultClaim) -> Option<KeptView> {
        let ours = &self.result.as_ref()?.claim;
        let is_same = match spec.operation {
            Operation::Embed => claim.units == ours.units,
            Operation::Generate => claim == ours,
        };
        let kept = self.leaves.filter(|_| is_same);
        kept.map(|leaves| KeptView {
            leaves,
            output: ours.output,
            differs: None,
        })
    }

    /// Whether finalised state says that nothing will ever be asked of us again.
    pub fn is_over(&self, stash: &AccountId, clock: BlockNumber) -> bool {
        let over = |seen| self.want_of(seen, stash, clock) == Want::Over;
        self.absence.is_listed() && self.duels.is_empty() && self.seen.as_ref().is_some_and(over)
    }

    /// Whether finalised state has not listed the task for so long that it is over.
    pub fn is_gone(&self, stash: &AccountId, clock: BlockNumber) -> bool {
        let last = self.seen.as_ref();
        let in_auction = last.is_none_or(|seen| {
            matches!(
                seen.task.state,
                TaskState::Bidding { .. } | TaskState::Revealing { .. } | TaskState::Drawing { .. }
            )
        });
        let has_revealed = |seen: &TaskSnapshot| {
            let ours = seen.round.as_ref().and_then(|round| member(round, stash));
            ours.is_some_and(|ours| ours.claim().is_some())
        };
        let owes = (self.result.is_some() && !last.is_some_and(has_revealed))
            || (self.bid.is_some() && in_auction)
            || last.is_some_and(|seen| owes_opening(seen, stash));
        self.absence.is_over(last, clock, owes)
    }

    /// What `seen` asks of us for the task itself.
    pub fn want_of(&self, seen: &TaskSnapshot, stash: &AccountId, clock: BlockNumber) -> Want {
        match &seen.task.state {
            TaskState::Bidding { until } => self.want_while_bidding(seen, *until, clock),
            TaskState::Revealing { until } => self.want_while_opening(seen, *until, clock),
            // Who has not opened its bid is not drawn.
            TaskState::Drawing { .. } => match seen.bid {
                Some(bid) if bid.opened => Want::Nothing,
                _ => Want::Over,
            },
            TaskState::Running {
                assignments,
                reserves,
            } => {
                let member = seen.round.as_ref().and_then(|round| member(round, stash));
                if let (Some(round), Some(member)) = (&seen.round, member) {
                    return self.want_while_running(round, member, clock);
                }
                let mut reserves = reserves.iter();
                let mut assigned = assignments.iter().filter(|_| seen.round.is_none());
                let ours = |entry: &Assignment<AccountId, Balance>| entry.provider == *stash;
                // A reserve may still be called up.
                if reserves.any(ours) || assigned.any(ours) {
                    Want::Nothing
                } else {
                    Want::Over
                }
            }
            TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. } => Want::Over,
        }
    }

    fn want_while_bidding(&self, seen: &TaskSnapshot, until: BlockNumber, clock: BlockNumber) -> Want {
        match (&self.bid, &seen.bid) {
            (Some(_), Some(_)) => Want::Nothing,
            (None, Some(bid)) => Want::AdoptBid(bid.seal),
            (Some(_), None) if self.displaced => Want::Over,
            // The best chain is ahead of the finalised one: in the last block it would come too late.
            _ if clock >= until => Want::Nothing,
            (Some(_), None) => Want::Do(EffectKind::Bid, until),
            (None, None) => Want::Consider,
        }
    }

    fn want_while_opening(&self, seen: &TaskSnapshot, until: BlockNumber, clock: BlockNumber) -> Want {
        match (&self.bid, &seen.bid) {
            (_, None) => Want::Over,
            (None, Some(bid)) => Want::AdoptBid(bid.seal),
            (Some(_), Some(bid)) if bid.opened || clock > until => Want::Nothing,
            (Some(_), Some(_)) => Want::Do(EffectKind::BidReveal, until),
        }
    }

    fn want_while_running(
        &self,
        round: &RoundRecord,
        member: &RoundMember<AccountId, Balance>,
        clock: BlockNumber,
    ) -> Want {
        if member.fault.is_some() {
            return Want::Nothing;
        }
        let (committing, opening) = match &round.phase {
            RoundPhase::Committing { until } => (Some(*until), None),
            RoundPhase::Auditing { .. } if round.awaits_seed() => (None, None),
            // The first opening ends this phase, where nobody else has. Auditors may wait for what they have
            // demanded.
            RoundPhase::Auditing { until } => {
                (None, (clock > *until && round.demands == 0).then_some(*until))
            }
            RoundPhase::Revealing { until } => (None, Some(*until)),
            // Missed, but still owed: only silence beyond this is a fault.
            RoundPhase::Challengeable { .. } => (None, round.reveals_until),
        };
        match (&member.progress, &self.result) {
            (MemberProgress::Revealed(_), _) => Want::Nothing,
            (MemberProgress::Working, sealed) => match (committing, sealed) {
                (Some(until), Some(_)) if clock <= until => Want::Do(EffectKind::Commit, until),
                (Some(until), None) if clock <= until => self.want_result(until),
                _ => Want::Nothing,
            },
            // However late it is by our clock: as long as the chain shows that it is owed, it is tried.
            (MemberProgress::Committed(shown), Some(sealed)) => match opening {
                Some(until) if sealed.commitment == *shown => Want::Do(EffectKind::Reveal, until),
                _ => Want::Nothing,
            },
            // Committed without a result in the journal: the journal was lost, and computing again may find
            // it.
            (MemberProgress::Committed(_), None) => match &round.phase {
                RoundPhase::Committing { until }
                | RoundPhase::Auditing { until }
                | RoundPhase::Revealing { until } => self.want_result(*until),
                RoundPhase::Challengeable { .. } => {
                    opening.map_or(Want::Nothing, |until| self.want_result(until))
                }
            },
        }
    }

    fn want_result(&self, by: BlockNumber) -> Want {
        if self.has_given_up() {
            Want::Nothing
        } else if self.input_ready {
            Want::Do(EffectKind::Compute, by)
        } else {
            Want::Do(EffectKind::Fetch, by)
        }
    }

    /// Whether the chain has a commitment of ours, for which we had the input.
    fn has_committed(&self, stash: &AccountId) -> bool {
        let round = self.seen.as_ref().and_then(|seen| seen.round.as_ref());
        let ours = round.and_then(|round| member(round, stash));
        ours.is_some_and(|ours| ours.progress != MemberProgress::Working)
    }

    /// Whether a result would be ours to open or to show: it is, where the chain shows nothing of ours yet.
    pub fn fits_what_is_shown(&self, stash: &AccountId, sealed: &SealedResult) -> bool {
        let shown = self.seen.as_ref().and_then(|seen| seen.round.as_ref());
        match shown
            .and_then(|round| member(round, stash))
            .map(|ours| &ours.progress)
        {
            Some(MemberProgress::Committed(commitment)) => *commitment == sealed.commitment,
            Some(MemberProgress::Revealed(claim)) => *claim == sealed.claim,
            Some(MemberProgress::Working) | None => true,
        }
    }
}

impl Subject for ProviderTask {
    /// Everything that is to be done now, and by when. What was promised is opened and shown as soon as the
    /// best block asks for it, and for as long as the task is not known to be over. Everything else goes by
    /// finalised state; a call that the best block has heard of waits for finality.
    fn wants(&self, config: &Config, clocks: Clocks) -> Vec<Wanted> {
        let mut wants = Vec::new();
        if let Some(seen) = &self.seen {
            wants.extend(self.duels.wants(clocks.finalized, self.best.as_ref()));
            wants.extend(self.missing_input(seen, config, clocks.finalized));
            wants.extend(self.wants_in(seen, &config.stash, clocks.finalized));
        }
        if self.absence.is_likely_over() {
            wants.retain(|wanted| wanted.kind.is_opening());
        }
        if !config.takes_work() || self.unbacked {
            wants.retain(|wanted| wanted.kind != EffectKind::Bid);
        }
        let Some(best) = &self.best else { return wants };
        let in_best = self.wants_in(best, &config.stash, clocks.best);
        wants.retain(|wanted| match wanted.kind {
            EffectKind::DemandInput(number) => InputDemands::is_taken(number, best, &config.stash),
            EffectKind::Play(_) | EffectKind::Advance(_) => true,
            kind if kind.is_call() => in_best.iter().any(|other| other.kind == kind),
            _ => true,
        });
        for opening in in_best.into_iter().filter(|wanted| wanted.kind.is_opening()) {
            wants.retain(|wanted| wanted.kind != opening.kind);
            wants.push(opening);
        }
        wants
    }

    fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    fn attempts_mut(&mut self) -> &mut Attempts {
        &mut self.attempts
    }

    fn sees_best(&self) -> bool {
        self.best.is_some()
    }

    fn client(&self) -> Option<&AccountId> {
        self.seen.as_ref().map(|seen| &seen.task.client)
    }

    fn trace(&self, kind: EffectKind) -> Option<TraceKey> {
        self.duels.trace(kind)
    }

    /// Chooses the piece of an input to demand.
    fn prepare(&mut self, kind: EffectKind, config: &Config, at: BlockNumber) -> Option<Record> {
        let EffectKind::DemandInput(number) = kind else {
            return None;
        };
        let seen = self.seen.as_ref()?;
        let (segment, is_new) = self.inputs.piece(number, seen, config);
        is_new.then_some(Record::InputDemandMade {
            task: seen.id,
            at,
            number,
            segment,
        })
    }

    fn effect(&self, kind: EffectKind, config: &Config) -> Option<Effect> {
        let stash = &config.stash;
        let seen = self.newest()?;
        let (task, spec) = (seen.id, &seen.task.spec);
        Some(match kind {
            EffectKind::Bid => Effect::SubmitBid {
                task,
                seal: self.bid.as_ref()?.seal(task, stash),
            },
            EffectKind::BidReveal => {
                let bid = self.bid.clone()?;
                if seen.bid?.seal != bid.seal(task, stash) {
                    // Another bid than the journal's: opening ours would be refused.
                    return None;
                }
                Effect::SubmitBidReveal { task, bid }
            }
            EffectKind::Fetch => Effect::FetchInput {
                task,
                hash: spec.input,
                bytes: spec.input_bytes,
                sources: spec.sources.clone(),
                may_be_here: self.input_fetched || self.has_committed(stash),
            },
            EffectKind::Compute => Effect::Compute {
                task,
                model: spec.model,
                operation: spec.operation,
                input: spec.input,
                units_max: spec.units_max,
            },
            EffectKind::Commit => Effect::SubmitCommit {
                task,
                commitment: self.result.as_ref()?.commitment,
            },
            EffectKind::Reveal => {
                let SealedResult { claim, salt, .. } = self.result.clone()?;
                Effect::SubmitReveal { task, claim, salt }
            }
            EffectKind::Supply(part) => Effect::SubmitSupply {
                task,
                part,
                hash: match part.content {
                    Content::Input => spec.input,
                    Content::Output => self.result.as_ref()?.claim.output,
                    Content::Leaves => self.leaves?,
                },
            },
            EffectKind::DemandInput(number) => Effect::SubmitInputDemand {
                task,
                number,
                segment: self.inputs.made(number)?,
            },
            EffectKind::CheckConfirmation(_) | EffectKind::Refute(_) => {
                // Which block has an opening is only certain once that is final.
                let seen = self.seen.as_ref()?;
                return self.confirmations.effect(kind, seen, stash, self.leaves);
            }
            EffectKind::Forget => Effect::Forget { task },
            other => {
                return self
                    .duels
                    .effect(other, (task, spec), |claim| self.kept(spec, claim));
            }
        })
    }
}

/// Whether the chain waits for `stash` to open its commitment.
pub(crate) fn owes_opening(seen: &TaskSnapshot, stash: &AccountId) -> bool {
    let ours = seen.round.as_ref().and_then(|round| member(round, stash));
    ours.is_some_and(RoundMember::owes_opening)
}

/// `stash` in a round.
pub(crate) fn member<'a>(
    round: &'a RoundRecord,
    stash: &AccountId,
) -> Option<&'a RoundMember<AccountId, Balance>> {
    round.members.iter().find(|member| member.provider == *stash)
}
