//! The checker notices what it should of committees.

use frame_support::assert_ok;
use sp_core::H256;

use surety_pallet_integration_tests::*;
use surety_pallet_results::Shown;

use super::try_state::{assert_damage_noticed, assert_noticed, challengeable};

/// A dispute about the tokens has a committee; corrupts it, and expects the checker to say `id`.
#[track_caller]
fn assert_committee_noticed(id: &str, corrupt: impl FnOnce(&mut CommitteeOf<Test>)) {
    super::after(&[9, TOO_LARGE + 1], || {
        play_out(&[(1, 9), (2, TOO_LARGE + 1)]);
        for (verifier, value) in votes(3, |_| claimed()) {
            assert_ok!(join(verifier, value));
        }
        let before = committee().unwrap();
        assert_ok!(try_state());
        Committees::<Test>::mutate(DISPUTE, |committee| corrupt(committee.as_mut().unwrap()));
        let noticed = try_state();
        assert!(
            matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with(id)),
            "{noticed:?}"
        );
        Committees::<Test>::insert(DISPUTE, before);
    });
}

#[test]
fn a_committee_that_nobody_waits_for_is_noticed() {
    assert_committee_noticed("DISPUTES-3", |committee| committee.claimed = other_value());
    assert_committee_noticed("DISPUTES-3", |committee| committee.suspended = 1);
    assert_noticed("DISPUTES-3", challengeable, |_| {
        Committees::<Test>::insert(77, any_committee());
    });
    assert_noticed("DISPUTES-3", challengeable, |_| {
        Committees::<Test>::insert(0, any_committee());
    });
}

fn any_committee() -> CommitteeOf<Test> {
    use surety_dispute_game::committee::{CommitteeState, SeatDraw, windows};
    CommitteeOf::<Test> {
        state: CommitteeState::new(Default::default(), windows(1, 1)),
        claimed: Default::default(),
        draw: SeatDraw {
            begun_at: 1,
            settled_by: 0,
            epoch_randomness: H256::zero(),
            verifier_stake: 1,
            corrupt_stake: 0,
            seed: None,
        },
        candidates: Default::default(),
        ticked_at: 0,
        suspended: 0,
        fund: None,
    }
}

#[test]
fn candidates_that_do_not_fit_are_noticed() {
    assert_committee_noticed("DISPUTES-4", |committee| committee.candidates[1].rank = 0);
    assert_committee_noticed("DISPUTES-4", |committee| {
        committee.candidates[1].verifier = FIRST_VERIFIER;
    });
    assert_committee_noticed("DISPUTES-4", |committee| committee.candidates[1].verifier = 2);
    assert_committee_noticed("DISPUTES-4", |committee| {
        let verifiers: Vec<_> = committee
            .candidates
            .iter()
            .map(|candidate| (candidate.verifier, 1))
            .collect();
        committee
            .state
            .summon_weighed(verifiers, Default::default())
            .unwrap();
    });
}

#[test]
fn a_committee_that_cannot_read_what_it_needs_is_noticed() {
    let referred = || {
        challengeable();
        assert_ok!(challenge(FIRST_STRANGER, 1));
        play_out(&[(1, 9), (2, 9), (3, 8), (FIRST_STRANGER, TOO_LARGE)]);
        assert!(Committees::<Test>::iter().next().is_some());
    };
    assert_damage_noticed("DISPUTES-10", referred, || {
        let shown: Vec<_> = Shown::<Test>::iter_key_prefix(TASK).collect();
        assert!(!shown.is_empty());
        shown.into_iter().for_each(|key| Shown::<Test>::remove(TASK, key));
    });
}
