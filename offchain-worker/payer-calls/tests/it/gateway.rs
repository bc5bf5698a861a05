//! A gateway before providers, one of which dies.

use std::{collections::BTreeMap, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use surety_gateway::{
    BatchModel, BatchRunner, BatchSettings, Ended, Gateway, KeyTerms, Ledger, ModelText, Posting, Quoted,
    RunnerError, Settings,
};
use surety_payer_calls::Providers;
use surety_types::{
    input::{IdBounds, Work},
    speed::Requirements,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    provider::{Fault, Provider, tokens},
    race::{channel, racing},
    world::{BOUNDS, PRICE, World},
};

/// A token is a byte.
struct Bytes;

impl ModelText for Bytes {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn chat(&self, messages: &[surety_models::chat::Message]) -> Result<Vec<u32>, String> {
        let texts = messages.iter().map(|message| message.content.as_str());
        self.encode(&texts.collect::<String>())
    }

    fn decode(&self, ids: &[u32]) -> Result<String, String> {
        let bytes: Vec<u8> = ids.iter().map(|id| u8::try_from(*id).unwrap()).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bounds(&self) -> IdBounds {
        BOUNDS
    }
}

struct NoTasks;

#[async_trait]
impl BatchRunner for NoTasks {
    fn models(&self) -> Vec<BatchModel> {
        Vec::new()
    }

    async fn check_providers(&self, _: &Requirements) -> Result<(), RunnerError> {
        Ok(())
    }

    async fn quote(&self, _: u64, _: &str, _: &Work) -> Result<Quoted, RunnerError> {
        Err(RunnerError::Refused("none".into()))
    }

    async fn post(&self, _: &Posting) -> Result<u64, RunnerError> {
        Err(RunnerError::Refused("none".into()))
    }

    async fn find(&self, _: &Posting) -> Result<Option<u64>, RunnerError> {
        Ok(None)
    }

    async fn ended(&self, _: &Posting, _: u64) -> Result<Ended, RunnerError> {
        Err(RunnerError::Refused("none".into()))
    }

    async fn cancel(&self, _: u64) -> Result<(), RunnerError> {
        Ok(())
    }
}

async fn post(address: SocketAddr, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A gateway before a payer, and its ledger.
async fn serving(payer: Providers, home: &Path) -> (SocketAddr, Arc<Ledger>) {
    let ledger = Arc::new(Ledger::open(&home.join("ledger")).unwrap());
    let terms = KeyTerms {
        cap: 100_000,
        requests_per_minute: 100,
        tokens_per_minute: 100_000,
    };
    let settings = Settings {
        without_key: Some(terms),
        calls: 4,
        connections: 16,
        connections_per_address: 16,
        proxies: Vec::new(),
        time: Duration::from_secs(60),
        token_time: Duration::from_secs(20),
        proof_time: Duration::from_secs(15),
        batches: BatchSettings::default(),
    };
    let text: Arc<dyn ModelText> = Arc::new(Bytes);
    let texts = BTreeMap::from([("talker".to_owned(), text)]);
    let gateway = Gateway::new(
        Arc::new(payer),
        Arc::new(NoTasks),
        texts,
        ledger.clone(),
        settings,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { gateway.serve(&listener, address, std::future::pending()).await });
    (address, ledger)
}

fn spent(ledger: &Ledger) -> u128 {
    ledger.keys().unwrap().iter().map(|key| key.spent).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_pays_for_all_that_race() {
    let world = World::new();
    let one = world.provider("one", PRICE, Fault::None);
    let two = world.provider("two", PRICE, Fault::None);
    let providers = [&one, &two];
    let payer = racing(&world, 2, &providers).await;
    let served = || providers.map(|one| one.served(channel(one))).iter().sum::<u128>();
    let before = served();
    let home = tempfile::tempdir().unwrap();
    let (address, ledger) = serving(payer, home.path()).await;
    let body = r#"{"model": "talker", "prompt": "hello", "max_tokens": 100, "temperature": 0, "seed": 1}"#;
    let answer = post(address, "/v1/completions", body).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    let paid = served() - before;
    assert!((105 * PRICE..=(105 + 37) * PRICE).contains(&paid), "{paid}");
    assert_eq!(spent(&ledger), paid);
    let reserved: u128 = ledger.keys().unwrap().iter().map(|key| key.reserved).sum();
    assert_eq!(reserved, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_one_provider_breaks_off_is_gone_on_with_by_another() {
    let world = World::new();
    let dying = world.provider("dying", PRICE, Fault::Dies(3));
    let other = world.provider("other", PRICE + 1, Fault::None);
    let home = tempfile::tempdir().unwrap();
    let (address, ledger) = serving(world.payer().await, home.path()).await;
    let body = r#"{"model": "talker", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100,
        "temperature": 0, "seed": 1, "stream": true}"#;
    let answer = post(address, "/v1/chat/completions", body).await;
    let told: String = answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"))
        .filter_map(|line| line.split_once("\"content\":\"")?.1.split_once('"'))
        .map(|(text, _)| text)
        .collect();
    let bytes: Vec<u8> = tokens(100, 1)
        .iter()
        .map(|id| u8::try_from(*id).unwrap())
        .collect();
    let whole = String::from_utf8_lossy(&bytes);
    // A character that the end cuts in two is told as one that is none.
    assert_eq!(
        told.trim_end_matches('\u{fffd}'),
        whole.trim_end_matches('\u{fffd}'),
        "{answer}"
    );
    // Three chunks and one ahead from the first, and all of it from the second.
    assert_eq!(spent(&ledger), (2 + 64) * PRICE + 102 * (PRICE + 1));
    assert_eq!((dying.state().asked, other.state().asked), (1, 1));
}

/// What both are asked by a gateway that asks for `body`, and whether it was answered.
async fn asked(body: (&str, &str), providers: [&Provider; 2], world: &World) -> [usize; 2] {
    let home = tempfile::tempdir().unwrap();
    let (address, ledger) = serving(world.payer().await, home.path()).await;
    let answer = post(address, body.0, body.1).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    let of_keys = ledger.keys().unwrap();
    assert!(of_keys.iter().all(|key| key.reserved == 0));
    let served = providers.map(|one| {
        let was_asked = !one.state().sums.is_empty();
        if was_asked { one.served(channel(one)) } else { 0 }
    });
    assert_eq!(spent(&ledger), served.iter().sum::<u128>());
    providers.map(|one| one.state().asked)
}

const TEXT: (&str, &str) = (
    "/v1/completions",
    r#"{"model": "talker", "prompt": "hello", "max_tokens": 100, "temperature": 0, "seed": 1}"#,
);

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_the_cheapest_refuses_is_answered_by_one_that_is_twice_as_dear() {
    let vectors = ("/v1/embeddings", r#"{"model": "talker", "input": ["hello"]}"#);
    for (body, fault, times) in [
        (TEXT, Fault::Busy, 1),
        (vectors, Fault::Busy, 1),
        (TEXT, Fault::Haggles, 2),
    ] {
        let world = World::new();
        let refuses = world.provider("refuses", PRICE, fault);
        let other = world.provider("other", 2 * PRICE, Fault::None);
        assert_eq!(asked(body, [&refuses, &other], &world).await, [times, 1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_is_gone_on_with_by_one_that_is_twice_as_dear() {
    let world = World::new();
    let dying = world.provider("dying", PRICE, Fault::Dies(0));
    let other = world.provider("other", 2 * PRICE, Fault::None);
    let home = tempfile::tempdir().unwrap();
    let (address, _) = serving(world.payer().await, home.path()).await;
    let answer = post(address, TEXT.0, TEXT.1).await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    assert_eq!((dying.state().asked, other.state().asked), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_one_has_computed_are_not_computed_again_by_the_next_and_all_receipts_are_told() {
    let world = World::new();
    let dying = world.provider("dying", PRICE, Fault::None);
    let other = world.provider("other", PRICE + 1, Fault::None);
    let home = tempfile::tempdir().unwrap();
    let (address, ledger) = serving(world.payer().await, home.path()).await;
    let asked = async |count: usize| {
        let texts: Vec<String> = (0..count).map(|at| format!("\"{at}\"")).collect();
        let body = format!("{{\"model\": \"talker\", \"input\": [{}]}}", texts.join(","));
        let answer = post(address, "/v1/embeddings", &body).await;
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    };
    asked(128).await;
    // It says as much again, and then nothing more.
    let chunks = dying.state().chunks;
    dying.state().fault = Fault::Dies(2 * chunks);
    asked(300).await;
    let call = ledger.call(1).unwrap();
    let told: Vec<(&str, u32)> = call
        .receipts
        .iter()
        .map(|receipt| (receipt.provider.as_str(), receipt.units))
        .collect();
    let (one, two) = (dying.name(), other.name());
    assert_eq!(told, [(one.as_str(), 128), (&two, 128), (&two, 44)]);
    assert_eq!(other.served(channel(&other)), 172 * (PRICE + 1));
    // Those that it did not say were paid ahead.
    let signed: u128 = call.receipts.iter().map(|receipt| receipt.price).sum();
    assert_eq!(call.spent, signed + 128 * PRICE);
    assert_eq!(spent(&ledger), call.spent + 128 * PRICE);
}
