//! Whatever bytes come in, nothing panics.

use super::*;
use alloc::vec::Vec;
use codec::DecodeAll;
use proptest::collection::vec;
use sp_core::H256;
use std::sync::LazyLock;

/// A shape, a referee and a trace that answer anything.
#[derive(Clone, Copy, Debug)]
struct Wild {
    leaves: u32,
    leaf: Option<LeafShape>,
    steps: Option<u32>,
    rows: Option<RowsShape>,
    bytes: Option<u32>,
    judgement: Judgement,
}

impl Shape for Wild {
    fn leaves(&self) -> u32 {
        self.leaves
    }

    fn leaf(&self, _: u32) -> Option<LeafShape> {
        self.leaf
    }

    fn steps(&self, _: u32, _: u32) -> Option<u32> {
        self.steps
    }

    fn rows(&self, _: u32, _: u32, _: u32) -> Option<RowsShape> {
        self.rows
    }
}

impl Referee for Wild {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        self.bytes
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        self.judgement
    }
}

/// As long as asked for, and not for ever.
struct Short(Vec<H256>);

impl Trace for Short {
    type Error = u32;

    fn leaves(&mut self) -> Result<&[H256], u32> {
        Ok(&self.0)
    }

    fn steps(&mut self, _: u32) -> Result<Vec<H256>, u32> {
        Ok(self.0.clone())
    }

    fn rows(&mut self, _: u32, step: u32) -> Result<Vec<H256>, u32> {
        if step % 5 == 4 {
            return Err(step);
        }
        Ok(self.0.clone())
    }

    fn row(&mut self, _: u32, _: u32, _: u32) -> Result<Vec<u8>, u32> {
        Ok(vec![0; 40 * self.0.len()])
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, u32> {
        Ok(vec![1; cell.leaf as usize % 20_000])
    }
}

fn number() -> impl Strategy<Value = u32> {
    let edges = [
        0,
        1,
        2,
        4,
        16,
        17,
        256,
        1023,
        1024,
        1025,
        4096,
        1 << 16,
        1 << 20,
        u32::MAX - 3,
        u32::MAX,
    ];
    prop_oneof![prop::sample::select(edges.to_vec()), 0u32..64, any::<u32>()]
}

fn rows() -> impl Strategy<Value = RowsShape> {
    let quantized = prop::option::of(number());
    (number(), number(), quantized).prop_map(|(rows, row_bytes, quantized)| RowsShape {
        rows,
        row_bytes,
        quantized,
    })
}

fn leaf() -> impl Strategy<Value = LeafShape> {
    let length = prop_oneof![
        number().prop_map(Length::Known),
        (number(), number()).prop_map(|(word, most)| Length::Word { word, most }),
    ];
    let kinds = [LeafKind::Fixed(H256::zero()), LeafKind::Computed];
    (length, prop::sample::select(kinds.to_vec())).prop_map(|(length, kind)| LeafShape { length, kind })
}

fn wild() -> impl Strategy<Value = Wild> {
    use prop::option::weighted;
    let judgements = [Judgement::Holds, Judgement::Refuted, Judgement::Unproven];
    (
        number(),
        weighted(0.9, leaf()),
        weighted(0.9, number()),
        weighted(0.9, rows()),
        weighted(0.9, number()),
        prop::sample::select(judgements.to_vec()),
    )
        .prop_map(|(leaves, leaf, steps, rows, bytes, judgement)| Wild {
            leaves,
            leaf,
            steps,
            rows,
            bytes,
            judgement,
        })
}

/// Does everything to a game that can be done.
fn poke(mut game: Game, moves: &[Move], wild: &Wild, dice: &mut Dice) {
    let mut trace = Short((0..dice.below(40)).map(|_| dice.hash()).collect());
    let _ = game.clone().decided(Side::Defender);
    game.leaves_in_dispute();
    for played in moves {
        let side = if dice.below(2) == 0 {
            Side::Defender
        } else {
            Side::Challenger
        };
        let side = if dice.below(4) == 0 {
            side
        } else {
            game.to_move().unwrap_or(side)
        };
        let _ = game.step(side, played.clone(), wild, wild);
        let own = defend(&game, wild, &mut trace).or_else(|_| challenge(&game, &mut trace));
        if let (Ok(own), Some(side)) = (own, game.to_move()) {
            let _ = game.step(side, own, wild, wild);
        }
        assert_eq!(Game::decode(&mut &game.encode()[..]), Ok(game.clone()));
        game.tick(dice.below(3));
    }
}

/// Games and moves of one that is played, as bytes.
static SAMPLES: LazyLock<[Vec<Vec<u8>>; 2]> = LazyLock::new(samples);

fn samples() -> [Vec<Vec<u8>>; 2] {
    let truth = Work::new(Toy::new(3, 6, 6, 8, 3), &mut Dice::seeded(5));
    let mut wrong = truth.altered((9, 17, 0, 1), 0, 1, true);
    let mut challenger = truth.clone();
    let mut game = Match::new(&wrong);
    let (mut games, mut moves) = (Vec::new(), Vec::new());
    while let Some(side) = game.game.to_move() {
        let work = match side {
            Side::Defender => &mut wrong,
            Side::Challenger => &mut challenger,
        };
        let played = game.faithful(side, work).unwrap();
        games.push(game.game.encode());
        moves.push(played.encode());
        game.step(side, played).unwrap();
    }
    [games, moves]
}

fn spoilt(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..dice.below(6) {
        let place = dice.below(bytes.len() as u32) as usize;
        bytes[place] = [0, 1, 0xff, dice.number() as u8][dice.below(4) as usize];
    }
    bytes
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(512)))]

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..1200), wild in wild(), seed in any::<u64>()) {
        let mut dice = Dice::seeded(seed);
        let moves: Vec<Move> = (0u8..7)
            .filter_map(|kind| Move::decode(&mut &[&[kind], &bytes[..]].concat()[..]).ok())
            .collect();
        for kind in 0u8..8 {
            if let Ok(game) = Game::decode(&mut &[&[kind], &bytes[..]].concat()[..]) {
                poke(game, &moves, &wild, &mut dice);
            }
        }
        if let Ok(game) = Game::new(dice.hash(), &wild, Clocks::equal(9)) {
            poke(game, &moves, &wild, &mut dice);
        }
    }

    #[test]
    fn spoilt_bytes_are_played_or_refused(wild in wild(), seed in any::<u64>()) {
        let mut dice = Dice::seeded(seed);
        let [games, moves] = &*SAMPLES;
        let moves: Vec<Move> = moves
            .iter()
            .filter_map(|played| Move::decode_all(&mut &spoilt(played, &mut dice)[..]).ok())
            .collect();
        for game in games {
            if let Ok(game) = Game::decode_all(&mut &spoilt(game, &mut dice)[..]) {
                poke(game, &moves, &wild, &mut dice);
            }
        }
    }

    #[test]
    fn a_room_is_never_more_than_there_is(wild in wild(), at in any::<[u32; 3]>()) {
        let room = opening_room(&wild, at[0], at[1], at[2]);
        prop_assert!(room.is_none_or(|room| room <= OPENING_BYTES_MAX));
    }

    #[test]
    fn cells_divide_a_row_without_gaps(shape in rows(), small in 1u32..3000, quarter in 0u32..800) {
        let quantized = shape.quantized.map(|_| 4 * quarter.min(small / 4));
        let row = RowsShape { row_bytes: small, quantized, ..shape };
        let mut next = 0;
        for cell in 0..row.cells() {
            let bytes = row.bytes_of(cell).unwrap();
            prop_assert_eq!(bytes.start, next);
            prop_assert!(bytes.clone().all(|byte| row.cell_at(byte) == Some(cell)));
            // No cell is in two segments.
            prop_assert_eq!(bytes.start / 1024, (bytes.end - 1) / 1024);
            next = bytes.end;
        }
        prop_assert_eq!(next, small);
        prop_assert_eq!((row.bytes_of(row.cells()), row.cell_at(small)), (None, None));
        let segments: u32 = (0..row.segments()).map(|segment| row.segment_bytes(segment)).sum();
        prop_assert_eq!((segments, row.segment_bytes(row.segments())), (small, 0));
    }

    #[test]
    fn rows_of_any_shape_have_only_cells_that_are_there(row in rows(), at in number()) {
        prop_assert!(row.cell_at(at).is_none_or(|_| at < row.row_bytes));
        prop_assert!(row.bytes_of(at).is_none_or(|bytes| bytes.start < bytes.end && bytes.end <= row.row_bytes));
        prop_assert!(row.cells() <= row.row_bytes);
        prop_assert!(row.segment_bytes(at) <= 1024);
        prop_assert!(!row.is_playable() || row.segments() <= SEGMENTS_MAX && row.rows <= ROWS_MAX);
    }
}
