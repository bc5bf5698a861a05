//! Who held which session key.

use std::borrow::Borrow;

use frame_support::{assert_ok, traits::KeyOwnerProofSystem};
use proptest::prelude::*;
use sp_runtime::{KeyTypeId, key_types::DUMMY, testing::UintAuthorityId};
use sp_session::MembershipProof;

use crate::{KeyOwners, RunningKeys, mock::*};

type Owners = KeyOwners<Test>;

fn of(key: impl Borrow<UintAuthorityId>) -> (KeyTypeId, UintAuthorityId) {
    (DUMMY, key.borrow().clone())
}

fn prove(key: impl Borrow<UintAuthorityId>) -> Option<MembershipProof> {
    Owners::prove(of(key))
}

fn check(key: impl Borrow<UintAuthorityId>, proof: &MembershipProof) -> Option<u64> {
    Owners::check_proof(of(key), proof.clone()).map(|(owner, ())| owner)
}

#[test]
fn keys_can_be_proved_from_the_first_session_on_and_for_as_long_as_roots_are_kept() {
    TestExt::new(5).execute_with(|| {
        let proof = prove(key(3)).unwrap();
        assert_eq!((proof.session, proof.validator_count), (0, 5));
        for _ in 0..SessionsKept::get() + 1 {
            assert_eq!(check(key(3), &proof), Some(3));
            pass_sessions(1);
        }
        assert_eq!(check(key(3), &proof), None);
    });
}

#[test]
fn while_nobody_sets_new_keys_proofs_are_those_of_the_session_pallet() {
    TestExt::new(9).execute_with(|| {
        for _ in 0..3 {
            for validator in 1..=9 {
                let proof = prove(key(validator)).unwrap();
                assert_eq!(Historical::prove(of(key(validator))), Some(proof.clone()));
                let theirs = Historical::check_proof(of(key(validator)), proof.clone());
                assert_eq!(
                    (theirs, check(key(validator), &proof)),
                    (Some((validator, ())), Some(validator))
                );
            }
            pass_sessions(1);
        }
    });
}

#[test]
fn who_sets_new_keys_answers_for_the_old_ones_while_it_signs_with_them() {
    TestExt::new(4).execute_with(|| {
        let (old, new) = (&key(2), &UintAuthorityId(77));
        pass_sessions(1);
        let before = prove(old).unwrap();
        set_keys(2, new.clone());
        // The running session, in which it goes on signing with the old ones.
        let running = prove(old).unwrap();
        assert_eq!((running.session, check(old, &running)), (1, Some(2)));
        assert_eq!(before, running);
        assert_eq!(prove(new), None);
        // The session pallet knows nothing of them any more.
        assert_eq!(Historical::check_proof(of(old), running.clone()), None);
        let theirs = Historical::prove(of(old));
        assert_eq!(
            theirs.and_then(|proof| Historical::check_proof(of(old), proof)),
            None
        );

        // The next one was planned with the old ones.
        pass_sessions(1);
        let next = prove(old).unwrap();
        assert_eq!(
            (next.session, check(old, &next), check(old, &running)),
            (2, Some(2), Some(2))
        );
        // What it will sign in the first block of the one after that can be proved already.
        let coming = prove(new).unwrap();
        assert_eq!((coming.session, check(new, &coming)), (3, Some(2)));

        pass_sessions(1);
        assert_eq!(prove(old), None);
        assert_eq!(prove(new), Some(coming));
        for proof in [before, running, next] {
            assert_eq!(check(old, &proof), Some(2));
        }
    });
}

#[test]
fn who_purges_its_keys_and_leaves_answers_for_them() {
    TestExt::new(4).execute_with(|| {
        assert_ok!(Session::purge_keys(RuntimeOrigin::signed(3)));
        let proof = prove(key(3)).unwrap();
        pass_sessions(3);
        assert_eq!(Session::validators(), [1, 2, 4]);
        assert_eq!(check(key(3), &proof), Some(3));
        // Its keys may be somebody else's by now.
        join(8, BACKING);
        set_keys(8, key(3));
        pass_sessions(2);
        assert_eq!(check(key(3), &proof), Some(3));
        assert_eq!(check(key(3), &prove(key(3)).unwrap()), Some(8));
    });
}

#[test]
fn a_proof_that_was_tampered_with_proves_nothing() {
    TestExt::new(30).set_size(1, 30).execute_with(|| {
        // It takes somebody's place in the next session.
        join(31, BACKING + 1);
        pass_sessions(1);
        let good = prove(key(3)).unwrap();
        assert!(good.trie_nodes.len() > 1);
        assert_eq!(check(key(3), &good), Some(3));
        assert_eq!(check(key(99), &good), None);
        let wrong = |change: fn(&mut MembershipProof)| {
            let mut proof = good.clone();
            change(&mut proof);
            assert_eq!(check(key(3), &proof), None, "{proof:?}");
        };
        // Fewer offenders of more validators lose less.
        wrong(|proof| proof.validator_count += 1);
        // The next session has another root.
        wrong(|proof| proof.session += 1);
        wrong(|proof| proof.session += 2);
        wrong(|proof| {
            proof.trie_nodes.pop();
        });
        wrong(|proof| proof.trie_nodes.push(vec![1, 2, 3]));
        wrong(|proof| proof.trie_nodes.push(proof.trie_nodes[0].clone()));
        wrong(|proof| proof.trie_nodes[0][5] ^= 1);
        wrong(|proof| proof.trie_nodes.clear());
    });
}

#[test]
fn a_key_is_proved_in_the_session_that_is_asked_for() {
    TestExt::new(4).execute_with(|| {
        pass_sessions(2);
        for session in [2, 3] {
            let proof = Owners::prove_in(session, DUMMY, key(2).as_ref()).unwrap();
            assert_eq!((proof.session, check(key(2), &proof)), (session, Some(2)));
        }
        for session in [0, 1, 4] {
            assert_eq!(Owners::prove_in(session, DUMMY, key(2).as_ref()), None);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whoever comes, goes, and sets new keys: who signs in a session can be held to it, then and later.
    #[test]
    fn whoever_signs_can_be_held_to_it(
        steps in prop::collection::vec((0u8..5, 1u64..9, any::<u32>()), 1..60),
    ) {
        TestExt::new(4).session_blocks(2).set_size(2, 6).execute_with(|| {
            let mut proofs = Vec::new();
            for (what, operator, number) in steps {
                match what {
                    0 => pass_sessions(1),
                    1 => set_keys(operator, UintAuthorityId((u64::from(number) << 8) | operator)),
                    2 if Stakes::get().contains_key(&operator) => {
                        let _ = Validators::chill(RuntimeOrigin::signed(operator));
                    }
                    3 => {
                        set_stake(operator, SELF_BOND, BACKING + u128::from(number));
                        let _ = Validators::validate(RuntimeOrigin::signed(operator));
                    }
                    _ => {
                        // Two always have keys: a chain without validators ends.
                        if operator > 2 {
                            let _ = Session::purge_keys(RuntimeOrigin::signed(operator));
                        }
                    }
                }
                assert_ok!(Validators::do_try_state());
                for (owner, signs) in RunningKeys::<Test>::get() {
                    let proof = prove(&signs).unwrap();
                    assert_eq!((proof.session, check(&signs, &proof)), (Session::current_index(), Some(owner)));
                    proofs.push((owner, signs, proof));
                }
            }
            for (owner, signs, proof) in proofs {
                if proof.session + SessionsKept::get() > Session::current_index() {
                    assert_eq!(check(signs, &proof), Some(owner));
                }
            }
        });
    }
}
