//! A provider that takes no new work and ends when nothing is open.

use surety_chain_client::{AccountId, Call};
use surety_types::{
    TaskId,
    task::{MemberProgress, ResultClaim, RoundPhase, TaskState},
};
use surety_worker_core::Provider;
use tokio::{sync::watch, task::JoinHandle};

use super::{commits, world::World};
use crate::{Draining, Duty, Still};

/// A draining provider, as `surety provider drain` puts it together.
struct Drain {
    still: watch::Receiver<Still>,
    host: JoinHandle<()>,
}

impl Drain {
    fn start(world: &World) -> Self {
        let (journal, records) = world.open_journal();
        let mut config = world.config();
        config.is_draining = true;
        let core = Provider::new(config, records.clone()).unwrap();
        let (core, still) = Draining::new(core, world.stash().clone());
        let host = world.host_of(core, journal, &records);
        let (stop, stopped) = watch::channel(false);
        let mut seen = still.clone();
        let host = tokio::spawn(async move {
            let done = async move {
                seen.wait_for(Still::is_done).await.unwrap();
                stop.send(true).unwrap();
            };
            tokio::join!(done, async { host.run(stopped).await.unwrap() });
        });
        Self { still, host }
    }

    /// What is open, once the provider has seen that it is so much.
    async fn until_open(&self, world: &World, duties: &[(TaskId, Duty)]) {
        let open = || {
            let still = self.still.borrow();
            let open = still.open.iter().map(|open| (open.task, open.duty.clone()));
            still.clock.is_some() && open.eq(duties.iter().cloned())
        };
        world
            .until(|| {
                world.chain.finalize();
                open()
            })
            .await;
        assert!(!self.host.is_finished());
    }

    async fn ends(self, world: &World) {
        world
            .until(|| {
                world.chain.finalize();
                self.host.is_finished()
            })
            .await;
        self.host.await.unwrap();
    }

    /// As kill -9 would.
    async fn kill(self) {
        self.host.abort();
        assert!(self.host.await.unwrap_err().is_cancelled());
    }
}

fn bids_for(world: &World, task: TaskId) -> usize {
    let calls = world.chain.calls();
    let is_bid = |call: &Call| matches!(call, Call::Bid { task: of, .. } if *of == task);
    calls.iter().filter(|(_, call)| is_bid(call)).count()
}

/// A provider has bid for a task and was stopped, as for an upgrade.
async fn stopped_after_its_bid(world: &World) -> TaskId {
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.until_bid(task, false).await;
    world.chain.finalize();
    host.stop().await;
    task
}

fn open_bids(world: &World, task: TaskId) {
    world.chain.change(|state| {
        let until = state.number + 9;
        let task = state.tasks.get_mut(&task).unwrap();
        task.state = TaskState::Revealing { until };
    });
    world.chain.finalize();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_is_finished_nothing_new_is_bid_for_and_then_it_ends() {
    let world = World::new().await;
    let task = stopped_after_its_bid(&world).await;
    let drain = Drain::start(&world);
    drain.until_open(&world, &[(task, Duty::Bid)]).await;
    let other = world.post(b"two\n").await;
    let takes_bids_for_long = TaskState::Bidding { until: 999_999 };
    world
        .chain
        .change(|state| state.tasks.get_mut(&other).unwrap().state = takes_bids_for_long);
    open_bids(&world, task);
    world.until_bid(task, true).await;
    world.chain.assign(task, 9_999);
    world
        .until(|| {
            world.chain.finalize();
            !commits(&world).is_empty()
        })
        .await;
    drain.until_open(&world, &[(task, Duty::Reveal)]).await;
    world.chain.open_reveals(task, 9_999);
    world.chain.finalize();
    world.until_revealed(task).await;
    drain.until_open(&world, &[(task, Duty::Wait)]).await;
    world.chain.settle(task);
    drain.ends(&world).await;
    assert!(world.is_finished(task));
    assert_eq!((commits(&world).len(), bids_for(&world, other)), (1, 0));

    // Afterwards it works as it did before.
    let host = world.start();
    world
        .until(|| {
            world.chain.finalize();
            bids_for(&world, other) == 1
        })
        .await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_is_killed_loses_nothing_and_up_goes_on_as_before() {
    let world = World::new().await;
    let task = stopped_after_its_bid(&world).await;
    let drain = Drain::start(&world);
    open_bids(&world, task);
    world.until_bid(task, true).await;
    // The commitment gets lost on its way to the chain.
    world.chain.lose_next();
    world.chain.assign(task, 9_999);
    world
        .until(|| {
            world.chain.finalize();
            world.commitment(task).is_some()
        })
        .await;
    drain.kill().await;
    let promised = world.commitment(task).unwrap();

    let host = world.start();
    world
        .until(|| {
            world.chain.finalize();
            !commits(&world).is_empty()
        })
        .await;
    host.stop().await;
    let commitment = promised;
    assert_eq!(commits(&world), [Call::Commit { task, commitment }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_nothing_open_ends_at_once() {
    let world = World::new().await;
    world.post(b"one\n").await;
    Drain::start(&world).ends(&world).await;
    assert!(world.records().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_can_be_disputed_yet_is_open_though_the_journal_was_lost() {
    let world = World::new().await;
    let task = stopped_after_its_bid(&world).await;
    let host = world.start();
    open_bids(&world, task);
    world.until_bid(task, true).await;
    host.stop().await;
    world.chain.assign(task, 9_999);
    world.chain.change(|state| {
        let round = state.rounds.get_mut(&task).unwrap();
        round.phase = RoundPhase::Revealing { until: 9_999 };
        let stash: &AccountId = world.stash();
        let ours = round.members.iter_mut().find(|ours| ours.provider == *stash);
        let claim = ResultClaim {
            output: Default::default(),
            trace_root: Default::default(),
            units: 1,
        };
        ours.unwrap().progress = MemberProgress::Revealed(claim);
    });
    world.chain.finalize();
    std::fs::remove_file(world.journal_path()).unwrap();
    let drain = Drain::start(&world);
    drain.until_open(&world, &[(task, Duty::Wait)]).await;
    assert!(world.records().is_empty(), "its journal knows nothing of it");
    world.chain.settle(task);
    drain.ends(&world).await;
}
