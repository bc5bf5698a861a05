//! Those who do not play by the rules, or try to get something out of them: those of `docs/threats.md`.
//!
//! A strategy plays one task. Its profit is what its accounts have won together, less what the honest ones
//! that it stands beside would have won in the same task, with the same auditors drawn.

mod auditors;
mod bids;
mod challengers;
mod clients;
mod draws;
mod hostile;
mod models;
mod providers;
mod showing;

use crate::{
    books::Role,
    life::{Cronies, Life},
};

/// A way to cheat.
#[derive(Clone, Copy)]
pub struct Strategy {
    /// A short name.
    pub name: &'static str,
    /// Which threat of `docs/threats.md` it is.
    pub threat: &'static str,
    /// Whose money is the cheat's.
    pub cheat: &'static [Role],
    /// Whose would be its, were it honest.
    pub honest: &'static [Role],
    /// The least number of corrupt verifiers it needs to be a strategy at all.
    pub cronies: u32,
    /// One task.
    pub play: fn(&mut Life),
    /// The same task, played by the rules.
    pub baseline: fn(&mut Life),
}

/// One provider works, is audited and paid.
fn honest(life: &mut Life) {
    life.right_result(Role::Provider, Cronies::Work);
}

/// Nothing happens.
fn nothing(_: &mut Life) {}

/// A strategy against what its provider would have earned.
const fn provider(name: &'static str, threat: &'static str, play: fn(&mut Life)) -> Strategy {
    Strategy {
        name,
        threat,
        cheat: &[Role::Provider],
        honest: &[Role::Provider],
        cronies: 0,
        play,
        baseline: honest,
    }
}

const fn client(name: &'static str, threat: &'static str, play: fn(&mut Life)) -> Strategy {
    Strategy {
        cheat: &[Role::Client],
        honest: &[Role::Client],
        ..provider(name, threat, play)
    }
}

const fn challenger(name: &'static str, threat: &'static str, play: fn(&mut Life)) -> Strategy {
    Strategy {
        cheat: &[Role::Challenger],
        honest: &[Role::Challenger],
        ..provider(name, threat, play)
    }
}

const fn auditor(name: &'static str, threat: &'static str, play: fn(&mut Life)) -> Strategy {
    Strategy {
        cheat: &[Role::Crony],
        honest: &[Role::Crony],
        cronies: 1,
        ..provider(name, threat, play)
    }
}

/// A provider with verifiers of its own.
const fn drawing(name: &'static str, threat: &'static str, play: fn(&mut Life)) -> Strategy {
    Strategy {
        cheat: &[Role::Provider, Role::Crony],
        honest: &[Role::Provider, Role::Crony],
        cronies: 1,
        ..provider(name, threat, play)
    }
}

/// A provider with a client in front of it that resells, verifiers, and a challenger who is always first: of
/// a slash it loses the burned half.
const fn ring(name: &'static str, threat: &'static str, play: fn(&mut Life)) -> Strategy {
    Strategy {
        cheat: &[Role::Provider, Role::Client, Role::Crony, Role::Challenger],
        honest: &[Role::Provider, Role::Crony],
        ..provider(name, threat, play)
    }
}

/// All of them.
pub const STRATEGIES: &[Strategy] = &[
    provider("wrong result", "wrong result", providers::wrong_result),
    provider("one wrong item", "wrong items", providers::one_wrong_item),
    provider(
        "a tenth of the items",
        "wrong items",
        providers::a_tenth_of_the_items,
    ),
    provider("all items", "wrong items", providers::all_items),
    Strategy {
        baseline: providers::two_honest,
        ..provider("copying", "copying", providers::copying)
    },
    auditor("lazy auditor, guesses", "lazy auditor", auditors::guesses),
    auditor("lazy auditor, hides", "lazy auditor", auditors::hides),
    auditor("lazy auditor, no show", "lazy auditor", auditors::no_show),
    auditor(
        "aborting auditor",
        "aborting when an audit shows up",
        auditors::aborts,
    ),
    provider(
        "aborting provider",
        "aborting when an audit shows up",
        providers::aborts,
    ),
    auditor("false audit", "false disputes and delay", auditors::accuses),
    ring("collusion", "collusion of providers", providers::collusion),
    Strategy {
        cheat: &[Role::Provider],
        baseline: providers::sybils_honest,
        ..provider("sybils", "sybils", providers::sybils)
    },
    Strategy {
        baseline: bids::honest,
        ..provider("crowded bids", "crowding of bids", bids::lies)
    },
    Strategy {
        baseline: bids::honest,
        ..provider("cornered bids", "crowding of bids", bids::corners)
    },
    Strategy {
        cheat: &[Role::Client, Role::Challenger],
        ..client(
            "self-challenge",
            "self-challenge for refund",
            challengers::for_refund,
        )
    },
    Strategy {
        cheat: &[Role::Client, Role::Provider],
        ..provider("wash tasks", "wash tasks", clients::wash)
    },
    challenger(
        "false dispute",
        "false disputes and delay",
        challengers::false_dispute,
    ),
    challenger("delay", "false disputes and delay", challengers::delay),
    challenger(
        "asking for nothing",
        "false disputes and delay",
        showing::asks_for_nothing,
    ),
    client(
        "withheld input",
        "client withholding input",
        clients::withholds_input,
    ),
    provider(
        "withheld data",
        "provider withholding trace",
        providers::withholds_data,
    ),
    provider(
        "withheld trace",
        "provider withholding trace",
        providers::withholds_trace,
    ),
    provider(
        "withheld output",
        "withheld output in a dispute",
        showing::withholds_output,
    ),
    provider(
        "output shown when asked",
        "withheld output in a dispute",
        showing::shows_when_asked,
    ),
    provider(
        "withheld from auditors",
        "provider that serves auditors nothing",
        showing::withholds_from_auditors,
    ),
    provider(
        "shown to auditors on demand",
        "provider that serves auditors nothing",
        showing::shows_on_demand,
    ),
    provider(
        "two faces, a wrong one revealed",
        "two-faced data plane",
        showing::reveals_another,
    ),
    provider(
        "two faces, a wrong one served",
        "two-faced data plane",
        showing::serves_another,
    ),
    client(
        "denied delivery",
        "client denying delivery",
        clients::denies_delivery,
    ),
    provider("equivocation", "equivocation", providers::equivocates),
    Strategy {
        baseline: nothing,
        ..challenger(
            "front-run challenge",
            "front-run challenges",
            challengers::front_runs,
        )
    },
    ring("shield", "front-run challenges", challengers::shields),
    drawing("commit grinding", "commit grinding", draws::grinds_commitments),
    drawing(
        "key grinding",
        "keys and stake moved after the seed",
        draws::grinds_keys,
    ),
    drawing(
        "stake moving",
        "keys and stake moved after the seed",
        draws::moves_stake,
    ),
    drawing("crowding", "crowding of audit places", draws::crowds),
    drawing("crowding by work", "crowding by work", hostile::crowds_by_work),
    drawing(
        "hostile committee, votes",
        "hostile committees",
        hostile::votes_for_the_liar,
    ),
    drawing(
        "hostile committee, abstains",
        "hostile committees",
        hostile::abstains,
    ),
    drawing(
        "hostile committee, never opens",
        "hostile committees",
        hostile::shows_late,
    ),
    drawing(
        "hostile committee, dissolved",
        "hostile committees",
        hostile::dissolves,
    ),
    drawing(
        "withheld entropy",
        "withholding the entropy block",
        draws::withholds_entropy,
    ),
    Strategy {
        baseline: nothing,
        ..provider("squatted model, retired", "squatted models", models::retires)
    },
    drawing("squatted model, hurried", "squatted models", models::hurries),
    ring("censorship", "censorship of moves", providers::censors),
    provider(
        "auditor denial of service",
        "auditor denial of service after announcing",
        auditors::denial,
    ),
    provider("unbonding", "unbond before dispute", providers::unbonds),
    provider("replay", "replay on another chain or task", providers::replays),
    Strategy {
        baseline: nothing,
        ..client("storage spam", "storage spam", clients::spams)
    },
    challenger("weight abuse", "weight abuse", challengers::overloads),
    provider(
        "failed assignment",
        "griefing by failed assignment",
        providers::never_commits,
    ),
    Strategy {
        baseline: providers::opens_bid,
        ..provider("grind", "grind", providers::grinds_seats)
    },
    ring("flood", "flood", challengers::floods),
    ring(
        "conceding to a friend",
        "losing on purpose",
        providers::concedes_to_a_friend,
    ),
    ring(
        "running out of time",
        "losing on purpose",
        providers::runs_out_of_time,
    ),
    ring("late confirmer", "losing on purpose", providers::confirmed_late),
    provider(
        "lesser fault",
        "a lesser fault as a shield",
        providers::shields_itself_by_a_lesser_fault,
    ),
];

/// The one whose profit theory gives: a provider that saves its work and is its own finder and client.
pub const THEORY: Strategy = Strategy {
    cheat: &[Role::Provider, Role::Client, Role::Challenger],
    honest: &[Role::Provider],
    ..provider("theory", "collusion of providers", providers::alone_in_a_ring)
};

/// Honest providers among hostile others.
pub const HONEST: Strategy = Strategy {
    baseline: nothing,
    ..provider("honest among hostile", "honest", challengers::all_against_one)
};
