//! Who keeps a place where more bid than there are places.

use std::collections::BTreeSet;

use frame_support::{assert_noop, assert_ok, dispatch::PostDispatchInfo, pallet_prelude::InvalidTransaction};
use proptest::prelude::*;
use surety_audit_economics::PlaceRank;
use surety_pallet_test_kit::{MockEntropy, MockStake};
use surety_types::{limits, stake::Role};

use crate::{BidCount, BidCounts, Bids, Error, Event, Rankings, TaskStateOf, WeightInfo, mock::*};

const PLACES: u64 = limits::BIDS_MAX as u64;
/// The block from which on it is known who ranks how in a task that was posted in block 1.
const RANKED: BlockNumber = 3;

fn bidders(task: u64) -> BTreeSet<AccountId> {
    Bids::<Test>::iter_key_prefix(task).collect()
}

fn endowed(stakes: impl IntoIterator<Item = Balance>) -> TestExt {
    let providers = (0..).zip(stakes);
    providers.fold(TestExt::new(), |ext, (index, stake)| {
        ext.provider_with(index, stake)
    })
}

/// A task whose places are all taken by providers of this stake, and after them others of another. It is
/// known who ranks how.
fn crowded(stake: Balance, others: &[Balance], test: impl FnOnce(u64)) {
    let crowd = std::iter::repeat_n(stake, PLACES as usize);
    endowed(crowd.chain(others.iter().copied())).execute_with(|| {
        let task = post(1);
        for index in 0..PLACES {
            assert_ok!(place(task, index, 500));
        }
        run_to(RANKED);
        events();
        test(task);
    });
}

#[test]
fn while_there_are_places_every_bid_has_one_and_nobody_is_ranked() {
    crowded(LEAST, &[], |task| {
        assert_eq!(bidders(task).len() as u64, PLACES);
        assert!(!Rankings::<Test>::contains_key(task));
    });
}

#[test]
fn a_bid_beyond_the_places_waits_for_a_block_that_nobody_knew_when_the_task_was_posted() {
    TestExt::new().providers(PLACES + 1).execute_with(|| {
        let task = post(1);
        for index in 0..PLACES {
            assert_ok!(place(task, index, 500));
        }
        let late = || place(task, PLACES, 500);
        for block in 1..RANKED {
            skip_to(block);
            assert_noop!(late(), Error::<Test>::PlacesUndecided);
        }
        skip_to(RANKED);
        assert_ne!(late(), Err(Error::<Test>::PlacesUndecided.into()));
    });
}

#[test]
fn a_better_rank_takes_the_place_of_the_worst_which_has_its_deposit_back() {
    crowded(STAKE, &[1_000 * STAKE], |task| {
        assert_ok!(place(task, PLACES, 500));
        let [
            Event::BidDisplaced {
                provider: worst, by, ..
            },
            Event::BidPlaced { provider, .. },
        ] = events()[..]
        else {
            panic!("a bid is displaced, then one placed");
        };
        assert_eq!((by, provider), (stash(PLACES), stash(PLACES)));
        assert!(bidders(task).contains(&by) && !bidders(task).contains(&worst));
        assert_eq!((MockStake::locked(worst), MockStake::locked(by)), (0, DEPOSIT));
        assert_eq!(BidCounts::<Test>::get(task).placed, limits::BIDS_MAX);

        let again = TaskAuction::bid(signed(agent_of(worst)), task, Default::default());
        assert_eq!(again.unwrap_err().error, Error::<Test>::Outranked.into());
    });
}

#[test]
fn who_ranks_worse_than_all_is_refused_and_changes_nothing() {
    crowded(STAKE, &[LEAST], |task| {
        let before = bidders(task);
        assert_noop!(place(task, PLACES, 500), Error::<Test>::Outranked);
        assert_eq!((bidders(task), MockStake::locked(stash(PLACES))), (before, 0));
    });
}

#[test]
fn many_names_with_little_stake_keep_out_nobody_who_comes_later() {
    // All of them together have as much as one of the others.
    let honest = [64 * STAKE; 10];
    crowded(STAKE, &honest, |task| {
        for index in (PLACES..).take(honest.len()) {
            assert_ok!(place(task, index, 500));
        }
        let bidders = bidders(task);
        assert!(
            (PLACES..)
                .take(honest.len())
                .all(|index| bidders.contains(&stash(index)))
        );
    });
}

#[test]
fn stake_that_came_when_the_task_could_be_seen_does_not_count_whatever_there_is_of_it() {
    crowded(1_000 * STAKE, &[LEAST; 20], |task| {
        for index in 0..PLACES {
            MockStake::settle(stash(index), RANKED as u32 - 1 - 1);
        }
        for index in PLACES..PLACES + 20 {
            assert_ok!(place(task, index, 500));
        }
        // Now its own is young as well.
        MockStake::bond(stash(500), agent_of(stash(500)), Role::Provider, 1_000 * STAKE);
        surety_pallet_test_kit::MockProviders::add(stash(500));
        MockStake::settle(stash(500), 0);
        let _ = place(task, 500, 500);
        let bidders = bidders(task);
        assert!((PLACES..PLACES + 20).all(|index| bidders.contains(&stash(index))));
    });
}

#[test]
fn stake_counts_that_is_older_than_the_task_by_the_seasoning() {
    let ranks_first = |settled_for| {
        let mut first = false;
        endowed(std::iter::repeat_n(STAKE, PLACES as usize).chain([u64::MAX.into()])).execute_with(|| {
            BidderSeasoning::set(10);
            run_to(20);
            let task = post(1);
            for index in 0..PLACES {
                assert_ok!(place(task, index, 500));
            }
            run_to(22);
            MockStake::settle(stash(PLACES), settled_for);
            first = place(task, PLACES, 500).is_ok()
                && Rankings::<Test>::get(task).unwrap().places[0].provider == stash(PLACES);
        });
        first
    };
    // Posted in block 20: it must have been there since block 10, and now is block 22.
    assert!(ranks_first(12));
    assert!(!ranks_first(11));
}

#[test]
fn opening_a_bid_that_lost_its_place_is_refused_by_the_pool_and_costs_nothing() {
    crowded(STAKE, &[1_000 * STAKE], |task| {
        assert_ok!(place(task, PLACES, 500));
        let lost = (0..PLACES)
            .find(|index| !bidders(task).contains(&stash(*index)))
            .unwrap();
        run_to(1 + BID_WINDOW + 1);
        assert_noop!(open(task, lost, 500), Error::<Test>::UnknownBid);
        let validity = validity_of(&opening(task, stash(lost), bid(lost, 500)));
        assert_eq!(validity, Err(InvalidTransaction::Call.into()));
    });
}

#[test]
fn who_lost_its_place_is_neither_waited_for_nor_forfeits_anything() {
    crowded(STAKE, &[1_000 * STAKE], |task| {
        LateRevealWindow::set(10);
        assert_ok!(place(task, PLACES, 500));
        run_to(1 + BID_WINDOW + 1);
        let bidders = bidders(task);
        for index in (0..=PLACES).filter(|index| bidders.contains(&stash(*index))) {
            assert_ok!(open(task, index, 500));
        }
        let all = BidCount {
            placed: limits::BIDS_MAX,
            opened: limits::BIDS_MAX,
            late: false,
        };
        assert_eq!(BidCounts::<Test>::get(task), all);
        let closed = 1 + BID_WINDOW + REVEAL_WINDOW + 1;
        run_to(closed);
        assert_eq!(state(task), TaskStateOf::<Test>::Drawing { since: closed });
        events();
        run_to(closed + 2);
        assert!(matches!(state(task), TaskStateOf::<Test>::Running { .. }));
        assert!(
            !events()
                .iter()
                .any(|event| matches!(event, Event::BidForfeited { .. }))
        );
        assert_eq!(MockStake::locked_in_all(), 0);
    });
}

#[test]
fn a_ranking_goes_with_its_task() {
    crowded(STAKE, &[1_000 * STAKE], |task| {
        assert_ok!(place(task, PLACES, 500));
        assert_ok!(TaskAuction::cancel(signed(CLIENT), task));
        assert_eq!(MockStake::locked_in_all(), 0);
        assert!(Rankings::<Test>::contains_key(task));
        run_to(RANKED + RETENTION + 2);
        assert!(!Rankings::<Test>::contains_key(task) && bidders(task).is_empty());
    });
}

#[test]
fn ranking_is_paid_for_only_where_all_places_are_taken() {
    crowded(STAKE, &[1_000 * STAKE, LEAST], |task| {
        let weight = |task, index| {
            let bid = TaskAuction::bid(signed(agent_of(stash(index))), task, Default::default());
            let info: PostDispatchInfo = bid.unwrap_or_else(|error| error.post_info);
            info.actual_weight
        };
        let displacing = Some(<() as WeightInfo>::displace_bid());
        assert_eq!(weight(task, PLACES), displacing);
        assert_eq!(weight(task, PLACES + 1), displacing, "it is refused");
        assert_eq!(weight(post(1), PLACES), Some(<() as WeightInfo>::bid()));
        assert_eq!(
            weight(99, PLACES),
            Some(<() as WeightInfo>::bid()),
            "there is no such task"
        );
    });
}

/// Which of some bidders ought to have the places.
fn best(id: u64, stakes: &[Balance]) -> BTreeSet<AccountId> {
    let entropy = MockEntropy::output_of(task(id).posted_at + 1);
    let mut ranked: Vec<_> = (0..)
        .zip(stakes)
        .map(|(index, stake)| (PlaceRank::new(id, &stash(index), &entropy, *stake), stash(index)))
        .collect();
    ranked.sort();
    ranked
        .into_iter()
        .take(PLACES as usize)
        .map(|(_, stash)| stash)
        .collect()
}

/// Something that somebody does.
#[derive(Clone, Debug)]
enum Act {
    Bid(u64),
    Open(u64),
    Pass(u8),
    Cancel,
    Advance,
}

const PROVIDERS: u64 = PLACES + 16;

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..PROVIDERS).prop_map(Act::Bid),
        12 => (0..PROVIDERS).prop_map(Act::Open),
        3 => (1..3u8).prop_map(Act::Pass),
        1 => Just(Act::Advance),
        1 => Just(Act::Cancel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn who_has_the_places_in_the_end_does_not_depend_on_who_came_first(
        stakes in prop::collection::vec(LEAST..10 * STAKE, 100),
        order in Just((0..100u64).collect::<Vec<_>>()).prop_shuffle()
    ) {
        endowed(stakes.clone()).execute_with(|| {
            let task = post(1);
            // Some as soon as they can, the others when it is known who ranks how.
            for index in &order[..PLACES as usize] {
                assert_ok!(place(task, *index, 500));
            }
            run_to(RANKED);
            let mut refused = Vec::new();
            for index in &order[PLACES as usize..] {
                if place(task, *index, 500).is_err() {
                    refused.push(*index);
                }
            }
            assert_eq!(bidders(task), best(task, &stakes));
            for index in refused {
                assert_noop!(place(task, index, 500), Error::<Test>::Outranked);
            }
        });
    }

    #[test]
    fn whatever_is_done_to_a_crowded_task_its_books_are_right_and_no_deposit_stays_locked(
        stakes in prop::collection::vec(LEAST..10 * STAKE, PROVIDERS as usize),
        acts in prop::collection::vec(act(), 0..120)
    ) {
        endowed(stakes).execute_with(|| {
            LateRevealWindow::set(3);
            let task = post(1);
            for index in 0..PLACES - 2 {
                assert_ok!(place(task, index, 500));
            }
            for act in acts {
                match act {
                    Act::Bid(index) => _ = place(task, index, 500),
                    Act::Open(index) => _ = open(task, index, 500),
                    Act::Pass(blocks) => run_to(System::block_number() + BlockNumber::from(blocks)),
                    Act::Cancel => _ = TaskAuction::cancel(signed(CLIENT), task),
                    Act::Advance => _ = advance(task),
                }
                assert_sound();
            }
            run_to(System::block_number() + BID_WINDOW + REVEAL_WINDOW + 3 + 4);
            assert_eq!(MockStake::locked_in_all(), 0);
        });
    }
}
