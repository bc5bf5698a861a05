//! One task on this provider: what we promised, what the chain shows, and what follows from the two.

use sp_core::H256;
use surety_types::task::{Bid, MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskState};

use crate::{
    duel::Duels, effort::Efforts, inputs::InputDemands, AccountId, Balance, BlockNumber, Config, Effect,
    EffectKind, Record, RoundRecord, TaskSnapshot,
};

/// A result, once and for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub claim: ResultClaim,
    pub salt: H256,
    pub commitment: H256,
}

/// A task we have to do with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    /// Journalled.
    pub bid: Option<Bid<Balance>>,
    /// Journalled.
    pub result: Option<Made>,
    /// No result will come of it: the input is faulty, or the chain holds a commitment that is not ours.
    pub abandoned: bool,
    /// The input is here. A restart asks for it again.
    pub input_ready: bool,
    /// As finalised state showed it last. Nothing between a restart and the first finalised block.
    pub seen: Option<TaskSnapshot>,
    pub duels: Duels,
    pub inputs: InputDemands,
    pub efforts: Efforts,
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
    /// This, by this block.
    Do(EffectKind, BlockNumber),
    /// Nothing, ever again.
    Over,
}

impl Life {
    /// Whether computing has been given up, so that there is no commitment to come.
    pub fn has_given_up(&self) -> bool {
        let given_up = |kind| self.efforts.is_given_up(kind);
        self.abandoned || given_up(EffectKind::Fetch) || given_up(EffectKind::Compute)
    }

    /// Takes a snapshot in.
    pub fn see(&mut self, snapshot: TaskSnapshot, config: &Config, block: BlockNumber) {
        self.duels.see(&snapshot.disputes, config, &mut self.efforts);
        self.inputs
            .see(&snapshot, &config.stash, block, &mut self.efforts);
        self.seen = Some(snapshot);
    }

    /// Everything that the last snapshot asks of us now, and by when.
    pub fn wants(
        &self,
        config: &Config,
        block: BlockNumber,
        now: BlockNumber,
    ) -> Vec<(BlockNumber, EffectKind)> {
        let mut wants: Vec<_> = self.duels.wants(block).collect();
        if let Want::Do(kind, by) = self.want(&config.stash, now) {
            wants.push((by, kind));
        }
        wants.extend(self.demanded(&config.stash, now));
        wants.extend(self.missing_input(config, now));
        wants
    }

    /// The piece of an input to demand that cannot be had.
    fn missing_input(&self, config: &Config, now: BlockNumber) -> Option<(BlockNumber, EffectKind)> {
        if self.input_ready || self.abandoned || self.result.is_some() {
            return None;
        }
        self.inputs.want(self.seen.as_ref()?, config, now, &self.efforts)
    }

    /// Chooses the piece for demand `number`, once and for all. What is new has to be journalled.
    pub fn demand_input(&mut self, number: u32, config: &Config, at: BlockNumber) -> Option<Record> {
        let seen = self.seen.as_ref()?;
        let (segment, is_new) = self.inputs.piece(number, seen, config);
        is_new.then_some(Record::InputDemandMade {
            task: seen.id,
            at,
            number,
            segment,
        })
    }

    /// The piece of our output that we have to show.
    fn demanded(&self, stash: &AccountId, now: BlockNumber) -> Option<(BlockNumber, EffectKind)> {
        let seen = self.seen.as_ref()?;
        let (_, demand) = seen.demands.iter().find(|(provider, _)| provider == stash)?;
        let due = now <= demand.until && self.result.is_some();
        due.then_some((demand.until, EffectKind::Supply(demand.segment)))
    }

    /// What the last snapshot asks of us for the task itself.
    pub fn want(&self, stash: &AccountId, now: BlockNumber) -> Want {
        self.seen
            .as_ref()
            .map_or(Want::Nothing, |seen| self.want_of(seen, stash, now))
    }

    /// What `seen` asks of us.
    pub fn want_of(&self, seen: &TaskSnapshot, stash: &AccountId, now: BlockNumber) -> Want {
        match &seen.task.state {
            TaskState::Bidding { until } => self.want_while_bidding(seen, *until, now),
            TaskState::Revealing { until } => self.want_while_opening(seen, *until, now),
            TaskState::Running {
                assignments,
                reserves,
            } => {
                let member = seen.round.as_ref().and_then(|round| member(round, stash));
                if let (Some(round), Some(member)) = (&seen.round, member) {
                    return self.want_while_running(round, member, now);
                }
                let listed = |list: &[_]| -> bool {
                    let mut list = list.iter();
                    list.any(|entry: &surety_types::task::Assignment<AccountId, Balance>| {
                        entry.provider == *stash
                    })
                };
                // A reserve may still be called up.
                let may_come = listed(reserves) || (seen.round.is_none() && listed(assignments));
                if may_come {
                    Want::Nothing
                } else {
                    Want::Over
                }
            }
            TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. } => Want::Over,
        }
    }

    fn want_while_bidding(&self, seen: &TaskSnapshot, until: BlockNumber, now: BlockNumber) -> Want {
        match (&self.bid, &seen.bid) {
            (Some(_), Some(_)) => Want::Nothing,
            (None, Some(bid)) => Want::AdoptBid(bid.seal),
            // The best chain is ahead of the finalised one: in the last block it would come too late.
            _ if now >= until => Want::Nothing,
            (Some(_), None) => Want::Do(EffectKind::Bid, until),
            (None, None) => Want::Consider,
        }
    }

    fn want_while_opening(&self, seen: &TaskSnapshot, until: BlockNumber, now: BlockNumber) -> Want {
        match (&self.bid, &seen.bid) {
            (_, None) => Want::Over,
            (None, Some(bid)) => Want::AdoptBid(bid.seal),
            (Some(_), Some(bid)) if bid.opened || now > until => Want::Nothing,
            (Some(_), Some(_)) => Want::Do(EffectKind::BidReveal, until),
        }
    }

    fn want_while_running(
        &self,
        round: &RoundRecord,
        member: &RoundMember<AccountId, Balance>,
        now: BlockNumber,
    ) -> Want {
        let by = match &round.phase {
            RoundPhase::Committing { until }
            | RoundPhase::Auditing { until }
            | RoundPhase::Revealing { until }
            | RoundPhase::Challengeable { until, .. } => *until,
        };
        let committing = matches!(round.phase, RoundPhase::Committing { .. });
        let revealing = matches!(round.phase, RoundPhase::Revealing { .. });
        let done = matches!(round.phase, RoundPhase::Challengeable { .. });
        match (&member.progress, &self.result) {
            (MemberProgress::Revealed(_), _) => Want::Nothing,
            _ if done || now > by => Want::Nothing,
            (MemberProgress::Working, _) if !committing => Want::Nothing,
            (MemberProgress::Working, Some(_)) => Want::Do(EffectKind::Commit, by),
            (MemberProgress::Committed(shown), Some(made)) => {
                if revealing && made.commitment == *shown {
                    Want::Do(EffectKind::Reveal, by)
                } else {
                    Want::Nothing
                }
            }
            // Committed without a result in the journal: the journal was lost, and computing again may find it.
            (MemberProgress::Working | MemberProgress::Committed(_), None) => self.want_result(by),
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

    /// The commitment that the chain shows as ours.
    pub fn commitment_shown(&self, stash: &AccountId) -> Option<H256> {
        let round = self.seen.as_ref()?.round.as_ref()?;
        match member(round, stash)?.progress {
            MemberProgress::Committed(commitment) => Some(commitment),
            MemberProgress::Working | MemberProgress::Revealed(_) => None,
        }
    }

    /// The effect of that kind, where everything for it is at hand.
    pub fn effect(&self, kind: EffectKind, stash: &AccountId) -> Option<Effect> {
        let seen = self.seen.as_ref()?;
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
                let Made { claim, salt, .. } = self.result.clone()?;
                Effect::SubmitReveal { task, claim, salt }
            }
            EffectKind::Supply(segment) => Effect::SubmitSupply {
                task,
                output: self.result.as_ref()?.claim.output,
                segment,
            },
            EffectKind::DemandInput(number) => Effect::SubmitInputDemand {
                task,
                number,
                segment: self.inputs.made(number)?,
            },
            EffectKind::Forget => Effect::Forget { task },
            other => return self.duels.effect(other, task, spec),
        })
    }
}

/// `stash` in a round.
pub(crate) fn member<'a>(
    round: &'a RoundRecord,
    stash: &AccountId,
) -> Option<&'a RoundMember<AccountId, Balance>> {
    round.members.iter().find(|member| member.provider == *stash)
}
