//! A provider that serves an auditor nothing before the reveal.

use surety_types::{
    limits::{INPUT_BYTES_MAX, PART_BYTES},
    trust::{Content, ContentPart, Demand},
};
use surety_worker_core::key_of;

use super::{
    served::{Auditor, failed, fetch, fetched, found, generating, report},
    *,
};

/// The first audit window lasts from block 10, when we draw ourselves, to this one.
const UNTIL: u32 = 50;

fn unserved() -> TaskSnapshot {
    let mut task = generating();
    let round = task.round.as_mut().unwrap();
    round.phase = RoundPhase::Auditing { until: UNTIL };
    round.demands_until = Some(UNTIL);
    task
}

/// The prompt has one part, so the longest answer has three.
fn everything() -> Vec<ContentPart> {
    let input = [(Content::Input, 0)].into_iter();
    let all = input.chain((0..3).map(|part| (Content::Output, part)));
    all.map(|(content, part)| ContentPart { content, part }).collect()
}

/// The chain shows our demand.
fn demanded() -> TaskSnapshot {
    let mut task = unserved();
    let demand = Demand {
        demander: stash(),
        by: AccountId::new([8; 32]),
        parts: everything().try_into().unwrap(),
        price: 1,
        until: 90,
    };
    task.demands = vec![(provider(), demand)];
    task.round.as_mut().unwrap().demands = 1;
    task
}

fn fetching() -> EffectKind {
    EffectKind::FetchAudit(key_of(&provider()))
}

/// Nothing is served in these blocks. Returns the first in which it is demanded.
fn starved(auditor: &mut Auditor, blocks: std::ops::Range<u32>) -> Option<u32> {
    auditor.hear(blocks.start, failed(fetching(), Failure::Refused));
    for block in blocks {
        let mut started = auditor.see(block, &unserved());
        while let Some(effect) = started.pop() {
            match effect {
                Effect::SubmitDemand { parts, proof, .. } => {
                    assert_eq!(parts.to_vec(), everything());
                    assert!(proof.is_some());
                    return Some(block);
                }
                effect => started.extend(auditor.hear(block, failed(effect.kind(), Failure::Refused))),
            }
        }
    }
    None
}

fn shown(output: u8) -> Event {
    Event::AuditShown {
        task: 1,
        provider: provider(),
        output: H256([output; 32]),
    }
}

#[test]
fn what_is_not_served_for_a_third_of_the_window_is_demanded_fetched_and_sealed() {
    let mut auditor = Auditor::new();
    assert_eq!(starved(&mut auditor, 11..UNTIL), Some(24));
    let kind = EffectKind::Demand(key_of(&provider()));
    auditor.hear(
        31,
        Event::EffectDone {
            task: 1,
            kind,
            block: None,
        },
    );
    // While it is open it is waited for.
    for block in 32..UNTIL {
        let started = auditor.see(block, &demanded());
        let stops = |effect: &Effect| matches!(effect, Effect::Cancel { kind, .. } if *kind == fetching());
        assert!(started.iter().all(stops), "{started:?}");
    }
    // Once it is shown, the window begins again, and no pause keeps us from fetching it.
    let mut task = unserved();
    task.round.as_mut().unwrap().phase = RoundPhase::Auditing { until: 100 };
    assert_eq!(auditor.see(60, &task).last(), Some(&fetch(None)));
    let audits = auditor.hear(61, shown(7));
    assert!(
        matches!(&audits[..], [Effect::Audit { output: Some(output), .. }] if *output == H256([7; 32])),
        "{audits:?}"
    );
    let ready = Event::AuditReady {
        task: 1,
        provider: provider(),
        found: Found::Whole(found(7)),
    };
    let sealed = auditor.hear(62, ready);
    assert!(
        matches!(&sealed[..], [Effect::SubmitAnnouncement { .. }]),
        "{sealed:?}"
    );
}

#[test]
fn a_verifier_that_was_restarted_waits_for_a_third_of_what_is_left_and_demands_once() {
    let mut auditor = Auditor::new();
    assert_eq!(starved(&mut auditor, 11..24), None);
    auditor.restart();
    let first = auditor.see(24, &unserved());
    draw(&mut auditor.verifier, first, |_| true);
    let at = starved(&mut auditor, 25..UNTIL).unwrap();
    assert!((30..UNTIL).contains(&at), "{at}");
    // The chain knows of it, whatever we know.
    auditor.restart();
    let first = auditor.see(41, &demanded());
    draw(&mut auditor.verifier, first, |_| true);
    for block in 42..UNTIL {
        assert_eq!(auditor.see(block, &demanded()), []);
    }
}

#[test]
fn a_verifier_that_was_restarted_after_the_window_waits_for_what_it_has_demanded() {
    let mut auditor = Auditor::new();
    starved(&mut auditor, 11..UNTIL).unwrap();
    auditor.see(40, &demanded());
    auditor.restart();
    let first = auditor.see(UNTIL + 5, &demanded());
    draw(&mut auditor.verifier, first, |_| true);
    let mut shown = unserved();
    shown.round.as_mut().unwrap().phase = RoundPhase::Auditing { until: 100 };
    assert_eq!(auditor.see(UNTIL + 30, &shown).last(), Some(&fetch(None)));
}

#[test]
fn what_is_served_in_time_is_not_demanded() {
    let mut auditor = Auditor::new();
    auditor.hear(11, fetched(7));
    for block in 12..UNTIL {
        let started = auditor.see(block, &unserved());
        let is_demand = |effect: &Effect| matches!(effect, Effect::SubmitDemand { .. });
        assert!(!started.iter().any(is_demand), "{started:?}");
    }
}

#[test]
fn what_is_not_ours_or_can_no_longer_be_demanded_is_not() {
    let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
    let first = see(&mut verifier, 10, vec![unserved()]);
    draw(&mut verifier, first, |_| false);
    for block in 11..UNTIL {
        assert_eq!(see(&mut verifier, block, vec![unserved()]), []);
    }
    let mut auditor = Auditor::new();
    let mut again = unserved();
    again.round.as_mut().unwrap().phase = RoundPhase::Auditing { until: 100 };
    for block in UNTIL..100 {
        for effect in auditor.see(block, &again) {
            assert!(!matches!(effect, Effect::SubmitDemand { .. }));
            auditor.hear(block, failed(effect.kind(), Failure::Failed));
        }
    }
}

#[test]
fn all_of_an_input_of_embeddings_is_demanded_however_long() {
    for (input_bytes, expected) in [(20_000, 3), (INPUT_BYTES_MAX, INPUT_BYTES_MAX / PART_BYTES)] {
        let mut task = unserved();
        task.task.spec.operation = Operation::Embed;
        task.task.spec.input_bytes = input_bytes;
        let mut verifier = Verifier::new(config(), Vec::new()).unwrap();
        let first = see(&mut verifier, 10, vec![task.clone()]);
        for effect in draw(&mut verifier, first, |_| true).0 {
            verifier.step(10, failed(effect.kind(), Failure::Refused));
        }
        let mut parts = None;
        for block in 11..UNTIL {
            for effect in see(&mut verifier, block, vec![task.clone()]) {
                if let Effect::SubmitDemand { parts: demanded, .. } = &effect {
                    parts = Some(demanded.len());
                }
                verifier.step(block, failed(effect.kind(), Failure::Refused));
            }
        }
        assert_eq!(parts, Some(expected as usize), "{input_bytes}");
    }
}

#[test]
fn who_shows_another_output_than_it_has_signed_is_reported_and_not_audited() {
    let mut auditor = Auditor::new();
    auditor.hear(11, fetched(7));
    auditor.restart();
    let first = auditor.see(12, &unserved());
    draw(&mut auditor.verifier, first, |_| true);
    assert_eq!(auditor.hear(13, shown(8)), [report(7, None)]);
}
