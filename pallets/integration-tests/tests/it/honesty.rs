//! Honest providers that act in time are enough, whatever the others do.

use proptest::{collection::vec, prelude::*};
use surety_pallet_test_kit::MockStake;
use surety_types::task::Verdict;

use surety_pallet_integration_tests::*;

const TRUTH: u8 = 100;

/// How a dishonest member spoils its part.
#[derive(Clone, Copy, Debug)]
enum Offence {
    /// Commits nothing.
    Sleeps,
    /// Commits, and reveals nothing.
    Withholds,
    /// Commits to another result and reveals it.
    Lies(u8),
    /// Commits to another result and reveals the true one, once it can see it.
    Copies(u8),
    /// Acts in the last block of each window, with another result.
    LiesLate(u8),
}

fn any_offence() -> impl Strategy<Value = Offence> {
    prop_oneof![
        Just(Offence::Sleeps),
        Just(Offence::Withholds),
        (0u8..3).prop_map(Offence::Lies),
        (0u8..3).prop_map(Offence::Copies),
        (0u8..3).prop_map(Offence::LiesLate),
    ]
}

/// Each member's offence, or none, by seat; offences are a minority of `redundancy`.
fn any_members() -> impl Strategy<Value = Vec<Option<Offence>>> {
    (1usize..=7)
        .prop_flat_map(|redundancy| (Just(redundancy), vec(any_offence(), 0..=(redundancy - 1) / 2)))
        .prop_flat_map(|(redundancy, offences)| {
            let mut members: Vec<_> = offences.into_iter().map(Some).collect();
            members.resize(redundancy, None);
            Just(members).prop_shuffle()
        })
}

fn stash(seat: usize) -> AccountId {
    seat as AccountId + 1
}

/// Whether the agent acts in this block: `offset` blocks into the window of `window` blocks.
fn acts(offence: Option<Offence>, delay: BlockNumber, offset: BlockNumber, window: BlockNumber) -> bool {
    match offence {
        Some(Offence::LiesLate(_)) => offset == window,
        _ => offset == delay % (window + 1),
    }
}

fn try_commit(seat: usize, offence: Option<Offence>) {
    let result = match offence {
        None | Some(Offence::Withholds) => TRUTH,
        Some(Offence::Lies(result) | Offence::Copies(result) | Offence::LiesLate(result)) => result,
        Some(Offence::Sleeps) => return,
    };
    assert_eq!(commit(stash(seat), result), Ok(()));
}

fn try_reveal(seat: usize, offence: Option<Offence>) {
    let result = match offence {
        None => TRUTH,
        Some(Offence::Lies(result) | Offence::LiesLate(result)) => result,
        Some(Offence::Copies(_)) => {
            assert!(reveal(stash(seat), TRUTH).is_err());
            return;
        }
        Some(Offence::Sleeps | Offence::Withholds) => return,
    };
    assert_eq!(reveal(stash(seat), result), Ok(()));
}

/// Lets every block of the current phase pass, with everybody acting in its own.
fn play_phase(
    name: PhaseName,
    window: BlockNumber,
    members: &[(Option<Offence>, BlockNumber)],
    act: impl Fn(usize, Option<Offence>),
) {
    for offset in 0..=window {
        for (seat, (offence, delay)) in members.iter().enumerate() {
            if acts(*offence, *delay, offset, window) && phase().is_some_and(|(now, _)| now == name) {
                act(seat, *offence);
            }
        }
        if !phase().is_some_and(|(now, _)| now == name) {
            return;
        }
        pass(1);
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(600)))]

    #[test]
    fn a_majority_of_honest_equal_results_is_always_the_verdict(
        (members, delays) in any_members()
            .prop_flat_map(|members| (Just(members.clone()), vec(0u64..20, members.len()))),
    ) {
        let redundancy = members.len() as u32;
        let timed: Vec<_> = members.iter().copied().zip(delays).collect();
        TestExt::new().round_of(redundancy).execute_with(|| {
            set_truth(TRUTH);
            play_phase(PhaseName::Committing, COMMIT_WINDOW, &timed, try_commit);
            assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
            while phase().is_some_and(|(name, _)| name == PhaseName::Auditing) {
                pass(1);
            }
            play_phase(PhaseName::Revealing, REVEAL_WINDOW, &timed, try_reveal);
            let honest: Vec<_> =
                (0..members.len()).filter(|seat| members[*seat].is_none()).map(|seat| (stash(seat), TRUTH)).collect();
            let liars = members.len() - honest.len();
            // Whoever tells the truth plays its disputes; liars let their time run out.
            for _ in 0..liars as BlockNumber * (BlockNumber::from(CLOCK) + 3) + OPENING_WINDOW + 3 {
                play_out(&honest);
                pass(1);
            }

            let those = |wanted: fn(Offence) -> bool| -> Vec<AccountId> {
                let seats = members.iter().enumerate();
                seats.filter(|(_, offence)| offence.is_some_and(wanted)).map(|(seat, _)| stash(seat)).collect()
            };
            let honest: Vec<_> = honest.into_iter().map(|(stash, _)| stash).collect();
            let liars = those(|offence| matches!(offence, Offence::Lies(_) | Offence::LiesLate(_)));
            let absent = those(|offence| matches!(offence, Offence::Sleeps | Offence::Withholds | Offence::Copies(_)));
            let verdict: Option<Verdict<_>> = decision();
            assert_eq!(verdict, Some(agreed(TRUTH, &honest, &liars, &absent)));
            pass(DEFERRAL + 1);
            for stash in honest {
                assert_eq!(MockStake::slashed(stash), 0);
            }
            for stash in liars {
                assert!(MockStake::slashed(stash) >= LOCK);
            }
        });
    }
}
