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
pub fn finish(batcher: &mut Batcher, mut streams: Vec<TokenStream>) -> Vec<Option<Outcome>> {
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
        ("", 5, 800),
        ("Once upon a time there was", 6, 0),
        ("Once upon a time there were", 4, 800),
        ("Twice", 5, 0),
    ]
    .map(|(prompt, max_tokens, temperature_milli)| {
        job(&Request {
            temperature_milli,
            ..request(prompt, max_tokens)
        })
    });
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

/// More of them in one step than a pass chooses tokens for.
#[test]
fn the_likeliest_tokens_of_many_are_those_of_each_alone() {
    let weights = short(synthetic::llama(4, true));
    let here = decoder(&weights);
    let there = Arc::new(decoder(&weights).on(&emulated()).unwrap());
    let count = 66;
    let limits = Limits {
        step_rows: 4 * count,
        ahead_max: 4,
        client_waiting_max: count,
        waiting_max: count,
        ..Limits::default()
    };
    let mut batcher = Batcher::new(there, limits);
    let jobs: Vec<Job> = (0..count)
        .map(|number| likeliest(&number.to_string(), 2))
        .collect();
    let submit = |job| batcher.handle().submit(ClientKey::default(), job).unwrap();
    let streams = jobs.iter().map(submit).collect();
    for (found, job) in finish(&mut batcher, streams).into_iter().zip(&jobs) {
        assert_eq!(found, Some(here.run(job, &mut quiet).unwrap()));
    }
}

/// What has no largest logit ends as it does on the processor, alone and among others.
#[test]
fn a_token_that_cannot_be_chosen_on_a_device_is_a_fault_where_it_is_on_the_processor() {
    let mut weights = short(synthetic::llama(4, true));
    let groups = weights.tokens.scales.len() / weights.tokens.rows;
    // Of the word that makes this logit alone: what is tied is not fed.
    weights.tokens.scales[259 * groups..].fill(f32::MAX);
    let jobs = ["Once", "upon"].map(|prompt| likeliest(prompt, 4));
    let here = decoder(&weights);
    let faults = |engine: &ExactLlama| {
        jobs.each_ref()
            .map(|job| format!("{:?}", engine.run(job, &mut quiet).map(drop)))
    };
    let expected = faults(&here);
    assert!(
        expected.iter().all(|fault| fault.contains("NotFinite")),
        "{expected:?}"
    );
    let (mut batcher, devices, _fails) = served(&weights, 1);
    let there = decoder(&weights).on(&devices).unwrap();
    assert_eq!(faults(&there), expected);
    let submit = |job| batcher.handle().submit(ClientKey::default(), job).unwrap();
    let streams = jobs.iter().map(submit).collect();
    let ended = end(&mut batcher, streams, &mut [vec![], vec![]]);
    let ended = ended.into_iter().map(|ended| format!("{:?}", ended.map(drop)));
    assert!(ended.eq(expected));
    assert!(devices.iter().all(|device| device.dropped().is_none()));
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

/// One that takes the likeliest tokens.
fn likeliest(prompt: &str, max_tokens: u32) -> Job {
    job(&Request {
        temperature_milli: 0,
        ..request(prompt, max_tokens)
    })
}

/// Three of a client's requests, and what the processor makes of them.
fn three(weights: &LlamaWeights) -> [(Job, Outcome); 3] {
    three_at(weights, 800)
}

/// The same at a temperature.
fn three_at(weights: &LlamaWeights, temperature_milli: u32) -> [(Job, Outcome); 3] {
    [("Once", 12), ("upon", 14), ("a time", 16)].map(|(prompt, max_tokens)| {
        let job = job(&Request {
            temperature_milli,
            ..request(prompt, max_tokens)
        });
        let expected = decoder(weights).run(&job, &mut quiet).unwrap();
        (job, expected)
    })
}

/// Nothing that is not the processor's is passed on of a device that turns wrong while it answers: neither
/// tokens that were chosen from wrong logits, or by the device, nor those whose states are wrong and which
/// are right by luck. One that says that there is no result is believed as little. All that it was at ends,
/// and the processor has what comes next.
#[test]
fn a_device_that_turns_wrong_while_it_answers_passes_nothing_wrong_on() {
    let weights = short(synthetic::llama(4, true));
    for (how, temperature_milli) in [
        (Fails::TurnsLogits, 800),
        (Fails::FlipsBits, 800),
        (Fails::LosesLogits, 800),
        (Fails::FindsNothing, 800),
        (Fails::FlipsBits, 0),
        (Fails::FindsNothing, 0),
    ] {
        let jobs = three_at(&weights, temperature_milli);
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

/// What the processor has no result for ends that generation alone, and the device is as good as before.
#[test]
fn a_device_that_has_no_result_where_the_processor_has_none_is_used_again() {
    let mut weights = short(synthetic::llama(4, false));
    let bad = job(&request("q", 8));
    let word = u32::from_le_bytes(*bad.input.last_chunk().unwrap()) as usize;
    let groups = weights.tokens.scales.len() / weights.tokens.rows;
    weights.tokens.scales[word * groups..][..groups].fill(f32::MAX);
    let here = decoder(&weights);
    // One that never says it.
    let candidates = ["once", "upon", "a time"].map(|prompt| job(&request(prompt, 8)));
    let ran = candidates.map(|job| (here.run(&job, &mut quiet), job));
    let (expected, good) = ran.into_iter().find(|(ran, _)| ran.is_ok()).unwrap();
    let expected = expected.unwrap();
    let none = here.run(&bad, &mut quiet);
    assert!(matches!(none, Err(EngineError::NotFinite { .. })), "{none:?}");
    let (mut batcher, devices, fails) = served(&weights, 1);
    let submit = |job| batcher.handle().submit(ClientKey::default(), job).unwrap();
    let streams = [&bad, &good].map(submit).into();
    let ended = end(&mut batcher, streams, &mut [vec![], vec![]]);
    let is_told = matches!(&ended[0], Err(EngineError::NotFinite { .. }));
    assert!(is_told, "{:?}", ended[0]);
    assert_eq!(ended[1].as_ref().unwrap(), &Some(expected));
    assert!(devices.iter().all(|device| device.dropped().is_none()));
    assert!(fails.take_launches() > 0, "on the device");
}

/// Those who wait longest are looked at first, so many at a time, and the others are told nothing before it
/// is their turn.
#[test]
fn first_words_are_looked_at_a_few_at_a_time_in_their_order() {
    let weights = short(synthetic::llama(4, true));
    let jobs = three(&weights);
    let (machine, _fails) = Failing::new(Emulator::start(Order::Forwards));
    let devices: Devices = Device::on(machine, "a slow look").unwrap().into();
    let there = Arc::new(decoder(&weights).on(&devices).unwrap());
    let limits = Limits {
        ahead_max: 4,
        looked_at: 0,
        new_looked_at: 1,
        ..Limits::default()
    };
    let mut batcher = Batcher::new(there, limits);
    let handle = batcher.handle();
    let submit = |(job, _): &(Job, Outcome)| handle.submit(ClientKey::default(), job).unwrap();
    let mut streams: Vec<_> = jobs.iter().map(submit).collect();
    let (mut tokens, mut order) = (vec![Vec::new(); 3], Vec::new());
    while order.len() < 3 && batcher.step() {
        let mut at_once = 0;
        for (number, stream) in streams.iter_mut().enumerate() {
            let heard = heard(stream);
            if tokens[number].is_empty() && !heard.is_empty() {
                order.push(number);
                at_once += 1;
            }
            tokens[number].extend(heard);
        }
        assert!(at_once <= 1, "{at_once} in one look");
    }
    assert_eq!(order, [0, 1, 2]);
    let ended = end(&mut batcher, streams, &mut tokens);
    for ((ended, tokens), (_, expected)) in ended.into_iter().zip(tokens).zip(jobs) {
        assert_eq!(tokens, generation(&expected).tokens);
        assert_eq!(ended.unwrap(), Some(expected));
    }
}
