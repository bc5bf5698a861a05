//! Rows and memory, shared out between clients.

use surety_engine::serving::{Load, Refusal};

use super::*;

/// Bytes that a job takes.
fn needs(decoder: &Arc<ExactLlama>, job: &Job) -> u64 {
    let none = Limits {
        bytes_max: 0,
        ..LIMITS
    };
    let batcher = Batcher::new(decoder.clone(), none);
    match batcher.handle().submit(client(0), job).err() {
        Some(Refusal::TooLarge { needs, has: 0 }) => needs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_with_a_hundred_requests_does_not_delay_one_of_another() {
    let decoder = endless();
    let long = job(&ids(1, 100), drawn(100));
    let (prompt, added) = (24, 10);
    let short = job(&ids(2, prompt), drawn(added as u32));
    let limits = Limits {
        bytes_max: 8 * needs(&decoder, &long),
        client_bytes_max: 4 * needs(&decoder, &long),
        step_rows: 8,
        ..LIMITS
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let handle = batcher.handle();
    let mut many: Vec<TokenStream> = (0..100)
        .map(|_| handle.submit(client(1), &long).unwrap())
        .collect();
    for _ in 0..50 {
        batcher.step();
        many.iter_mut().for_each(|stream| drop(take(stream, usize::MAX)));
    }
    // What one client may have is used up.
    assert_eq!(
        handle.load(),
        Load {
            waiting: 96,
            bytes: limits.client_bytes_max
        }
    );
    let mut one = handle.submit(client(2), &short).unwrap();
    let (mut steps, mut tokens) = (0, Vec::new());
    while tokens.len() < added {
        batcher.step();
        steps += 1;
        tokens.extend(take(&mut one, usize::MAX));
        many.iter_mut().for_each(|stream| drop(take(stream, usize::MAX)));
    }
    // Of two clients it has half of the rows, as far as it can use them: the last piece of its prompt gives
    // the first token, and each step after it another.
    assert_eq!(steps, prompt.div_ceil(limits.step_rows / 2) + added - 1);
    let ended = finish(&mut batcher, one);
    assert_eq!(ended.outcome, Some(alone(&decoder, &short)));
}

#[test]
fn a_long_prompt_does_not_stall_others() {
    let decoder = endless();
    let limits = Limits {
        step_rows: 8,
        ..LIMITS
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let handle = batcher.handle();
    let mut talking = handle.submit(client(1), &job(&ids(1, 4), drawn(60))).unwrap();
    batcher.step();
    assert_eq!(take(&mut talking, 9).len(), 1);
    // Of the same client, which has no more rows for it.
    let mut reading = handle.submit(client(1), &job(&ids(2, 200), drawn(2))).unwrap();
    for _ in 0..200usize.div_ceil(7) {
        assert!(take(&mut reading, 9).is_empty());
        batcher.step();
        assert_eq!(take(&mut talking, 9).len(), 1);
    }
    assert_eq!(take(&mut reading, 9).len(), 1);
}

#[test]
fn clients_begin_in_turn_when_memory_is_scarce() {
    let decoder = endless();
    let asked = job(&ids(1, 10), drawn(5));
    let limits = Limits {
        bytes_max: needs(&decoder, &asked),
        ..LIMITS
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let handle = batcher.handle();
    let mut streams: Vec<(u8, TokenStream)> = [1, 1, 1, 1, 2, 3, 3]
        .into_iter()
        .map(|number| (number, handle.submit(client(number), &asked).unwrap()))
        .collect();
    let mut begun = Vec::new();
    while !streams.is_empty() {
        batcher.step();
        // Each leaves with its first tokens.
        streams.retain_mut(|(number, stream)| {
            let has_begun = !take(stream, 9).is_empty();
            begun.extend(has_begun.then_some(*number));
            !has_begun
        });
    }
    assert_eq!(begun, [1, 2, 3, 1, 3, 1, 1]);
}

#[test]
fn what_cannot_be_taken_is_refused_with_a_reason() {
    let decoder = endless();
    let asked = job(&ids(1, 10), drawn(5));
    let needs = needs(&decoder, &asked);
    let limits = Limits {
        bytes_max: 3 * needs,
        client_bytes_max: needs,
        waiting_max: 3,
        client_waiting_max: 2,
        ..LIMITS
    };
    let mut batcher = Batcher::new(decoder.clone(), limits);
    let handle = batcher.handle();
    let submit = |number, job| handle.submit(client(number), job);

    let larger = job(&ids(1, 200), drawn(50));
    let refused = submit(1, &larger).err();
    assert!(
        matches!(refused, Some(Refusal::TooLarge { needs: more, has }) if more > needs && has == needs),
        "{refused:?}"
    );
    let nothing = Job {
        input: vec![0; 24],
        ..asked.clone()
    };
    let refused = submit(1, &nothing).err();
    assert!(
        matches!(refused, Some(Refusal::Job(EngineError::Untraceable(_)))),
        "{refused:?}"
    );

    let _runs = submit(1, &asked).unwrap();
    batcher.step();
    let (_waits, leaves) = (submit(1, &asked).unwrap(), submit(1, &asked).unwrap());
    let refused = submit(1, &asked).err();
    assert!(
        matches!(refused, Some(Refusal::ClientBusy { limit: 2 })),
        "{refused:?}"
    );
    let _other = submit(2, &asked).unwrap();
    let refused = submit(3, &asked).err();
    assert!(matches!(refused, Some(Refusal::Busy { limit: 3 })), "{refused:?}");
    // Who leaves makes room.
    drop(leaves);
    let late = submit(3, &asked).unwrap();

    drop(batcher);
    assert!(matches!(submit(3, &asked).err(), Some(Refusal::Closed)));
    let mut late = pin!(late.finish());
    match poll(late.as_mut()) {
        Poll::Ready(Ok(ended)) => assert_eq!((ended.end, ended.outcome), (End::Cut, None)),
        other => panic!("{other:?}"),
    }
}
