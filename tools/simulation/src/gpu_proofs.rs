//! Providers whose devices are not what they say, measured by the benchmark of `surety-gpu-proofs`: what is
//! drawn, which rows depend on which, and how long a measurement counts is that crate's; devices, networks
//! and blocks are modelled.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sp_core::H256;
use surety_dispute_game::testsuite::dice::Dice;
use surety_exact::SplitMix64;
use surety_gpu_proofs::{BATCHES, Job, PARENTS, Place, Plan, Standing, draw};

/// Time for a run, in milliseconds, from the block that completes its seed.
pub const WINDOW_MS: u64 = 60_000;

/// Time of a block, in milliseconds.
const SLOT_MS: u64 = 2_000;

/// A call that was sent in time for a block is in the next one as often.
const CROWDED: f64 = 0.1;

/// Rows of the state: 1 GiB.
const ROWS: u32 = 1 << 20;

/// Who claims what.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Providers that share a device.
    pub names: u32,
    /// What each of them claims of what the device can do in the whole window. What there is no time for is
    /// made up.
    pub each: f64,
    /// Whether one that sees that there is no time for all sends nothing, rather than make rows up.
    pub is_honest: bool,
    /// Whether the names take turns, a round each.
    pub takes_turns: bool,
    /// Whether what counts without a round passed is not bounded, as it is by [`Standing`].
    pub every_other_may_be_missed: bool,
    /// Part of the blocks whose authors leave its commitments out.
    pub censored: f64,
}

impl Claim {
    /// One name that makes up what it has no time for.
    pub const fn of(each: f64) -> Self {
        Self {
            names: 1,
            each,
            is_honest: false,
            takes_turns: false,
            every_other_may_be_missed: false,
            censored: 0.0,
        }
    }

    /// One that claims what it can.
    pub const fn honest(each: f64) -> Self {
        Self {
            is_honest: true,
            ..Self::of(each)
        }
    }

    /// So many names that share a device.
    pub const fn shared(names: u32, each: f64) -> Self {
        Self {
            names,
            ..Self::of(each)
        }
    }
}

/// How a claim went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Part of the rounds in which a name committed to something in time.
    pub in_time: f64,
    /// Part of the rounds that a name has passed.
    pub passed: f64,
    /// What is shown of all names together, on average over time, in parts of what the device can do.
    pub shown: f64,
}

/// Plays so many rounds.
pub fn play(claim: Claim, seed: u64, rounds: u32) -> Outcome {
    let mut dice = Dice::new(seed, u64::from(claim.names) << 32 | (claim.each * 1e6) as u64);
    let plan = Plan {
        rows: ROWS,
        layers: 1_000,
    };
    let mut standings: Vec<Option<Standing>> = vec![None; claim.names as usize];
    let (mut in_time, mut passed, mut shown) = (0u32, 0u32, 0.0);
    for round in 0..rounds {
        let turn = round % claim.names;
        let runs = if claim.takes_turns { 1 } else { claim.names };
        for (name, standing) in (0u32..).zip(&mut standings) {
            if claim.takes_turns && name != turn {
                continue;
            }
            // Until the last block that is in time there are so many milliseconds, for all who share it.
            let hears = 50 + u64::from(dice.below(550));
            let sends = 100 + u64::from(dice.below(900));
            let mut blocks_late = u64::from(dice.chance(CROWDED));
            while dice.chance(claim.censored) {
                blocks_late += 1;
            }
            // Authors give the times of their blocks: that of the last slot is in time as often as not.
            let last = WINDOW_MS - u64::from(dice.chance(0.5));
            let whole = claim.each * WINDOW_MS as f64 * f64::from(runs);
            let there = (WINDOW_MS - hears - sends) as f64;
            let part = if claim.is_honest {
                1.0
            } else {
                (there / whole).min(1.0)
            };
            let sent = hears + (whole * part) as u64 + sends;
            let included = (sent.div_ceil(SLOT_MS) + blocks_late) * SLOT_MS;
            if included > last {
                continue;
            }
            in_time += 1;
            let entropy = dice.hash();
            let made_up = ((1.0 - part) * 1e9) as u64;
            let is_made_up = |place: Place| {
                let number = u64::from(place.layer) << 32 | u64::from(place.row);
                SplitMix64::new(number ^ u64::from(name) << 60).below(1_000_000_000) < made_up
            };
            let is_right = draw(plan, &entropy, round, &name)
                .iter()
                .all(|sample| !is_made_up(sample.place));
            if is_right {
                passed += 1;
                let before = standing.filter(|standing| standing.holds(round));
                *standing = Some(Standing::passed(before, round, true));
            } else {
                *standing = None;
            }
        }
        let holds = |standing: &Standing| {
            let over = round + 1;
            standing.holds(over) || claim.every_other_may_be_missed && standing.missed(over) <= 1
        };
        let counted = standings
            .iter()
            .flatten()
            .filter(|standing| holds(standing))
            .count();
        shown += counted as f64 * claim.each;
    }
    let all = f64::from(rounds) * f64::from(claim.names);
    Outcome {
        in_time: f64::from(in_time) / all,
        passed: f64::from(passed) / all,
        shown: shown / f64::from(rounds),
    }
}

/// Which rows somebody drops who cannot hold all that will be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// Those that are read last.
    LastRead,
    /// Those of whose parents the most will be there when they are read: they are computed anew at the least
    /// cost.
    Cheapest,
}

/// What a run costs, in runs, when only so many rows can be held from batch to batch. Whoever plays it has as
/// much as it wants beside that, while it computes a batch.
pub fn cost_of_holding(rows: u32, layers: u32, held: usize, drops: Drops) -> f64 {
    let plan = Plan { rows, layers };
    let job = Job::new(plan, &H256::repeat_byte(5));
    let batch_rows = plan.batch_rows();
    let batch_of = |place: Place| (place.layer - 1) * BATCHES + place.row / batch_rows;
    let parents: BTreeMap<Place, [Place; PARENTS]> = (1..=layers)
        .flat_map(|layer| (0..rows).map(move |row| Place { layer, row }))
        .map(|place| (place, job.parents(place)))
        .collect();
    // When each row is read, the last time first.
    let mut reads: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
    for (place, parents) in parents.iter().rev() {
        for parent in parents {
            reads.entry(*parent).or_default().push(batch_of(*place));
        }
    }
    let mut memory: BTreeSet<Place> = BTreeSet::new();
    let mut computed = 0u64;
    for batch in 0..plan.batches() {
        let layer = batch / BATCHES + 1;
        let first = batch % BATCHES * batch_rows;
        let new = (first..first + batch_rows).map(|row| Place { layer, row });
        // What has to be computed anew for this batch: what is not held, and what that takes.
        let mut anew: BTreeSet<Place> = BTreeSet::new();
        let mut open: Vec<Place> = new
            .clone()
            .filter_map(|place| parents.get(&place))
            .flatten()
            .copied()
            .collect();
        while let Some(place) = open.pop() {
            // Layer 0 is generated.
            if place.layer > 0 && !memory.contains(&place) && anew.insert(place) {
                open.extend(parents.get(&place).into_iter().flatten());
            }
        }
        computed += anew.len() as u64 + u64::from(batch_rows);
        memory.extend(anew);
        memory.extend(new);
        let next_read = |place: &Place| {
            let reads = reads.get(place)?;
            reads.iter().rev().find(|read| **read > batch).copied()
        };
        let last_read = |place: &Place| reads.get(place).and_then(|reads| reads.first()).copied();
        // Parents that are not there any more when the row is read.
        let lacks = |place: &Place, read: u32| {
            let parents = parents.get(place).into_iter().flatten();
            let is_there = |parent: &Place| {
                parent.layer == 0 || memory.contains(parent) && last_read(parent) >= Some(read)
            };
            parents.filter(|parent| !is_there(parent)).count() as u32
        };
        // What is worth most to hold comes first.
        let mut needed: Vec<(u32, u32, Place)> = memory
            .iter()
            .filter_map(|place| {
                let read = next_read(place)?;
                Some(match drops {
                    Drops::LastRead => (read, 0, *place),
                    Drops::Cheapest => (PARENTS as u32 - lacks(place, read), read, *place),
                })
            })
            .collect();
        needed.sort_unstable();
        memory = needed.into_iter().take(held).map(|(_, _, place)| place).collect();
    }
    computed as f64 / (f64::from(rows) * f64::from(layers))
}

/// The least of both ways.
pub fn least_cost_of_holding(rows: u32, layers: u32, held: usize) -> f64 {
    let cost = |drops| cost_of_holding(rows, layers, held, drops);
    cost(Drops::LastRead).min(cost(Drops::Cheapest))
}

/// The least part of a state that has to be held when a layer is over, if nothing is computed anew: rows that
/// will be read, or in the place of some what is gathered of them for rows all of whose parents are there.
pub fn least_held(rows: u32) -> f64 {
    let layer = 1;
    let job = Job::new(Plan { rows, layers: 8 }, &H256::repeat_byte(5));
    let mut complete: Vec<[Place; PARENTS]> = Vec::new();
    let mut held: BTreeSet<u32> = BTreeSet::new();
    for row in 0..rows {
        let parents = job.parents(Place {
            layer: layer + 1,
            row,
        });
        let there = parents.iter().filter(|parent| parent.layer == layer);
        if there.clone().count() == PARENTS {
            complete.push(parents);
        } else {
            held.extend(there.map(|parent| parent.row));
        }
    }
    // Of rows that are read by such alone, and those: the fewest of which every reading has one (Konig), as
    // many as can be paired.
    let mut reader_of: BTreeMap<u32, usize> = BTreeMap::new();
    let paired = (0..complete.len())
        .filter(|reader| pair(*reader, &complete, &held, &mut reader_of, &mut BTreeSet::new()))
        .count();
    (held.len() + paired) as f64 / f64::from(rows)
}

/// Finds a reader a row of its own, by giving others another one.
fn pair(
    reader: usize,
    complete: &[[Place; PARENTS]],
    held: &BTreeSet<u32>,
    reader_of: &mut BTreeMap<u32, usize>,
    seen: &mut BTreeSet<u32>,
) -> bool {
    let parents = complete.get(reader).into_iter().flatten();
    for Place { row, .. } in parents {
        if held.contains(row) || !seen.insert(*row) {
            continue;
        }
        let other = reader_of.get(row).copied();
        if other.is_none_or(|other| pair(other, complete, held, reader_of, seen)) {
            reader_of.insert(*row, reader);
            return true;
        }
    }
    false
}

/// The chance that all authors of some consecutive blocks are one party's, which has so much of the stake.
pub fn all_authors(part: f64, authors: u32) -> f64 {
    part.powi(authors as i32)
}

/// Everything, as tables.
pub fn report(seed: u64, rounds: u32) -> Value {
    let row = |name: String, claim: Claim| {
        let outcome = play(claim, seed, rounds);
        json!({
            "provider": name,
            "claims": claim.each * f64::from(claim.names),
            "in_time": outcome.in_time,
            "passed": outcome.passed,
            "shown": outcome.shown,
        })
    };
    let mut table = Vec::new();
    for each in [0.7, 0.8, 0.85, 0.9, 0.95] {
        table.push(row("honest".into(), Claim::honest(each)));
    }
    for censored in [0.1, 1.0 / 3.0] {
        let claim = Claim {
            censored,
            ..Claim::honest(0.87)
        };
        let name = format!("honest, {censored:.2} of the authors leave it out");
        table.push(row(name, claim));
    }
    table.push(row(
        "absent: a processor for a device 20 times as fast".into(),
        Claim::of(20.0),
    ));
    for each in [1.05, 1.1, 1.25, 1.5, 2.0] {
        table.push(row("smaller".into(), Claim::of(each)));
    }
    for each in [0.4, 0.5, 0.6, 0.8, 0.9] {
        table.push(row(
            "borrowed: two names, one device".into(),
            Claim::shared(2, each),
        ));
    }
    let turns = Claim {
        takes_turns: true,
        is_honest: true,
        ..Claim::shared(2, 0.8)
    };
    table.push(row("borrowed, by turns".into(), turns));
    let lax = Claim {
        every_other_may_be_missed: true,
        ..turns
    };
    table.push(row(
        "borrowed, by turns, if every other round might be missed".into(),
        lax,
    ));
    let (rows, layers) = (1_024, 8);
    let memory = [1.0, 0.9, 0.8, 0.75, 0.7, 0.6, 0.5].map(|part| {
        let held = (f64::from(rows) * part) as usize;
        json!({ "held": part, "runs": least_cost_of_holding(rows, layers, held) })
    });
    json!({ "providers": table, "memory": memory, "least_held": least_held(4_096) })
}
