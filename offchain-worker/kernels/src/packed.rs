//! Weights in the layout of the kernels.

use surety_exact::{groups, Fault};

use crate::weights::{Linear, Table};

/// A weight matrix, ready for [`product`](crate::product).
#[derive(Clone, Debug)]
pub struct Packed {
    pub(crate) linear: Linear,
}

impl Packed {
    /// Packs a linear layer.
    ///
    /// # Errors
    /// [`Fault::Shape`] when the lengths do not fit together.
    pub fn new(linear: &Linear) -> Result<Self, Fault> {
        let lengths = [linear.q.len(), linear.scales.len()];
        if lengths
            != [
                linear.outputs * linear.inputs,
                linear.outputs * groups(linear.inputs),
            ]
        {
            return Err(Fault::Shape);
        }
        Ok(Self {
            linear: linear.clone(),
        })
    }

    /// Packs a table of embeddings as the matrix that gives logits.
    ///
    /// # Errors
    /// [`Fault::Shape`] when the lengths do not fit together.
    pub fn from_table(table: &Table) -> Result<Self, Fault> {
        Self::new(&Linear {
            inputs: table.width,
            outputs: table.rows,
            q: table.q.clone(),
            scales: table.scales.clone(),
            bias: None,
        })
    }

    /// Width of an activation row.
    pub fn inputs(&self) -> usize {
        self.linear.inputs
    }

    /// Width of a result row.
    pub fn outputs(&self) -> usize {
        self.linear.outputs
    }
}
