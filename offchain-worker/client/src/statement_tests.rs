#![allow(clippy::unwrap_used)]
use surety_chain_client::{CommitRecord, FakeChain, RoundRecord, Signer, TaskRecord};
use surety_proofs::CommitStatement;
use surety_types::{
    model::Operation,
    task::{ResultClaim, RoundMember, TaskSpec, TaskState},
};

use super::*;

const TASK: TaskId = 5;
const OUTPUT: ContentHash = ContentHash::repeat_byte(3);
const COMMITMENT: Hash = Hash::repeat_byte(2);

fn provider() -> AccountId {
    AccountId::new([1; 32])
}

fn agent() -> Signer {
    Signer::from_uri("//Agent").unwrap()
}

struct World {
    chain: FakeChain,
    home: tempfile::TempDir,
}

impl World {
    /// A round of one that has come so far.
    fn new(progress: MemberProgress) -> Self {
        let world = Self {
            chain: FakeChain::new(),
            home: tempfile::tempdir().unwrap(),
        };
        let spec = TaskSpec {
            model: ContentHash::zero(),
            operation: Operation::Embed,
            input: ContentHash::zero(),
            input_bytes: 1,
            units_max: 1,
            redundancy: 1,
            sources: Default::default(),
            security: Default::default(),
            requirements: Default::default(),
        };
        let task = TaskRecord {
            client: AccountId::new([9; 32]),
            spec,
            cap: 1,
            audits: surety_types::task::AuditTerms::default(),
            posted_at: 0,
            state: TaskState::Running {
                assignments: Default::default(),
                reserves: Default::default(),
            },
        };
        let is_committed = progress != MemberProgress::Working;
        let member = RoundMember {
            progress,
            ..RoundMember::new(provider(), 0, 0)
        };
        world.chain.change(|state| {
            state.agents.insert(agent().account().clone(), provider());
            let note = CommitRecord {
                agent: agent().account().clone(),
                commitment: COMMITMENT,
                shown: None,
            };
            state
                .commit_notes
                .extend(is_committed.then_some(((TASK, provider()), note)));
            state.tasks.insert(TASK, task);
            let round = RoundRecord {
                members: vec![member].try_into().unwrap(),
                ..RoundRecord::new(1, 9)
            };
            state.rounds.insert(TASK, round);
        });
        world
    }

    fn says(&self, commitment: Hash, output: ContentHash) -> Statement {
        let statement = CommitStatement {
            task: TASK,
            provider: provider(),
            commitment,
            output,
        };
        agent().sign_statement(statement, &self.chain.info().genesis)
    }

    async fn accepts(&self, statement: Option<Statement>) -> std::result::Result<(), Refused> {
        let found = OutputLocation {
            hash: OUTPUT,
            bytes: 1,
            statement,
            leaves: None,
        };
        accept(&self.chain, self.home.path(), TASK, &provider(), &found).await
    }

    fn kept(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.home.path().join("tasks"));
        let mut files: Vec<_> = files
            .into_iter()
            .flatten()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        files
    }
}

fn committed() -> MemberProgress {
    MemberProgress::Committed(COMMITMENT)
}

#[tokio::test]
async fn a_statement_that_the_chain_bears_out_is_kept_once() {
    let world = World::new(committed());
    for _ in 0..2 {
        assert_eq!(world.accepts(Some(world.says(COMMITMENT, OUTPUT))).await, Ok(()));
    }
    let kept = world.kept();
    assert_eq!(kept.len(), 1);
    let loaded = load(&kept[0]).unwrap();
    assert_eq!(loaded.statement, world.says(COMMITMENT, OUTPUT).statement);
    assert!(is_signed(&loaded, &world.chain.info().genesis));

    let claim = ResultClaim {
        output: OUTPUT,
        trace_root: Hash::zero(),
        units: 1,
    };
    let world = World::new(MemberProgress::Revealed(claim));
    assert_eq!(world.accepts(Some(world.says(COMMITMENT, OUTPUT))).await, Ok(()));
}

#[tokio::test]
async fn what_is_no_word_of_the_provider_is_refused_and_not_kept() {
    let world = World::new(committed());
    let right = || world.says(COMMITMENT, OUTPUT);
    assert_eq!(world.accepts(None).await, Err(Refused::Unsigned));
    let other = world.says(COMMITMENT, COMMITMENT);
    assert_eq!(world.accepts(Some(other)).await, Err(Refused::SomethingElse));

    let mut changed = right();
    changed.statement.commitment = OUTPUT;
    assert_eq!(world.accepts(Some(changed)).await, Err(Refused::BadSignature));

    let stranger = Signer::from_uri("//Stranger").unwrap();
    let signed = stranger.sign_statement(right().statement, &world.chain.info().genesis);
    let refused = Refused::NotItsAgent(address(stranger.account()));
    assert_eq!(world.accepts(Some(signed)).await, Err(refused));

    let elsewhere = agent().sign_statement(right().statement, &Hash::repeat_byte(7));
    assert_eq!(world.accepts(Some(elsewhere)).await, Err(Refused::BadSignature));
    assert_eq!(world.kept(), Vec::<PathBuf>::new());

    let early = World::new(MemberProgress::Working);
    assert_eq!(early.accepts(Some(right())).await, Err(Refused::NotCommitted));
}

#[tokio::test]
async fn a_key_that_acts_for_the_provider_now_and_did_not_commit_vouches_for_nothing() {
    let world = World::new(committed());
    let later = Signer::from_uri("//Later").unwrap();
    world.chain.change(|state| {
        state.agents.clear();
        state.agents.insert(later.account().clone(), provider());
    });
    let said = world.says(COMMITMENT, OUTPUT);
    let signed = later.sign_statement(said.statement.clone(), &world.chain.info().genesis);
    let refused = Refused::NotItsAgent(address(later.account()));
    assert_eq!(world.accepts(Some(signed)).await, Err(refused));
    assert_eq!(world.accepts(Some(said)).await, Ok(()));
}

#[tokio::test]
async fn what_contradicts_the_chain_is_kept_and_can_be_reported() {
    let world = World::new(committed());
    let refused = world.accepts(Some(world.says(OUTPUT, OUTPUT))).await.unwrap_err();
    let kept = world.kept();
    let text = refused.to_string();
    assert!(matches!(refused, Refused::Contradicts(_)), "{text}");
    assert!(
        text.contains(&format!("surety dispute report {}", kept[0].display())),
        "{text}"
    );

    let claim = ResultClaim {
        output: Hash::zero(),
        trace_root: Hash::zero(),
        units: 1,
    };
    let world = World::new(MemberProgress::Revealed(claim));
    let refused = world
        .accepts(Some(world.says(COMMITMENT, OUTPUT)))
        .await
        .unwrap_err();
    assert!(matches!(refused, Refused::Contradicts(_)));
}

#[tokio::test]
async fn who_reveals_another_output_than_it_signed_for_is_told_of() {
    let world = World::new(committed());
    world.accepts(Some(world.says(COMMITMENT, OUTPUT))).await.unwrap();
    let told = |output| {
        let claim = ResultClaim {
            output,
            trace_root: Hash::zero(),
            units: 1,
        };
        let member = RoundMember {
            progress: MemberProgress::Revealed(claim),
            ..RoundMember::new(provider(), 0, 0)
        };
        let round = RoundRecord {
            members: vec![member].try_into().unwrap(),
            ..RoundRecord::new(1, 9)
        };
        contradictions(world.home.path(), &world.chain.info().genesis, TASK, &round)
    };
    assert_eq!(told(OUTPUT), Vec::<String>::new());
    let texts = told(Hash::zero());
    assert!(
        texts.len() == 1 && texts[0].contains("surety dispute report"),
        "{texts:?}"
    );
}

#[tokio::test]
async fn two_different_statements_are_kept_both_and_no_third() {
    let world = World::new(committed());
    world.accepts(Some(world.says(COMMITMENT, OUTPUT))).await.unwrap();
    for other in [7, 8] {
        let refused = world
            .accepts(Some(world.says(Hash::repeat_byte(other), OUTPUT)))
            .await
            .unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, Refused::TwoStatements(_)), "{text}");
        assert!(text.contains(" --other "), "{text}");
    }
    let kept = world.kept();
    assert_eq!(kept.len(), 2);

    // As `surety dispute report` sends them.
    let Call::ReportEquivocation { statement, other } = report(&kept[1], Some(&kept[0])).unwrap() else {
        panic!("another call");
    };
    let said = (
        statement.statement.commitment,
        other.unwrap().statement.commitment,
    );
    assert_eq!(said, (COMMITMENT, Hash::repeat_byte(7)));
}

#[test]
fn a_file_that_is_no_statement_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.json");
    for text in ["{", "{}", &"x".repeat(5000)] {
        fs::write(&path, text).unwrap();
        assert!(load(&path).is_err());
    }
    assert!(load(&dir.path().join("none.json")).is_err());
}
