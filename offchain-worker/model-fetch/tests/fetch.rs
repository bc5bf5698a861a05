//! Fetching from a hub that drops, lies or ignores.

#![allow(clippy::unwrap_used)]

mod common;

use std::{fs, net::TcpListener, thread};

use common::{
    bytes,
    fetching::{COMPLETE, Fixture, Unasked, hub},
    server::{Act, serve},
};
use surety_model_fetch::{FetchError, FetchEvent, Source, fetch};

#[test]
fn a_model_is_fetched_once() {
    let mut fixture = Fixture::new();
    let (url, seen) = serve(fixture.files.clone(), &[Act::Serve]);
    let stored = fixture.fetch_from(&url).unwrap();
    stored.verify().unwrap();
    assert_eq!(stored.manifest, fixture.model.manifest);
    assert_eq!(fixture.left(), COMPLETE);
    assert_eq!(seen.lock().unwrap().len(), 3);
    let total = bytes(&fixture.files.weights).len() as u64;
    assert!(fixture.events.contains(&FetchEvent::Progress {
        file: "model.safetensors".into(),
        done: total,
        total
    }));
    fixture.fetch_from(&url).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn a_damaged_model_is_replaced() {
    let mut fixture = Fixture::new();
    let (url, _) = serve(fixture.files.clone(), &[Act::Serve]);
    let stored = fixture.fetch_from(&url).unwrap();
    fs::write(stored.path.join("model.safetensors"), "damaged").unwrap();
    fs::write(stored.path.join("stray"), "").unwrap();
    fixture.fetch_from(&url).unwrap().verify().unwrap();
    assert_eq!(fixture.left(), COMPLETE);
}

#[test]
fn a_dropped_connection_is_resumed_where_it_broke() {
    let mut fixture = Fixture::new();
    let (url, seen) = serve(
        fixture.files.clone(),
        &[Act::DropAfter(1000), Act::DropAfter(500), Act::Serve],
    );
    fixture.fetch_from(&url).unwrap().verify().unwrap();
    let starts: Vec<usize> = seen.lock().unwrap()[2..]
        .iter()
        .map(|(_, start)| *start)
        .collect();
    assert_eq!(starts, [0, 1000, 1500]);
    assert_eq!(fixture.resumed(), 2);
    assert_eq!(fixture.left(), COMPLETE);
}

#[test]
fn what_one_run_has_got_the_next_one_keeps() {
    let mut fixture = Fixture::new();
    let (url, _) = serve(fixture.files.clone(), &[Act::DropAfter(1000), Act::DropAfter(0)]);
    let error = fixture.fetch_from(&url).unwrap_err();
    assert!(matches!(error, FetchError::Connection { .. }), "{error}");
    assert_eq!(
        fixture.left(),
        ["config.json", "model.safetensors.part", "tokenizer.json"]
    );
    assert!(fixture.store().list().unwrap().is_empty());
    let (url, seen) = serve(fixture.files.clone(), &[Act::Serve]);
    fixture.fetch_from(&url).unwrap().verify().unwrap();
    assert_eq!(*seen.lock().unwrap(), [("model.safetensors".to_owned(), 1000)]);
}

#[test]
fn a_server_that_ignores_ranges_starts_again() {
    let mut fixture = Fixture::new();
    let (url, _) = serve(fixture.files.clone(), &[Act::DropAfter(1000), Act::IgnoreRange]);
    fixture.fetch_from(&url).unwrap().verify().unwrap();
}

#[test]
fn a_server_that_has_no_such_range_is_asked_for_all() {
    let mut fixture = Fixture::new();
    let script = [Act::DropAfter(1000), Act::Status(416), Act::Serve];
    let (url, seen) = serve(fixture.files.clone(), &script);
    fixture.fetch_from(&url).unwrap().verify().unwrap();
    let starts: Vec<usize> = seen.lock().unwrap()[2..]
        .iter()
        .map(|(_, start)| *start)
        .collect();
    assert_eq!(starts, [0, 1000, 0]);
}

#[test]
fn a_spoilt_rest_of_an_earlier_run_is_thrown_away() {
    let mut fixture = Fixture::new();
    let staging = fixture.store().path().join(".tiny.fetch");
    fs::create_dir_all(&staging).unwrap();
    for spoilt in [100, bytes(&fixture.files.weights).len(), 1_000_000] {
        fs::remove_dir_all(fixture.store().path().join("tiny")).ok();
        fs::create_dir_all(&staging).unwrap();
        fs::write(staging.join("model.safetensors.part"), vec![b'?'; spoilt]).unwrap();
        let (url, _) = serve(fixture.files.clone(), &[Act::Serve]);
        fixture.fetch_from(&url).unwrap().verify().unwrap();
    }
}

#[test]
fn a_lying_server_is_refused_and_leaves_nothing() {
    let mut fixture = Fixture::new();
    let (url, _) = serve(fixture.files.clone(), &[Act::Lie]);
    let error = fixture.fetch_from(&url).unwrap_err();
    assert!(matches!(error, FetchError::WrongHash { .. }), "{error}");
    assert_eq!(fixture.left(), ["config.json", "tokenizer.json"]);
    assert!(fixture.store().list().unwrap().is_empty());
}

#[test]
fn no_more_than_the_known_size_is_taken() {
    let mut fixture = Fixture::new();
    let (url, _) = serve(fixture.files.clone(), &[Act::Bloat]);
    let error = fixture.fetch_from(&url).unwrap_err();
    assert!(matches!(error, FetchError::WrongSize { .. }), "{error}");
    assert_eq!(fixture.left(), ["config.json", "tokenizer.json"]);
}

#[test]
fn a_refusing_server_is_told_with_its_status() {
    let mut fixture = Fixture::new();
    let (url, seen) = serve(fixture.files.clone(), &[Act::Status(404)]);
    let error = fixture.fetch_from(&url).unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 404, .. }), "{error}");
    assert_eq!(seen.lock().unwrap().len(), 3);
    let (url, _) = serve(fixture.files.clone(), &[Act::Status(503), Act::Serve]);
    fixture.fetch_from(&url).unwrap().verify().unwrap();
    assert_eq!(fixture.resumed(), 1);
}

#[test]
fn nobody_there_is_told_at_once() {
    let mut fixture = Fixture::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = fixture.fetch_from(&format!("http://{port}")).unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
    assert_eq!(fixture.resumed(), 0);
    assert!(fixture.left().is_empty());
}

#[test]
fn two_fetches_at_once_get_in_nobodys_way() {
    let fixture = Fixture::new();
    let (url, seen) = serve(fixture.files.clone(), &[Act::Serve]);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                fetch(
                    &fixture.store(),
                    &fixture.model,
                    &hub(&url),
                    &Unasked,
                    &mut |_| (),
                )
                .unwrap()
            });
        }
    });
    assert_eq!(seen.lock().unwrap().len(), 3);
    assert_eq!(fixture.left(), COMPLETE);
}

#[test]
fn sources_are_read_by_name() {
    for source in [Source::Auto, Source::Hub, Source::Pypi] {
        assert_eq!(source.to_string().parse(), Ok(source));
    }
    assert!("ftp".parse::<Source>().is_err());
}
