//! Samples of committees.

use surety_dispute_game::committee::{Candidate, CommitteeState, SeatDraw, windows};

use super::{HASH, account};
use crate::CommitteeRecord;

/// A committee in which all seats but one kind of stage occur: drawing, summoning, and a vote that is being
/// opened.
pub fn committees() -> Vec<CommitteeRecord> {
    let windows = windows(5, 6);
    let with = |state| CommitteeRecord {
        state,
        claimed: HASH,
        draw: SeatDraw {
            seed: HASH,
            verifier_stake: 3,
            begun_at: 4,
        },
        candidates: Default::default(),
        ticked_at: 1,
        suspended: 0,
    };
    let mut drawing = with(CommitteeState::new(HASH, windows));
    drawing.enter(candidate());
    let summoning = with(CommitteeState::of_all(HASH, windows));
    let mut voting = summoning.clone();
    voting.enter(candidate());
    voting.summon(|_| 2, 3);
    vec![drawing, summoning, voting]
}

fn candidate() -> Candidate<sp_core::crypto::AccountId32> {
    Candidate {
        verifier: account(),
        rank: 1,
        seal: HASH,
    }
}
