//! Devices that are not there, are smaller or are somebody else's are found out by the benchmark.

use surety_gpu_proofs::GRACE_ROUNDS;
use surety_simulation::gpu_proofs::{Claim, all_authors, least_cost_of_holding, least_held, play};

const ROUNDS: u32 = 4_000;

fn found(claim: Claim) -> surety_simulation::gpu_proofs::Outcome {
    play(claim, 2_609, ROUNDS)
}

#[test]
fn who_claims_four_fifths_of_what_it_can_passes_every_round() {
    let outcome = found(Claim::honest(0.8));
    assert_eq!(outcome.passed, 1.0);
    assert!((outcome.shown - 0.8).abs() < 1e-9);
}

#[test]
fn who_claims_all_that_it_can_has_no_time_for_it() {
    assert_eq!(found(Claim::honest(1.0)).passed, 0.0);
}

/// In half a minute, with the same part left, one author was enough in every fifth round.
#[test]
fn a_third_of_the_authors_keeps_a_commitment_out_in_few_rounds() {
    for (censored, most) in [(0.1, 0.005), (1.0 / 3.0, 0.06)] {
        let outcome = found(Claim {
            censored,
            ..Claim::honest(0.87)
        });
        assert!(outcome.passed > 1.0 - most, "{censored}: {outcome:?}");
    }
}

#[test]
fn a_device_that_is_not_there_is_found_in_every_round() {
    assert_eq!(found(Claim::of(20.0)).passed, 0.0);
}

#[test]
fn a_smaller_device_passes_seldom_and_shows_less_than_it_could() {
    let honest = found(Claim::honest(0.8)).shown;
    let mut last = 1.0;
    for (claims, most) in [(1.05, 0.5), (1.1, 0.25), (1.25, 0.05), (1.5, 0.005), (2.0, 0.001)] {
        let outcome = found(Claim::of(claims));
        assert!(outcome.passed < most, "{claims}: {outcome:?}");
        assert!(outcome.passed <= last, "the more is claimed, the less passes");
        assert!(outcome.shown < honest, "{claims}: {outcome:?}");
        last = outcome.passed;
    }
}

#[test]
fn two_names_with_one_device_show_no_more_than_it_can() {
    for each in [0.4, 0.45, 0.5, 0.6, 0.8, 0.9] {
        let outcome = found(Claim::shared(2, each));
        assert!(outcome.shown <= 1.0, "{each}: {outcome:?}");
    }
    // What fits passes: the speed that is shown is there, whoever's names it is under.
    assert!((found(Claim::shared(2, 0.4)).shown - 0.8).abs() < 1e-9);
    assert!(found(Claim::shared(2, 0.6)).passed < 0.1);
    assert!(found(Claim::shared(2, 0.9)).passed < 0.001);
}

/// They send nothing rather than something wrong, so that nothing is found; but it counts half of the time.
#[test]
fn names_that_take_turns_with_a_device_gain_a_ninth_at_most() {
    let turns = Claim {
        takes_turns: true,
        is_honest: true,
        ..Claim::shared(2, 0.8)
    };
    let shown = found(turns).shown;
    assert!(shown <= 0.8 * (1.0 + 1.0 / f64::from(GRACE_ROUNDS)), "{shown}");

    let lax = Claim {
        every_other_may_be_missed: true,
        ..turns
    };
    assert!(
        found(lax).shown > 1.5,
        "this is what the bound on missed rounds is for"
    );
}

#[test]
fn authors_who_keep_together_know_a_draw_beforehand_less_than_once_in_six_thousand_rounds() {
    assert!(all_authors(1.0 / 3.0, 8) < 1.0 / 6_000.0);
    assert!(all_authors(1.0 / 3.0, 1) > 0.3, "one author would not do");
}

/// However cleverly it is held, as long as nothing is computed anew.
#[test]
fn seven_tenths_of_the_state_have_to_be_held_at_least() {
    let least = least_held(4_096);
    assert!((0.65..0.76).contains(&least), "{least}");
}

/// By the best ways of doing with less that we know. No proof.
#[test]
fn who_holds_less_than_three_quarters_of_the_state_computes_it_many_times_over() {
    let (rows, layers) = (512, 8);
    let cost = |part: f64| least_cost_of_holding(rows, layers, (f64::from(rows) * part) as usize);
    let costs = [1.0, 0.85, 0.7, 0.5].map(cost);
    assert_eq!(costs[0], 1.0);
    assert!(costs[1] < 1.1, "a quarter is read no more: {costs:?}");
    assert!(costs[2] > 20.0 && costs[3] > costs[2], "{costs:?}");
}
