//! Weights as a model file has them.

use surety_exact::groups;

/// A linear layer: int8 rows, one per output, with a scale per group of inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Linear {
    /// Width of an activation row.
    pub inputs: usize,
    /// Width of a result row.
    pub outputs: usize,
    /// `[outputs][inputs]`
    pub q: Vec<i8>,
    /// `[outputs][groups(inputs)]`
    pub scales: Vec<f32>,
    /// `[outputs]`
    pub bias: Option<Vec<f32>>,
}

impl Linear {
    /// The weights of one output; nothing where there is no such output.
    pub fn row(&self, output: usize) -> Option<WeightRow> {
        let bias = self.bias.as_ref().map(|bias| bias.get(output).copied());
        let (q, scales) = row(&self.q, &self.scales, self.inputs, output)?;
        (output < self.outputs).then(|| WeightRow {
            q: q.to_vec(),
            scales: scales.to_vec(),
            bias: bias.flatten(),
        })
    }
}

/// A table of rows to look up: embeddings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// How many rows.
    pub rows: usize,
    /// Values in a row.
    pub width: usize,
    /// `[rows][width]`
    pub q: Vec<i8>,
    /// `[rows][groups(width)]`
    pub scales: Vec<f32>,
}

impl Table {
    /// One row; nothing where there is none.
    pub fn row(&self, row_number: usize) -> Option<WeightRow> {
        let (q, scales) = row(&self.q, &self.scales, self.width, row_number)?;
        Some(WeightRow {
            q: q.to_vec(),
            scales: scales.to_vec(),
            bias: None,
        })
    }
}

/// A row of a linear layer or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightRow {
    /// `[inputs]`
    pub q: Vec<i8>,
    /// `[groups(inputs)]`
    pub scales: Vec<f32>,
    /// Where the layer has biases.
    pub bias: Option<f32>,
}

fn row<'a>(q: &'a [i8], scales: &'a [f32], width: usize, row: usize) -> Option<(&'a [i8], &'a [f32])> {
    let of = |each: usize| Some(row.checked_mul(each)?..row.checked_add(1)?.checked_mul(each)?);
    Some((q.get(of(width)?)?, scales.get(of(groups(width))?)?))
}

/// Layer norm (with a bias) or RMS norm (without).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Norm {
    /// A factor per column.
    pub weight: Vec<f32>,
    /// A term per column.
    pub bias: Option<Vec<f32>>,
    /// Added to the variance.
    pub epsilon: f32,
}
