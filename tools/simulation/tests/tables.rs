//! Draws, committees, bytes and disputes against what they should be.

#![allow(clippy::unwrap_used)]

use sp_arithmetic::FixedU128;
use surety_audit_economics::{AuditPay, SecurityLevel};
use surety_dispute_game::bisection::{BYTES_MAX, OPENING_BYTES_MAX, Reason, Shape, Side, opening_room};
use surety_dispute_game::testsuite::{
    dice::Dice,
    toy::{LEAVES, ROWS, STEPS, Toy},
};
use surety_simulation::{
    audits::detection,
    break_even::curve,
    bytes::{Cost, SIGNED_BYTES, UNSIGNED_BYTES, dearest, happy_calls, happy_task, real_sizes, way},
    committees::{self, Counted},
    game::{Challenger, Dispute, Output},
    pay::{KINDS, refusals, stalls, table, text},
    report::{Size, report, what_if},
    rules::{Market, REWARD, Rules},
};

fn dispute(right: bool, challenger: Challenger) -> Dispute {
    Dispute::of(right, challenger, 600)
}

#[test]
fn auditors_are_drawn_as_often_as_theory_says() {
    for level in SecurityLevel::ALL {
        for corrupt in [0, 33] {
            let found = detection(&Rules::default(), level, corrupt, 5, 10_000);
            assert!(found.sigmas.abs() < 3.0, "{found:?}");
        }
    }
}

#[test]
fn the_break_even_is_where_theory_puts_it() {
    let found = curve(&Rules::default(), &Market::basic(33), 5, 5, 20_000).unwrap();
    assert!((found.seen / found.promised - 1.0).abs() < 0.05, "{found:?}");
}

#[test]
fn committees_escalate_as_computed_and_are_never_wrong() {
    for corrupt in [20, 25, 33] {
        let row = committees::row(corrupt, 5, 400);
        assert!(row.sigmas.abs() < 3.0, "{row:?}");
        assert_eq!(row.wrong_seen, 0);
    }
}

#[test]
fn late_stake_would_carry_a_vote_that_counts_it() {
    for corrupt in [1, 20, 33] {
        assert!(committees::is_carried_by_late_stake(
            corrupt,
            300,
            Counted::WhenVoting
        ));
        assert!(!committees::is_carried_by_late_stake(
            corrupt,
            300,
            Counted::WhenCalled
        ));
    }
}

#[test]
fn conceding_would_save_the_committees_pay_if_it_dissolved_it() {
    // As many as 100 equal verifiers have computing in three rounds, and as many as there can be.
    for (computing, right) in [(40, 20), (78, 49), (120, 60)] {
        assert_eq!(committees::member_gain(computing, right, true), -1.0);
        assert!(
            committees::member_gain(computing, right, false) > 0.2,
            "{computing}"
        );
    }
}

#[test]
fn whoever_has_computed_wins_every_dispute() {
    let mut dice = Dice::new(1, 1);
    for _ in 0..300 {
        let played = dispute(false, Challenger::Computes).play(&mut dice).unwrap();
        assert_eq!(played.outcome.winner, Side::Challenger);
        assert_eq!(played.outcome.reason, Reason::Judged);
        for how in [
            Challenger::Guesses,
            Challenger::Overloads,
            Challenger::Delays,
            Challenger::Concedes,
        ] {
            let played = dispute(true, how).play(&mut dice).unwrap();
            assert_eq!(played.outcome.winner, Side::Defender, "{how:?}");
        }
    }
}

#[test]
fn a_silent_defender_loses_by_time_and_a_delayer_takes_no_more_than_its_clock() {
    let mut dice = Dice::new(1, 2);
    let silent = Dispute {
        silent: true,
        ..dispute(false, Challenger::Computes)
    };
    let played = silent.play(&mut dice).unwrap();
    assert_eq!((played.outcome.winner, played.blocks), (Side::Challenger, 600));
    let played = dispute(true, Challenger::Delays).play(&mut dice).unwrap();
    assert_eq!(played.outcome.reason, Reason::TimeOut);
    assert!(played.blocks < 2 * 600);
}

#[test]
fn who_has_not_got_the_output_is_shown_it_or_wins_by_time() {
    let mut dice = Dice::new(1, 4);
    let with = |output, right, challenger| Dispute {
        output,
        ..dispute(right, challenger)
    };
    for _ in 0..100 {
        let withheld = with(Output::Withheld, false, Challenger::Computes).play(&mut dice);
        let outcome = withheld.unwrap().outcome;
        assert_eq!(
            (outcome.winner, outcome.reason),
            (Side::Challenger, Reason::TimeOut)
        );
        let shown = with(Output::Shown, false, Challenger::Computes).play(&mut dice);
        let outcome = shown.unwrap().outcome;
        assert_eq!(
            (outcome.winner, outcome.reason),
            (Side::Challenger, Reason::Judged)
        );
        // Two parts and the question are three moves more; who asks an honest defender has won nothing.
        let right = with(Output::Shown, true, Challenger::Guesses).play(&mut dice);
        assert_eq!(right.unwrap().outcome.winner, Side::Defender);
        // It had to be forced: a right result that is not shown loses, too.
        let hidden = with(Output::Withheld, true, Challenger::Guesses).play(&mut dice);
        assert_eq!(hidden.unwrap().outcome.winner, Side::Challenger);
    }
}

#[test]
fn a_played_dispute_takes_no_more_than_was_counted() {
    let mut dice = Dice::new(1, 3);
    let most = way(&Toy, LEAVES - 1, ROWS, STEPS - 1).unwrap();
    for _ in 0..100 {
        let played = dispute(false, Challenger::Computes).play(&mut dice).unwrap();
        assert!(played.bytes <= most.bytes + 512 && played.moves <= most.moves);
    }
}

#[test]
fn what_is_counted_is_what_the_game_counts() {
    for real in real_sizes() {
        for (leaf, length) in &real.leaves {
            for step in 0..real.layout.steps(*leaf, *length).unwrap() {
                let counted = way(&real.layout, *leaf, *length, step).unwrap();
                let room = opening_room(&real.layout, *leaf, *length, step).unwrap();
                assert_eq!(
                    room,
                    (BYTES_MAX - counted.bytes).min(OPENING_BYTES_MAX),
                    "{}",
                    real.name
                );
            }
        }
    }
}

#[test]
fn disputes_of_real_models_are_counted() {
    assert_eq!(real_sizes().len(), 2);
    for real in real_sizes() {
        let (cost, opening, _) = dearest(&real);
        assert!(opening > 0 && cost.bytes <= BYTES_MAX, "{}: {cost:?}", real.name);
    }
}

#[test]
fn a_task_without_disputes_is_five_calls() {
    assert_eq!(
        happy_calls().iter().filter(|(_, _, times)| *times > 0.0).count(),
        5
    );
    assert_eq!(happy_task(), 871);
    let without = happy_task() - 3 * SIGNED_BYTES - 2 * UNSIGNED_BYTES;
    assert_eq!(without, 532);
}

#[test]
fn openings_are_counted_as_unsigned_and_name_whose_they_are() {
    let bytes = |name: &str| happy_calls().into_iter().find(|call| call.0 == name).unwrap().1;
    let claim = 32 + 32 + 4;
    assert_eq!(bytes("reveal"), UNSIGNED_BYTES + 2 + 8 + 32 + claim + 32);
    assert_eq!(bytes("reveal_audit"), bytes("reveal") + 32);
}

#[test]
fn a_move_is_counted_with_its_dispute_and_its_number() {
    let [none, one] = [0, 1].map(|moves| Cost { moves, bytes: 0 }.on_chain());
    assert_eq!(one - none, SIGNED_BYTES + 2 + 4 + 4);
}

#[test]
fn what_would_be_under_other_rules_is_told() {
    let size = Size {
        tasks: 80_000,
        ..Size::QUICK
    };
    let rows = what_if(&Rules::default(), 7, size).unwrap();
    let profit = |what: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["what"] == what);
        let of = |key: &str| row.unwrap()[key].as_f64().unwrap();
        (of("profit_in_r"), 3.0 * of("error"))
    };
    let (cheap, error) = profit("basic level, silencing an auditor for hours costs 1 R");
    assert!(cheap > error, "{cheap}");
    let (dear, error) = profit("basic level, silencing an auditor for hours costs 12 R");
    assert!(dear < -error, "{dear}");
    let (young, error) = profit("keys may be younger than the seed");
    assert!(young > error, "{young}");
    let (first, error) = profit("places for bids go to whoever comes first");
    assert!(first > error && first > 1.0, "{first}");
    for what in [
        "a model's auditors go when its owner retires it",
        "a model's owner says how fast its reference machine is",
    ] {
        let (squatted, error) = profit(what);
        assert!(squatted > error, "{what}: {squatted}");
    }
}

#[test]
fn a_report_has_what_others_look_for() {
    let size = Size {
        tasks: 50,
        honest: 200,
        committees: 5,
        locks: 3,
        lock_tasks: 50,
    };
    let found = report(&Rules::default(), 1, size, &|_| ()).unwrap();
    for key in [
        "honest_tasks",
        "honest_slashes",
        "best_cheat_profit_in_r",
        "snowflake",
        "detection",
        "bytes",
        "audit_pay_over_cost",
        "stalls_simulated",
        "refusals_simulated",
    ] {
        assert!(found.get(key).is_some(), "{key}");
    }
    assert_eq!(
        (&found["stalls_late"], &found["refusals_wrong"]),
        (&0.into(), &0.into())
    );
    assert_eq!(found["honest_slashes"], 0);
}

#[test]
fn audits_of_every_operation_are_paid_above_their_cost() {
    let rows = table(&Rules::default(), 7, 20_000).unwrap();
    println!("{}", text(&rows));
    assert_eq!(rows.len(), KINDS.len() * SecurityLevel::ALL.len());
    for row in &rows {
        // 1.25 in the mean; where not even the whole price is as much, what there is.
        let least = match row.level == SecurityLevel::Basic && row.part > 0.8 {
            true => 1.04,
            false => 1.2,
        };
        assert!((least..1.3).contains(&row.over_cost), "{row:?}");
    }
}

#[test]
fn tasks_are_refused_exactly_where_all_who_are_able_may_be_corrupt_and_no_stall_makes_an_auditor_late() {
    let rules = Rules::default();
    assert_eq!(refusals(&rules, 7, 20_000), (20_000, 0));
    assert_eq!(stalls(&rules, 7, 20_000), (20_000, 0));
}

#[test]
fn an_audit_pays_more_than_it_costs_however_many_are_drawn() {
    // What whoever was drawn can expect, when the number of others is Poisson distributed around the level's
    // mean.
    let (rules, market) = (Rules::default(), Market::with_corrupt(33));
    let cost = (market.audit + 2 * market.transaction) as f64;
    for mean in [0.15, 1.0, 3.0] {
        let share = rules.audit_share(&market, FixedU128::from_float(mean));
        let mut chance = f64::exp(-mean);
        let mut pay = 0.0;
        for others in 0..60u32 {
            pay += chance * AuditPay::of(share, REWARD, others + 1) as f64;
            chance *= mean / f64::from(others + 1);
        }
        assert!(pay > 1.02 * cost, "{mean}: {pay} for {cost}");
    }
}
