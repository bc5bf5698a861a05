//! From a sequence's states to one vector.

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    kernels::{BLOCK, Floats, Kernels, Spans, fits, size},
};

impl<M: GpuBackend> Kernels<M> {
    /// `exact::mean_pool` of each span of rows: `out` is `[spans][width]`.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] when the parts do not fit together, or the machine's own.
    /// Checked later: not finite.
    pub fn mean_pool(
        &mut self,
        rows: &Floats<M>,
        width: usize,
        spans: &Spans<M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let count = rows.rows(width)?;
        fits(spans.len > 0 && spans.end <= count && out.len == spans.len * width)?;
        let arguments = [
            Argument::Memory(&rows.memory),
            Argument::Memory(&spans.memory),
            Argument::U32(size(spans.len)?),
            Argument::U32(size(width)?),
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ];
        Self::each(&mut self.machine, "mean_pool", out.len, &arguments)
    }

    /// `exact::l2_normalize` of every row of a width, in place.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] when there are no whole rows, or the machine's own. Checked
    /// later: not finite, zero.
    pub fn l2_normalize(&mut self, rows: &mut Floats<M>, width: usize) -> Result<(), Error> {
        let shape = Shape {
            grid: [size(rows.rows(width)?)?, 1, 1],
            block: BLOCK,
        };
        let arguments = [
            Argument::Memory(&rows.memory),
            Argument::U32(size(width)?),
            Argument::Memory(&self.faults),
        ];
        self.machine.launch("l2_normalize", shape, &arguments)
    }
}
