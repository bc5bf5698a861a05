//! Committees in words.

use surety_chain_client::{AccountId, ChainEvent, CommitteeRecord, Hash, short};
use surety_client::{amount::Amount, words::side_text};
use surety_dispute_game::{
    bisection::Side,
    quorum_streak::{Decision, STREAK, Stage, Vote},
};

/// What a committee is doing now.
pub(super) fn state_text(committee: Option<&CommitteeRecord>) -> String {
    let Some(committee) = committee else {
        return "no committee sits, and others may decide".into();
    };
    if committee.fund.is_some() {
        return "the dispute is decided; what was sealed is opened, and who was right is paid".into();
    }
    let (state, came) = (&committee.state, committee.candidates.len());
    let left = state.left();
    match state.stage() {
        Stage::Drawing => format!(
            "seats of round {} are taken, {came} so far, {left} blocks left",
            state.rounds().saturating_add(1)
        ),
        Stage::Summoning => format!("all verifiers are asked, {came} have come, {left} blocks left"),
        Stage::Round(ballot) => format!(
            "answers of round {} are opened, {} of {}, {left} blocks left",
            ballot.number().saturating_add(1),
            opened(ballot.seats().iter().map(|seat| seat.vote)),
            ballot.seats().len()
        ),
        Stage::Voting(ballot) => format!(
            "votes of all are opened, {} of {}, {left} blocks left",
            opened(ballot.seats().iter().map(|seat| seat.vote)),
            ballot.seats().len()
        ),
        Stage::Over(_) => "the committee is over".into(),
    }
}

fn opened(votes: impl Iterator<Item = Vote>) -> usize {
    votes.filter(|vote| matches!(vote, Vote::Revealed(_))).count()
}

/// What an event of a committee says; nothing for other events.
pub(super) fn event_text(event: &ChainEvent) -> Option<String> {
    match event.name.as_str() {
        "CommitteeConvened" => Some(if event.field::<bool>("all_at_once")? {
            "verifiers are asked, all at once because they are few".into()
        } else {
            "verifiers are asked: 20 are drawn for each round".into()
        }),
        "SeatTaken" => {
            let verifier: AccountId = event.field("verifier")?;
            let instead: Option<AccountId> = event.field("instead_of")?;
            let instead = instead.map_or_else(String::new, |other| format!(", instead of {}", short(&other)));
            Some(format!("{} seals an answer{instead}", short(&verifier)))
        }
        "BallotOpened" => {
            let members: u32 = event.field("members")?;
            Some(format!("{members} have sealed an answer, and open it now"))
        }
        "VoteRevealed" => {
            let (verifier, value) = (
                event.field::<AccountId>("verifier")?,
                event.field::<Hash>("value")?,
            );
            Some(format!("{} answers {value:?}", short(&verifier)))
        }
        "BallotEnded" => ballot_ended(event),
        "CommitteeEnded" => ended(event),
        "SeatsSeeded" | "CommitteeDismissed" | "CommitteeFunded" | "MembersPaid" => wound_up(event),
        _ => None,
    }
}

/// What is before the first seat, and after the dispute.
fn wound_up(event: &ChainEvent) -> Option<String> {
    Some(match event.name.as_str() {
        "SeatsSeeded" => "what members draw themselves with is known".into(),
        "CommitteeDismissed" => "the committee is dismissed; who has sealed an answer opens it".into(),
        "CommitteeFunded" => {
            let (payer, pot) = (event.field::<AccountId>("payer")?, event.field("pot")?);
            format!("{} pays the members up to {}", short(&payer), Amount(pot))
        }
        "MembersPaid" => {
            let members: u32 = event.field("members")?;
            format!("{members} members are paid {} each", Amount(event.field("each")?))
        }
        _ => return None,
    })
}

fn ballot_ended(event: &ChainEvent) -> Option<String> {
    let (rounds, streak): (u32, u32) = (event.field("rounds")?, event.field("streak")?);
    let leader: Option<Hash> = event.field("leader")?;
    if rounds == 0 {
        // There was none: all were asked at once.
        return Some("the vote is over".into());
    }
    Some(match leader.filter(|_| streak > 0) {
        Some(value) => format!("rounds so far: {rounds}; {streak} of {STREAK} in a row for {value:?}"),
        None => format!("rounds so far: {rounds}; none in a row agree"),
    })
}

fn ended(event: &ChainEvent) -> Option<String> {
    let winner: Option<Side> = event.field("winner")?;
    let by = match event.field::<Decision>("decision")? {
        Decision::Committee(_) => "three rounds agree",
        Decision::Voters(_) => "two thirds of the stake of all verifiers agree",
        Decision::Undecided => return Some("the committee has not decided; others may".into()),
        // Told by another event.
        Decision::Dismissed => return None,
    };
    Some(match winner? {
        Side::Defender => format!("{by}: {} is right", side_text(Side::Defender)),
        Side::Challenger => format!("{by} on another number: {} is right", side_text(Side::Challenger)),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use codec::Encode;
    use surety_chain_client::EventField;
    use surety_dispute_game::committee::{Candidate, CommitteeState, SeatDraw, vote_rank, windows};

    use super::*;

    fn event(name: &str, fields: &[(&str, Vec<u8>)]) -> ChainEvent {
        let field = |(name, bytes): &(&str, Vec<u8>)| EventField {
            name: (*name).into(),
            text: String::new(),
            bytes: bytes.clone(),
        };
        ChainEvent {
            pallet: "Disputes".into(),
            name: name.into(),
            extrinsic: None,
            fields: fields.iter().map(field).collect(),
        }
    }

    #[test]
    fn the_events_of_a_committee_are_told_in_words() {
        let (value, who) = (Hash::repeat_byte(1), AccountId::new([7; 32]));
        let told = [
            event("CommitteeConvened", &[("all_at_once", true.encode())]),
            event(
                "SeatTaken",
                &[
                    ("verifier", who.encode()),
                    ("instead_of", None::<AccountId>.encode()),
                ],
            ),
            event("BallotOpened", &[("members", 20u32.encode())]),
            event(
                "BallotEnded",
                &[
                    ("rounds", 2u32.encode()),
                    ("streak", 1u32.encode()),
                    ("leader", Some(value).encode()),
                ],
            ),
            event(
                "BallotEnded",
                &[
                    ("rounds", 0u32.encode()),
                    ("streak", 0u32.encode()),
                    ("leader", None::<Hash>.encode()),
                ],
            ),
            event(
                "CommitteeEnded",
                &[
                    ("decision", Decision::Voters(value).encode()),
                    ("winner", Some(Side::Challenger).encode()),
                ],
            ),
            event(
                "CommitteeEnded",
                &[
                    ("decision", Decision::Undecided.encode()),
                    ("winner", None::<Side>.encode()),
                ],
            ),
        ]
        .iter()
        .map(|event| event_text(event).unwrap())
        .collect::<Vec<_>>();
        assert_eq!(
            told,
            [
                "verifiers are asked, all at once because they are few".to_string(),
                format!("{} seals an answer", short(&who)),
                "20 have sealed an answer, and open it now".into(),
                format!("rounds so far: 2; 1 of 3 in a row for {value:?}"),
                "the vote is over".into(),
                "two thirds of the stake of all verifiers agree on another number: the challenger is right"
                    .into(),
                "the committee has not decided; others may".into(),
            ]
        );
        assert_eq!(event_text(&event("MovePlayed", &[])), None);
    }

    #[test]
    fn what_a_committee_does_now_is_told_in_words() {
        let mut committee = CommitteeRecord {
            state: CommitteeState::of_all(Hash::zero(), windows(30, 15)),
            claimed: Hash::zero(),
            draw: SeatDraw {
                begun_at: 1,
                settled_by: 0,
                epoch_randomness: Hash::zero(),
                verifier_stake: 1,
                corrupt_stake: 0,
                seed: None,
            },
            candidates: Default::default(),
            ticked_at: 1,
            suspended: 0,
            fund: None,
        };
        committee.enter(Candidate {
            verifier: AccountId::new([7; 32]),
            rank: vote_rank(1),
            stake: 1,
            seal: Hash::zero(),
        });
        assert_eq!(
            state_text(Some(&committee)),
            "all verifiers are asked, 1 have come, 30 blocks left"
        );
        committee.summon();
        assert_eq!(
            state_text(Some(&committee)),
            "votes of all are opened, 0 of 1, 15 blocks left"
        );
        committee.state = CommitteeState::new(Hash::zero(), windows(30, 15));
        assert_eq!(
            state_text(Some(&committee)),
            "seats of round 1 are taken, 0 so far, 30 blocks left"
        );
        assert_eq!(state_text(None), "no committee sits, and others may decide");
    }
}
