//! Samples of committees.

use surety_dispute_game::committee::{Candidate, CommitteeFund, CommitteeState, SeatDraw, windows};

use super::{HASH, account};
use crate::CommitteeRecord;

/// Committees of all stages but one: drawing, with a seed and before it is known, summoning, a vote that is
/// being opened, and one whose dispute is over.
pub fn committees() -> Vec<CommitteeRecord> {
    let windows = windows(5, 6);
    let with = |state| CommitteeRecord {
        state,
        claimed: HASH,
        draw: SeatDraw {
            begun_at: 4,
            settled_by: 3,
            epoch_randomness: HASH,
            verifier_stake: 3,
            corrupt_stake: 1,
            seed: Some(HASH),
        },
        candidates: Default::default(),
        ticked_at: 1,
        suspended: 0,
        fund: None,
    };
    let mut drawing = with(CommitteeState::new(HASH, windows));
    drawing.enter(candidate());
    let mut unseeded = with(CommitteeState::new(HASH, windows));
    unseeded.draw.seed = None;
    let summoning = with(CommitteeState::of_all(HASH, windows));
    let mut voting = summoning.clone();
    voting.enter(candidate());
    voting.summon();
    let mut dismissed = voting.clone();
    dismissed.dismiss();
    dismissed.fund = Some(CommitteeFund {
        payer: account(),
        is_stake: true,
        pot: 5,
        left: 4,
        claim_holds: Some(true),
        paid: 1,
        from_lock: 2,
        slash: Some(0),
    });
    vec![drawing, unseeded, summoning, voting, dismissed]
}

fn candidate() -> Candidate<sp_core::crypto::AccountId32> {
    Candidate {
        verifier: account(),
        rank: 1,
        stake: 2,
        seal: HASH,
    }
}
