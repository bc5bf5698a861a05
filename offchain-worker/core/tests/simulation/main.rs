//! Thousands of lives of a provider, with crashes between any two of: event, journal, effects; with calls
//! that are lost or late, that fail in every way, or are said to have failed when they did not; with replaced
//! blocks, repeated, outdated and empty states, finality that stands still, partitions, slow and failing
//! fetches, and lost journals.
//!
//! Every life is fixed by its seed, which is printed when one fails: `SURETY_SIMULATION_SEED=7` repeats that
//! life and tells it. `SURETY_SIMULATION_LIVES=100000` lives as many.

#![allow(clippy::unwrap_used)]

mod audit;
mod auditors;
mod chain;
mod client;
mod committee;
mod faults;
mod host;
mod random;
mod records;

use std::panic::{AssertUnwindSafe, catch_unwind};

use auditors::Auditor;
use chain::{Chain, Windows};
use client::Client;
use faults::Faults;
use host::Host;
use random::Random;

const LIVES: u64 = 2_000;

fn each_life(mut life: impl FnMut(u64)) {
    let seeds = match std::env::var("SURETY_SIMULATION_SEED") {
        Ok(seed) => {
            let seed = seed.parse().unwrap();
            seed..seed + 1
        }
        Err(_) => 0..std::env::var("SURETY_SIMULATION_LIVES").map_or(LIVES, |lives| lives.parse().unwrap()),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| life(seed))) {
            eprintln!("a life failed; repeat it with SURETY_SIMULATION_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

fn run(seed: u64, windows: Windows, faults: Faults, tasks: u64) -> (Chain, Host) {
    run_for(Client::Honest, seed, windows, faults, tasks)
}

fn run_for(client: Client, seed: u64, windows: Windows, faults: Faults, tasks: u64) -> (Chain, Host) {
    let chain = Chain::new(windows, tasks, client, faults);
    live(seed, chain, faults)
}

fn live(seed: u64, mut chain: Chain, faults: Faults) -> (Chain, Host) {
    let mut random = Random::new(seed);
    let mut host = Host::new(seed, faults);
    while !chain.is_over() {
        chain.produce(&mut random, &mut host.outcomes);
        host.tick(&mut chain, &mut random);
    }
    (chain, host)
}

/// Windows so long that no streak of bad luck fills them.
const GENEROUS: Windows = Windows {
    bid: 150,
    open: 150,
    commit: 300,
    audit: 3,
    reveal: 150,
    challenge: 4,
    openings: 400,
};

/// Those of a development chain.
const SHORT: Windows = Windows {
    bid: 8,
    open: 8,
    commit: 45,
    audit: 3,
    reveal: 12,
    challenge: 4,
    openings: 400,
};

#[test]
fn without_faults_every_task_is_revealed_in_the_usual_windows() {
    each_life(|seed| {
        let (chain, host) = run(seed, SHORT, Faults::NONE, 4);
        host.check_said_one_thing();
        chain.check_all_paid();
    });
}

#[test]
fn with_faults_every_task_is_revealed_when_the_chain_gives_it_time() {
    each_life(|seed| {
        let (chain, host) = run(seed, GENEROUS, Faults::MANY, 4);
        host.check_said_one_thing();
        chain.check_all_paid();
    });
}

#[test]
fn in_short_windows_with_faults_nothing_is_said_twice_differently_and_nobody_convicted() {
    each_life(|seed| {
        let (chain, host) = run(seed, SHORT, Faults::MANY, 9);
        host.check_said_one_thing();
        chain.check_nobody_convicted();
    });
}

/// Blocks before the end of the window to commit in which an honest result has to be there.
const IN_TIME: u32 = 10;

#[test]
fn a_result_that_was_there_ten_blocks_before_the_end_is_paid_whatever_is_refused() {
    let mut paid = 0;
    each_life(|seed| {
        let (chain, host) = run(seed, SHORT, Faults::REFUSING, 6);
        host.check_said_one_thing();
        chain.check_nobody_convicted();
        for (task, fortune) in &chain.drawn {
            let in_time = |made: &u32| made + IN_TIME <= fortune.commit_until;
            if host.made_at.get(task).is_some_and(in_time) {
                assert!(fortune.paid, "task {task} was right and in time: {fortune:?}");
                paid += 1;
            }
        }
    });
    assert!(paid > 0 || is_repeated());
}

#[test]
fn while_finality_and_its_clock_stand_still_nothing_is_given_up() {
    let faults = Faults {
        stall: 60,
        ..Faults::NONE
    };
    each_life(|seed| {
        let (chain, host) = run(seed, SHORT, faults, 4);
        host.check_said_one_thing();
        chain.check_all_paid();
        host.check_spared_the_chain();
    });
}

#[test]
fn who_was_cut_off_while_reveals_were_taken_opens_late_and_is_not_convicted() {
    let faults = Faults {
        partition: 1,
        partition_blocks: 100,
        ..Faults::NONE
    };
    let mut missed = 0;
    each_life(|seed| {
        let (chain, host) = run(seed, SHORT, faults, 4);
        host.check_said_one_thing();
        chain.check_nobody_convicted();
        missed += chain.drawn.values().filter(|fortune| fortune.missed).count();
    });
    assert!(missed > 0 || is_repeated());
}

#[test]
fn a_lost_journal_is_made_up_for_by_computing_again() {
    let faults = Faults {
        journal_loss: 10,
        ..Faults::MANY
    };
    each_life(|seed| {
        let (chain, host) = run(seed, GENEROUS, faults, 4);
        host.check_said_one_thing();
        chain.check_all_paid();
    });
}

#[test]
fn without_faults_nothing_is_demanded_of_a_client_that_serves_its_input() {
    each_life(|seed| {
        let (chain, _) = run(seed, SHORT, Faults::NONE, 4);
        assert!(chain.inputs.demanded.is_empty());
    });
}

#[test]
fn a_client_that_withholds_its_input_is_shown_to_have_done_so() {
    each_life(|seed| {
        let (chain, host) = run_for(Client::Withholds, seed, SHORT, Faults::NONE, 4);
        host.check_said_one_thing();
        chain.check_all_withheld();
        let (chain, host) = run_for(Client::Withholds, seed, GENEROUS, Faults::MANY, 4);
        host.check_said_one_thing();
        chain.check_all_withheld();
    });
}

#[test]
fn a_client_that_is_cut_off_and_shows_a_piece_gets_its_result() {
    each_life(|seed| {
        let (chain, host) = run_for(Client::CutOff, seed, SHORT, Faults::NONE, 4);
        host.check_said_one_thing();
        chain.check_all_paid();
        let (chain, host) = run_for(Client::CutOff, seed, GENEROUS, Faults::MANY, 4);
        host.check_said_one_thing();
        chain.check_all_paid();
        assert!(chain.inputs.withheld.is_empty());
    });
}

/// Lives in which whoever confirms a result does so in time to be refuted.
fn confirmed(auditor: Auditor, seed: u64, faults: Faults) -> Chain {
    let windows = Windows {
        challenge: 150,
        ..GENEROUS
    };
    let mut chain = Chain::new(windows, 4, Client::Honest, faults);
    chain.confirmations.auditor = auditor;
    let (chain, host) = live(seed, chain, faults);
    host.check_said_one_thing();
    chain.check_nobody_convicted();
    chain
}

#[test]
fn an_auditor_that_guesses_what_it_seals_is_refuted_in_time() {
    let mut guessed = 0;
    each_life(|seed| {
        for faults in [Faults::NONE, Faults::MANY].into_iter().filter(|_| few(seed)) {
            let chain = confirmed(Auditor::Guesses, seed, faults);
            assert_eq!(chain.confirmations.refuted, chain.confirmations.made);
            guessed += chain.confirmations.made.len();
        }
    });
    assert!(guessed > 0 || is_repeated());
}

#[test]
fn an_honest_auditor_is_never_accused() {
    let mut made = 0;
    each_life(|seed| {
        if few(seed) {
            let chain = confirmed(Auditor::Honest, seed, Faults::MANY);
            made += chain.confirmations.made.len();
        }
    });
    assert!(made > 0 || is_repeated());
}

#[test]
fn without_faults_a_liar_is_audited_and_loses_its_dispute() {
    each_life(|seed| audit::Life::new(seed, Faults::NONE).run());
}

#[test]
fn with_faults_a_liar_loses_and_nothing_is_said_twice_differently() {
    each_life(|seed| audit::Life::new(seed, Faults::MANY).run());
}

/// Whether it is one life that is lived again.
fn is_repeated() -> bool {
    std::env::var("SURETY_SIMULATION_SEED").is_ok()
}

/// Such lives are long, or of several verifiers: fewer do.
fn few(seed: u64) -> bool {
    seed.is_multiple_of(10) || is_repeated()
}

#[test]
fn three_honest_verifiers_decide_what_no_block_can() {
    each_life(|seed| {
        if few(seed) {
            committee::Lives::new(seed, Faults::NONE, 3, false).run();
        }
    });
}

#[test]
fn with_faults_three_verifiers_decide_and_say_one_thing_each() {
    each_life(|seed| {
        if few(seed) {
            committee::Lives::new(seed, Faults::MANY, 3, false).run();
        }
    });
}

#[test]
fn a_committee_that_is_drawn_decides_after_three_rounds_that_agree() {
    each_life(|seed| {
        if few(seed) && seed.is_multiple_of(100) {
            committee::Lives::new(seed, Faults::MANY, 20, true).run();
        }
    });
}
