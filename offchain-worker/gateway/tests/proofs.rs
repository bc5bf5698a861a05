//! What proves that an answer's receipt is on the chain, as the door tells it.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use common::{
    asked,
    door::{DAY, Door, TERMS, Tasks, settings},
    providers::Providers,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Barrier;

struct World {
    providers: Arc<Providers>,
    door: Door,
    home: TempDir,
}

impl World {
    async fn new() -> Self {
        Self::of(Providers::default()).await
    }

    async fn of(providers: Providers) -> Self {
        let (home, providers) = (tempfile::tempdir().unwrap(), Arc::new(providers));
        let door = open(&home, providers.clone()).await;
        Self {
            providers,
            door,
            home,
        }
    }

    /// A key's secret.
    fn key(&self, label: &str) -> String {
        self.door.ledger.create_key(label, TERMS).unwrap().1
    }

    /// The receipt of an answer.
    async fn answer(&self, key: &str, path: &str, body: Value) -> String {
        let (status, _, text) =
            asked(self.door.address, &format!("POST {path}"), key, &body.to_string()).await;
        assert_eq!(status, 200, "{text}");
        let told: Value = serde_json::from_str(&text).unwrap();
        told["surety"]["receipt"].as_str().unwrap().into()
    }

    async fn chat(&self, key: &str) -> String {
        let messages = json!([{"role": "user", "content": "hi"}]);
        let body = json!({"model": "talker", "messages": messages});
        self.answer(key, "/v1/chat/completions", body).await
    }

    async fn proof(&self, key: &str, receipt: &str) -> (u16, Value) {
        let path = format!("GET /v1/receipts/{receipt}/proof");
        let (status, _, text) = asked(self.door.address, &path, key, "").await;
        (status, serde_json::from_str(&text).unwrap())
    }
}

async fn open(home: &TempDir, providers: Arc<Providers>) -> Door {
    let tasks = Tasks::new(&home.path().join("chain"));
    let mut settings = settings(None, DAY);
    if providers.silent.is_some() {
        settings.proof_time = Duration::from_millis(300);
    }
    Door::before(providers, &home.path().join("ledger"), tasks, settings).await
}

/// Several providers have signed a part each.
const PARTS: u32 = 5;

fn parted() -> Providers {
    Providers {
        parts: PARTS,
        has_batched: true.into(),
        ..Providers::default()
    }
}

#[tokio::test]
async fn a_proof_is_there_once_its_receipt_is_batched_and_is_kept_over_a_restart() {
    let mut world = World::new().await;
    let key = world.key("one");
    let receipt = world.chat(&key).await;
    let (status, refused) = world.proof(&key, &receipt).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("not_batched")));

    world.providers.has_batched.store(true, SeqCst);
    let (status, told) = world.proof(&key, &receipt).await;
    assert_eq!((status, &told["object"]), (200, &json!("surety.proof")));
    let proof = &told["proofs"][0]["proof"];
    assert_eq!(proof["signed"], format!("0x{}", hex(b"signed")));
    assert_eq!((&proof["batch"], &proof["says"]["nonce"]), (&json!(3), &json!(2)));

    let World {
        door,
        home,
        providers,
    } = world;
    door.stop().await;
    providers.has_batched.store(false, SeqCst);
    world = World {
        door: open(&home, providers.clone()).await,
        home,
        providers,
    };
    assert_eq!(world.proof(&key, &receipt).await, (200, told));
    assert_eq!(
        world.providers.shown.load(SeqCst),
        2,
        "what is kept is not asked for"
    );
}

#[tokio::test]
async fn all_who_have_signed_a_part_of_an_answer_are_asked_at_once() {
    let world = World::of(Providers {
        // Who is asked one after the other never answers.
        together: Some(Arc::new(Barrier::new(PARTS as usize))),
        ..parted()
    })
    .await;
    let key = world.key("one");
    let body = json!({"model": "embedder", "input": "a"});
    let receipt = world.answer(&key, "/v1/embeddings", body).await;
    let (status, told) = world.proof(&key, &receipt).await;
    assert_eq!(status, 200, "{told}");
    let proofs = told["proofs"].as_array().unwrap();
    let said = proofs.iter().map(|proven| &proven["proof"]["says"]["provider"]);
    let named: Vec<String> = said.map(|name| name.as_str().unwrap().into()).collect();
    // In their order.
    let expected: Vec<String> = (0..PARTS).map(|part| format!("provider-{part}")).collect();
    assert_eq!(named, expected);
}

#[tokio::test]
async fn a_provider_that_says_nothing_keeps_no_other_proof_waiting_and_is_asked_again_the_next_time() {
    let world = World::of(Providers {
        silent: Some("provider-0".into()),
        ..parted()
    })
    .await;
    let key = world.key("one");
    let body = json!({"model": "embedder", "input": "a"});
    let receipt = world.answer(&key, "/v1/embeddings", body).await;
    for shown in [PARTS, PARTS + 1] {
        let (status, told) = world.proof(&key, &receipt).await;
        assert_eq!(status, 200, "{told}");
        let (silent, others) = told["proofs"].as_array().unwrap().split_first().unwrap();
        assert_eq!(silent["missing"]["code"], "not_shown");
        assert!(
            others.iter().all(|proven| proven["proof"]["batch"] == 3),
            "{told}"
        );
        // What the others have shown is kept.
        assert_eq!(world.providers.shown.load(SeqCst), shown);
    }
}

#[tokio::test]
async fn another_keys_receipt_an_unknown_one_and_one_whose_statement_was_not_kept_have_none() {
    let world = World::new().await;
    let (key, other) = (world.key("one"), world.key("other"));
    world.providers.has_batched.store(true, SeqCst);
    let receipt = world.chat(&key).await;
    for (key, receipt) in [(&other, receipt.as_str()), (&key, "ffff"), (&key, "no number")] {
        let (status, refused) = world.proof(key, &receipt.replace(' ', "%20")).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (404, &json!("no_receipt")),
            "{receipt}"
        );
    }
    let body = json!({"model": "embedder", "input": "a"});
    let receipt = world.answer(&key, "/v1/embeddings", body).await;
    let (status, refused) = world.proof(&key, &receipt).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("not_kept")));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
