//! One state without a task ends no promise.

use surety_worker_core::Failure;

use super::*;

fn finished(steps: impl IntoIterator<Item = Step>) -> usize {
    let records = steps.into_iter().flat_map(|step| step.records);
    records
        .filter(|record| matches!(record, Record::Finished { .. }))
        .count()
}

/// A provider that has committed to a result which it has not opened.
fn committed() -> (Provider, TaskSnapshot) {
    let salt = H256([5; 32]);
    let hash = commitment(1, &stash(), &claim(1), &salt);
    let made = Record::ResultMade {
        task: 1,
        at: 9,
        claim: claim(1),
        salt,
        commitment: hash,
    };
    let phase = RoundPhase::Revealing { until: 20 };
    (
        provider(vec![made]),
        running(1, MemberProgress::Committed(hash), phase),
    )
}

#[test]
fn empty_states_do_not_make_a_provider_forget_what_it_has_to_open() {
    let (mut provider, seen) = committed();
    assert_eq!(
        kinds(&see(&mut provider, 10, vec![seen.clone()])),
        [EffectKind::Reveal]
    );
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Reveal,
        failure: Failure::Refused,
    };
    provider.step(10, failed);
    // Beyond its window, so that the task could be over for all we know; it is tried again all the same.
    let again = see(&mut provider, 11, Vec::new());
    assert_eq!(kinds(&again), [EffectKind::Reveal]);
    let steps: Vec<_> = (12..40)
        .map(|block| see(&mut provider, block, Vec::new()))
        .collect();
    assert_eq!(finished(steps), 0);
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Reveal,
        failure: Failure::Failed,
    };
    provider.step(40, failed);
    assert_eq!(kinds(&see(&mut provider, 42, vec![seen])), [EffectKind::Reveal]);
}

#[test]
fn a_restart_before_an_empty_state_forgets_nothing() {
    let (mut provider, seen) = committed();
    for block in 9..30 {
        assert_eq!(see(&mut provider, block, Vec::new()), Step::default());
    }
    assert_eq!(kinds(&see(&mut provider, 30, vec![seen])), [EffectKind::Reveal]);
}

#[test]
fn what_stays_away_is_over_at_last() {
    let (mut provider, seen) = committed();
    see(&mut provider, 10, vec![seen]);
    // The same state again says nothing new.
    assert_eq!(finished((0..100).map(|_| see(&mut provider, 11, Vec::new()))), 0);
    assert_eq!(
        finished((12..100).map(|block| see(&mut provider, block, Vec::new()))),
        1
    );
    assert_eq!(provider.progress().count(), 0);
}

#[test]
fn work_goes_on_through_three_states_without_the_task_and_stops_after_four() {
    let mut provider = provider(Vec::new());
    assert_eq!(
        kinds(&see(&mut provider, 10, vec![working(1)])),
        [EffectKind::Fetch]
    );
    for block in 11..14 {
        assert_eq!(see(&mut provider, block, Vec::new()), Step::default());
    }
    assert_eq!(kinds(&see(&mut provider, 14, Vec::new())), [EffectKind::Cancel]);
    assert_eq!(
        kinds(&see(&mut provider, 15, vec![working(1)])),
        [EffectKind::Fetch]
    );
}

#[test]
fn what_was_taken_for_finished_is_taken_up_again_when_the_chain_waits_for_its_opening() {
    let (_, seen) = committed();
    let mut mistaken = provider(vec![Record::Finished { task: 1, at: 9 }]);
    assert_eq!(kinds(&see(&mut mistaken, 10, vec![seen])), [EffectKind::Fetch]);
}

#[test]
fn what_cannot_be_read_is_not_over_however_long() {
    let (mut provider, seen) = committed();
    see(&mut provider, 10, vec![seen.clone()]);
    let steps = (11..200).map(|block| see_part(&mut provider, block, Vec::new(), vec![1]));
    assert_eq!(finished(steps.collect::<Vec<_>>()), 0);
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Reveal,
        failure: Failure::Failed,
    };
    provider.step(200, failed);
    assert_eq!(kinds(&see(&mut provider, 202, vec![seen])), [EffectKind::Reveal]);
}

#[test]
fn work_goes_on_while_a_task_cannot_be_read() {
    let mut provider = provider(Vec::new());
    see(&mut provider, 10, vec![working(1)]);
    for block in 11..60 {
        assert_eq!(
            see_part(&mut provider, block, Vec::new(), vec![1]),
            Step::default()
        );
    }
}
