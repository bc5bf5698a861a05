//! The checker notices what it should.

use frame_support::{assert_ok, traits::fungible::MutateHold};
use sp_core::H256;
use surety_types::{
    limits::AUDITS_PER_MEMBER_MAX,
    model::Operation,
    task::{AuditDraw, FailureReason, MemberProgress, ResultClaim, RoundPhase, Verdict},
    trust::{Audit, AuditState, FaultKind, OutputShown, Party},
};

use surety_pallet_integration_tests::*;
use surety_pallet_results::Shown;

/// Corrupts the round that `prepare` leaves, and expects the checker to say `id`.
#[track_caller]
pub(super) fn assert_noticed(id: &str, prepare: impl FnOnce(), corrupt: impl FnOnce(&mut RoundOf<Test>)) {
    TestExt::new().round_of(3).build().execute_with(|| {
        prepare();
        assert_ok!(try_state());
        Rounds::<Test>::mutate(TASK, |round| corrupt(round.as_mut().unwrap()));
        let noticed = try_state();
        assert!(
            matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with(id)),
            "{noticed:?}"
        );
    });
}

fn fresh() {}

fn all_committed() {
    all_commit(&[(1, 9), (2, 9), (3, 8)]);
}

fn revealing() {
    all_committed();
    pass(AUDIT_WINDOW + 1);
}

pub(super) fn challengeable() {
    revealing();
    all_reveal(&[(1, 9), (2, 9), (3, 8)]);
}

#[test]
fn an_empty_round_is_noticed() {
    assert_noticed("RESULTS-1", fresh, |round| round.members.clear());
}

#[test]
fn a_provider_on_a_round_twice_is_noticed() {
    assert_noticed("RESULTS-1", fresh, |round| round.members[2].provider = 1);
    assert_noticed("RESULTS-1", fresh, |round| round.dropped.try_push(2).unwrap());
}

#[test]
fn progress_that_does_not_fit_the_phase_is_noticed() {
    assert_noticed("RESULTS-2", fresh, |round| {
        round.members[0].progress = MemberProgress::Revealed(claim(9));
    });
    assert_noticed("RESULTS-2", all_committed, |round| {
        round.members[0].progress = MemberProgress::Revealed(claim(9));
    });
}

#[test]
fn a_phase_that_should_have_ended_is_noticed() {
    assert_noticed("RESULTS-2", all_committed, |round| {
        round.phase = RoundPhase::Committing { until: 9 }
    });
    assert_noticed("RESULTS-2", challengeable, |round| {
        round.phase = RoundPhase::Revealing { until: 9 }
    });
}

#[test]
fn a_round_that_went_on_without_a_quorum_is_noticed() {
    assert_noticed("RESULTS-2", fresh, |round| {
        round.phase = RoundPhase::Auditing { until: 9 }
    });
    assert_noticed("RESULTS-2", revealing, |round| {
        round.members[0].progress = MemberProgress::Working;
        round.members[1].progress = MemberProgress::Working;
    });
}

#[test]
fn a_verdict_out_of_nowhere_is_noticed() {
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    assert_noticed("RESULTS-3", challengeable, |round| {
        round.phase = RoundPhase::Challengeable { until: 99, verdict };
    });
    assert_noticed("RESULTS-3", challengeable, |round| {
        round.members[0].progress = MemberProgress::Revealed(claim(8));
    });
}

#[test]
fn a_claim_of_too_many_units_is_noticed() {
    assert_noticed("RESULTS-4", revealing, |round| {
        let units = UNITS_MAX + 1;
        round.members[0].progress = MemberProgress::Revealed(ResultClaim { units, ..claim(9) });
    });
}

/// Does `damage` to what `prepare` leaves, and expects the checker to say `id`.
#[track_caller]
pub(super) fn assert_damage_noticed(id: &str, prepare: impl FnOnce(), damage: impl FnOnce()) {
    TestExt::new().round_of(3).build().execute_with(|| {
        prepare();
        assert_ok!(try_state());
        damage();
        let noticed = try_state();
        assert!(
            matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with(id)),
            "{noticed:?}"
        );
    });
}

fn convicted() {
    challengeable();
    play_out(&[(1, 9), (3, 8)]);
}

#[test]
fn a_dispute_without_its_round_and_a_round_without_its_dispute_are_noticed() {
    assert_damage_noticed("DISPUTES-1", challengeable, || DisputeStorage::<Test>::remove(0));
    assert_noticed("DISPUTES-1", challengeable, |round| round.disputes.clear());
    assert_damage_noticed("DISPUTES-1", challengeable, || NextDisputeId::<Test>::put(0));
}

#[test]
fn an_audit_twice_and_a_bond_that_nothing_needs_are_noticed() {
    let audited = || {
        all_committed();
        assert_ok!(announce(FIRST_VERIFIER, 1, 9));
    };
    assert_noticed("RESULTS-5", audited, |round| {
        let audit = round.audits[0].clone();
        round.audits.try_push(audit).unwrap();
    });
    assert_noticed("RESULTS-5", audited, |round| {
        round.audits[0].state = AuditState::Over
    });
}

#[test]
fn more_audits_of_a_provider_than_it_has_places_for_are_noticed() {
    assert_noticed("RESULTS-5", all_committed, |round| {
        for verifier in 0..=AccountId::from(AUDITS_PER_MEMBER_MAX) {
            let audit = Audit {
                verifier,
                provider: 1,
                bond: 0,
                draw: Default::default(),
                items: None,
                state: AuditState::Confirmed,
            };
            round.audits.try_push(audit).unwrap();
        }
    });
}

#[test]
fn auditors_that_nothing_was_drawn_with_are_noticed() {
    let unseeded = |round: &mut RoundOf<Test>| round.draw.as_mut().unwrap().seed = None;
    let audited = || {
        all_committed();
        assert_ok!(announce(FIRST_VERIFIER, 1, 9));
    };
    assert_noticed("RESULTS-12", audited, unseeded);
    assert_noticed("RESULTS-12", revealing, unseeded);
    assert_noticed("RESULTS-12", challengeable, unseeded);
    assert_noticed("RESULTS-12", all_committed, |round| round.draw = None);
    assert_noticed("RESULTS-12", all_committed, |round| {
        let draw = round.draw.as_mut().unwrap();
        draw.settled_by = draw.begun_at + 1;
    });
    assert_noticed("RESULTS-12", fresh, |round| {
        round.draw = Some(AuditDraw {
            begun_at: 1,
            settled_by: 1,
            epoch_randomness: H256::zero(),
            verifier_stake: 1,
            seed: None,
        });
    });
}

#[test]
fn a_convict_that_is_to_be_paid_is_noticed() {
    assert_noticed("RESULTS-3", convicted, |round| {
        round.members[0].fault = Some(FaultKind::Undecided);
    });
}

#[test]
fn holds_that_are_not_bonds_or_prices_are_noticed() {
    let challenged = || {
        revealing();
        all_reveal(&[(1, 9), (2, 9), (3, 8)]);
        assert_ok!(challenge(FIRST_STRANGER, 1));
    };
    assert_damage_noticed("DISPUTES-2", challenged, || {
        DisputeStorage::<Test>::mutate(1, |dispute| dispute.as_mut().unwrap().bond += 1);
    });
    // Of accounts that have no record any more, or never had one.
    assert_damage_noticed("DISPUTES-2", challengeable, || {
        let reason = surety_pallet_disputes::HoldReason::Challenge.into();
        assert_ok!(Balances::hold(&reason, &FIRST_STRANGER, CHALLENGE_BOND));
    });
    assert_damage_noticed("RESULTS-7", challengeable, || {
        let reason = surety_pallet_results::HoldReason::Demand.into();
        assert_ok!(Balances::hold(&reason, &FIRST_STRANGER, SUPPLY_PRICE));
    });
    let demanded = || {
        challengeable();
        endow_demanders();
        assert_ok!(demand(CLIENT, 1, of_output([0])));
    };
    assert_damage_noticed("RESULTS-7", demanded, || {
        Demands::<Test>::mutate(TASK, 1, |demands| demands[0].price -= 1);
    });
    assert_damage_noticed("RESULTS-7", demanded, || {
        let demands = Demands::<Test>::take(TASK, 1);
        Demands::<Test>::insert(TASK + 1, 1, demands);
    });
    assert_damage_noticed("RESULTS-7", demanded, || {
        Rounds::<Test>::mutate(TASK, |round| round.as_mut().unwrap().demands = 0);
    });
}

#[test]
fn places_and_audits_of_no_dispute_are_noticed() {
    assert_noticed("DISPUTES-5", challengeable, |round| round.challenges = 1);
    let audited = || {
        all_committed();
        assert_ok!(announce(FIRST_VERIFIER, 1, 9));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9), (3, 8)]);
        assert_ok!(reveal_audit(FIRST_VERIFIER, 1, 9));
    };
    assert_noticed("DISPUTES-6", audited, |round| {
        round.audits[0].state = AuditState::Disputed(0);
    });
    assert_noticed("DISPUTES-6", audited, |round| {
        round.audits[0].state = AuditState::Defends(0);
    });
}

#[test]
fn a_slash_without_a_fault_and_a_lock_beside_a_slash_are_noticed() {
    assert_noticed("RESULTS-13", fresh, |round| round.members[0].slash = Some(0));
    assert_noticed("RESULTS-13", convicted, |round| round.members[2].lock = 1);
}

#[test]
fn an_audit_that_differs_from_a_provider_that_said_two_things_is_noticed() {
    let audited = || {
        all_committed();
        assert_ok!(announce(FIRST_VERIFIER, 1, 7));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9), (3, 8)]);
        Rounds::<Test>::mutate(TASK, |round| {
            round.as_mut().unwrap().terms.operation = Operation::Generate;
        });
        assert_ok!(report(promised(1, 7), None));
    };
    assert_noticed("RESULTS-15", audited, |round| {
        round.audits[0].state = AuditState::Differs;
    });
}

#[test]
fn a_demand_of_leaves_by_who_cannot_compare_is_noticed() {
    let demanded = || {
        audit_items(OWN_ITEMS);
        endow_demanders();
        all_committed();
        let seal = seal_of_items(FIRST_VERIFIER, 1, &items_found(9));
        assert_ok!(announce_sealed(FIRST_VERIFIER, 1, seal));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9), (3, 8)]);
        assert_ok!(demand_leaves(FIRST_VERIFIER, 1));
    };
    assert_noticed("RESULTS-16", demanded, |round| round.audits.clear());
    assert_noticed("RESULTS-16", demanded, |round| round.openings_until = Some(1));
}

#[test]
fn slashes_that_the_sweep_has_lost_are_noticed() {
    assert_damage_noticed("TRUST-1", convicted, || SlashesSweptTo::<Test>::put(2));
    assert_damage_noticed("TRUST-1", convicted, || SlashesSweptTo::<Test>::put(1));
    assert_damage_noticed("TRUST-1", convicted, || {
        Slashes::<Test>::mutate(0, |slash| slash.as_mut().unwrap().until = 0);
    });
}

#[test]
fn a_dispute_context_without_a_round_is_noticed() {
    assert_damage_noticed("RESULTS-8", fresh, || {
        DisputeContexts::<Test>::insert(TASK + 1, 1)
    });
}

#[test]
fn notes_of_commitments_that_nobody_made_are_noticed() {
    assert_damage_noticed("RESULTS-9", fresh, || {
        Results::note_commitment(TASK, &1, &agent_of(1), H256::zero());
    });
    assert_damage_noticed("RESULTS-9", all_committed, || {
        Results::note_commitment(TASK, &1, &agent_of(1), H256::zero());
    });
}

fn input_demanded() {
    post_input();
    assert_ok!(demand_input(1, 0));
}

#[test]
fn a_demand_of_input_that_nobody_waits_for_is_noticed() {
    assert_noticed("RESULTS-10", input_demanded, |round| {
        round.input_demand.as_mut().unwrap().provider = 9;
    });
    assert_noticed("RESULTS-10", input_demanded, |round| {
        round.input_demand.as_mut().unwrap().until += COMMIT_WINDOW + 1;
    });
    assert_noticed("RESULTS-10", input_demanded, |round| {
        round.members[0].progress = MemberProgress::Committed(H256::zero());
    });
    assert_noticed("RESULTS-10", input_demanded, |round| {
        round.members[0].input_demands = 9
    });
}

#[test]
fn a_price_of_input_that_is_not_on_hold_is_noticed() {
    assert_noticed("RESULTS-7", input_demanded, |round| {
        round.input_demand.as_mut().unwrap().price += 1;
    });
}

#[test]
fn who_is_late_for_what_is_not_asked_is_noticed() {
    assert_noticed("RESULTS-11", fresh, |round| round.members[0].missed_reveal = true);
    assert_noticed("RESULTS-11", all_committed, |round| {
        round.openings_until = Some(9)
    });
    assert_noticed("RESULTS-11", revealing, |round| {
        round.members[0].fault = Some(FaultKind::NoReveal);
    });
}

#[test]
fn a_jail_that_its_terms_do_not_explain_is_noticed() {
    assert_noticed(
        "TRUST-2",
        || TrustLock::jail(&3, 0),
        |_| Records::<Test>::mutate(3, |record| record.jailed_until = None),
    );
    assert_noticed(
        "TRUST-2",
        || TrustLock::jail(&3, 0),
        |_| JailedFor::<Test>::remove(3),
    );
}

#[test]
fn content_of_no_round_and_a_price_of_no_showing_are_noticed() {
    use surety_dispute_game::{
        bisection::{Missing, Move},
        dispute::Prepaid,
    };

    assert_damage_noticed("RESULTS-14", fresh, || {
        let bytes = surety_proofs::PartOpening::new(&[1], 0).unwrap().bytes;
        Shown::<Test>::insert(TASK + 1, (H256::zero(), 1u32, 0u32), bytes);
    });
    assert_damage_noticed("RESULTS-14", challengeable, || {
        let bytes = surety_proofs::PartOpening::new(&[1], 0).unwrap().bytes;
        Shown::<Test>::insert(TASK, (H256::zero(), 1u32, 1u32), bytes);
    });
    assert_damage_noticed("RESULTS-14", challengeable, || {
        CommitNotes::<Test>::mutate(TASK, 1, |note| {
            note.as_mut().unwrap().shown = Some(OutputShown {
                content: H256::zero(),
                bytes: 1,
                demander: FIRST_VERIFIER,
            });
        });
    });
    let asked = || {
        super::revealed(&[9]);
        assert_ok!(challenge(FIRST_STRANGER, 1));
        assert_ok!(play(agent_of(1), 0, next_move(0, 9)));
        assert_ok!(play(FIRST_STRANGER, 0, Move::Ask(Missing::Output)));
    };
    for prepaid in [
        None,
        Some(Prepaid {
            by: FIRST_STRANGER,
            amount: 1,
        }),
    ] {
        TestExt::new().round_of(1).build().execute_with(|| {
            asked();
            assert_ok!(try_state());
            DisputeStorage::<Test>::mutate(0, |dispute| dispute.as_mut().unwrap().prepaid = prepaid);
            let noticed = try_state();
            assert!(
                matches!(noticed, Err(sp_runtime::DispatchError::Other(text)) if text.starts_with("DISPUTES-8")),
                "{noticed:?}"
            );
        });
    }
}

#[test]
fn two_challenges_of_a_claim_by_one_account_are_noticed() {
    let challenged = || {
        challengeable();
        for stranger in [FIRST_STRANGER, FIRST_STRANGER + 1] {
            assert_ok!(challenge(stranger, 1));
        }
    };
    assert_damage_noticed("DISPUTES-9", challenged, || {
        let (newest, _) = disputes().pop().unwrap();
        DisputeStorage::<Test>::mutate(newest, |dispute| {
            dispute.as_mut().unwrap().challenger = Party::Account(FIRST_STRANGER);
        });
    });
}
