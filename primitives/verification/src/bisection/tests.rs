#![allow(clippy::unwrap_used)]

mod play_off;
mod trace;

use self::trace::{covers, Dice, Forger, Judge, Trace};
use super::nodes::{parent, posts, Span};
use super::*;
use alloc::vec::Vec;
use codec::{Decode, Encode, MaxEncodedLen};
use proptest::{collection::vec, prelude::*};
use sp_core::{bounded::BoundedVec, H256};

const BLOCKS: u32 = 40;

/// What a dishonest side does next: anything.
fn anything(side: Side, game: &Game, faithful: Option<Move>, dice: &mut Dice) -> Move {
    let random = |dice: &mut Dice| {
        Move::Post(
            (0..=dice.below(15))
                .map(|_| dice.hash())
                .collect::<Vec<_>>()
                .try_into()
                .unwrap(),
        )
    };
    match (side, dice.below(12)) {
        (_, 0) => Move::Name(dice.below(256) as u8),
        (_, 1) => Move::Open(
            vec![dice.next() as u8; dice.below(64) as usize]
                .try_into()
                .unwrap(),
        ),
        (_, 2) => random(dice),
        (_, 3) if dice.below(4) == 0 => Move::Concede,
        // The right children in another order, one left out, one altered.
        (Side::Defender, roll @ 4..=6) => match faithful {
            Some(Move::Post(children)) => {
                let mut children = children.into_inner();
                let place = dice.below(children.len() as u32) as usize;
                match roll {
                    4 => children.reverse(),
                    5 => {
                        children.remove(place);
                    }
                    _ => children[place] = dice.hash(),
                }
                Move::Post(children.try_into().unwrap())
            }
            _ => random(dice),
        },
        (Side::Challenger, 4..=7) => match game.state() {
            State::Naming { children } => Move::Name(dice.below(children.len() as u32) as u8),
            _ => Move::Name(0),
        },
        _ => faithful.unwrap_or(Move::Name(0)),
    }
}

/// A game in which one side plays by its trace at once, and the other does anything, taking a block for each try.
struct Match<'a> {
    game: Game,
    judge: Judge<'a>,
    bytes: usize,
    blocks: u32,
}

impl<'a> Match<'a> {
    fn new(root: H256, shape: &'a Trace) -> Self {
        let game = Game::new(root, shape, Clocks::equal(BLOCKS)).unwrap();
        Self {
            game,
            judge: Judge(shape),
            bytes: 0,
            blocks: 0,
        }
    }

    fn step(&mut self, side: Side, played: Move) -> bool {
        let before = self.game.clone();
        let size = played.encoded_size();
        match self.game.step(side, played, self.judge.0, &self.judge) {
            Ok(_) => {
                assert_eq!(
                    Game::decode(&mut &self.game.encode()[..]).as_ref(),
                    Ok(&self.game)
                );
                self.bytes += size;
                true
            }
            Err(_) => {
                assert_eq!(self.game, before, "a refused move changes nothing");
                false
            }
        }
    }

    /// Plays to the end, which time alone brings, and returns it.
    fn play(
        &mut self,
        honest: Side,
        honest_move: impl Fn(&Game) -> Move,
        faithful: impl Fn(&Game) -> Option<Move>,
        dice: &mut Dice,
    ) -> Outcome {
        let dishonest = honest.other();
        let gives_up_after = dice.below(BLOCKS * 2);
        loop {
            if let Some(outcome) = self.game.outcome() {
                return outcome;
            }
            if self.game.to_move() == Some(honest) {
                // Out of turn first: refused, unless it concedes.
                if dice.below(4) == 0 {
                    let played = anything(dishonest, &self.game, None, dice);
                    self.step(dishonest, played);
                } else {
                    let played = honest_move(&self.game);
                    assert!(
                        self.step(honest, played),
                        "an honest move is never refused: {:?}",
                        self.game.state()
                    );
                }
                continue;
            }
            if self.blocks < gives_up_after {
                let played = anything(dishonest, &self.game, faithful(&self.game), dice);
                self.step(dishonest, played);
            }
            self.game.tick(1);
            self.blocks += 1;
            assert!(self.blocks <= 2 * BLOCKS);
        }
    }

    /// Plays to the end with both sides by their traces.
    fn play_faithfully(&mut self, defender: &Trace, challenger: &Trace) -> Outcome {
        loop {
            let (side, played) = match self.game.to_move() {
                None => return self.game.outcome().unwrap(),
                Some(Side::Defender) => (Side::Defender, defender.defend(&self.game)),
                Some(Side::Challenger) => (Side::Challenger, challenger.challenge(&self.game)),
            };
            assert!(self.step(side, played));
        }
    }
}

fn shapes() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        vec(1u32..=16, 3),
        vec(1u32..=64, 2),
        vec(1u32..=4096, 1),
        vec(1u32..=5, 4)
    ]
}

fn judged(winner: Side) -> Outcome {
    Outcome {
        winner,
        reason: Reason::Judged,
    }
}

#[test]
fn every_single_bit_fault_at_every_cell_is_found_and_lost_by_whoever_made_it() {
    let truth = Trace::new(&[3, 3, 4], &mut Dice(4));
    let cells = truth.cells();
    assert!(cells.len() >= 12, "{}", cells.len());
    for (place, path) in cells.iter().enumerate() {
        for bit in 0..256 {
            let mut mask = H256::zero();
            mask.0[bit / 8] = 1 << (bit % 8);
            let wrong = truth.altered(place, mask, false);

            let mut game = Match::new(wrong.root(), &truth);
            assert_eq!(game.play_faithfully(&wrong, &truth), judged(Side::Challenger));
            assert_eq!(game.game.path(), path);

            let mut game = Match::new(truth.root(), &truth);
            assert_eq!(game.play_faithfully(&truth, &wrong), judged(Side::Defender));
            assert_eq!(game.game.path(), path);
        }
    }
}

/// A path of postings from the root to a cell where every node has all children and the last one is named.
fn longest_game(levels: &[u32]) -> (Vec<Move>, H256) {
    let mut dice = Dice(1);
    let mut digest = dice.hash();
    let mut moves = vec![Move::Open(
        vec![0; OPENING_BYTES_MAX as usize].try_into().unwrap(),
    )];
    for leaves in levels.iter().rev() {
        for step in 0..posts(*leaves) {
            let mut children: Vec<H256> = (1..CHILDREN_MAX).map(|_| dice.hash()).collect();
            children.push(digest);
            digest = parent(&children, step == 0).unwrap();
            moves.push(Move::Name(CHILDREN_MAX as u8 - 1));
            moves.push(Move::Post(children.try_into().unwrap()));
        }
    }
    moves.reverse();
    (moves, digest)
}

struct Holds;

impl Referee for Holds {
    fn judge(&self, _: &Cell, _: &[Peak], _: &[u8]) -> Judgement {
        Judgement::Holds
    }
}

#[test]
fn the_longest_game_takes_16_kib_and_no_byte_more() {
    let levels = [1 << 16, 1 << 16, 1 << 16];
    let shape = Uniform(levels.to_vec().try_into().unwrap());
    let (moves, root) = longest_game(&levels);
    let mut game = Game::new(root, &shape, Clocks::equal(1)).unwrap();
    let mut bytes = 0;
    for played in moves {
        bytes += played.encoded_size();
        game.step(game.to_move().unwrap(), played, &shape, &Holds)
            .unwrap();
    }
    assert_eq!(game.outcome(), Some(judged(Side::Defender)));
    assert_eq!(game.path(), [65_535; 3]);
    assert_eq!(game.agreed().len(), AGREED_MAX as usize);
    assert_eq!(bytes, BYTES_MAX as usize);
    assert_eq!(OPENING_BYTES_MAX, 10_189);
}

#[test]
fn a_game_in_storage_stays_below_3_kib() {
    assert!(Game::max_encoded_len() < 3 * 1024, "{}", Game::max_encoded_len());
}

#[test]
fn shapes_that_no_game_gets_through_are_refused_at_once() {
    let new = |levels: &[u32]| {
        let shape = Uniform(levels.to_vec().try_into().unwrap());
        Game::new(H256::zero(), &shape, Clocks::equal(1)).map(|_| ())
    };
    assert_eq!(new(&[1 << 16, 1 << 16, 1 << 16]), Ok(()));
    assert_eq!(new(&[1 << 16, 1 << 16, (1 << 16) + 1]), Err(GameError::Shape));
    assert_eq!(new(&[u32::MAX, 1 << 16]), Ok(()));
    assert_eq!(new(&[u32::MAX, u32::MAX]), Err(GameError::Shape));
    assert_eq!(new(&[16, 0]), Err(GameError::Shape));
    // The root is the cell: nothing to post.
    assert_eq!(new(&[]), Ok(()));
}

#[test]
fn what_is_wrong_with_a_move_is_said() {
    let mut traces = (0..).map(|seed| Trace::new(&[40], &mut Dice(seed)));
    let truth = traces.find(|trace| trace.leaves(&[]) == 40).unwrap();
    let mut game = Game::new(truth.root(), &truth, Clocks::equal(1)).unwrap();
    let judge = Judge(&truth);
    let refused = |game: &mut Game, side, played| game.step(side, played, &truth, &judge).unwrap_err();
    let post = |children: Vec<H256>| Move::Post(children.try_into().unwrap());
    // 40 leaves are two nodes of 16 and one of 8.
    let right = truth.children(&game);
    assert_eq!(right.len(), 3);

    assert_eq!(
        refused(&mut game, Side::Defender, post(right[..2].to_vec())),
        GameError::WrongCount
    );
    assert_eq!(
        refused(&mut game, Side::Defender, post(vec![right[0]; 3])),
        GameError::WrongHash
    );
    assert_eq!(
        refused(&mut game, Side::Challenger, post(right.clone())),
        GameError::NotNow
    );
    assert_eq!(
        refused(&mut game, Side::Defender, Move::Name(0)),
        GameError::NotNow
    );
    game.step(Side::Defender, post(right), &truth, &judge).unwrap();
    assert_eq!(
        refused(&mut game, Side::Challenger, Move::Name(3)),
        GameError::NoSuchChild
    );
    game.step(Side::Challenger, Move::Name(2), &truth, &judge)
        .unwrap();
    assert_eq!(game.leaves_in_dispute(), 32..40);
    game.step(Side::Defender, truth.defend(&game), &truth, &judge)
        .unwrap();
    game.step(Side::Challenger, Move::Name(7), &truth, &judge)
        .unwrap();
    assert_eq!(
        refused(&mut game, Side::Defender, Move::Open(BoundedVec::new())),
        GameError::Unproven
    );
    assert_eq!(
        refused(&mut game, Side::Defender, Move::Name(0)),
        GameError::NotNow
    );
    game.step(Side::Defender, truth.defend(&game), &truth, &judge)
        .unwrap();
    assert_eq!(
        refused(&mut game, Side::Challenger, Move::Concede),
        GameError::Over
    );
    assert_eq!(game.outcome(), Some(judged(Side::Defender)));
}

#[test]
fn an_only_child_is_taken_without_asking() {
    let truth = Trace::new(&[1, 1, 1], &mut Dice(3));
    let mut game = Match::new(truth.root(), &truth);
    for _ in 0..3 {
        assert_eq!(game.game.to_move(), Some(Side::Defender));
        let played = truth.defend(&game.game);
        assert!(game.step(Side::Defender, played));
    }
    assert_eq!(game.game.state(), &State::Opening);
}

#[test]
fn who_concedes_loses_even_out_of_turn() {
    let truth = Trace::new(&[16], &mut Dice(3));
    for side in [Side::Defender, Side::Challenger] {
        let mut game = Match::new(truth.root(), &truth);
        assert!(game.step(side, Move::Concede));
        let outcome = Outcome {
            winner: side.other(),
            reason: Reason::Conceded,
        };
        assert_eq!(game.game.outcome(), Some(outcome));
    }
}

#[test]
fn clocks_run_only_in_the_own_turn_and_while_blocks_finalise() {
    let truth = Trace::new(&[16], &mut Dice(5));
    let clocks = Clocks {
        defender: 10,
        challenger: 5,
    };
    let mut game = Game::new(truth.root(), &truth, clocks).unwrap();
    game.tick(0);
    game.tick(9);
    assert_eq!(
        game.clocks(),
        Clocks {
            defender: 1,
            challenger: 5
        }
    );
    game.step(Side::Defender, truth.defend(&game), &truth, &Holds)
        .unwrap();
    game.tick(4);
    assert_eq!(
        game.clocks(),
        Clocks {
            defender: 1,
            challenger: 1
        }
    );
    game.tick(u32::MAX);
    let outcome = Outcome {
        winner: Side::Defender,
        reason: Reason::TimeOut,
    };
    assert_eq!(game.outcome(), Some(outcome));
    game.tick(1);
    assert_eq!(game.outcome(), Some(outcome));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn an_honest_challenger_wins_whatever_the_defender_does(
        levels in shapes(), seed in any::<u64>(), cell in any::<prop::sample::Index>(), goes_on in any::<bool>(),
    ) {
        let mut dice = Dice(seed);
        let truth = Trace::new(&levels, &mut dice);
        let cells = truth.cells();
        let cell = cell.index(cells.len());
        let wrong = truth.altered(cell, dice.hash(), goes_on);
        let mut game = Match::new(wrong.root(), &truth);
        let outcome = game.play(
            Side::Challenger, |game| truth.challenge(game), |game| Some(wrong.defend(game)), &mut dice,
        );
        prop_assert_eq!(outcome.winner, Side::Challenger);
        prop_assert!(game.bytes <= BYTES_MAX as usize);
        if outcome.reason == Reason::Judged {
            prop_assert_eq!(game.game.path(), cells[cell].as_slice());
        }
    }

    #[test]
    fn an_honest_challenger_wins_against_trees_that_are_none(
        levels in shapes(), seed in any::<u64>(), forgeries in 1u32..4, cell in any::<prop::sample::Index>(),
    ) {
        let mut dice = Dice(seed);
        let truth = Trace::new(&levels, &mut dice);
        let cells = truth.cells();
        let wrong = truth.altered(cell.index(cells.len()), dice.hash(), false);
        let forger = Forger::new(wrong, forgeries, &mut dice);
        let mut game = Match::new(forger.root(), &truth);
        let outcome = game.play(
            Side::Challenger, |game| truth.challenge(game), |game| Some(forger.defend(game)), &mut dice,
        );
        prop_assert_eq!(outcome.winner, Side::Challenger);
    }

    #[test]
    fn an_honest_defender_wins_whatever_the_challenger_does(
        levels in shapes(), seed in any::<u64>(), cell in any::<prop::sample::Index>(), goes_on in any::<bool>(),
    ) {
        let mut dice = Dice(seed);
        let truth = Trace::new(&levels, &mut dice);
        let wrong = truth.altered(cell.index(truth.cells().len()), dice.hash(), goes_on);
        let mut game = Match::new(truth.root(), &truth);
        let outcome = game.play(
            Side::Defender,
            |game| truth.defend(game),
            |game| match game.state() {
                State::Naming { .. } => Some(wrong.challenge(game)),
                _ => None,
            },
            &mut dice,
        );
        prop_assert_eq!(outcome.winner, Side::Defender);
        prop_assert!(game.bytes <= BYTES_MAX as usize);
    }

    #[test]
    fn exactly_what_comes_before_the_cell_is_agreed(
        levels in shapes(), seed in any::<u64>(), cell in any::<prop::sample::Index>(),
    ) {
        let truth = Trace::new(&levels, &mut Dice(seed));
        let cells = truth.cells();
        let cell = cell.index(cells.len());
        let wrong = truth.altered(cell, H256::repeat_byte(1), false);
        let mut game = Match::new(wrong.root(), &truth);
        game.play_faithfully(&wrong, &truth);
        for (place, other) in cells.iter().enumerate() {
            let peaks = game.game.agreed().iter().filter(|peak| covers(peak, &cells[cell], other)).count();
            prop_assert_eq!(peaks, usize::from(place < cell));
        }
    }

    #[test]
    fn a_posting_hashes_to_the_merkle_root(leaves in 1u32..5_000, seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let leaves: Vec<H256> = (0..leaves).map(|_| dice.hash()).collect();
        let span = Span { first: 0, leaves: leaves.len() as u32 };
        let posted = children(&leaves);
        prop_assert_eq!(posted.len() as u32, span.children());
        prop_assert_eq!(parent(&posted, span.is_lowest()), Some(crate::merkle_root(leaves.iter().copied())));
    }

    #[test]
    fn children_divide_a_node_without_gaps(leaves in 1u32..=u32::MAX) {
        let span = Span { first: 0, leaves };
        prop_assert!(span.children() <= CHILDREN_MAX);
        let mut next = 0u64;
        for index in 0..span.children() {
            let child = span.child(index);
            prop_assert_eq!(u64::from(child.first), next);
            prop_assert!(child.leaves > 0);
            // One posting fewer is left to come to a leaf.
            prop_assert!(span.is_lowest() || posts(child.leaves) < posts(leaves));
            next += u64::from(child.leaves);
        }
        prop_assert_eq!(next, u64::from(leaves));
    }

    #[test]
    fn a_peak_has_its_leaves_and_no_others(seed in any::<u64>(), height in 0u32..4, first in 0u32..1000, place in 0u32..8) {
        let mut dice = Dice(seed);
        let leaves: Vec<H256> = (0..1 << height).map(|_| dice.hash()).collect();
        let place = place % (1 << height);
        let mut nodes: Vec<H256> = leaves.iter().map(crate::merkle::leaf_hash).collect();
        let (mut siblings, mut at) = (Vec::new(), place as usize);
        while nodes.len() > 1 {
            siblings.push(nodes[at ^ 1]);
            nodes = nodes.chunks(2).map(|pair| crate::merkle::node_hash(&pair[0], &pair[1])).collect();
            at /= 2;
        }
        let peak = Peak { level: 0, first, leaves: 1 << height, digest: nodes[0] };
        let leaf = leaves[place as usize];
        for index in 0..1020 {
            prop_assert_eq!(peak.has_leaf(index, &leaf, &siblings), index == first + place);
        }
        prop_assert!(!peak.has_leaf(first + place, &dice.hash(), &siblings));
        siblings.push(dice.hash());
        prop_assert!(!peak.has_leaf(first + place, &leaf, &siblings));
    }
}
