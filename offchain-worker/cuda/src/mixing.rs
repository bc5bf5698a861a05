//! The last part of attention where blocks of positions were taken by themselves: they are merged.

use surety_exact::ArithmeticError;

use crate::{
    Error,
    attention::{Heads, Sight},
    backend::{Argument, GpuBackend},
    kernels::{Floats, Kernels, size},
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

    /// The rest of `exact::attention_row`, once `attend` has left what it has found of each block.
    pub(crate) fn merge(
        &mut self,
        queries: &Heads<M>,
        sight: &Sight<'_, M>,
        round: &Round,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let partials = self.partials.as_ref().ok_or(ArithmeticError::Shape)?;
        let stats = self.stats.as_ref().ok_or(ArithmeticError::Shape)?;
        let [spans, _, first, step] = sight.arguments();
        let arguments = [
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
            Argument::Memory(&self.faults),
        ];
        let threads = round.count * queries.heads * queries.head_dim;
        Self::each(&mut self.machine, "merge", threads, &arguments)
    }
}
