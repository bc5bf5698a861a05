//! What counts is work, not hours of waiting.

use std::collections::BTreeMap;

use surety_types::trust::{Content, ContentPart};
use surety_worker_core::Failure;

use super::*;

fn bids(step: &Step) -> BTreeMap<u64, u32> {
    let made = step.records.iter().filter_map(|record| match record {
        Record::BidMade { task, bid, .. } => Some((*task, bid.seconds)),
        _ => None,
    });
    made.collect()
}

/// Tasks of 50 units each: ten seconds of computing.
fn many(tasks: u64) -> Vec<TaskSnapshot> {
    (0..tasks).map(bidding).collect()
}

fn limited(commit_seconds: u32) -> Provider {
    let mut config = config();
    config.commit_seconds = commit_seconds;
    Provider::new(config, Vec::new()).unwrap()
}

#[test]
fn sixty_four_small_tasks_are_bid_for_at_once() {
    let mut small = many(64);
    for task in &mut small {
        task.task.spec.units_max = 5;
    }
    // A second each; half of a bid's work counts.
    assert_eq!(bids(&see(&mut limited(60), 10, small)).len(), 64);
}

#[test]
fn bids_tell_of_the_work_that_is_waiting_and_end_where_it_no_longer_fits() {
    let made = bids(&see(&mut limited(100), 10, many(64)));
    // 75 of 100 seconds are filled: 1 to fetch, 10 of one's own, 5 of each other.
    let mut seconds: Vec<_> = made.values().copied().collect();
    seconds.sort_unstable();
    assert_eq!(seconds, (0..13).map(|other| 11 + 5 * other).collect::<Vec<_>>());
}

#[test]
fn providers_without_room_for_all_tasks_begin_with_different_ones() {
    let of = |stash: u8| {
        let mut config = config();
        config.commit_seconds = 40;
        config.stash = AccountId::new([stash; 32]);
        let mut provider = Provider::new(config, Vec::new()).unwrap();
        let mut made: Vec<_> = bids(&see(&mut provider, 10, many(64))).into_keys().collect();
        made.sort_unstable();
        made
    };
    assert!(of(1) != of(2) && of(2) != of(3));
}

#[test]
fn work_that_is_done_lost_or_given_up_makes_room() {
    let mut config = config();
    config.commit_seconds = 20;
    let mut provider = Provider::new(config, Vec::new()).unwrap();
    // Full with one that is to be computed.
    let assigned = [working(100)];
    see(&mut provider, 10, assigned.to_vec());
    let with = |more: Vec<TaskSnapshot>| [assigned.to_vec(), more].concat();
    assert_eq!(bids(&see(&mut provider, 11, with(many(1)))).len(), 0);
    provider.step(12, Event::InputReady { task: 100 });
    let ready = Event::ResultReady {
        task: 100,
        claim: claim(1),
        leaves: None,
    };
    provider.step(12, ready);
    // It waits for windows to pass, and takes no room.
    assert_eq!(bids(&see(&mut provider, 13, with(many(1)))).len(), 1);
    // A bid that lost is none.
    let state = TaskState::Running {
        assignments: Default::default(),
        reserves: Default::default(),
    };
    let lost = task(0, state);
    assert_eq!(
        bids(&see(&mut provider, 14, with(vec![lost, bidding(7)]))).len(),
        1
    );
}

#[test]
fn a_second_bid_that_is_refused_since_the_first_came_through_makes_no_room() {
    let mut provider = limited(20);
    let made = bids(&see(&mut provider, 10, many(2)));
    let task = *made.keys().next().unwrap();
    assert_eq!(made.len(), 1);
    let mut shown = bidding(task);
    shown.bid = Some(BidSeen {
        seal: H256([1; 32]),
        opened: false,
    });
    let best = Event::Best {
        block: 20,
        clock: 20,
        tasks: vec![shown],
    };
    provider.step(20, best);
    let refused = Event::EffectFailed {
        task,
        kind: EffectKind::Bid,
        failure: Failure::Failed,
    };
    provider.step(20, refused);
    assert_eq!(bids(&see(&mut provider, 11, many(2))).len(), 0);
}

#[test]
fn who_turns_out_to_be_slow_promises_less() {
    let count = |millis: u64| {
        let mut provider = limited(100);
        for _ in 0..20 {
            let measured = Event::Measured {
                model: model(),
                operation: Operation::Embed,
                units: 50,
                millis,
            };
            provider.step(9, measured);
        }
        bids(&see(&mut provider, 10, many(64))).len()
    };
    assert_eq!(count(10_000), 13, "as it was said to be");
    assert!(count(40_000) < 4);
    assert!(count(1_000) > 50);
    assert_eq!(count(200_000), 0, "one alone takes too long");
}

/// Runs of a machine that is as fast as it can be bid for with.
fn fast(provider: &mut Provider) {
    for _ in 0..20 {
        let measured = Event::Measured {
            model: model(),
            operation: Operation::Embed,
            units: 50,
            millis: 1_000,
        };
        provider.step(9, measured);
    }
}

#[test]
fn by_the_speed_of_a_device_that_is_gone_nothing_is_bid() {
    let mut provider = limited(100);
    fast(&mut provider);
    provider.step(9, Event::Unmeasured);
    assert_eq!(
        bids(&see(&mut provider, 10, many(64))).len(),
        13,
        "as it was said to be"
    );
}

#[test]
fn who_had_to_be_stopped_promises_less_and_not_nothing_after_one_time() {
    let count = |times: u32, millis: u64| {
        let mut provider = limited(100);
        fast(&mut provider);
        for _ in 0..times {
            let stopped = Event::TookLonger {
                model: model(),
                operation: Operation::Embed,
                units: 50,
                millis,
            };
            provider.step(9, stopped);
        }
        bids(&see(&mut provider, 10, many(64))).len()
    };
    let most = count(9, 500);
    assert!(most > 50, "stopped before its time");
    assert!(count(1, 200_000) > 10, "a machine may have been slow once");
    assert!(count(9, 40_000) < 4);
    assert_eq!(count(9, 200_000), 0, "one alone takes too long");
}

#[test]
fn no_more_is_bid_than_stake_can_be_locked_for() {
    let mut provider = limited(10_000);
    let stake = Event::Stake { free: 3 * 500 * 40 };
    provider.step(9, stake);
    assert_eq!(bids(&see(&mut provider, 10, many(64))).len(), 3);
}

#[test]
fn what_a_bid_needs_is_what_the_draw_asks_for_and_not_what_its_own_price_comes_to() {
    let mut provider = limited(10_000);
    provider.step(9, Event::Stake { free: 50_000 });
    let mut risky = bidding(1);
    risky.terms.as_mut().unwrap().lock = 50_001;
    let mut dear = bidding(2);
    dear.terms.as_mut().unwrap().lock = 50_000;
    let step = see(&mut provider, 10, vec![risky, dear.clone()]);
    assert_eq!(bids(&step).into_keys().collect::<Vec<_>>(), [2]);
    // It counts until it is decided, also where the chain does not say it again.
    dear.terms = None;
    assert_eq!(bids(&see(&mut provider, 11, vec![dear, bidding(3)])).len(), 0);
}

#[test]
fn the_time_to_commit_may_be_changed_and_nothing_is_bid_before_it_is_known() {
    let mut provider = limited(0);
    assert_eq!(bids(&see(&mut provider, 10, many(64))).len(), 0);
    provider.step(10, Event::CommitWindow { seconds: 100 });
    assert_eq!(bids(&see(&mut provider, 11, many(64))).len(), 13);
}

#[test]
fn no_client_has_more_than_half_of_the_places_for_fetching() {
    let mut config = config();
    config.fetching_max = 4;
    let mut provider = Provider::new(config, Vec::new()).unwrap();
    let of = |id: u64, client: u8, until: u32| {
        let mut task = running(id, MemberProgress::Working, RoundPhase::Committing { until });
        task.task.client = AccountId::new([client; 32]);
        task
    };
    // One client's are due first, and never come.
    let slow = (0..10).map(|id| of(id, 1, 50));
    let others = (10..12).map(|id| of(id, id as u8, 90));
    let step = see(&mut provider, 10, slow.chain(others).collect());
    let fetched: Vec<_> = effects(&step).iter().map(Effect::task).collect();
    assert_eq!(fetched, [0, 1, 10, 11]);
}

#[test]
fn a_faulty_input_ends_the_work_on_it_and_nothing_else() {
    let mut provider = provider(Vec::new());
    see(&mut provider, 10, vec![working(1)]);
    let failed = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Fetch,
        failure: Failure::Permanent,
    };
    provider.step(10, failed);
    for block in 11..100 {
        let step = see(&mut provider, block, vec![working(1)]);
        assert!(!kinds(&step).iter().any(|kind| kind.is_heavy()), "{step:?}");
    }
    assert_eq!(provider.progress().collect::<Vec<_>>(), [(1, Progress::GivenUp)]);
}

#[test]
fn who_is_suspended_or_in_jail_bids_for_nothing_until_it_is_over() {
    let mut provider = provider(Vec::new());
    provider.step(9, Event::Barred { until: Some(20) });
    assert_eq!(see(&mut provider, 20, vec![bidding(1)]), Step::default());
    assert_eq!(bids(&see(&mut provider, 21, vec![bidding(1)])).len(), 1);
}

#[test]
fn a_bid_that_the_chain_has_refused_makes_room() {
    let mut provider = limited(15);
    assert_eq!(bids(&see(&mut provider, 10, many(1))).len(), 1);
    assert_eq!(bids(&see(&mut provider, 11, many(2))).len(), 0);
    let refused = Event::EffectFailed {
        task: 0,
        kind: EffectKind::Bid,
        failure: Failure::Failed,
    };
    provider.step(11, refused);
    assert_eq!(bids(&see(&mut provider, 12, many(2))).len(), 1);
}

#[test]
fn a_flood_of_bids_leaves_places_for_what_was_promised() {
    let mut provider = limited(100_000);
    let step = see(&mut provider, 10, many(200));
    assert_eq!(bids(&step).len(), 200);
    assert_eq!(kinds(&step), [EffectKind::Bid; 32]);
    // None of them arrives; a result is committed to all the same.
    let assigned = [many(200), vec![working(300)]].concat();
    see(&mut provider, 11, assigned);
    provider.step(11, Event::InputReady { task: 300 });
    let ready = Event::ResultReady {
        task: 300,
        claim: claim(1),
        leaves: None,
    };
    assert_eq!(kinds(&provider.step(11, ready)), [EffectKind::Commit]);
}

#[test]
fn who_drains_bids_for_nothing_and_sends_no_bid_that_the_chain_has_not_heard_of() {
    let mut bold = provider(Vec::new());
    let before = see(&mut bold, 10, vec![bidding(1)]);
    assert_eq!(kinds(&before), [EffectKind::Bid]);
    let mut config = config();
    config.is_draining = true;
    let mut provider = Provider::new(config, before.records).unwrap();
    assert_eq!(
        see(&mut provider, 11, vec![bidding(1), bidding(2)]),
        Step::default()
    );
}

#[test]
fn who_drains_opens_the_bid_that_it_made_and_computes_what_it_gets() {
    let mut bold = provider(Vec::new());
    let made = see(&mut bold, 10, vec![bidding(1)]).records;
    let [Record::BidMade { bid, .. }] = made.as_slice() else {
        panic!("{made:?}");
    };
    let seal = bid.seal(1, &stash());
    let mut config = config();
    config.is_draining = true;
    let mut provider = Provider::new(config, made).unwrap();
    let mut revealing = task(1, TaskState::Revealing { until: 100 });
    revealing.bid = Some(BidSeen { seal, opened: false });
    assert_eq!(
        kinds(&see(&mut provider, 11, vec![revealing])),
        [EffectKind::BidReveal]
    );
    assert_eq!(
        kinds(&see(&mut provider, 12, vec![working(1)])),
        [EffectKind::Fetch]
    );
    provider.step(13, Event::InputReady { task: 1 });
    let ready = Event::ResultReady {
        task: 1,
        claim: claim(1),
        leaves: None,
    };
    assert_eq!(kinds(&provider.step(13, ready)), [EffectKind::Commit]);
}

#[test]
fn what_is_promised_leaves_no_more_to_spare_than_its_deadline_does() {
    let mut provider = limited(100);
    assert_eq!(provider.spare_millis(), None);
    // Ten seconds of computing with three minutes for it.
    see(&mut provider, 10, vec![working(1)]);
    let spare = provider.spare_millis().unwrap();
    assert!((160_000..180_000).contains(&spare), "{spare}");
    see(&mut provider, 94, vec![working(1)]);
    assert_eq!(provider.spare_millis(), Some(0));
    // Done: it waits for windows to pass.
    provider.step(95, Event::InputReady { task: 1 });
    let ready = Event::ResultReady {
        task: 1,
        claim: claim(1),
        leaves: None,
    };
    provider.step(95, ready);
    assert_eq!(provider.spare_millis(), None);
    // What was bid for may be assigned at any time, with all of its time to commit.
    see(&mut provider, 96, vec![working(1), bidding(2)]);
    let spare = provider.spare_millis().unwrap();
    assert!((80_000..100_000).contains(&spare), "{spare}");
}

#[test]
fn nothing_is_to_spare_while_a_task_of_before_a_restart_was_not_read_yet() {
    let made = see(&mut provider(Vec::new()), 10, vec![bidding(1)]).records;
    let mut provider = provider(made);
    see_part(&mut provider, 11, Vec::new(), vec![1]);
    assert_eq!(provider.spare_millis(), Some(0));
    see(&mut provider, 12, vec![bidding(1)]);
    assert!(provider.spare_millis().is_some_and(|spare| spare > 0));
}

#[test]
fn what_is_computed_again_to_be_shown_leaves_no_more_to_spare_than_its_deadline_does() {
    let part = ContentPart {
        content: Content::Output,
        part: 0,
    };
    let mut provider = provider(vec![lost::made()]);
    see(&mut provider, 10, lost::demanded(part));
    assert_eq!(provider.spare_millis(), None, "it is here");
    let gone = Event::EffectFailed {
        task: 1,
        kind: EffectKind::Supply(part),
        failure: Failure::Gone,
    };
    provider.step(10, gone);
    // 80 blocks of two seconds, less ten seconds of computing and a third of that.
    let spare = provider.spare_millis().unwrap();
    assert!((140_000..160_000).contains(&spare), "{spare}");
    see(&mut provider, 86, lost::demanded(part));
    assert_eq!(provider.spare_millis(), Some(0));
    provider.step(86, Event::InputReady { task: 1 });
    let ready = Event::ResultReady {
        task: 1,
        claim: claim(1),
        leaves: None,
    };
    provider.step(86, ready);
    assert_eq!(provider.spare_millis(), None, "it is here again");
}

#[test]
fn who_has_lost_its_journal_is_spared_no_time_beyond_its_round_whatever_is_demanded() {
    let part = ContentPart {
        content: Content::Output,
        part: 0,
    };
    let mut provider = provider(Vec::new());
    let mut demanded = lost::demanded(part);
    for snapshot in &mut demanded {
        let committed = MemberProgress::Committed(H256([4; 32]));
        let asked = running(1, committed, RoundPhase::Revealing { until: 40 });
        (snapshot.task, snapshot.round) = (asked.task, asked.round);
    }
    see(&mut provider, 10, demanded);
    // 30 blocks of two seconds: the demand has 80.
    assert!(provider.spare_millis().is_some_and(|spare| spare <= 60_000));
}
