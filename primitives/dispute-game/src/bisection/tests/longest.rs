//! How long games and their states are at most.

use super::super::cut::{parent, posts};
use super::*;
use alloc::vec::Vec;
use codec::MaxEncodedLen;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_proofs::{Proof, SEGMENT_BYTES, SegmentOpening};
use surety_proofs::{merkle_root, node_hash};

/// As large as can be: every tree is full. With the digest of leaf 0.
struct Largest(H256);

impl Shape for Largest {
    fn leaves(&self) -> u32 {
        LEAVES_MAX
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        Some(match leaf {
            0 => LeafShape {
                length: Length::Known(0),
                kind: LeafKind::Fixed(self.0),
            },
            _ => LeafShape {
                length: Length::Word {
                    word: 1,
                    most: u32::MAX,
                },
                kind: LeafKind::Computed,
            },
        })
    }

    fn steps(&self, _: u32, _: u32) -> Option<u32> {
        Some(STEPS_MAX)
    }

    fn rows(&self, _: u32, _: u32, _: u32) -> Option<RowsShape> {
        Some(RowsShape {
            rows: ROWS_MAX,
            row_bytes: SEGMENTS_MAX * SEGMENT_BYTES,
            quantized: None,
        })
    }
}

impl Referee for Largest {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        opening_room(self, 1, 0, 0)
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Holds
    }
}

fn random_proof(depth: u32, dice: &mut Dice) -> Proof {
    let siblings: Vec<H256> = (0..depth).map(|_| dice.hash()).collect();
    Proof(siblings.try_into().unwrap())
}

/// Postings from the root of a full tree to its last leaf, which has this digest, and their root.
fn way(leaves: u32, mut digest: H256, dice: &mut Dice) -> (Vec<Vec<H256>>, H256) {
    let mut postings = Vec::new();
    for step in 0..posts(leaves) {
        let mut children: Vec<H256> = (1..CHILDREN_MAX).map(|_| dice.hash()).collect();
        children.push(digest);
        digest = parent(&children, step == 0).unwrap();
        postings.push(children);
    }
    postings.reverse();
    (postings, digest)
}

/// The proof of the last leaf of a tree whose way this is.
fn last_proof(postings: &[Vec<H256>]) -> Proof {
    let mut siblings = Vec::new();
    for (above, children) in postings.iter().rev().enumerate() {
        let mut level: Vec<H256> = match above {
            0 => children.iter().map(surety_proofs::leaf_hash).collect(),
            _ => children.clone(),
        };
        while level.len() > 1 {
            siblings.push(level[level.len() - 2]);
            level = level
                .chunks(2)
                .map(|pair| node_hash(&pair[0], &pair[1]))
                .collect();
        }
    }
    Proof(siblings.try_into().unwrap())
}

/// The length in a leaf 0 that is as large as can be, and the leaf.
fn length(dice: &mut Dice) -> (SegmentOpening, H256) {
    let segment = SegmentOpening {
        segment: 0,
        bytes: vec![7; SEGMENT_BYTES as usize].try_into().unwrap(),
        proof: random_proof(16, dice),
    };
    let digest = segment.row_digest(SEGMENTS_MAX * SEGMENT_BYTES).unwrap();
    (segment, digest)
}

/// A game in which every node has all children, every proof all siblings, and the last child is named.
fn longest_game(dice: &mut Dice) -> (Vec<Move>, H256, Largest) {
    let bytes = vec![1; SEGMENT_BYTES as usize];
    let (segments, row) = way(SEGMENTS_MAX, H256(blake2_256(&bytes)), dice);
    let (rows, leaf) = way(ROWS_MAX, row, dice);
    let (steps, root) = way(STEPS_MAX, leaf, dice);
    let (length, given) = length(dice);
    let (leaves, trace) = way(LEAVES_MAX, leaf, dice);
    let steps_opening = StepsOpening {
        root,
        proof: last_proof(&steps),
    };
    let entry = Entry {
        length: Some(length),
        steps: Some(steps_opening),
    };
    let down = |postings: Vec<Vec<H256>>| {
        postings
            .into_iter()
            .flat_map(|children| [Move::Post(children.try_into().unwrap()), Move::Name(15)])
            .collect::<Vec<_>>()
    };
    let largest = Largest(given);
    let room = opening_room(&largest, 1, 0, 0).unwrap();
    let moves = [
        down(leaves),
        vec![Move::Enter(entry)],
        down([steps, rows, segments].concat()),
        vec![Move::Show(bytes.try_into().unwrap()), Move::Pick(1023)],
        vec![Move::Open(vec![0; room as usize].try_into().unwrap())],
    ];
    (moves.concat(), trace, largest)
}

#[test]
fn the_longest_game_takes_16_kib_and_no_byte_more() {
    let (moves, root, largest) = longest_game(&mut Dice::seeded(1));
    let mut game = Game::new(root, &largest, Clocks::equal(1)).unwrap();
    let mut bytes = 0;
    let posted = moves
        .iter()
        .filter(|played| matches!(played, Move::Post(_)))
        .count();
    for played in moves {
        bytes += played.encoded_size();
        let side = game.to_move().unwrap();
        if let Move::Open(opening) = &played {
            let longer = [opening.as_slice(), &[0]].concat().try_into().unwrap();
            let refused = game.step(side, Move::Open(longer), &largest, &largest);
            assert_eq!(refused, Err(GameError::TooLong));
        }
        game.step(side, played, &largest, &largest).unwrap();
    }
    assert_eq!(game.outcome(), Some(ended(Side::Defender, Reason::Judged)));
    let place = Place {
        level: Level::Segments,
        leaf: LEAVES_MAX - 1,
        length: 0x0707_0707,
        step: STEPS_MAX - 1,
        row: ROWS_MAX - 1,
        segment: SEGMENTS_MAX - 1,
    };
    assert_eq!(*game.place(), place);
    assert_eq!(posted, POSTS_MAX as usize);
    assert_eq!(bytes, BYTES_MAX as usize);
    assert_eq!(opening_room(&largest, 1, 0, 0), Some(5_132));
}

#[test]
fn a_game_in_storage_stays_below_1_5_kib() {
    assert!(Game::max_encoded_len() < 1536, "{}", Game::max_encoded_len());
}

#[test]
fn a_small_model_has_room_for_long_openings() {
    // The shape of a small encoder: 64 items, 6 strides, some 50 steps, rows of 3 KiB.
    let toy = Toy::new(64, 6, 16, 768, 512);
    assert_eq!(opening_room(&toy, 7, 512, 3), Some(10_888));
    assert_eq!(opening_room(&toy, 0, 0, 0), Some(12 * 1024));
}

#[test]
fn traces_that_no_game_gets_through_are_refused_at_once() {
    struct Leaves(u32);
    impl Shape for Leaves {
        fn leaves(&self) -> u32 {
            self.0
        }
        fn leaf(&self, _: u32) -> Option<LeafShape> {
            None
        }
        fn steps(&self, _: u32, _: u32) -> Option<u32> {
            None
        }
        fn rows(&self, _: u32, _: u32, _: u32) -> Option<RowsShape> {
            None
        }
    }
    let new = |leaves| Game::new(H256::zero(), &Leaves(leaves), Clocks::equal(1)).map(|_| ());
    assert_eq!((new(1), new(LEAVES_MAX)), (Ok(()), Ok(())));
    assert_eq!(
        (new(0), new(LEAVES_MAX + 1)),
        (Err(GameError::Shape), Err(GameError::Shape))
    );
    // And what is below a leaf, before anybody goes there.
    let root = merkle_root([H256::zero()].into_iter());
    let mut game = Game::new(root, &Leaves(1), Clocks::equal(1)).unwrap();
    let posted = Move::Post(vec![H256::zero()].try_into().unwrap());
    let error = game
        .step(Side::Defender, posted, &Leaves(1), &Largest(H256::zero()))
        .unwrap_err();
    assert_eq!(error, GameError::Shape);
}
