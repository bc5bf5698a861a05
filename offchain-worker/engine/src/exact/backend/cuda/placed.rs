//! Where a pass's rows stand in their sequences.

use surety_cuda::{GpuBackend, Kernels, Numbers, SequenceRows, Sequences};
use surety_exact::ArithmeticError;

/// The positions of a pass's rows, and how many those are.
pub(super) struct Placed<M: GpuBackend> {
    positions: Option<Numbers<M>>,
    sequences: Option<Sequences<M>>,
    pub(super) count: usize,
}

impl<M: GpuBackend> Default for Placed<M> {
    fn default() -> Self {
        Self {
            positions: None,
            sequences: None,
            count: 0,
        }
    }
}

impl<M: GpuBackend> Placed<M> {
    pub(super) fn positions(&self) -> Result<&Numbers<M>, ArithmeticError> {
        self.positions.as_ref().ok_or(ArithmeticError::Shape)
    }

    pub(super) fn sequences(&self) -> Result<&Sequences<M>, ArithmeticError> {
        self.sequences.as_ref().ok_or(ArithmeticError::Shape)
    }

    /// Those of another pass, in the same memory if that has room: what reads them is given the same address.
    pub(super) fn place(
        &mut self,
        kernels: &mut Kernels<M>,
        positions: &[u32],
        sequences: &[SequenceRows<'_, M>],
    ) -> Result<(), surety_cuda::Error> {
        kernels.numbers_in(&mut self.positions, positions)?;
        kernels.sequences_in(&mut self.sequences, sequences)?;
        self.count = positions.len();
        Ok(())
    }
}
