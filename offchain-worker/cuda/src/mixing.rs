//! The last part of attention where blocks of positions were taken by themselves: they are merged.

use surety_exact::ArithmeticError;

use crate::{
    Error,
    attention::{Heads, Quantized, Sight},
    backend::{Argument, GpuBackend},
    kernels::{Floats, Kernels, fits, optional, size, warps},
    product::kernel,
};

/// Who mixes attention's values. No choice changes a bit: blocks of positions are merged in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixing {
    /// By blocks where rows are few and see several blocks, by rows otherwise.
    #[default]
    Auto,
    /// Who has some rows takes a block of positions after the other.
    Rows,
    /// All blocks at once, which are merged then.
    Blocks,
}

/// With fewer blocks of threads for each of a device's processors than this, rows are few: a little more than
/// processors hold at once. Not measured yet.
const TILES: usize = 4;

/// Numbers that `attend` says of a block: the largest score, and the sum of the exponentials.
pub(crate) const STATS: usize = 2;

/// Query rows of which all partial results are kept at a time, or all rows where none are kept.
pub(crate) struct Round {
    pub(crate) base: usize,
    pub(crate) count: usize,
    /// Rows that a block of threads takes at once.
    pub(crate) tile_rows: usize,
    /// Blocks of threads that take the same rows: other heads, or other columns.
    pub(crate) parts: usize,
    /// Blocks of positions that a row sees at most.
    pub(crate) blocks: usize,
    pub(crate) by_blocks: bool,
}

impl<M: GpuBackend> Kernels<M> {
    /// Who mixes attention's values from now on: for tests and measurements.
    pub fn mix_by(&mut self, mixing: Mixing) {
        self.mixing = mixing;
    }

    /// Whether rows that see so many blocks of positions mix by blocks, if they are that many blocks of
    /// threads otherwise.
    pub(crate) fn mixes_blocks(&self, blocks: usize, threads: usize) -> bool {
        match self.mixing {
            Mixing::Auto => blocks > 1 && threads < self.machine.processors().saturating_mul(TILES),
            Mixing::Rows => false,
            Mixing::Blocks => true,
        }
    }

    /// The rest of `exact::attention_row`, once `attend` has left what it has found of each block; of rows
    /// that are all there are, what comes out can be quantized as well.
    pub(crate) fn merge(
        &mut self,
        queries: &Heads<M>,
        sight: &Sight<'_, M>,
        round: &Round,
        out: &mut Floats<M>,
        quantized: Option<Quantized<'_, M>>,
    ) -> Result<(), Error> {
        let width = queries.heads * queries.head_dim;
        let quantized = match quantized {
            Some((smoothing, into)) => {
                fits(smoothing.is_none_or(|scale| scale.len == width))?;
                let groups = self.make_room(into, queries.rows, width)?;
                Some((smoothing, groups, into.parts()?, into.precision))
            }
            None => None,
        };
        let partials = self.partials.as_ref().ok_or(ArithmeticError::Shape)?;
        let stats = self.stats.as_ref().ok_or(ArithmeticError::Shape)?;
        let [spans, _, first, step] = sight.arguments();
        let mut arguments = vec![
            Argument::Memory(&partials.memory),
            Argument::Memory(&stats.memory),
            spans,
            first,
            step,
            Argument::U32(size(round.base)?),
            Argument::U32(size(round.count)?),
            Argument::U32(size(queries.heads)?),
            Argument::U32(size(queries.head_dim)?),
            Argument::U32(size(round.blocks)?),
            Argument::Memory(&out.memory),
        ];
        let Some((smoothing, groups, (q, scales), precision)) = quantized else {
            arguments.push(Argument::Memory(&self.faults));
            return Self::each(&mut self.machine, "merge", round.count * width, &arguments);
        };
        arguments.extend([
            optional(smoothing),
            Argument::U32(size(groups)?),
            Argument::Memory(q),
            Argument::Memory(scales),
            Argument::Memory(&self.faults),
        ]);
        let kernel = kernel("merge_quantize", "merge_quantize12", precision);
        self.machine
            .launch(kernel, warps(round.count * groups)?, &arguments)
    }
}
