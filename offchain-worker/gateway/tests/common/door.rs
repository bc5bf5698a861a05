//! Files and batches over real sockets, with a chain in a file.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use surety_gateway::{
    BatchModel, BatchRunner, BatchSettings, Computed, Ended, Gateway, KeyTerms, Ledger, LedgerError,
    ModelText, NoProviders, Payment, Posting, Quoted, RunnerError, Settings, TaskReceipt, Upstream,
};
use surety_types::{
    input::{InputReader, Work},
    model::Operation,
    speed::Requirements,
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};

use super::{ANSWER, Bytes, asked, sent};

pub const TERMS: KeyTerms = KeyTerms {
    cap: 100_000,
    requests_per_minute: 100,
    tokens_per_minute: 100_000,
};
/// Of a unit; what is quoted is ten.
pub const PRICE: u128 = 7;
pub const FEE: u128 = 1;

/// Where the gateway is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dies {
    BeforePost,
    AfterPost,
    WhileFollowed,
}

pub const DEATHS: [Dies; 3] = [Dies::BeforePost, Dies::AfterPost, Dies::WhileFollowed];

/// A chain in a file: the numbers of what was posted, a line each.
pub struct Tasks {
    pub chain: PathBuf,
    pub dies: Option<Dies>,
    /// The first post gets lost, on its way back.
    pub loses_first: bool,
    /// Tasks are over when there is a permit for each.
    pub over: Arc<Semaphore>,
    /// Providers deliver nothing.
    pub fails: bool,
    /// Tasks that somebody follows.
    pub followed: Arc<AtomicUsize>,
    /// What the tasks asked of their providers.
    pub required: Arc<Mutex<Vec<Requirements>>>,
    /// Nobody is what is asked for, where anything is.
    pub nobody: bool,
    /// There is money for tasks of so many units.
    pub affords: u32,
    /// A task cannot be withdrawn so many times, for now.
    pub not_yet: AtomicUsize,
}

impl Tasks {
    pub fn new(chain: &Path) -> Self {
        Self {
            chain: chain.to_owned(),
            dies: None,
            loses_first: false,
            over: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            fails: false,
            followed: Arc::default(),
            required: Arc::default(),
            nobody: false,
            affords: u32::MAX,
            not_yet: AtomicUsize::new(0),
        }
    }

    pub fn posted(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.chain).unwrap_or_default();
        text.lines().map(String::from).collect()
    }

    fn die(&self, here: Dies) {
        if self.dies == Some(here) {
            // SIGKILL: nothing of this process runs after it.
            let id = std::process::id().to_string();
            std::process::Command::new("kill")
                .args(["-9", &id])
                .status()
                .unwrap();
        }
    }

    fn cancelled(&self, task: u64) -> PathBuf {
        self.chain.with_extension(format!("{task}.cancelled"))
    }
}

#[async_trait]
impl BatchRunner for Tasks {
    fn models(&self) -> Vec<BatchModel> {
        let model = |(name, generates): (&str, bool)| BatchModel {
            name: name.into(),
            generates,
        };
        [("talker", true), ("embedder", false)].map(model).into()
    }

    async fn check_providers(&self, asked: &Requirements) -> Result<(), RunnerError> {
        match self.nobody && *asked != Requirements::default() {
            true => Err(RunnerError::Refused("of 3 providers none is there".into())),
            false => Ok(()),
        }
    }

    async fn quote(&self, _: u64, _: &str, work: &Work) -> Result<Quoted, RunnerError> {
        Ok(Quoted {
            cap: u128::from(work.units_max) * 10,
            height: 5,
        })
    }

    async fn post(&self, posting: &Posting) -> Result<u64, RunnerError> {
        self.die(Dies::BeforePost);
        if posting.work.units_max > self.affords {
            return Err(RunnerError::Later("too little money".into()));
        }
        self.required.lock().unwrap().push(posting.requirements);
        let task = self.posted().len();
        let mut chain = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.chain)
            .unwrap();
        writeln!(chain, "{}", posting.number).unwrap();
        self.die(Dies::AfterPost);
        if self.loses_first && task == 0 {
            return Err(RunnerError::Later("the node is gone".into()));
        }
        Ok(task as u64)
    }

    async fn find(&self, posting: &Posting) -> Result<Option<u64>, RunnerError> {
        let number = posting.number.to_string();
        let found = self.posted().iter().position(|posted| *posted == number);
        Ok(found.map(|task| task as u64))
    }

    async fn ended(&self, posting: &Posting, task: u64) -> Result<Ended, RunnerError> {
        self.die(Dies::WhileFollowed);
        let unpaid = |why: &str| Ended {
            receipt: TaskReceipt {
                task,
                output_hash: None,
                block: 9,
                payments: Vec::new(),
                fee: 0,
            },
            output: Err(why.to_owned()),
        };
        if self.cancelled(task).exists() {
            return Ok(unpaid("it was cancelled"));
        }
        self.followed.fetch_add(1, SeqCst);
        let ended = self.over.acquire().await;
        self.followed.fetch_sub(1, SeqCst);
        ended.unwrap().forget();
        if self.fails {
            return Ok(unpaid("too few providers delivered in time"));
        }
        let reader = InputReader::new(&posting.input, Bytes.bounds());
        let output = match posting.work.operation {
            Operation::Embed => {
                let items = (0..posting.work.units_max).map(|item| reader.item(item));
                Computed::Vectors(items.map(|ids| vec![ids.len() as f32, 0.5]).collect())
            }
            Operation::Generate => {
                let most = reader.settings().max_tokens as usize;
                let ids: Vec<u32> = ANSWER.bytes().take(most).map(u32::from).collect();
                let stopped = ids.len() < most;
                Computed::Tokens { ids, stopped }
            }
        };
        let payment = Payment {
            provider: "provider-0".into(),
            price: u128::from(posting.work.units_max) * PRICE,
        };
        Ok(Ended {
            receipt: TaskReceipt {
                task,
                output_hash: Some("aa".into()),
                block: 9,
                payments: vec![payment],
                fee: FEE,
            },
            output: Ok(output),
        })
    }

    async fn cancel(&self, task: u64) -> Result<(), RunnerError> {
        let left = self
            .not_yet
            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        if left.is_ok() {
            return Err(RunnerError::Later("the node is gone".into()));
        }
        fs::write(self.cancelled(task), "").unwrap();
        Ok(())
    }
}

pub struct Door {
    pub address: SocketAddr,
    pub ledger: Arc<Ledger>,
    serving: JoinHandle<()>,
}

pub fn settings(without_key: Option<KeyTerms>, window: Duration) -> Settings {
    Settings {
        without_key,
        calls: 4,
        connections: 16,
        connections_per_address: 32,
        proxies: Vec::new(),
        time: Duration::from_secs(60),
        token_time: Duration::from_secs(20),
        proof_time: Duration::from_secs(15),
        batches: BatchSettings {
            tasks: 4,
            window,
            pause: Duration::from_millis(10),
        },
    }
}

impl Door {
    pub async fn new(path: &Path, tasks: Tasks, settings: Settings) -> Self {
        Self::before(Arc::new(NoProviders), path, tasks, settings).await
    }

    /// In front of providers who answer at once, too.
    pub async fn before(providers: Arc<dyn Upstream>, path: &Path, tasks: Tasks, settings: Settings) -> Self {
        Self::reading(Arc::new(Bytes), providers, path, tasks, settings).await
    }

    /// The same, where tokens have another text.
    pub async fn reading(
        text: Arc<dyn ModelText>,
        providers: Arc<dyn Upstream>,
        path: &Path,
        tasks: Tasks,
        settings: Settings,
    ) -> Self {
        let ledger = Arc::new(opened(path).await);
        let texts = BTreeMap::from([("talker".to_owned(), text.clone()), ("embedder".to_owned(), text)]);
        let gateway = Gateway::new(providers, Arc::new(tasks), texts, ledger.clone(), settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let never = std::future::pending();
            gateway.serve(&listener, address, never).await.unwrap();
        });
        Self {
            address,
            ledger,
            serving,
        }
    }

    /// Ends it in the middle of whatever it does.
    pub async fn stop(self) {
        self.serving.abort();
        assert!(self.serving.await.is_err());
    }

    pub async fn open(home: &Path, tasks: Tasks) -> Self {
        Self::new(&home.join("ledger"), tasks, settings(Some(TERMS), DAY)).await
    }

    pub async fn get(&self, path: &str, key: &str) -> (u16, String) {
        let (status, _, body) = asked(self.address, &format!("GET {path}"), key, "").await;
        (status, body)
    }

    pub async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path, "x").await.1).unwrap()
    }

    /// Gives a file, as the official client does.
    pub async fn give(&self, key: &str, text: &str) -> Value {
        let form = format!(
            "--b0\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b0\r\nContent-Disposition: \
             form-data; name=\"file\"; filename=\"in.jsonl\"\r\nContent-Type: application/octet-stream\r\n\r\n{text}\r\n\
             --b0--\r\n"
        );
        let kind = "multipart/form-data; boundary=b0";
        let (status, _, body) = sent(self.address, "POST /v1/files", key, kind, &form).await;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    pub async fn create(&self, key: &str, file: &str, endpoint: &str) -> (u16, Value) {
        self.create_saying(key, file, endpoint, json!({"a": "b"})).await
    }

    pub async fn create_saying(
        &self,
        key: &str,
        file: &str,
        endpoint: &str,
        metadata: Value,
    ) -> (u16, Value) {
        let body = json!({
            "input_file_id": file, "endpoint": endpoint, "completion_window": "24h", "metadata": metadata,
        });
        let (status, _, body) = asked(self.address, "POST /v1/batches", key, &body.to_string()).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    /// A batch of these requests.
    pub async fn begin(&self, endpoint: &str, bodies: &[Value]) -> String {
        let lines = lines(endpoint, bodies);
        let file = self.give("x", &lines).await;
        let (status, batch) = self.create("x", file["id"].as_str().unwrap(), endpoint).await;
        assert_eq!((status, &batch["object"]), (200, &json!("batch")), "{batch}");
        batch["id"].as_str().unwrap().to_owned()
    }

    /// The batch, once it has a status.
    pub async fn reaches(&self, id: &str, status: &str) -> Value {
        let look = async {
            loop {
                let batch = self.json(&format!("/v1/batches/{id}")).await;
                if batch["status"] == status {
                    return batch;
                }
            }
        };
        match tokio::time::timeout(Duration::from_secs(20), look).await {
            Ok(batch) => batch,
            Err(_) => panic!("{}", self.json(&format!("/v1/batches/{id}")).await),
        }
    }

    pub async fn file(&self, id: &Value) -> Vec<Value> {
        let path = format!("/v1/files/{}/content", id.as_str().unwrap());
        let (status, body) = self.get(&path, "x").await;
        assert_eq!(status, 200);
        body.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The ledger, once whoever had it is gone.
async fn opened(path: &Path) -> Ledger {
    let open = async {
        loop {
            match Ledger::open(path) {
                Err(LedgerError::InUse) => tokio::task::yield_now().await,
                opened => return opened.unwrap(),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), open).await.unwrap()
}

pub const DAY: Duration = Duration::from_secs(24 * 3600);

pub fn lines(endpoint: &str, bodies: &[Value]) -> String {
    let line = |(at, body): (usize, &Value)| {
        let line = json!({"custom_id": format!("r{at}"), "method": "POST", "url": endpoint, "body": body});
        format!("{line}\n")
    };
    bodies.iter().enumerate().map(line).collect()
}

pub fn embed(text: Value) -> Value {
    json!({"model": "embedder", "input": text})
}
