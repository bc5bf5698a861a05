#![allow(clippy::unwrap_used)]

use surety_chain_client::{AccountId, DispatchFault, FakeChain, Funds, Refusal, sample};
use surety_network::memory::MemoryNet;
use surety_types::{
    input::IdBounds,
    multiaddr::Endpoint,
    speed::{MeasuredView, Requirements, Tier},
};

use super::*;
use crate::SURE;

struct World {
    chain: FakeChain,
    tasks: ChainTasks,
    net: MemoryNet,
    gateway: Endpoint,
    _home: tempfile::TempDir,
}

/// A chain with the model of zeros, and a gateway that has money.
fn world() -> World {
    let (chain, home) = (FakeChain::new(), tempfile::tempdir().unwrap());
    let signer = Signer::from_uri("//Gateway").unwrap();
    let funds = Funds {
        free: 100 * SURE,
        held: 0,
    };
    chain.change(|state| {
        state.funds.insert(signer.account().clone(), funds);
        state.audit_speeds.insert(ModelId::zero(), 1_000_000);
    });
    chain.finalize();
    let gateway = Endpoint::try_from(b"gateway".to_vec()).unwrap();
    let net = MemoryNet::default();
    let plane = Arc::new(net.join(gateway.clone()));
    let models = BTreeMap::from([("m".to_owned(), (ModelId::zero(), sample::records::model()))]);
    let terms = Terms {
        redundancy: 3,
        security: Security::default(),
    };
    let tasks = ChainTasks::new(
        Arc::new(chain.clone()),
        plane,
        signer,
        home.path().to_owned(),
        models,
        terms,
    );
    World {
        chain,
        tasks,
        net,
        gateway,
        _home: home,
    }
}

impl World {
    async fn posting(&self, number: u64) -> Posting {
        let bounds = IdBounds {
            vocabulary: 9,
            positions: 9,
        };
        let input = surety_types::input::encode_items(&[vec![1, 2]], &bounds).unwrap();
        let work = Work {
            operation: Operation::Embed,
            input_bytes: input.len() as u32,
            units_max: 1,
        };
        Posting {
            number,
            model: "m".into(),
            work,
            requirements: Default::default(),
            input,
            quoted: self.tasks.quote(number, "m", &work).await.unwrap(),
            tried_unix: now(),
        }
    }

    async fn submit(&self, posting: &Posting) {
        let input = content_hash(&posting.input);
        self.tasks.submit(posting, input).await.unwrap();
    }

    /// Whether an input stays where it is when there is no room for others.
    fn is_kept(&self, posting: &Posting) -> bool {
        self.net.fill(&self.gateway);
        self.net.has(&self.gateway, &content_hash(&posting.input))
    }

    fn on_chain(&self) -> usize {
        self.chain.change(|state| state.tasks.len())
    }
}

#[tokio::test]
async fn two_tasks_of_one_input_are_told_apart_and_each_is_found_under_whatever_number() {
    let world = world();
    let [first, second] = [world.posting(7).await, world.posting(8).await];
    assert_eq!(second.quoted.cap, first.quoted.cap + 1);
    for posting in [&first, &second] {
        world.submit(posting).await;
    }
    // The block is replaced by one in which others came first.
    world.chain.change(|state| {
        for (old, new) in [(0, 4), (1, 3)] {
            let task = state.tasks.remove(&old).unwrap();
            state.tasks.insert(new, task);
        }
    });
    assert!(matches!(
        world.tasks.find(&first).await,
        Err(RunnerError::Later(_))
    ));
    world.chain.finalize();
    assert_eq!(world.tasks.find(&first).await, Ok(Some(4)));
    assert_eq!(world.tasks.find(&second).await, Ok(Some(3)));
}

#[tokio::test]
async fn what_a_posting_asks_of_providers_is_in_its_task() {
    let world = world();
    let requirements = Requirements {
        tier: Some(Tier::B),
        memory_mib: 1,
        region: "DE".parse().ok(),
    };
    let posting = Posting {
        requirements,
        ..world.posting(1).await
    };
    world.submit(&posting).await;
    let asked = world.chain.change(|state| {
        let tasks = state.tasks.values();
        tasks.map(|task| task.spec.requirements).collect::<Vec<_>>()
    });
    assert_eq!(asked, [requirements]);
}

#[tokio::test]
async fn what_fewer_providers_are_than_compute_a_task_is_refused_and_not_posted() {
    let world = world();
    let there = |count: u8, tier: Tier| {
        world.chain.change(|state| {
            state.providers.clear();
            for who in 0..count {
                let stash = AccountId::new([who; 32]);
                let mut provider = sample::records::provider();
                provider.device.region = "DE".parse().ok();
                state.providers.insert(stash.clone(), provider);
                let measured = MeasuredView {
                    tier,
                    giga_operations: 1,
                    memory_mib: 1,
                    rounds_missed: 0,
                };
                state.gpu_proofs.measured.insert(stash, measured);
            }
        });
        world.chain.finalize();
    };
    let of = |region: &str| Requirements {
        tier: Some(Tier::B),
        memory_mib: 0,
        region: region.parse().ok(),
    };
    let (none, german) = (Requirements::default(), of("DE"));
    there(3, Tier::B);
    world.tasks.check_providers(&german).await.unwrap();
    let is_refused = async |asked: Requirements| {
        let checked = world.tasks.check_providers(&asked).await;
        matches!(checked, Err(RunnerError::Refused(_)))
    };
    assert!(is_refused(of("AQ")).await, "another region");
    there(3, Tier::C);
    assert!(is_refused(german).await, "slower ones");
    there(2, Tier::B);
    assert!(is_refused(german).await, "too few");
    world.tasks.check_providers(&none).await.unwrap();
    // What has changed after the quote is seen before the task is posted.
    let posting = Posting {
        requirements: german,
        ..world.posting(1).await
    };
    let posted = world.tasks.post(&posting).await;
    assert!(matches!(posted, Err(RunnerError::Refused(_))), "{posted:?}");
    assert_eq!(world.on_chain(), 0);
    // Nobody has heard of them for longer than one counts as available.
    let terms = world.chain.provider_terms(When::Finalized).await.unwrap();
    there(3, Tier::B);
    world.tasks.check_providers(&german).await.unwrap();
    world
        .chain
        .change(|state| state.number += terms.heartbeat_window + 1);
    world.chain.finalize();
    assert!(is_refused(german).await, "none that is there");
}

/// The same, tried so long ago that whatever was sent is counted.
fn tried_before(posting: &Posting) -> Posting {
    let tried_unix = posting.tried_unix - COUNTED_SECONDS;
    Posting {
        tried_unix,
        ..posting.clone()
    }
}

/// Killed a moment after it was sent: the node that is asked then has not counted it yet.
#[tokio::test]
async fn what_a_node_counts_a_moment_later_is_waited_for() {
    let world = world();
    let posting = world.posting(7).await;
    let early = world.tasks.find(&posting).await;
    assert!(matches!(early, Err(RunnerError::Later(_))), "{early:?}");
    world.submit(&posting).await;
    // Not final: counted by now.
    let counted = world.tasks.find(&posting).await;
    assert!(matches!(counted, Err(RunnerError::Later(_))), "{counted:?}");
    let later = tried_before(&posting);
    let counted = world.tasks.find(&later).await;
    assert!(matches!(counted, Err(RunnerError::Later(_))), "{counted:?}");
    world.chain.finalize();
    assert_eq!(world.tasks.find(&later).await, Ok(Some(0)));
}

#[tokio::test]
async fn what_was_posted_before_a_kill_is_found_and_what_was_not_is_posted() {
    let world = world();
    let posting = world.posting(7).await;
    // It may be on its way.
    let early = world.tasks.find(&posting).await;
    assert!(matches!(early, Err(RunnerError::Later(_))), "{early:?}");
    assert_eq!(world.tasks.find(&tried_before(&posting)).await, Ok(None));
    // As far as it gets without a final block.
    tokio::select! {
        biased;
        posted = world.tasks.post(&posting) => panic!("{posted:?}"),
        () = std::future::ready(()) => assert!(world.is_kept(&posting)),
    }
    assert_eq!(world.on_chain(), 1);
    assert!(matches!(
        world.tasks.find(&posting).await,
        Err(RunnerError::Later(_))
    ));
    world.chain.finalize();
    assert_eq!(world.tasks.find(&posting).await, Ok(Some(0)));
}

#[tokio::test]
async fn a_post_whose_answer_was_lost_is_found() {
    let world = world();
    let posting = world.posting(7).await;
    world.chain.lose_answer_of_next();
    assert!(matches!(
        world.tasks.post(&posting).await,
        Err(RunnerError::Later(_))
    ));
    world.chain.finalize();
    assert_eq!(world.tasks.find(&posting).await, Ok(Some(0)));
}

#[tokio::test]
async fn a_task_among_many_newer_ones_is_found() {
    let world = world();
    let posting = world.posting(7).await;
    world.submit(&posting).await;
    world.chain.change(|state| {
        let other = sample::records::tasks().remove(0);
        for id in 1..=u64::from(RECENT) * 2 {
            let task = TaskRecord {
                posted_at: 9,
                ..other.clone()
            };
            state.tasks.insert(id, task);
        }
    });
    world.chain.finalize();
    assert_eq!(world.tasks.find(&posting).await, Ok(Some(0)));
}

#[tokio::test]
async fn what_may_be_forgotten_by_now_is_lost_and_not_posted_again() {
    let world = world();
    let mut posting = world.posting(7).await;
    posting.tried_unix -= KEPT_SECONDS + 1;
    assert!(matches!(
        world.tasks.find(&posting).await,
        Err(RunnerError::Lost(_))
    ));
}

#[tokio::test]
async fn without_money_nothing_is_posted_or_kept_and_it_is_tried_again() {
    let world = world();
    let posting = world.posting(7).await;
    world.chain.change(|state| state.funds.clear());
    world.chain.finalize();
    let Err(RunnerError::Later(told)) = world.tasks.post(&posting).await else {
        panic!("it was posted");
    };
    assert!(told.contains("free") && world.on_chain() == 0, "{told}");
    assert!(!world.is_kept(&posting));
}

#[tokio::test]
async fn what_the_chain_refuses_for_want_of_money_or_for_a_moment_is_tried_again() {
    let world = world();
    let posting = world.posting(7).await;
    let fault = |pallet: Option<&str>, name: &str| {
        ChainError::Dispatch(DispatchFault {
            pallet: pallet.map(Into::into),
            name: name.into(),
            docs: String::new(),
        })
    };
    let is_post = |call: &Call| matches!(call, Call::PostTask { .. });
    world.chain.refuse_next(is_post, fault(None, "Token"), 1);
    let posted = world.tasks.post(&posting).await;
    assert!(matches!(posted, Err(RunnerError::Later(_))), "{posted:?}");

    let is_cancel = |call: &Call| matches!(call, Call::CancelTask { .. });
    world.chain.refuse_next(is_cancel, Refusal::PoolFull, 1);
    let cancelled = world.tasks.cancel(0).await;
    assert!(matches!(cancelled, Err(RunnerError::Later(_))), "{cancelled:?}");
    let begun = fault(Some("TaskAuction"), "NotBidding");
    world.chain.refuse_next(is_cancel, begun, 1);
    let cancelled = world.tasks.cancel(0).await;
    assert!(matches!(cancelled, Err(RunnerError::Refused(_))), "{cancelled:?}");
}

#[test]
fn what_a_task_has_cost_is_what_its_end_says() {
    let receipts = sample::records::tasks().into_iter().map(|task| {
        let info = TaskInfo {
            task,
            round: None,
            escrow: 0,
        };
        receipt(7, &info).map(|receipt| {
            (
                receipt.payments.len(),
                receipt.spent() > 0,
                receipt.output_hash.is_some(),
            )
        })
    });
    let open = [None; 4];
    let over = [
        Some((1, true, true)),
        Some((0, false, false)),
        // Somebody had bid for what was cancelled.
        Some((0, true, false)),
    ];
    assert_eq!(receipts.collect::<Vec<_>>(), [&open[..], &over[..]].concat());
}
