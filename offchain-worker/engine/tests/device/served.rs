//! Continuous batching on a device.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use surety_engine::{
    Dropped, Outcome,
    serving::{Batcher, ClientKey, Limits, TokenStream},
};

use super::*;

/// Runs steps until all have ended. Their tokens are taken as they come.
fn finish(batcher: &mut Batcher, mut streams: Vec<TokenStream>) -> Vec<Option<Outcome>> {
    let context = &mut Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        for stream in &mut streams {
            while let Poll::Ready(Some(_)) = pin!(stream.next()).poll(context) {}
        }
        if !batcher.step() {
            break;
        }
    }
    let ended = streams.into_iter().map(|stream| {
        let Poll::Ready(ended) = pin!(stream.finish()).poll(context) else {
            panic!("it does not end");
        };
        ended.unwrap().outcome
    });
    ended.collect()
}

/// Side by side, behind kept prefixes, and cut off: each as if it were alone on the processor.
#[test]
fn generations_that_share_a_device_are_as_if_each_were_alone() {
    let weights = short(synthetic::llama(4, true));
    let here = decoder(&weights);
    let there = Arc::new(decoder(&weights).on(&emulated()).unwrap());
    let limits = Limits {
        step_rows: 16,
        ahead_max: 4,
        ..Limits::default()
    };
    let mut batcher = Batcher::new(there, limits);
    let jobs = [
        ("", 5),
        ("Once upon a time there was", 6),
        ("Once upon a time there were", 4),
    ]
    .map(|(prompt, max_tokens)| job(&request(prompt, max_tokens)));
    let expected: Vec<_> = jobs
        .iter()
        .map(|job| Some(here.run(job, &mut quiet).unwrap()))
        .collect();
    // In the third, what two of them begin with is known.
    for round in 0..3 {
        let submit = |job| batcher.handle().submit(ClientKey([1; 32]), job).unwrap();
        let streams = jobs.iter().map(submit).collect();
        assert_eq!(finish(&mut batcher, streams), expected, "round {round}");
    }
}

/// A batcher on a device that fails when it is told to, whoever's tokens it holds against the processor.
fn served(weights: &LlamaWeights, looked_at: usize) -> (Batcher, Devices, Switch) {
    let (machine, fails) = Failing::new(Emulator::start(Order::Forwards));
    let devices = Device::on(machine, "one that fails").unwrap().into();
    let there = Arc::new(decoder(weights).on(&devices).unwrap());
    let limits = Limits {
        ahead_max: 4,
        looked_at,
        ..Limits::default()
    };
    (Batcher::new(there, limits), devices, fails)
}

/// Tokens that are there now.
fn heard(stream: &mut TokenStream) -> Vec<u32> {
    let context = &mut Context::from_waker(Waker::noop());
    let mut tokens = Vec::new();
    while let Poll::Ready(Some(token)) = pin!(stream.next()).poll(context) {
        tokens.push(token);
    }
    tokens
}

/// Runs steps until there is something of each stream, or nothing to do.
fn begin(batcher: &mut Batcher, streams: &mut [TokenStream]) -> Vec<Vec<u32>> {
    let mut tokens = vec![Vec::new(); streams.len()];
    while tokens.iter().any(Vec::is_empty) && batcher.step() {
        for (tokens, stream) in tokens.iter_mut().zip(&mut *streams) {
            tokens.extend(heard(stream));
        }
    }
    tokens
}

/// Runs steps until nothing is left to do: what else came of each stream, and how it ended.
fn end(
    batcher: &mut Batcher,
    streams: Vec<TokenStream>,
    tokens: &mut [Vec<u32>],
) -> Vec<Result<Option<Outcome>, EngineError>> {
    let mut streams = streams;
    while batcher.step() {
        for (tokens, stream) in tokens.iter_mut().zip(&mut streams) {
            tokens.extend(heard(stream));
        }
    }
    let context = &mut Context::from_waker(Waker::noop());
    let ended = streams.into_iter().zip(tokens).map(|(mut stream, tokens)| {
        tokens.extend(heard(&mut stream));
        let Poll::Ready(ended) = pin!(stream.finish()).poll(context) else {
            panic!("it does not end");
        };
        ended.map(|ended| ended.outcome)
    });
    ended.collect()
}

/// Three of a client's requests, and what the processor makes of them.
fn three(weights: &LlamaWeights) -> [(Job, Outcome); 3] {
    [("Once", 12), ("upon", 14), ("a time", 16)].map(|(prompt, max_tokens)| {
        let job = job(&request(prompt, max_tokens));
        let expected = decoder(weights).run(&job, &mut quiet).unwrap();
        (job, expected)
    })
}

/// Nothing that is not the processor's is passed on of a device that turns wrong while it answers: neither
/// tokens that were chosen from wrong logits, nor those whose states are wrong and which are right by luck.
/// All that it was at ends, and the processor has what comes next.
#[test]
fn a_device_that_turns_wrong_while_it_answers_passes_nothing_wrong_on() {
    let weights = short(synthetic::llama(4, true));
    let jobs = three(&weights);
    for how in [Fails::TurnsLogits, Fails::FlipsBits] {
        // Of some of these the wrong ones are few: all are looked at.
        let (mut batcher, devices, fails) = served(&weights, usize::MAX);
        assert!(batcher.handle().is_on_device());
        let handle = batcher.handle();
        let submit = |(job, _): &(Job, Outcome)| handle.submit(ClientKey::default(), job).unwrap();
        let mut streams: Vec<_> = jobs.iter().map(submit).collect();
        let mut tokens = begin(&mut batcher, &mut streams);
        fails.set(how);
        let ended = end(&mut batcher, streams, &mut tokens);
        for ((ended, tokens), (_, expected)) in ended.iter().zip(&tokens).zip(&jobs) {
            let is_told = matches!(ended, Err(EngineError::DeviceDiffers { .. }));
            assert!(is_told, "{how:?}: {ended:?}");
            let is_right = generation(expected).tokens.starts_with(tokens);
            assert!(is_right && !tokens.is_empty(), "{how:?}: {tokens:?}");
        }
        let dropped: Vec<_> = devices.iter().map(Device::dropped).collect();
        assert_eq!(dropped, [Some(&Dropped::Differs)]);
        assert!(!batcher.handle().is_on_device());
        fails.take_launches();
        let streams = jobs.iter().map(submit).collect();
        let expected: Vec<_> = jobs.iter().map(|(_, expected)| Some(expected.clone())).collect();
        assert_eq!(finish(&mut batcher, streams), expected, "{how:?}");
        assert_eq!(fails.take_launches(), 0);
    }
}

/// The first words of each are looked at, though of those that go on none is.
#[test]
fn whoever_asks_a_device_that_is_wrong_by_then_is_told_nothing() {
    let weights = short(synthetic::llama(4, true));
    let [(job, _), ..] = three(&weights);
    let (mut batcher, _, fails) = served(&weights, 0);
    let good = vec![batcher.handle().submit(ClientKey::default(), &job).unwrap()];
    assert!(finish(&mut batcher, good).iter().all(Option::is_some));
    fails.set(Fails::TurnsLogits);
    let streams = vec![batcher.handle().submit(ClientKey::default(), &job).unwrap()];
    let mut tokens = vec![Vec::new()];
    let ended = end(&mut batcher, streams, &mut tokens);
    let is_told = matches!(&ended[..], [Err(EngineError::DeviceDiffers { .. })]);
    assert!(is_told, "{ended:?}");
    assert_eq!(tokens, [[0; 0]]);
}

#[test]
fn a_device_that_vanishes_while_it_answers_ends_that_and_the_processor_has_what_comes_next() {
    let weights = short(synthetic::llama(4, true));
    let jobs = three(&weights);
    let (mut batcher, _, fails) = served(&weights, 1);
    let handle = batcher.handle();
    let submit = |(job, _): &(Job, Outcome)| handle.submit(ClientKey::default(), job).unwrap();
    let mut streams: Vec<_> = jobs.iter().map(submit).collect();
    let mut tokens = begin(&mut batcher, &mut streams);
    fails.set(Fails::Vanishes);
    let ended = end(&mut batcher, streams, &mut tokens);
    for ((ended, tokens), (_, expected)) in ended.iter().zip(&tokens).zip(&jobs) {
        assert!(matches!(ended, Err(EngineError::Device { .. })), "{ended:?}");
        assert!(generation(expected).tokens.starts_with(tokens), "{tokens:?}");
    }
    let streams = jobs.iter().map(submit).collect();
    let expected: Vec<_> = jobs.iter().map(|(_, expected)| Some(expected.clone())).collect();
    assert_eq!(finish(&mut batcher, streams), expected);
}
