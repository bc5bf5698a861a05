//! Sessions, the history of keys, and those who sign two of a kind.

use codec::{Decode, Encode};
use frame_support::{assert_ok, traits::KeyOwnerProofSystem};
use frame_system::RawOrigin;
use pallet_session::historical;
use sp_consensus_babe::{
    Slot,
    digests::{CompatibleDigestItem, PreDigest, SecondaryVRFPreDigest},
    make_vrf_sign_data,
    runtime_decl_for_babe_api::BabeApi,
};
use sp_consensus_grandpa::runtime_decl_for_grandpa_api::GrandpaApi;
use sp_core::{H256, Pair, crypto::VrfSecret};
use sp_keyring::{
    Ed25519Keyring,
    Sr25519Keyring::{self, Alice, Bob, Charlie, Dave, Ferdie},
};
use sp_runtime::{
    Perbill,
    generic::{Digest, DigestItem},
    traits::{Dispatchable, Header as _, OpaqueKeys},
};
use sp_staking::offence::{OffenceDetails, OnOffenceHandler};
use surety_pallet_validators::KeyOwners;
use surety_runtime::{
    AccountId, BlockEntropy, Grandpa, Header, Runtime, RuntimeCall, RuntimeEvent, Session, SessionKeys,
    UncheckedExtrinsic, Validators,
    configs::consensus::SESSIONS_KEPT,
    units::{EPOCH_SLOTS, SURE},
};

use surety_types::traits::BlockEntropy as _;

use crate::chain::{Chain, account};

pub fn run_sessions(chain: &mut Chain, count: u32) {
    let target = chain.query(Session::current_index) + count;
    chain.run_until(count * EPOCH_SLOTS as u32 + 5, || {
        Session::current_index() >= target
    });
}

/// Whether it can be proved who held the keys of the first validator.
fn provable() -> bool {
    let validator = Session::validators().remove(0);
    let keys = Session::load_keys(&validator).unwrap();
    [sp_consensus_babe::KEY_TYPE, sp_consensus_grandpa::KEY_TYPE]
        .into_iter()
        .all(|kind| {
            let key = (kind, keys.get_raw(kind));
            KeyOwners::<Runtime>::prove(key).is_some_and(|proof| {
                KeyOwners::<Runtime>::check_proof(key, proof) == Some((validator.clone(), ()))
            })
        })
}

#[test]
fn keys_can_be_proved_from_the_first_session_on() {
    let mut chain = Chain::new("local_testnet");
    chain.run_to(1);
    assert!(chain.query(provable));
    for _ in 0..3 {
        run_sessions(&mut chain, 1);
        assert!(chain.query(provable));
    }
}

#[test]
fn a_set_that_stays_the_same_changes_no_authorities() {
    let mut chain = Chain::new("local_testnet");
    let before = chain.query(Session::validators);
    run_sessions(&mut chain, 3);
    chain.query(|| {
        assert_eq!(Session::validators(), before);
        assert_eq!(pallet_grandpa::CurrentSetId::<Runtime>::get(), 0);
    });
}

#[test]
fn new_keys_of_a_validator_come_into_force() {
    let mut chain = Chain::new("local_testnet");
    run_sessions(&mut chain, 1);
    let (old, new) = chain.query(|| {
        let old = Session::load_keys(&account(Bob)).unwrap();
        let new = SessionKeys {
            grandpa: Ed25519Keyring::Ferdie.public().into(),
            ..old.clone()
        };
        // As `set_keys` stores them once it has seen the proof.
        pallet_session::NextKeys::<Runtime>::insert(account(Bob), new.clone());
        (old, new)
    });
    run_sessions(&mut chain, 2);
    chain.run_to(chain.number() + 2);
    chain.query(|| {
        let authorities = Grandpa::grandpa_authorities();
        assert!(authorities.iter().any(|(key, _)| *key == new.grandpa));
        assert!(authorities.iter().all(|(key, _)| *key != old.grandpa));
        assert!(provable());
    });
}

/// Two headers of one slot, and who signed both.
fn two_of_a_slot(signer: Sr25519Keyring, slot: Slot) -> sp_consensus_babe::EquivocationProof<Header> {
    let vrf_signature = signer.pair().vrf_sign(&make_vrf_sign_data(&[0; 32], slot, 0));
    let pre_digest = PreDigest::SecondaryVRF(SecondaryVRFPreDigest {
        authority_index: 1,
        slot,
        vrf_signature,
    });
    let header = |state_root: u64| {
        let digest = Digest {
            logs: vec![DigestItem::babe_pre_digest(pre_digest.clone())],
        };
        let state_root = H256::from_low_u64_be(state_root);
        let mut header = Header::new(7, H256::zero(), state_root, H256::zero(), digest);
        let seal = signer.pair().sign(header.hash().as_bytes()).into();
        header.digest_mut().push(DigestItem::babe_seal(seal));
        header
    };
    sp_consensus_babe::EquivocationProof {
        offender: signer.public().into(),
        slot,
        first_header: header(1),
        second_header: header(2),
    }
}

/// As a node does that sees two blocks on top of the last one: asks there who held the key.
pub fn evidence(chain: &mut Chain, signer: Sr25519Keyring, slot: Slot) -> UncheckedExtrinsic {
    let proof = two_of_a_slot(signer, slot);
    let offender = proof.offender.clone();
    let owner = chain.query(|| <Runtime as BabeApi<_>>::generate_key_ownership_proof(slot, offender));
    let owner = owner.expect("somebody holds the key");
    let report = pallet_babe::Call::<Runtime>::report_equivocation_unsigned {
        equivocation_proof: Box::new(proof),
        key_owner_proof: owner.decode().expect("the proof is of the chain's own"),
    };
    UncheckedExtrinsic::new_bare(report.into())
}

/// A block with evidence of what Bob did. It would not be valid if Bob made it, who is disabled in it.
pub fn report_bob(chain: &mut Chain, evidence: UncheckedExtrinsic) {
    chain.absent.push(Bob);
    assert_eq!(chain.try_extrinsic(evidence), Ok(Ok(())));
    chain.absent.clear();
}

fn assert_bob_is_disabled_by(chain: &mut Chain, evidence: UncheckedExtrinsic) {
    report_bob(chain, evidence);
    chain.query(|| {
        let mut validators = Session::validators().into_iter();
        let bob = validators.position(|validator| validator == account(Bob));
        assert_eq!(Session::disabled_validators(), [bob.unwrap() as u32]);
    });
}

pub fn four_validators() -> Chain {
    let mut chain = Chain::with_validators(&[Alice, Bob, Charlie, Dave]);
    run_sessions(&mut chain, 1);
    chain
}

/// Takes the session keys of those who are away from them, as a referendum of root's does.
fn purges_keys_of(away: &[Sr25519Keyring]) -> RuntimeCall {
    let purge = |who: &Sr25519Keyring| -> RuntimeCall {
        let as_origin = Box::new(RawOrigin::Signed(account(*who)).into());
        let call = Box::new(pallet_session::Call::<Runtime>::purge_keys {}.into());
        pallet_utility::Call::<Runtime>::dispatch_as { as_origin, call }.into()
    };
    let calls = away.iter().map(purge).collect();
    pallet_utility::Call::<Runtime>::batch_all { calls }.into()
}

#[test]
fn root_forces_a_set_without_those_who_are_away_once_it_is_queued_without_their_keys() {
    let mut chain = four_validators();
    let final_block = chain.number();
    let away = [Charlie, Dave];
    chain.absent = away.to_vec();
    chain.finalizes = false;
    run_sessions(&mut chain, 1);
    chain.query(|| {
        assert_ok!(purges_keys_of(&away).dispatch(RawOrigin::Root.into()));
    });
    let sizes = |chain: &mut Chain| {
        let running = chain.query(Session::validators).len();
        (running, chain.query(Session::queued_keys).len())
    };
    // A change that is forced now would be to the same set again.
    assert_eq!(sizes(&mut chain), (4, 4));
    run_sessions(&mut chain, 1);
    assert_eq!(sizes(&mut chain), (4, 2));
    let delay = 10;
    chain.query(|| {
        assert_ok!(Grandpa::note_stalled(RawOrigin::Root.into(), delay, final_block));
    });
    run_sessions(&mut chain, 1);
    chain.query(|| {
        let validators = Session::validators();
        assert!(away.iter().all(|who| !validators.contains(&account(*who))));
        let change = Grandpa::pending_change().unwrap();
        assert_eq!((change.forced, change.delay), (Some(final_block), delay));
        assert_eq!(change.next_authorities.len(), 2);
        // Of the nodes' sets, which count changes that come into force, it is the next one, too.
        assert_eq!(pallet_grandpa::CurrentSetId::<Runtime>::get(), 1);
    });
    chain.run_to(chain.number() + delay);
    assert_eq!(chain.query(Grandpa::grandpa_authorities).len(), 2);
}

/// As `set_keys` stores them once it has seen the proof.
fn bob_sets_another_key(chain: &mut Chain) {
    chain.query(|| {
        let mut keys = Session::load_keys(&account(Bob)).unwrap();
        keys.babe = Ferdie.public().into();
        pallet_session::NextKeys::<Runtime>::insert(account(Bob), keys);
    });
}

fn assert_bob_answers_for_its_key(chain: &mut Chain) {
    chain.run_to(chain.number() + 2);
    let slot = chain.query(pallet_babe::CurrentSlot::<Runtime>::get);
    let evidence = evidence(chain, Bob, slot);
    assert_bob_is_disabled_by(chain, evidence);
}

#[test]
fn a_validator_that_makes_two_blocks_of_a_slot_is_reported_and_disabled() {
    assert_bob_answers_for_its_key(&mut four_validators());
}

/// Two votes in one round, for different blocks of a height, and the proof of whose key signed both.
fn two_votes(chain: &mut Chain, signer: Ed25519Keyring) -> UncheckedExtrinsic {
    let (set, round, height) = (0u64, 5u64, 7u32);
    // As GRANDPA encodes a prevote, alone and in what is signed. Its crate is none of the runtime's.
    let prevote = 0u8;
    let vote = |block: u64| {
        let target = (H256::from_low_u64_be(block), height);
        let signed = (prevote, target, round, set).encode();
        (target, signer.sign(&signed))
    };
    let proof = (set, prevote, round, signer.public(), vote(1), vote(2)).encode();
    let owner =
        chain.query(|| <Runtime as GrandpaApi<_>>::generate_key_ownership_proof(set, signer.public().into()));
    let owner = owner.expect("somebody holds the key");
    let report = pallet_grandpa::Call::<Runtime>::report_equivocation_unsigned {
        equivocation_proof: Box::new(Decode::decode(&mut &proof[..]).expect("it is encoded as GRANDPA does")),
        key_owner_proof: owner.decode().expect("the proof is of the chain's own"),
    };
    UncheckedExtrinsic::new_bare(report.into())
}

#[test]
fn a_validator_that_votes_twice_in_a_round_is_reported_and_disabled() {
    let mut chain = four_validators();
    chain.run_to(chain.number() + 2);
    let evidence = two_votes(&mut chain, Ed25519Keyring::Bob);
    assert_bob_is_disabled_by(&mut chain, evidence);
}

/// The same report as a call for whoever wants to sign it.
fn to_sign(evidence: UncheckedExtrinsic) -> RuntimeCall {
    match evidence.function {
        RuntimeCall::Babe(pallet_babe::Call::report_equivocation_unsigned {
            equivocation_proof,
            key_owner_proof,
        }) => pallet_babe::Call::report_equivocation {
            equivocation_proof,
            key_owner_proof,
        }
        .into(),
        RuntimeCall::Grandpa(pallet_grandpa::Call::report_equivocation_unsigned {
            equivocation_proof,
            key_owner_proof,
        }) => pallet_grandpa::Call::report_equivocation {
            equivocation_proof,
            key_owner_proof,
        }
        .into(),
        other => panic!("no report: {other:?}"),
    }
}

#[test]
fn reports_are_for_nodes_alone_whoever_signs_one_pays_for_nothing() {
    let mut chain = four_validators();
    chain.run_to(chain.number() + 2);
    let slot = chain.query(pallet_babe::CurrentSlot::<Runtime>::get);
    let blocks = evidence(&mut chain, Bob, slot);
    let votes = two_votes(&mut chain, Ed25519Keyring::Bob);
    for report in [blocks, votes] {
        let call = to_sign(report);
        let before = chain.free(&account(Ferdie));
        let refused = frame_system::Error::<Runtime>::CallFiltered;
        assert_eq!(chain.try_call(Ferdie, call.clone()), Err(refused.into()));
        assert!(chain.free(&account(Ferdie)) < before);
        // Nor within another call, whose own failure is told in an event.
        let calls = vec![call];
        chain.block(vec![(Ferdie, pallet_utility::Call::batch { calls }.into())]);
        assert_eq!(chain.query(Session::disabled_validators), [0u32; 0]);
    }
}

#[test]
fn a_validator_answers_for_its_old_key_in_the_session_in_which_it_sets_another() {
    let mut chain = four_validators();
    bob_sets_another_key(&mut chain);
    assert_bob_answers_for_its_key(&mut chain);
}

#[test]
fn a_validator_answers_for_its_old_key_in_the_session_after_it_set_another() {
    let mut chain = four_validators();
    bob_sets_another_key(&mut chain);
    run_sessions(&mut chain, 1);
    assert_bob_answers_for_its_key(&mut chain);
}

#[test]
fn a_validator_answers_for_the_first_block_of_a_session() {
    let mut chain = four_validators();
    let first = chain.query(|| pallet_babe::Pallet::<Runtime>::current_epoch_start() + EPOCH_SLOTS);
    chain.run_until(EPOCH_SLOTS as u32, || {
        pallet_babe::CurrentSlot::<Runtime>::get() + 1 == first
    });
    let session = chain.query(Session::current_index);
    let evidence = evidence(&mut chain, Bob, first);
    chain.run_to(chain.number() + 1);
    assert_eq!(chain.query(Session::current_index), session + 1);
    assert_bob_is_disabled_by(&mut chain, evidence);
}

fn report(chain: &mut Chain, offender: &AccountId) {
    chain.query(|| {
        let details = OffenceDetails {
            offender: (offender.clone(), ()),
            reporters: Vec::new(),
        };
        <Validators as OnOffenceHandler<AccountId, historical::IdentificationTuple<Runtime>, _>>::on_offence(
            &[details],
            &[Perbill::from_percent(10)],
            Session::current_index(),
        );
    });
}

#[test]
fn a_third_of_the_validators_stays_enabled_whatever_is_reported() {
    let mut chain = Chain::new("local_testnet");
    chain.run_to(1);
    let offender = chain.query(Session::validators).remove(0);
    report(&mut chain, &offender);
    // One of three is as many as finality can do without, so none is disabled.
    assert_eq!(chain.query(Session::disabled_validators), [0u32; 0]);
}

#[test]
fn validators_that_stay_the_same_for_two_days_change_no_set_and_leave_a_day_of_history() {
    let mut chain = Chain::new("local_testnet");
    chain.run_to(1);
    let before = chain.query(Session::validators);
    for _ in 0..2 * SESSIONS_KEPT {
        chain.next_session();
    }
    chain.query(|| {
        assert_eq!(Session::current_index(), 2 * SESSIONS_KEPT);
        assert_eq!(Session::validators(), before);
        assert_eq!(pallet_grandpa::CurrentSetId::<Runtime>::get(), 0);
        let kept = historical::HistoricalSessions::<Runtime>::iter_keys().count();
        // A day's before the running one; and that one and the next.
        assert_eq!(kept, SESSIONS_KEPT as usize + 2);
        assert!(provable());
    });
}

#[test]
fn the_author_is_paid_the_fees() {
    let mut chain = Chain::new("development");
    let before = chain.free(&account(Alice));
    let remark = frame_system::Call::remark { remark: vec![7; 100] };
    chain.call(Bob, remark);
    let fee = chain
        .events()
        .into_iter()
        .find_map(|event| match event {
            RuntimeEvent::TransactionPayment(pallet_transaction_payment::Event::TransactionFeePaid {
                actual_fee,
                ..
            }) => Some(actual_fee),
            _ => None,
        })
        .unwrap();
    assert!(fee > 0 && fee < SURE / 100, "{fee}");
    assert_eq!(chain.free(&account(Alice)), before + fee);
}

#[test]
fn what_each_blocks_author_drew_is_kept_for_draws() {
    let mut chain = Chain::new("local_testnet");
    let mut drawn = Vec::new();
    for number in 1..20 {
        chain.run_to(number);
        let output = chain.query(pallet_babe::AuthorVrfRandomness::<Runtime>::get);
        drawn.push(H256(output.unwrap()));
        // It is kept from the next block on.
        assert_eq!(chain.query(|| BlockEntropy::first_after(number - 1)), None);
    }
    chain.run_to(20);
    for (block, output) in (0..).zip(drawn) {
        let first = chain.query(|| BlockEntropy::first_after(block));
        assert_eq!(first, Some((output, block + 1)));
    }
}
