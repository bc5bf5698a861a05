//! What chain and node do to a worker in bad times: nothing that was right is lost by it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use surety_chain_client::{Call, ChainError, CommitRecord, DispatchFault, FakeState, Hash, Refusal};
use surety_journal::{JournalError, RecordLog};
use surety_network::DataPlane;
use surety_types::{
    TaskId,
    model::Operation,
    task::{MemberProgress, RoundPhase, TaskState},
    trust::OpenDispute,
};
use surety_worker_core::Record;
use tokio::sync::watch;

use super::{
    commits,
    world::{TIP_MAX, World},
};

fn is_commit(call: &Call) -> bool {
    matches!(call, Call::Commit { .. })
}

fn is_reveal(call: &Call) -> bool {
    matches!(call, Call::Reveal { .. })
}

/// A best block every few milliseconds, none of them final.
async fn stall_until(world: &World, holds: impl Fn() -> bool) {
    world
        .until(|| {
            world.chain.extend();
            holds()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_meets_another_call_of_the_signer_is_sent_until_it_is_on_the_chain() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    let troubles = [
        Refusal::PriorityTooLow,
        Refusal::PoolFull,
        Refusal::Stale,
        Refusal::BadProof,
        Refusal::NotVerified("State already discarded".into()),
        Refusal::UnknownOrigin,
        Refusal::Other {
            code: -1,
            message: "a word that nobody has heard before".into(),
        },
    ];
    for trouble in troubles {
        world.chain.refuse_next(is_commit, trouble, 4);
    }
    world.bid_and_assign_unfinalized(task).await;
    world.chain.change(|state| {
        let round = state.rounds.get_mut(&task).unwrap();
        round.phase = RoundPhase::Committing { until: 100_000 };
    });
    world.until_final(|| !commits(&world).is_empty()).await;
    host.stop().await;
    assert_eq!(commits(&world).len(), 1);
    let metrics = String::from_utf8(world.vitals().metrics.text().unwrap().0).unwrap();
    let refused = r#"surety_effects_failed_total{class="refused",kind="commit"} 28"#;
    assert!(metrics.contains(refused), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_tipped_near_their_deadline_and_not_before() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.chain.refuse_next(is_commit, Refusal::PoolFull, 1);
    world.bid_and_assign_unfinalized(task).await;
    let until = world.chain.change(|state| {
        let until = state.clock + 40;
        let round = state.rounds.get_mut(&task).unwrap();
        round.phase = RoundPhase::Committing { until };
        until
    });
    let tips = || -> Vec<u128> {
        let attempts = world.chain.attempts().into_iter();
        let commits = attempts.filter(|(_, call, _)| is_commit(call));
        commits.map(|(_, _, options)| options.tip).collect()
    };
    world.chain.finalize();
    world.until(|| tips().len() == 1).await;
    assert_eq!(tips(), [0], "there is time");
    world.chain.change(|state| state.clock = until - 3);
    world
        .until(|| {
            world.chain.extend();
            tips().len() > 1 || {
                // A look at the new time; it does not go on by itself.
                world.chain.change(|state| state.clock = until - 4);
                world.chain.finalize();
                false
            }
        })
        .await;
    host.stop().await;
    let last = tips().pop().unwrap();
    assert!(last > 0 && last <= TIP_MAX, "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commitment_is_opened_by_the_best_block_while_finality_stalls() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.bid_and_assign(task).await;
    world.until(|| !commits(&world).is_empty()).await;
    world.chain.finalize();
    // The journal has it that the commitment is final; nothing becomes final from now on.
    world.chain.open_reveals(task, 9_999);
    world.chain.refuse_next(is_reveal, Refusal::Future, 3);
    stall_until(&world, || {
        world.chain.change(|state| {
            let members = &state.rounds[&task].members;
            members
                .iter()
                .all(|member| matches!(member.progress, MemberProgress::Revealed(_)))
        })
    })
    .await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_whose_state_is_gone_and_answers_that_cannot_be_true_are_not_taken_for_an_empty_chain() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    let gone = ChainError::Pruned { block: "some".into() };
    let lie = ChainError::Implausible {
        url: "ws://fake".into(),
        reason: "it lacks what was there".into(),
    };
    world.bid_and_assign_unfinalized(task).await;
    world.chain.fail_next_reads(gone, 5);
    world.chain.fail_next_reads(lie, 2);
    world.until_final(|| !commits(&world).is_empty()).await;
    assert!(!world.is_finished(task));
    host.stop().await;
}

/// A dispute about a task begins of which the record cannot be read.
fn dispute_unreadably(world: &World, task: TaskId) {
    world.chain.change(|state| {
        let round = state.rounds.get_mut(&task).unwrap();
        let open = OpenDispute {
            id: 7,
            due: 9_999,
            defender: None,
            challenger: None,
        };
        round.disputes.try_push(open).unwrap();
        state.unreadable.insert(7);
    });
}

/// Posts a task, gives it to the provider, and waits until it has committed to a result.
async fn commit_to(world: &World, input: &[u8]) -> TaskId {
    let before = commits(world).len();
    let task = world.post(input).await;
    world.bid_and_assign(task).await;
    world.until_final(|| commits(world).len() > before).await;
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_of_ones_own_that_cannot_be_read_keeps_nobody_from_other_work() {
    let world = World::new().await;
    let host = world.start();
    let disputed = commit_to(&world, b"disputed\n").await;
    dispute_unreadably(&world, disputed);
    commit_to(&world, b"one\n").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_of_ones_own_that_was_never_read_keeps_nobody_from_other_work_and_is_not_over() {
    let world = World::new().await;
    let host = world.start();
    let disputed = commit_to(&world, b"disputed\n").await;
    host.stop().await;
    dispute_unreadably(&world, disputed);
    let host = world.start();
    commit_to(&world, b"one\n").await;
    // What is gone for as long as this is over.
    world.pass(40).await;
    assert!(!world.is_finished(disputed), "it is only not seen");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_of_others_that_cannot_be_read_keeps_nobody_from_working() {
    let world = World::new().await;
    let other = world.post(b"other\n").await;
    world.chain.assign(other, 9_999);
    dispute_unreadably(&world, other);
    let host = world.start();
    commit_to(&world, b"one\n").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_nobody_can_tell_the_price_of_keeps_nobody_from_bidding_for_others() {
    let world = World::new().await;
    let dark = world.post(b"dark\n").await;
    world.chain.change(|state| state.without_terms.insert(dark));
    world.chain.finalize();
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.until_bid(task, false).await;
    let for_dark = |call: &Call| matches!(call, Call::Bid { task, .. } if *task == dark);
    assert!(!world.chain.calls().iter().any(|(_, call)| for_dark(call)));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_that_cannot_be_read_since_an_upgrade_is_opened_all_the_same() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.until_bid(task, false).await;
    world.pass(2).await;
    // The bids of another program are as they were; whoever asks for nobody's finds nothing wrong.
    world.chain.change(|state| {
        state.unreadable_bids.insert(task);
        let until = state.clock + 100;
        state.tasks.get_mut(&task).unwrap().state = TaskState::Revealing { until };
    });
    world.pass(1).await;
    world.until_bid(task, true).await;
    host.stop().await;
    assert!(!world.is_finished(task));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bid_that_stake_was_wanting_for_is_made_again_without_a_tip_when_there_is_enough() {
    let world = World::new().await;
    let lock = |locked| {
        let change = |state: &mut FakeState| state.stakes.get_mut(world.stash()).unwrap().locked = locked;
        world.chain.change(change);
    };
    let is_bid = |call: &Call| matches!(call, Call::Bid { .. });
    let tips = || -> Vec<u128> {
        let attempts = world.chain.attempts().into_iter();
        let bids = attempts.filter(|(_, call, _)| is_bid(call));
        bids.map(|(_, _, options)| options.tip).collect()
    };
    let not_backed = DispatchFault {
        pallet: Some("TaskAuction".into()),
        name: "NotBacked".into(),
        docs: String::new(),
    };
    world
        .chain
        .refuse_next(is_bid, ChainError::Dispatch(not_backed), 1);
    // All of it.
    world.chain.change(|state| state.lock = 1000);
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.chain.change(|state| {
        let until = state.clock + 100;
        state.tasks.get_mut(&task).unwrap().state = TaskState::Bidding { until };
    });
    world.until(|| !tips().is_empty()).await;
    lock(1);
    // It has looked at its stake since, and waits.
    world.pass(12).await;
    let tried = tips().len();
    assert!(tried <= 2, "{tried}");
    world.pass(12).await;
    assert_eq!(tips().len(), tried);
    lock(0);
    world.until_final(|| tips().len() > tried).await;
    world.until_bid(task, false).await;
    assert!(tips().iter().all(|tip| *tip == 0));
    host.stop().await;
}

/// A disk on which there is no room.
struct Full;

impl RecordLog for Full {
    fn append(&self, _: &[Record]) -> Result<(), JournalError> {
        let path = "journal".into();
        Err(JournalError::DiskFull { path })
    }

    fn is_short_of_room(&self) -> bool {
        false
    }
}

/// A disk that filled up: what is written goes into the reserve, until somebody makes room.
struct Reserve {
    is_full: AtomicBool,
    records: Mutex<Vec<Record>>,
}

impl Default for Reserve {
    fn default() -> Self {
        Self {
            is_full: AtomicBool::new(true),
            records: Mutex::default(),
        }
    }
}

impl RecordLog for Reserve {
    fn append(&self, records: &[Record]) -> Result<(), JournalError> {
        self.records.lock().unwrap().extend_from_slice(records);
        Ok(())
    }

    fn is_short_of_room(&self) -> bool {
        self.is_full.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_down_to_its_journals_reserve_bids_for_nothing_and_says_why() {
    let world = World::new().await;
    let (stop, stopped) = watch::channel(false);
    let host = tokio::spawn(world.host(Arc::<Reserve>::default(), &[]).run(stopped));
    world.post(b"one\n").await;
    world.pass(20).await;
    let calls = world.chain.calls();
    assert!(!calls.iter().any(|(_, call)| matches!(call, Call::Bid { .. })));
    let report = world.vitals().health.report(tokio::time::Instant::now());
    assert!(
        report.reasons.iter().any(|reason| reason.contains("reserve")),
        "{report:?}"
    );
    stop.send(true).unwrap();
    host.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_down_to_its_journals_reserve_seals_nothing_until_there_is_room() {
    let world = World::new().await;
    let provider = world.start();
    let task = world.post(b"one\n").await;
    world.bid_and_assign(task).await;
    world.until_committed(task).await;
    world.chain.open_audits(task, 9_999);
    let log = Arc::<Reserve>::default();
    let verifier = world.start_verifier_on(log.clone(), &[]);
    // Long after everybody else would have sealed.
    world.pass(40).await;
    assert!(log.records.lock().unwrap().is_empty());
    log.is_full.store(false, Ordering::SeqCst);
    let announced = |(_, call): &(_, Call)| matches!(call, Call::AnnounceAudit { .. });
    world
        .until_final(|| world.chain.calls().iter().any(announced))
        .await;
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_room_on_its_disk_can_be_stopped() {
    let world = World::new().await;
    let (stop, stopped) = watch::channel(false);
    let host = tokio::spawn(world.host(Arc::new(Full), &[]).run(stopped));
    world.post(b"one\n").await;
    let vitals = world.vitals();
    world
        .until(|| {
            let report = vitals.health.report(tokio::time::Instant::now());
            report.reasons.iter().any(|reason| reason.contains("journal"))
        })
        .await;
    stop.send(true).unwrap();
    let ended = tokio::time::timeout(Duration::from_millis(900), host).await;
    assert!(ended.unwrap().unwrap().is_err(), "its records are not kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_past_its_deadline_is_stopped() {
    let world = World::new().await;
    let host = world.start();
    let request = &super::generation::request(4);
    let task = world.post_for(Operation::Generate, request).await;
    world.bid_and_assign_unfinalized(task).await;
    world.chain.change(|state| {
        let until = state.clock + 5;
        let round = state.rounds.get_mut(&task).unwrap();
        round.phase = RoundPhase::Committing { until };
    });
    world.chain.finalize();
    world.until(|| world.engine_runs() == 1).await;
    assert!(!world.is_engine_idle());
    world.until_final(|| world.is_engine_idle()).await;
    host.stop().await;
    assert!(commits(&world).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_sees_the_chain_is_well_and_one_that_is_cut_off_says_so() {
    let world = World::new().await;
    let host = world.start();
    world
        .until_final(|| world.vitals().health.report(tokio::time::Instant::now()).healthy)
        .await;
    let now = tokio::time::Instant::now();
    let report = world.vitals().health.report(now);
    let parts: Vec<_> = report.parts.into_iter().collect();
    let expected = [
        "best_blocks",
        "data_plane",
        "finalized_blocks",
        "heartbeat",
        "upkeep",
    ];
    let expected = expected.map(|part| (part, true));
    assert_eq!(parts, expected);
    let later = world.vitals().health.report(now + Duration::from_secs(90));
    assert!(
        !later.healthy && later.reasons[0].contains("no new block"),
        "{later:?}"
    );
    host.stop().await;
}

/// What the chain shows that the provider has committed to.
fn show_commitment(world: &World, task: TaskId, commitment: Hash) {
    world.chain.change(|state| {
        let member = &mut state.rounds.get_mut(&task).unwrap().members[0];
        member.progress = MemberProgress::Committed(commitment);
        let agent = world.agent().account().clone();
        let note = CommitRecord {
            agent,
            commitment,
            shown: None,
        };
        state.commit_notes.insert((task, world.stash().clone()), note);
    });
    world.chain.finalize();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_signed_only_where_the_chain_has_its_commitment() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.bid_and_assign_unfinalized(task).await;
    world.chain.lose_next();
    world.chain.finalize();
    world.until(|| world.commitment(task).is_some()).await;
    host.kill().await;
    world.chain.open_audits(task, 99);
    // One that was sent before the journal was lost, of other bytes, has come first.
    show_commitment(&world, task, Hash::repeat_byte(3));
    let (host, client) = (world.start(), world.client_plane());
    world.pass(3).await;
    let served = client.locate_output(task, &world.provider_endpoint(), None).await;
    assert!(served.is_err(), "{served:?}");
    show_commitment(&world, task, world.commitment(task).unwrap());
    world.output(task).await;
    host.stop().await;
}
