//! A small model, and a whole trace, in memory: for tests, fuzzing and the benchmarks of the runtime. Behind
//! the feature `testsuite`; no worker and no runtime that is run has it.

use alloc::{collections::BTreeMap, string::String, sync::Arc, vec::Vec};
use core::convert::Infallible;

use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_exact::Precision;
use surety_types::model::{Architecture, ModelFamily};

use crate::{
    Rows,
    compute::Halt,
    delivered::output_word,
    execute::{Missing, View, execute_leaf},
    inputs::WeightRow,
    layout::{Layout, Part},
    output::ClaimedOutput,
    player::Records,
    quanta::quantized_bytes,
    tensors::{Tensor, tensors},
};
use surety_dispute_game::bisection::{CellValue, Length, Shape};
use surety_proofs::{Proof, WeightOpening, content_hash, merkle_root, weight_row_leaf};

/// A model's weights, row by row.
#[derive(Clone, Debug)]
pub struct MemoryModel {
    family: ModelFamily,
    architecture: Architecture,
    /// By name: the place of the first row among all rows, and the rows.
    tensors: BTreeMap<String, (u32, Vec<WeightRow<'static>>)>,
    leaves: Vec<H256>,
}

/// Numbers that follow from a name.
struct Stream {
    block: [u8; 32],
    at: usize,
}

impl Stream {
    fn new(seed: u64, name: &str) -> Self {
        let mut preimage = seed.to_le_bytes().to_vec();
        preimage.extend_from_slice(name.as_bytes());
        Self {
            block: blake2_256(&preimage),
            at: 0,
        }
    }

    fn byte(&mut self) -> u8 {
        if self.at >= self.block.len() {
            self.block = blake2_256(&self.block);
            self.at = 0;
        }
        let byte = self.block.get(self.at).copied().unwrap_or_default();
        self.at = self.at.saturating_add(1);
        byte
    }

    /// Of the precision's range, or one beyond.
    fn value(&mut self, precision: Precision) -> i16 {
        match precision {
            Precision::Int8 => i16::from(self.byte().cast_signed()),
            Precision::Int12 => i16::from_le_bytes([self.byte(), self.byte()]) >> 4,
        }
    }

    /// From -1 to 1.
    fn number(&mut self) -> f32 {
        let value = u16::from_le_bytes([self.byte(), self.byte()]);
        f32::from(value) / 32_768.0 - 1.0
    }
}

impl MemoryModel {
    /// A model of these weights; `row` gives each row of each tensor.
    pub fn new(
        family: ModelFamily,
        architecture: Architecture,
        mut row: impl FnMut(Tensor, u32) -> WeightRow<'static>,
    ) -> Self {
        let named: BTreeMap<String, Tensor> = tensors(family, &architecture)
            .filter_map(|tensor| Some((tensor.name(family)?, tensor)))
            .collect();
        let mut tensors = BTreeMap::new();
        let mut leaves = Vec::new();
        for (name, tensor) in named {
            let first = leaves.len() as u32;
            let rows: Vec<WeightRow<'static>> = (0..tensor.shape(&architecture).rows)
                .map(|number| row(tensor, number))
                .collect();
            for (number, row) in (0..).zip(&rows) {
                let precision = tensor.shape(&architecture).precision;
                leaves.push(weight_row_leaf(
                    name.as_bytes(),
                    number,
                    &quantized_bytes(precision, &row.q),
                    &row.scales,
                    row.bias,
                ));
            }
            tensors.insert(name, (first, rows));
        }
        Self {
            family,
            architecture,
            tensors,
            leaves,
        }
    }

    /// A model of weights that follow from a seed, of the size of real ones. Linear layers have biases.
    pub fn arbitrary(family: ModelFamily, architecture: Architecture, seed: u64) -> Self {
        let dimensions = architecture.clone();
        Self::new(family, architecture, |tensor, row| {
            let shape = tensor.shape(&dimensions);
            let name = alloc::format!("{tensor:?}/{row}");
            let mut stream = Stream::new(seed, &name);
            let q = (0..shape.values).map(|_| stream.value(shape.precision));
            let q: Vec<i16> = q.collect();
            let is_vector = shape.values == 0;
            let scale = |number: f32| {
                if is_vector {
                    1.0 + 0.25 * number
                } else {
                    (0.254 + 0.127 * number) / f32::from(shape.precision.max())
                }
            };
            let scales = (0..shape.scales_of(row).unwrap_or(0)).map(|_| scale(stream.number()));
            let scales: Vec<f32> = scales.collect();
            WeightRow {
                q: q.into(),
                scales: scales.into(),
                bias: shape.biased.then(|| 0.1 * stream.number()),
            }
        })
    }

    /// Its family.
    pub const fn family(&self) -> ModelFamily {
        self.family
    }

    /// Its architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The root that its manifest commits to.
    pub fn weight_root(&self) -> H256 {
        merkle_root(self.leaves.iter().copied())
    }

    /// A row of weights; nothing when there is none.
    pub fn row(&self, tensor: Tensor, row: u32) -> Option<&WeightRow<'static>> {
        self.tensor(tensor)?.1.get(row as usize)
    }

    fn tensor(&self, tensor: Tensor) -> Option<&(u32, Vec<WeightRow<'static>>)> {
        self.tensors.get(&tensor.name(self.family)?)
    }
}

/// Everything that a trace records.
#[derive(Clone, Debug)]
pub struct MemoryTrace {
    pub(crate) model: Arc<MemoryModel>,
    pub(crate) claimed: Option<Rows>,
    pub(crate) rows: Vec<Rows>,
    pub(crate) leaves: Vec<H256>,
}

impl MemoryTrace {
    /// Computes what a claim's trace should be, from the task's input and, with a generation, from the
    /// output as it was claimed. Its last leaf is the output as it should be; where a word has no value it
    /// is another one than the claimed.
    ///
    /// # Errors
    /// [`Missing`] when the input or the output do not fit the layout.
    pub fn compute(
        model: Arc<MemoryModel>,
        layout: &Layout,
        input: Vec<u8>,
        claimed: Option<Vec<u8>>,
    ) -> Result<Self, Missing> {
        let claimed = claimed.and_then(Rows::blob);
        let mut trace = Self {
            model,
            claimed,
            leaves: [content_hash(&input)].into(),
            rows: [Rows::blob(input).ok_or(Missing)?].into(),
        };
        for leaf in 1..layout.leaves().saturating_sub(1) {
            let length = trace.length(layout, leaf).ok_or(Missing)?;
            let plan = layout.plan(leaf, length).ok_or(Missing)?;
            let record = execute_leaf(&plan, &trace)?.pop().ok_or(Missing)?;
            trace.leaves.push(record.leaf());
            trace.rows.push(record);
        }
        let output = trace.own_output(layout)?;
        trace.leaves.push(content_hash(&output));
        trace.rows.push(Rows::blob(output).ok_or(Missing)?);
        Ok(trace)
    }

    fn length(&self, layout: &Layout, leaf: u32) -> Option<u32> {
        match layout.leaf(leaf)?.length {
            Length::Known(length) => Some(length),
            Length::Word { word, most } => {
                let words = self.rows.first()?.integers(0, word..word.checked_add(1)?)?;
                words.first().map(|word| Length::read(word.to_le_bytes(), most))
            }
        }
    }

    fn own_output(&self, layout: &Layout) -> Result<Vec<u8>, Missing> {
        let claimed = self.claimed.as_ref().and_then(|claimed| claimed.row(0));
        let mut bytes = claimed.unwrap_or_default();
        bytes.resize(layout.output_bytes() as usize, 0);
        let mut view = View {
            records: self,
            steps: &[],
        };
        for (cell, word) in (0u32..).zip(bytes.as_chunks_mut::<4>().0) {
            *word = match output_word(layout, cell, &mut view) {
                Ok(CellValue::Word(right)) => right,
                Ok(CellValue::Byte(_)) | Err(Halt::Stop(_)) => return Err(Missing),
                Err(Halt::Arithmetic) => word.map(|byte| !byte),
            };
        }
        Ok(bytes)
    }

    /// The output as it should be.
    pub fn own(&self) -> Option<Vec<u8>> {
        self.rows.last()?.row(0)
    }

    /// The trace's root.
    pub fn root(&self) -> H256 {
        merkle_root(self.leaves.iter().copied())
    }

    /// The tokens that are chosen at the positions of a generation, by which it can be written token by
    /// token.
    pub fn choices(&self, layout: &Layout) -> Vec<u32> {
        let choices = (0u32..)
            .zip(&self.rows)
            .filter(|(leaf, _)| matches!(layout.part(*leaf), Some(Part::SampledTokens { .. })));
        choices
            .flat_map(|(_, rows)| (0..rows.count()).filter_map(|row| rows.integers(row, 0..1)))
            .flatten()
            .collect()
    }
}

impl Records for MemoryTrace {
    type Error = Infallible;

    fn leaves(&mut self) -> Result<&[H256], Infallible> {
        Ok(&self.leaves)
    }

    fn load(&mut self, _: &[u32]) -> Result<(), Infallible> {
        Ok(())
    }

    fn rows(&self, leaf: u32) -> Option<&Rows> {
        self.rows.get(leaf as usize)
    }

    fn output(&self) -> Option<&Rows> {
        self.claimed.as_ref()
    }

    fn weights(&self, tensor: Tensor, row: u32) -> Option<WeightRow<'_>> {
        let row = self.model.row(tensor, row)?;
        Some(WeightRow {
            q: (&row.q[..]).into(),
            scales: (&row.scales[..]).into(),
            bias: row.bias,
        })
    }

    fn weight_opening(&self, tensor: Tensor, row: u32) -> Option<WeightOpening> {
        let (first, _) = self.model.tensor(tensor)?;
        let index = first.checked_add(row)?;
        Some(WeightOpening {
            index,
            leaves: u32::try_from(self.model.leaves.len()).ok()?,
            proof: Proof::new(&self.model.leaves, index)?,
        })
    }
}

/// The output of a generation.
pub fn generation_output(tokens: &[u32], stopped: bool) -> Vec<u8> {
    let finish_reason = if stopped {
        ClaimedOutput::STOP
    } else {
        ClaimedOutput::LENGTH
    };
    ClaimedOutput {
        finish_reason,
        tokens: tokens.into(),
    }
    .encode()
}
