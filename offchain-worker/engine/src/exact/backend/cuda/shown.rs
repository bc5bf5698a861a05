//! What a pass shows a probe: gathered on the device, and told when it has left it.
//!
//! Where all that is looked at are digests of a trace's rows, these are put together and hashed on the
//! device.

use std::ops::Range;

use rayon::prelude::*;
use surety_cuda::{
    Departed, Floats, GpuBackend, Heads, HeadsInRows, Kernels, Landing, Slot, Stage, StateInRows, TraceRows,
    hashes_rows_of,
};
use surety_exact::ArithmeticError;
use surety_kernels::Heads as HeadsHere;
use surety_model_trace::{Op, Step, TraceShape};

use crate::exact::{
    pass::step,
    probe::Probe,
    trace::{place, place_of_heads},
};

/// Bytes of a digest.
const DIGEST: usize = 32;
/// Numbers whose copy is worth a task of its own.
const TASK: usize = 1 << 15;

/// What one step gave, and where it is among the bytes that leave the device.
enum Seen {
    Real {
        step: Step,
        width: usize,
        at: Range<usize>,
    },
    Heads {
        step: Step,
        shape: (usize, usize),
        at: [Range<usize>; 2],
    },
    /// Of the rows of a stride.
    Digests { stride: u32, at: Range<usize> },
}

/// What is being gathered. Reuse one: it keeps its memory.
pub(super) struct Shown<M: GpuBackend> {
    stage: Stage<M>,
    seen: Vec<Seen>,
    /// Rows that are hashed at the end of the pass, and how many each stride has: none, if none are.
    rows: TraceRows<M>,
    hashed: Vec<usize>,
}

impl<M: GpuBackend> Default for Shown<M> {
    fn default() -> Self {
        Self {
            stage: Stage::default(),
            seen: Vec::new(),
            rows: TraceRows::default(),
            hashed: Vec::new(),
        }
    }
}

/// What has left the device, or is on its way.
pub(super) struct Left<L: Landing> {
    departed: Departed<L>,
    seen: Vec<Seen>,
}

/// What is here.
pub(super) struct Arrived<'a> {
    bytes: &'a [u8],
    seen: &'a [Seen],
}

/// Who looks on, and at which layer.
#[derive(Clone, Copy)]
pub(super) struct Looking<'a> {
    pub(super) probe: &'a dyn Probe,
    pub(super) layer: usize,
}

impl<'a> Looking<'a> {
    /// The same who looks at the layer before, if there is one.
    pub(super) fn layer_before(&self) -> Option<Self> {
        let layer = self.layer.checked_sub(1)?;
        Some(Self { layer, ..*self })
    }

    /// Whether what a step gave is shown. Nothing is where rows are hashed here.
    pub(super) fn wants(&self, op: Op) -> bool {
        self.hashed().is_none() && self.probe.wants(step(self.layer, op))
    }

    /// How the rows are cut that are hashed here, if nothing else is looked at.
    fn hashed(&self) -> Option<&'a TraceShape> {
        let shape = self.probe.digests_of()?;
        // No row is longer than those of the first stride.
        hashes_rows_of(shape.row_bytes(0)? as usize).then_some(shape)
    }
}

impl<M: GpuBackend> Shown<M> {
    /// Forgets what was gathered.
    pub(super) fn clear(&mut self) {
        self.stage.clear();
        self.seen.clear();
        self.hashed.clear();
    }

    /// Says how many rows go through the model, and how many vectors it gives in the end, if it pools: before
    /// anything is put into rows.
    pub(super) fn begin(
        &mut self,
        kernels: &mut Kernels<M>,
        probe: &dyn Probe,
        (rows, vectors): (usize, usize),
    ) -> Result<(), surety_cuda::Error> {
        let Some(shape) = (Looking { probe, layer: 0 }).hashed() else {
            return Ok(());
        };
        let of = |stride| if shape.pools(stride) { vectors } else { rows };
        self.hashed.extend((0..shape.strides()).map(of));
        let bytes = |stride| shape.row_bytes(stride).unwrap_or_default() as usize;
        let groups = (0..shape.strides()).map(|stride| (of(stride), bytes(stride)));
        kernels.begin_rows(groups, &mut self.rows)
    }

    /// Where a layer's keys and values are put, if rows that they are in are hashed here.
    pub(super) fn heads_in_rows(&self, looking: Looking<'_>) -> Option<HeadsInRows<'_, M>> {
        let shape = looking.hashed()?;
        let of = |op| place_of_heads(shape, step(looking.layer, op));
        let ((stride, key), _) = of(Op::QuantKey).zip(of(Op::QuantValue))?;
        Some(HeadsInRows {
            rows: &self.rows,
            group: stride as usize,
            heads: key.q.start as usize,
            scales: key.scales.start as usize,
        })
    }

    /// Where what a step gave is put, if it is in rows that are hashed here.
    pub(super) fn state_in_rows(&self, looking: Looking<'_>, op: Op) -> Option<StateInRows<'_, M>> {
        let (stride, place) = place(looking.hashed()?, step(looking.layer, op))?;
        Some(StateInRows {
            rows: &self.rows,
            group: stride as usize,
            at: place.start as usize,
        })
    }

    /// Puts what a step gave there.
    pub(super) fn record(
        &self,
        kernels: &mut Kernels<M>,
        looking: Looking<'_>,
        (op, rows, width): (Op, &Floats<M>, usize),
    ) -> Result<(), surety_cuda::Error> {
        match self.state_in_rows(looking, op) {
            Some(into) => kernels.record(rows, width, &into),
            None => Ok(()),
        }
    }

    /// Gathers rows, if they are wanted.
    pub(super) fn real(
        &mut self,
        kernels: &mut Kernels<M>,
        looking: Looking<'_>,
        (op, rows, width): (Op, &Floats<M>, usize),
    ) -> Result<(), surety_cuda::Error> {
        if looking.wants(op) {
            self.needed(kernels, looking, (op, rows, width))?;
        }
        Ok(())
    }

    /// Gathers what is needed here, and not shown.
    pub(super) fn gather(
        &mut self,
        kernels: &mut Kernels<M>,
        rows: &Floats<M>,
    ) -> Result<Range<usize>, surety_cuda::Error> {
        kernels.stage(rows, &mut self.stage)
    }

    /// Gathers rows that are needed here, and are shown if they are wanted.
    pub(super) fn needed(
        &mut self,
        kernels: &mut Kernels<M>,
        looking: Looking<'_>,
        (op, rows, width): (Op, &Floats<M>, usize),
    ) -> Result<Range<usize>, surety_cuda::Error> {
        let step = step(looking.layer, op);
        let at = kernels.stage(rows, &mut self.stage)?;
        if looking.wants(op) {
            let at = at.clone();
            self.seen.push(Seen::Real { step, width, at });
        }
        Ok(at)
    }

    /// Gathers quantized heads, if they are wanted.
    pub(super) fn heads(
        &mut self,
        kernels: &mut Kernels<M>,
        looking: Looking<'_>,
        (op, heads, shape): (Op, &Heads<M>, (usize, usize)),
    ) -> Result<(), surety_cuda::Error> {
        if looking.wants(op) {
            let step = step(looking.layer, op);
            let at = kernels.stage_heads(heads, &mut self.stage)?;
            self.seen.push(Seen::Heads { step, shape, at });
        }
        Ok(())
    }

    /// Waits for the pass, and has what was gathered leave the device.
    pub(super) fn leave(
        &mut self,
        kernels: &mut Kernels<M>,
        slot: Slot<M::Landing>,
    ) -> Result<Left<M::Landing>, surety_cuda::Error> {
        if !self.hashed.is_empty() {
            let digests = kernels.digest_rows(&self.rows)?;
            let mut at = kernels.stage(digests, &mut self.stage)?;
            for (stride, rows) in (0..).zip(&self.hashed) {
                let end = at.start + rows * DIGEST;
                self.seen.push(Seen::Digests {
                    stride,
                    at: at.start..end,
                });
                at.start = end;
            }
        }
        Ok(Left {
            departed: kernels.leave(&mut self.stage, slot)?,
            seen: std::mem::take(&mut self.seen),
        })
    }
}

impl<L: Landing> Left<L> {
    /// Waits until all of it is there. Others may have the device meanwhile.
    pub(super) fn arrived(&mut self) -> Result<Arrived<'_>, surety_cuda::Error> {
        Ok(Arrived {
            bytes: self.departed.bytes()?,
            seen: &self.seen,
        })
    }
}

impl Arrived<'_> {
    fn part(&self, at: &Range<usize>) -> Result<&[u8], ArithmeticError> {
        self.bytes.get(at.clone()).ok_or(ArithmeticError::Shape)
    }

    /// Numbers that were gathered.
    pub(super) fn reals(&self, at: &Range<usize>) -> Result<Vec<f32>, ArithmeticError> {
        let (words, _) = self.part(at)?.as_chunks::<4>();
        Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }

    /// The same, many of them, in memory that was used before.
    pub(super) fn reals_into(&self, at: &Range<usize>, into: &mut Vec<f32>) -> Result<(), ArithmeticError> {
        let (words, _) = self.part(at)?.as_chunks::<4>();
        into.resize(words.len(), 0.0);
        let parts = into.par_chunks_mut(TASK).zip(words.par_chunks(TASK));
        parts.for_each(|(into, words)| {
            for (into, word) in into.iter_mut().zip(words) {
                *into = f32::from_le_bytes(*word);
            }
        });
        Ok(())
    }

    /// The same of whole numbers.
    pub(super) fn words_into(&self, at: &Range<usize>, into: &mut Vec<u32>) -> Result<(), ArithmeticError> {
        let (words, _) = self.part(at)?.as_chunks::<4>();
        into.clear();
        into.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
        Ok(())
    }

    /// Shows all of it, in its order.
    pub(super) fn show(&self, probe: &mut dyn Probe) -> Result<(), ArithmeticError> {
        for seen in self.seen {
            match seen {
                Seen::Real { step, width, at } => probe.real(*step, &self.reals(at)?, *width),
                Seen::Digests { stride, at } => {
                    probe.digests(*stride, self.part(at)?.as_chunks::<DIGEST>().0);
                }
                Seen::Heads {
                    step,
                    shape,
                    at: [q, scales],
                } => {
                    let (words, _) = self.part(q)?.as_chunks::<2>();
                    let q: Vec<i16> = words.iter().map(|word| i16::from_le_bytes(*word)).collect();
                    probe.heads(*step, &HeadsHere::from_parts(*shape, &q, self.reals(scales)?)?);
                }
            }
        }
        Ok(())
    }
}
