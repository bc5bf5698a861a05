//! A number that no block computes again is decided by verifiers, with the real referee and real draws.

use codec::{Decode, Encode};
use sp_core::{
    Get, H256, Pair as _,
    crypto::VrfSecret,
    sr25519::{Pair, vrf},
};
use sp_keyring::Sr25519Keyring;
use surety_audit_economics::{
    SeatInput,
    draw::{SEAT_CONTEXT, SEAT_LABEL, borrowed},
};
use surety_dispute_game::{
    bisection::{CellValue, Side, State, challenge, defend},
    committee::{own_value, value_hash},
    quorum_streak::{Decision, seal},
};
use surety_pallet_disputes::{Call, Committees, Event, WeightInfo};
use surety_pallet_trust_lock::Slashes;
use surety_runtime::{
    AccountId, Runtime, RuntimeCall, RuntimeEvent, Staking, configs::trust::Sr25519Draws,
    params::dynamic::disputes, units::EPOCH_SLOTS,
};
use surety_types::{
    stake::Role,
    traits::{DrawVerifier, StakeLedger},
    trust::{AuditProof, FaultKind},
};

use crate::{
    chain::{Chain, account},
    disputes::{STRANGER, Side_, VERIFIER, World, disputes, signer, stake},
    market::all_ok,
};

const SALT: H256 = H256::repeat_byte(7);

/// A lone provider is wrong about a long product, a stranger challenges it, and they have come to the cell.
fn refer(world: &World, chain: &mut Chain) -> AccountId {
    let (task, providers) = world.task(chain, 1);
    let provider = providers[0];
    let (mut liar, lie) = world.liar_about_what_is_too_large();
    all_ok(chain.block(vec![provider.commits(task, &lie)]));
    crate::market::wait_for_reveals(chain, task);
    all_ok(chain.block(vec![provider.reveals(task, &lie)]));
    let against = provider.account();
    chain.call(
        STRANGER,
        Call::challenge {
            task,
            provider: against,
        },
    );
    let mut honest = world.honest();
    while play_one(chain, world, &mut liar, &mut honest) {}
    provider.account()
}

/// Says whether there was a move to make.
fn play_one(chain: &mut Chain, world: &World, liar: &mut Side_, honest: &mut Side_) -> bool {
    let (dispute, record) = disputes(chain).pop().unwrap();
    let (party, played) = match record.game.to_move() {
        Some(Side::Defender) => (
            &record.defender,
            defend(&record.game, &world.layout, liar).unwrap(),
        ),
        Some(Side::Challenger) => (&record.challenger, challenge(&record.game, honest).unwrap()),
        None => return false,
    };
    let number = record.moves;
    let call = Call::play {
        dispute,
        number,
        played,
    };
    chain.call(signer(party), RuntimeCall::from(call));
    true
}

/// What the verifier has at the cell in dispute.
fn own(world: &World, chain: &mut Chain) -> Option<CellValue> {
    let (_, record) = disputes(chain).pop().unwrap();
    let State::NeedsCommittee { cell } = record.game.state() else {
        panic!("{:?} can be played", record.game.state())
    };
    let value = own_value(&world.layout, &mut world.honest(), cell).unwrap();
    assert_ne!(value, Some(cell.value));
    value
}

#[test]
fn a_number_too_large_for_a_block_is_decided_by_the_only_verifier_and_slashed() {
    let world = World::too_large();
    let mut chain = world.chain();
    let liar = refer(&world, &mut chain);
    let before = stake(&mut chain, &liar);
    let value = value_hash(own(&world, &mut chain));
    let (dispute, _) = disputes(&mut chain).pop().unwrap();
    let committee = chain.query(|| Committees::<Runtime>::get(dispute)).unwrap();
    let (stash, agent) = VERIFIER;
    let join = Call::join_committee {
        dispute,
        ballot: 0,
        proof: None,
        seal: seal(committee.state.question(), 0, &account(stash), value, SALT),
    };
    chain.call(agent, join);
    let limit = chain.number() + 100;
    chain.run_until(limit, || {
        Committees::<Runtime>::get(dispute).is_some_and(|committee| committee.state.is_revealing())
    });
    chain.call(
        agent,
        Call::reveal_vote {
            dispute,
            verifier: account(stash),
            value,
            salt: SALT,
        },
    );
    let ended = chain.events().into_iter().any(|event| {
        matches!(event, RuntimeEvent::Disputes(Event::CommitteeEnded { decision: Decision::Voters(said), .. })
            if said == value)
    });
    assert!(ended);
    let slash = chain.query(|| Slashes::<Runtime>::iter_values().next()).unwrap();
    assert_eq!(
        (slash.offender, slash.kind),
        (liar.clone(), FaultKind::WrongResult)
    );
    let limit = chain.number() + 100;
    chain.run_until(limit, || Slashes::<Runtime>::iter().next().is_none());
    assert!(stake(&mut chain, &liar) < before);
}

#[test]
fn without_verifiers_it_ends_by_time_alone() {
    let world = World::too_large();
    let mut chain = world.chain();
    let liar = refer(&world, &mut chain);
    let limit = chain.number() + 400;
    chain.run_until(limit, || Committees::<Runtime>::iter().next().is_none());
    assert_eq!(chain.query(|| Slashes::<Runtime>::iter().count()), 0);
    let limit = chain.number() + 400;
    chain.run_until(limit, || {
        surety_pallet_results::Rounds::<Runtime>::iter().next().is_none()
    });
    assert!(stake(&mut chain, &liar) > 0);
}

fn proof(pair: &Pair, input: &SeatInput) -> AuditProof {
    let transcript = vrf::VrfTranscript::new(SEAT_LABEL, &borrowed(&input.fields()));
    let signed = pair.vrf_sign(&transcript.into_sign_data());
    AuditProof::decode(&mut signed.encode().as_slice()).unwrap()
}

#[test]
fn a_proof_of_one_seat_is_none_of_another() {
    let pair = Sr25519Keyring::Eve.pair();
    let agent = AccountId::from(pair.public());
    let input = SeatInput {
        seed: H256::repeat_byte(1),
        dispute: 4,
        ballot: 2,
    };
    let proof = proof(&pair, &input);
    let output = |who: &AccountId, input: &SeatInput| {
        let fields = input.fields();
        Sr25519Draws::output(who, SEAT_LABEL, &borrowed(&fields), SEAT_CONTEXT, &proof)
    };
    assert!(output(&agent, &input).is_some());
    let other_round = SeatInput {
        ballot: 3,
        ..input.clone()
    };
    let other_dispute = SeatInput {
        dispute: 5,
        ..input.clone()
    };
    let other_seed = SeatInput {
        seed: H256::zero(),
        ..input.clone()
    };
    for other in [other_round, other_dispute, other_seed] {
        assert_eq!(output(&agent, &other), None);
    }
    assert_eq!(output(&account(Sr25519Keyring::Dave), &input), None);
}

#[test]
fn verifiers_are_counted_and_keys_are_as_old_as_they_are() {
    let world = World::too_large();
    let mut chain = world.chain();
    let (stash, _) = VERIFIER;
    let stash = account(stash);
    assert_eq!(chain.query(|| Staking::stashes_in(Role::Verifier)), 1);
    let settled = chain.query(|| Staking::settled_for(&stash));
    let later = chain.number() + 3;
    chain.run_to(later);
    assert_eq!(chain.query(|| Staking::settled_for(&stash)), settled + 3);
}

#[test]
fn keys_are_older_than_what_is_drawn_with_wherever_money_is_real() {
    let mut chain = Chain::new("testnet");
    let (seasoning, seats, decision) = chain.query(|| {
        (
            disputes::SeatSeasoning::get(),
            9 * (disputes::SeatWindow::get() + disputes::VoteWindow::get()),
            disputes::DecisionWindow::get(),
        )
    });
    // An epoch's randomness is made in the epoch before the last one.
    assert!(u64::from(seasoning) >= 3 * EPOCH_SLOTS);
    assert!(
        seats < decision,
        "others have time left after eight rounds and a vote"
    );
}

#[test]
fn conceding_while_a_committee_sits_takes_no_more_than_a_move_is_charged() {
    type Weights = <Runtime as surety_pallet_disputes::Config>::WeightInfo;
    // What was sealed is opened as a vote of all is, and the dispute ends.
    let conceded = Weights::open_vote().saturating_add(Weights::advance_dispute());
    assert!(Weights::play().all_gte(conceded) && Weights::poll().all_gte(conceded));
}
