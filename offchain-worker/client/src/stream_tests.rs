#![allow(clippy::unwrap_used)]
use surety_chain_client::{FakeChain, ProviderRecord};
use surety_network::{
    Readers, StreamWriter,
    memory::{MemoryNet, MemoryPlane},
};
use surety_types::provider::{DeviceKind, DeviceProfile};

use surety_models::tokens::TextFault;

use super::*;
use crate::{testsuite::Paper, text::ToText};

const TASK: TaskId = 5;

/// Three providers and a client that reads.
struct World {
    chain: FakeChain,
    net: MemoryNet,
    providers: Vec<MemoryPlane>,
    client: Arc<MemoryPlane>,
    paper: Paper,
    transcript: Arc<Mutex<Transcript>>,
}

fn account(index: u8) -> AccountId {
    AccountId::new([index; 32])
}

fn endpoint(index: u8) -> Endpoint {
    Endpoint::try_from(format!("peer {index}").into_bytes()).unwrap()
}

/// Every token is a word.
struct Words;

impl ToText for Words {
    fn text(&self, ids: &[u32]) -> Result<String, TextFault> {
        Ok(ids.iter().map(|id| format!("w{id} ")).collect())
    }
}

impl World {
    fn new() -> Self {
        let net = MemoryNet::default();
        let chain = FakeChain::new();
        chain.change(|state| {
            for index in 0..3 {
                let provider = ProviderRecord {
                    device: DeviceProfile {
                        name: Default::default(),
                        kind: DeviceKind::Cpu,
                        cores: 1,
                        memory_mib: 1,
                        region: None,
                    },
                    endpoints: vec![endpoint(index)].try_into().unwrap(),
                    last_heartbeat: 0,
                };
                state.providers.insert(account(index), provider);
            }
        });
        chain.finalize();
        let paper = Paper::default();
        Self {
            chain,
            providers: (0..3).map(|index| net.join(endpoint(index))).collect(),
            client: Arc::new(net.join(endpoint(9))),
            net,
            transcript: Arc::new(Mutex::new(Transcript::new(
                paper.clone(),
                true,
                Some(Arc::new(Words)),
            ))),
            paper,
        }
    }

    /// A provider starts to stream to the client.
    async fn open(&self, index: usize) -> StreamWriter {
        let client = [endpoint(9)];
        self.providers[index]
            .open_stream(TASK, Readers::Only(&client))
            .await
            .unwrap()
    }

    /// The reader's work, and the providers it knows of.
    fn read(&self, tokens_max: usize) -> (impl Future<Output = ()>, watch::Sender<Vec<AccountId>>) {
        let (sender, members) = watch::channel((0..3).map(account).collect());
        let reader = Reader {
            chain: Arc::new(self.chain.clone()),
            plane: self.client.clone(),
            task: TASK,
            tokens_max,
            posted: Some(Instant::now()),
            members,
            transcript: self.transcript.clone(),
            patience: Patience {
                pause: Duration::from_millis(10),
                standstill: Duration::from_millis(300),
            },
        };
        let read = async {
            tokio::time::timeout(Duration::from_secs(20), reader.read())
                .await
                .unwrap();
        };
        (read, sender)
    }

    async fn until_told(&self, count: usize) {
        while self.told().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn told(&self) -> Vec<u32> {
        let transcript = self.transcript.lock().unwrap();
        transcript.tokens().to_vec()
    }
}

#[tokio::test]
async fn tokens_are_shown_as_they_come_from_whoever_has_begun() {
    let world = World::new();
    let (read, _members) = world.read(10);
    let script = async {
        let stream = world.open(1).await;
        for id in 0..3 {
            stream.push(id);
            world.until_told(id as usize + 1).await;
        }
        assert_eq!(world.paper.text(), "w0 w1 w2 ");
        stream.complete();
    };
    tokio::join!(read, script);
    assert_eq!(
        world.paper.text(),
        "w0 w1 w2 ",
        "nothing is said that changes nothing"
    );
}

#[tokio::test]
async fn a_provider_that_dies_costs_a_retry_with_another_that_goes_on() {
    let world = World::new();
    let (read, _members) = world.read(10);
    let script = async {
        let dying = world.open(0).await;
        dying.push(0);
        dying.push(1);
        world.until_told(2).await;
        world.net.set_down(&endpoint(0), true);
        let other = world.open(2).await;
        for id in 0..4 {
            other.push(id);
        }
        other.complete();
    };
    tokio::join!(read, script);
    assert_eq!(world.told(), [0, 1, 2, 3]);
    let text = world.paper.text();
    assert_eq!(
        text.matches("w0").count(),
        1,
        "what is the same is not told twice: {text}"
    );
    assert!(text.contains("asking another"), "{text}");
}

#[tokio::test]
async fn a_provider_that_stands_still_is_left_for_another() {
    let world = World::new();
    let (read, _members) = world.read(10);
    let still = world.open(0).await;
    still.push(0);
    let script = async {
        world.until_told(1).await;
        let other = world.open(1).await;
        other.push(0);
        other.push(1);
        other.complete();
    };
    tokio::join!(read, script);
    assert_eq!(world.told(), [0, 1]);
}

#[tokio::test]
async fn another_text_starts_over_and_is_said() {
    let world = World::new();
    let (read, _members) = world.read(10);
    let script = async {
        let liar = world.open(0).await;
        for id in [0, 1, 77, 78] {
            liar.push(id);
        }
        world.until_told(4).await;
        world.net.set_down(&endpoint(0), true);
        let honest = world.open(1).await;
        for id in 0..3 {
            honest.push(id);
        }
        honest.complete();
    };
    tokio::join!(read, script);
    assert_eq!(world.told(), [0, 1, 2]);
    let text = world.paper.text();
    assert!(text.contains("from token 2 on: the text starts over"), "{text}");
    assert!(text.ends_with("]\nw0 w1 w2 "), "{text}");
}

#[tokio::test]
async fn tokens_that_another_does_not_have_are_taken_back() {
    let world = World::new();
    let (read, _members) = world.read(10);
    let script = async {
        let liar = world.open(0).await;
        liar.push(0);
        liar.push(1);
        world.until_told(2).await;
        world.net.set_down(&endpoint(0), true);
        let honest = world.open(1).await;
        honest.push(0);
        honest.complete();
    };
    tokio::join!(read, script);
    assert_eq!(world.told(), [0]);
}

#[tokio::test]
async fn more_tokens_than_can_be_are_a_lie() {
    let world = World::new();
    let liar = world.open(0).await;
    for id in 0..5 {
        liar.push(id);
    }
    let honest = world.open(1).await;
    honest.push(8);
    honest.complete();
    let (read, _members) = world.read(4);
    read.await;
    assert_eq!(world.told(), [8]);
    assert!(
        world.paper.text().contains("is not asked again"),
        "{}",
        world.paper.text()
    );
}

#[tokio::test]
async fn why_a_provider_cannot_compute_is_said() {
    let world = World::new();
    let (read, _members) = world.read(4);
    let script = async {
        world.open(0).await.fail("the prompt has 900 tokens");
        while world.transcript.lock().unwrap().reasons().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.open(1).await.complete();
    };
    tokio::join!(read, script);
    let reasons = world.transcript.lock().unwrap().reasons().unwrap();
    assert_eq!(
        reasons,
        format!("{}: the prompt has 900 tokens", short(&account(0)))
    );
}
