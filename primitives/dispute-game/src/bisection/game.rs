//! The state machine of one game.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use core::ops::Range;
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;

use super::cut::{Span, parent};
use super::shape::{playable_leaves, playable_steps};
use super::{
    Asked, Cell, CellValue, Children, Clocks, DuePart, Entry, GameError, Judgement, LeafKind, Length, Level,
    Missing, Move, Outcome, Place, Reason, Referee, Roots, Shape, Side, State, moves::shown_length,
    opening_room,
};
use surety_proofs::{PartOpening, SEGMENT_BYTES, Segment};

/// A dispute between two sides about the root of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Game {
    state: State,
    clocks: Clocks,
    roots: Roots,
    place: Place,
    /// Digest of the node in dispute; of a leaf or a segment, once it was reached.
    digest: H256,
    /// The node's leaves, in the tree that `place` says.
    span: Span,
    /// What the challenger had not got.
    asked: Option<Asked>,
}

impl Game {
    /// A game about `root`, which the defender committed to and the challenger says is wrong.
    ///
    /// # Errors
    /// [`GameError::Shape`] when the trace has no leaves, or too many.
    pub fn new(root: H256, shape: &impl Shape, clocks: Clocks) -> Result<Self, GameError> {
        let leaves = playable_leaves(shape).ok_or(GameError::Shape)?;
        let roots = Roots {
            trace: root,
            steps: None,
        };
        Ok(Self {
            state: State::Posting,
            clocks,
            roots,
            place: Place::default(),
            digest: root,
            span: Span { first: 0, leaves },
            asked: None,
        })
    }

    /// Where the game stands.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// How it ended, if it has.
    pub const fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Over(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whose turn it is. Nobody's when the game is over, and while others decide.
    pub const fn to_move(&self) -> Option<Side> {
        match self.state {
            State::Naming { .. } | State::Picking { .. } if self.owes_showing() => Some(Side::Defender),
            State::Posting
            | State::Entering
            | State::Showing
            | State::Opening { .. }
            | State::Evidence { .. } => Some(Side::Defender),
            State::Naming { .. } | State::Picking { .. } => Some(Side::Challenger),
            State::NeedsCommittee { .. } | State::Over(_) => None,
        }
    }

    /// What the challenger has said that it has not got.
    pub const fn asked(&self) -> Option<Asked> {
        self.asked
    }

    /// What the defender is to show next, before the challenger goes on or a committee is called together.
    pub fn due_part(&self, shape: &impl Shape) -> Option<DuePart> {
        match &self.state {
            State::Over(_) => None,
            State::Evidence { owed, .. } => owed.due(shape),
            _ => self.asked?.due(shape),
        }
    }

    /// The part that is due has been shown, here or in another game.
    pub fn note_part_shown(&mut self) {
        match &mut self.state {
            State::Evidence { cell, owed } => {
                owed.note_shown();
                if !owed.is_owed() {
                    self.state = State::NeedsCommittee { cell: *cell };
                }
            }
            _ => {
                if let Some(asked) = &mut self.asked {
                    asked.note_shown();
                }
            }
        }
    }

    /// What was asked for is there for everybody to read: it was shown in another game.
    pub fn note_all_shown(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.note_all_shown();
        }
    }

    const fn owes_showing(&self) -> bool {
        match &self.asked {
            Some(asked) => asked.is_owed(),
            None => false,
        }
    }

    /// What time the sides have left.
    pub const fn clocks(&self) -> Clocks {
        self.clocks
    }

    /// What the defender has committed to.
    pub const fn roots(&self) -> &Roots {
        &self.roots
    }

    /// How far down the game has come.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Which leaves of the tree in dispute are under the node in dispute.
    pub const fn leaves_in_dispute(&self) -> Range<u32> {
        self.span.first..self.span.first.saturating_add(self.span.leaves)
    }

    pub(super) const fn span(&self) -> Span {
        self.span
    }

    /// Has `blocks` more blocks finalised, which the side to move used up.
    ///
    /// To be told before a move that comes after them, or the wrong side pays.
    pub fn tick(&mut self, blocks: u32) -> &State {
        if let Some(side) = self.to_move()
            && self.clocks.run(side, blocks)
        {
            self.end(side.other(), Reason::TimeOut);
        }
        &self.state
    }

    /// Ends a game in [`State::NeedsCommittee`]. Whoever drives it sees to it that this comes in time.
    ///
    /// # Errors
    /// [`GameError::Over`] when it has ended, and [`GameError::NotNow`] while it can be played.
    pub fn decided(&mut self, winner: Side) -> Result<&State, GameError> {
        match self.state {
            State::NeedsCommittee { .. } => self.end(winner, Reason::Decided),
            State::Over(_) => return Err(GameError::Over),
            _ => return Err(GameError::NotNow),
        }
        Ok(&self.state)
    }

    /// Plays a move of `side`. A refused move changes nothing; to try is not against the rules.
    ///
    /// # Errors
    /// A [`GameError`] for every move that cannot be made.
    pub fn step(
        &mut self,
        side: Side,
        played: Move,
        shape: &impl Shape,
        referee: &impl Referee,
    ) -> Result<&State, GameError> {
        let mut next = self.clone();
        next.play(side, played, shape, referee)?;
        *self = next;
        Ok(&self.state)
    }

    fn play(
        &mut self,
        side: Side,
        played: Move,
        shape: &impl Shape,
        referee: &impl Referee,
    ) -> Result<(), GameError> {
        if self.outcome().is_some() {
            return Err(GameError::Over);
        }
        if played == Move::Concede {
            self.end(side.other(), Reason::Conceded);
            return Ok(());
        }
        if self.to_move() != Some(side) {
            return Err(GameError::NotNow);
        }
        match (self.state.clone(), played) {
            (_, Move::Supply(part)) => self.supply(&part, shape),
            _ if self.owes_showing() => Err(GameError::NotNow),
            (State::Naming { .. } | State::Picking { .. }, Move::Ask(missing)) => self.ask(missing, shape),
            (State::Posting, Move::Post(children)) => self.post(children, shape),
            (State::Naming { children }, Move::Name(index)) => self.take(&children, index.into(), shape),
            (State::Entering, Move::Enter(entry)) => self.enter(&entry, shape),
            (State::Showing, Move::Show(bytes)) => self.show(bytes, shape),
            (State::Picking { bytes }, Move::Pick(at)) => self.pick(&bytes, at.into(), shape, referee),
            (State::Opening { cell }, Move::Open(opening)) => self.open(cell, &opening, shape, referee),
            _ => Err(GameError::NotNow),
        }
    }

    fn ask(&mut self, missing: Missing, shape: &impl Shape) -> Result<(), GameError> {
        if self.asked.is_some() {
            return Err(GameError::NotNow);
        }
        self.asked = Some(Asked::new(missing, shape)?);
        Ok(())
    }

    fn supply(&mut self, part: &PartOpening, shape: &impl Shape) -> Result<(), GameError> {
        let due = self.due_part(shape).ok_or(GameError::NotNow)?;
        if !due.is(part) {
            return Err(GameError::WrongHash);
        }
        self.note_part_shown();
        Ok(())
    }

    fn post(&mut self, children: Children, shape: &impl Shape) -> Result<(), GameError> {
        if u32::try_from(children.len()) != Ok(self.span.children()) {
            return Err(GameError::WrongCount);
        }
        if parent(&children, self.span.is_lowest()) != Some(self.digest) {
            return Err(GameError::WrongHash);
        }
        match children.len() {
            1 => self.take(&children, 0, shape),
            _ => {
                self.state = State::Naming { children };
                Ok(())
            }
        }
    }

    /// Goes on with child `index`.
    fn take(&mut self, children: &[H256], index: u32, shape: &impl Shape) -> Result<(), GameError> {
        let place = usize::try_from(index).map_err(|_| GameError::NoSuchChild)?;
        self.digest = *children.get(place).ok_or(GameError::NoSuchChild)?;
        let child = self.span.child(index);
        if self.span.is_lowest() {
            return self.reach(child.first, shape);
        }
        self.span = child;
        self.state = State::Posting;
        Ok(())
    }

    /// Goes on below leaf `index` of the tree that the game is in.
    fn reach(&mut self, index: u32, shape: &impl Shape) -> Result<(), GameError> {
        match self.place.level {
            Level::Leaves => {
                self.place.leaf = index;
                self.reach_leaf(shape)
            }
            Level::Steps => {
                self.place.step = index;
                self.begin_rows(shape)
            }
            Level::Rows => {
                self.place.row = index;
                self.begin_segments(shape)
            }
            Level::Segments => {
                self.place.segment = index;
                self.state = State::Showing;
                Ok(())
            }
        }
    }

    fn reach_leaf(&mut self, shape: &impl Shape) -> Result<(), GameError> {
        let leaf = shape.leaf(self.place.leaf).ok_or(GameError::Shape)?;
        match (leaf.kind, leaf.length) {
            (LeafKind::Fixed(digest), _) if digest != self.digest => {
                self.end(Side::Challenger, Reason::Judged);
                Ok(())
            }
            (LeafKind::Computed, _) | (_, Length::Word { .. }) => {
                self.state = State::Entering;
                Ok(())
            }
            (LeafKind::Fixed(_), Length::Known(length)) => {
                self.place.length = length;
                self.begin_segments(shape)
            }
        }
    }

    fn enter(&mut self, entry: &Entry, shape: &impl Shape) -> Result<(), GameError> {
        let leaf = shape.leaf(self.place.leaf).ok_or(GameError::Shape)?;
        self.place.length = match (leaf.length, &entry.length) {
            (Length::Known(length), None) => length,
            (Length::Word { word, most }, Some(opening)) => {
                shown_length(opening, word, most, shape).ok_or(GameError::WrongLength)?
            }
            _ => return Err(GameError::WrongLength),
        };
        match (leaf.kind, &entry.steps) {
            (LeafKind::Computed, Some(opening)) => {
                let Place { leaf, length, .. } = self.place;
                let steps = playable_steps(shape, leaf, length).ok_or(GameError::Shape)?;
                if !opening.ends_in(&self.digest, steps) {
                    return Err(GameError::WrongSteps);
                }
                self.roots.steps = Some(opening.root);
                self.digest = opening.root;
                self.begin(Level::Steps, steps);
                Ok(())
            }
            (LeafKind::Computed, None) | (_, Some(_)) => Err(GameError::WrongSteps),
            // The digest is that of its only row.
            (LeafKind::Fixed(_), None) => self.begin_segments(shape),
        }
    }

    fn begin_segments(&mut self, shape: &impl Shape) -> Result<(), GameError> {
        let segments = self.place.rows(shape)?.segments();
        self.begin(Level::Segments, segments);
        Ok(())
    }

    fn begin_rows(&mut self, shape: &impl Shape) -> Result<(), GameError> {
        let rows = self.place.rows(shape)?.rows;
        self.begin(Level::Rows, rows);
        Ok(())
    }

    /// Begins with a tree of so many leaves, which has the digest in dispute.
    fn begin(&mut self, level: Level, leaves: u32) {
        self.place.level = level;
        self.span = Span { first: 0, leaves };
        self.state = State::Posting;
    }

    fn show(&mut self, bytes: Segment, shape: &impl Shape) -> Result<(), GameError> {
        let expected = self.place.rows(shape)?.segment_bytes(self.place.segment);
        if u32::try_from(bytes.len()) != Ok(expected) {
            return Err(GameError::WrongCount);
        }
        if H256(blake2_256(&bytes)) != self.digest {
            return Err(GameError::WrongHash);
        }
        self.state = State::Picking { bytes };
        Ok(())
    }

    fn pick(
        &mut self,
        bytes: &[u8],
        at: u32,
        shape: &impl Shape,
        referee: &impl Referee,
    ) -> Result<(), GameError> {
        let cell = self.cell(bytes, at, shape)?;
        let room = opening_room(shape, cell.leaf, cell.length, cell.step);
        let fits = referee
            .opening_bytes(&cell)
            .is_some_and(|bytes| Some(bytes) <= room);
        // What nobody can be made to show in a game, members have to get elsewhere.
        let needed = referee.needed(&cell);
        let owed = needed.and_then(|missing| Asked::new(missing, shape).ok());
        self.state = match owed {
            _ if fits => State::Opening { cell },
            Some(owed) => State::Evidence { cell, owed },
            None => State::NeedsCommittee { cell },
        };
        Ok(())
    }

    /// The cell with byte `at` of the segment in dispute.
    fn cell(&self, bytes: &[u8], at: u32, shape: &impl Shape) -> Result<Cell, GameError> {
        let rows = self.place.rows(shape)?;
        let start = self.place.segment.saturating_mul(SEGMENT_BYTES);
        let found = || {
            let byte = start.checked_add(at).filter(|_| at < SEGMENT_BYTES)?;
            let cell = rows.cell_at(byte)?;
            let range = rows.bytes_of(cell)?;
            let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
            let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
            let value = value(
                bytes.get(from..to)?,
                rows.quantized.is_some_and(|values| cell < values),
            )?;
            Some((cell, value))
        };
        let (cell, value) = found().ok_or(GameError::NoSuchChild)?;
        let Place {
            leaf,
            length,
            step,
            row,
            ..
        } = self.place;
        Ok(Cell {
            leaf,
            length,
            step,
            row,
            cell,
            value,
        })
    }

    fn open(
        &mut self,
        cell: Cell,
        opening: &[u8],
        shape: &impl Shape,
        referee: &impl Referee,
    ) -> Result<(), GameError> {
        let room = opening_room(shape, cell.leaf, cell.length, cell.step).ok_or(GameError::Shape)?;
        if !u32::try_from(opening.len()).is_ok_and(|bytes| bytes <= room) {
            return Err(GameError::TooLong);
        }
        match referee.judge(&cell, &self.roots, opening) {
            Judgement::Holds => self.end(Side::Defender, Reason::Judged),
            Judgement::Refuted => self.end(Side::Challenger, Reason::Judged),
            Judgement::Unproven => return Err(GameError::Unproven),
        }
        Ok(())
    }

    fn end(&mut self, winner: Side, reason: Reason) {
        self.state = State::Over(Outcome { winner, reason });
    }
}

/// The value in the bytes of a cell.
pub(crate) fn value(bytes: &[u8], quantized: bool) -> Option<CellValue> {
    if quantized {
        return bytes.first().copied().map(CellValue::Byte);
    }
    let mut word = [0; 4];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(CellValue::Word(word))
}
