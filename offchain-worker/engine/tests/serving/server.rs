//! The thread that runs the steps.

use surety_engine::serving::{Refusal, Server};
use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn many_readers_are_served_at_once() {
    let decoder = decoder(synthetic::llama(3, true));
    let engine: Arc<dyn Engine> = decoder.clone();
    let server = Server::start(engine.decoder().unwrap(), LIMITS, 2).unwrap();
    let mut readers = JoinSet::new();
    for number in 0..24u8 {
        let asked = job(&ids(number.into(), 1 + 3 * usize::from(number)), drawn(20));
        let stream = server.handle().submit(client(number % 5), &asked).unwrap();
        readers.spawn(async move { (asked, stream.finish().await.unwrap()) });
    }
    while let Some(read) = readers.join_next().await {
        let (asked, ended) = read.unwrap();
        assert_eq!(ended.outcome, Some(alone(&decoder, &asked)));
    }
}

#[tokio::test]
async fn what_is_taken_comes_before_the_end_and_is_all_of_it() {
    let decoder = decoder(synthetic::llama(3, true));
    let server = Server::start(decoder.clone(), LIMITS, 2).unwrap();
    let asked = job(&ids(1, 10), drawn(50));
    let mut stream = server.handle().submit(client(1), &asked).unwrap();
    let mut tokens = Vec::new();
    while let Some(token) = stream.next().await {
        tokens.push(token);
    }
    let expected = alone(&decoder, &asked);
    assert_eq!(tokens, common::generating::generation(&expected).tokens);
    assert_eq!(stream.finish().await.unwrap().outcome, Some(expected));
}

#[tokio::test]
async fn shutting_down_ends_everything_with_what_there_is_of_it() {
    let decoder = endless();
    let asked = job(&ids(1, 10), drawn(200));
    let limits = Limits {
        client_bytes_max: 400_000,
        ..LIMITS
    };
    let server = Server::start(decoder.clone(), limits, 2).unwrap();
    let handle = server.handle();
    let mut runs = handle.submit(client(1), &asked).unwrap();
    let waits = handle.submit(client(1), &asked).unwrap();
    let mut tokens = vec![runs.next().await.unwrap(), runs.next().await.unwrap()];
    server.shutdown();
    assert!(matches!(
        handle.submit(client(1), &asked).err(),
        Some(Refusal::Closed)
    ));
    while let Some(token) = runs.next().await {
        tokens.push(token);
    }
    let ended = runs.finish().await.unwrap();
    assert_eq!(ended.end, End::Cut);
    assert_eq!(ended.outcome, cut(&decoder, &asked, tokens.len()));
    let ended = waits.finish().await.unwrap();
    assert_eq!((ended.end, ended.outcome), (End::Cut, None));
}
