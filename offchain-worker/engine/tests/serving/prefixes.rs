//! Prefixes that come again.

use super::*;

/// Runs a job, and counts the tokens that went through the model for its first one.
fn read(batcher: &mut Batcher, number: u8, job: &Job) -> (usize, Ended) {
    let mut stream = batcher.handle().submit(client(number), job).unwrap();
    let mut rows = 0;
    while take(&mut stream, 1).is_empty() {
        assert!(batcher.step());
        rows += 1;
    }
    (rows, finish(batcher, stream))
}

fn batcher(decoder: &Arc<ExactLlama>, prefix_bytes_max: u64) -> Batcher {
    // A row a step, so that rows can be counted.
    let limits = Limits {
        prefix_bytes_max,
        step_rows: 1,
        ..LIMITS
    };
    Batcher::new(decoder.clone(), limits)
}

fn tokens(ended: &Ended) -> Vec<u32> {
    common::generating::generation(ended.outcome.as_ref().unwrap()).tokens
}

#[test]
fn a_conversation_goes_on_from_where_it_was() {
    let decoder = endless();
    let mut batcher = batcher(&decoder, 1 << 20);
    let first = ids(1, 40);
    let (rows, ended) = read(&mut batcher, 1, &job(&first, drawn(8)));
    assert_eq!(rows, 40);
    let second = [first, tokens(&ended), ids(2, 10)].concat();
    let asked = job(&second, drawn(8));
    let (rows, ended) = read(&mut batcher, 1, &asked);
    // What is new, and the last token of the answer.
    assert_eq!(rows, 11);
    assert_eq!(ended.outcome, Some(alone(&decoder, &asked)));
    // Nobody else can tell that it has been asked.
    let (rows, ended) = read(&mut batcher, 2, &asked);
    assert_eq!(rows, second.len());
    assert_eq!(ended.outcome, Some(alone(&decoder, &asked)));
}

#[test]
fn what_two_prompts_have_in_common_is_kept_for_the_third() {
    let decoder = endless();
    let mut batcher = batcher(&decoder, 1 << 20);
    let common = ids(1, 30);
    for (then, expected) in [(2, 50), (3, 50), (4, 20), (5, 20)] {
        // They differ behind it.
        let prompt = [common.clone(), vec![then], ids(then.into(), 19)].concat();
        let asked = job(&prompt, drawn(5));
        let (rows, ended) = read(&mut batcher, 1, &asked);
        assert_eq!(rows, expected);
        assert_eq!(ended.outcome, Some(alone(&decoder, &asked)));
    }
}

#[test]
fn a_prompt_that_comes_again_is_computed_but_for_its_last_token() {
    let decoder = endless();
    let mut batcher = batcher(&decoder, 1 << 20);
    let asked = job(&ids(1, 40), drawn(5));
    for expected in [40, 40, 1] {
        let (rows, ended) = read(&mut batcher, 1, &asked);
        assert_eq!(rows, expected);
        assert_eq!(ended.outcome, Some(alone(&decoder, &asked)));
    }
}

#[test]
fn the_least_recently_used_prefix_leaves_when_there_is_no_room() {
    let decoder = endless();
    // Each takes 179 kB.
    let mut batcher = batcher(&decoder, 400_000);
    let prompts = [1, 2, 3].map(|seed| ids(seed, 40));
    let answers: Vec<Vec<u32>> = prompts
        .iter()
        .map(|prompt| tokens(&read(&mut batcher, 1, &job(prompt, drawn(8))).1))
        .collect();
    let mut go_on = |at: usize| {
        let prompt = [prompts[at].clone(), answers[at].clone(), vec![0]].concat();
        read(&mut batcher, 1, &job(&prompt, drawn(1))).0
    };
    assert_eq!(go_on(2), 2);
    // The one of the first prompt has left, and the second one's for what was read last.
    assert_eq!(go_on(0), 49);
    assert_eq!(go_on(1), 49);
}
