//! What becomes of batches, over real sockets.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use common::{
    asked,
    door::{DAY, DEATHS, Dies, Door, FEE, PRICE, TERMS, Tasks, embed, lines, settings},
};
use serde_json::{Value, json};
use surety_types::speed::{Requirements, Tier};
use tokio::sync::Semaphore;

#[tokio::test]
async fn embeddings_of_one_model_are_one_task_and_each_line_has_its_own_vectors() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let door = Door::open(home.path(), Tasks::new(&chain)).await;
    let bodies = [embed(json!("abc")), embed(json!(["a", "bc"])), embed(json!(""))];
    let id = door.begin("/v1/embeddings", &bodies).await;
    let batch = door.reaches(&id, "completed").await;
    assert_eq!(
        batch["request_counts"],
        json!({"total": 3, "completed": 2, "failed": 1})
    );
    assert_eq!(batch["metadata"], json!({"a": "b"}));
    assert_eq!(Tasks::new(&chain).posted().len(), 1);
    let answers = door.file(&batch["output_file_id"]).await;
    let of = |line: &Value| {
        (
            line["custom_id"].clone(),
            line["response"]["body"]["data"].clone(),
        )
    };
    let [first, second] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(of(first).0, "r0");
    assert_eq!(of(first).1[0]["embedding"], json!([3.0, 0.5]));
    assert_eq!(
        (of(second).0, of(second).1[1]["embedding"][0].as_f64()),
        (json!("r1"), Some(2.0))
    );
    assert_eq!(
        second["response"]["body"]["surety"]["token_ids"],
        json!([[97], [98, 99]])
    );
    // A text without tokens is no item: it is refused, and nothing else is.
    let refused = door.file(&batch["error_file_id"]).await;
    assert_eq!(refused[0]["custom_id"], "r2");
    assert_eq!(refused[0]["response"]["status_code"], 400);
    // What was paid is spent, and the rest of what was reserved is free again.
    let key = door.ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (3 * PRICE + FEE, 0));
    let receipt = first["response"]["request_id"].as_str().unwrap();
    let receipt = door.json(&format!("/v1/receipts/{receipt}")).await;
    assert_eq!(
        (&receipt["spent"], &receipt["state"]),
        (&json!("22"), &json!("ended"))
    );
    assert_eq!(receipt["receipt"]["payments"][0]["provider"], "provider-0");
}

#[tokio::test]
async fn each_answer_is_a_task_of_its_own_with_its_text_cut_at_what_stops_it() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let door = Door::open(home.path(), Tasks::new(&chain)).await;
    let chat = |more: Value| {
        let mut body = json!({"model": "talker", "messages": [{"role": "user", "content": "hi"}], "seed": 7});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let bodies = [
        chat(json!({"max_tokens": 100, "stop": "🐻"})),
        chat(json!({"max_tokens": 4, "temperature": 0})),
        chat(json!({"stream": true})),
        chat(json!({"tools": [{"type": "function"}]})),
    ];
    let id = door.begin("/v1/chat/completions", &bodies).await;
    let batch = door.reaches(&id, "completed").await;
    assert_eq!(Tasks::new(&chain).posted().len(), 2);
    let mut answers = door.file(&batch["output_file_id"]).await;
    answers.sort_by_key(|line| line["custom_id"].to_string());
    let choice = |at: usize| &answers[at]["response"]["body"]["choices"][0];
    assert_eq!(choice(0)["message"]["content"], "Grüße aus der Höhle ");
    assert_eq!(
        (&choice(0)["finish_reason"], &choice(1)["finish_reason"]),
        (&json!("stop"), &json!("length"))
    );
    assert_eq!(answers[1]["response"]["body"]["usage"]["completion_tokens"], 4);
    let refused = door.file(&batch["error_file_id"]).await;
    let params: Vec<_> = refused
        .iter()
        .map(|line| &line["response"]["body"]["error"]["param"])
        .collect();
    assert_eq!(params, ["stream", "tools"]);
}

#[tokio::test]
async fn a_file_that_asks_for_what_is_not_there_or_for_too_much_is_refused_and_nothing_is_posted() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let door = Door::open(home.path(), Tasks::new(&chain)).await;
    let many: Vec<Value> = (0..12).map(|_| embed(json!(vec!["a"; 1000]))).collect();
    for (bodies, code) in [
        (
            vec![embed(json!("a")), json!({"model": "nobody", "input": "a"})],
            "model_not_found",
        ),
        (vec![json!({"model": "talker", "input": "a"})], "model_not_found"),
        (many, "insufficient_quota"),
    ] {
        let id = door.begin("/v1/embeddings", &bodies).await;
        let batch = door.reaches(&id, "failed").await;
        assert_eq!(batch["errors"]["data"][0]["code"], code, "{batch}");
        assert_eq!(
            (&batch["output_file_id"], &batch["error_file_id"]),
            (&Value::Null, &Value::Null)
        );
    }
    let key = door.ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (0, 0));
    assert!(!chain.exists());
    let (status, refused) = door.create("x", "file-00000000000000ff", "/v1/embeddings").await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (404, &json!("file_not_found"))
    );
    let file = door.give("x", "{}\n").await;
    let (status, refused) = door.create("x", file["id"].as_str().unwrap(), "/v1/images").await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("endpoint")));
}

#[tokio::test]
async fn what_a_batch_asks_of_providers_is_asked_of_those_of_each_of_its_tasks() {
    let home = tempfile::tempdir().unwrap();
    let tasks = Tasks::new(&home.path().join("chain"));
    let required = tasks.required.clone();
    let door = Door::open(home.path(), tasks).await;
    let file = door
        .give("x", &lines("/v1/embeddings", &[embed(json!("abc"))]))
        .await;
    let file = file["id"].as_str().unwrap();
    let all = json!({
        "surety_min_tier": "B", "surety_min_memory_mib": "24576", "surety_region": "DE", "region": "of its owner",
    });
    for metadata in [all.clone(), json!({"min_tier": "A"})] {
        let begun = door.create_saying("x", file, "/v1/embeddings", metadata.clone());
        let (status, batch) = begun.await;
        assert_eq!((status, &batch["metadata"]), (200, &metadata), "{batch}");
        door.reaches(batch["id"].as_str().unwrap(), "completed").await;
    }
    let asked = Requirements {
        tier: Some(Tier::B),
        memory_mib: 24_576,
        region: "DE".parse().ok(),
    };
    assert_eq!(*required.lock().unwrap(), [asked, Requirements::default()]);
}

#[tokio::test]
async fn what_can_be_asked_of_no_provider_is_refused_before_there_is_a_batch() {
    let home = tempfile::tempdir().unwrap();
    let door = Door::open(home.path(), Tasks::new(&home.path().join("chain"))).await;
    let file = door
        .give("x", &lines("/v1/embeddings", &[embed(json!("abc"))]))
        .await;
    let file = file["id"].as_str().unwrap();
    for (name, value) in [
        ("surety_min_tier", "D"),
        ("surety_min_tier", ""),
        ("surety_min_memory_mib", "24GiB"),
        ("surety_min_memory_mib", "-1"),
        ("surety_min_memory_mib", "+5"),
        ("surety_min_memory_mib", "0"),
        ("surety_min_memory_mib", ""),
        ("surety_min_memory_mib", "4294967296"),
        ("surety_region", "de"),
        ("surety_region", "DEU"),
        ("surety_tier", "A"),
    ] {
        let begun = door.create_saying("x", file, "/v1/embeddings", json!({name: value}));
        let (status, refused) = begun.await;
        let error = &refused["error"];
        assert_eq!(
            (status, &error["code"]),
            (400, &json!("invalid_value")),
            "{value}: {refused}"
        );
        assert_eq!(error["param"], format!("metadata.{name}"));
    }
    let batches = door.json("/v1/batches").await;
    assert_eq!(batches["data"], json!([]));
}

#[tokio::test]
async fn a_batch_that_asks_for_what_too_few_providers_are_fails_and_nothing_is_posted() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let tasks = Tasks {
        nobody: true,
        ..Tasks::new(&chain)
    };
    let door = Door::open(home.path(), tasks).await;
    let file = door
        .give("x", &lines("/v1/embeddings", &[embed(json!("abc"))]))
        .await;
    let file = file["id"].as_str().unwrap();
    let asked = json!({"surety_region": "AQ"});
    let (status, batch) = door.create_saying("x", file, "/v1/embeddings", asked).await;
    assert_eq!(status, 200, "{batch}");
    let batch = door.reaches(batch["id"].as_str().unwrap(), "failed").await;
    let fault = &batch["errors"]["data"][0];
    assert_eq!(
        (&fault["code"], &fault["param"]),
        (&json!("no_provider"), &json!("metadata"))
    );
    let key = door.ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (0, 0));
    assert!(!chain.exists());
    // Whoever asks for nothing is answered.
    let (_, batch) = door.create("x", file, "/v1/embeddings").await;
    door.reaches(batch["id"].as_str().unwrap(), "completed").await;
}

#[tokio::test]
async fn a_post_that_got_lost_is_looked_for_and_not_repeated() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let tasks = Tasks {
        loses_first: true,
        ..Tasks::new(&chain)
    };
    let door = Door::open(home.path(), tasks).await;
    let id = door.begin("/v1/embeddings", &[embed(json!("a"))]).await;
    door.reaches(&id, "completed").await;
    assert_eq!(Tasks::new(&chain).posted().len(), 1);
}

#[tokio::test]
async fn a_task_without_a_result_costs_nothing_and_its_lines_say_why() {
    let home = tempfile::tempdir().unwrap();
    let tasks = Tasks {
        fails: true,
        ..Tasks::new(&home.path().join("chain"))
    };
    let door = Door::open(home.path(), tasks).await;
    let id = door.begin("/v1/embeddings", &[embed(json!("a"))]).await;
    let batch = door.reaches(&id, "completed").await;
    assert_eq!(batch["request_counts"]["failed"], 1);
    let refused = door.file(&batch["error_file_id"]).await;
    let told = &refused[0]["response"]["body"]["error"]["message"];
    assert_eq!(told, "too few providers delivered in time");
    let key = door.ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (0, 0));
}

#[tokio::test]
async fn a_cancelled_batch_posts_nothing_more_and_keeps_what_it_has() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let over = Arc::new(Semaphore::new(1));
    let tasks = Tasks {
        over: over.clone(),
        ..Tasks::new(&chain)
    };
    let door = Door::open(home.path(), tasks).await;
    let body = json!({"model": "talker", "prompt": "hi", "max_tokens": 4});
    let id = door.begin("/v1/completions", &vec![body; 8]).await;
    // One of four that are posted at once is over, and a fifth in its place.
    let has_answer = async {
        while door.json(&format!("/v1/batches/{id}")).await["request_counts"]["completed"] != 1 {}
        while Tasks::new(&chain).posted().len() < 5 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), has_answer)
        .await
        .unwrap();
    let cancel = format!("POST /v1/batches/{id}/cancel");
    let (status, _, told) = asked(door.address, &cancel, "x", "").await;
    assert_eq!(status, 200, "{told}");
    assert!(told.contains("\"cancelling\""), "{told}");
    // They can be withdrawn, which whoever follows them sees when it looks again.
    over.add_permits(4);
    let batch = door.reaches(&id, "cancelled").await;
    assert_eq!(batch["request_counts"]["total"], 8);
    assert_eq!(Tasks::new(&chain).posted().len(), 5);
    let completed = batch["request_counts"]["completed"].as_u64().unwrap();
    assert_eq!(door.file(&batch["output_file_id"]).await.len() as u64, completed);
    let refused = door.file(&batch["error_file_id"]).await;
    let not_run = refused
        .iter()
        .filter(|line| line["error"]["code"] == "batch_cancelled");
    assert_eq!(not_run.count(), 3);
    assert_eq!(door.ledger.keys().unwrap()[0].reserved, 0);
    assert_eq!(asked(door.address, &cancel, "x", "").await.0, 409);
}

#[tokio::test]
async fn a_batch_whose_time_is_over_posts_nothing() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let settings = settings(Some(TERMS), Duration::ZERO);
    let door = Door::new(&home.path().join("ledger"), Tasks::new(&chain), settings).await;
    let id = door.begin("/v1/embeddings", &[embed(json!("a"))]).await;
    let batch = door.reaches(&id, "expired").await;
    let refused = door.file(&batch["error_file_id"]).await;
    assert_eq!(refused[0]["error"]["code"], "batch_expired");
    assert!(!chain.exists());
    assert_eq!(door.ledger.keys().unwrap()[0].reserved, 0);
}

#[tokio::test]
async fn tasks_on_the_chain_are_followed_at_once_after_a_restart_whatever_else_waits() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let never = || Tasks {
        over: Arc::new(Semaphore::new(0)),
        ..Tasks::new(&chain)
    };
    let ledger = home.path().join("ledger");
    let door = Door::new(&ledger, never(), settings(Some(TERMS), DAY)).await;
    let body = json!({"model": "talker", "prompt": "hi", "max_tokens": 4});
    // Four of five are posted.
    let id = door.begin("/v1/completions", &vec![body; 5]).await;
    let first = u64::from_str_radix(id.strip_prefix("batch_").unwrap(), 16).unwrap() + 3;
    let posted = async {
        loop {
            let mut count = 0;
            for number in first..first + 5 {
                let told = door.json(&format!("/v1/receipts/{number:016x}")).await;
                count += usize::from(told["state"] == "posted");
            }
            if count == 4 {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), posted)
        .await
        .unwrap();
    door.stop().await;

    let tasks = never();
    let (over, followed) = (tasks.over.clone(), tasks.followed.clone());
    let mut few = settings(Some(TERMS), DAY);
    few.batches.tasks = 1;
    let door = Door::new(&ledger, tasks, few).await;
    let all = async {
        while followed.load(SeqCst) < 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
    assert_eq!(Tasks::new(&chain).posted().len(), 4);
    over.add_permits(5);
    let batch = door.reaches(&id, "completed").await;
    assert_eq!(batch["request_counts"]["completed"], 5);
    assert_eq!(Tasks::new(&chain).posted().len(), 5);
}

#[tokio::test]
async fn a_task_that_cannot_be_withdrawn_for_now_is_withdrawn_later() {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let tasks = Tasks {
        over: Arc::new(Semaphore::new(0)),
        not_yet: AtomicUsize::new(2),
        ..Tasks::new(&chain)
    };
    let door = Door::open(home.path(), tasks).await;
    let id = door.begin("/v1/embeddings", &[embed(json!("a"))]).await;
    let posted = async {
        while Tasks::new(&chain).posted().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), posted)
        .await
        .unwrap();
    let cancel = format!("POST /v1/batches/{id}/cancel");
    assert_eq!(asked(door.address, &cancel, "x", "").await.0, 200);
    // The fake says that it is over as soon as somebody asks again.
    let withdrawn = async {
        while !chain.with_extension("0.cancelled").exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), withdrawn)
        .await
        .unwrap();
}

/// Is killed in the middle of a batch by its own runner, in a process of its own; see the test below.
#[tokio::test]
async fn dies_with_an_open_batch() {
    let Ok(home) = std::env::var("SURETY_GATEWAY_BATCH_DIES_AT") else {
        return;
    };
    let place: usize = std::env::var("SURETY_GATEWAY_BATCH_DIES")
        .unwrap()
        .parse()
        .unwrap();
    let home = PathBuf::from(home);
    let tasks = Tasks {
        dies: Some(DEATHS[place]),
        ..Tasks::new(&home.join("chain"))
    };
    let door = Door::open(&home, tasks).await;
    let id = door.begin("/v1/embeddings", &[embed(json!("abc"))]).await;
    door.reaches(&id, "completed").await;
}

#[tokio::test]
async fn killed_at_any_point_it_posts_nothing_twice_and_loses_nothing() {
    for (place, death) in DEATHS.iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dies_with_an_open_batch"])
            .env("SURETY_GATEWAY_BATCH_DIES_AT", home.path())
            .env("SURETY_GATEWAY_BATCH_DIES", place.to_string())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "it was not killed: {death:?}");
        let chain = home.path().join("chain");
        let before = Tasks::new(&chain).posted().len();
        assert_eq!(before, usize::from(*death != Dies::BeforePost), "{death:?}");

        let door = Door::open(home.path(), Tasks::new(&chain)).await;
        // What is reserved is still reserved until the task is settled.
        let batches = door.json("/v1/batches").await;
        let id = batches["data"][0]["id"].as_str().unwrap().to_owned();
        let batch = door.reaches(&id, "completed").await;
        assert_eq!(Tasks::new(&chain).posted().len(), 1, "{death:?}");
        let answers = door.file(&batch["output_file_id"]).await;
        assert_eq!(
            answers[0]["response"]["body"]["data"][0]["embedding"],
            json!([3.0, 0.5])
        );
        let key = door.ledger.keys().unwrap().remove(0);
        assert_eq!((key.spent, key.reserved), (PRICE + FEE, 0), "{death:?}");
    }
}
