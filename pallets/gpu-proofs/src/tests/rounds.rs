//! How rounds begin, go on and end.

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_pallet_test_kit::MockEntropy;

use crate::{AUTHORS, CurrentRound, Event, RoundsOver, Stage, mock::*, rounds::begins};

fn stage() -> Option<Stage<u64>> {
    CurrentRound::<Test>::get().map(|round| round.stage)
}

#[test]
fn a_round_goes_through_its_stages_by_blocks_alone() {
    TestExt::new().execute_with(|| {
        let entropy = begin_round();
        System::assert_last_event(Event::RunsSeeded { round: 1, entropy }.into());
        let samples = pass_until_drawn();
        System::assert_last_event(Event::SamplesDrawn { round: 1, samples }.into());
        assert_ne!(samples, entropy);
        pass_until_over();
        let over = Event::RoundOver {
            round: 1,
            is_counted: true,
        };
        System::assert_last_event(over.into());
        assert_eq!(RoundsOver::<Test>::get(), 1);
    });
}

#[test]
fn rounds_begin_at_random_and_as_often_as_is_set() {
    let outputs = (0..100_000).map(H256::from_low_u64_be);
    let begun = outputs.clone().filter(|output| begins(output, 50)).count();
    // Two thousand, and five standard deviations.
    assert!((1_780..2_220).contains(&begun), "{begun}");
    assert!(!outputs.clone().any(|output| begins(&output, 0)), "0 is never");
    assert!(outputs.clone().all(|output| begins(&output, 1)));
    TestExt::new().execute_with(|| {
        pass_blocks(100);
        assert_eq!(stage(), None);
    });
}

#[test]
fn entropy_is_of_eight_blocks_after_the_one_that_began_the_round() {
    TestExt::new().execute_with(|| {
        RoundEvery::set(1);
        pass_block();
        let Some(Stage::Seeding { gathered }) = stage() else {
            panic!("{:?}", stage());
        };
        assert_eq!(gathered.last, System::block_number() - 1);
        assert_eq!(gathered.authors_left, AUTHORS);
        pass_blocks(u64::from(AUTHORS) - 1);
        assert!(matches!(stage(), Some(Stage::Seeding { .. })));
        // Without one there is nothing to go on with.
        pass_block_without_entropy();
        assert!(matches!(stage(), Some(Stage::Seeding { .. })));
        pass_block();
        assert!(matches!(stage(), Some(Stage::Running { .. })));
    });
}

#[test]
fn each_of_the_eight_changes_what_comes_of_it() {
    let entropy = |missing: Option<u64>| {
        let mut entropy = H256::zero();
        TestExt::new().execute_with(|| {
            RoundEvery::set(1);
            pass_block();
            let began = System::block_number() - 1;
            RoundEvery::set(0);
            while !matches!(stage(), Some(Stage::Running { .. })) {
                // What a block that is left out would have given, the next one gives.
                if missing == Some(System::block_number() - began) {
                    pass_block_without_entropy();
                } else {
                    pass_block();
                }
            }
            if let Some(Stage::Running { entropy: found, .. }) = stage() {
                entropy = found;
            }
        });
        entropy
    };
    let all: std::collections::BTreeSet<_> = (1..=u64::from(AUTHORS))
        .map(Some)
        .chain([None])
        .map(entropy)
        .collect();
    assert_eq!(all.len(), 9);
}

#[test]
fn samples_are_drawn_by_blocks_after_the_last_in_which_there_was_time_to_commit() {
    TestExt::new().execute_with(|| {
        begin_round();
        pass_until(|stage| matches!(stage, Some(Stage::Drawing { .. })));
        let Some(Stage::Drawing { gathered, .. }) = stage() else {
            panic!("{:?}", stage());
        };
        // The block before this one was the first beyond the window; what it gave is not used.
        let beyond = System::block_number() - 1;
        assert_eq!((gathered.last, gathered.authors_left), (beyond, AUTHORS));
        let after = beyond + 1..=beyond + u64::from(AUTHORS);
        let expected = after.fold(H256::zero(), |hash, block| {
            H256(blake2_256(&(hash, MockEntropy::output_of(block)).encode()))
        });
        assert_eq!(pass_until_drawn(), expected);
    });
}

#[test]
fn a_round_with_too_few_blocks_to_commit_in_is_not_counted() {
    TestExt::new().execute_with(|| {
        begin_round();
        // Three blocks, then none for a minute.
        pass_blocks(3);
        NowMs::set(NowMs::get() + 60_000);
        pass_until_over();
        let over = Event::RoundOver {
            round: 1,
            is_counted: false,
        };
        System::assert_last_event(over.into());
        assert_eq!(RoundsOver::<Test>::get(), 0);
    });
}

/// Whether a round counts of whose fifteen blocks these have no room, the first being number 1.
fn is_counted_without(full: impl Fn(u64) -> bool) -> bool {
    let mut is_counted = false;
    TestExt::new().execute_with(|| {
        begin_round();
        for block in 1..=WINDOW_MS / SLOT_MS {
            IsFull::set(full(block));
            pass_block();
        }
        IsFull::set(false);
        pass_until_over();
        is_counted = RoundsOver::<Test>::get() == 1;
    });
    is_counted
}

#[test]
fn a_round_counts_with_room_in_enough_blocks_and_not_with_one_less() {
    let blocks = WINDOW_MS / SLOT_MS;
    let without = |number: u64| is_counted_without(|block| block <= number);
    assert!(without(0));
    assert!(without(blocks - u64::from(BLOCKS_MIN)));
    assert!(!without(blocks - u64::from(BLOCKS_MIN) + 1));
}

/// Who uses its time commits in the last of them.
#[test]
fn a_round_whose_last_blocks_are_full_is_not_counted() {
    let blocks = WINDOW_MS / SLOT_MS;
    assert!(is_counted_without(|block| block == blocks));
    assert!(is_counted_without(|block| block == blocks - 1));
    assert!(!is_counted_without(|block| block >= blocks - 1));
}

#[test]
fn a_round_whose_last_blocks_there_are_not_is_not_counted() {
    // Without the last, and without the last two.
    for (missing, counted) in [(1, 1), (2, 0)] {
        TestExt::new().execute_with(|| {
            begin_round();
            pass_blocks(WINDOW_MS / SLOT_MS - missing);
            NowMs::set(NowMs::get() + 3 * SLOT_MS);
            pass_until_over();
            assert_eq!(RoundsOver::<Test>::get(), counted);
        });
    }
}

#[test]
fn there_is_as_much_time_to_show_samples_as_finality_runs() {
    TestExt::new().execute_with(|| {
        begin_round();
        pass_until_drawn();
        for _ in 0..100 {
            // Finality stands still.
            let before = Finality::get();
            pass_block();
            Finality::set(before);
        }
        assert!(matches!(stage(), Some(Stage::Opening { .. })));
        pass_blocks(OPEN_WINDOW + 2);
        assert_eq!(stage(), None);
    });
}

/// As many blocks with room as there would be anyway, up to a bound: others may fill blocks.
#[test]
fn full_blocks_take_nobodys_time_to_show_samples_up_to_a_bound() {
    TestExt::new().execute_with(|| {
        for (full, longer) in [(0, 0), (7, 7), (u64::from(LONGER_MAX) + 9, LONGER_MAX.into())] {
            begin_round();
            pass_until_drawn();
            IsFullForShowing::set(true);
            pass_blocks(full);
            IsFullForShowing::set(false);
            pass_blocks(OPEN_WINDOW + longer - full);
            assert!(matches!(stage(), Some(Stage::Opening { .. })), "{full}");
            pass_blocks(1);
            assert_eq!(stage(), None, "{full}");
        }
    });
}
