//! A side's view of a claim's trace, of which only what is recorded has to be at hand.

use alloc::vec::Vec;
use core::fmt;

use sp_core::H256;

use crate::{
    LeafPlan, Rows,
    compute::Stop,
    delivered::OutputWord,
    execute::{Missing, View, execute_leaf},
    inputs::WeightRow,
    layout::{Layout, Part},
    recorder::{Digests, Recorder},
    referee::{any_cell, ground},
    tensors::Tensor,
};
use surety_dispute_game::bisection::{Cell, Length, Shape, Trace};
use surety_proofs::{WeightOpening, merkle_root};

/// What a trace records, and the model.
///
/// Where something has no value ([`super::NO_NUMBER`]) a computed leaf's digest is [`Rows::leaf`]'s, which no
/// other trace has. The last leaf's is the output's content hash.
pub trait Records: Sync {
    /// Why they cannot be had.
    type Error;

    /// The digests of all leaves.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn leaves(&mut self) -> Result<&[H256], Self::Error>;

    /// Has the rows of these leaves at hand from now on, and may forget those of others.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn load(&mut self, leaves: &[u32]) -> Result<(), Self::Error>;

    /// The rows of a leaf: numbers where it is computed, but for the tokens of [`Part::SampledTokens`]; bytes
    /// elsewhere: leaf 0 is the task's input. Nothing when they were not loaded.
    fn rows(&self, leaf: u32) -> Option<&Rows>;

    /// The output as it was claimed, as one row. Its tokens are what went through the model. A challenger's
    /// own last leaf may be another.
    fn output(&self) -> Option<&Rows>;

    /// A row of weights.
    fn weights(&self, tensor: Tensor, row: u32) -> Option<WeightRow<'_>>;

    /// What shows that it is the model's.
    fn weight_opening(&self, tensor: Tensor, row: u32) -> Option<WeightOpening>;
}

/// Why a player has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayerError<E> {
    /// The records could not be had.
    Records(E),
    /// There is no such place in the trace, or the records are not what they should be.
    Missing,
}

impl<E> From<Missing> for PlayerError<E> {
    fn from(_: Missing) -> Self {
        Self::Missing
    }
}

impl<E: fmt::Display> fmt::Display for PlayerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Records(error) => error.fmt(f),
            Self::Missing => Missing.fmt(f),
        }
    }
}

impl<E: core::error::Error> core::error::Error for PlayerError<E> {}

/// The steps of one leaf.
#[derive(Clone, Debug)]
pub(super) struct Unfolded {
    pub leaf: u32,
    /// None where only the digests are kept.
    pub steps: Vec<Rows>,
    pub digests: Digests,
}

/// Plays over a trace: unfolds the leaf that a game goes into, and opens cells. One leaf is kept at a time,
/// and those [before it](Self::keeping) that there is room for. Digests take so much less that those of many
/// leaves are kept: all but the last moves of a game are made of them.
#[derive(Clone, Debug)]
pub struct Player<R> {
    pub(super) layout: Layout,
    pub(super) records: R,
    pub(super) unfolded: Option<Unfolded>,
    /// Others that were unfolded before, the last used last.
    pub(super) kept: Vec<Unfolded>,
    /// Most bytes that these may take, and as many for digests.
    room: usize,
    altered: Option<Altered>,
}

/// A trace with a wrong number in it.
#[derive(Clone, Debug)]
struct Altered {
    leaf: u32,
    step: u32,
    row: u32,
    byte: u32,
    /// Digests of all leaves.
    leaves: Vec<H256>,
    /// The rows of the leaf, where it is given.
    given: Option<Rows>,
}

impl<R: Records> Player<R> {
    /// A player with these records.
    pub const fn new(layout: Layout, records: R) -> Self {
        Self {
            layout,
            records,
            unfolded: None,
            kept: Vec::new(),
            room: 0,
            altered: None,
        }
    }

    /// Keeps leaves that were unfolded before while they take no more than so many bytes: several games
    /// about one claim go into different ones.
    pub const fn keeping(mut self, bytes: usize) -> Self {
        self.room = bytes;
        self
    }

    /// Bytes that unfolded leaves take.
    pub fn unfolded_bytes(&self) -> usize {
        let all = self.kept.iter().chain(&self.unfolded);
        all.map(|unfolded| unfolded.memory().saturating_add(unfolded.of_digests()))
            .sum()
    }

    /// Forgets the numbers of every leaf that was unfolded. What is asked for later is unfolded again.
    pub fn fold(&mut self) -> &mut R {
        self.set_aside(0);
        &mut self.records
    }

    /// Makes place for another leaf: no more than `most` bytes of numbers are kept.
    fn set_aside(&mut self, most: usize) {
        self.kept.extend(self.unfolded.take());
        let mut bytes: usize = self.kept.iter().map(Unfolded::memory).sum();
        for unfolded in &mut self.kept {
            if bytes <= most {
                break;
            }
            bytes = bytes.saturating_sub(unfolded.memory());
            unfolded.steps = Vec::new();
        }
        while self.kept.iter().map(Unfolded::of_digests).sum::<usize>() > self.room {
            self.kept.remove(0);
        }
    }

    /// Has this side play for a wrong trace from now on, in which one byte of a step was changed, and
    /// something in what its leaf records. The root of that trace is the answer. For demonstrations and tests
    /// of what comes of it: an honest side has no use for it.
    ///
    /// # Errors
    /// When there is no such byte, or the records cannot be had.
    pub fn alter(
        &mut self,
        leaf: u32,
        step: u32,
        row: u32,
        byte: u32,
    ) -> Result<H256, PlayerError<R::Error>> {
        self.unfolded = None;
        self.kept.clear();
        self.altered = None;
        let mut leaves = self.records.leaves().map_err(PlayerError::Records)?.to_vec();
        let place = leaves.get_mut(leaf as usize).ok_or(Missing)?;
        let mut given = None;
        if self.is_given(leaf) {
            let rows = self.given(leaf)?.altered(row, byte).ok_or(Missing)?;
            *place = rows.digests().first().copied().ok_or(Missing)?;
            given = Some(rows);
        } else {
            let mut unfolded = self.unfold(leaf)?.clone();
            unfolded.alter(step, row, byte)?;
            *place = unfolded.digests.steps.last().copied().ok_or(Missing)?;
            self.unfolded = Some(unfolded);
        }
        let root = merkle_root(leaves.iter().copied());
        self.altered = Some(Altered {
            leaf,
            step,
            row,
            byte,
            leaves,
            given,
        });
        Ok(root)
    }

    /// The layout of the claim.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The records it reads leaves and weights from.
    pub const fn records(&self) -> &R {
        &self.records
    }

    fn load(&mut self, leaves: &[u32]) -> Result<(), PlayerError<R::Error>> {
        self.records.load(leaves).map_err(PlayerError::Records)
    }

    /// How long a leaf is.
    pub(super) fn length(&mut self, leaf: u32) -> Result<u32, PlayerError<R::Error>> {
        match self.layout.leaf(leaf).ok_or(Missing)?.length {
            Length::Known(length) => Ok(length),
            Length::Word { word, most } => {
                self.load(&[0])?;
                let input = self.records.rows(0).ok_or(Missing)?;
                let words = input.integers(0, word..word.saturating_add(1));
                let word = words.and_then(|words| words.first().copied()).ok_or(Missing)?;
                Ok(Length::read(word.to_le_bytes(), most))
            }
        }
    }

    /// The digests of a leaf's steps.
    fn digests(&mut self, leaf: u32) -> Result<&Digests, PlayerError<R::Error>> {
        if !self.kept.iter().any(|unfolded| unfolded.leaf == leaf) {
            return Ok(&self.unfold(leaf)?.digests);
        }
        let kept = self.kept.iter().find(|unfolded| unfolded.leaf == leaf);
        Ok(&kept.ok_or(Missing)?.digests)
    }

    /// The rows and digests of a leaf's steps.
    pub(super) fn unfold(&mut self, leaf: u32) -> Result<&Unfolded, PlayerError<R::Error>> {
        if self
            .unfolded
            .as_ref()
            .is_none_or(|unfolded| unfolded.leaf != leaf)
        {
            self.set_aside(self.room);
            let known = self.kept.iter().position(|unfolded| unfolded.leaf == leaf);
            let known = known.map(|at| self.kept.remove(at));
            self.unfolded = known.filter(|unfolded| !unfolded.steps.is_empty());
        }
        if self.unfolded.is_none() {
            let length = self.length(leaf)?;
            let plan = self.layout.plan(leaf, length).ok_or(Missing)?;
            let reads: Vec<u32> = plan.reads().collect();
            self.records.load(&reads).map_err(PlayerError::Records)?;
            let mut unfolded = unfold(&plan, &self.records)?;
            if let Some(altered) = self.altered.as_ref().filter(|altered| altered.leaf == leaf) {
                unfolded.alter(altered.step, altered.row, altered.byte)?;
            }
            self.unfolded = Some(unfolded);
        }
        Ok(self.unfolded.as_ref().ok_or(Missing)?)
    }

    fn is_given(&self, leaf: u32) -> bool {
        matches!(self.layout.part(leaf), None | Some(Part::Input | Part::Output))
    }

    /// Rows of a given leaf, at hand.
    fn given(&mut self, leaf: u32) -> Result<&Rows, PlayerError<R::Error>> {
        self.load(&[leaf])?;
        let altered = self.altered.as_ref().filter(|altered| altered.leaf == leaf);
        let rows = altered.and_then(|altered| altered.given.as_ref());
        Ok(rows.or_else(|| self.records.rows(leaf)).ok_or(Missing)?)
    }

    /// Has what an output's cell reads at hand.
    fn load_for_output(&mut self, at: &Cell) -> Result<(), PlayerError<R::Error>> {
        match OutputWord::new(&self.layout, at.cell) {
            Some(OutputWord::Number { leaf, .. } | OutputWord::Token { leaf, .. }) => self.load(&[0, leaf]),
            _ => self.load(&[0]),
        }
    }

    /// The opening of a cell, of which everything is at hand.
    fn opening(&mut self, at: &Cell) -> Result<Vec<u8>, PlayerError<R::Error>> {
        if self.layout.part(at.leaf) == Some(Part::Input) {
            // It is the task's.
            return Ok(Vec::new());
        }
        let leaves = Trace::leaves(self)?.to_vec();
        let none = Digests::default();
        let unfolded = self.unfolded.as_ref().filter(|unfolded| unfolded.leaf == at.leaf);
        let mut recorder = Recorder {
            ground: ground(&self.layout, at),
            view: View {
                records: &self.records,
                steps: unfolded.map_or(&[], |unfolded| &unfolded.steps),
            },
            digests: unfolded.map_or(&none, |unfolded| &unfolded.digests),
            leaves: &leaves,
            opening: Vec::new(),
        };
        match any_cell(&self.layout, at, &mut recorder) {
            Ok(_) => Ok(recorder.opening),
            Err(Stop::NoSuchPlace) => Err(PlayerError::Missing),
            Err(Stop::Input(missing)) => Err(missing.into()),
        }
    }
}

impl<R: Records> Trace for Player<R> {
    type Error = PlayerError<R::Error>;

    fn leaves(&mut self) -> Result<&[H256], Self::Error> {
        if let Some(altered) = &self.altered {
            return Ok(&altered.leaves);
        }
        let leaves = self.records.leaves().map_err(PlayerError::Records)?;
        match leaves.split_last() {
            // The claimed output is wrong. Who commits to it is wrong there, and who commits to the right one
            // has not claimed it: there is no last leaf to agree on.
            Some((last, before)) if *last != self.layout.facts.output => Ok(before),
            _ => Ok(leaves),
        }
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Self::Error> {
        Ok(self.digests(leaf)?.steps.clone())
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Self::Error> {
        if self.is_given(leaf) {
            return Ok(self.given(leaf)?.digests());
        }
        let digests = self.digests(leaf)?;
        Ok(digests.rows.get(step as usize).cloned().ok_or(Missing)?)
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, Self::Error> {
        if self.is_given(leaf) {
            return Ok(self.given(leaf)?.row(row).ok_or(Missing)?);
        }
        let rows = self.unfold(leaf)?.steps.get(step as usize).ok_or(Missing)?;
        let mut bytes = rows.row(row).ok_or(Missing)?;
        let lacking = rows.lacking(&bytes);
        let length = self.length(leaf)?;
        if self
            .layout
            .steps(leaf, length)
            .is_none_or(|steps| step.saturating_add(1) == steps)
        {
            // Nobody can show what has no value: a row ends there, and whatever stands there differs.
            bytes.truncate(lacking.unwrap_or(bytes.len()));
        }
        Ok(bytes)
    }

    fn open(&mut self, at: &Cell) -> Result<Vec<u8>, Self::Error> {
        if self.is_given(at.leaf) {
            self.load_for_output(at)?
        } else {
            let plan = self.layout.plan(at.leaf, at.length).ok_or(Missing)?;
            let reads: Vec<u32> = plan.reads().collect();
            self.unfold(at.leaf)?;
            self.load(&reads)?;
        }
        self.opening(at)
    }
}

impl Unfolded {
    /// Bytes that its steps take.
    pub(super) fn memory(&self) -> usize {
        self.steps.iter().map(Rows::memory).sum()
    }

    /// Bytes that its digests take.
    pub(super) fn of_digests(&self) -> usize {
        let rows: usize = self.digests.rows.iter().map(Vec::len).sum();
        let all = rows.saturating_add(self.digests.steps.len());
        all.saturating_mul(size_of::<H256>())
    }

    /// Changes a byte of a step, and one of what the leaf records.
    fn alter(&mut self, step: u32, row: u32, byte: u32) -> Result<(), Missing> {
        let last = self.steps.len().checked_sub(1).ok_or(Missing)?;
        let recorded = (step as usize != last).then_some((last, 0, 0));
        for (number, row, byte) in [(step as usize, row, byte)].into_iter().chain(recorded) {
            let rows = self.steps.get_mut(number).ok_or(Missing)?;
            *rows = rows.altered(row, byte).ok_or(Missing)?;
            let digests = if number == last {
                rows.recorded_digests()
            } else {
                rows.digests()
            };
            *self.digests.steps.get_mut(number).ok_or(Missing)? = merkle_root(digests.iter().copied());
            *self.digests.rows.get_mut(number).ok_or(Missing)? = digests;
        }
        Ok(())
    }
}

fn unfold<R: Records>(plan: &LeafPlan<'_>, records: &R) -> Result<Unfolded, Missing> {
    let steps = execute_leaf(plan, records)?;
    let last = steps.len().saturating_sub(1);
    let digests = |(number, rows): (usize, &Rows)| {
        if number == last {
            rows.recorded_digests()
        } else {
            rows.digests()
        }
    };
    let rows: Vec<Vec<H256>> = steps.iter().enumerate().map(digests).collect();
    let of_steps = rows
        .iter()
        .map(|rows| merkle_root(rows.iter().copied()))
        .collect();
    Ok(Unfolded {
        leaf: plan.leaf(),
        steps,
        digests: Digests {
            rows,
            steps: of_steps,
        },
    })
}
