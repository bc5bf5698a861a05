//! Readers that are slow, leave, or want no more.

use surety_engine::{generation::FinishReason, serving::Load};

use super::*;

#[test]
fn a_reader_that_is_behind_pauses_its_own_generation_alone() {
    let decoder = endless();
    let jobs = [job(&ids(1, 10), drawn(30)), job(&ids(2, 10), drawn(30))];
    let mut batcher = Batcher::new(decoder.clone(), LIMITS);
    let [mut slow, quick] = jobs
        .each_ref()
        .map(|job| batcher.handle().submit(client(1), job).unwrap());
    let ended = finish(&mut batcher, quick);
    assert_eq!(ended.outcome, Some(alone(&decoder, &jobs[1])));
    // Nothing is left to do until somebody reads.
    assert!(!batcher.step());
    assert_eq!(take(&mut slow, 99).len(), LIMITS.ahead_max);
    assert!(batcher.step());
    assert!(take(&mut slow, 99).len() == 1 && batcher.step());
    let ended = finish(&mut batcher, slow);
    assert_eq!(ended.outcome, Some(alone(&decoder, &jobs[0])));
}

#[test]
fn a_cancelled_answer_is_what_its_reader_has_taken_and_passes_its_audit() {
    let decoder = endless();
    let asked = job(&ids(1, 10), drawn(30));
    for taken in [0, 1, 7] {
        let mut batcher = Batcher::new(decoder.clone(), LIMITS);
        let mut stream = batcher.handle().submit(client(1), &asked).unwrap();
        let mut tokens = Vec::new();
        while tokens.len() < taken {
            batcher.step();
            tokens.extend(take(&mut stream, taken - tokens.len()));
        }
        // It is ahead of its reader.
        batcher.step();
        batcher.step();
        let ended = run_until(&mut batcher, stream.cancel()).unwrap();
        assert_eq!(ended.end, End::Cancelled);
        assert_eq!(ended.outcome, cut(&decoder, &asked, taken));
        if let Some(outcome) = ended.outcome {
            let so_many = Job {
                units_max: outcome.claim.units,
                ..asked.clone()
            };
            let audited = decoder.audit(&so_many, &outcome.output, &mut quiet).unwrap();
            assert_eq!(audited, outcome.claim);
        }
    }
}

#[test]
fn an_answer_that_was_done_before_it_was_cancelled_ends_where_its_reader_is() {
    let decoder = endless();
    let asked = job(&ids(1, 10), drawn(4));
    for (taken, end) in [
        (0, End::Cancelled),
        (3, End::Cancelled),
        (4, End::Finished(FinishReason::Length)),
    ] {
        let mut batcher = Batcher::new(decoder.clone(), LIMITS);
        let mut stream = batcher.handle().submit(client(1), &asked).unwrap();
        while batcher.step() {}
        assert_eq!(take(&mut stream, taken).len(), taken);
        let ended = run_until(&mut batcher, stream.cancel()).unwrap();
        assert_eq!((ended.end, ended.outcome), (end, cut(&decoder, &asked, taken)));
    }
}

#[test]
fn who_leaves_gives_its_memory_back() {
    let decoder = endless();
    let asked = job(&ids(1, 10), drawn(100));
    let mut batcher = Batcher::new(decoder.clone(), LIMITS);
    let handle = batcher.handle();
    let streams = [(); 3].map(|()| handle.submit(client(1), &asked).unwrap());
    batcher.step();
    let [left, cancelled, done] = streams;
    let whole = handle.load().bytes / 3;
    drop(left);
    batcher.step();
    assert_eq!(handle.load().bytes, 2 * whole);
    run_until(&mut batcher, cancelled.cancel()).unwrap();
    assert_eq!(handle.load().bytes, whole);
    finish(&mut batcher, done);
    assert_eq!(handle.load(), Load::default());
}

#[test]
fn an_answer_that_nobody_has_fetched_keeps_the_memory_of_its_trace() {
    let decoder = endless();
    let asked = job(&ids(1, 100), drawn(3));
    let mut batcher = Batcher::new(decoder.clone(), LIMITS);
    let handle = batcher.handle();
    let stream = handle.submit(client(1), &asked).unwrap();
    batcher.step();
    let whole = handle.load().bytes;
    while batcher.step() {}
    let trace = handle.load().bytes;
    assert!(0 < trace && trace < whole / 4, "{trace} of {whole}");
    drop(stream);
    assert_eq!(handle.load(), Load::default());
}
