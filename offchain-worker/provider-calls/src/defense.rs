//! Standing by receipts that somebody disputes: moves in the games about them, and what is demanded there.
//! Who is right and says nothing has lost.

mod moves;
mod receipt;
pub(crate) mod rounds;

use std::collections::{BTreeMap, BTreeSet};

use surety_chain_client::{Call, DisputeRecord};
use surety_channels::Time;
use surety_dispute_game::bisection::{Move, Side};
use surety_types::{TaskId, trust::DisputeId};

use crate::{
    compute::Owned,
    desk::{Desk, Event},
    errands::{Errand, Purpose},
    sight::Sight,
};

use moves::Views;
use receipt::Receipt;

pub(crate) use moves::NoMove;
pub(crate) use receipt::{Demanded, supply};
pub(crate) use rounds::Round;

/// Parts of one round that are shown at once: the input or the output is read for each.
const SHOWN_AT_ONCE: usize = 8;

/// What is remembered from block to block. The journal and the chain have all that it is made of.
#[derive(Default)]
pub(crate) struct Defense {
    views: Views,
    /// The newest move of each game that was found, and how many moves come before it.
    moves: BTreeMap<DisputeId, (u32, Move)>,
    /// The game that a move is looked for in.
    working: Option<(DisputeId, Owned)>,
    /// How often none was found: the others come first then.
    failures: BTreeMap<DisputeId, u32>,
}

impl Desk {
    /// What is due about receipts that are disputed.
    pub(crate) fn defend(&mut self, sight: &Sight, due: &mut Vec<Errand>) {
        let mut open = BTreeSet::new();
        let mut unfound: Option<((u32, Time), DisputeId, &DisputeRecord, Receipt)> = None;
        for (round, of) in &sight.rounds {
            let receipt = self.disputed(of);
            match &receipt {
                Some(receipt) => self.show(sight, (*round, of), receipt, due),
                // What was found before is still played.
                None if self.payee.knows(of.call.0, of.call.1) => tracing::error!(
                    round,
                    "a receipt that is disputed cannot be read out of the journal of calls just now: that is \
                     tried again with each block, and the lock is lost if its games run out of time"
                ),
                None => {
                    tracing::error!(
                        round,
                        "a receipt is disputed that is not in the journal of calls: restore it from its newest copy. Not while channels are open: the lock would be lost"
                    );
                    continue;
                }
            }
            for (id, record) in &of.disputes {
                open.insert(*id);
                let Some(to_move) = record.game.to_move() else {
                    continue;
                };
                let left = record.game.clocks().left(to_move);
                let until = record.ticked_at.saturating_add(left);
                match (to_move, self.defense.moves.get(id)) {
                    (Side::Challenger, _) if until < sight.time => {
                        let call = Call::AdvanceDispute { dispute: *id };
                        due.push(Errand::new(Purpose::Advance(*id), call));
                    }
                    (Side::Challenger, _) => {}
                    (Side::Defender, Some((number, played))) if *number == record.moves => {
                        let call = Call::Play {
                            dispute: *id,
                            number: *number,
                            played: played.clone(),
                        };
                        let mut errand = Errand::new(Purpose::Play(*id), call);
                        errand.is_pressing = until.saturating_sub(sight.time) <= self.parts.config.margin;
                        due.push(errand);
                    }
                    (Side::Defender, _) => {
                        let Some(receipt) = &receipt else { continue };
                        let failures = self.defense.failures.get(id).copied().unwrap_or(0);
                        let place = (failures, until);
                        if unfound.as_ref().is_none_or(|(first, ..)| place < *first) {
                            unfound = Some((place, *id, record, receipt.clone()));
                        }
                    }
                }
            }
        }
        self.defense.moves.retain(|id, _| open.contains(id));
        self.defense.failures.retain(|id, _| open.contains(id));
        drop(self.defense.working.take_if(|(id, _)| !open.contains(id)));
        if open.is_empty() {
            self.defense.views.clear();
        }
        if self.defense.working.is_none()
            && let Some((_, id, record, receipt)) = unfound
        {
            self.look_for_move(id, record, receipt);
        }
    }

    /// The receipt that a round is about.
    fn disputed(&self, round: &Round) -> Option<Receipt> {
        let (channel, nonce) = round.call;
        let (statement, request) = self.payee.answered(channel, nonce)?;
        Some(Receipt {
            statement: statement.clone(),
            request: request.clone(),
        })
    }

    /// One game after the other, the one with the least time first.
    fn look_for_move(&mut self, dispute: DisputeId, record: &DisputeRecord, receipt: Receipt) {
        let (parts, events) = (self.parts.clone(), self.events.clone());
        let view = self.defense.views.of(receipt.call());
        let about = (record.claim.clone(), record.game.clone());
        let number = record.moves;
        let task = Owned::spawn(async move {
            let found = moves::find(&parts, &receipt, about, view).await;
            let moved = Event::Moved {
                dispute,
                number,
                found,
            };
            events.send(moved).await.ok();
        });
        self.defense.working = Some((dispute, task));
    }

    /// A move was looked for.
    pub(crate) fn moved(&mut self, dispute: DisputeId, number: u32, found: Result<Move, NoMove>) {
        self.defense.working = None;
        match found {
            Ok(played) => {
                self.defense.failures.remove(&dispute);
                self.defense.moves.insert(dispute, (number, played));
            }
            // It is looked for again with another block.
            Err(error) => {
                let failures = self.defense.failures.entry(dispute).or_default();
                *failures = failures.saturating_add(1);
                return tracing::error!(dispute, number, %error, "no move can be found to stand by a receipt");
            }
        }
        let Some(sight) = self.watch.sight.clone() else {
            return;
        };
        let mut due = Vec::new();
        self.defend(&sight, &mut due);
        for errand in due {
            self.send(errand, &sight);
        }
    }

    /// Shows what is demanded in a round, what is due first before the rest.
    fn show(&self, sight: &Sight, (task, round): (TaskId, &Round), receipt: &Receipt, due: &mut Vec<Errand>) {
        let mut demands: Vec<_> = round
            .demands
            .iter()
            .filter(|demand| sight.time <= demand.until)
            .collect();
        demands.sort_by_key(|demand| demand.until);
        let mut shown = BTreeSet::new();
        let parts = demands
            .iter()
            .flat_map(|demand| demand.parts.iter().map(move |part| (*part, demand.until)));
        for (part, until) in parts {
            if shown.len() >= SHOWN_AT_ONCE {
                return;
            }
            if shown.insert(part) {
                let demanded = Demanded {
                    round: task,
                    receipt: receipt.clone(),
                    part,
                };
                due.push(Errand {
                    purpose: Purpose::Supply(task, part),
                    call: None,
                    segment_of: None,
                    part: Some(Box::new(demanded)),
                    is_pressing: until.saturating_sub(sight.time) <= self.parts.config.margin,
                });
            }
        }
    }
}
