//! Our seats on the committees that decide disputes about one task which no block can.
//!
//! We compute the cell once, and say what we found in every ballot that we are drawn for: never what others
//! say. Of each ballot one answer of ours is journalled, with its salt, before anybody is told of it.

use std::collections::BTreeMap;

use surety_audit_economics::SeatInput;
use surety_dispute_game::quorum_streak::{Stage, Vote, seal};
use surety_types::{TaskId, task::TaskSpec, trust::AuditProof, trust::DisputeId};

use crate::{
    AccountId, BlockNumber, CommitteeRecord, Config, DisputeRecord, Effect, EffectKind, Hash, Purpose,
    Record, TaskSnapshot,
    attempts::Attempts,
    places::{TraceKey, Wanted},
};

/// Committees of disputes about a task in which we are no party.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(BTreeMap<DisputeId, Seat>);

#[derive(Clone, Debug, Default)]
struct Seat {
    /// Nothing between a restart and the first finalised block, and when the committee has gone.
    seen: Option<(DisputeRecord, CommitteeRecord)>,
    /// The ballot that attempts were for.
    tried: Option<u32>,
    /// Whether we are drawn, and for which ballot.
    drawn: Option<(u32, Option<AuditProof>)>,
    /// What we have computed.
    value: Option<Hash>,
    /// Our answer of the newest ballot. Journalled.
    sealed: Option<SealedVote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SealedVote {
    ballot: u32,
    value: Hash,
    salt: Hash,
    seal: Hash,
}

/// What a committee has of us.
enum Shown {
    Nothing,
    /// A seal, while seats are taken.
    Candidate,
    /// A seal that is to be opened.
    Sealed(Hash),
    Opened,
}

impl Seats {
    /// Whether the journal knows of any.
    pub fn is_journalled(&self) -> bool {
        self.0.values().any(|seat| seat.sealed.is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what finalised state shows. Disputes that are over go.
    pub fn see(
        &mut self,
        disputes: &[(DisputeId, DisputeRecord)],
        committees: &[(DisputeId, CommitteeRecord)],
        config: &Config,
        attempts: &mut Attempts,
    ) {
        self.0.retain(|id, _| disputes.iter().any(|(open, _)| open == id));
        for seat in self.0.values_mut() {
            seat.seen = None;
        }
        for (id, committee) in committees {
            let dispute = disputes.iter().find(|(open, _)| open == id);
            let Some((_, dispute)) = dispute.filter(|(_, dispute)| !is_party(dispute, config)) else {
                continue;
            };
            let seat = self.0.entry(*id).or_default();
            if seat.tried.replace(committee.state.rounds()) != Some(committee.state.rounds()) {
                for kind in [
                    EffectKind::DrawSeat(*id),
                    EffectKind::Join(*id),
                    EffectKind::Vote(*id),
                ] {
                    attempts.forget(kind);
                }
            }
            seat.seen = Some((dispute.clone(), committee.clone()));
        }
    }

    /// What is to be done, at this time of the running clock. The best block says whether an answer is to be
    /// opened.
    pub fn wants<'a>(
        &'a self,
        config: &'a Config,
        clock: BlockNumber,
        best: Option<&'a TaskSnapshot>,
    ) -> impl Iterator<Item = Wanted> + 'a {
        self.0.iter().filter_map(move |(id, seat)| {
            let (_, finalized) = seat.seen.as_ref()?;
            let in_finalized = seat.want(finalized, *id, config);
            let newest = best.and_then(|best| best.committees.iter().find(|(open, _)| open == id));
            let (kind, committee) = match newest {
                None => (in_finalized?, finalized),
                Some((_, newest)) => {
                    let in_best = seat.want(newest, *id, config);
                    let promises = in_finalized.filter(|kind| !kind.is_call() || in_best == Some(*kind));
                    let opens = in_best.filter(|kind| kind.is_opening());
                    (opens.or(promises)?, newest)
                }
            };
            let until = clock.saturating_add(committee.state.left());
            Some(Wanted::new(kind, until))
        })
    }

    pub fn effect(&self, kind: EffectKind, task: TaskId, spec: &TaskSpec) -> Option<Effect> {
        let of = |dispute: DisputeId| self.0.get(&dispute);
        Some(match kind {
            EffectKind::DrawSeat(dispute) => {
                let (_, committee) = of(dispute)?.seen.as_ref()?;
                Effect::DrawSeat {
                    task,
                    input: SeatInput {
                        seed: committee.draw.seed?,
                        dispute,
                        ballot: committee.state.rounds(),
                    },
                    verifier_stake: committee.draw.verifier_stake,
                }
            }
            EffectKind::ComputeVote(dispute) => {
                let (record, _) = of(dispute)?.seen.clone()?;
                Effect::ComputeVote {
                    dispute,
                    record: Box::new(record),
                    spec: spec.clone(),
                }
            }
            EffectKind::Join(dispute) => {
                let seat = of(dispute)?;
                let sealed = seat.sealed?;
                let proof = seat.drawn.filter(|(ballot, _)| *ballot == sealed.ballot);
                Effect::SubmitJoin {
                    task,
                    dispute,
                    ballot: sealed.ballot,
                    proof: proof.and_then(|(_, proof)| proof),
                    seal: sealed.seal,
                }
            }
            EffectKind::Vote(dispute) => {
                let SealedVote { value, salt, .. } = of(dispute)?.sealed?;
                Effect::SubmitVote {
                    task,
                    dispute,
                    value,
                    salt,
                }
            }
            _ => return None,
        })
    }

    /// The trace that an answer is found in.
    pub fn trace(&self, kind: EffectKind) -> Option<TraceKey> {
        let EffectKind::ComputeVote(dispute) = kind else {
            return None;
        };
        let (record, _) = self.0.get(&dispute)?.seen.as_ref()?;
        Some(TraceKey::of(record))
    }

    /// Whether we are drawn for a ballot. One that is past counts for nothing.
    pub fn take_draw(&mut self, dispute: DisputeId, ballot: u32, proof: Option<AuditProof>) {
        if let Some(seat) = self.0.get_mut(&dispute) {
            seat.drawn = Some((ballot, proof));
        }
    }

    /// What we have at a cell. The first answer stays.
    pub fn take_value(&mut self, dispute: DisputeId, value: Hash) {
        if let Some(seat) = self.0.get_mut(&dispute) {
            seat.value.get_or_insert(value);
        }
    }

    /// Makes our answers for ballots that we are drawn for, and know an answer to. The only place where one
    /// comes into being.
    pub fn make(&mut self, task: TaskId, at: BlockNumber, config: &Config) -> Vec<Record> {
        let sealed = self.0.iter_mut().filter_map(|(dispute, seat)| {
            let sealed = seat.make(task, *dispute, config)?;
            seat.sealed = Some(sealed);
            Some(Record::VoteMade {
                task,
                at,
                dispute: *dispute,
                ballot: sealed.ballot,
                value: sealed.value,
                salt: sealed.salt,
                seal: sealed.seal,
            })
        });
        sealed.collect()
    }

    /// Whether the journal does not contradict itself: one answer for a ballot, and one value in all of them.
    pub fn replay(&mut self, record: &Record) -> bool {
        let Record::VoteMade {
            dispute,
            ballot,
            value,
            salt,
            seal,
            ..
        } = *record
        else {
            return true;
        };
        let seat = self.0.entry(dispute).or_default();
        let sealed = SealedVote {
            ballot,
            value,
            salt,
            seal,
        };
        let fits = match &seat.sealed {
            Some(before) if before.ballot == ballot => *before == sealed,
            Some(before) => before.value == value,
            None => true,
        };
        (seat.value, seat.sealed) = (Some(value), Some(sealed));
        fits
    }
}

impl Seat {
    fn shown(&self, committee: &CommitteeRecord, stash: &AccountId) -> Shown {
        match committee.state.vote_of(stash) {
            Some(Vote::Committed(seal)) => return Shown::Sealed(seal),
            Some(Vote::Revealed(_)) => return Shown::Opened,
            Some(Vote::Missing) | None => {}
        }
        if committee.candidates.iter().any(|other| other.verifier == *stash) {
            Shown::Candidate
        } else {
            Shown::Nothing
        }
    }

    /// Whether this ballot is ours to answer; nothing while we have not drawn ourselves.
    fn is_ours(&self, committee: &CommitteeRecord, stash: &AccountId) -> Option<bool> {
        match committee.state.stage() {
            Stage::Summoning => Some(true),
            // The chain has no further drawn seat for who sealed an answer and did not open it.
            Stage::Drawing if committee.state.absent().contains(stash) => Some(false),
            Stage::Drawing => {
                let (ballot, proof) = self.drawn.as_ref()?;
                (*ballot == committee.state.rounds()).then_some(proof.is_some())
            }
            Stage::Round(_) | Stage::Voting(_) | Stage::Over(_) => Some(false),
        }
    }

    fn want(&self, committee: &CommitteeRecord, id: DisputeId, config: &Config) -> Option<EffectKind> {
        let of_ballot = self
            .sealed
            .filter(|sealed| sealed.ballot == committee.state.rounds());
        match self.shown(committee, &config.stash) {
            Shown::Sealed(seal) => match of_ballot {
                Some(sealed) => (sealed.seal == seal).then_some(EffectKind::Vote(id)),
                // The journal was lost: computing again may find what we said.
                // Of a dispute that is over nobody is told the cell any more.
                None => {
                    let known = self.value.is_some() || committee.fund.is_some();
                    (!known).then_some(EffectKind::ComputeVote(id))
                }
            },
            // The same, in time for what comes.
            Shown::Candidate => self.value.is_none().then_some(EffectKind::ComputeVote(id)),
            Shown::Opened => None,
            Shown::Nothing if config.is_short_of_room => None,
            // Nobody can draw itself yet.
            Shown::Nothing if committee.draw.seed.is_none() && *committee.state.stage() == Stage::Drawing => {
                None
            }
            Shown::Nothing => match (self.is_ours(committee, &config.stash), of_ballot) {
                (None, _) => Some(EffectKind::DrawSeat(id)),
                (Some(false), _) => None,
                (Some(true), Some(_)) => Some(EffectKind::Join(id)),
                (Some(true), None) => Some(EffectKind::ComputeVote(id)),
            },
        }
    }

    fn make(&self, task: TaskId, dispute: DisputeId, config: &Config) -> Option<SealedVote> {
        let (value, (_, committee)) = (self.value?, self.seen.as_ref()?);
        let ballot = committee.state.rounds();
        if self.sealed.is_some_and(|sealed| sealed.ballot == ballot) {
            return None;
        }
        let salt = config.salts.salt(task, Purpose::Vote(dispute, ballot));
        let seal = seal(committee.state.question(), ballot, &config.stash, value, salt);
        let wanted = match self.shown(committee, &config.stash) {
            // One that we do not remember cannot be opened with another answer.
            Shown::Sealed(shown) => shown == seal,
            Shown::Candidate | Shown::Opened => false,
            Shown::Nothing => {
                !config.is_short_of_room && self.is_ours(committee, &config.stash) == Some(true)
            }
        };
        wanted.then_some(SealedVote {
            ballot,
            value,
            salt,
            seal,
        })
    }
}

/// Whether we gain or lose by a dispute, or the key that signs for us does.
fn is_party(record: &DisputeRecord, config: &Config) -> bool {
    config.is_ours(record.defender.account()) || config.is_ours(record.challenger.account())
}
