//! A provider that serves auditors of items no leaves of its trace.

use surety_types::trust::{Content, ContentPart, Demand, FaultKind};
use surety_worker_core::{Record, key_of};

use super::{
    wholes::{compared, computing, items, large, read, revealed, sampled, to_open, verifier_for},
    *,
};

/// Leaves can be demanded from block 20, in which the provider has revealed, to this one.
const UNTIL: u32 = 100;

fn comparing() -> EffectKind {
    EffectKind::CompareAudit(key_of(&provider()))
}

fn demanding() -> EffectKind {
    EffectKind::DemandLeaves(key_of(&provider()))
}

fn demandable(id: u64, seal: H256) -> TaskSnapshot {
    let mut task = to_open(id, seal);
    task.round.as_mut().unwrap().demands_until = Some(UNTIL);
    task
}

/// The chain shows our demand.
fn demanded(id: u64, seal: H256) -> TaskSnapshot {
    with_demand(demandable(id, seal))
}

fn with_demand(mut task: TaskSnapshot) -> TaskSnapshot {
    let (content, part) = (Content::Leaves, 0);
    let demand = Demand {
        demander: stash(),
        by: AccountId::new([8; 32]),
        parts: vec![ContentPart { content, part }].try_into().unwrap(),
        price: 1,
        until: 600,
    };
    task.demands = vec![(provider(), demand)];
    task.round.as_mut().unwrap().demands = 1;
    task
}

/// Has an audit of items sealed.
fn sealed_for(room: u32) -> (Verifier, Vec<Record>, H256) {
    let mut verifier = verifier_for(room, Vec::new());
    let first = see(&mut verifier, 10, vec![sampled(1)]);
    draw(&mut verifier, first, |_| true);
    let audits = read(&mut verifier, 1, 50);
    assert_eq!(computing(&audits), [(1, false)]);
    let (seal, journal) = seal(&mut verifier, 1);
    (verifier, journal, seal)
}

fn seal(verifier: &mut Verifier, task: u64) -> (H256, Vec<Record>) {
    let ready = Event::AuditReady {
        task,
        provider: provider(),
        found: items(),
    };
    let journal = verifier.step(12, ready).records;
    match journal[..] {
        [Record::ItemsAudited { seal, .. }] => (seal, journal),
        ref other => panic!("{other:?}"),
    }
}

/// Nothing is served in these blocks. Returns which demand was made in which block, what else was begun
/// before, and how often leaves were looked for.
fn starved(
    verifier: &mut Verifier,
    task: &TaskSnapshot,
    blocks: std::ops::Range<u32>,
) -> (Option<u32>, Vec<(u64, bool)>, usize) {
    let (mut begun, mut looked) = (Vec::new(), 0);
    for block in blocks {
        let mut started = see(verifier, block, vec![task.clone()]);
        while let Some(effect) = started.pop() {
            let kind = effect.kind();
            if kind == demanding() {
                assert!(matches!(&effect, Effect::SubmitLeavesDemand { items, .. } if items.len() == 3));
                return (Some(block), begun, looked);
            }
            begun.extend(computing(std::slice::from_ref(&effect)));
            if kind == comparing() {
                looked += 1;
                started.extend(fails(verifier, block, kind, Failure::Failed));
            }
        }
    }
    (None, begun, looked)
}

fn fails(verifier: &mut Verifier, block: u32, kind: EffectKind, failure: Failure) -> Vec<Effect> {
    let failed = Event::EffectFailed {
        task: 1,
        kind,
        failure,
    };
    effects(&verifier.step(block, failed))
}

fn demand_is_in_a_block(verifier: &mut Verifier, block: u32) {
    let kind = demanding();
    let done = Event::EffectDone {
        task: 1,
        kind,
        block: Some(block),
    };
    verifier.step(block, done);
}

fn opens(effects: &[Effect]) -> bool {
    let is_opening =
        |effect: &Effect| matches!(effect, Effect::SubmitItemsReveal { answer, .. } if answer.agrees);
    effects.iter().any(is_opening)
}

#[test]
fn what_is_not_served_is_demanded_waited_for_compared_and_opened_and_nothing_else_is_computed() {
    let (mut verifier, _, seal) = sealed_for(10);
    let (at, begun, looked) = starved(&mut verifier, &demandable(1, seal), 20..UNTIL);
    assert!(at.is_some_and(|at| at < 60), "{at:?}");
    assert_eq!((begun, looked), (vec![], 5));
    demand_is_in_a_block(&mut verifier, 60);
    // Until the chain shows it, it may be there without a demand.
    see(&mut verifier, 61, vec![demandable(1, seal)]);
    for block in 62..UNTIL + 50 {
        let started = see(&mut verifier, block, vec![demanded(1, seal)]);
        let waits = |effect: &Effect| effect.kind() != comparing() && effect.kind() != demanding();
        assert!(
            computing(&started).is_empty() && started.iter().all(waits),
            "{started:?}"
        );
    }
    // It was shown when nothing can be demanded any more.
    let shown = see(&mut verifier, UNTIL + 50, vec![demandable(1, seal)]);
    assert!(
        shown.iter().any(|effect| effect.kind() == comparing()),
        "{shown:?}"
    );
    let step = verifier.step(UNTIL + 51, compared(1, EffectKind::CompareAudit, true, None));
    assert!(opens(&effects(&step)));
}

#[test]
fn who_answers_slowly_is_waited_for_until_half_of_the_time_for_demands_is_over() {
    let (mut verifier, _, seal) = sealed_for(10);
    let task = demandable(1, seal);
    let first = see(&mut verifier, 20, vec![task.clone()]);
    assert!(
        first.iter().any(|effect| effect.kind() == comparing()),
        "{first:?}"
    );
    for block in 21..60 {
        assert_eq!(see(&mut verifier, block, vec![task.clone()]), []);
    }
    let late = see(&mut verifier, 60, vec![task]);
    let stops = |effect: &Effect| matches!(effect, Effect::Cancel { kind, .. } if *kind == comparing());
    assert!(late.iter().any(stops), "{late:?}");
    assert!(late.iter().any(|effect| effect.kind() == demanding()), "{late:?}");
}

#[test]
fn a_restart_waits_for_what_was_demanded_and_demands_nothing_twice() {
    let (mut verifier, journal, seal) = sealed_for(10);
    assert!(
        starved(&mut verifier, &demandable(1, seal), 20..UNTIL)
            .0
            .is_some()
    );
    let mut verifier = verifier_for(10, journal);
    for block in 70..UNTIL {
        let (at, begun, looked) = starved(&mut verifier, &demanded(1, seal), block..block + 1);
        assert_eq!((at, begun, looked), (None, vec![], 0));
    }
    let shown = see(&mut verifier, UNTIL + 5, vec![demandable(1, seal)]);
    assert!(
        shown.iter().any(|effect| effect.kind() == comparing()),
        "{shown:?}"
    );
    let step = verifier.step(UNTIL + 6, compared(1, EffectKind::CompareAudit, true, None));
    assert!(opens(&effects(&step)));
}

#[test]
fn who_is_convicted_for_showing_nothing_leaves_nothing_to_compute_or_to_open() {
    let (mut verifier, _, seal) = sealed_for(10);
    starved(&mut verifier, &demandable(1, seal), 20..UNTIL);
    demand_is_in_a_block(&mut verifier, 60);
    see(&mut verifier, 61, vec![demanded(1, seal)]);
    let mut convicted = demandable(1, seal);
    convicted.round.as_mut().unwrap().members[0].fault = Some(FaultKind::WithheldData);
    let (at, begun, looked) = starved(&mut verifier, &convicted, UNTIL + 500..UNTIL + 900);
    assert_eq!((at, begun, looked), (None, vec![], 5));
}

#[test]
fn where_the_time_for_demands_was_missed_or_the_chain_takes_none_all_is_computed() {
    let (_, journal, seal) = sealed_for(10);
    let mut verifier = verifier_for(10, journal);
    let (at, begun, _) = starved(&mut verifier, &demandable(1, seal), UNTIL..UNTIL + 100);
    assert_eq!((at, begun), (None, vec![(1, true)]));

    let (mut verifier, _, seal) = sealed_for(10);
    let task = demandable(1, seal);
    let at = starved(&mut verifier, &task, 20..UNTIL).0.unwrap();
    let next = fails(&mut verifier, at, demanding(), Failure::Permanent);
    assert_eq!(computing(&next), [(1, true)]);
    assert_eq!(starved(&mut verifier, &task, at + 1..UNTIL).0, None);
}

/// A small task on a machine that computes all of it in no time.
fn fast(room: u32) -> (Verifier, H256) {
    let (mut verifier, _, seal) = sealed_for(room);
    let measured = Event::Measured {
        model: H256([2; 32]),
        operation: Operation::Embed,
        units: 1_000_000,
        millis: 10_000,
    };
    verifier.step(13, measured);
    (verifier, seal)
}

#[test]
fn what_costs_less_to_compute_than_to_demand_is_computed() {
    let (mut verifier, seal) = fast(10);
    let (at, begun, looked) = starved(&mut verifier, &demandable(1, seal), 20..UNTIL);
    assert_eq!((at, begun, looked), (None, vec![(1, true)], 5));
    let step = verifier.step(UNTIL, compared(1, EffectKind::CompareAll, true, None));
    assert!(opens(&effects(&step)));
}

#[test]
fn what_costs_less_to_compute_is_demanded_where_computing_fails() {
    let (mut verifier, seal) = fast(10);
    let task = demandable(1, seal);
    let whole = EffectKind::CompareAll(key_of(&provider()));
    let (mut computed, mut demanded) = (0, false);
    for block in 20..UNTIL {
        let mut started = see(&mut verifier, block, vec![task.clone()]);
        while let Some(effect) = started.pop() {
            let kind = effect.kind();
            demanded |= kind == demanding();
            computed += u32::from(kind == whole);
            if kind == comparing() || kind == whole {
                started.extend(fails(&mut verifier, block, kind, Failure::Failed));
            }
        }
    }
    assert_eq!((computed, demanded), (5, true));
}

#[test]
fn dust_with_silent_providers_fills_nobody_whose_leaves_can_be_demanded() {
    const DUST: u64 = 40;
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    // Hours of work each, of which three items are ours.
    let mut tasks: Vec<_> = (1..=DUST).map(large).collect();
    let all = 10_800 * 512;
    let first = see(&mut verifier, 10, tasks.clone());
    let (mut begun, _) = draw(&mut verifier, first, |_| true);
    let mut sealed = Vec::new();
    while let Some(effect) = begun.pop() {
        let task = effect.task();
        match effect {
            Effect::FetchAudit { .. } => begun.extend(read(&mut verifier, task, all)),
            Effect::Audit { .. } => {
                let ready = Event::AuditReady {
                    task,
                    provider: provider(),
                    found: items(),
                };
                let step = verifier.step(12, ready);
                if let [Record::ItemsAudited { seal, .. }] = step.records[..] {
                    sealed.push((task, seal));
                }
                begun.extend(effects(&step));
            }
            _ => {}
        }
    }
    assert_eq!(sealed.len() as u64, DUST);
    // Nor while what is demanded of all of them is not shown, whatever time there is left for it.
    for (task, seal) in sealed {
        let mut shown = revealed(large(task), seal);
        shown.round.as_mut().unwrap().demands_until = Some(12);
        tasks[task as usize - 1] = with_demand(shown);
    }
    tasks.push(large(DUST + 1));
    let first = see(&mut verifier, 13, tasks);
    let (begun, _) = draw(&mut verifier, first, |_| true);
    let is_next = |effect: &Effect| matches!(effect, Effect::FetchAudit { task, .. } if *task == DUST + 1);
    assert!(begun.iter().any(is_next));
    assert_eq!(
        computing(&read(&mut verifier, DUST + 1, all)),
        [(DUST + 1, false)]
    );
}
