//! Defenders whose trees are none: some digests stand for nothing, and everything above hashes right.

use super::super::cut::parent;
use super::*;
use sp_core::H256;
use surety_proofs::merkle_root;

/// Leaf, step and row of a computed leaf, and work that gives it another digest: nothing before that row is
/// wrong.
fn wrong(truth: &Work, dice: &mut Dice) -> (At, Work) {
    let computed = truth.toy.items * truth.toy.strides;
    let leaf = 1 + dice.below(computed);
    let last = truth.toy.steps_of(leaf) - 1;
    let step = dice.below(last + 1);
    let wrong = truth.altered((leaf, last, 0, 0), 0, 1, false);
    let rows = truth.toy.rows(leaf, truth.length(leaf), step).unwrap().rows;
    let row = if step == last { 0 } else { dice.below(rows) };
    ((leaf, step, row, 0), wrong)
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(96)))]

    #[test]
    fn steps_and_rows_that_nobody_has_are_lost(toy in toys(), seed in any::<u64>(), row in any::<bool>()) {
        let mut dice = Dice::seeded(seed);
        let mut truth = Work::new(toy, &mut dice);
        let (at, mut wrong) = wrong(&truth, &mut dice);
        let forged = dice.hash();
        if row {
            wrong.forge_row(at, forged)
        } else {
            wrong.forge_step(at.0, at.1, forged)
        }
        let mut game = Match::new(&wrong);
        let outcome = game.play(Side::Challenger, &mut truth, &mut wrong, &mut dice);
        prop_assert_eq!(outcome.winner, Side::Challenger);
        prop_assert_eq!(game.at(), None, "nobody comes below it");
    }

    #[test]
    fn a_leaf_that_its_steps_do_not_end_in_is_lost(toy in toys(), seed in any::<u64>()) {
        let mut dice = Dice::seeded(seed);
        let mut truth = Work::new(toy, &mut dice);
        let (at, _) = wrong(&truth, &mut dice);
        let mut wrong = truth.clone();
        wrong.forge_leaf(at.0, dice.hash());
        let mut game = Match::new(&wrong);
        let outcome = game.play(Side::Challenger, &mut truth, &mut wrong, &mut dice);
        prop_assert_eq!(outcome.winner, Side::Challenger);
        let entered = *game.game.place();
        prop_assert!(entered.level == Level::Leaves, "nobody enters it: {:?}", entered);
    }

    #[test]
    fn other_steps_that_end_in_the_leaf_are_lost(toy in toys(), seed in any::<u64>()) {
        let mut dice = Dice::seeded(seed);
        let mut truth = Work::new(toy, &mut dice);
        let (at, mut wrong) = wrong(&truth, &mut dice);
        for step in 0..toy.steps_of(at.0) - 1 {
            wrong.forge_step(at.0, step, dice.hash());
        }
        let mut game = Match::new(&wrong);
        let outcome = game.play(Side::Challenger, &mut truth, &mut wrong, &mut dice);
        prop_assert_eq!(outcome.winner, Side::Challenger);
        prop_assert_eq!(game.game.place().step, 0);
    }
}

#[test]
fn a_node_that_nobody_has_is_lost() {
    let mut truth = Work::new(Toy::new(4, 5, 1, 4, 2), &mut Dice::seeded(1));
    // 22 leaves are a node of 16 and one of 6.
    let known = merkle_root(truth.leaves[..16].iter().copied());
    let children = [known, H256::repeat_byte(1)];
    let root = parent(&children, false).unwrap();
    let mut game = Match::new(&truth);
    game.game = Game::new(root, &truth.toy, Clocks::equal(BLOCKS)).unwrap();
    let posted = Move::Post(children.to_vec().try_into().unwrap());
    assert_eq!(game.step(Side::Defender, posted), Ok(()));
    let named = game.faithful(Side::Challenger, &mut truth).unwrap();
    assert_eq!(named, Move::Name(1));
    assert_eq!(game.step(Side::Challenger, named), Ok(()));
    assert_eq!(game.game.leaves_in_dispute(), 16..22);
    for children in [truth.leaves[16..].to_vec(), vec![H256::zero(); 6]] {
        let posted = Move::Post(children.try_into().unwrap());
        assert_eq!(game.step(Side::Defender, posted), Err(GameError::WrongHash));
    }
    game.game.tick(BLOCKS);
    assert_eq!(
        game.game.outcome(),
        Some(ended(Side::Challenger, Reason::TimeOut))
    );
}

#[test]
fn a_leaf_that_the_claim_fixes_cannot_be_another() {
    let mut truth = Work::new(Toy::new(1, 2, 1, 4, 2), &mut Dice::seeded(2));
    let mut wrong = truth.clone();
    wrong.forge_leaf(truth.toy.last_leaf(), H256::repeat_byte(7));
    let mut game = Match::new(&wrong);
    let outcome = game.play_faithfully(&mut wrong, &mut truth, Side::Challenger);
    assert_eq!(outcome, ended(Side::Challenger, Reason::Judged));
    assert_eq!(game.at(), None);
}

#[test]
fn an_output_of_another_length_differs_where_one_of_them_ends() {
    let truth = Work::new(Toy::new(4, 1, 1, 276, 2), &mut Dice::seeded(3));
    let cells = truth.cells();
    let last = *cells.last().unwrap();
    for missing in [1, 2, 1024, 4000] {
        let mut shorter = truth.clone();
        shorter.cut_output(missing);
        let mut game = Match::new(&truth);
        let outcome = game.play_faithfully(&mut truth.clone(), &mut shorter, Side::Defender);
        assert_eq!(outcome, ended(Side::Defender, Reason::Judged));
        let bytes = truth.toy.output_bytes() - missing;
        assert_eq!(game.at(), Some((last.0, 0, 0, bytes / 4)));
    }
}
