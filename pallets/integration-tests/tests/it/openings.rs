//! What a pool lets in of openings, which nobody signs and nobody pays for; and that strangers who send
//! others damage none.

use frame_support::{
    assert_ok,
    pallet_prelude::{InvalidTransaction, TransactionValidityError},
};
use proptest::{collection::vec, prelude::*};
use surety_types::{opening, task::ResultClaim};

use surety_pallet_integration_tests::*;

fn refused(call: &ResultsCall) -> InvalidTransaction {
    match validity_of(call) {
        Err(TransactionValidityError::Invalid(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn sent_with(provider: AccountId, claim: ResultClaim, salt_by: AccountId) -> ResultsCall {
    ResultsCall::reveal {
        task: TASK,
        provider,
        claim,
        salt: salt_of(salt_by),
    }
}

#[test]
fn a_pool_takes_an_opening_while_the_call_would_succeed() {
    TestExt::new().round_of(2).execute_with(|| {
        let call = opening(1, claim(9));
        assert_ok!(commit(1, 9));
        assert_eq!(refused(&call), InvalidTransaction::Future);
        assert_ok!(commit(2, 9));
        pass(AUDITING);
        assert_eq!(refused(&call), InvalidTransaction::Future);
        pass(1);
        // It is late from the last of these on.
        for _ in 0..=REVEAL_WINDOW + OPENING_WINDOW {
            let valid = validity_of(&call).unwrap();
            assert_eq!(valid.longevity, u64::MAX);
            assert_eq!(valid.priority, opening::PRIORITY);
            assert!(valid.propagate && valid.requires.is_empty());
            pass(1);
        }
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        pass(1);
        assert_eq!(refused(&call), InvalidTransaction::Stale);
    });
}

#[test]
fn a_pool_says_why_it_takes_no_other_opening() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(COMMIT_WINDOW + 1);
        pass(AUDITING + 1);
        for (call, why) in [
            (opening(1, claim(8)), InvalidTransaction::BadProof),
            (sent_with(1, claim(9), 2), InvalidTransaction::BadProof),
            (sent_with(2, claim(9), 1), InvalidTransaction::BadProof),
            (opening(3, claim(9)), InvalidTransaction::Call),
            (opening(4, claim(9)), InvalidTransaction::Call),
        ] {
            assert_eq!(refused(&call), why, "{call:?}");
        }
        assert_ok!(reveal(1, 9));
        assert_eq!(refused(&opening(1, claim(9))), InvalidTransaction::Stale);
        assert_eq!(refused(&opening(1, claim(8))), InvalidTransaction::Stale);
        assert_ok!(validity_of(&opening(2, claim(9))));
    });
    TestExt::new().execute_with(|| {
        assert_eq!(refused(&opening(1, claim(9))), InvalidTransaction::Call);
    });
}

#[test]
fn two_members_openings_stand_beside_each_other_in_a_pool() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(AUDIT_WINDOW + 1);
        let provides = |stash| validity_of(&opening(stash, claim(9))).unwrap().provides;
        assert_eq!(provides(1), provides(1));
        assert_ne!(provides(1), provides(2));
    });
}

#[derive(Clone, Debug)]
enum Step {
    /// Somebody says this in a member's name, with the salt that somebody has.
    Sent(AccountId, u8, AccountId),
    Pass,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1u64..=4, 8u8..=9, 1u64..=4).prop_map(|(who, result, salt)| Step::Sent(who, result, salt)),
        1 => Just(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn junk_in_somebodys_name_neither_opens_nor_keeps_from_opening(steps in vec(any_step(), 0..60)) {
        TestExt::new().round_of(3).execute_with(|| {
            all_commit(&[(1, 9), (2, 9), (3, 9)]);
            pass(AUDIT_WINDOW + 1);
            let (_, until) = phase().unwrap();
            let mut open = [false; 4];
            for step in steps {
                match step {
                    Step::Sent(who, result, salt) => {
                        let right = who <= 3 && result == 9 && salt == who;
                        let before = Rounds::<Test>::get(TASK);
                        let done = send_opening(sent_with(who, claim(result), salt)).is_ok();
                        assert_eq!(done, right && !open[who as usize % 4], "{who} {result} {salt}");
                        assert!(done || Rounds::<Test>::get(TASK) == before);
                        if done {
                            open[who as usize] = true;
                        }
                    }
                    Step::Pass if System::block_number() < until => pass(1),
                    Step::Pass => {}
                }
            }
            for stash in (1..=3).filter(|stash| !open[*stash as usize]) {
                assert_ok!(reveal(stash, 9));
            }
            assert_eq!(faults(), []);
            pass(CHALLENGE_WINDOW + 1);
            assert_eq!(decision(), Some(agreed(9, &[1, 2, 3], &[], &[])));
        });
    }
}
