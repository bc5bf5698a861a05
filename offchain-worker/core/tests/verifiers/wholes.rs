//! Audits of items of which all may have to be computed: their providers show nothing, and the time to demand
//! that was missed.

use surety_types::{ContentHash, trust::ItemFound};
use surety_worker_core::{KeptView, Record};

use super::*;

/// Milliseconds that one of its items takes.
const ITEM_MILLIS: u64 = 1_000;
/// That of fifty.
const ALL_SECONDS: u32 = 50;

/// A task of fifty items, three of them ours.
pub fn sampled(id: u64) -> TaskSnapshot {
    let mut task = auditing(id, 1_000);
    let round = task.round.as_mut().unwrap();
    round.members[0].audits.items = 3;
    task
}

/// A verifier that knows how fast it is, and has room for so many wholes.
pub fn verifier_for(wholes: u32, journal: Vec<Record>) -> Verifier {
    let mut verifier = Verifier::new(config(), journal).unwrap();
    let measured = Event::Measured {
        model: H256([2; 32]),
        operation: Operation::Embed,
        units: 10,
        millis: 10 * ITEM_MILLIS,
    };
    verifier.step(1, measured);
    // Three quarters of it are filled.
    let seconds = wholes * ALL_SECONDS * 4 / 3 + 1;
    verifier.step(1, Event::OpeningWindow { seconds });
    verifier
}

pub fn fetches(effects: &[Effect]) -> Vec<u64> {
    let fetches = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::FetchAudit { .. }));
    fetches.map(Effect::task).collect()
}

pub fn items() -> Found {
    let found = ItemFound {
        leaves: ContentHash::repeat_byte(1),
        row: ContentHash::repeat_byte(2),
    };
    Found::Items(vec![found; 3].try_into().unwrap())
}

/// The input of a task is here, of so many tokens.
pub fn read(verifier: &mut Verifier, task: u64, tokens: u64) -> Vec<Effect> {
    let input = Event::AuditInput {
        task,
        provider: provider(),
        tokens,
    };
    effects(&verifier.step(11, input))
}

/// Has an audit sealed. Returns the seal.
fn seal_items(verifier: &mut Verifier, journal: &mut Vec<Record>, task: u64) -> H256 {
    let kind = EffectKind::FetchAudit(surety_worker_core::key_of(&provider()));
    verifier.step(
        11,
        Event::EffectDone {
            task,
            kind,
            block: None,
        },
    );
    let ready = Event::AuditReady {
        task,
        provider: provider(),
        found: items(),
    };
    let step = verifier.step(12, ready);
    journal.extend(step.records.clone());
    let mut seals = effects(&step).into_iter().filter_map(|effect| match effect {
        Effect::SubmitAnnouncement { seal, task: of, .. } => (of == task).then_some(seal),
        _ => None,
    });
    seals.next_back().unwrap()
}

/// The provider has revealed, and the seal is on the chain.
pub fn to_open(id: u64, seal: H256) -> TaskSnapshot {
    revealed(sampled(id), seal)
}

pub fn revealed(mut task: TaskSnapshot, seal: H256) -> TaskSnapshot {
    let round = task.round.as_mut().unwrap();
    round.members[0].progress = MemberProgress::Revealed(claim());
    let verdict = Verdict::Failed(FailureReason::NoAgreement);
    round.phase = RoundPhase::Challengeable { until: 400, verdict };
    round.openings_until = Some(5_000);
    with_audit(round, AuditState::Sealed(seal));
    task
}

/// That a seal was held against what its provider shows, in one of the two ways.
pub fn compared(task: u64, by: fn(H256) -> EffectKind, agrees: bool, view: Option<KeptView>) -> Event {
    Event::AuditCompared {
        task,
        kind: by(surety_worker_core::key_of(&provider())),
        provider: provider(),
        agrees,
        view,
    }
}

#[test]
fn no_more_audits_are_begun_while_wholes_that_can_no_longer_be_demanded_take_the_time_for_openings() {
    let mut verifier = verifier_for(4, Vec::new());
    let tasks: Vec<_> = (1..=10).map(sampled).collect();
    let first = see(&mut verifier, 10, tasks.clone());
    let (begun, _) = draw(&mut verifier, first, |_| true);
    assert_eq!(fetches(&begun), [1, 2, 3, 4, 5, 6, 7, 8]);
    let mut journal = Vec::new();
    let seals: Vec<_> = (1..=4)
        .map(|task| seal_items(&mut verifier, &mut journal, task))
        .collect();

    // Nothing can be demanded of these four any more.
    let mut seen = tasks.clone();
    for (task, seal) in seals.iter().enumerate() {
        seen[task] = to_open(task as u64 + 1, *seal);
    }
    assert_eq!(fetches(&see(&mut verifier, 14, seen.clone())), [0; 0]);
    // What is compared makes room for the items of others, which can be demanded.
    let compared = compared(2, EffectKind::CompareAudit, true, None);
    let begun = effects(&verifier.step(15, compared));
    assert_eq!(fetches(&begun), [5, 6, 7, 8, 9]);
    assert_eq!(computing(&read(&mut verifier, 5, 50)), [(5, false)]);
    read(&mut verifier, 6, 50);
    let ready = Event::AuditReady {
        task: 5,
        provider: provider(),
        found: items(),
    };
    assert_eq!(computing(&effects(&verifier.step(16, ready))), [(6, false)]);

    // A restart knows what it has promised.
    let mut verifier = verifier_for(4, journal);
    let first = see(&mut verifier, 20, seen);
    let (begun, _) = draw(&mut verifier, first, |_| true);
    assert_eq!(fetches(&begun), [0; 0]);
}

#[test]
fn an_audit_that_is_played_about_with_what_was_shown_makes_room_and_one_that_takes_all_does_not() {
    let view = KeptView {
        leaves: H256::repeat_byte(1),
        output: H256::repeat_byte(2),
        differs: None,
    };
    for (view, next) in [(None, vec![]), (Some(view), vec![5, 6, 7, 8, 9])] {
        let mut verifier = verifier_for(4, Vec::new());
        let tasks: Vec<_> = (1..=10).map(sampled).collect();
        let first = see(&mut verifier, 10, tasks.clone());
        draw(&mut verifier, first, |_| true);
        let mut journal = Vec::new();
        let mut seen = tasks;
        for task in 1..=4 {
            let seal = seal_items(&mut verifier, &mut journal, task);
            seen[task as usize - 1] = to_open(task, seal);
        }
        see(&mut verifier, 14, seen.clone());
        let compared = compared(2, EffectKind::CompareAudit, false, view);
        let step = verifier.step(15, compared);
        journal.extend(step.records.clone());
        let mut begun = effects(&step);
        seen[1].round.as_mut().unwrap().audits[0].state = AuditState::Differs;
        begun.extend(see(&mut verifier, 16, seen.clone()));
        assert_eq!(fetches(&begun), next[..]);

        let mut verifier = verifier_for(4, journal);
        let first = see(&mut verifier, 20, seen);
        let (begun, _) = draw(&mut verifier, first, |_| true);
        assert_eq!(fetches(&begun), next[..]);
    }
}

/// Ten thousand items of a model that the chain takes for one of 700 tokens a second.
pub fn large(id: u64) -> TaskSnapshot {
    let mut task = sampled(id);
    task.task.spec.units_max = 10_800;
    task.task.audits.item_tokens = 512;
    task.task.audits.speed = 700_000;
    task
}

#[test]
fn audits_of_all_are_begun_whatever_may_have_to_be_computed_later() {
    let mut verifier = verifier_for(1, Vec::new());
    let mut tasks: Vec<_> = (1..=3).map(sampled).collect();
    for task in &mut tasks[1..] {
        task.round.as_mut().unwrap().members[0].audits.items = u32::MAX;
    }
    let first = see(&mut verifier, 10, tasks);
    let (begun, _) = draw(&mut verifier, first, |_| true);
    assert_eq!(fetches(&begun), [1, 2, 3]);
}

/// What takes the machine, of what was started.
pub fn computing(effects: &[Effect]) -> Vec<(u64, bool)> {
    let computing = effects.iter().filter_map(|effect| match effect {
        Effect::CompareAll { task, .. } => Some((*task, true)),
        Effect::Audit { task, .. } => Some((*task, false)),
        _ => None,
    });
    computing.collect()
}

/// Lets providers show nothing until nothing more is asked of them. Returns how often they were asked, and
/// what was computed instead.
fn look_in_vain(verifier: &mut Verifier, seen: &[TaskSnapshot]) -> (usize, Vec<(u64, bool)>) {
    let (mut looked, mut begun) = (0, Vec::new());
    for block in 20..200 {
        let mut started = see(verifier, block, seen.to_vec());
        while let Some(effect) = started.pop() {
            begun.extend(computing(std::slice::from_ref(&effect)));
            if let Effect::CompareAudit { task, .. } = effect {
                looked += 1;
                let (kind, failure) = (effect.kind(), Failure::Failed);
                let failed = Event::EffectFailed { task, kind, failure };
                started.extend(effects(&verifier.step(block, failed)));
            }
        }
    }
    (looked, begun)
}

#[test]
fn an_answer_that_comes_late_after_all_stops_the_computing_of_all() {
    let mut verifier = verifier_for(10, Vec::new());
    let first = see(&mut verifier, 10, vec![sampled(1)]);
    draw(&mut verifier, first, |_| true);
    let seal = seal_items(&mut verifier, &mut Vec::new(), 1);
    let (_, begun) = look_in_vain(&mut verifier, &[to_open(1, seal)]);
    assert_eq!(begun, [(1, true)]);
    let late = compared(1, EffectKind::CompareAudit, true, None);
    let next = effects(&verifier.step(200, late));
    let kind = EffectKind::CompareAll(surety_worker_core::key_of(&provider()));
    assert!(next.contains(&Effect::Cancel { task: 1, kind }), "{next:?}");
    let is_opening =
        |effect: &Effect| matches!(effect, Effect::SubmitItemsReveal { answer, .. } if answer.agrees);
    assert!(next.iter().any(is_opening), "{next:?}");
}

#[test]
fn silent_providers_are_compared_whole_one_after_the_other_and_before_new_audits() {
    let mut verifier = verifier_for(10, Vec::new());
    let first = see(&mut verifier, 10, (1..=3).map(sampled).collect());
    draw(&mut verifier, first, |_| true);
    let mut journal = Vec::new();
    let seals: Vec<_> = (1..=3)
        .map(|task| seal_items(&mut verifier, &mut journal, task))
        .collect();
    let mut seen: Vec<_> = (1..).zip(seals).map(|(task, seal)| to_open(task, seal)).collect();
    let (looked, begun) = look_in_vain(&mut verifier, &seen);
    assert_eq!((looked, begun.len()), (15, 1), "{begun:?}");

    // A new one that has to be done much sooner.
    let mut urgent = auditing(4, 500);
    urgent.round.as_mut().unwrap().members[0].audits.items = u32::MAX;
    seen.push(urgent);
    let first = see(&mut verifier, 200, seen);
    let (fetched, _) = draw(&mut verifier, first, |_| true);
    assert_eq!(fetches(&fetched), [4]);
    let kind = fetched[0].kind();
    let mut started = effects(&verifier.step(
        200,
        Event::EffectDone {
            task: 4,
            kind,
            block: None,
        },
    ));
    let mut order = begun;
    for _ in 0..3 {
        assert_eq!(computing(&started), [(0, false); 0]);
        let (task, is_whole) = *order.last().unwrap();
        assert!(is_whole);
        let compared = compared(task, EffectKind::CompareAll, true, None);
        started = effects(&verifier.step(201, compared));
        order.extend(computing(&started));
        started.clear();
    }
    order.sort_unstable();
    assert_eq!(order, [(1, true), (2, true), (3, true), (4, false)]);
}
