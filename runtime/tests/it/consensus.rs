//! Sessions, the history of keys, and those who sign two of a kind.

use frame_support::traits::KeyOwnerProofSystem;
use pallet_session::historical;
use sp_core::H256;
use sp_keyring::Sr25519Keyring::{Alice, Bob, Charlie, Dave};
use sp_runtime::{Perbill, traits::OpaqueKeys};
use sp_staking::offence::{OffenceDetails, OnOffenceHandler};
use surety_runtime::{
    AccountId, BlockEntropy, Grandpa, Historical, Runtime, RuntimeEvent, Session, SessionKeys,
    configs::consensus::{DisableOffender, SESSIONS_KEPT},
    units::{EPOCH_SLOTS, SURE},
};

use surety_types::traits::BlockEntropy as _;

use crate::chain::{Chain, account};

fn run_sessions(chain: &mut Chain, count: u32) {
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
            Historical::prove(key)
                .is_some_and(|proof| Historical::check_proof(key, proof) == Some((validator.clone(), ())))
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
            grandpa: sp_keyring::Ed25519Keyring::Ferdie.public().into(),
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

fn report(chain: &mut Chain, offender: &AccountId) {
    chain.query(|| {
        let details = OffenceDetails {
            offender: (offender.clone(), ()),
            reporters: Vec::new(),
        };
        let weight = <DisableOffender as OnOffenceHandler<
            AccountId,
            historical::IdentificationTuple<Runtime>,
            _,
        >>::on_offence(
            &[details], &[Perbill::from_percent(10)], Session::current_index()
        );
        assert!(weight.ref_time() > 0);
    });
}

#[test]
fn an_offender_is_disabled_until_its_session_ends() {
    let mut chain = Chain::with_validators(&[Alice, Bob, Charlie, Dave]);
    chain.run_to(1);
    let offender = chain.query(Session::validators).remove(0);
    report(&mut chain, &offender);
    assert_eq!(chain.query(Session::disabled_validators), [0]);
    run_sessions(&mut chain, 1);
    assert_eq!(chain.query(Session::disabled_validators), [0u32; 0]);
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
fn history_is_kept_for_a_day_and_no_longer() {
    let mut chain = Chain::new("development");
    chain.run_to(1);
    chain.query(|| {
        for session in 0..SESSIONS_KEPT + 10 {
            <surety_runtime::configs::consensus::FixedValidators as historical::SessionManager<_, _>>::end_session(
                session,
            );
        }
    });
    run_sessions(&mut chain, 2);
    chain.query(|| {
        assert!(historical::HistoricalSessions::<Runtime>::iter().count() <= SESSIONS_KEPT as usize + 2)
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
