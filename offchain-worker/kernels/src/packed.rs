//! Weights in the layout of the kernels.
//!
//! Sixteen outputs are a block: `[block][k / 4][16][4]`, so that one line holds the next four weights of
//! each, which is what a 512-bit dot product and a tile's row take. Of int12 it is `[block][k / 2][16][2]`,
//! with bytes in the machine's order. Inputs are padded with zeros to whole lines of an activation row
//! ([`PAD`]), outputs to an even number of blocks.

use surety_exact::{ArithmeticError, GROUP, Precision, groups};

use crate::{
    simd::{LANES, Line, Sixteen},
    weights::{Linear, Quanta, Table, WeightRow},
};

/// Rows of int8 are padded to a multiple of it: a line, or a group if that is shorter.
pub(crate) const PAD: usize = if GROUP < 64 { GROUP } else { 64 };

/// Bytes of an output in a line: of four int8 or two int12 values.
const QUAD_BYTES: usize = 4;

/// Bytes of so many values, padded.
pub(crate) fn padded_bytes(precision: Precision, values: usize) -> usize {
    let pad = match precision {
        Precision::Int8 => PAD,
        Precision::Int12 => PAD.min(64 / 2),
    };
    values.next_multiple_of(pad) * precision.bytes()
}

/// A weight matrix, ready for [`product`](crate::product).
#[derive(Clone, Debug)]
pub struct Packed {
    inputs: usize,
    outputs: usize,
    precision: Precision,
    /// Lines in a block.
    pub(crate) steps: usize,
    pub(crate) groups: usize,
    /// `[blocks][steps]`
    pub(crate) lines: Vec<Line>,
    /// `[blocks][groups]`
    pub(crate) scales: Vec<Sixteen>,
    /// `[blocks]`
    pub(crate) bias: Vec<Sixteen>,
    /// Whether that came with the weights; zeros otherwise.
    biased: bool,
}

impl Packed {
    /// Packs a linear layer.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the lengths do not fit together, [`ArithmeticError::NotFinite`] for a
    /// scale or bias that is not.
    pub fn new(linear: &Linear) -> Result<Self, ArithmeticError> {
        let matrix = (linear.inputs, linear.outputs);
        Self::pack(matrix, &linear.q, &linear.scales, linear.bias.as_deref())
    }

    /// Packs a table of embeddings as the matrix that gives logits.
    ///
    /// # Errors
    /// Those of [`Packed::new`].
    pub fn from_table(table: &Table) -> Result<Self, ArithmeticError> {
        Self::pack((table.width, table.rows), &table.q, &table.scales, None)
    }

    fn pack(
        (inputs, outputs): (usize, usize),
        q: &Quanta,
        scales: &[f32],
        bias: Option<&[f32]>,
    ) -> Result<Self, ArithmeticError> {
        let groups = groups(inputs);
        let lengths = [inputs.checked_mul(outputs), groups.checked_mul(outputs)];
        let fits =
            lengths == [Some(q.len()), Some(scales.len())] && bias.is_none_or(|bias| bias.len() == outputs);
        if !fits || inputs == 0 || outputs == 0 {
            return Err(ArithmeticError::Shape);
        }
        if !scales
            .iter()
            .chain(bias.into_iter().flatten())
            .all(|value| value.is_finite())
        {
            return Err(ArithmeticError::NotFinite);
        }
        let steps = padded_bytes(q.precision(), inputs) / QUAD_BYTES;
        let blocks = outputs.div_ceil(LANES).next_multiple_of(2);
        let mut packed = Self {
            inputs,
            outputs,
            precision: q.precision(),
            steps,
            groups,
            lines: vec![Line([0; 64]); blocks * steps],
            scales: vec![Sixteen([0.0; LANES]); blocks * groups],
            bias: vec![Sixteen([0.0; LANES]); blocks],
            biased: bias.is_some(),
        };
        match q {
            Quanta::Int8(q) => packed.lay_out(q, |value| [*value]),
            Quanta::Int12(q) => packed.lay_out(q, |value| value.to_ne_bytes().map(u8::cast_signed)),
        }
        for (output, scales) in scales.chunks(groups).enumerate() {
            let (block, lane) = (output / LANES, output % LANES);
            for (group, scale) in packed.scales[block * groups..].iter_mut().zip(scales) {
                group.0[lane] = *scale;
            }
        }
        for (block, bias) in packed.bias.iter_mut().zip(bias.unwrap_or_default().chunks(LANES)) {
            block.0[..bias.len()].copy_from_slice(bias);
        }
        Ok(packed)
    }

    /// Writes the weights into their lines.
    fn lay_out<Q, const BYTES: usize>(&mut self, q: &[Q], bytes: impl Fn(&Q) -> [i8; BYTES]) {
        for (output, row) in q.chunks(self.inputs).enumerate() {
            let (block, lane) = (output / LANES, output % LANES);
            let lines = self.lines[block * self.steps..].iter_mut();
            for (line, values) in lines.zip(row.chunks(QUAD_BYTES / BYTES)) {
                let into = line.0[QUAD_BYTES * lane..].chunks_exact_mut(BYTES);
                for (into, value) in into.zip(values) {
                    into.copy_from_slice(&bytes(value));
                }
            }
        }
    }

    /// The weights of one output as they were given; nothing where there is no such output.
    pub fn row(&self, output: usize) -> Option<WeightRow> {
        if output >= self.outputs {
            return None;
        }
        let (block, lane) = (output / LANES, output % LANES);
        let lines = self.lines.get(block * self.steps..(block + 1) * self.steps)?;
        let scales = self.scales.get(block * self.groups..(block + 1) * self.groups)?;
        let quads = lines
            .iter()
            .map(|line| &line.0[QUAD_BYTES * lane..][..QUAD_BYTES]);
        let q: Vec<i16> = match self.precision {
            Precision::Int8 => quads.flatten().map(|byte| i16::from(*byte)).collect(),
            Precision::Int12 => quads
                .flat_map(|quad| quad.as_chunks::<2>().0)
                .map(|pair| i16::from_ne_bytes(pair.map(i8::cast_unsigned)))
                .collect(),
        };
        Some(WeightRow {
            precision: self.precision,
            q: q.into_iter().take(self.inputs).collect(),
            scales: scales.iter().map(|scales| scales.0[lane]).collect(),
            bias: self
                .bias
                .get(block)
                .filter(|_| self.biased)
                .map(|bias| bias.0[lane]),
        })
    }

    /// Width of an activation row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// int8 or int12.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Width of a result row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Pairs of blocks.
    pub(crate) fn pairs(&self) -> usize {
        self.bias.len() / 2
    }
}
