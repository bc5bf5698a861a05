//! Whatever a repository holds, from a hub that is gated, redirects, cuts off, lies and names what it should
//! not.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{
    exact::{As, Published, safetensors},
    fetching::{Fixture, Machine, name, tiny},
    server::{Act, COMMIT, MockHub, Running},
};
use serde_json::json;
use surety_model_fetch::{FetchError, FetchOptions};
use surety_models::{ModelError, ModelStore, shards::INDEX};

const TOKEN: &str = "hf_secret";

/// The same model in two files, and the one's size.
fn in_two() -> (MockHub, usize) {
    let published = Published::bert();
    let mut parts = [(); 2].map(|()| common::Tensors::new());
    let mut map = serde_json::Map::new();
    for (number, (tensor, values)) in published.tensors.iter().enumerate() {
        map.insert(tensor.clone(), name(number % 2).into());
        parts[number % 2].insert(tensor.clone(), values.clone());
    }
    let [one, two] = parts.map(|part| safetensors(&part, As::F32));
    let index = json!({ "metadata": { "total_size": 1 }, "weight_map": map }).to_string();
    let hub = tiny().without("model.safetensors").with(INDEX, index.as_bytes());
    (hub.with(&name(0), &one).with(&name(1), &two), one.len())
}

fn bytes_asked_for(hub: &Running) -> Vec<(String, usize)> {
    hub.seen.lock().unwrap().clone()
}

#[test]
fn all_files_are_those_of_one_commit() {
    let hub = tiny().start();
    Machine::new().fetch(&hub).unwrap().verify().unwrap();
    let asked = hub.asked.lock().unwrap();
    assert!(asked[0].path.starts_with("/owner/tiny/resolve/main/"));
    let at_commit = format!("/owner/tiny/resolve/{COMMIT}/");
    assert!(
        asked[1..]
            .iter()
            .all(|request| request.path.starts_with(&at_commit))
    );
    // One of another commit would be mixed with those.
    let other = "f".repeat(40);
    let mixing = tiny()
        .says("tokenizer.json", "X-Repo-Commit", Some(&other))
        .start();
    let mut machine = Machine::new();
    let refused = machine.fetch(&mixing).unwrap_err();
    assert!(matches!(refused, FetchError::OtherCommit { .. }), "{refused}");
    assert_eq!(machine.left(), [""; 0]);
}

#[test]
fn a_gated_repository_says_what_to_do() {
    let hub = tiny().gated(TOKEN).start();
    let refused = Machine::new().fetch(&hub).unwrap_err().to_string();
    let page = format!("{}/owner/tiny", hub.url);
    for part in [
        "owner/tiny is gated",
        "accept its terms at",
        &page,
        "set HF_TOKEN",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains('\n'), "{refused}");
    let mut stranger = Machine::with_token("hf_stranger");
    let refused = stranger.fetch(&hub).unwrap_err();
    assert!(
        matches!(refused, FetchError::Gated { with_token: true, .. }),
        "{refused}"
    );
    assert!(!format!("{refused:?} {refused} {:?}", stranger.events).contains("hf_stranger"));
    assert_eq!(stranger.left(), [""; 0]);
}

#[test]
fn a_token_goes_to_the_hub_and_not_to_where_it_redirects() {
    let hub = tiny().gated(TOKEN).elsewhere().start();
    let mut machine = Machine::with_token(TOKEN);
    machine.fetch(&hub).unwrap().verify().unwrap();
    let elsewhere = hub.asked_elsewhere.lock().unwrap();
    assert!(!elsewhere.is_empty());
    for request in elsewhere.iter() {
        assert!(
            !request.text.to_lowercase().contains("authorization"),
            "{}",
            request.text
        );
        assert!(!request.text.contains(TOKEN), "{}", request.text);
    }
    let asked = hub.asked.lock().unwrap();
    assert!(asked[1..].iter().all(|request| request.authorization.is_some()));
    assert!(!format!("{:?}", machine.events).contains(TOKEN));
}

#[test]
fn a_token_is_shown_only_where_it_is_asked_for() {
    let hub = tiny().start();
    Machine::with_token(TOKEN).fetch(&hub).unwrap();
    let asked = hub.asked.lock().unwrap();
    assert!(asked.iter().all(|request| request.authorization.is_none()));
}

#[test]
fn a_token_is_not_sent_where_others_could_read_it() {
    let hub = tiny().gated(TOKEN).start();
    // The same hub by a name, which might be another machine's.
    let url = hub.url.replace("127.0.0.1", "localhost");
    let refused = Machine::with_token(TOKEN).fetch_from(&url).unwrap_err();
    assert!(matches!(refused, FetchError::InsecureHub { .. }), "{refused}");
    let asked = hub.asked.lock().unwrap();
    assert!(asked.iter().all(|request| request.authorization.is_none()));
}

#[test]
fn a_known_model_is_fetched_without_a_token() {
    let mut fixture = Fixture::new();
    let hub = MockHub::new(fixture.files.clone()).start();
    let options = FetchOptions {
        token: Some(TOKEN.parse().unwrap()),
        ..common::fetching::hub(&hub.url)
    };
    fixture.fetch(&options).unwrap();
    let asked = hub.asked.lock().unwrap();
    assert!(asked.iter().all(|request| request.authorization.is_none()));
}

#[test]
fn a_repository_that_was_renamed_is_found() {
    let hub = tiny().renamed().gated(TOKEN).start();
    Machine::with_token(TOKEN).fetch(&hub).unwrap().verify().unwrap();
}

#[test]
fn redirects_to_nowhere_or_in_circles_are_refused() {
    // Nothing is behind such an address, and a file of this machine is nobody's business.
    for target in ["file:///etc/passwd", "", "/owner/tiny/resolve/main/config.json"] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                use std::io::{BufRead, BufReader, Write};
                let mut stream = stream.unwrap();
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let head = "HTTP/1.1 302 X\r\nContent-Length: 0\r\nConnection: close\r\n";
                write!(stream, "{head}Location: {target}\r\n\r\n").ok();
            }
        });
        let refused = Machine::new().fetch_from(&url).unwrap_err();
        assert!(
            matches!(refused, FetchError::Redirect { .. }),
            "{target}: {refused}"
        );
    }
    let refused = Machine::new().fetch_from("ftp://hub.example").unwrap_err();
    assert!(matches!(refused, FetchError::HubUrl(_)), "{refused}");
}

#[test]
fn weights_in_several_files_make_the_same_model() {
    let one = Machine::new().fetch(&tiny().start()).unwrap();
    let (hub, _) = in_two();
    let hub = hub.elsewhere().start();
    let mut machine = Machine::new();
    let stored = machine.fetch(&hub).unwrap();
    assert_eq!(stored.manifest, one.manifest);
    assert_eq!(machine.left(), ["tiny"]);
}

#[test]
fn what_an_interrupted_run_has_brought_the_next_one_keeps() {
    let (first, _) = in_two();
    let cut = [Act::Serve, Act::DropAfter(700), Act::DropAfter(0)];
    let mut machine = Machine::new();
    let refused = machine.fetch(&first.script(&cut).start()).unwrap_err();
    assert!(matches!(refused, FetchError::Connection { .. }), "{refused}");
    assert_eq!(machine.left(), [".tiny.source"]);
    let (second, _) = in_two();
    let second = second.start();
    machine.fetch(&second).unwrap().verify().unwrap();
    assert_eq!(bytes_asked_for(&second), [(name(1), 700)]);
    assert_eq!(machine.left(), ["tiny"]);
}

#[test]
fn what_was_damaged_in_the_meantime_is_fetched_again() {
    let (first, whole) = in_two();
    let cut = [Act::Serve, Act::DropAfter(700), Act::DropAfter(0)];
    let mut machine = Machine::new();
    machine.fetch(&first.script(&cut).start()).unwrap_err();
    let folder = machine.home.path().join("models/.tiny.source").join(COMMIT);
    // The complete file and the unfinished one.
    fs::write(folder.join(name(0)), vec![b'?'; whole]).unwrap();
    fs::write(folder.join(format!("{}.part", name(1))), vec![b'?'; 700]).unwrap();
    let (second, _) = in_two();
    let second = second.start();
    let stored = machine.fetch(&second).unwrap();
    assert_eq!(
        bytes_asked_for(&second),
        [(name(0), 0), (name(1), 700), (name(1), 0)]
    );
    assert_eq!(
        stored.manifest,
        Machine::new().fetch(&tiny().start()).unwrap().manifest
    );
}

#[test]
fn nothing_of_another_commit_is_kept() {
    let (first, _) = in_two();
    let cut = [Act::DropAfter(700), Act::DropAfter(0)];
    let mut machine = Machine::new();
    // It has a file that the next commit does not have, and that would change the model.
    let template = first.with("chat_template.jinja", b"{{ messages }}");
    machine.fetch(&template.script(&cut).start()).unwrap_err();
    let moved = tiny().at_commit(&"a".repeat(40)).start();
    let stored = machine.fetch(&moved).unwrap();
    assert_eq!(stored.manifest.text.template, None);
    assert_eq!(machine.left(), ["tiny"]);
}

#[test]
fn a_file_that_is_not_what_the_hub_says_is_refused() {
    let mut machine = Machine::new();
    let lying = tiny().script(&[Act::Lie]).start();
    let refused = machine.fetch(&lying).unwrap_err();
    assert!(
        matches!(&refused, FetchError::WrongHash { name, .. } if name == "model.safetensors"),
        "{refused}"
    );
    // Small files, too: their hash is git's.
    let other = format!("\"{}\"", "0".repeat(40));
    let refused = machine
        .fetch(&tiny().says("config.json", "ETag", Some(&other)).start())
        .unwrap_err();
    assert!(
        matches!(&refused, FetchError::WrongHash { name, .. } if name == "config.json"),
        "{refused}"
    );
    let larger = tiny()
        .says("model.safetensors", "X-Linked-Size", Some("100000"))
        .start();
    let refused = machine.fetch(&larger).unwrap_err();
    assert!(matches!(refused, FetchError::WrongSize { .. }), "{refused}");
    assert!(ModelStore::new(machine.home.path()).list().unwrap().is_empty());
    // What was right is still there, and what was not is not.
    let honest = tiny().start();
    machine.fetch(&honest).unwrap().verify().unwrap();
    assert_eq!(bytes_asked_for(&honest), [("model.safetensors".to_owned(), 0)]);
}

#[test]
fn a_server_that_says_no_commit_size_or_hash_is_no_hub() {
    for (header, value) in [
        ("X-Repo-Commit", None),
        ("X-Repo-Commit", Some("../../../etc")),
        ("ETag", None),
        ("ETag", Some("\"some-storage\"")),
    ] {
        let mut machine = Machine::new();
        let refused = machine
            .fetch(&tiny().says("config.json", header, value).start())
            .unwrap_err();
        assert!(
            matches!(refused, FetchError::NoHash { .. }),
            "{header} {value:?}: {refused}"
        );
        assert_eq!(machine.left(), [""; 0]);
    }
}

#[test]
fn a_repository_must_have_what_a_model_needs() {
    let refused = Machine::new()
        .fetch(&tiny().without("config.json").start())
        .unwrap_err();
    assert!(
        matches!(&refused, FetchError::Missing { file, .. } if file == "config.json"),
        "{refused}"
    );
    let mut machine = Machine::new();
    let refused = machine
        .fetch(&tiny().without("model.safetensors").start())
        .unwrap_err();
    assert!(matches!(refused, FetchError::NoWeights(_)), "{refused}");
    let (hub, _) = in_two();
    let refused = machine.fetch(&hub.without(&name(1)).start()).unwrap_err();
    assert!(
        matches!(&refused, FetchError::Missing { file, .. } if *file == name(1)),
        "{refused}"
    );
    assert_eq!(machine.left(), [""; 0]);
}

#[test]
fn a_hostile_index_is_refused_before_anything_it_names_is_asked_for() {
    let of = |files: &[String]| {
        let map: serde_json::Map<String, serde_json::Value> = files
            .iter()
            .enumerate()
            .map(|(tensor, file)| (tensor.to_string(), file.clone().into()))
            .collect();
        json!({ "weight_map": map }).to_string()
    };
    let refused = |index: &str| {
        let hub = tiny()
            .without("model.safetensors")
            .with(INDEX, index.as_bytes())
            .start();
        let mut machine = Machine::new();
        let refused = machine.fetch(&hub).unwrap_err();
        assert_eq!(machine.left(), [""; 0]);
        let last = hub.asked.lock().unwrap().last().unwrap().path.clone();
        assert!(last.ends_with(INDEX), "{last}");
        match refused {
            FetchError::Index(error) => *error,
            other => panic!("{other}"),
        }
    };
    let outside = refused(&of(&["../../etc/passwd".into()]));
    assert_eq!(outside, ModelError::ShardName("../../etc/passwd".into()));
    let many: Vec<String> = (0..10_000).map(|shard| format!("{shard}.safetensors")).collect();
    assert_eq!(refused(&of(&many)), ModelError::TooManyShards { max: 1024 });
    assert!(matches!(refused("["), ModelError::Index(_)));
}

#[test]
fn what_is_too_large_is_not_fetched() {
    let (hub, _) = in_two();
    // Neither is it alone, and both together are.
    let half = (200u64 << 30).to_string();
    let hub = hub
        .says(&name(0), "X-Linked-Size", Some(&half))
        .says(&name(1), "X-Linked-Size", Some(&half))
        .start();
    let mut machine = Machine::new();
    let refused = machine.fetch(&hub).unwrap_err();
    assert!(matches!(refused, FetchError::TooLarge { .. }), "{refused}");
    assert!(
        bytes_asked_for(&hub)
            .iter()
            .all(|(file, _)| !file.ends_with(".safetensors"))
    );
    let index = tiny().without("model.safetensors").with(INDEX, b"{}");
    let index = index.says(INDEX, "Content-Length", Some("100000000")).start();
    let refused = machine.fetch(&index).unwrap_err();
    assert!(matches!(refused, FetchError::TooLarge { .. }), "{refused}");
    assert_eq!(machine.left(), [""; 0]);
}
