//! What the rules are for: facts that would not be so under others.

#![allow(clippy::unwrap_used)]

use sp_arithmetic::FixedU128;
use surety_audit_economics::AuditPay;
use surety_simulation::{
    report::CORRUPT,
    rules::{Blocks, Market, Pursuit, REWARD, Rules},
    run::{Outcome, run, total},
    strategies::{HONEST, STRATEGIES, Strategy, THEORY},
};

const TASKS: u64 = 3_000;

fn find(name: &str) -> &'static Strategy {
    STRATEGIES.iter().find(|strategy| strategy.name == name).unwrap()
}

fn play(name: &str, rules: &Rules, market: &Market) -> Outcome {
    run(find(name), rules, market, 7, TASKS).unwrap()
}

/// By more than three standard errors, whatever part of the others is corrupt.
fn loses(name: &str) {
    for corrupt in CORRUPT {
        let outcome = play(name, &Rules::default(), &Market::with_corrupt(corrupt));
        let (profit, error) = (outcome.profit(), outcome.error());
        assert!(
            profit + 3.0 * error < 0.0,
            "{name}, {corrupt} % corrupt: {profit} +- {error}"
        );
        assert_eq!(outcome.tally.honest_slashes, 0, "{name}");
        assert_eq!(total(&outcome.books), 0, "{name}");
    }
}

fn with_lock(market: &Market, times: f64) -> Outcome {
    let rules = Rules::default().lock_alone(market);
    let least = rules.plan(market).unwrap().lock;
    let rules = Rules {
        lock: Some((least as f64 * times) as u128),
        ..rules
    };
    run(&THEORY, &rules, market, 7, 40_000).unwrap()
}

#[test]
fn without_audits_cheating_pays() {
    let rules = Rules::default().without_audits();
    for name in ["wrong result", "collusion", "censorship", "unbonding"] {
        let outcome = play(name, &rules, &Market::with_corrupt(10));
        assert!(outcome.profit() > 1.0, "{name}: {}", outcome.profit());
        assert_eq!(outcome.tally.convicted, 0);
    }
}

#[test]
fn with_half_the_break_even_lock_cheating_pays_and_with_twice_it_does_not() {
    for corrupt in CORRUPT {
        for market in [Market::basic(corrupt), Market::with_corrupt(corrupt)] {
            let half = with_lock(&market, 0.5);
            assert!(half.profit() > 3.0 * half.error(), "{corrupt}: {}", half.profit());
            let twice = with_lock(&market, 2.0);
            assert!(
                twice.profit() < -3.0 * twice.error(),
                "{corrupt}: {}",
                twice.profit()
            );
        }
    }
}

#[test]
fn at_the_break_even_lock_cheating_neither_pays_nor_costs() {
    for corrupt in CORRUPT {
        let even = with_lock(&Market::basic(corrupt), 1.0);
        assert!(
            even.profit().abs() < 3.0 * even.error(),
            "{corrupt}: {}",
            even.profit()
        );
    }
}

#[test]
fn an_honest_provider_among_hostile_others_is_never_slashed() {
    for corrupt in CORRUPT {
        let outcome = run(
            &HONEST,
            &Rules::default(),
            &Market::with_corrupt(corrupt),
            7,
            20_000,
        )
        .unwrap();
        assert_eq!(outcome.tally.honest_tasks, 20_000);
        assert_eq!(outcome.tally.honest_slashes, 0);
        assert_eq!(outcome.tally.convicted, 0);
        assert!(outcome.tally.disputes > 1_000);
        assert!(outcome.tally.stalls > 5_000 && outcome.tally.refusals > 1_000);
    }
}

#[test]
fn where_windows_were_counted_in_blocks_a_standstill_would_cost_the_honest_what_they_have_at_stake() {
    let rules = Rules {
        running_clock: false,
        ..Rules::default()
    };
    let outcome = run(&HONEST, &rules, &Market::with_corrupt(0), 7, TASKS).unwrap();
    assert!(outcome.tally.honest_slashes > 100);
}

#[test]
fn an_honest_player_censored_out_of_its_clock_would_lose() {
    // What the clocks are for: with five blocks for all moves, a third of the authors can win a dispute.
    let rules = Rules {
        blocks: Blocks {
            clock: 5,
            ..Blocks::default()
        },
        ..Rules::default()
    };
    let outcome = run(&HONEST, &rules, &Market::with_corrupt(33), 7, TASKS).unwrap();
    assert!(outcome.tally.honest_slashes > 0);
}

#[test]
fn the_same_seed_plays_the_same_and_another_does_not() {
    let (rules, market) = (Rules::default(), Market::with_corrupt(25));
    let play = |seed| run(find("collusion"), &rules, &market, seed, 500).unwrap().books;
    assert_eq!(play(3), play(3));
    assert_ne!(play(3), play(4));
}

#[test]
fn a_lazy_auditor_that_hides_gains_when_audits_are_not_paid() {
    let unpaid = Rules {
        audit_pay: AuditPay {
            premium: FixedU128::from_u32(0),
        },
        ..Rules::default()
    };
    let outcome = play("lazy auditor, hides", &unpaid, &Market::with_corrupt(33));
    assert!(outcome.profit() > 3.0 * outcome.error());
}

#[test]
fn silencing_auditors_pays_at_the_basic_level_alone_and_only_where_hours_of_it_are_cheap() {
    let play = |market: Market, silence| {
        let market = Market { silence, ..market };
        let outcome = run(
            find("auditor denial of service"),
            &Rules::default(),
            &market,
            7,
            20_000,
        )
        .unwrap();
        (outcome.profit(), 3.0 * outcome.error())
    };
    let (dear, error) = play(Market::basic(33), 12 * REWARD);
    assert!(dear < -error, "{dear}");
    let (cheap, error) = play(Market::basic(33), REWARD);
    assert!(cheap > error, "{cheap}");
    // Where auditors are expected, one in ten attacks that fails is enough.
    let (closer, error) = play(Market::with_corrupt(33), 0);
    assert!(closer < -error, "{closer}");
}

#[test]
fn keys_that_may_be_younger_than_the_seed_would_shut_honest_auditors_out() {
    let play = |seasoned| {
        let rules = Rules {
            seasoned,
            ..Rules::default()
        };
        play("key grinding", &rules, &Market::with_corrupt(33))
    };
    let young = play(false);
    assert!(young.profit() > 3.0 * young.error(), "{}", young.profit());
    assert_eq!(young.tally.convicted, 0);
    let old = play(true);
    assert!(old.profit() < -3.0 * old.error(), "{}", old.profit());
}

#[test]
fn slashes_reach_stake_only_while_unbonding_is_longer_than_the_way_to_a_slash() {
    let blocks = Blocks::default();
    assert!(blocks.unbonding > blocks.slashed_within());
    let soon = Rules {
        blocks: Blocks {
            unbonding: blocks.challenge,
            ..blocks
        },
        ..Rules::default()
    };
    let market = Market::with_corrupt(0);
    let lost = |rules: &Rules| -play("unbonding", rules, &market).profit();
    assert!(lost(&Rules::default()) > 1.2 * lost(&soon));
}

#[test]
fn a_provider_that_cheats_alone_loses() {
    loses("wrong result");
}

#[test]
fn wrong_items_lose_whether_it_is_one_a_tenth_or_all() {
    loses("one wrong item");
    loses("a tenth of the items");
    loses("all items");
}

#[test]
fn a_copied_commitment_opens_for_nobody_else() {
    loses("copying");
}

#[test]
fn an_auditor_that_did_not_compute_cannot_confirm() {
    loses("lazy auditor, guesses");
    loses("lazy auditor, no show");
}

#[test]
fn sealing_and_never_opening_costs_whoever_does_it_more_than_it_saves() {
    loses("aborting auditor");
    loses("aborting provider");
    let outcome = play("aborting provider", &Rules::default(), &Market::with_corrupt(33));
    assert_eq!(outcome.tally.convicted, outcome.tally.audited);
}

#[test]
fn an_auditor_that_hides_forgoes_its_pay() {
    // Rare, and each time a loss: with ten times as many tasks it is seen at every corrupt part.
    for corrupt in CORRUPT {
        let market = Market::with_corrupt(corrupt);
        let outcome = run(
            find("lazy auditor, hides"),
            &Rules::default(),
            &market,
            7,
            10 * TASKS,
        )
        .unwrap();
        assert!(outcome.profit() + 3.0 * outcome.error() < 0.0);
    }
}

#[test]
fn a_ring_of_provider_client_challenger_and_verifiers_loses_what_is_burned() {
    loses("collusion");
}

#[test]
fn sybils_gain_no_seats_that_they_do_not_pay_for() {
    loses("sybils");
}

#[test]
fn taking_all_places_for_bids_buys_neither_seats_without_audits_nor_a_higher_price() {
    loses("crowded bids");
    loses("cornered bids");
}

#[test]
fn who_registers_a_model_of_somebody_else_takes_neither_its_tasks_nor_its_auditors_time() {
    loses("squatted model, retired");
    loses("squatted model, hurried");
}

#[test]
fn challenging_ones_own_right_answer_refunds_nothing() {
    loses("self-challenge");
}

#[test]
fn washing_costs_more_than_the_closer_watch_it_ends() {
    loses("wash tasks");
}

#[test]
fn false_disputes_and_delays_cost_their_bond() {
    loses("false dispute");
    loses("delay");
    loses("false audit");
    loses("asking for nothing");
}

#[test]
fn a_client_without_input_or_that_denies_delivery_loses() {
    loses("withheld input");
    loses("denied delivery");
}

#[test]
fn a_provider_that_withholds_output_or_trace_is_convicted() {
    loses("withheld data");
    loses("withheld trace");
    let outcome = play("withheld data", &Rules::default(), &Market::with_corrupt(33));
    assert_eq!(outcome.tally.convicted, TASKS);
}

#[test]
fn an_output_that_is_withheld_in_a_dispute_loses_by_time_and_one_that_is_shown_by_its_cell() {
    loses("withheld output");
    loses("output shown when asked");
    let convicted = |name| {
        let outcome = play(name, &Rules::default(), &Market::with_corrupt(33));
        outcome.tally.convicted
    };
    // Nothing is to be had by showing or not: the same draws find both.
    assert_eq!(convicted("withheld output"), convicted("output shown when asked"));
}

#[test]
fn a_provider_that_serves_no_auditor_is_convicted_and_would_go_unseen_if_they_could_not_demand() {
    loses("withheld from auditors");
    loses("shown to auditors on demand");
    let served_by_good_will = Rules {
        auditors_demand: false,
        ..Rules::default()
    };
    let outcome = play(
        "withheld from auditors",
        &served_by_good_will,
        &Market::with_corrupt(10),
    );
    assert!(outcome.profit() > 1.0, "{}", outcome.profit());
    assert_eq!(outcome.tally.convicted, 0);
}

#[test]
fn who_serves_another_output_than_it_reveals_loses_whichever_of_them_is_right() {
    loses("two faces, a wrong one revealed");
    loses("two faces, a wrong one served");
}

#[test]
fn two_results_for_one_task_cost_the_lock_and_a_part_of_the_stake() {
    loses("equivocation");
}

#[test]
fn a_challenge_that_was_front_run_is_of_no_use_to_who_has_not_computed() {
    loses("front-run challenge");
    loses("shield");
}

/// As often as promised, whatever the strategy.
fn draws_honest_auditors(name: &str) {
    let market = Market::with_corrupt(33);
    let seen = run(find(name), &Rules::default(), &market, 7, 10_000)
        .unwrap()
        .audited();
    let promised = 1.0 - (-0.67f64).exp();
    let sigma = (promised * (1.0 - promised) / 10_000.0).sqrt();
    assert!(seen > promised - 3.0 * sigma, "{name}: {seen}");
}

#[test]
fn grinding_commitments_draws_no_fewer_honest_auditors() {
    loses("commit grinding");
    draws_honest_auditors("commit grinding");
}

#[test]
fn keys_and_stake_that_come_after_the_seed_are_out_of_the_draw() {
    loses("key grinding");
    loses("stake moving");
}

#[test]
fn many_names_crowd_no_honest_auditor_out() {
    loses("crowding");
    draws_honest_auditors("crowding");
}

#[test]
fn an_author_that_withholds_the_entropys_block_draws_no_fewer_honest_auditors() {
    loses("withheld entropy");
    draws_honest_auditors("withheld entropy");
}

#[test]
fn censoring_a_third_of_the_blocks_does_not_save_a_cheat() {
    loses("censorship");
}

#[test]
fn silencing_auditors_for_hours_costs_more_than_it_saves_at_the_standard_level() {
    loses("auditor denial of service");
}

#[test]
fn unbonding_before_the_dispute_saves_nothing() {
    loses("unbonding");
}

#[test]
fn a_commitment_replayed_on_another_task_does_not_open() {
    loses("replay");
}

#[test]
fn spam_costs_transactions() {
    loses("storage spam");
}

#[test]
fn a_dispute_led_to_what_no_block_can_compute_costs_its_bond() {
    loses("weight abuse");
}

#[test]
fn taking_a_task_and_doing_nothing_forgoes_its_pay() {
    loses("failed assignment");
}

#[test]
fn withholding_a_bid_to_turn_the_draw_costs_its_deposit() {
    loses("grind");
}

#[test]
fn flooding_a_result_with_challenges_does_not_keep_out_the_honest_one() {
    loses("flood");
}

#[test]
fn taking_all_places_for_challenges_burns_what_the_lie_would_cost() {
    let rules = Rules::default();
    for outside in [0, 1, 5, 10, 50, 100] {
        let market = Market {
            outside: REWARD * outside,
            ..Market::with_corrupt(33)
        };
        let lock = rules.plan(&market).unwrap().lock;
        let bond = rules.challenge_bond(&market);
        // Half of each goes to the provider, who is a friend.
        let burned = (bond - bond / 2) * u128::from(rules.places);
        assert!(burned >= rules.policy.burned.mul_floor(lock), "{outside}");
    }
}

/// What a strategy costs more than it did when only those were pursued that had confirmed what was judged
/// wrong.
fn costs_more_than_before(name: &str, market: &Market) -> (Outcome, f64) {
    let before = Rules {
        pursuit: Pursuit::OF_JUDGED_ONLY,
        ..Rules::default()
    };
    let before = run(find(name), &before, market, 7, 20_000).unwrap();
    let now = run(find(name), &Rules::default(), market, 7, 20_000).unwrap();
    // The same draws, so that nearly all of the chance is in both.
    let more = before.profit() - now.profit();
    assert!(
        more > 3.0 * now.error() / 2.0,
        "{name}: {more} of {}",
        now.profit()
    );
    (before, more)
}

#[test]
fn giving_up_to_a_friend_saves_neither_the_finders_part_nor_the_bonds_of_confirmers() {
    loses("conceding to a friend");
    costs_more_than_before("conceding to a friend", &Market::with_corrupt(33));
}

#[test]
fn running_out_of_time_saves_no_bond_of_a_confirmer() {
    loses("running out of time");
    costs_more_than_before("running out of time", &Market::with_corrupt(33));
}

#[test]
fn confirming_late_saves_no_bond() {
    loses("late confirmer");
    costs_more_than_before("late confirmer", &Market::with_corrupt(33));
}

#[test]
fn a_dispute_with_a_friend_that_nobody_decides_shields_nobody() {
    loses("lesser fault");
    let (before, _) = costs_more_than_before("lesser fault", &Market::with_corrupt(33));
    assert!(before.profit() > 3.0 * before.error(), "{}", before.profit());
}

#[test]
fn every_strategy_is_tried_here() {
    let source = include_str!("strategies.rs");
    for Strategy { name, .. } in STRATEGIES {
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn hostile_members_of_a_committee_gain_nothing_unless_honest_ones_go_unpaid() {
    loses("hostile committee, votes");
    loses("hostile committee, abstains");
    loses("hostile committee, never opens");
    loses("hostile committee, dissolved");
    let unpaid = Rules {
        committees_paid: false,
        ..Rules::default()
    };
    let outcome = play("hostile committee, votes", &unpaid, &Market::with_corrupt(33));
    assert!(outcome.profit() > 3.0 * outcome.error(), "{}", outcome.profit());
}

#[test]
fn large_cheap_tasks_take_no_auditors_room_unless_it_may_have_to_compute_all_of_them() {
    loses("crowding by work");
    let computed = Rules {
        leaves_demanded: false,
        ..Rules::default()
    };
    let outcome = play("crowding by work", &computed, &Market::with_corrupt(33));
    assert!(outcome.profit() > 3.0 * outcome.error(), "{}", outcome.profit());
}
