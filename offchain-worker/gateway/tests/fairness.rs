//! What one key or one address takes leaves the others theirs, over real sockets.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{net::IpAddr, path::Path, sync::Arc, time::Duration};

use common::{
    ANSWER, Bytes, asked,
    door::{DAY, Door, TERMS, Tasks, embed, lines, settings},
    plain,
    providers::Providers,
};
use serde_json::{Value, json};
use surety_gateway::ModelText;
use surety_models::chat::Message;
use surety_types::input::IdBounds;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
};

/// A door with so many places for tasks, none of which is over before there is a permit for it.
async fn door(home: &Path, places: usize) -> (Door, Arc<Semaphore>) {
    let over = Arc::new(Semaphore::new(0));
    let tasks = Tasks {
        over: over.clone(),
        ..Tasks::new(&chain(home))
    };
    let mut settings = settings(None, DAY);
    settings.batches.tasks = places;
    (Door::new(&home.join("ledger"), tasks, settings).await, over)
}

fn chain(home: &Path) -> std::path::PathBuf {
    home.join("chain")
}

fn keys<const N: usize>(door: &Door) -> [String; N] {
    std::array::from_fn(|at| door.ledger.create_key(&format!("key {at}"), TERMS).unwrap().1)
}

/// Begins a batch of so many tasks.
async fn begin(door: &Door, key: &str, tasks: usize) -> String {
    let body = json!({"model": "talker", "prompt": "hi", "max_tokens": 4});
    let text = lines("/v1/completions", &vec![body; tasks]);
    let file = door.give(key, &text).await;
    let (status, batch) = door
        .create(key, file["id"].as_str().unwrap(), "/v1/completions")
        .await;
    assert_eq!(status, 200, "{batch}");
    batch["id"].as_str().unwrap().to_owned()
}

/// Waits until a key's batch is completed.
async fn completed(door: &Door, key: &str, batch: &str) {
    let path = format!("/v1/batches/{batch}");
    let is_done = "\"status\":\"completed\"";
    until(async || door.get(&path, key).await.1.contains(is_done)).await;
}

/// What the gateway counts under this name.
async fn count(door: &Door, name: &str) -> usize {
    let (_, text) = plain(door.address, "GET /metrics").await;
    let name = format!("surety_gateway_{name} ");
    let count = text.lines().find_map(|line| line.strip_prefix(&name));
    count.unwrap().parse().unwrap()
}

async fn until(is: impl AsyncFn() -> bool) {
    let look = async {
        while !is().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), look).await.unwrap();
}

/// Waits until so many tasks are posted and so many batches wait for a place; then whose these tasks are, by
/// the places of their keys, in their order.
async fn posted(door: &Door, home: &Path, keys: &[String], (tasks, waiting): (usize, usize)) -> Vec<usize> {
    let chain = Tasks::new(&chain(home));
    until(async || chain.posted().len() == tasks && count(door, "batches_waiting").await == waiting).await;
    let mut owners = Vec::new();
    for number in chain.posted() {
        let receipt = format!("/v1/receipts/{:016x}", number.parse::<u64>().unwrap());
        for (at, key) in keys.iter().enumerate() {
            if door.get(&receipt, key).await.0 == 200 {
                owners.push(at);
            }
        }
    }
    owners
}

#[tokio::test]
async fn the_first_task_of_a_key_waits_for_one_place_however_many_batches_another_has() {
    let home = tempfile::tempdir().unwrap();
    let (door, over) = door(home.path(), 2).await;
    let keys: [String; 2] = keys(&door);
    let [greedy, modest] = &keys;
    for _ in 0..3 {
        begin(&door, greedy, 8).await;
    }
    assert_eq!(posted(&door, home.path(), &keys, (2, 3)).await, [0, 0]);
    let batch = begin(&door, modest, 1).await;
    posted(&door, home.path(), &keys, (2, 4)).await;
    over.add_permits(1);
    assert_eq!(posted(&door, home.path(), &keys, (3, 3)).await, [0, 0, 1]);
    // And whoever has many goes on as soon as nobody else waits.
    over.add_permits(2);
    assert_eq!(posted(&door, home.path(), &keys, (5, 3)).await, [0, 0, 1, 0, 0]);
    completed(&door, modest, &batch).await;
}

#[tokio::test]
async fn a_task_that_there_is_no_money_for_leaves_its_place_to_those_that_there_is_money_for() {
    let home = tempfile::tempdir().unwrap();
    let tasks = Tasks {
        affords: 20,
        ..Tasks::new(&chain(home.path()))
    };
    let mut settings = settings(None, DAY);
    settings.batches.tasks = 1;
    let door = Door::new(&home.path().join("ledger"), tasks, settings).await;
    let keys: [String; 2] = keys(&door);
    let [dear, cheap] = &keys;
    let body = |most: u32| json!({"model": "talker", "prompt": "hi", "max_tokens": most});
    let file = door
        .give(dear, &lines("/v1/completions", &[body(100), body(4)]))
        .await;
    let id = file["id"].as_str().unwrap();
    let (status, batch) = door.create(dear, id, "/v1/completions").await;
    assert_eq!(status, 200, "{batch}");
    // Neither another key nor the rest of the same batch waits for it.
    let other = begin(&door, cheap, 1).await;
    completed(&door, cheap, &other).await;
    let path = format!("/v1/batches/{}", batch["id"].as_str().unwrap());
    let told = async || serde_json::from_str::<Value>(&door.get(&path, dear).await.1).unwrap();
    until(async || told().await["request_counts"]["completed"] == 1).await;
    assert_eq!(told().await["status"], "in_progress");
    assert_eq!(Tasks::new(&chain(home.path())).posted().len(), 2);
}

#[tokio::test]
async fn whoever_waits_keeps_its_turn_when_others_cancel_theirs() {
    let home = tempfile::tempdir().unwrap();
    let (door, over) = door(home.path(), 1).await;
    let keys: [String; 4] = keys(&door);
    let [holder, first, second, other] = &keys;
    begin(&door, holder, 1).await;
    assert_eq!(posted(&door, home.path(), &keys, (1, 0)).await, [0]);
    for (waiting, key) in [(1, first), (2, second)] {
        begin(&door, key, 1).await;
        posted(&door, home.path(), &keys, (1, waiting)).await;
    }
    for _ in 0..5 {
        let batch = begin(&door, other, 1).await;
        posted(&door, home.path(), &keys, (1, 3)).await;
        let cancel = format!("POST /v1/batches/{batch}/cancel");
        assert_eq!(asked(door.address, &cancel, other, "").await.0, 200);
        posted(&door, home.path(), &keys, (1, 2)).await;
    }
    over.add_permits(1);
    assert_eq!(posted(&door, home.path(), &keys, (2, 1)).await, [0, 1]);
    over.add_permits(1);
    assert_eq!(posted(&door, home.path(), &keys, (3, 0)).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_key_has_sixteen_open_batches_and_others_have_theirs() {
    let home = tempfile::tempdir().unwrap();
    let (door, over) = door(home.path(), 4).await;
    let [greedy, modest]: [String; 2] = keys(&door);
    let text = lines("/v1/embeddings", &[embed(json!("a"))]);
    let given = door.give(&greedy, &text).await;
    let file = given["id"].as_str().unwrap();
    for _ in 0..16 {
        let (status, batch) = door.create(&greedy, file, "/v1/embeddings").await;
        assert_eq!(status, 200, "{batch}");
    }
    let body = json!({"input_file_id": file, "endpoint": "/v1/embeddings", "completion_window": "24h"});
    let (status, head, refused) = asked(door.address, "POST /v1/batches", &greedy, &body.to_string()).await;
    let refused: Value = serde_json::from_str(&refused).unwrap();
    let error = &refused["error"];
    assert_eq!(
        (status, &error["type"], &error["code"]),
        (429, &json!("rate_limit_error"), &json!("rate_limit_exceeded"))
    );
    assert!(head.contains("\r\nretry-after: 30"), "{head}");

    // Nobody else's is posted before one of these is over.
    let posted = Tasks::new(&chain(home.path()));
    until(async || posted.posted().len() == 4).await;
    let given = door.give(&modest, &text).await;
    let (status, batch) = door
        .create(&modest, given["id"].as_str().unwrap(), "/v1/embeddings")
        .await;
    assert_eq!(status, 200, "{batch}");
    // One that is over makes room for the next.
    over.add_permits(1);
    until(async || {
        let (_, batches) = door.get("/v1/batches", &greedy).await;
        let batches: Value = serde_json::from_str(&batches).unwrap();
        let mut batches = batches["data"].as_array().unwrap().iter();
        batches.any(|batch| batch["status"] == "completed")
    })
    .await;
    assert_eq!(door.create(&greedy, file, "/v1/embeddings").await.0, 200);
    assert_eq!(door.create(&greedy, file, "/v1/embeddings").await.0, 429);
}

/// Begins to give a file, and says no more.
async fn slow(door: &Door, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(door.address).await.unwrap();
    let begun = format!(
        "POST /v1/files HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\ncontent-type: \
         multipart/form-data; boundary=b0\r\ncontent-length: 1000\r\n\r\n--b0"
    );
    stream.write_all(begun.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn files_that_a_key_gives_slowly_keep_back_its_own_and_no_others() {
    let home = tempfile::tempdir().unwrap();
    let (door, _) = door(home.path(), 1).await;
    let [greedy, modest]: [String; 2] = keys(&door);
    let counts = async || {
        (
            count(&door, "files_open").await,
            count(&door, "files_waiting").await,
        )
    };
    let mut held = Vec::new();
    for expected in [(1, 0), (1, 1), (1, 2)] {
        held.push(slow(&door, &greedy).await);
        until(async || counts().await == expected).await;
    }
    // Is answered, and at once.
    door.give(&modest, "{}\n").await;
    assert_eq!(counts().await, (1, 2));
    // What breaks off gives its place to the next.
    drop(held.remove(0));
    until(async || counts().await == (1, 1)).await;
}

/// Asks for an answer as a stream, and reads nothing of it.
async fn deaf(door: &Door, key: &str) -> TcpStream {
    let body = json!({"model": "talker", "prompt": "hi", "max_tokens": 50, "stream": true}).to_string();
    let mut stream = TcpStream::connect(door.address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\ncontent-length: \
         {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn calls(door: &Door) -> (usize, usize) {
    (
        count(door, "calls_open").await,
        count(door, "calls_waiting").await,
    )
}

#[tokio::test]
async fn a_key_that_asks_for_all_calls_has_three_quarters_of_them_and_waits_for_its_own() {
    let home = tempfile::tempdir().unwrap();
    let providers = Providers {
        stalls: true,
        ..Providers::default()
    };
    let tasks = Tasks::new(&chain(home.path()));
    let path = home.path().join("ledger");
    let door = Door::before(Arc::new(providers), &path, tasks, settings(None, DAY)).await;
    let [greedy, modest]: [String; 2] = keys(&door);
    let mut held = Vec::new();
    for expected in [(1, 0), (2, 0), (3, 0), (3, 1)] {
        held.push(deaf(&door, &greedy).await);
        until(async || calls(&door).await == expected).await;
    }
    held.push(deaf(&door, &modest).await);
    until(async || calls(&door).await == (4, 1)).await;
    // A place that the key gives back is its own next call's.
    drop(held.remove(0));
    until(async || calls(&door).await == (4, 0)).await;
}

/// Each token has so much text that a few of them fill whatever lies between a gateway and its client.
struct Long;

impl ModelText for Long {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        Bytes.encode(text)
    }

    fn chat(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        Bytes.chat(messages)
    }

    fn decode(&self, ids: &[u32]) -> Result<String, String> {
        Ok("x".repeat(ids.len() << 20))
    }

    fn bounds(&self) -> IdBounds {
        Bytes.bounds()
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_of_its_answer_gives_its_place_back_and_pays_what_was_said() {
    let home = tempfile::tempdir().unwrap();
    let mut settings = settings(None, DAY);
    settings.token_time = Duration::from_secs(1);
    let tasks = Tasks::new(&chain(home.path()));
    let path = home.path().join("ledger");
    let door = Door::reading(
        Arc::new(Long),
        Arc::new(Providers::default()),
        &path,
        tasks,
        settings,
    )
    .await;
    let [key]: [String; 1] = keys(&door);
    let deaf = deaf(&door, &key).await;
    // Long before its connection ends.
    until(async || count(&door, "clients_gone_total").await == 1).await;
    until(async || calls(&door).await == (0, 0)).await;
    let key = door.ledger.keys().unwrap().remove(0);
    assert_eq!(key.reserved, 0);
    assert!((1..ANSWER.len() as u128).contains(&key.spent), "{}", key.spent);
    drop(deaf);
}

#[tokio::test]
async fn an_address_has_no_more_connections_than_it_may_have_unless_it_is_a_proxy() {
    for (proxies, is_answered) in [(vec![], false), (vec![IpAddr::from([127, 0, 0, 1])], true)] {
        let home = tempfile::tempdir().unwrap();
        let tasks = Tasks::new(&chain(home.path()));
        let mut settings = settings(None, DAY);
        settings.connections_per_address = 2;
        settings.proxies = proxies;
        let door = Door::new(&home.path().join("ledger"), tasks, settings).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(door.address).await.unwrap();
            stream.write_all(b"GET /openapi.json HTTP/1.0\r\n").await.unwrap();
            held.push(stream);
        }
        let mut third = TcpStream::connect(door.address).await.unwrap();
        // It may be hung up on before it has said anything.
        third.write_all(b"GET /openapi.json HTTP/1.0\r\n\r\n").await.ok();
        let mut answer = String::new();
        third.read_to_string(&mut answer).await.ok();
        assert_eq!(answer.get(9..12) == Some("200"), is_answered, "{answer}");
    }
}
