//! Weights as a model file has them.

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
