//! Every piece of a trace, and of games about it.

use std::ops::ControlFlow;

use surety_dispute_game::bisection::{
    Cell, CellValue, Clocks, Game, GameError, Judgement, LeafKind, Length, PlayError, Referee, Roots,
    RowsShape, Shape, Side, State, Trace, challenge, defend,
};
use surety_engine::{EngineError, Event, exact::OwnTrace};
use surety_model_trace::{CellReferee, Layout};
use surety_proofs::{merkle_root, row_digest};
use surety_types::ContentHash;

pub fn quiet() -> Box<impl FnMut(Event) -> ControlFlow<()> + Send> {
    Box::new(|_| ControlFlow::Continue(()))
}

/// How long a leaf is.
pub fn length(layout: &Layout, trace: &mut OwnTrace, leaf: u32) -> u32 {
    match layout.leaf(leaf).unwrap().length {
        Length::Known(length) => length,
        Length::Word { word, most } => {
            let bytes = trace.row(0, 0, 0).unwrap();
            let at = 4 * word as usize;
            Length::read(bytes[at..at + 4].try_into().unwrap(), most)
        }
    }
}

/// Steps of a leaf, one where it is fixed.
pub fn steps(layout: &Layout, leaf: u32, length: u32) -> u32 {
    match layout.leaf(leaf).unwrap().kind {
        LeafKind::Computed => layout.steps(leaf, length).unwrap(),
        LeafKind::Fixed(_) => 1,
    }
}

/// The leaves are those of the fast engine, and each is the last of its steps, which are computed by the
/// definition.
pub fn check_leaves(trace: &mut OwnTrace, root: ContentHash, leaves: &[ContentHash]) {
    let layout = trace.layout().clone();
    assert_eq!(merkle_root(leaves.iter().copied()), root);
    assert_eq!(trace.leaves().unwrap(), leaves);
    assert_eq!(leaves.len() as u32, layout.leaves());
    for (leaf, digest) in (0..).zip(leaves) {
        let length = length(&layout, trace, leaf);
        let steps = steps(&layout, leaf, length);
        let found = match layout.leaf(leaf).unwrap().kind {
            LeafKind::Computed => {
                let digests = trace.steps(leaf).unwrap();
                assert_eq!(digests.len() as u32, steps, "leaf {leaf}");
                *digests.last().unwrap()
            }
            LeafKind::Fixed(_) => row_digest(&trace.row(leaf, 0, 0).unwrap()),
        };
        assert_eq!(found, *digest, "leaf {leaf}");
        for step in 0..steps {
            check_rows(trace, &layout, (leaf, length, step));
        }
    }
}

fn check_rows(trace: &mut OwnTrace, layout: &Layout, (leaf, length, step): (u32, u32, u32)) {
    let shape = layout.rows(leaf, length, step).unwrap();
    let digests = trace.rows(leaf, step).unwrap();
    assert_eq!(digests.len() as u32, shape.rows, "{leaf} {step}");
    for (row, digest) in (0..).zip(digests) {
        let bytes = trace.row(leaf, step, row).unwrap();
        assert_eq!(
            (bytes.len() as u32, row_digest(&bytes)),
            (shape.row_bytes, digest)
        );
    }
}

/// What a side shows of a cell.
pub fn value(shape: &RowsShape, row: &[u8], cell: u32) -> CellValue {
    let at = shape.bytes_of(cell).unwrap();
    let bytes = &row[at.start as usize..at.end as usize];
    if shape.quantized.is_some_and(|values| cell < values) {
        CellValue::Byte(bytes[0])
    } else {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        CellValue::Word(word)
    }
}

/// How many of the cells that `wanted` chooses a referee has judged, all of them to hold; and how many are
/// too large for it.
pub fn check_cells(
    trace: &mut OwnTrace,
    weight_root: ContentHash,
    mut wanted: impl FnMut() -> bool,
) -> (u32, u32) {
    let layout = trace.layout().clone();
    let referee = CellReferee::new(&layout, weight_root);
    let root = merkle_root(trace.leaves().unwrap().iter().copied());
    let (mut judged, mut too_large) = (0, 0);
    for leaf in 0..layout.leaves() {
        let length = length(&layout, trace, leaf);
        let computed = matches!(layout.leaf(leaf).unwrap().kind, LeafKind::Computed);
        for step in 0..steps(&layout, leaf, length) {
            let shape = layout.rows(leaf, length, step).unwrap();
            for (row, cell) in (0..shape.rows).flat_map(|row| (0..shape.cells()).map(move |cell| (row, cell)))
            {
                if !wanted() {
                    continue;
                }
                let bytes = trace.row(leaf, step, row).unwrap();
                let value = value(&shape, &bytes, cell);
                let cell = Cell {
                    leaf,
                    length,
                    step,
                    row,
                    cell,
                    value,
                };
                let Some(most) = referee.opening_bytes(&cell) else {
                    too_large += 1;
                    continue;
                };
                let roots = Roots {
                    trace: root,
                    steps: computed.then(|| merkle_root(trace.steps(leaf).unwrap().into_iter())),
                };
                let opening = trace.open(&cell).unwrap();
                assert!(opening.len() <= most as usize, "{cell:?}");
                match referee.judge(&cell, &roots, &opening) {
                    Judgement::Holds => judged += 1,
                    other => panic!("{other:?}: {cell:?}"),
                }
            }
        }
    }
    (judged, too_large)
}

/// A trace with one row of one step, or of a fixed leaf, that is another.
pub struct Altered {
    pub inner: OwnTrace,
    pub leaf: u32,
    pub step: u32,
    pub row: u32,
    pub bytes: Vec<u8>,
    leaves: Vec<ContentHash>,
}

impl Altered {
    /// Of a leaf that is fixed, or the last step of one that is computed.
    pub fn new(mut inner: OwnTrace, leaf: u32, row: u32, alter: impl FnOnce(&mut Vec<u8>)) -> Self {
        let layout = inner.layout().clone();
        let length = length(&layout, &mut inner, leaf);
        let step = steps(&layout, leaf, length) - 1;
        let mut bytes = inner.row(leaf, step, row).unwrap();
        alter(&mut bytes);
        let mut leaves = inner.leaves().unwrap().to_vec();
        // Where the output is wrong there is no own leaf for it.
        leaves.resize(layout.leaves() as usize, layout.facts().output);
        let mut altered = Self {
            inner,
            leaf,
            step,
            row,
            bytes,
            leaves,
        };
        altered.leaves[leaf as usize] = match layout.leaf(leaf).unwrap().kind {
            LeafKind::Fixed(_) => row_digest(&altered.bytes),
            LeafKind::Computed => merkle_root(altered.rows(leaf, step).unwrap().into_iter()),
        };
        altered
    }

    pub fn root(&self) -> ContentHash {
        merkle_root(self.leaves.iter().copied())
    }
}

impl Trace for Altered {
    type Error = EngineError;

    fn leaves(&mut self) -> Result<&[ContentHash], EngineError> {
        Ok(&self.leaves)
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<ContentHash>, EngineError> {
        let mut steps = self.inner.steps(leaf)?;
        if leaf == self.leaf {
            steps[self.step as usize] = self.leaves[leaf as usize];
        }
        Ok(steps)
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<ContentHash>, EngineError> {
        let mut rows = self.inner.rows(leaf, step)?;
        if (leaf, step) == (self.leaf, self.step) {
            rows[self.row as usize] = row_digest(&self.bytes);
        }
        Ok(rows)
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, EngineError> {
        if (leaf, step, row) == (self.leaf, self.step, self.row) {
            Ok(self.bytes.clone())
        } else {
            self.inner.row(leaf, step, row)
        }
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, EngineError> {
        self.inner.open(cell)
    }
}

/// Plays until one side is done, the other at its end, or a cell needs a committee.
pub fn play(
    root: ContentHash,
    (defender, challenger): (&mut impl Trace<Error = EngineError>, &mut OwnTrace),
    weight_root: ContentHash,
) -> (State, Option<GameError>) {
    let layout = challenger.layout().clone();
    let referee = CellReferee::new(&layout, weight_root);
    let mut game = Game::new(root, &layout, Clocks::equal(100)).unwrap();
    while let Some(side) = game.to_move() {
        let played: Result<_, PlayError<EngineError>> = match side {
            Side::Defender => defend(&game, &layout, defender),
            Side::Challenger => challenge(&game, challenger),
        };
        if let Err(refused) = game.step(side, played.unwrap(), &layout, &referee).map(|_| ()) {
            return (game.state().clone(), Some(refused));
        }
    }
    (game.state().clone(), None)
}

/// The cell that a game has come to.
pub fn cell_of(state: &State) -> Cell {
    match state {
        State::Opening { cell } | State::Evidence { cell, .. } | State::NeedsCommittee { cell } => *cell,
        other => panic!("{other:?}"),
    }
}
