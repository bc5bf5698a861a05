//! The honest side wins, and the cell found is the altered one.

use super::*;

/// Whoever made a fault loses, whichever side it is on, and the game comes to the cell with the fault.
fn found(truth: &Work, at: At, byte: usize, mask: u8, goes_on: bool) {
    let mut wrong = truth.altered(at, byte, mask, goes_on);
    // Another input than the task's is lost without a look into it.
    let (reason, cell) = (Reason::Judged, (at.0 > 0).then_some(at));

    let mut game = Match::new(&wrong);
    let outcome = game.play_faithfully(&mut wrong, &mut truth.clone(), Side::Challenger);
    assert_eq!((outcome, game.at()), (ended(Side::Challenger, reason), cell));

    let mut game = Match::new(truth);
    let outcome = game.play_faithfully(&mut truth.clone(), &mut wrong, Side::Defender);
    assert_eq!((outcome, game.at()), (ended(Side::Defender, reason), Some(at)));
}

#[test]
fn every_single_bit_fault_at_every_cell_is_found_and_lost_by_whoever_made_it() {
    let truth = Work::new(Toy::new(2, 2, 1, 4, 3), &mut Dice::seeded(8));
    let cells = truth.cells();
    assert!((1..5).all(|leaf| truth.length(leaf) > 1));
    assert!(cells.len() > 150, "{}", cells.len());
    for at in cells {
        for byte in 0..truth.bytes_of(at).len() {
            for bit in 0..8 {
                found(&truth, at, byte, 1 << bit, bit % 2 == 0);
            }
        }
        found(&truth, at, 0, 1, false);
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(128)))]

    #[test]
    fn a_fault_in_a_larger_work_is_found(
        toy in toys(), seed in any::<u64>(), at in any::<prop::sample::Index>(), goes_on in any::<bool>(),
    ) {
        let truth = Work::new(toy, &mut Dice::seeded(seed));
        found(&truth, *at.get(&truth.cells()), 0, 1 << (seed % 8), goes_on);
    }

    #[test]
    fn an_honest_challenger_wins_whatever_the_defender_does(
        toy in toys(), seed in any::<u64>(), at in any::<prop::sample::Index>(), goes_on in any::<bool>(),
    ) {
        let mut dice = Dice::seeded(seed);
        let mut truth = Work::new(toy, &mut dice);
        let at = *at.get(&truth.cells());
        let mut wrong = truth.altered(at, 0, 1, goes_on);
        let mut game = Match::new(&wrong);
        let outcome = game.play(Side::Challenger, &mut truth, &mut wrong, &mut dice);
        prop_assert_eq!(outcome.winner, Side::Challenger);
        prop_assert!(game.at().is_none_or(|found| found == at));
    }

    #[test]
    fn an_honest_defender_wins_whatever_the_challenger_does(
        toy in toys(), seed in any::<u64>(), at in any::<prop::sample::Index>(), goes_on in any::<bool>(),
    ) {
        let mut dice = Dice::seeded(seed);
        let mut truth = Work::new(toy, &mut dice);
        let at = *at.get(&truth.cells());
        let mut wrong = truth.altered(at, 0, 1, goes_on);
        let mut game = Match::new(&truth);
        let outcome = game.play(Side::Defender, &mut truth, &mut wrong, &mut dice);
        prop_assert_eq!(outcome.winner, Side::Defender);
    }

    #[test]
    fn who_has_the_same_concedes(toy in toys(), seed in any::<u64>()) {
        let mut work = Work::new(toy, &mut Dice::seeded(seed));
        let mut game = Match::new(&work);
        let outcome = game.play_faithfully(&mut work.clone(), &mut work, Side::Defender);
        prop_assert_eq!(outcome, ended(Side::Defender, Reason::Conceded));
    }
}
