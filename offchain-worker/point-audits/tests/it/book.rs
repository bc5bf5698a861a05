//! A verifier's book against a chain that is small, random, and strict.

mod chain;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use codec::Encode;
use proptest::prelude::*;
use sp_core::H256;
use surety_audit_economics::channels::{ReceiptsInput, points_drawn, points_mean};
use surety_chain_client::{AccountId, VrfDraw};
use surety_channel_calls::Row;
use surety_point_audits::book::{Action, Book, Limits, Outcome, Purpose, Unserved, Verifier, Went, Work};
use surety_proofs::content_hash;

use chain::{BONDED, Chain, STASH, chain, draw, truth};

/// What happens to work that was begun.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Found,
    HalfFound,
    Unserved,
    Busy,
    Unable,
    /// At the first of them.
    Failed,
}

#[derive(Clone, Debug)]
struct Plan {
    /// By provider: the block of its batch, and the width of its windows.
    batches: Vec<(u32, u32, u32)>,
    /// In turn: how many blocks work takes, and what comes of it.
    work: Vec<(u32, Luck)>,
    /// In turn: whether a call gets in.
    gets_in: Vec<bool>,
    /// Blocks after which the program starts again, and whether its disk is lost.
    restarts: Vec<(u32, bool)>,
    /// Blocks in which it does not run.
    away: Range<u32>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let luck = prop_oneof![
        6 => Just(Luck::Found),
        2 => Just(Luck::HalfFound),
        2 => Just(Luck::Unserved),
        1 => Just(Luck::Busy),
        1 => Just(Luck::Unable),
        1 => Just(Luck::Failed),
    ];
    (
        prop::collection::vec((1..20u32, 4..20u32, 10..40u32), 1..8),
        prop::collection::vec((0..6u32, luck), 1..20),
        prop::collection::vec(prop::bool::weighted(0.8), 1..20),
        prop::collection::vec((1..60u32, any::<bool>()), 0..3),
    )
        .prop_map(|(batches, work, gets_in, restarts)| Plan {
            batches,
            work,
            gets_in,
            restarts,
            away: 0..0,
        })
}

fn verifier() -> Verifier {
    Verifier {
        stash: STASH,
        genesis: H256::zero(),
        secret: [7; 32],
        limits: Limits {
            margin: 1,
            working_max: 2,
            ..Limits::default()
        },
    }
}

fn outcome(work: &Work, luck: Luck) -> Outcome {
    let key = (work.view.provider.clone(), work.view.batch);
    let found = |count: usize| -> BTreeMap<u128, H256> {
        let open = work.open.iter().take(count);
        open.map(|(_, point)| (*point, truth(&key, *point))).collect()
    };
    let half = work.open.len() / 2;
    match luck {
        Luck::Found => Outcome {
            found: found(work.open.len()),
            ..Outcome::default()
        },
        Luck::HalfFound | Luck::Unserved | Luck::Busy => Outcome {
            found: found(if matches!(luck, Luck::HalfFound) { half } else { 0 }),
            unserved: Some(Unserved {
                place: work.open[half.min(work.open.len() - 1)].0,
                is_busy: matches!(luck, Luck::Busy),
            }),
            ..Outcome::default()
        },
        Luck::Unable => Outcome {
            unable: work.open.iter().take(half + 1).map(|(_, point)| *point).collect(),
            ..Outcome::default()
        },
        Luck::Failed => {
            let first = work.open[0].1;
            let mut rest = found(work.open.len());
            rest.remove(&first);
            Outcome {
                found: rest,
                failed: [first].into(),
                ..Outcome::default()
            }
        }
    }
}

fn live(plan: &Plan) -> Chain {
    let mut chain = chain(&plan.batches);
    let mut book = Book::new(verifier(), &[]).unwrap();
    let mut working: Vec<(u32, Box<Work>, Luck)> = Vec::new();
    let (mut work, mut gets_in) = (plan.work.iter().cycle(), plan.gets_in.iter().cycle());
    for block in 1..160 {
        chain.block = block;
        if plan.away.contains(&block) {
            continue;
        }
        if let Some((_, is_lost)) = plan.restarts.iter().find(|(at, _)| *at == block) {
            if *is_lost {
                chain.disk.clear();
                chain.is_disk_lost = true;
            }
            working.clear();
            let rows: Vec<Row> = chain.disk.values().cloned().collect();
            book = Book::new(verifier(), &rows).unwrap();
        }
        let (over, still) = working.into_iter().partition(|(until, ..)| *until <= block);
        working = still;
        for (_, done, luck) in over {
            let key = (done.view.provider.clone(), done.view.batch);
            if let Some(row) = book.worked(&key, done.seed, outcome(&done, luck)) {
                chain.disk.insert(row.key.clone(), row);
                book.written(&key);
            }
        }
        let sight = chain.sight();
        for action in book.see(&sight, &draw) {
            match action {
                Action::Work(begun) => {
                    let (takes, luck) = *work.next().unwrap();
                    working.push((block + takes + 1, begun, luck));
                    assert!(working.len() <= 2, "more at once than may be");
                }
                Action::Send(purpose, call) => {
                    if *gets_in.next().unwrap() {
                        chain.apply(*call);
                        book.went(&purpose, Went::Done);
                    } else {
                        book.went(&purpose, Went::Later);
                    }
                    assert!(!matches!(purpose, Purpose::Dispute(..) | Purpose::Report(_)));
                }
                Action::Forget(row) => drop(chain.disk.remove(&row.key)),
            }
        }
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What the chain asserts holds whatever happens; what was announced is opened and paid, where it can be
    /// computed again after a loss.
    #[test]
    fn a_verifier_keeps_its_promises(plan in plan()) {
        let chain = live(&plan);
        let is_lossy = plan.restarts.iter().any(|(_, is_lost)| *is_lost);
        let is_lucky = plan.gets_in.iter().all(|gets_in| *gets_in);
        if is_lucky && !is_lossy {
            prop_assert!(chain.announced.is_empty(), "something announced was not paid");
            // Nothing is kept for ever.
            prop_assert!(chain.disk.is_empty());
        }
    }

    /// Where all is served and sent at once, each batch that a point falls on is audited and paid.
    #[test]
    fn whatever_can_be_audited_is(batches in prop::collection::vec((1..20u32, 10..20u32, 10..40u32), 1..6)) {
        let plan = Plan {
            batches,
            work: vec![(0, Luck::Found)],
            gets_in: vec![true],
            restarts: Vec::new(),
            away: 0..0,
        };
        let chain = live(&plan);
        for (key, view) in &chain.batches {
            let seed = H256::from_low_u64_be(view.batch.into());
            let output = draw(&ReceiptsInput { seed, provider: key.0.clone(), batch: key.1 }).unwrap().output;
            let mean = points_mean(view.rate, view.window.root.sums.price, BONDED, 100);
            prop_assert_eq!(chain.ended.contains(key), points_drawn(&output, mean) > 0);
        }
    }
}

/// All that is sent gets in, of a batch of block 1.
fn alone(windows: (u32, u32), luck: Luck) -> Plan {
    Plan {
        batches: vec![(1, windows.0, windows.1)],
        work: vec![(0, luck)],
        gets_in: vec![true],
        restarts: Vec::new(),
        away: 0..0,
    }
}

#[test]
fn who_has_lost_its_disk_opens_what_it_has_announced() {
    let mut plan = alone((10, 40), Luck::Found);
    plan.restarts = vec![(6, true)];
    assert_eq!(live(&plan).ended.len(), 1);
}

#[test]
fn who_was_away_until_its_batch_was_final_opens_and_is_paid_as_long_as_the_chain_takes_it() {
    let ended = |back: u32, is_lost: bool| {
        // It can be announced until 11, disputed until 15, and opened until 41.
        let mut plan = alone((10, 4), Luck::Found);
        (plan.away, plan.restarts) = (12..back, vec![(back, is_lost)]);
        let chain = live(&plan);
        assert_eq!(chain.ended.len() + chain.announced.len(), 1);
        chain.ended.len()
    };
    assert_eq!(
        [(30, false), (30, true), (42, false)].map(|(at, is_lost)| ended(at, is_lost)),
        [1, 1, 0]
    );
}

#[test]
fn what_is_never_served_is_demanded_all_at_once_and_nothing_is_announced() {
    let chain = live(&alone((15, 40), Luck::Unserved));
    assert!(chain.ended.is_empty() && chain.announced.is_empty() && chain.demands.is_empty());
    assert_eq!(chain.demanded_at.len(), 1);
    assert!(chain.demanded.len() > 1, "{:?}", chain.demanded);
}

/// The block in which something is demanded of a provider that always says this, of a batch of block 1 that
/// can be announced until block 41.
fn demanded_at(luck: Luck) -> Vec<u32> {
    live(&alone((40, 40), luck)).demanded_at.into_iter().collect()
}

#[test]
fn a_provider_that_restarts_has_half_of_the_time_before_something_is_demanded() {
    let at = demanded_at(Luck::Unserved);
    assert!(matches!(at[..], [at] if (21..40).contains(&at)), "{at:?}");
}

#[test]
fn of_a_provider_that_is_only_busy_something_is_demanded_when_there_is_no_time_left() {
    assert_eq!(demanded_at(Luck::Busy), [41]);
}

#[test]
fn what_a_machine_fails_at_is_tried_again_and_only_then_announced_as_not_computed() {
    let mut plan = alone((40, 40), Luck::Failed);
    let chain = live(&plan);
    assert_eq!((chain.ended.len(), chain.unpaid), (1, 1));
    // It has had half of the time.
    let at = &chain.announced_at;
    assert!(at.iter().all(|at| *at > 20), "{at:?}");
    plan.work.push((0, Luck::Found));
    let chain = live(&plan);
    assert_eq!((chain.ended.len(), chain.unpaid), (1, 0));
}

#[test]
fn what_a_machine_has_failed_at_is_demanded_where_it_is_not_shown_any_more() {
    let mut plan = alone((40, 40), Luck::Failed);
    plan.work.extend([(0, Luck::Unserved); 100]);
    let chain = live(&plan);
    assert_eq!(chain.demanded.len(), 1, "{:?}", chain.demanded);
}

#[test]
fn what_cannot_be_computed_is_tried_again_after_a_restart_unless_it_may_be_announced() {
    let mut chain = chain(&[(1, 40, 40)]);
    let mut begun = |book: &mut Book| {
        let from = chain.block + 1;
        (from..41).find_map(|block| {
            chain.block = block;
            let mut actions = book.see(&chain.sight(), &draw).into_iter();
            actions.find_map(|action| match action {
                Action::Work(work) => Some(*work),
                _ => None,
            })
        })
    };
    let mut book = Book::new(verifier(), &[]).unwrap();
    let work = begun(&mut book).unwrap();
    let key = (work.view.provider.clone(), work.view.batch);
    let (first, last) = (work.open[0].1, work.open[work.open.len() - 1].1);
    let unable = |found: Outcome| Outcome {
        unable: [first].into(),
        ..found
    };
    let mut part = outcome(&work, Luck::Found);
    part.found.retain(|point, _| ![first, last].contains(point));
    let row = book.worked(&key, work.seed, unable(part));
    // Nothing is announced: a point is open.
    let rows: Vec<Row> = row.into_iter().collect();
    let mut book = Book::new(verifier(), &rows).unwrap();
    let work = begun(&mut book).unwrap();
    let open = |work: &Work| work.open.iter().map(|(_, point)| *point).collect::<Vec<_>>();
    assert_eq!(open(&work), [first, last]);
    let mut rest = outcome(&work, Luck::Found);
    rest.found.remove(&first);
    let row = book.worked(&key, work.seed, unable(rest)).unwrap();
    let mut book = Book::new(verifier(), &[row]).unwrap();
    assert!(begun(&mut book).is_none());
}

#[test]
fn verifiers_begin_at_places_of_their_own_in_the_first_quarter_of_the_time() {
    let begin = |verifier: u8| {
        let draw = |input: &ReceiptsInput<AccountId>| {
            let drawn = draw(input)?;
            let output = content_hash(&(verifier, drawn.output).encode()).0;
            Some(VrfDraw { output, ..drawn })
        };
        let mut chain = chain(&[(1, 40, 40)]);
        let mut book = Book::new(self::verifier(), &[]).unwrap();
        (1..41).find(|block| {
            chain.block = *block;
            let actions = book.see(&chain.sight(), &draw);
            actions.iter().any(|action| matches!(action, Action::Work(_)))
        })
    };
    // Who draws nothing does not begin.
    let begun: BTreeSet<u32> = (0..40).filter_map(begin).collect();
    assert!(begun.len() > 5, "{begun:?}");
    assert!(begun.iter().all(|at| (2..=11).contains(at)), "{begun:?}");
}
