#![allow(clippy::unwrap_used)]

mod demands;
mod failing;
mod told;

use surety_chain_client::{
    AccountId, CommitRecord, FakeChain, Hash, ProviderRecord, RoundRecord, Signer, TaskRecord,
};
use surety_engine::{
    Embeddings, content_hash,
    generation::{FinishReason, Generation},
};
use surety_models::tokens::TextFault;
use surety_network::{
    Announcement, Bytes, Readers, StreamWriter,
    memory::{MemoryNet, MemoryPlane},
};
use surety_proofs::CommitStatement;
use surety_types::{
    ContentHash,
    model::Operation,
    multiaddr::Endpoint,
    provider::{DeviceKind, DeviceProfile},
    task::{
        Assignment, FailureReason, MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskSpec, Verdict,
    },
};

use super::*;
use crate::{amount::Plancks, testsuite::Paper};

const TASK: TaskId = 5;

/// Tokens 4, 5 and 6 are the words of a sentence.
struct Words;

impl ToText for Words {
    fn text(&self, ids: &[u32]) -> std::result::Result<String, TextFault> {
        let word = |id: &u32| ["so", " it", " goes"].get(*id as usize - 4).copied();
        Ok(ids.iter().filter_map(word).collect())
    }
}

/// A running task of two providers and a client that follows it.
struct World {
    chain: FakeChain,
    providers: Vec<MemoryPlane>,
    client: Arc<MemoryPlane>,
    dir: tempfile::TempDir,
}

fn account(index: u8) -> AccountId {
    AccountId::new([index; 32])
}

fn device() -> DeviceProfile {
    DeviceProfile {
        name: Default::default(),
        kind: DeviceKind::Cpu,
        cores: 1,
        memory_mib: 1,
        region: None,
    }
}

fn endpoint(index: u8) -> Endpoint {
    Endpoint::try_from(format!("peer {index}").into_bytes()).unwrap()
}

fn output(value: f32) -> Bytes {
    let embeddings = Embeddings::new(2, vec![value, 1.0]).unwrap();
    embeddings.encode().unwrap().into()
}

fn claim(output: &Bytes) -> ResultClaim {
    ResultClaim {
        output: content_hash(output),
        trace_root: Hash::zero(),
        units: 1,
    }
}

impl World {
    fn new() -> Self {
        let net = MemoryNet::default();
        let world = Self {
            chain: FakeChain::new(),
            providers: (0..2).map(|index| net.join(endpoint(index))).collect(),
            client: Arc::new(net.join(endpoint(9))),
            dir: tempfile::tempdir().unwrap(),
        };
        world.chain.change(|state| {
            let assignments: Vec<_> = (0..2).map(|index| assignment(index, 7)).collect();
            for index in 0..2 {
                let provider = ProviderRecord {
                    device: device(),
                    endpoints: vec![endpoint(index)].try_into().unwrap(),
                    last_heartbeat: 0,
                };
                state.providers.insert(account(index), provider);
            }
            state.tasks.insert(TASK, task(assignments));
            state.rounds.insert(TASK, round());
        });
        world.chain.finalize();
        world
    }

    fn run(&self) -> Run<Paper> {
        Run::new(Follow {
            chain: Arc::new(self.chain.clone()),
            plane: self.client.clone(),
            screen: Paper::of_json(),
            home: self.dir.path().into(),
            task: TASK,
            operation: Operation::Embed,
            age: Some(Duration::from_secs(1)),
            output_path: Some(self.path()),
            show_tokens: false,
            leave_at_result: false,
            supplier: None,
            demander: None,
            ticket: None,
            text: None,
        })
    }

    /// The same task, but for the operation, on both sides; what it prints is on the paper.
    fn generating(&self) -> (Run<Paper>, Paper) {
        self.chain.change(|state| {
            let spec = &mut state.tasks.get_mut(&TASK).unwrap().spec;
            (spec.operation, spec.units_max) = (Operation::Generate, 9);
            // A prompt of two tokens.
            spec.input_bytes = 4 * (6 + 2);
        });
        self.chain.finalize();
        let mut run = self.run();
        (run.follow.operation, run.follow.output_path) = (Operation::Generate, None);
        let paper = Paper::default();
        let text: Arc<dyn ToText> = Arc::new(Words);
        run.follow.text = Some(text.clone());
        run.transcript = Arc::new(Mutex::new(Transcript::new(paper.clone(), true, Some(text))));
        (run, paper)
    }

    /// A provider starts to stream to the client.
    async fn stream(&self, index: usize) -> StreamWriter {
        let plane = &self.providers[index];
        plane
            .open_stream(TASK, Readers::Only(&[endpoint(9)]))
            .await
            .unwrap()
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("out.safetensors")
    }

    /// The provider commits, and serves `output`: its round is audited.
    async fn commit(&self, index: u8, output: &Bytes) {
        self.chain.open_audits(TASK, 99);
        self.commit_to(index, output, Readers::Everyone).await;
    }

    /// The provider commits, and serves `output` to these.
    async fn commit_to(&self, index: u8, output: &Bytes, readers: Readers<'_>) {
        let plane = &self.providers[usize::from(index)];
        let hash = plane.publish(output.clone()).await.unwrap();
        let agent = Signer::from_uri(&format!("//{index}")).unwrap();
        let statement = CommitStatement {
            task: TASK,
            provider: account(index),
            commitment: Hash::zero(),
            output: hash,
        };
        let signed = agent.sign_statement(statement, &self.chain.info().genesis);
        plane
            .announce_output(TASK, Announcement::new(hash).signed(signed), readers)
            .await
            .unwrap();
        self.chain.change(|state| {
            state.agents.insert(agent.account().clone(), account(index));
            let note = CommitRecord {
                agent: agent.account().clone(),
                commitment: Hash::zero(),
                shown: None,
            };
            state.commit_notes.insert((TASK, account(index)), note);
            let round = state.rounds.get_mut(&TASK).unwrap();
            round.members[usize::from(index)].progress = MemberProgress::Committed(Hash::zero());
        });
        self.chain.finalize();
    }

    fn decide(&self, verdict: Verdict<AccountId>) {
        self.chain.change(|state| {
            let round = state.rounds.get_mut(&TASK).unwrap();
            round.phase = RoundPhase::Challengeable { until: 99, verdict };
        });
        self.chain.finalize();
    }

    fn settle(&self, state: TaskState<AccountId, u128, u32>) {
        self.chain.change(|all| {
            all.rounds.remove(&TASK);
            all.tasks.get_mut(&TASK).unwrap().state = state;
        });
        self.chain.finalize();
    }
}

fn assignment(index: u8, price: u128) -> Assignment<AccountId, u128> {
    Assignment {
        provider: account(index),
        price,
    }
}

fn task(assignments: Vec<Assignment<AccountId, u128>>) -> TaskRecord {
    TaskRecord {
        client: account(9),
        spec: TaskSpec {
            model: ContentHash::zero(),
            operation: Operation::Embed,
            input: ContentHash::zero(),
            input_bytes: 1,
            units_max: 1,
            redundancy: 2,
            sources: vec![endpoint(9)].try_into().unwrap(),
            security: Default::default(),
            requirements: Default::default(),
        },
        cap: 100,
        audits: surety_types::task::AuditTerms::default(),
        posted_at: 0,
        state: TaskState::Running {
            assignments: assignments.try_into().unwrap(),
            reserves: Default::default(),
        },
    }
}

fn round() -> RoundRecord {
    let member = |index| RoundMember::new(account(index), 0, 0);
    RoundRecord {
        members: vec![member(0), member(1)].try_into().unwrap(),
        ..RoundRecord::new(1, 9)
    }
}

fn settled(output: &Bytes, paid: u8) -> TaskState<AccountId, u128, u32> {
    TaskState::Settled {
        at: 3,
        claim: claim(output),
        payments: vec![assignment(paid, 7)].try_into().unwrap(),
        refund: 92,
        fee: 1,
    }
}

/// Runs beside the script until the task is over.
async fn with_script(run: &mut Run<Paper>, script: impl Future<Output = ()>) -> Result<Report> {
    let (result, ()) = tokio::join!(run.until_over(), script);
    result
}

#[tokio::test]
async fn the_output_is_here_before_the_task_is_settled() {
    let world = World::new();
    let right = output(1.0);
    let script = async {
        world.commit(0, &right).await;
        while !world.path().exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        world.settle(settled(&right, 0));
    };
    let mut run = world.run();
    let report = with_script(&mut run, script).await.unwrap();
    assert_eq!(std::fs::read(world.path()).unwrap(), right);
    assert_eq!(report.state, "Settled");
    assert_eq!((report.refund, report.fee), (Some(Plancks(92)), Some(Plancks(1))));
    assert_eq!(report.escrow_left, Plancks(0));
    assert_eq!(report.payments.len(), 1);
    assert_eq!(report.output_hash, Some(format!("{:?}", content_hash(&right))));
    assert!(report.seconds_post_to_result.unwrap() >= 1.0);
    assert!(report.seconds_post_to_settled > report.seconds_post_to_result);
    let json = serde_json::to_value(&report).unwrap();
    for field in [
        "task",
        "state",
        "claim",
        "payments",
        "refund",
        "fee",
        "escrow_left",
        "finalized_block",
        "seconds_post_to_result",
        "seconds_post_to_settled",
        "output_path",
        "output_hash",
    ] {
        assert!(!json[field].is_null(), "{field} in {json}");
    }
    assert!(json["payments"][0]["account"].is_string() && json["payments"][0]["amount"] == "7");
}

#[tokio::test]
async fn a_generation_is_shown_while_it_is_made_and_compared_with_what_is_settled() {
    let world = World::new();
    let (mut run, paper) = world.generating();
    let generation = Generation {
        tokens: vec![4, 5, 6],
        finish_reason: FinishReason::Length,
    };
    let blob = Bytes::from(generation.encode());
    let script = async {
        let stream = world.stream(1).await;
        let mut shown = String::new();
        for (id, text) in [(4, "so"), (5, " it")] {
            shown.push_str(text);
            stream.push(id);
            while paper.text() != shown {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        // The last token never comes; the other provider's output does.
        world.commit(0, &blob).await;
        world.settle(TaskState::Settled {
            at: 3,
            claim: ResultClaim {
                units: 5,
                ..claim(&blob)
            },
            payments: vec![assignment(0, 7)].try_into().unwrap(),
            refund: 92,
            fee: 1,
        });
        stream
    };
    let (report, _stream) = tokio::join!(run.until_over(), script);
    let report = report.unwrap();
    assert!(paper.text().starts_with("so it goes\n"), "{}", paper.text());
    let generated = report.generation.as_ref().unwrap();
    let expected = text::Generated::new(generation, 2, Some(&Words));
    assert_eq!(generated.made, expected);
    assert_eq!(
        (generated.streamed.tokens, generated.streamed.as_settled),
        (2, true)
    );
    assert!(generated.streamed.seconds_post_to_first_token < report.seconds_post_to_settled);
    let event = report.as_event();
    assert_eq!(event["event"], "end");
    assert_eq!(event["report"]["generation"]["text"], "so it goes");
    assert_eq!(event["report"]["generation"]["finish_reason"], "length");
}

#[tokio::test]
async fn a_generation_that_nobody_can_compute_ends_with_the_providers_reason() {
    let world = World::new();
    let (mut run, paper) = world.generating();
    let script = async {
        world.stream(0).await.fail("the prompt has 900 tokens");
        while !paper.text().contains("900") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.settle(TaskState::Failed {
            at: 3,
            reason: FailureReason::NotEnoughResults,
        });
    };
    let report = with_script(&mut run, script).await.unwrap();
    assert_eq!((report.refund, report.generation), (Some(Plancks(100)), None));
    let failure = run.failure.take().unwrap();
    assert!(failure.contains("the prompt has 900 tokens"), "{failure}");
}

#[tokio::test]
async fn an_output_that_the_majority_does_not_share_is_fetched_again() {
    let world = World::new();
    let (wrong, right) = (output(-1.0), output(1.0));
    let script = async {
        world.commit(0, &wrong).await;
        while !world.path().exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(std::fs::read(world.path()).unwrap(), wrong);
        world.commit(1, &right).await;
        world.decide(Verdict::Agreed {
            claim: claim(&right),
            majority: vec![account(1)].try_into().unwrap(),
            minority: vec![account(0)].try_into().unwrap(),
            absent: Default::default(),
        });
        world.settle(settled(&right, 1));
    };
    let mut run = world.run();
    let report = with_script(&mut run, script).await.unwrap();
    assert_eq!(std::fs::read(world.path()).unwrap(), right);
    assert_eq!(report.output_hash, Some(format!("{:?}", content_hash(&right))));
}

#[tokio::test]
async fn whoever_wants_no_more_than_the_result_leaves_when_it_is_decided_and_not_before() {
    let world = World::new();
    let right = output(1.0);
    let script = async {
        world.commit(0, &right).await;
        while !world.path().exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Here, and of one provider's word alone: it stays until the others agree.
        world.decide(Verdict::Agreed {
            claim: claim(&right),
            majority: vec![account(0), account(1)].try_into().unwrap(),
            minority: Default::default(),
            absent: Default::default(),
        });
    };
    let mut run = world.run();
    run.follow.leave_at_result = true;
    let report = with_script(&mut run, script).await.unwrap();
    assert_eq!((report.state.as_str(), report.settled_block), ("Running", None));
    assert_eq!(
        (report.refund, report.fee, report.payments.len()),
        (None, None, 0)
    );
    assert!(report.claim.is_some() && report.output_hash.is_some());
    assert_eq!(report.seconds_post_to_settled, None);
    assert!(report.text().contains("surety task watch 5"), "{}", report.text());
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["refund"].is_null() && json["escrow_left"].is_string());
}

#[tokio::test]
async fn what_is_demanded_of_the_input_is_shown_on_the_chain() {
    let world = World::new();
    let input: Bytes = vec![7; 1_500].into();
    let hash = world.client.publish(input.clone()).await.unwrap();
    let wanted = surety_types::trust::InputDemand {
        provider: account(0),
        by: account(50),
        segment: 1,
        price: 1,
        until: 99,
    };
    world.chain.change(|state| {
        let spec = &mut state.tasks.get_mut(&TASK).unwrap().spec;
        (spec.input, spec.input_bytes) = (hash, 1_500);
        state.rounds.get_mut(&TASK).unwrap().input_demand = Some(wanted);
    });
    world.chain.finalize();
    let mut run = world.run();
    let signer = Signer::from_uri("//Alice").unwrap();
    run.follow.supplier = Some(Supplier::new(signer));
    let is_open = || {
        let chain = &world.chain;
        chain.change(|state| state.rounds[&TASK].input_demand.is_some())
    };
    assert!(is_open());
    let shown = async {
        while is_open() {
            run.look().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), shown)
        .await
        .unwrap();
    assert_eq!(world.chain.calls().len(), 1);

    // It looks at what was so before, as where a block is replaced by one in which its call came first.
    let (chain, plane): (Arc<dyn Chain>, Arc<dyn DataPlane>) =
        (Arc::new(world.chain.clone()), world.client.clone());
    let info = chain.task(When::Finalized, TASK).await.unwrap().unwrap();
    let mut supplier = Supplier::new(Signer::from_uri("//Alice").unwrap());
    let said = loop {
        if let Some(said) = supplier.see(&chain, &plane, TASK, &info).await {
            break said;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(said, "piece 1 of the input is on the chain, as was demanded");
}
