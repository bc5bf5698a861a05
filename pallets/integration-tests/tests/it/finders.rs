//! Who gets the finder's part of a slash: verifiers whose seals differ, equally; a challenger when there are
//! none.

use frame_support::assert_ok;
use surety_dispute_game::bisection::Move;
use surety_pallet_test_kit::MockStake;
use surety_types::{limits::AUDITS_PER_MEMBER_MAX, stake::Role, trust::FaultKind};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const VERIFIER: AccountId = FIRST_VERIFIER;
const STRANGER: AccountId = FIRST_STRANGER;
/// What a provider loses whose fault stands alone.
const LOST: Balance = LOCK + (BOND - LOCK) / 20;
/// The finder's part of that.
const FOUND: Balance = LOST * 30 / 100;

/// Stash 1 lies, and is audited by so many verifiers that find something else. Some have opened their seals.
fn differing(count: AccountId, opened: AccountId, test: impl FnOnce()) {
    TestExt::new().round_of(1).execute_with(|| {
        let verifiers = 10_000..10_000 + count;
        // Of all of it: who has sealed some need not open once the provider has lost, and is not waited for.
        audit_items(CLAIMED_UNITS);
        all_commit(&[(1, 8)]);
        for verifier in verifiers.clone() {
            MockStake::bond(verifier, agent_of(verifier), Role::Verifier, BOND);
            assert_ok!(announce(verifier, 1, 9));
        }
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 8)]);
        for verifier in verifiers.take(opened as usize) {
            assert_ok!(reveal_audit(verifier, 1, 9));
        }
        test();
    });
}

/// It gives up to a friend that challenges it.
fn concede_to(friend: AccountId) {
    assert_ok!(challenge(friend, 1));
    let open = disputes().into_iter();
    let mut of_friend = open
        .rev()
        .filter(|(_, dispute)| *dispute.challenger.account() == friend);
    let (id, _) = of_friend.next().unwrap();
    assert_ok!(play(agent_of(1), id, Move::Concede));
    assert_eq!(faults(), [(1, FaultKind::LostDispute)]);
}

#[test]
fn verifiers_that_differ_share_the_finders_part_and_a_friend_gets_nothing() {
    differing(2, 2, || {
        concede_to(STRANGER);
        pass(DEFERRAL + 1);
        assert_eq!(MockStake::slashed(1), LOST);
        assert_eq!(
            [10_000, 10_001, STRANGER].map(MockStake::awarded),
            [FOUND / 2, FOUND / 2, 0]
        );
    });
}

#[test]
fn a_challenger_gets_it_when_no_verifier_differs() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, 8)], &[8]);
        assert_ok!(reveal_audit(VERIFIER, 1, 8));
        assert_ok!(challenge(STRANGER, 1));
        assert_ok!(play(agent_of(1), 0, Move::Concede));
        assert_eq!(
            (slashes()[0].finders.len(), slashes()[0].finder),
            (0, Some(STRANGER))
        );
        pass(DEFERRAL + 1);
        assert!(MockStake::awarded(STRANGER) >= FOUND);
        assert_eq!(MockStake::awarded(VERIFIER), 0);
    });
}

#[test]
fn a_provider_that_wins_gets_it_when_no_verifier_differs() {
    after(&[9, 9, 8], || {
        play_out(&[(1, 9), (3, 8)]);
        pass(DEFERRAL + 1);
        assert_eq!(MockStake::awarded(1), FOUND);
    });
}

#[test]
fn seals_that_open_after_the_conviction_count_until_the_slash_is_carried_out() {
    differing(3, 0, || {
        concede_to(STRANGER);
        assert_ok!(reveal_audit(10_000, 1, 9));
        pass(DEFERRAL);
        assert_ok!(reveal_audit(10_001, 1, 9));
        pass(1);
        // Too late, and no harm to it.
        assert_ok!(reveal_audit(10_002, 1, 9));
        let awarded = [10_000, 10_001, 10_002, STRANGER].map(MockStake::awarded);
        assert_eq!(awarded, [FOUND / 2, FOUND / 2, 0, 0]);
        assert_eq!(MockStake::locked(10_002), 0);
    });
}

#[test]
fn who_differs_from_another_provider_has_no_share() {
    TestExt::new().round_of(2).execute_with(|| {
        revealed_with(&[(VERIFIER, 2, 9)], &[8, 8]);
        assert_ok!(reveal_audit(VERIFIER, 2, 9));
        concede_to(STRANGER);
        assert_eq!(
            (slashes()[0].finders.len(), slashes()[0].finder),
            (0, Some(STRANGER))
        );
    });
}

#[test]
fn whatever_the_fault_who_differs_comes_first() {
    // A provider that sees itself found out has a friend report what it signed.
    differing(1, 1, || {
        assert_ok!(report(promised(1, 7), None));
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
        pass(DEFERRAL + 1);
        assert_eq!([10_000, STRANGER].map(MockStake::awarded), [FOUND, 0]);
    });
}

#[test]
fn what_does_not_divide_is_burned() {
    differing(5, 5, || {
        concede_to(STRANGER);
        events();
        pass(DEFERRAL + 1);
        let each = FOUND / 5;
        assert!(FOUND > 5 * each);
        assert!((10_000..10_005).all(|verifier| MockStake::awarded(verifier) == each));
        let carried_out = RuntimeEvent::TrustLock(TrustLockEvent::SlashCarriedOut {
            slash: 0,
            offender: 1,
            taken: LOST,
            finder: 5 * each,
            client: LOST * 20 / 100,
        });
        assert!(events().contains(&carried_out));
    });
}

#[test]
fn a_slash_has_room_for_every_auditor_of_a_result() {
    const AUDITORS: AccountId = AUDITS_PER_MEMBER_MAX as AccountId;
    differing(AUDITORS, AUDITORS / 2, || {
        concede_to(STRANGER);
        let auditors = 10_000..10_000 + AUDITORS;
        for verifier in auditors.clone().skip(AUDITORS as usize / 2) {
            assert_ok!(reveal_audit(verifier, 1, 9));
        }
        pass(DEFERRAL + 1);
        for verifier in auditors {
            assert_eq!(
                MockStake::awarded(verifier),
                FOUND / Balance::from(AUDITS_PER_MEMBER_MAX)
            );
        }
    });
}

#[test]
fn who_is_proven_wrong_itself_has_no_share() {
    TestExt::new().round_of(2).execute_with(|| {
        // One that seals anything else, and one that has computed; another lie and an honest result.
        revealed_with(&[(VERIFIER, 1, 7), (VERIFIER + 1, 1, 9)], &[8, 9]);
        assert_ok!(reveal_audit(VERIFIER, 1, 7));
        assert_ok!(reveal_audit(VERIFIER + 1, 1, 9));
        concede_to(STRANGER);
        assert_eq!(slashes()[0].finders[..], [VERIFIER, VERIFIER + 1]);
        let auditor = (&VERIFIER, &1);
        Rounds::<Test>::mutate(TASK, |round| {
            let round = round.as_mut().unwrap();
            Results::convict_auditor(TASK, round, auditor, FaultKind::FalseAudit, None);
        });
        assert_eq!(slashes()[0].finders[..], [VERIFIER + 1]);
    });
}

#[test]
fn a_veto_takes_the_shares_with_it() {
    differing(2, 1, || {
        concede_to(STRANGER);
        assert_ok!(TrustLock::cancel_slash(RuntimeOrigin::root(), 0));
        assert_ok!(reveal_audit(10_001, 1, 9));
        pass(DEFERRAL + 1);
        assert_eq!([10_000, 10_001].map(MockStake::awarded), [0, 0]);
    });
}
