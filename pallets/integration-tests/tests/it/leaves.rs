//! An auditor of items that is shown no leaves of the provider's trace demands them after the reveal.

use frame_support::{assert_noop, assert_ok};
use proptest::prelude::*;
use sp_core::H256;
use surety_pallet_test_kit::{MockOutcome, MockStake, send_opening};
use surety_proofs::{PARTS_MAX, PartOpening, leaves_name};
use surety_types::{
    task::RoundPhase,
    trust::{AuditState, Content, FaultKind},
};

use surety_pallet_integration_tests::*;

const AUDITOR: AccountId = FIRST_VERIFIER;
const OTHER: AccountId = FIRST_VERIFIER + 1;
const OPENED_FOR: BlockNumber = AUDIT_WINDOW + SUPPLY_WINDOW + AUDIT_WINDOW;

/// Providers have revealed these results; both verifiers have sealed what they found of their own item of the
/// first provider's, which is that of result 9.
fn sealed(results: &[u8], test: impl FnOnce()) {
    let results: Vec<_> = (1..).zip(results.iter().copied()).collect();
    TestExt::new().round_of(results.len() as u32).execute_with(|| {
        endow_demanders();
        audit_items(OWN_ITEMS);
        all_commit(&results);
        for verifier in [AUDITOR, OTHER] {
            let seal = seal_of_items(verifier, 1, &items_found(9));
            assert_ok!(announce_sealed(verifier, 1, seal));
        }
        pass(AUDIT_WINDOW + 1);
        all_reveal(&results);
        test();
    });
}

fn opens(verifier: AccountId, agrees: bool) -> frame_support::dispatch::DispatchResult {
    reveal_items(verifier, 1, &items_found(9), agrees)
}

fn shown(result: u8) -> Option<Vec<u8>> {
    Results::shown(TASK, leaves_name(&claim(result).trace_root))
}

fn bonds() -> [Balance; 2] {
    [AUDITOR, OTHER].map(MockStake::slashed)
}

#[test]
fn what_is_demanded_is_shown_read_by_all_and_both_are_paid() {
    sealed(&[9], || {
        assert_ok!(demand_leaves(AUDITOR, 1));
        assert_ok!(demand_leaves(OTHER, 1));
        assert_eq!(money(agent_of(AUDITOR)), MONEY - PART_PRICE);
        assert_eq!(shown(9), None);
        pass(SUPPLY_WINDOW);
        assert_ok!(show_leaves(1, 9));
        assert_eq!(shown(9), Some(leaves(9)));
        let cost = half_price(&leaves(9));
        assert_eq!(money(agent_of(AUDITOR)), MONEY - cost);
        assert_eq!((money(agent_of(OTHER)), money(1)), (MONEY, 1 + cost));
        // Whoever is shown them at the last moment has the time of an audit to compare.
        pass(AUDIT_WINDOW);
        assert_ok!(opens(AUDITOR, true));
        assert_ok!(opens(OTHER, true));
        pass(CHALLENGE_WINDOW + 2);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!(MockOutcome::audits_to_pay(TASK), [(1, AUDITOR), (1, OTHER)]);
        assert_eq!((MockStake::slashed(1), bonds()), (0, [0; 2]));
    });
}

#[test]
fn a_provider_that_shows_nothing_is_convicted_and_its_auditors_owe_nothing() {
    sealed(&[9], || {
        assert_ok!(demand_leaves(AUDITOR, 1));
        pass(SUPPLY_WINDOW + 1);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
        assert_eq!((slashes()[0].finder, slashes()[0].lock), (Some(AUDITOR), LOCK));
        assert_eq!(money(agent_of(AUDITOR)), MONEY);
        pass(200);
        assert!(round().is_none());
        assert!(MockStake::slashed(1) > 0);
        assert_eq!(bonds(), [0; 2]);
        assert_eq!([AUDITOR, OTHER].map(MockStake::locked), [0; 2]);
        assert_eq!(MockOutcome::audits_to_pay(TASK), []);
    });
}

#[test]
fn who_is_convicted_otherwise_keeps_its_auditors_from_nothing() {
    // A friend has it lose, so that it has nothing more to show.
    sealed(&[9], || {
        assert_ok!(demand_leaves(AUDITOR, 1));
        let mut lie = promise(1, TASK, 9);
        lie.commitment = Default::default();
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        pass(1);
        assert_eq!((round().unwrap().demands, money(agent_of(AUDITOR))), (0, MONEY));
        assert_noop!(demand_leaves(OTHER, 1), ResultsError::NotRevealed);
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
        pass(200);
        assert!(MockStake::slashed(1) > 0);
        assert_eq!(bonds(), [0; 2]);
    });
}

#[test]
fn an_auditor_that_never_opens_loses_its_bond_where_its_provider_stands() {
    sealed(&[9], || {
        assert_ok!(demand_leaves(AUDITOR, 1));
        assert_ok!(show_leaves(1, 9));
        assert_ok!(opens(OTHER, true));
        pass(200);
        let [silent, other] = bonds();
        assert!(silent > 0);
        assert_eq!((other, MockStake::slashed(1)), (0, 0));
    });
}

#[test]
fn leaves_of_another_trace_or_length_are_not_those_that_are_demanded() {
    sealed(&[8], || {
        assert_ok!(demand_leaves(AUDITOR, 1));
        for other in [
            leaves(9),
            [leaves(8), leaves(8)].concat(),
            leaves(8)[..96].to_vec(),
        ] {
            let call = ResultsCall::supply {
                task: TASK,
                content: Content::Leaves,
                bytes: other.len() as u32,
                opening: PartOpening::of_leaves(&other, 0).unwrap(),
            };
            assert_noop!(send(1, call), ResultsError::WrongSegment);
        }
        assert_noop!(show_output(1, 8), ResultsError::WrongSegment);
        assert_ok!(show_leaves(1, 8));
        assert_eq!(shown(8), Some(leaves(8)));
        assert_noop!(show_leaves(1, 8), ResultsError::NotDemanded);
        // They are read already.
        assert_ok!(demand_leaves(OTHER, 1));
        assert_eq!(round().unwrap().demands, 0);
        // It has others of the item, and goes on as if it had been served.
        assert_ok!(opens(AUDITOR, false));
        assert!(matches!(audit_state(AUDITOR, 1), Some(AuditState::Disputed(_))));
    });
}

#[test]
fn a_provider_whose_root_has_no_such_leaves_can_show_none() {
    TestExt::new().round_of(1).execute_with(|| {
        endow_demanders();
        audit_items(OWN_ITEMS);
        let said = surety_types::task::ResultClaim {
            trace_root: H256::repeat_byte(5),
            ..claim(9)
        };
        let (task, commitment) = (TASK, seal(1, &said));
        assert_ok!(send(1, ResultsCall::commit { task, commitment }));
        pass(SEED_BLOCKS);
        assert_ok!(announce_sealed(
            AUDITOR,
            1,
            seal_of_items(AUDITOR, 1, &items_found(9))
        ));
        pass(AUDIT_WINDOW + 1);
        assert_ok!(send_opening(opening(1, said)));
        assert_ok!(demand_leaves(AUDITOR, 1));
        for result in [8, 9] {
            assert_noop!(show_leaves(1, result), ResultsError::WrongSegment);
        }
        pass(SUPPLY_WINDOW + 1);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
    });
}

#[test]
fn nobody_demands_leaves_but_who_has_sealed_items_of_them_and_has_not_opened() {
    sealed(&[9, 9], || {
        for by in [CLIENT, FIRST_STRANGER, agent_of(AUDITOR + 2)] {
            assert_noop!(demand(by, 1, of_leaves([0])), ResultsError::MayNotDemand);
        }
        assert_noop!(demand_leaves(AUDITOR, 2), ResultsError::MayNotDemand);
        assert_noop!(
            demand(agent_of(AUDITOR), 1, of_leaves([1])),
            ResultsError::NoSuchSegment
        );
        assert_ok!(opens(OTHER, true));
        assert_noop!(demand_leaves(OTHER, 1), ResultsError::MayNotDemand);
        // What is to be compared beside them is demanded with them.
        let both = of_leaves([0]).into_iter().chain(of_output([0])).collect();
        let both = surety_types::trust::DemandedParts::truncate_from(both);
        assert_ok!(demand(agent_of(AUDITOR), 1, both));
        assert_noop!(demand_leaves(AUDITOR, 1), ResultsError::AlreadyDemanded);
        assert_ok!(show_output(1, 9));
        assert_eq!(round().unwrap().demands, 1);
        assert_ok!(show_leaves(1, 9));
        assert_eq!(round().unwrap().demands, 0);
    });
}

#[test]
fn an_auditor_has_no_more_shown_at_once_than_its_items_can_lie_in() {
    sealed(&[9], || {
        let most = round().unwrap().terms.demand_parts(OWN_ITEMS);
        let many = |count| demand(agent_of(AUDITOR), 1, of_leaves(0..count));
        assert_noop!(many(most + 1), ResultsError::TooManyParts);
        assert_noop!(many(most), ResultsError::NoSuchSegment);
        assert_ok!(opens(OTHER, true));
        let output = |count| demand(agent_of(OTHER), 1, of_output(0..count));
        assert_noop!(output(PARTS_MAX + 1), ResultsError::TooManyParts);
        assert_ok!(output(PARTS_MAX));
    });
}

#[test]
fn whole_audits_and_results_that_are_not_revealed_have_no_leaves_to_demand() {
    TestExt::new().round_of(1).execute_with(|| {
        endow_demanders();
        audit_items(CLAIMED_UNITS);
        all_commit(&[(1, 9)]);
        assert_ok!(announce(AUDITOR, 1, 9));
        assert_noop!(demand_leaves(AUDITOR, 1), ResultsError::WrongPhase);
        assert_noop!(
            demand_unserved(OTHER, 1, of_leaves([0])),
            ResultsError::NoSuchSegment
        );
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9)]);
        assert_noop!(demand_leaves(AUDITOR, 1), ResultsError::MayNotDemand);
    });
}

#[test]
fn leaves_are_demanded_for_the_time_of_an_audit_and_no_longer() {
    sealed(&[9], || {
        pass(AUDIT_WINDOW);
        assert_ok!(demand_leaves(AUDITOR, 1));
        assert_ok!(show_leaves(1, 9));
        pass(1);
        assert_noop!(demand_leaves(OTHER, 1), ResultsError::WrongPhase);
    });
}

#[test]
fn who_is_shown_leaves_when_seals_would_have_to_be_open_has_time_to_compare() {
    sealed(&[9], || {
        let until = round().unwrap().openings_until;
        // As if an audit took that long.
        Rounds::<Test>::mutate(TASK, |round| round.as_mut().unwrap().demands_until = until);
        pass(OPENING_WINDOW);
        assert_ok!(demand_leaves(AUDITOR, 1));
        pass(SUPPLY_WINDOW);
        assert_ok!(show_leaves(1, 9));
        pass(AUDIT_WINDOW);
        assert_ok!(opens(AUDITOR, true));
        pass(200);
        let [shown, silent] = bonds();
        assert!(shown == 0 && silent > 0);
    });
}

#[test]
fn auditors_of_a_late_reveal_have_the_same_time_for_it() {
    TestExt::new().round_of(2).execute_with(|| {
        endow_demanders();
        audit_items(OWN_ITEMS);
        all_commit(&[(1, 9), (2, 9)]);
        assert_ok!(announce_sealed(
            AUDITOR,
            1,
            seal_of_items(AUDITOR, 1, &items_found(9))
        ));
        pass(AUDIT_WINDOW + 1);
        assert_ok!(reveal(2, 9));
        pass(REVEAL_WINDOW + AUDIT_WINDOW + 3);
        assert_noop!(demand_leaves(AUDITOR, 1), ResultsError::WrongPhase);
        assert_ok!(reveal(1, 9));
        pass(AUDIT_WINDOW);
        assert_ok!(demand_leaves(AUDITOR, 1));
        pass(SUPPLY_WINDOW);
        assert_ok!(show_leaves(1, 9));
        assert_ok!(opens(AUDITOR, true));
        pass(200);
        assert_eq!((MockStake::slashed(1), bonds()), (0, [0; 2]));
    });
}

#[test]
fn a_stall_of_finality_costs_nobody_anything() {
    sealed(&[9], || {
        assert_ok!(demand_leaves(AUDITOR, 1));
        FinalityStoppedAt::set(Some(System::block_number()));
        pass(100);
        assert_eq!(faults(), []);
        assert_ok!(show_leaves(1, 9));
        assert_ok!(opens(AUDITOR, true));
        assert_ok!(opens(OTHER, true));
        FinalityStoppedAt::set(None);
        pass(200);
        assert_eq!((MockStake::slashed(1), bonds()), (0, [0; 2]));
    });
}

/// What hostile auditors, and a provider that shows at whim, may do after the reveal.
#[derive(Clone, Debug)]
enum Step {
    Demand(AccountId),
    Show(u8),
    Open(AccountId, bool),
    Pass(BlockNumber),
}

fn any_step() -> impl Strategy<Value = Step> {
    let verifier = AUDITOR..=OTHER;
    prop_oneof![
        verifier.clone().prop_map(Step::Demand),
        prop_oneof![Just(8u8), Just(9)].prop_map(Step::Show),
        (verifier, any::<bool>()).prop_map(|(who, yes)| Step::Open(who, yes)),
        (1u64..4).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn demands_of_leaves_delay_the_end_by_a_known_time_and_convict_who_shows_nothing(
        steps in proptest::collection::vec(any_step(), 0..40),
    ) {
        sealed(&[9], || {
            let begun = System::block_number();
            let before = Balances::total_issuance();
            let mut was_silent = false;
            for step in steps.into_iter().chain([Step::Pass(1)]) {
                match step {
                    Step::Demand(who) => {
                        let _ = demand_leaves(who, 1);
                    }
                    Step::Show(result) => {
                        let _ = show_leaves(1, result);
                    }
                    Step::Open(who, yes) => {
                        let _ = opens(who, yes);
                    }
                    Step::Pass(blocks) => pass(blocks),
                }
                check();
                // Another demand may still be met after that.
                let is_silent = faults().contains(&(1, FaultKind::WithheldData));
                assert!(was_silent || !is_silent || shown(9).is_none());
                was_silent = is_silent;
                if let Some(round) = round() {
                    let longest = begun + OPENED_FOR;
                    assert!(
                        round.openings_until <= Some(longest.max(begun + OPENING_WINDOW)),
                        "{:?} after {}", round.openings_until, begun
                    );
                    let is_challengeable = matches!(round.phase, RoundPhase::Challengeable { .. });
                    assert!(is_challengeable);
                }
            }
            assert_eq!(Balances::total_issuance(), before);
        });
    }
}
