#![allow(clippy::unwrap_used)]
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use codec::Encode;
use serde_json::Value;

use super::{super::Grade, *};

/// Answers by method and first parameter, or by method alone. What is not there it does not say.
#[derive(Default)]
struct Node {
    answers: BTreeMap<String, Value>,
    /// Height of the final block, and how much higher it is each time it is asked for.
    height: AtomicU64,
    blocks: u64,
}

#[async_trait]
impl Ask for Node {
    async fn ask(&self, method: &str, params: Vec<Value>) -> Result<Value, NodeFault> {
        if method == "chain_getHeader" {
            let number = self.height.fetch_add(self.blocks, Ordering::Relaxed);
            return Ok(json!({"number": format!("{number:#x}")}));
        }
        let first = params.first().and_then(Value::as_str).unwrap_or_default();
        let answer = self.answers.get(&format!("{method} {first}"));
        let answer = answer.or_else(|| self.answers.get(method)).cloned();
        answer.ok_or_else(|| NodeFault::Refused("RPC call is unsafe to be called externally".into()))
    }
}

impl Node {
    fn with(mut self, method: &str, answer: Value) -> Self {
        self.answers.insert(method.into(), answer);
        self
    }

    fn storing(self, pallet: &str, item: &str, value: impl Encode) -> Self {
        let key = [twox_128(pallet.as_bytes()), twox_128(item.as_bytes())].concat();
        let method = format!("state_getStorage 0x{}", hex::encode(key));
        self.with(&method, json!(format!("0x{}", hex::encode(value.encode()))))
    }
}

fn last(checks: &Checks) -> (&'static str, Grade, &str) {
    let check = checks.0.last().unwrap();
    (check.name, check.grade, &check.finding)
}

const ALICE: [u8; 32] = [1; 32];
const BOB: [u8; 32] = [2; 32];

fn keys(byte: u8) -> SessionKeys {
    [[byte; 32], [byte + 1; 32], [byte + 2; 32]]
}

/// A chain on which Alice validates, and Bob from the next session on.
fn session() -> Node {
    Node::default()
        .storing("Session", "QueuedKeys", vec![(ALICE, keys(10)), (BOB, keys(20))])
        .storing("Session", "Validators", vec![ALICE])
}

fn held(byte: u8) -> String {
    format!("author_hasSessionKeys 0x{}", hex::encode(keys(byte).concat()))
}

#[tokio::test]
async fn the_keys_of_a_validator_must_be_in_the_nodes_keystore() {
    let no = json!(false);
    for (node, grade, words) in [
        (
            session().with("author_hasSessionKeys", no.clone()),
            Grade::Fail,
            "surety-node key insert",
        ),
        (
            session()
                .with("author_hasSessionKeys", no.clone())
                .with(&held(20), json!(true)),
            Grade::Warn,
            "next session",
        ),
        (
            session()
                .with("author_hasSessionKeys", no)
                .with(&held(10), json!(true)),
            Grade::Ok,
            "5C62Ck4U",
        ),
        (session(), Grade::Warn, "on the node's own machine"),
    ] {
        let mut checks = Checks::default();
        check_session_keys(&node, &mut checks).await;
        let (name, found, finding) = last(&checks);
        assert_eq!((name, found), ("session keys", grade), "{finding}");
        assert!(finding.contains(words), "{finding}");
    }
}

#[tokio::test]
async fn a_node_that_only_follows_is_told_to_validate() {
    let mut checks = Checks::default();
    let node = Node::default()
        .with("system_nodeRoles", json!(["Full"]))
        .with("system_localPeerId", json!("12D3KooW"));
    check_role(&node, &mut checks).await;
    let found: Vec<_> = checks.0.iter().map(|check| (check.name, check.grade)).collect();
    assert_eq!(found, [("node", Grade::Fail), ("node key", Grade::Ok)]);
    assert!(checks.0[0].finding.contains("--validator"));
}

#[tokio::test]
async fn without_peers_it_is_said_which_port_to_open_and_who_catches_up_waits() {
    for (peers, syncing, grades) in [
        (0, false, [Grade::Fail, Grade::Ok]),
        (3, true, [Grade::Ok, Grade::Warn]),
    ] {
        let health = json!({"peers": peers, "isSyncing": syncing, "shouldHavePeers": true});
        let mut checks = Checks::default();
        check_sync(&Node::default().with("system_health", health), &mut checks).await;
        assert_eq!([checks.0[0].grade, checks.0[1].grade], grades);
    }
}

#[tokio::test]
async fn finality_has_to_move() {
    for (blocks, grade) in [(1, Grade::Ok), (0, Grade::Fail)] {
        let node = Node {
            blocks,
            ..Node::default().with("chain_getFinalizedHead", json!("0x00"))
        };
        let mut checks = Checks::default();
        check_finality(&node, Duration::ZERO, &mut checks).await;
        assert_eq!(last(&checks).1, grade, "{}", last(&checks).2);
    }
}

#[tokio::test]
async fn a_clock_is_right_within_what_a_block_needs() {
    let node = Node::default().storing("Timestamp", "Now", 1_000_000_u64);
    for (now, grade, words) in [
        (1_003_000, Grade::Ok, "that of the newest"),
        (1_060_000, Grade::Warn, "60 s ahead of"),
        (940_000, Grade::Warn, "60 s behind"),
    ] {
        let mut checks = Checks::default();
        check_clock(&node, now, &mut checks).await;
        let (_, found, finding) = last(&checks);
        assert!(found == grade && finding.contains(words), "{finding}");
    }
}

#[test]
fn a_key_that_others_can_read_is_found_in_the_nodes_folder() {
    let base = tempfile::tempdir().unwrap();
    let network = base.path().join("chains/surety/network");
    fs::create_dir_all(&network).unwrap();
    let key = network.join("secret_ed25519");
    fs::write(&key, [7; 32]).unwrap();
    for (mode, grade) in [(0o600, Grade::Ok), (0o644, Grade::Fail)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let mut checks = Checks::default();
        check_folder(Some(base.path()), &mut checks);
        let (name, found, finding) = last(&checks);
        assert_eq!((name, found), ("node key file", grade), "{finding}");
    }
    let mut checks = Checks::default();
    check_folder(Some(&base.path().join("nowhere")), &mut checks);
    assert!(last(&checks).2.contains("--node-base"));
}

#[test]
fn an_open_rpc_is_worse_the_more_it_lets_others_do() {
    for (exposure, grade) in [
        (Exposure::Closed, Grade::Ok),
        (Exposure::Open, Grade::Warn),
        (Exposure::Unsafe, Grade::Fail),
    ] {
        let mut checks = Checks::default();
        exposed(exposure, "ws://203.0.113.7:9944", &mut checks);
        assert_eq!(checks.0[0].grade, grade);
    }
}

#[test]
fn addresses_are_read_as_urls_are() {
    assert_eq!(host_and_port("ws://127.0.0.1:9944"), Some(("127.0.0.1", 9944)));
    assert_eq!(
        host_and_port("wss://rpc.example/path"),
        Some(("rpc.example", 443))
    );
    assert_eq!(host_and_port("ws://[::1]:9944/"), Some(("[::1]", 9944)));
    assert_eq!(host_and_port("ws://[::1]"), Some(("[::1]", 80)));
    assert_eq!(host_and_port("nonsense"), None);
}
