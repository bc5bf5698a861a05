//! What the runtime does with a cell: it reads the opening, checks every piece of it, and computes the cell
//! again.

use alloc::{borrow::Cow, vec::Vec};
use core::ops::Range;

use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_exact::{HEAD_PRECISION, Precision};
use surety_types::model::{ModelFamily, Operation};

use crate::{
    compute::{NO_NUMBER, Stop, cell, told},
    delivered::output_word,
    inputs::{Inputs, QuantRow, Source, WeightRow},
    layout::{Layout, Part},
    locate::{Ground, HASH, Piece, Root},
    measure::{Measure, TooLong},
    quanta::{bytes_of, read},
    span,
    steps::{Op, Step},
    tensors::{Tensor, scales},
};
use surety_dispute_game::bisection::{Cell, CellValue, Judgement, Missing, Referee, Roots};
use surety_proofs::{Proof, SEGMENT_BYTES, WeightOpening, weight_row_leaf};

/// Judges cells of one claim.
#[derive(Clone, Copy, Debug)]
pub struct CellReferee<'l> {
    layout: &'l Layout,
    weight_root: H256,
}

impl<'l> CellReferee<'l> {
    /// The referee of claims of this layout, about the model with these weights.
    pub const fn new(layout: &'l Layout, weight_root: H256) -> Self {
        Self { layout, weight_root }
    }

    /// The layout of the claim.
    pub const fn layout(&self) -> &'l Layout {
        self.layout
    }
}

/// Computes a cell of any leaf but the input.
pub(super) fn any_cell<'a, I: Inputs<'a>>(
    layout: &Layout,
    at: &Cell,
    inputs: &mut I,
) -> Result<CellValue, Stop<I::Error>> {
    match layout.part(at.leaf) {
        None | Some(Part::Input) => Err(Stop::NoSuchPlace),
        Some(Part::Output) => told(output_word(layout, at.cell, inputs), || false),
        Some(Part::Rows { .. } | Part::SampledTokens { .. }) => match layout.plan(at.leaf, at.length) {
            Some(plan) => cell(&plan, at.step, at.row, at.cell, inputs),
            None => Err(Stop::NoSuchPlace),
        },
    }
}

/// Where a cell's inputs are.
pub(super) fn ground<'l>(layout: &'l Layout, at: &Cell) -> Ground<'l> {
    let is_output = layout.part(at.leaf) == Some(Part::Output);
    Ground {
        layout,
        leaf: at.leaf,
        length: (!is_output).then_some(at.length),
    }
}

/// Whether a cell is of what the trace records.
fn is_recorded(layout: &Layout, at: &Cell) -> bool {
    let plan = layout.plan(at.leaf, at.length);
    let step = plan.map(|plan| plan.step(at.step));
    matches!(step, None | Some(Some(Step { op: Op::Record, .. })))
}

impl Referee for CellReferee<'_> {
    fn opening_bytes(&self, at: &Cell) -> Option<u32> {
        if self.layout.part(at.leaf) == Some(Part::Input) {
            return Some(0);
        }
        let mut measure = Measure::new(ground(self.layout, at));
        match any_cell(self.layout, at, &mut measure) {
            Ok(_) => Some(measure.bytes),
            Err(Stop::NoSuchPlace | Stop::Input(TooLong)) => None,
        }
    }

    /// A generation's tokens each depend on those before them; an embedding depends on its input alone.
    fn needed(&self, _: &Cell) -> Option<Missing> {
        Some(match self.layout.facts().operation {
            Operation::Generate => Missing::Both,
            Operation::Embed => Missing::Input,
        })
    }

    fn judge(&self, at: &Cell, roots: &Roots, opening: &[u8]) -> Judgement {
        if self.layout.part(at.leaf) == Some(Part::Input) {
            // Nobody comes below a leaf that is not the task's input, and what is in that is right.
            return match opening {
                [] => Judgement::Holds,
                _ => Judgement::Unproven,
            };
        }
        let mut reader = Reader {
            ground: ground(self.layout, at),
            roots,
            weight_root: &self.weight_root,
            rest: opening,
        };
        let found = any_cell(self.layout, at, &mut reader);
        // Not a byte more than was asked for.
        if !reader.rest.is_empty() {
            return Judgement::Unproven;
        }
        let lacking = CellValue::Word(NO_NUMBER.to_le_bytes());
        match found {
            Err(Stop::Input(NotShown) | Stop::NoSuchPlace) => Judgement::Unproven,
            Ok(value) if value == lacking && is_recorded(self.layout, at) => Judgement::Refuted,
            Ok(value) if value == at.value => Judgement::Holds,
            Ok(_) => Judgement::Refuted,
        }
    }
}

/// A piece is not there, or is not shown to be committed.
struct NotShown;

/// Takes an opening apart. Nothing is taken for granted: how long everything is follows from the layout, what
/// is not there ends it, and every hash is checked.
struct Reader<'o, 'l> {
    ground: Ground<'l>,
    roots: &'o Roots,
    weight_root: &'o H256,
    rest: &'o [u8],
}

impl<'o> Reader<'o, '_> {
    fn take(&mut self, bytes: u32) -> Result<&'o [u8], NotShown> {
        let (taken, rest) = self.rest.split_at_checked(bytes as usize).ok_or(NotShown)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, NotShown> {
        let bytes = self.take(4)?.try_into().map_err(|_| NotShown)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn hash(&mut self) -> Option<H256> {
        let bytes = self.take(HASH).ok()?;
        Some(H256(bytes.try_into().ok()?))
    }

    /// The bytes of a piece.
    fn piece(&mut self, piece: Option<Piece>) -> Result<(&'o [u8], Piece), NotShown> {
        let piece = piece.ok_or(NotShown)?;
        let bytes = self.take(piece.bytes().len() as u32)?;
        let mut known: Vec<H256> = bytes
            .chunks(SEGMENT_BYTES as usize)
            .map(|segment| H256(blake2_256(segment)))
            .collect();
        for (span, leaves) in piece.trees().into_iter().flatten() {
            let root = span::root(&span, leaves, &known, || self.hash());
            known = [root.ok_or(NotShown)?].into();
        }
        let root = match piece.root {
            Root::Steps => self.roots.steps.ok_or(NotShown)?,
            Root::Trace => self.roots.trace,
            Root::Input => self.ground.layout.facts.input,
            Root::Output => self.ground.layout.facts.output,
        };
        if known[..] == [root] {
            Ok((bytes, piece))
        } else {
            Err(NotShown)
        }
    }

    /// So many bytes of a piece, from where they begin in its row.
    fn bytes(&mut self, wanted: Option<(Piece, Range<u32>)>) -> Result<&'o [u8], NotShown> {
        let (piece, wanted) = wanted.ok_or(NotShown)?;
        let (bytes, piece) = self.piece(Some(piece))?;
        let place = |byte: u32| byte.checked_sub(piece.bytes().start).map(|byte| byte as usize);
        let (start, end) = (
            place(wanted.start).ok_or(NotShown)?,
            place(wanted.end).ok_or(NotShown)?,
        );
        bytes.get(start..end).ok_or(NotShown)
    }

    /// Words of a row.
    fn words<T>(
        &mut self,
        from: Source,
        row: u32,
        words: &Range<u32>,
        read: impl Fn([u8; 4]) -> T,
    ) -> Result<Vec<T>, NotShown> {
        let wanted = self.ground.words(from, row, words);
        let (words, _) = self.bytes(wanted)?.as_chunks::<4>();
        Ok(words.iter().map(|word| read(*word)).collect())
    }

    /// The bytes of so many values, and their scales.
    fn values(
        &mut self,
        precision: Precision,
        values: u32,
        scales: u32,
    ) -> Result<(&'o [u8], Vec<f32>), NotShown> {
        let q = self.take(bytes_of(precision, values))?;
        let (words, _) = self.take(scales.saturating_mul(4))?.as_chunks::<4>();
        Ok((q, words.iter().map(|word| f32::from_le_bytes(*word)).collect()))
    }

    fn bias(&mut self) -> Result<Option<f32>, NotShown> {
        match self.take(1)? {
            [0] => Ok(None),
            [1] => self.number().map(|bits| Some(f32::from_bits(bits))),
            _ => Err(NotShown),
        }
    }

    /// Where a row of weights is said to be.
    fn place(&mut self) -> Result<WeightOpening, NotShown> {
        let (index, leaves) = (self.number()?, self.number()?);
        let span = index..index.checked_add(1).ok_or(NotShown)?;
        let count = span::siblings(&span, leaves).ok_or(NotShown)?;
        let hashes: Option<Vec<H256>> = (0..count).map(|_| self.hash()).collect();
        let hashes = hashes.and_then(|hashes| hashes.try_into().ok());
        Ok(WeightOpening {
            index,
            leaves,
            proof: Proof(hashes.ok_or(NotShown)?),
        })
    }

    fn family(&self) -> ModelFamily {
        self.ground.layout.facts.family
    }
}

impl Inputs<'static> for Reader<'_, '_> {
    type Error = NotShown;

    fn numbers(
        &mut self,
        from: Source,
        row: u32,
        words: Range<u32>,
    ) -> Result<Cow<'static, [f32]>, NotShown> {
        self.words(from, row, &words, f32::from_le_bytes).map(Cow::Owned)
    }

    fn integers(
        &mut self,
        from: Source,
        row: u32,
        words: Range<u32>,
    ) -> Result<Cow<'static, [u32]>, NotShown> {
        self.words(from, row, &words, u32::from_le_bytes).map(Cow::Owned)
    }

    fn quanta(
        &mut self,
        from: Source,
        row: u32,
        values: Range<u32>,
    ) -> Result<Cow<'static, [i16]>, NotShown> {
        let wanted = self.ground.quanta(from, row, &values);
        Ok(read(HEAD_PRECISION, self.bytes(wanted)?).into())
    }

    fn quantized(&mut self, step: u32, row: u32) -> Result<QuantRow<'static>, NotShown> {
        let (piece, values, precision) = self.ground.quantized(step, row).ok_or(NotShown)?;
        let (bytes, _) = self.piece(Some(piece))?;
        let mut own = Reader { rest: bytes, ..*self };
        let (q, scales) = own.values(precision, values, scales(values))?;
        Ok(QuantRow {
            q: read(precision, q).into(),
            scales: scales.into(),
        })
    }

    fn weights(&mut self, tensor: Tensor, row: u32) -> Result<WeightRow<'static>, NotShown> {
        let shape = tensor.shape(self.ground.layout.architecture());
        let scales = shape.scales_of(row).ok_or(NotShown)?;
        let (q, scales) = self.values(shape.precision, shape.values, scales)?;
        let bias = if shape.biased { self.bias()? } else { None };
        let name = tensor.name(self.family()).ok_or(NotShown)?;
        let leaf = weight_row_leaf(name.as_bytes(), row, q, &scales, bias);
        if self.place()?.verify(self.weight_root, &leaf) {
            Ok(WeightRow {
                q: read(shape.precision, q).into(),
                scales: scales.into(),
                bias,
            })
        } else {
            Err(NotShown)
        }
    }
}
