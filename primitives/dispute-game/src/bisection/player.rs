//! What an honest side plays.

use alloc::vec::Vec;
use core::fmt;

use sp_core::H256;

use super::{
    Cell, DuePart, Entry, Game, LeafKind, Length, Level, Move, Place, Shape, Side, State, StepsOpening,
};
use surety_proofs::{PartOpening, SEGMENT_BYTES, SegmentOpening, segment_hashes};

/// A side's own view of a claim's trace. Below the leaves it may be computed when it is asked for, which may
/// take a while: what is asked for next is mostly of the same leaf.
pub trait Trace {
    /// Why something could not be computed.
    type Error;

    /// The digests of all leaves.
    fn leaves(&mut self) -> Result<&[H256], Self::Error>;

    /// The digests of the steps of a computed leaf, of which the last is the leaf's.
    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Self::Error>;

    /// The digests of the rows of a step; `step` is 0 for a fixed leaf.
    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Self::Error>;

    /// The bytes of a row.
    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, Self::Error>;

    /// Where the first difference is in the tree at this place, where not all of the tree is known here: what
    /// is not known is taken to be as the claim has it. Asked of challengers alone.
    fn difference(&self, place: &Place) -> Option<u32> {
        let _ = place;
        None
    }

    /// What the referee needs to compute a cell again. Asked of defenders alone.
    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, Self::Error>;
}

/// Why there is nothing to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayError<E> {
    /// It is not this side's turn.
    NotNow,
    /// The own trace has another shape than the game's.
    Shape,
    /// The own trace could not be computed.
    Trace(E),
}

impl<E> From<E> for PlayError<E> {
    fn from(error: E) -> Self {
        Self::Trace(error)
    }
}

impl<E: fmt::Display> fmt::Display for PlayError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNow => f.write_str("it is not this side's turn"),
            Self::Shape => f.write_str("the own trace has another shape than the game's"),
            Self::Trace(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error> core::error::Error for PlayError<E> {}

/// What a defender with this trace plays. Never refused when the game is about the root of its leaves.
///
/// # Errors
/// When it is not the defender's turn, and when the trace fails or is of another shape.
pub fn defend<T: Trace>(game: &Game, shape: &impl Shape, trace: &mut T) -> Result<Move, PlayError<T::Error>> {
    let place = game.place();
    if let Some(due) = game.due_part(shape) {
        return supply(&due, shape, trace);
    }
    match game.state() {
        State::Posting => post(game, trace),
        State::Entering => enter(place.leaf, shape, trace).map(Move::Enter),
        State::Showing => {
            let row = trace.row(place.leaf, place.step, place.row)?;
            let bytes = segment(&row, place.segment).to_vec();
            bytes.try_into().map(Move::Show).map_err(|_| PlayError::Shape)
        }
        State::Opening { cell } => {
            let opening = trace.open(cell)?;
            opening.try_into().map(Move::Open).map_err(|_| PlayError::Shape)
        }
        _ => Err(PlayError::NotNow),
    }
}

/// The part that is due, of an own blob: those of whoever is right are the ones of the task and the claim.
fn supply<T: Trace>(due: &DuePart, shape: &impl Shape, trace: &mut T) -> Result<Move, PlayError<T::Error>> {
    let last = shape.leaves().saturating_sub(1);
    for leaf in [0, last] {
        let row = trace.row(leaf, 0, 0)?;
        if let Some(part) = PartOpening::new(&row, due.part).filter(|part| due.is(part)) {
            return Ok(Move::Supply(part));
        }
    }
    Err(PlayError::Shape)
}

/// What a challenger with this trace plays: it goes to the first difference, or concedes when there is none.
///
/// # Errors
/// When it is not the challenger's turn, and when the trace fails.
pub fn challenge<T: Trace>(game: &Game, trace: &mut T) -> Result<Move, PlayError<T::Error>> {
    let place = game.place();
    if game.to_move() != Some(Side::Challenger) {
        return Err(PlayError::NotNow);
    }
    match game.state() {
        State::Naming { children } => {
            let known = trace.difference(place);
            if let Some(index) = known.and_then(|leaf| game.span().child_of(leaf)) {
                return Ok(Move::Name(index));
            }
            let own = digests(place, trace)?;
            let named = (0u8..)
                .zip(children)
                .find(|(index, child)| game.span().digest((*index).into(), &own) != Some(**child));
            Ok(named.map_or(Move::Concede, |(index, _)| Move::Name(index)))
        }
        State::Picking { bytes } => {
            let row = trace.row(place.leaf, place.step, place.row)?;
            let own = segment(&row, place.segment);
            let picked = (0u16..)
                .zip(bytes)
                .find(|(at, byte)| own.get(usize::from(*at)) != Some(*byte));
            Ok(picked.map_or(Move::Concede, |(at, _)| Move::Pick(at)))
        }
        _ => Err(PlayError::NotNow),
    }
}

/// The bytes of a segment of a row, none when there is no such segment.
fn segment(row: &[u8], segment: u32) -> &[u8] {
    let mut segments = row.chunks(SEGMENT_BYTES as usize);
    segments.nth(segment as usize).unwrap_or_default()
}

/// The leaves of the tree in dispute.
fn digests<T: Trace>(place: &Place, trace: &mut T) -> Result<Vec<H256>, T::Error> {
    match place.level {
        Level::Leaves => trace.leaves().map(<[H256]>::to_vec),
        Level::Steps => trace.steps(place.leaf),
        Level::Rows => trace.rows(place.leaf, place.step),
        Level::Segments => {
            let row = trace.row(place.leaf, place.step, place.row)?;
            Ok(segment_hashes(&row))
        }
    }
}

fn post<T: Trace>(game: &Game, trace: &mut T) -> Result<Move, PlayError<T::Error>> {
    let own = digests(game.place(), trace)?;
    let span = game.span();
    let children: Option<Vec<H256>> = (0..span.children())
        .map(|index| span.digest(index, &own))
        .collect();
    let children = children.and_then(|children| children.try_into().ok());
    children.map(Move::Post).ok_or(PlayError::Shape)
}

fn enter<T: Trace>(leaf: u32, shape: &impl Shape, trace: &mut T) -> Result<Entry, PlayError<T::Error>> {
    let at = shape.leaf(leaf).ok_or(PlayError::Shape)?;
    let length = match at.length {
        Length::Known(_) => None,
        Length::Word { word, .. } => {
            let blob = trace.row(0, 0, 0)?;
            let segment = word.saturating_mul(4) / SEGMENT_BYTES;
            Some(SegmentOpening::new(&blob, segment).ok_or(PlayError::Shape)?)
        }
    };
    let steps = match at.kind {
        LeafKind::Fixed(_) => None,
        LeafKind::Computed => {
            let steps = trace.steps(leaf)?;
            Some(StepsOpening::new(&steps).ok_or(PlayError::Shape)?)
        }
    };
    Ok(Entry { length, steps })
}
