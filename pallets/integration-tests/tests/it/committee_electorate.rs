//! Whoever decides is more than may be corrupt, also where a party with much stake has no vote.

use frame_support::assert_ok;
use sp_runtime::Permill;
use surety_dispute_game::quorum_streak::Stage;
use surety_pallet_test_kit::MockStake;
use surety_types::{stake::Role, trust::FaultKind};

use super::revealed_with;
use surety_pallet_integration_tests::*;

/// Wrong in the tokens.
const WRONG: u8 = TOO_LARGE + 1;

/// An auditor with stake of `party` says that a right result is wrong, and two other verifiers with this
/// stake may vote.
fn deciding_without_most(party: Balance, others: [Balance; 2], test: impl FnOnce()) {
    TestExt::new().round_of(1).execute_with(|| {
        VerifiersCorrupt::set(Permill::from_parts(333_334));
        verifiers().skip(3).for_each(MockStake::remove);
        for (stash, stake) in verifiers().zip([party, others[0], others[1]]) {
            MockStake::bond(stash, agent_of(stash), Role::Verifier, stake - BOND);
        }
        revealed_with(&[(FIRST_VERIFIER, 1, WRONG)], &[9]);
        assert_ok!(reveal_audit(FIRST_VERIFIER, 1, WRONG));
        play_out(&[(1, 9), (FIRST_VERIFIER, WRONG)]);
        test();
    });
}

#[test]
fn less_than_a_third_of_all_stake_decide_nothing_against_a_party_that_has_most_of_it() {
    // Two thirds of those who may vote are 27 of 40.
    deciding_without_most(60_000, [28_000, 12_000], || {
        let claimed = claimed();
        ballot(&[(FIRST_VERIFIER + 1, claimed), (FIRST_VERIFIER + 2, other_value())]);
        assert_eq!((sitting(), faults()), (None, vec![]));
        pass(DECISION_WINDOW);
        assert_eq!((pairs(), faults()), (vec![], vec![]));
    });
    deciding_without_most(60_000, [28_000, 12_000], || {
        let claimed = claimed();
        ballot(&votes(3, |_| claimed)[1..]);
        assert_eq!(faults(), [(FIRST_VERIFIER, FaultKind::FalseAudit)]);
    });
}

#[test]
fn of_three_equal_verifiers_the_two_that_are_no_party_decide() {
    deciding_without_most(BOND, [BOND, BOND], || {
        let claimed = claimed();
        ballot(&votes(3, |_| claimed)[1..]);
        assert_eq!(faults(), [(FIRST_VERIFIER, FaultKind::FalseAudit)]);
    });
}

#[test]
fn many_verifiers_are_not_drawn_from_where_the_corrupt_could_be_most_of_those_who_are_no_party() {
    // 50 others with 50 times BOND: a third of all is two fifths of them where a party has a sixth.
    for (party, all_at_once) in [(8 * BOND, false), (12 * BOND, true)] {
        TestExt::new().round_of(1).execute_with(|| {
            VerifiersCorrupt::set(Permill::from_parts(333_334));
            bond_verifiers(51);
            let auditor = FIRST_VERIFIER;
            MockStake::bond(auditor, agent_of(auditor), Role::Verifier, party - BOND);
            revealed_with(&[(auditor, 1, WRONG)], &[9]);
            assert_ok!(reveal_audit(auditor, 1, WRONG));
            play_out(&[(1, 9), (auditor, WRONG)]);
            let summoned = *committee().unwrap().state.stage() == Stage::Summoning;
            assert_eq!(summoned, all_at_once);
        });
    }
}
