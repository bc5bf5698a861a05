//! Members of the committee of the first dispute.

use frame_support::dispatch::DispatchResult;
use sp_core::H256;
use surety_audit_economics::{
    SeatInput,
    draw::{SEAT_LABEL, borrowed},
};
use surety_dispute_game::{committee::value_hash, quorum_streak};
use surety_pallet_test_kit::MockStake;
use surety_types::{stake::Role, trust::AuditProof};

use crate::{audits::binding, *};

/// Verifiers that were paid out of somebody's stake, in order.
pub fn paid() -> Vec<AccountId> {
    let verifiers = FIRST_VERIFIER..FIRST_VERIFIER + 60;
    verifiers
        .filter(|verifier| MockStake::awarded(*verifier) > 0)
        .collect()
}

/// The dispute that has a committee.
pub const DISPUTE: u32 = 0;

pub fn committee() -> Option<CommitteeOf<Test>> {
    Committees::<Test>::get(DISPUTE)
}

/// The same, as long as nothing is decided.
pub fn sitting() -> Option<CommitteeOf<Test>> {
    committee().filter(|committee| committee.state.decision().is_none() && committee.fund.is_none())
}

/// What the defender claims, in votes.
pub fn claimed() -> H256 {
    committee().map(|committee| committee.claimed).unwrap_or_default()
}

/// Something else.
pub fn other_value() -> H256 {
    value_hash(None)
}

/// The seal that a verifier makes of an answer in the present ballot.
pub fn vote_seal(verifier: AccountId, value: H256) -> H256 {
    let state = committee().unwrap().state;
    quorum_streak::seal(
        state.question(),
        state.rounds(),
        &verifier,
        value,
        salt_of(verifier),
    )
}

/// A proof for a verifier's agent whose VRF gives bytes like `draw`, in the present ballot.
pub fn seat_proof(verifier: AccountId, draw: u8) -> AuditProof {
    let committee = committee().unwrap();
    let input = SeatInput {
        seed: committee.draw.seed.unwrap_or_default(),
        dispute: DISPUTE,
        ballot: committee.state.rounds(),
    };
    AuditProof {
        pre_output: binding(agent_of(verifier), SEAT_LABEL, &borrowed(&input.fields())),
        proof: [draw; 64],
    }
}

/// What the verifier's agent calls to take a seat with an answer.
pub fn joining(verifier: AccountId, value: H256, draw: u8) -> DisputesCall {
    DisputesCall::join_committee {
        dispute: DISPUTE,
        ballot: committee().unwrap().state.rounds(),
        proof: Some(seat_proof(verifier, draw)),
        seal: vote_seal(verifier, value),
    }
}

/// A verifier that drew itself well takes a seat with an answer.
pub fn join(verifier: AccountId, value: H256) -> DispatchResult {
    send(verifier, joining(verifier, value, 1))
}

/// Somebody opens the verifier's answer, without a signature.
pub fn reveal_vote(verifier: AccountId, value: H256) -> DispatchResult {
    send_opening(opening_vote(DISPUTE, verifier, value))
}

/// The opening of a verifier's answer.
pub fn opening_vote(dispute: u32, verifier: AccountId, value: H256) -> DisputesCall {
    DisputesCall::reveal_vote {
        dispute,
        verifier,
        value,
        salt: salt_of(verifier),
    }
}

/// Blocks in which a committee winds up whose members have opened all that they sealed: none is left of it.
pub fn wind_up() {
    let mut blocks = 0;
    while committee().is_some_and(|committee| committee.fund.is_some()) {
        pass(1);
        blocks += 1;
        assert!(blocks < 50, "a committee that does not end");
    }
}

/// Everybody listed seals its answer, time passes, and everybody opens it as far as the ballot lasts.
pub fn ballot(votes: &[(AccountId, H256)]) {
    for (verifier, value) in votes {
        assert_eq!(join(*verifier, *value), Ok(()), "{verifier}");
    }
    pass(BlockNumber::from(SEAT_WINDOW) + 1);
    for (verifier, value) in votes {
        assert_eq!(reveal_vote(*verifier, *value), Ok(()), "{verifier}");
    }
}

/// The first `count` verifiers, and what each answers.
pub fn votes(count: AccountId, value: impl Fn(AccountId) -> H256) -> Vec<(AccountId, H256)> {
    let verifiers = FIRST_VERIFIER..FIRST_VERIFIER + count;
    verifiers.map(|verifier| (verifier, value(verifier))).collect()
}

/// Bonds more verifiers, until there are `count`.
pub fn bond_verifiers(count: AccountId) {
    for stash in FIRST_VERIFIER + VERIFIERS..FIRST_VERIFIER + count {
        MockStake::bond(stash, agent_of(stash), Role::Verifier, BOND);
    }
}
