//! The opening of a cell: what it asks for, with what shows that it is committed.
//!
//! An opening is its pieces one after the other, in the order in which the cell asks for them, with nothing
//! between: how long each is follows from the place. A piece of rows is the bytes of its segments and the
//! hashes from there up to the root. A row of weights is its values, its scales, for linear layers a byte
//! that says whether there is a bias and the bias; its place among all rows, their number, and the hashes.

use alloc::{borrow::Cow, vec::Vec};
use core::ops::Range;

use sp_core::H256;

use crate::{
    Rows,
    execute::{Missing, View},
    inputs::{Inputs, QuantRow, Source, WeightRow},
    locate::{Ground, Piece, Root},
    player::Records,
    quanta::quantized_bytes,
    span::prove,
    tensors::Tensor,
};
use surety_proofs::segment_hashes;

/// Digests of the rows of each step of a leaf, and of the steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Digests {
    pub rows: Vec<Vec<H256>>,
    pub steps: Vec<H256>,
}

/// Writes down what a cell asks for.
pub(super) struct Recorder<'a, R> {
    pub ground: Ground<'a>,
    pub view: View<'a, R>,
    pub digests: &'a Digests,
    pub leaves: &'a [H256],
    pub opening: Vec<u8>,
}

impl<'a, R: Records> Recorder<'a, R> {
    fn hashes(&mut self, hashes: &[H256]) {
        self.opening.extend(hashes.iter().flat_map(|hash| hash.0));
    }

    fn record(&mut self, from: Source, piece: Option<Piece>) -> Result<(), Missing> {
        let piece = piece.ok_or(Missing)?;
        let rows = self.view.rows(from)?;
        let row = rows.row(piece.row.0).ok_or(Missing)?;
        let bytes = piece.bytes();
        let shown = row.get(bytes.start as usize..bytes.end as usize);
        self.opening.extend_from_slice(shown.ok_or(Missing)?);
        let segments = segment_hashes(&row);
        let of_rows = self.row_digests(from, rows)?;
        let above = match piece.root {
            Root::Steps => &self.digests.steps[..],
            Root::Trace => self.leaves,
            Root::Input | Root::Output => &[],
        };
        let trees = [&segments[..], &of_rows, above];
        for ((span, _), leaves) in piece.trees().into_iter().flatten().zip(trees) {
            let hashes = prove(&span, leaves).ok_or(Missing)?;
            self.hashes(&hashes);
        }
        Ok(())
    }

    fn row_digests(&self, from: Source, rows: &Rows) -> Result<Cow<'a, [H256]>, Missing> {
        match from {
            Source::Step(step) => {
                let digests = self.digests.rows.get(step as usize).ok_or(Missing)?;
                Ok(Cow::Borrowed(digests))
            }
            Source::Leaf(_) => Ok(Cow::Owned(rows.digests())),
            Source::Input | Source::Output => Ok(Cow::Borrowed(&[])),
        }
    }

    fn record_weights(&mut self, tensor: Tensor, row: u32, found: &WeightRow<'_>) -> Result<(), Missing> {
        let place = self.view.records.weight_opening(tensor, row).ok_or(Missing)?;
        let shape = tensor.shape(self.ground.layout.architecture());
        self.opening.extend(quantized_bytes(shape.precision, &found.q));
        let scales = found.scales.iter().flat_map(|scale| scale.to_le_bytes());
        self.opening.extend(scales);
        if shape.biased {
            self.opening.push(u8::from(found.bias.is_some()));
            self.opening
                .extend(found.bias.iter().flat_map(|bias| bias.to_le_bytes()));
        }
        for number in [place.index, place.leaves] {
            self.opening.extend_from_slice(&number.to_le_bytes());
        }
        self.hashes(&place.proof.0);
        Ok(())
    }
}

impl<'a, R: Records> Inputs<'a> for Recorder<'a, R> {
    type Error = Missing;

    fn numbers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'a, [f32]>, Missing> {
        let piece = self.ground.words(from, row, &words).map(|(piece, _)| piece);
        self.record(from, piece)?;
        self.view.numbers(from, row, words)
    }

    fn integers(&mut self, from: Source, row: u32, words: Range<u32>) -> Result<Cow<'a, [u32]>, Missing> {
        let piece = self.ground.words(from, row, &words).map(|(piece, _)| piece);
        self.record(from, piece)?;
        self.view.integers(from, row, words)
    }

    fn quanta(&mut self, from: Source, row: u32, values: Range<u32>) -> Result<Cow<'a, [i16]>, Missing> {
        let piece = self.ground.quanta(from, row, &values).map(|(piece, _)| piece);
        self.record(from, piece)?;
        self.view.quanta(from, row, values)
    }

    fn quantized(&mut self, step: u32, row: u32) -> Result<QuantRow<'a>, Missing> {
        let piece = self.ground.quantized(step, row).map(|(piece, ..)| piece);
        self.record(Source::Step(step), piece)?;
        self.view.quantized(step, row)
    }

    fn weights(&mut self, tensor: Tensor, row: u32) -> Result<WeightRow<'a>, Missing> {
        let found = self.view.weights(tensor, row)?;
        self.record_weights(tensor, row, &found)?;
        Ok(found)
    }
}
