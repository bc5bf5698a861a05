//! Weights in the layout of the kernels.
//!
//! Sixteen outputs are a block: `[block][k / 4][16][4]`, so that one line holds the next four weights of each, which
//! is what a 512-bit dot product and a tile's row take. Inputs are padded with zeros to whole [`PAD`]s, outputs to an
//! even number of blocks.

use surety_exact::{groups, Fault, GROUP};

use crate::{
    machine::{Line, Sixteen, LANES},
    weights::{Linear, Table, WeightRow},
};

/// Rows of int8 are padded to a multiple of it: a line, or a group if that is shorter.
pub(crate) const PAD: usize = if GROUP < 64 { GROUP } else { 64 };

/// A weight matrix, ready for [`product`](crate::product).
#[derive(Clone, Debug)]
pub struct Packed {
    inputs: usize,
    outputs: usize,
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
    /// [`Fault::Shape`] when the lengths do not fit together, [`Fault::NotFinite`] for a scale or bias that is not.
    pub fn new(linear: &Linear) -> Result<Self, Fault> {
        let matrix = (linear.inputs, linear.outputs);
        Self::pack(matrix, &linear.q, &linear.scales, linear.bias.as_deref())
    }

    /// Packs a table of embeddings as the matrix that gives logits.
    ///
    /// # Errors
    /// Those of [`Packed::new`].
    pub fn from_table(table: &Table) -> Result<Self, Fault> {
        Self::pack((table.width, table.rows), &table.q, &table.scales, None)
    }

    fn pack(
        (inputs, outputs): (usize, usize),
        q: &[i8],
        scales: &[f32],
        bias: Option<&[f32]>,
    ) -> Result<Self, Fault> {
        let groups = groups(inputs);
        let lengths = [inputs.checked_mul(outputs), groups.checked_mul(outputs)];
        let fits =
            lengths == [Some(q.len()), Some(scales.len())] && bias.is_none_or(|bias| bias.len() == outputs);
        if !fits || inputs == 0 || outputs == 0 {
            return Err(Fault::Shape);
        }
        if !scales
            .iter()
            .chain(bias.into_iter().flatten())
            .all(|value| value.is_finite())
        {
            return Err(Fault::NotFinite);
        }
        let steps = inputs.next_multiple_of(PAD) / 4;
        let blocks = outputs.div_ceil(LANES).next_multiple_of(2);
        let mut packed = Self {
            inputs,
            outputs,
            steps,
            groups,
            lines: vec![Line([0; 64]); blocks * steps],
            scales: vec![Sixteen([0.0; LANES]); blocks * groups],
            bias: vec![Sixteen([0.0; LANES]); blocks],
            biased: bias.is_some(),
        };
        for (output, (q, scales)) in q.chunks(inputs).zip(scales.chunks(groups)).enumerate() {
            let (block, lane) = (output / LANES, output % LANES);
            for (line, quad) in packed.lines[block * steps..].iter_mut().zip(q.chunks(4)) {
                line.0[4 * lane..][..quad.len()].copy_from_slice(quad);
            }
            for (group, scale) in packed.scales[block * groups..].iter_mut().zip(scales) {
                group.0[lane] = *scale;
            }
        }
        for (block, bias) in packed.bias.iter_mut().zip(bias.unwrap_or_default().chunks(LANES)) {
            block.0[..bias.len()].copy_from_slice(bias);
        }
        Ok(packed)
    }

    /// The weights of one output as they were given; nothing where there is no such output.
    pub fn row(&self, output: usize) -> Option<WeightRow> {
        if output >= self.outputs {
            return None;
        }
        let (block, lane) = (output / LANES, output % LANES);
        let lines = self.lines.get(block * self.steps..(block + 1) * self.steps)?;
        let scales = self.scales.get(block * self.groups..(block + 1) * self.groups)?;
        let quads = lines.iter().flat_map(|line| &line.0[4 * lane..4 * lane + 4]);
        Some(WeightRow {
            q: quads.take(self.inputs).copied().collect(),
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

    /// Width of a result row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Pairs of blocks.
    pub(crate) fn pairs(&self) -> usize {
        self.bias.len() / 2
    }
}
