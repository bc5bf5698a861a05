use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockEntropy, MockEscrow, MockProviders, MockStake, MockTrust};
use surety_types::{
    task::{Assignment, FailureReason},
    traits::{ENTROPY_PATIENCE_BLOCKS, Escrow, StakeLedger},
};

use crate::{Bids, Error, Event, TaskStateOf, draw, mock::*};

/// First block in which a task posted in block 1 can be drawn.
const DRAW: BlockNumber = 1 + BID_WINDOW + REVEAL_WINDOW + 3;

fn limit(redundancy: u32) -> Balance {
    MockEscrow::price_limit(CAP, redundancy).unwrap()
}

fn assignments(task: u64) -> Vec<(AccountId, Balance)> {
    let TaskStateOf::<Test>::Running { assignments, .. } = state(task) else {
        panic!("not running: {:?}", state(task));
    };
    assignments.into_iter().map(|a| (a.provider, a.price)).collect()
}

fn failed(task: u64) -> bool {
    let reason = FailureReason::NotEnoughBids;
    matches!(state(task), TaskStateOf::<Test>::Failed { reason: found, .. } if found == reason)
}

#[test]
fn the_best_bid_wins_at_the_price_of_the_second() {
    TestExt::new().providers(3).execute_with(|| {
        let task = assign(1, &[700, 500, 900]);
        assert_eq!(assignments(task), [(stash(1), 700)]);
        let round = MockTrust::round(task).unwrap();
        assert_eq!(round.units_max, 100);
        assert_eq!(
            round.assignments[..],
            [Assignment {
                provider: stash(1),
                price: 700
            }]
        );
    });
}

#[test]
fn who_asks_less_than_the_work_is_worth_is_paid_that() {
    TestExt::new().providers(3).execute_with(|| {
        MockTrust::set_least_price(600);
        let task = assign(1, &[1, 2, 900]);
        let [(_, price)] = assignments(task)[..] else {
            panic!("one provider was drawn");
        };
        assert_eq!(price, 600);
        // It has grown beyond what the task can pay since that was posted.
        MockTrust::set_least_price(10 * CAP);
        let task = assign(1, &[1, 2]);
        assert_eq!(assignments(task)[0].1, limit(1));
    });
}

#[test]
fn a_faster_provider_wins_with_a_higher_price() {
    TestExt::new().providers(2).execute_with(|| {
        MockProviders::set_weight(stash(0), 2_000);
        let task = assign(1, &[800, 500]);
        assert_eq!(assignments(task), [(stash(0), 1_000)]);
    });
}

#[test]
fn a_lonely_bidder_is_paid_the_limit() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        assert_eq!(assignments(task), [(stash(0), limit(1))]);
    });
}

#[test]
fn with_redundancy_the_drawn_come_from_the_shortlist_at_the_first_price_outside() {
    TestExt::new().providers(6).execute_with(|| {
        let task = assign(2, &[100, 200, 300, 400, 450, 460]);
        let drawn = assignments(task);
        assert_eq!(drawn.len(), 2);
        assert!(
            drawn
                .iter()
                .all(|(provider, price)| *provider < stash(4) && *price == 450)
        );
        let TaskStateOf::<Test>::Running { reserves, .. } = state(task) else {
            unreachable!()
        };
        let prices: Vec<_> = reserves.iter().map(|reserve| reserve.price).collect();
        // Who is left of the shortlist, then the others, none below what it asked.
        assert_eq!(prices, [450, 450, 450, 460]);
    });
}

#[test]
fn anybody_can_recompute_the_draw_from_its_event_and_the_bids() {
    TestExt::new().providers(5).execute_with(|| {
        let task = assign(2, &[100, 200, 300, 400, 500]);
        let found = events().into_iter().find_map(|event| match event {
            Event::TaskAssigned {
                assignments,
                seed,
                entropy,
                entropy_block,
                limit,
                candidates,
                ..
            } => Some((assignments, seed, entropy, entropy_block, limit, candidates)),
            _ => None,
        });
        let (assignments, seed, entropy, entropy_block, limit, candidates) = found.unwrap();
        let mut bids: Vec<_> = Bids::<Test>::iter_prefix(task).collect();
        bids.sort_by_key(|(provider, _)| *provider);
        let salts: Vec<_> = bids
            .into_iter()
            .filter_map(|(_, bid)| Some(bid.opened?.salt))
            .collect();
        assert_eq!(draw::seed(task, &salts, &entropy), seed);
        let drawn = draw::draw(&candidates, 2, limit, seed).unwrap();
        assert_eq!(drawn.winners[..], assignments[..]);
        assert_eq!(entropy, MockEntropy::output_of(DRAW - 1));
        assert_eq!(entropy_block, DRAW - 1);
    });
}

#[test]
fn the_draw_waits_for_entropy_that_nobody_knew_while_bids_were_opened() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        run_to(DRAW - 1);
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since: DRAW - 2 });
        assert_noop!(advance(task), Error::<Test>::NotDue);
        run_to(DRAW);
        assert_eq!(assignments(task).len(), 1);
    });
}

/// Two bidders whose bids are closed in block `DRAW - 2`, looked at in `block`. Block and seed of the draw,
/// if the task is not called off.
fn drawn_in(block: BlockNumber, forgotten_before: BlockNumber) -> Option<(BlockNumber, sp_core::H256)> {
    let mut found = None;
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        for index in 0..2 {
            assert_ok!(place(task, index, 500));
        }
        run_to(DRAW - 3);
        for index in 0..2 {
            assert_ok!(open(task, index, 500));
        }
        run_to(DRAW - 2);
        skip_to(block);
        MockEntropy::forget_before(forgotten_before);
        assert_ok!(advance(task));
        found = events().into_iter().find_map(|event| match event {
            Event::TaskAssigned {
                entropy_block, seed, ..
            } => Some((entropy_block, seed)),
            _ => None,
        });
        let is_off = matches!(state(task), TaskStateOf::<Test>::Cancelled { .. });
        assert_eq!(is_off, found.is_none());
    });
    found
}

#[test]
fn nobody_chooses_the_moment_of_a_draw() {
    let at_once = drawn_in(DRAW, 0).unwrap();
    assert_eq!(at_once.0, DRAW - 1);
    for later in [DRAW + 1, DRAW + 50, DRAW + 198] {
        assert_eq!(drawn_in(later, 0), Some(at_once));
    }
}

#[test]
fn when_the_block_may_be_forgotten_there_is_no_draw_and_nobody_chooses_another() {
    // The one that counts is forgotten, or was known for long enough.
    for (later, forgotten_before) in [(199, 0), (270, 15), (500, 200)] {
        assert_eq!(drawn_in(DRAW + later, DRAW + forgotten_before), None);
    }
}

#[test]
fn entropy_that_came_too_late_for_a_draw_is_not_waited_for_by_who_likes_it() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        run_to(DRAW - 2);
        HasEntropy::set(false);
        skip_to(DRAW - 2 + BlockNumber::from(ENTROPY_PATIENCE_BLOCKS) + 1);
        HasEntropy::set(true);
        skip_to(DRAW + 150);
        assert_ok!(advance(task));
        assert!(matches!(state(task), TaskStateOf::<Test>::Cancelled { .. }));
    });
}

#[test]
fn a_block_without_vrf_output_delays_the_draw() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        HasEntropy::set(false);
        run_to(DRAW + 3);
        assert_noop!(advance(task), Error::<Test>::NotDue);
        HasEntropy::set(true);
        run_to(DRAW + 4);
        assert_eq!(assignments(task).len(), 1);
    });
}

#[test]
fn without_entropy_for_long_the_task_is_called_off() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        assert_ok!(place(task, 1, 500));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        HasEntropy::set(false);
        events();
        let last = DRAW - 2 + BlockNumber::from(ENTROPY_PATIENCE_BLOCKS);
        run_to(last);
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since: DRAW - 2 });
        run_to(last + 1);
        assert_eq!(
            state(task),
            TaskStateOf::<Test>::Cancelled { at: last + 1, fee: 0 }
        );
        assert_eq!(
            events(),
            [Event::DrawAbandoned { task }, Event::TaskCancelled { task }]
        );
        assert_eq!(MockEscrow::refunded_to(CLIENT), CAP);
        assert_eq!((MockStake::locked_in_all(), MockStake::slashed(stash(1))), (0, 0));
    });
}

#[test]
fn a_late_sweep_still_draws() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        skip_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        let late = DRAW + 10 * BlockNumber::from(ENTROPY_PATIENCE_BLOCKS);
        skip_to(late);
        assert_ok!(advance(task));
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since: late });
        skip_to(late + 2);
        assert_ok!(advance(task));
        assert_eq!(assignments(task).len(), 1);
    });
}

#[test]
fn too_few_bids_fail_the_task_and_refund_the_client() {
    TestExt::new().providers(2).execute_with(|| {
        let without_bids = post(1);
        let task = assign(3, &[100, 100]);
        assert!(failed(without_bids) && failed(task));
        assert_eq!(MockEscrow::refunded_to(CLIENT), 2 * CAP);
        assert!(events().contains(&Event::TaskFailed {
            task,
            reason: FailureReason::NotEnoughBids
        }));
        assert!(MockTrust::opened().is_empty());
    });
}

#[test]
fn an_unopened_bid_loses_its_deposit_whether_or_not_the_task_is_assigned() {
    TestExt::new().providers(3).execute_with(|| {
        let (assigned, failing) = (post(1), post(3));
        for index in 0..2 {
            assert_ok!(place(assigned, index, 500));
            assert_ok!(place(failing, index, 500));
        }
        run_to(DRAW - 3);
        assert_ok!(open(assigned, 0, 500));
        assert_ok!(open(failing, 0, 500));
        run_to(DRAW);
        assert_eq!(assignments(assigned).len(), 1);
        assert!(failed(failing));
        assert_eq!(MockStake::slashed(stash(0)), 0);
        assert_eq!(MockStake::slashed(stash(1)), 2 * DEPOSIT);
        assert_eq!(MockStake::locked_in_all(), 0);
        let forfeited = |task| Event::BidForfeited {
            task,
            provider: stash(1),
            amount: DEPOSIT,
        };
        let events = events();
        assert!(events.contains(&forfeited(assigned)) && events.contains(&forfeited(failing)));
    });
}

#[test]
fn a_price_above_the_limit_is_never_ranked_nor_fined() {
    TestExt::new().providers(2).execute_with(|| {
        let task = assign(1, &[limit(1), limit(1) + 1]);
        assert_eq!(assignments(task), [(stash(0), limit(1))]);
        assert_eq!(MockStake::slashed(stash(1)), 0);
        let other = assign(1, &[limit(1) + 1]);
        assert!(failed(other));
    });
}

#[test]
fn who_is_away_at_the_draw_gets_nothing() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 100));
        assert_ok!(place(task, 1, 900));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 100));
        assert_ok!(open(task, 1, 900));
        MockProviders::set_available(stash(0), false);
        run_to(DRAW);
        assert_eq!(assignments(task), [(stash(1), limit(1))]);
    });
}

#[test]
fn who_cannot_back_the_limit_gets_nothing() {
    let lock = 2 * limit(1);
    let ext = TestExt::new().provider_with(0, lock).provider_with(1, lock);
    ext.execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 100));
        assert_ok!(place(task, 1, 900));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 100));
        assert_ok!(open(task, 1, 900));
        // It was free when the bid was made.
        assert_ok!(MockStake::lock(&stash(0), 1));
        run_to(DRAW);
        assert_eq!(assignments(task), [(stash(1), limit(1))]);
    });
}

#[test]
fn a_round_that_cannot_open_is_tried_again_and_called_off_in_the_end() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        MockTrust::refuse(true);
        run_to(DRAW - 1);
        skip_to(DRAW);
        assert_noop!(advance(task), MockTrust::REFUSED);
        let TaskStateOf::<Test>::Drawing { since } = state(task) else {
            panic!("not waiting for its draw");
        };
        run_to(since + BlockNumber::from(ENTROPY_PATIENCE_BLOCKS));
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since });
        run_to(since + BlockNumber::from(ENTROPY_PATIENCE_BLOCKS) + 1);
        assert!(matches!(state(task), TaskStateOf::<Test>::Cancelled { .. }));
        assert_eq!(MockEscrow::refunded_to(CLIENT), CAP);
    });
}

#[test]
fn a_clock_that_stands_still_takes_no_time_from_bidders_and_holds_up_no_draw() {
    TestExt::new().providers(2).execute_with(|| {
        let task = post(1);
        for index in 0..2 {
            assert_ok!(place(task, index, 500));
        }
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        ClockStoppedAt::set(Some(DRAW - 3));
        run_to(DRAW + 300);
        // By blocks this is long over.
        assert_ok!(open(task, 1, 500));
        ClockStoppedAt::set(Some(DRAW - 2));
        let since = DRAW + 301;
        run_to(since);
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since });
        // The entropy is that of the first block that will do, though the clock stands still again.
        run_to(since + 2);
        assert_eq!(assignments(task).len(), 1);
        assert_eq!(MockStake::slashed(stash(1)), 0);
        ClockStoppedAt::set(None);
    });
}

#[test]
fn a_clock_that_leaps_goes_through_every_phase_in_turn() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        run_to(DRAW - 3);
        assert_ok!(open(task, 0, 500));
        // From the last time for opening bids to far beyond it, in one block.
        ClockStoppedAt::set(Some(DRAW + 50));
        run_to(DRAW - 2);
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since: DRAW - 2 });
        run_to(DRAW);
        assert_eq!(assignments(task).len(), 1);
    });
}
