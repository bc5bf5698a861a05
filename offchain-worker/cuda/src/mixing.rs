//! The last part of attention: the values of each block of positions are mixed, and the blocks merged.

use surety_exact::{ArithmeticError, blocks};

use crate::{
    Error,
    attention::{Round, Sight},
    backend::{Argument, GpuBackend},
    kernels::{Floats, Kernels, size},
    pages::Paged,
};

/// Who mixes attention's values. No choice changes a bit: blocks of positions are merged in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixing {
    /// By blocks where rows are few and see several blocks, by rows otherwise.
    #[default]
    Auto,
    /// A thread for each element of the output takes a block after the other.
    Rows,
    /// All blocks at once, which are merged then.
    Blocks,
}

/// With fewer threads for each of a device's processors than this, rows are few. Not measured yet.
const MIX_THREADS: usize = 1024;

impl<M: GpuBackend> Kernels<M> {
    /// Who mixes attention's values from now on: for tests and measurements.
    pub fn mix_by(&mut self, mixing: Mixing) {
        self.mixing = mixing;
    }

    /// The rest of `exact::attention_row`, once softmax has left weights for the values.
    pub(crate) fn mix(
        &mut self,
        paged: &Paged<'_, M>,
        sight: &Sight<'_, M>,
        round: &Round,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let head_dim = paged.pages.shape().head_dim;
        let threads = round.count * round.heads * head_dim;
        let is_few = threads < self.machine.processors().saturating_mul(MIX_THREADS);
        let by_blocks = match self.mixing {
            Mixing::Auto => is_few && blocks(sight.reach) > 1,
            Mixing::Rows => false,
            Mixing::Blocks => true,
        };
        if by_blocks {
            self.partials(paged, sight, round)?;
            self.merge(sight, round, head_dim, out)
        } else {
            self.mix_rows(paged, sight, round, out)
        }
    }

    fn partials(&mut self, paged: &Paged<'_, M>, sight: &Sight<'_, M>, round: &Round) -> Result<(), Error> {
        let kept = paged.pages.shape();
        let values = round.count * round.heads * blocks(sight.reach) * kept.head_dim;
        Self::ensure(&mut self.machine, &mut self.partials, values)?;
        let slabs = paged.pages.lock();
        let partials = self.partials.as_ref().ok_or(ArithmeticError::Shape)?;
        let weights = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let stats = self.stats.as_ref().ok_or(ArithmeticError::Shape)?;
        let mut arguments = vec![Argument::Memory(&weights.memory), Argument::Memory(&stats.memory)];
        arguments.extend(sight.within(paged, &slabs));
        arguments.extend([
            Argument::U32(size(round.base)?),
            Argument::U32(size(round.heads)?),
            Argument::U32(size(kept.kv_heads)?),
            Argument::U32(size(kept.head_dim)?),
            Argument::U32(size(sight.reach)?),
            Argument::Memory(&partials.memory),
        ]);
        self.machine
            .launch("partials", round.shape(sight.reach)?, &arguments)
    }

    fn merge(
        &mut self,
        sight: &Sight<'_, M>,
        round: &Round,
        head_dim: usize,
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
            Argument::U32(size(round.heads)?),
            Argument::U32(size(head_dim)?),
            Argument::U32(size(sight.reach)?),
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ];
        let threads = round.count * round.heads * head_dim;
        Self::each(&mut self.machine, "merge", threads, &arguments)
    }

    fn mix_rows(
        &mut self,
        paged: &Paged<'_, M>,
        sight: &Sight<'_, M>,
        round: &Round,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let weights = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let stats = self.stats.as_ref().ok_or(ArithmeticError::Shape)?;
        let (kept, slabs) = (paged.pages.shape(), paged.pages.lock());
        let mut arguments = vec![Argument::Memory(&weights.memory), Argument::Memory(&stats.memory)];
        arguments.extend(sight.within(paged, &slabs));
        arguments.extend([
            Argument::U32(size(round.base)?),
            Argument::U32(size(round.count)?),
            Argument::U32(size(round.heads)?),
            Argument::U32(size(kept.kv_heads)?),
            Argument::U32(size(kept.head_dim)?),
            Argument::U32(size(sight.reach)?),
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ]);
        let threads = round.count * round.heads * kept.head_dim;
        Self::each(&mut self.machine, "mix", threads, &arguments)
    }
}
