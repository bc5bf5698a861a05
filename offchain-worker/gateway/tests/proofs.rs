//! What proves that an answer's receipt is on the chain, as the door tells it.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::{Arc, atomic::Ordering::SeqCst};

use common::{
    asked,
    door::{DAY, Door, TERMS, Tasks, settings},
    providers::Providers,
};
use serde_json::{Value, json};
use tempfile::TempDir;

struct World {
    providers: Arc<Providers>,
    door: Door,
    home: TempDir,
}

impl World {
    async fn new() -> Self {
        let (home, providers) = (tempfile::tempdir().unwrap(), Arc::new(Providers::default()));
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
    Door::before(providers, &home.path().join("ledger"), tasks, settings(None, DAY)).await
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
