//! Several nodes, of which some are down, late, behind, empty, or of another chain.

use std::time::Duration;

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};

use super::{fixture::runtime, node::Node};
use crate::{RpcChain, RpcConfig, blocks::Blocks, entries::Entry};
use surety_chain_client::{
    BlockStream, Chain, ChainError, ErrorClass, FixedU128, OpenTasks, TaskRecord, When, sample,
};

fn config(nodes: &[&Node]) -> RpcConfig {
    let mut config = RpcConfig::of_several(nodes.iter().map(|node| node.url.clone()));
    config.patience = Duration::from_secs(5);
    config
}

async fn connect(nodes: &[&Node]) -> RpcChain {
    RpcChain::connect(config(nodes)).await.unwrap()
}

fn open_task() -> TaskRecord {
    sample::records::tasks().remove(0)
}

/// A chain with an open task of that number.
fn with_task(node: &Node, id: u64) {
    let runtime = runtime();
    node.put(&runtime, Entry::Tasks, &[&id.encode()], open_task().encode());
    node.put(&runtime, Entry::OpenTasks, &[&id.encode()], Vec::new());
    node.put(&runtime, Entry::NextTaskId, &[], (id + 1).encode());
}

#[tokio::test]
async fn the_next_node_answers_when_one_is_gone_and_the_first_again_when_it_is_back() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let mut config = config(&[&first, &second]);
    config.return_after = Duration::ZERO;
    first.change(|state| state.is_syncing = true);
    let chain = RpcChain::connect(config).await.unwrap();
    second.change(|state| state.best = 110);
    assert_eq!(chain.block(When::Best).await.unwrap().number, 110);
    first.change(|state| {
        state.is_syncing = false;
        state.best = 120;
    });
    // Each question has it looked for, and waits for nothing.
    while chain.block(When::Best).await.unwrap().number != 120 {}
    first.stop();
    assert_eq!(chain.block(When::Best).await.unwrap().number, 110);
}

#[tokio::test]
async fn no_question_waits_while_an_earlier_node_is_looked_for() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let mut config = config(&[&first, &second]);
    config.return_after = Duration::ZERO;
    first.change(|state| state.is_syncing = true);
    let chain = RpcChain::connect(config).await.unwrap();
    second.change(|state| state.best = 110);
    // From now on it keeps whoever connects waiting for longer than they do.
    first.change(|state| state.slow = Some(("system_health", Duration::from_secs(5))));
    let started = std::time::Instant::now();
    let before = first.asked("system_health");
    while first.asked("system_health") == before {
        assert_eq!(chain.block(When::Best).await.unwrap().number, 110);
    }
    assert_eq!(chain.block(When::Best).await.unwrap().number, 110);
    assert!(
        started.elapsed() < Duration::from_millis(1900),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_node_of_another_chain_is_never_asked() {
    let (first, other) = (Node::start(1).await, Node::start(2).await);
    let chain = connect(&[&first, &other]).await;
    first.stop();
    let refused = chain.block(When::Best).await.unwrap_err();
    assert_eq!(other.asked("chain_getFinalizedHead"), 0);
    assert_eq!(refused.class(), ErrorClass::Refused, "{refused}");
    let third = Node::start(1).await;
    let alone = connect(&[&third]).await;
    assert_eq!(alone.info().genesis, H256([1; 32]));
}

#[tokio::test]
async fn a_node_that_names_another_runtime_later_is_left_and_ends_nothing_for_good() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let chain = connect(&[&first, &second]).await;
    let alone = connect(&[&first]).await;
    first.change(|state| (state.best, state.finalized, state.spec_name) = (102, 100, "other"));
    second.change(|state| (state.best, state.finalized) = (103, 101));
    second.put(&runtime(), Entry::Elapsed, &[], 7u32.encode());
    assert_eq!(chain.clock(When::Finalized).await, Ok(7));
    let refused = alone.clock(When::Finalized).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Refused, "{refused}");
    // Who connects to such a node and to no other is told that it is the wrong chain.
    let wrong = RpcChain::connect(config(&[&first])).await.err();
    assert!(matches!(wrong, Some(ChainError::WrongChain { .. })), "{wrong:?}");
}

#[tokio::test]
async fn a_node_whose_state_cannot_be_read_is_left_for_one_whose_state_can() {
    let (garbled, good) = (Node::start(1).await, Node::start(1).await);
    garbled.put(&runtime(), Entry::Elapsed, &[], vec![7]);
    good.put(&runtime(), Entry::Elapsed, &[], 7u32.encode());
    let alone = connect(&[&garbled]).await;
    let refused = alone.clock(When::Finalized).await;
    assert!(matches!(refused, Err(ChainError::Decode { .. })), "{refused:?}");
    let both = connect(&[&garbled, &good]).await;
    assert_eq!(both.clock(When::Finalized).await, Ok(7));
}

#[tokio::test]
async fn a_node_behind_what_is_final_is_not_believed() {
    let (first, behind) = (Node::start(1).await, Node::start(1).await);
    behind.change(|state| (state.best, state.finalized) = (50, 48));
    let chain = connect(&[&first, &behind]).await;
    assert_eq!(chain.block(When::Finalized).await.unwrap().number, 98);
    first.stop();
    let refused = chain.block(When::Finalized).await.unwrap_err();
    assert!(refused.to_string().contains("behind block 98"), "{refused}");
    // As soon as it has caught up it is; of finality it may know a little less.
    behind.change(|state| (state.best, state.finalized) = (99, 96));
    assert_eq!(chain.block(When::Finalized).await.unwrap().number, 98);
}

/// No chain has come that far.
const FAR: u32 = 4_000_000_000;

/// The first of the nodes calls a block final that cannot be yet; the last one is asked then.
async fn is_followed_after_a_false_header(nodes: &[&Node]) {
    let chain = connect(nodes).await;
    let mut finalized = chain.finalized_blocks().await.unwrap();
    assert_eq!(finalized.next().await.unwrap().number, 98);
    nodes.first().unwrap().announce(FAR);
    let refused = finalized.next().await.unwrap_err();
    assert!(matches!(refused, ChainError::Implausible { .. }), "{refused}");
    let honest = nodes.last().unwrap();
    honest.change(|state| (state.best, state.finalized) = (101, 99));
    assert_eq!(finalized.next().await.unwrap().number, 99);
    assert_eq!(chain.block(When::Finalized).await.unwrap().number, 99);
}

#[tokio::test]
async fn one_false_header_keeps_no_node_from_being_asked() {
    let (liar, good) = (Node::start(1).await, Node::start(1).await);
    is_followed_after_a_false_header(&[&liar, &good]).await;
    assert_eq!(good.asked("system_health"), 1, "connected to once");
    let only = Node::start(1).await;
    is_followed_after_a_false_header(&[&only]).await;
}

#[tokio::test]
async fn a_node_that_names_a_final_block_that_cannot_be_yet_is_left() {
    let (liar, good) = (Node::start(1).await, Node::start(1).await);
    liar.change(|state| (state.best, state.finalized) = (FAR + 2, FAR));
    let chain = connect(&[&liar, &good]).await;
    assert_eq!(chain.block(When::Finalized).await.unwrap().number, 98);
}

#[tokio::test]
async fn a_node_without_headers_is_not_believed() {
    let (headless, good) = (Node::start(1).await, Node::start(1).await);
    headless.change(|state| state.is_headless = true);
    let mut hasty = config(&[&headless]);
    hasty.patience = Duration::from_millis(300);
    let refused = RpcChain::connect(hasty).await.err();
    let words = refused.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(words.contains("no header of its best block"), "{refused:?}");

    good.change(|state| state.best = 110);
    let both = connect(&[&headless, &good]).await;
    assert_eq!(both.block(When::Best).await.unwrap().number, 110);
}

#[tokio::test]
async fn a_node_that_has_no_header_of_the_block_it_names_is_left() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let chain = connect(&[&first, &second]).await;
    first.change(|state| (state.best, state.finalized, state.is_headless) = (101, 99, true));
    second.change(|state| (state.best, state.finalized) = (110, 108));
    assert_eq!(chain.block(When::Best).await.unwrap().number, 110);

    let chain = connect(&[&second]).await;
    second.change(|state| (state.best, state.is_headless) = (111, true));
    let refused = chain.block(When::Best).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Refused, "{refused}");
}

#[tokio::test]
async fn a_node_that_took_the_place_of_one_that_is_not_believed_is_not_left_for_what_that_one_said() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let chain = connect(&[&first, &second]).await;
    // The answer to the second question is that of the first node, and comes when the second one is asked
    // already.
    first.change(|state| {
        (state.best, state.finalized, state.fork, state.is_headless) = (103, 102, 1, true);
        state.slow = Some(("chain_getFinalizedHead", Duration::from_millis(500)));
    });
    let best = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        chain.block(When::Best).await.unwrap().number
    };
    let (best, finalized) = tokio::join!(best, chain.block(When::Finalized));
    assert_eq!((best, finalized.unwrap().number), (100, 98));
    assert_eq!(second.asked("system_health"), 1, "connected to once");
}

#[tokio::test]
async fn an_empty_list_without_state_behind_it_is_not_believed() {
    let (empty, good) = (Node::start(1).await, Node::start(1).await);
    with_task(&good, 7);
    empty.change(|state| state.is_empty = true);
    let alone = connect(&[&empty]).await;
    let refused = alone.open_tasks(When::Finalized, None).await.unwrap_err();
    assert!(matches!(refused, ChainError::Implausible { .. }), "{refused}");
    assert_eq!(refused.class(), ErrorClass::Refused);
    assert!(alone.disputes(When::Finalized).await.is_err());

    let both = connect(&[&empty, &good]).await;
    let open = both.open_tasks(When::Finalized, None).await.unwrap();
    assert_eq!(open.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [7]);
}

#[tokio::test]
async fn an_empty_list_where_tasks_were_known_before_is_not_believed() {
    let (good, forgetful) = (Node::start(1).await, Node::start(1).await);
    with_task(&good, 7);
    let chain = connect(&[&good, &forgetful]).await;
    assert_eq!(
        chain.open_tasks(When::Finalized, None).await.unwrap().tasks.len(),
        1
    );
    good.stop();
    let refused = chain.open_tasks(When::Finalized, None).await.unwrap_err();
    assert!(matches!(refused, ChainError::Implausible { .. }), "{refused}");
    // That the task is over is believed of a node that knows that there was one.
    forgetful.put(&runtime(), Entry::NextTaskId, &[], 8u64.encode());
    assert_eq!(
        chain.open_tasks(When::Finalized, None).await,
        Ok(OpenTasks::default())
    );
}

#[tokio::test]
async fn an_empty_list_in_a_final_block_that_is_named_by_its_hash_is_not_believed_either() {
    let (good, forgetful) = (Node::start(1).await, Node::start(1).await);
    with_task(&good, 7);
    let chain = connect(&[&good, &forgetful]).await;
    let at = When::At(chain.block(When::Finalized).await.unwrap().hash);
    assert_eq!(chain.open_tasks(at, None).await.unwrap().tasks.len(), 1);
    good.stop();
    let refused = chain.open_tasks(at, None).await.unwrap_err();
    assert!(matches!(refused, ChainError::Implausible { .. }), "{refused}");
    // What is not final yet may have been replaced.
    let best = When::At(forgetful.state().hash(100));
    assert_eq!(chain.open_tasks(best, None).await, Ok(OpenTasks::default()));
}

#[tokio::test]
async fn nothing_without_state_behind_it_is_not_believed_of_single_values_and_parameters() {
    let (empty, good) = (Node::start(1).await, Node::start(1).await);
    let (stash, stake) = (AccountId32::new([1; 32]), sample::records::stake());
    good.put(&runtime(), Entry::Ledgers, &[stash.as_ref()], stake.encode());
    empty.change(|state| state.is_empty = true);
    let alone = connect(&[&empty]).await;
    let block = empty.state().hash(100);
    let refusals = [
        alone.stake(When::Finalized, &stash).await.err(),
        alone.funds(When::Best, &stash).await.err(),
        alone.parameters(When::Finalized).await.err(),
        alone.clock(When::Best).await.err(),
        alone.events(block).await.err(),
    ];
    for refused in refusals {
        assert!(
            matches!(refused, Some(ChainError::Implausible { .. })),
            "{refused:?}"
        );
    }
    let both = connect(&[&empty, &good]).await;
    assert_eq!(both.stake(When::Finalized, &stash).await, Ok(Some(stake)));
    let nobody = AccountId32::new([2; 32]);
    assert_eq!(both.stake(When::Finalized, &nobody).await, Ok(None));
    assert_eq!(both.parameters(When::Finalized).await, Ok(Vec::new()));
}

#[tokio::test]
async fn what_votes_or_vests_is_not_free_and_the_multiplier_of_fees_is_the_chains() {
    let node = Node::start(1).await;
    let chain = connect(&[&node]).await;
    let stash = AccountId32::new([1; 32]);
    assert_eq!(
        chain.fee_multiplier(When::Finalized).await,
        Ok(FixedU128::from_u32(1))
    );
    for (free, held, frozen, spendable) in [
        (100u128, 0u128, 0u128, 100),
        (100, 0, 100, 0),
        // What is frozen may be held, too.
        (100, 60, 100, 60),
        (100, 60, 50, 100),
    ] {
        let account = ((0u32, 0u32, 1u32, 0u32), (free, held, frozen, 0u128)).encode();
        node.put(&runtime(), Entry::Account, &[stash.as_ref()], account);
        let funds = chain.funds(When::Finalized, &stash).await.unwrap();
        assert_eq!((funds.free, funds.held), (spendable, held));
    }
    let multiplier = FixedU128::from_rational(5, 2);
    node.put(&runtime(), Entry::FeeMultiplier, &[], multiplier.encode());
    assert_eq!(chain.fee_multiplier(When::Finalized).await, Ok(multiplier));
}

/// What a node with a broken database says of every value.
const BROKEN: &str = "Execution failed: Database missing expected key";

#[tokio::test]
async fn a_node_that_fails_at_every_question_of_state_is_left() {
    let (broken, good) = (Node::start(1).await, Node::start(1).await);
    with_task(&good, 7);
    with_task(&broken, 7);
    let chain = connect(&[&broken, &good]).await;
    broken.change(|state| state.failing = Some(("state_queryStorageAt", BROKEN)));
    let open = chain.open_tasks(When::Finalized, None).await.unwrap();
    assert_eq!(open.tasks.len(), 1);
    // Alone, it is told of for what it is: nothing is said to be gone for good.
    let alone = connect(&[&broken]).await;
    let failed = alone.open_tasks(When::Finalized, None).await.unwrap_err();
    assert!(matches!(failed, ChainError::Rpc { .. }), "{failed}");
    assert!(failed.is_retryable());
    // From the first question on.
    broken.change(|state| state.failing = Some(("state_getRuntimeVersion", BROKEN)));
    let chain = connect(&[&broken, &good]).await;
    assert_eq!(chain.block(When::Best).await.unwrap().number, 100);
}

#[tokio::test]
async fn a_node_without_the_state_of_its_newest_blocks_is_left_and_of_old_ones_is_not() {
    let (stateless, good) = (Node::start(1).await, Node::start(1).await);
    with_task(&good, 7);
    let chain = connect(&[&stateless, &good]).await;
    let best = stateless.state().hash(100);
    let old = stateless.state().hash(50);
    chain.block(When::Finalized).await.unwrap();
    stateless.change(|state| state.pruned = 0..90);
    let gone = chain.open_tasks(When::At(old), None).await.unwrap_err();
    assert!(
        matches!(&gone, ChainError::Pruned { block } if block == "50"),
        "{gone}"
    );
    assert_eq!(good.asked("system_health"), 0, "not turned to");
    stateless.change(|state| state.pruned = 0..101);
    assert_eq!(
        chain.open_tasks(When::At(best), None).await.unwrap().tasks.len(),
        1
    );
    assert_eq!(chain.open_tasks(When::Best, None).await.unwrap().tasks.len(), 1);
}

#[tokio::test]
async fn a_function_that_fails_is_no_reason_to_leave_a_node() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let chain = connect(&[&first, &second]).await;
    let trap = "Execution failed: wasm trap: wasm `unreachable` instruction executed";
    first.change(|state| state.failing = Some(("TaskApi_price_limit", trap)));
    let failed = chain.price_limit(When::Best, 100, 2).await.unwrap_err();
    assert!(
        matches!(&failed, ChainError::Rpc { reason, .. } if reason.contains(trap)),
        "{failed}"
    );
    assert_eq!(second.asked("system_health"), 0);
}

#[tokio::test]
async fn a_node_that_is_not_believed_is_named_alone() {
    let (empty, good) = (Node::start(1).await, Node::start(1).await);
    empty.change(|state| state.is_empty = true);
    good.change(|state| state.is_empty = true);
    let chain = connect(&[&empty, &good]).await;
    let refused = chain.open_tasks(When::Finalized, None).await.unwrap_err();
    let ChainError::Implausible { url, .. } = refused else {
        panic!("{refused}");
    };
    assert!([&empty.url, &good.url].contains(&&url), "{url}");
}

#[tokio::test]
async fn an_empty_list_of_a_young_chain_is_believed() {
    let node = Node::start(1).await;
    let chain = connect(&[&node]).await;
    assert_eq!(
        chain.open_tasks(When::Finalized, None).await,
        Ok(OpenTasks::default())
    );
    assert_eq!(chain.recent_tasks(When::Best, 5).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_or_another_node_asked() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let alone = connect(&[&first]).await;
    first.change(|state| state.limited = 2);
    assert_eq!(alone.block(When::Best).await.unwrap().number, 100);
    let both = connect(&[&first, &second]).await;
    second.change(|state| state.best = 110);
    first.change(|state| state.limited = 1000);
    assert_eq!(both.block(When::Best).await.unwrap().number, 110);
}

#[tokio::test]
async fn a_node_that_does_not_answer_in_time_is_left() {
    // It takes connections and never says a word.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let good = Node::start(1).await;
    let mut config = config(&[&good]);
    config
        .urls
        .insert(0, format!("ws://{}", listener.local_addr().unwrap()));
    config.patience = Duration::from_secs(30);
    let chain = RpcChain::connect(config).await.unwrap();
    assert_eq!(chain.block(When::Best).await.unwrap().number, 100);
}

#[tokio::test]
async fn open_tasks_cost_what_is_open_and_the_newest_tasks_what_is_shown() {
    let node = Node::start(1).await;
    let runtime = runtime();
    let over = sample::records::tasks().pop().unwrap();
    for id in 0..3000u64 {
        node.put(&runtime, Entry::Tasks, &[&id.encode()], over.encode());
    }
    with_task(&node, 3000);
    let chain = connect(&[&node]).await;
    let open = chain.open_tasks(When::Best, None).await.unwrap();
    assert_eq!(open.tasks.len(), 1);
    assert_eq!(node.asked("state_getKeysPaged"), 1);
    let recent = chain.recent_tasks(When::Best, 3).await.unwrap();
    let ids: Vec<_> = recent.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [3000, 2999, 2998]);
    assert_eq!(node.asked("state_getKeysPaged"), 1);
}

#[tokio::test]
async fn best_and_finalized_blocks_are_followed_from_one_node_to_the_next() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    let chain = connect(&[&first, &second]).await;
    let (mut best, mut finalized) = (
        chain.best_blocks().await.unwrap(),
        chain.finalized_blocks().await.unwrap(),
    );
    assert_eq!(best.next().await.unwrap().number, 100);
    assert_eq!(finalized.next().await.unwrap().number, 98);
    first.change(|state| state.best = 101);
    assert_eq!(best.next().await.unwrap().number, 101);
    second.change(|state| (state.best, state.finalized) = (105, 103));
    first.stop();
    assert_eq!(best.next().await.unwrap().number, 105);
    assert_eq!(finalized.next().await.unwrap().number, 103);
}

/// What the running clock shows on every block of a node.
fn with_clock(node: &Node, clock: impl Fn(u32) -> u32) {
    let key = runtime().key(Entry::Elapsed, &[]).unwrap();
    node.change(|state| {
        for number in 90..=state.best {
            let value = clock(number).encode();
            state.changed.insert((number, key.clone()), value);
        }
    });
}

#[tokio::test]
async fn a_node_that_does_not_see_what_others_finalise_is_left() {
    let (behind, good) = (Node::start(1).await, Node::start(1).await);
    behind.change(|state| state.best = 160);
    good.change(|state| (state.best, state.finalized) = (160, 158));
    for node in [&behind, &good] {
        with_clock(node, |number| number - 50);
    }
    let chain = connect(&[&behind, &good]).await;
    let mut finalized = Blocks::new(chain.clone(), When::Finalized);
    finalized.silence_max = Duration::from_millis(50);
    assert_eq!(finalized.next().await.unwrap().number, 98);
    assert_eq!(finalized.next().await.unwrap().number, 158);
}

#[tokio::test]
async fn no_node_is_left_while_finality_stands_still() {
    let (first, second) = (Node::start(1).await, Node::start(1).await);
    for node in [&first, &second] {
        node.change(|state| state.best = 160);
        with_clock(node, |number| number.min(100));
    }
    let chain = connect(&[&first, &second]).await;
    let mut finalized = Blocks::new(chain.clone(), When::Finalized);
    finalized.silence_max = Duration::from_millis(50);
    assert_eq!(finalized.next().await.unwrap().number, 98);
    let resumed = async {
        while first.asked("chain_subscribeFinalizedHeads") < 4 {
            tokio::task::yield_now().await;
        }
        first.change(|state| state.finalized = 99);
    };
    let (next, ()) = tokio::join!(finalized.next(), resumed);
    assert_eq!(next.unwrap().number, 99);
    assert_eq!(second.asked("system_health"), 0, "not turned to");
}

#[tokio::test]
async fn a_stall_of_finality_breaks_no_connection() {
    let node = Node::start(1).await;
    let chain = connect(&[&node]).await;
    let mut finalized = Blocks::new(chain.clone(), When::Finalized);
    finalized.silence_max = Duration::from_millis(50);
    assert_eq!(finalized.next().await.unwrap().number, 98);
    let resumed = async {
        // The subscription is made anew, in case that it was dead, over the same connection.
        while node.asked("chain_subscribeFinalizedHeads") < 4 {
            tokio::task::yield_now().await;
        }
        node.change(|state| state.finalized = 99);
    };
    let (next, ()) = tokio::join!(finalized.next(), resumed);
    assert_eq!(next.unwrap().number, 99);
    assert_eq!(node.asked("system_health"), 1, "connected to once");
}
