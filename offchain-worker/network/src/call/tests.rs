#![allow(clippy::unwrap_used)]
use futures::{AsyncWriteExt, FutureExt, future::Future};
use proptest::prelude::*;

use super::{
    desk::{Verdict, greet},
    pipe::pipe,
    *,
};
use crate::{counters::Tally, wire::CallGreeting};

fn patience() -> Patience {
    Patience::of(&Limits::default())
}

fn stream(wire: impl Wire + 'static) -> CallStream {
    CallStream::new(wire, "peer", patience(), Arc::new(()))
}

fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(what)
}

/// Polls once, and drops it if it has to wait.
fn once<T>(what: impl Future<Output = T>) -> Option<T> {
    tokio::task::unconstrained(what).now_or_never()
}

proptest! {
    #[test]
    fn frames_are_whole_however_they_arrive_and_however_often_reading_is_dropped(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..600), 0..8),
        pieces in prop::collection::vec(1_usize..300, 1..8),
    ) {
        run(async {
            let (mut raw, wire) = pipe(1 << 16);
            let mut call = stream(wire);
            let mut bytes: Vec<u8> = frames
                .iter()
                .flat_map(|frame| [&(frame.len() as u32).to_le_bytes()[..], frame].concat())
                .chain([0; PREFIX])
                .collect();
            let (mut heard, mut ended) = (Vec::new(), false);
            for piece in pieces.iter().cycle() {
                if bytes.is_empty() {
                    break;
                }
                let piece: Vec<u8> = bytes.drain(..(*piece).min(bytes.len())).collect();
                raw.write_all(&piece).await.unwrap();
                while let Some(read) = once(call.recv(600)) {
                    match read.unwrap() {
                        Some(frame) => heard.push(frame),
                        None => {
                            ended = true;
                            break;
                        }
                    }
                }
            }
            assert_eq!(heard, frames);
            assert!(ended);
            assert_eq!(call.recv(600).await, Ok(None), "the end stays the end");
        });
    }
}

#[test]
fn a_length_over_the_limit_costs_no_memory_and_one_within_it_no_more_than_what_arrives() {
    run(async {
        let (mut raw, wire) = pipe(1 << 16);
        let mut call = stream(wire);
        raw.write_all(&u32::MAX.to_le_bytes()).await.unwrap();
        let refused = call.recv(1 << 20).await;
        let (bytes, bytes_max) = (u32::MAX.into(), 1 << 20);
        assert_eq!(refused, Err(CallError::TooLong { bytes, bytes_max }));
        assert_eq!(call.receiver.frame.capacity(), 0);
        assert!(
            matches!(call.recv(1 << 20).await, Err(CallError::Lost(_))),
            "it is over"
        );

        let (mut raw, wire) = pipe(1 << 16);
        let mut call = stream(wire);
        raw.write_all(&u32::MAX.to_le_bytes()).await.unwrap();
        raw.write_all(&[7; 1000]).await.unwrap();
        assert_eq!(once(call.recv(usize::MAX)), None);
        assert!(call.receiver.frame.capacity() <= 4 * READ_AHEAD);
    });
}

#[test]
fn a_frame_that_was_not_sent_whole_ends_the_call_for_both() {
    run(async {
        let (ours, theirs) = pipe(64);
        let (mut ours, mut theirs) = (stream(ours), stream(theirs));
        assert_eq!(once(ours.send(&[1; 100])), None, "there is no room for it");
        assert_eq!(ours.send(&[2]).await, Err(CallError::Torn));
        assert_eq!(once(theirs.recv(100)), None);
        drop(ours);
        assert!(matches!(theirs.recv(100).await, Err(CallError::Lost(_))));
    });
}

#[test]
fn an_empty_frame_is_not_sent_and_a_dropped_sender_ends_its_direction_alone() {
    run(async {
        let (ours, theirs) = pipe(64);
        let ((mut sender, mut receiver), mut theirs) = (stream(ours).split(), stream(theirs));
        assert_eq!(sender.send(&[]).await, Err(CallError::Empty));
        sender.send(&[1]).await.unwrap();
        drop(sender);
        assert_eq!(theirs.recv(1).await, Ok(Some(vec![1])));
        assert_eq!(theirs.recv(1).await, Ok(None));
        theirs.send(&[2]).await.unwrap();
        assert_eq!(receiver.recv(1).await, Ok(Some(vec![2])));
        drop(theirs);
        assert_eq!(receiver.recv(1).await, Ok(None));
    });
}

#[test]
fn who_names_no_chain_has_no_call() {
    use codec::{DecodeAll, Encode};
    use surety_types::ContentHash;

    run(async {
        let genesis = ContentHash::repeat_byte(7);
        let (tally, time) = (Tally::default(), Duration::from_secs(5));
        for (hello, greeting) in [
            (genesis.encode(), CallGreeting::Taken),
            (ContentHash::repeat_byte(8).encode(), CallGreeting::OtherChain),
            (vec![7; 31], CallGreeting::OtherChain),
        ] {
            let (ours, theirs) = pipe(1 << 10);
            let (mut caller, call) = (stream(ours), stream(theirs));
            let (mut listener, calls) = CallListener::new(1);
            caller.send(&hello).await.unwrap();
            greet(call, genesis, Verdict::Taken(calls), time, &tally).await;
            let answer = caller.recv(1).await.unwrap().unwrap();
            assert_eq!(CallGreeting::decode_all(&mut answer.as_slice()), Ok(greeting));
            let is_taken = greeting == CallGreeting::Taken;
            assert_eq!(once(listener.next()).flatten().is_some(), is_taken);
        }
    });
}
