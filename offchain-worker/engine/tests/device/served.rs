//! Continuous batching on a device.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use surety_engine::serving::{Batcher, ClientKey, Limits, TokenStream};

use super::*;

/// Runs steps until all have ended. Their tokens are taken as they come.
fn finish(batcher: &mut Batcher, mut streams: Vec<TokenStream>) -> Vec<Option<surety_engine::Outcome>> {
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
