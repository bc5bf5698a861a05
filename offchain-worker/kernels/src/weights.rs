//! Weights as a model file has them.

use surety_exact::{Precision, groups};

/// The quantized values of a matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub enum Quanta {
    /// One byte each.
    Int8(Vec<i8>),
    /// Two bytes each.
    Int12(Vec<i16>),
}

impl Default for Quanta {
    fn default() -> Self {
        Self::new(Precision::default())
    }
}

impl Quanta {
    /// Nothing yet.
    pub fn new(precision: Precision) -> Self {
        match precision {
            Precision::Int8 => Self::Int8(Vec::new()),
            Precision::Int12 => Self::Int12(Vec::new()),
        }
    }

    /// int8 or int12.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Int8(_) => Precision::Int8,
            Self::Int12(_) => Precision::Int12,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Int8(q) => q.len(),
            Self::Int12(q) => q.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One row of so many; nothing where there is none.
    pub fn row(&self, width: usize, row: usize) -> Option<Vec<i16>> {
        let range = row.checked_mul(width)?..row.checked_add(1)?.checked_mul(width)?;
        match self {
            Self::Int8(q) => Some(q.get(range)?.iter().map(|q| i16::from(*q)).collect()),
            Self::Int12(q) => q.get(range).map(<[i16]>::to_vec),
        }
    }
}

/// A linear layer: quantized rows, one per output, with a scale per group of inputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Linear {
    /// Width of an activation row.
    pub inputs: usize,
    /// Width of a result row.
    pub outputs: usize,
    /// `[outputs][inputs]`
    pub q: Quanta,
    /// `[outputs][groups(inputs)]`
    pub scales: Vec<f32>,
    /// `[outputs]`
    pub bias: Option<Vec<f32>>,
}

impl Linear {
    /// The weights of one output; nothing where there is no such output.
    pub fn row(&self, output: usize) -> Option<WeightRow> {
        let bias = self.bias.as_ref().map(|bias| bias.get(output).copied());
        let found = row(&self.q, &self.scales, self.inputs, output)?;
        (output < self.outputs).then(|| WeightRow {
            bias: bias.flatten(),
            ..found
        })
    }
}

/// A table of rows to look up: embeddings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Vectors in the table.
    pub rows: usize,
    /// Values in a row.
    pub width: usize,
    /// `[rows][width]`
    pub q: Quanta,
    /// `[rows][groups(width)]`
    pub scales: Vec<f32>,
}

impl Table {
    /// One row; nothing where there is none.
    pub fn row(&self, row_number: usize) -> Option<WeightRow> {
        row(&self.q, &self.scales, self.width, row_number)
    }
}

/// A row of a linear layer or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightRow {
    /// int8 or int12.
    pub precision: Precision,
    /// `[inputs]`
    pub q: Vec<i16>,
    /// `[groups(inputs)]`
    pub scales: Vec<f32>,
    /// Where the layer has biases.
    pub bias: Option<f32>,
}

fn row(q: &Quanta, scales: &[f32], width: usize, row: usize) -> Option<WeightRow> {
    let each = groups(width);
    let of_row = row.checked_mul(each)?..row.checked_add(1)?.checked_mul(each)?;
    Some(WeightRow {
        precision: q.precision(),
        q: q.row(width, row)?,
        scales: scales.get(of_row)?.to_vec(),
        bias: None,
    })
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
