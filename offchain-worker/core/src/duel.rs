//! Our part in the disputes about one task, on either side.
//!
//! A game's state changes with its moves alone, and the chain numbers them. So the number stands for the
//! state, and there is one move of ours for each number: journalled before it is sent, sent again when it got
//! lost, and never another one.

use std::{cmp::Ordering, collections::BTreeMap};

use surety_dispute_game::bisection::{Move, Side};
use surety_types::{
    TaskId,
    task::{ResultClaim, TaskSpec},
    trust::DisputeId,
};

use crate::{
    BlockNumber, Config, DisputeRecord, Effect, EffectKind, KeptView, Record, TaskSnapshot,
    attempts::Attempts,
    places::{TraceKey, Wanted},
};

/// Disputes about a task in which a side is ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Duels(BTreeMap<DisputeId, Duel>);

#[derive(Clone, Debug, Default)]
struct Duel {
    /// Nothing between a restart and the first finalised block.
    seen: Option<(Side, DisputeRecord)>,
    /// Our newest move, and how many moves come before it. Journalled.
    made: Option<(u32, Move)>,
}

impl Duels {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what finalised state shows. Disputes that are over go.
    pub fn see(&mut self, listed: &[(DisputeId, DisputeRecord)], config: &Config, attempts: &mut Attempts) {
        self.0
            .retain(|id, _| listed.iter().any(|(listed, _)| listed == id));
        for (id, record) in listed {
            let Some(side) = side(record, config) else {
                continue;
            };
            let duel = self.0.entry(*id).or_default();
            if duel.moves().is_some_and(|moves| moves != record.moves) {
                for kind in kinds(*id) {
                    attempts.forget(kind);
                }
            }
            duel.seen = Some((side, record.clone()));
        }
    }

    /// What is to be done, at this time of the running clock. A call that the best block has heard of waits
    /// for finality.
    pub fn wants<'a>(
        &'a self,
        clock: BlockNumber,
        best: Option<&'a TaskSnapshot>,
    ) -> impl Iterator<Item = Wanted> + 'a {
        let wants = self
            .0
            .iter()
            .filter_map(move |(id, duel)| Some((*id, duel, duel.want(*id, clock)?)));
        wants.filter_map(move |(id, duel, wanted)| {
            let is_as_it_was = |best: &TaskSnapshot| {
                let mut open = best.disputes.iter();
                open.any(|(other, record)| *other == id && Some(record.moves) == duel.moves())
            };
            let is_heard = wanted.kind.is_call() && best.is_some_and(|best| !is_as_it_was(best));
            (!is_heard).then_some(wanted)
        })
    }

    /// The effect of that kind. `kept` says which own view of a claim is kept.
    pub fn effect(
        &self,
        kind: EffectKind,
        (task, spec): (TaskId, &TaskSpec),
        kept: impl FnOnce(&ResultClaim) -> Option<KeptView>,
    ) -> Option<Effect> {
        let of = |dispute: DisputeId| self.0.get(&dispute);
        Some(match kind {
            EffectKind::ComputeMove(dispute) => {
                let (side, record) = of(dispute)?.seen.clone()?;
                Effect::ComputeMove {
                    dispute,
                    side,
                    spec: spec.clone(),
                    view: kept(&record.claim),
                    record: Box::new(record),
                }
            }
            EffectKind::Play(dispute) => {
                let (number, played) = of(dispute)?.made.clone()?;
                Effect::SubmitMove {
                    task,
                    dispute,
                    number,
                    played,
                }
            }
            EffectKind::Advance(dispute) => Effect::SubmitAdvance { task, dispute },
            _ => return None,
        })
    }

    /// The trace that a move is found in.
    pub fn trace(&self, kind: EffectKind) -> Option<TraceKey> {
        let EffectKind::ComputeMove(dispute) = kind else {
            return None;
        };
        let (_, record) = self.0.get(&dispute)?.seen.as_ref()?;
        Some(TraceKey::of(record))
    }

    /// The only place where a move comes into being. Returns what is to be journalled of it.
    pub fn take_move(
        &mut self,
        (task, at): (TaskId, BlockNumber),
        dispute: DisputeId,
        number: u32,
        played: Move,
    ) -> Option<Record> {
        let duel = self.0.get_mut(&dispute)?;
        let due = duel
            .seen
            .as_ref()
            .is_some_and(|(side, record)| record.moves == number && record.game.to_move() == Some(*side));
        if !due || duel.made.as_ref().is_some_and(|(made, _)| *made >= number) {
            return None;
        }
        duel.made = Some((number, played.clone()));
        Some(Record::MoveMade {
            task,
            at,
            dispute,
            number,
            played,
        })
    }

    /// The record that our move has been sent.
    pub fn sent(&self, dispute: DisputeId, task: TaskId, at: BlockNumber) -> Option<Record> {
        let (number, _) = self.0.get(&dispute)?.made.as_ref()?;
        Some(Record::MoveSubmitted {
            task,
            at,
            dispute,
            number: *number,
        })
    }

    /// Whether the journal does not contradict itself.
    pub fn replay(&mut self, record: Record, config: &Config, attempts: &mut Attempts) -> bool {
        match record {
            Record::MoveMade {
                dispute,
                number,
                played,
                ..
            } => {
                let duel = self.0.entry(dispute).or_default();
                if let Some((made, before)) = &duel.made
                    && *made == number
                {
                    return *before == played;
                }
                duel.made = Some((number, played));
                attempts.forget(EffectKind::Play(dispute));
                true
            }
            Record::MoveSubmitted {
                dispute, number, at, ..
            } => {
                let newest = self.0.get(&dispute).and_then(|duel| duel.made.as_ref());
                if newest.is_some_and(|(made, _)| *made == number) {
                    attempts.done(EffectKind::Play(dispute), at, config);
                }
                true
            }
            _ => true,
        }
    }
}

impl Duel {
    fn moves(&self) -> Option<u32> {
        self.seen.as_ref().map(|(_, record)| record.moves)
    }

    fn want(&self, id: DisputeId, clock: BlockNumber) -> Option<Wanted> {
        let (side, record) = self.seen.as_ref()?;
        let to_move = record.game.to_move()?;
        let left = record.game.clocks().left(to_move);
        let until = record.ticked_at.saturating_add(left);
        let kind = match self.made.as_ref().map(|(number, _)| number.cmp(&record.moves)) {
            _ if to_move != *side => return (clock > until).then(|| advance(id)),
            Some(Ordering::Equal) => EffectKind::Play(id),
            // Finalised state does not go back.
            Some(Ordering::Greater) => return None,
            Some(Ordering::Less) | None => EffectKind::ComputeMove(id),
        };
        Some(Wanted::new(kind, until))
    }
}

/// The other side's time is over: nothing hurries.
fn advance(dispute: DisputeId) -> Wanted {
    Wanted::new(EffectKind::Advance(dispute), BlockNumber::MAX)
}

fn kinds(dispute: DisputeId) -> [EffectKind; 3] {
    [
        EffectKind::ComputeMove(dispute),
        EffectKind::Play(dispute),
        EffectKind::Advance(dispute),
    ]
}

/// Which side is ours.
fn side(record: &DisputeRecord, config: &Config) -> Option<Side> {
    if config.is_ours(record.defender.account()) {
        Some(Side::Defender)
    } else {
        config
            .is_ours(record.challenger.account())
            .then_some(Side::Challenger)
    }
}
