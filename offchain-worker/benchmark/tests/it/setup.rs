//! A chain, a provider, and a machine that does as a test says.

use std::{
    num::NonZero,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use prometheus::{Registry, TextEncoder};
use sp_core::H256;
use surety_benchmark::{Failed, Hold, Machine, Metrics, Parts, Pause, RunMemory, in_words};
use surety_chain_client::{AccountId, Call, Chain, FakeChain, GpuRound, Signer, Until};
use surety_gpu_proofs::{Job, MeasuredView, Memory, OutOfMemory, Processor, RoundStage, Row};
use surety_proofs::Proof;
use surety_types::stake::Role;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

/// Longer than anything here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time for a run. All of it is used.
pub const WINDOW_MS: u64 = 4_000;

/// Blocks that it takes to do all that a machine has promised.
pub const LOAD: u32 = 5;

/// A processor that can be busy, or err.
#[derive(Default)]
pub struct Bench {
    pub is_busy: AtomicBool,
    /// Blocks until all that is promised is done. There is no pause before that.
    pub load: AtomicU32,
    /// Whether each row has a wrong cell.
    pub errs: Arc<AtomicBool>,
    /// Whether each batch takes a while.
    pub is_slow: Arc<AtomicBool>,
    /// Whether the next pause ends by a defect.
    pub fails: AtomicBool,
    /// How often the machine was had alone.
    pub pauses: AtomicU32,
    /// Whatever runs are made in has one more.
    at_work: Arc<()>,
    /// Whatever has nothing new promised has one more.
    holds: Arc<()>,
}

impl Bench {
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.at_work) == 1
    }

    /// A block passes, in which as much is promised as there is room for, unless nothing may be. Returns what
    /// is still to be done then.
    pub fn pass(&self) -> u32 {
        let left = match Arc::strong_count(&self.holds) {
            1 => LOAD,
            _ => self.load.load(Ordering::Relaxed).saturating_sub(1),
        };
        self.load.store(left, Ordering::Relaxed);
        left
    }
}

#[async_trait]
impl Machine for Bench {
    async fn pause(&self, _: Duration) -> Result<Pause, String> {
        if self.is_busy.load(Ordering::Relaxed) || self.load.load(Ordering::Relaxed) > 0 {
            return Err("a promised result could be late".into());
        }
        self.pauses.fetch_add(1, Ordering::Relaxed);
        assert!(!self.fails.swap(false, Ordering::Relaxed), "a defect");
        Ok(Box::new(()))
    }

    fn hold(&self, _: Duration) -> Hold {
        Box::new(self.holds.clone())
    }

    fn memory(&self, _: &Arc<AtomicBool>) -> Result<(RunMemory, u32), Failed> {
        let memory = Erring {
            processor: Processor::new(NonZero::<usize>::MIN),
            errs: self.errs.clone(),
            is_slow: self.is_slow.clone(),
            _at_work: self.at_work.clone(),
        };
        Ok((
            in_words(memory, |_| Failed::Memory("there is no memory".into())),
            64,
        ))
    }
}

struct Erring {
    processor: Processor,
    errs: Arc<AtomicBool>,
    is_slow: Arc<AtomicBool>,
    _at_work: Arc<()>,
}

impl Memory for Erring {
    type Error = OutOfMemory;

    fn fill(&mut self, job: &Job) -> Result<(), OutOfMemory> {
        self.processor.fill(job)
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, OutOfMemory> {
        if self.is_slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.processor.step(job, layer, batch)
    }

    fn digests(&mut self) -> Result<Vec<H256>, OutOfMemory> {
        self.processor.digests()
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, OutOfMemory> {
        self.processor.proofs(rows)
    }

    fn row(&mut self, row: u32) -> Result<Row, OutOfMemory> {
        let mut cells = self.processor.row(row)?;
        if self.errs.load(Ordering::Relaxed) {
            cells[0] ^= 1;
        }
        Ok(cells)
    }
}

pub struct World {
    pub chain: FakeChain,
    pub bench: Arc<Bench>,
    /// Time for a run.
    pub window_ms: u64,
    /// Those of the newest process.
    figures: Mutex<Registry>,
    stash: Signer,
    agent: Signer,
    dir: tempfile::TempDir,
}

/// A provider at work.
pub struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    pub async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
    }

    /// As a crash does it: nothing is finished.
    pub async fn kill(self) {
        self.task.abort();
        self.task.await.ok();
    }
}

impl World {
    pub async fn new() -> Self {
        let world = Self {
            chain: FakeChain::new(),
            bench: Arc::default(),
            window_ms: WINDOW_MS,
            figures: Mutex::default(),
            stash: Signer::from_uri("//Stash").unwrap(),
            agent: Signer::from_uri("//Agent").unwrap(),
            dir: tempfile::tempdir().unwrap(),
        };
        let bond = Call::Bond {
            role: Role::Provider,
            amount: 1000,
        };
        let name = Call::SetAgent {
            agent: world.agent.account().clone(),
        };
        let confirm = Call::ConfirmAgent {
            stash: world.stash().clone(),
        };
        for (signer, call) in [
            (&world.stash, bond),
            (&world.stash, name),
            (&world.agent, confirm),
        ] {
            let sent = world.chain.submit(signer, call, Until::Included.into());
            sent.await.unwrap();
        }
        world.chain.finalize();
        world
    }

    pub fn stash(&self) -> &AccountId {
        self.stash.account()
    }

    pub fn journal(&self) -> PathBuf {
        self.dir.path().join("benchmark.journal")
    }

    pub fn start(&self) -> Running {
        self.start_as(true)
    }

    pub fn start_as(&self, takes_part: bool) -> Running {
        self.start_on(self.bench.clone(), takes_part)
    }

    pub fn start_on(&self, machine: Arc<dyn Machine>, takes_part: bool) -> Running {
        let registry = Registry::new();
        let metrics = Metrics::new(&registry).unwrap();
        let parts = Parts {
            chain: Arc::new(self.chain.clone()),
            rounds: Arc::new(self.chain.clone()),
            signer: self.agent.clone(),
            stash: self.stash().clone(),
            machine,
            journal: self.journal(),
            metrics,
            tip: 7,
            takes_part,
        };
        *self.figures.lock().unwrap() = registry;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(surety_benchmark::run(parts, stopped));
        Running { stop, task }
    }

    fn enter(&self, stage: RoundStage<u32>) {
        self.chain.change(|state| {
            state.gpu_proofs.round = Some(GpuRound {
                number: 1,
                window_ms: self.window_ms,
                stage,
                time_ms: 1_000,
                now: 0,
            });
        });
    }

    /// A round has begun, in the best block.
    pub fn begin(&self) {
        self.enter(RoundStage::Seeding { authors_left: 8 });
        self.chain.extend();
    }

    /// A round asks for runs from this entropy, in the best block.
    pub fn run_from(&self, entropy: u8) {
        let (entropy, since_ms) = (H256::repeat_byte(entropy), 1_000);
        self.enter(RoundStage::Running { entropy, since_ms });
        self.chain.extend();
    }

    /// The window is over.
    pub fn close(&self, entropy: u8) {
        let entropy = H256::repeat_byte(entropy);
        self.enter(RoundStage::Drawing {
            entropy,
            authors_left: 8,
        });
        self.chain.extend();
    }

    /// Samples are drawn in the best block; hardly any time to wait is left to chance.
    pub fn draw(&self, entropy: u8) {
        let until = self.chain.change(|state| state.clock) + 2;
        self.enter(RoundStage::Opening {
            entropy: H256::repeat_byte(entropy),
            samples: H256::repeat_byte(77),
            until,
        });
        self.chain.extend();
    }

    /// The round is over.
    pub fn end(&self) {
        self.chain.change(|state| state.gpu_proofs.round = None);
        self.chain.finalize();
    }

    /// Extends the chain, as it does by itself, until something is as it should be.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waited = async {
            while !is_so(self) {
                self.chain.extend();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(timeout(PATIENCE, waited).await.is_ok(), "{what}");
    }

    /// Commitments that the chain has taken.
    pub fn commitments(&self) -> Vec<Call> {
        let calls = self.chain.calls().into_iter().map(|(_, call)| call);
        calls
            .filter(|call| matches!(call, Call::CommitRun { .. }))
            .collect()
    }

    /// Calls about the benchmark that were handed over, taken or not.
    pub fn attempts(&self) -> usize {
        let attempts = self.chain.attempts();
        let is_about = |call: &Call| matches!(call, Call::CommitRun { .. } | Call::OpenRun { .. });
        attempts.iter().filter(|(_, call, _)| is_about(call)).count()
    }

    /// Whether the process shows this figure.
    pub fn shows(&self, figure: &str) -> bool {
        let figures = self.figures.lock().unwrap().gather();
        let text = TextEncoder::new().encode_to_string(&figures).unwrap();
        text.lines().any(|line| line == figure)
    }

    /// Whether so many rounds have gone like that.
    pub fn counts(&self, outcome: &str, rounds: u32) -> bool {
        self.shows(&format!(
            "surety_benchmark_rounds_total{{outcome=\"{outcome}\"}} {rounds}"
        ))
    }

    pub fn measured(&self) -> Option<MeasuredView> {
        self.chain
            .change(|state| state.gpu_proofs.measured.get(self.stash()).copied())
    }
}
