//! What a pass shows a probe: gathered on the device, and told when it has left it.

use std::ops::Range;

use surety_cuda::{Departed, Floats, GpuBackend, Heads, Kernels, Landing, Slot, Stage};
use surety_exact::ArithmeticError;
use surety_kernels::Heads as HeadsHere;
use surety_model_trace::{Op, Step};

use crate::exact::{pass::step, probe::Probe};

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
}

/// What is being gathered. Reuse one: it keeps its memory.
pub(super) struct Shown<M: GpuBackend> {
    stage: Stage<M>,
    seen: Vec<Seen>,
}

impl<M: GpuBackend> Default for Shown<M> {
    fn default() -> Self {
        Self {
            stage: Stage::default(),
            seen: Vec::new(),
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

impl Looking<'_> {
    /// Whether a step is looked at.
    pub(super) fn wants(&self, op: Op) -> bool {
        self.probe.wants(step(self.layer, op))
    }
}

impl<M: GpuBackend> Shown<M> {
    /// Forgets what was gathered.
    pub(super) fn clear(&mut self) {
        self.stage.clear();
        self.seen.clear();
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

    /// Gathers rows that are needed here, and are shown if they are wanted.
    pub(super) fn needed(
        &mut self,
        kernels: &mut Kernels<M>,
        looking: Looking<'_>,
        (op, rows, width): (Op, &Floats<M>, usize),
    ) -> Result<Range<usize>, surety_cuda::Error> {
        let step = step(looking.layer, op);
        let at = kernels.stage(rows, &mut self.stage)?;
        if looking.probe.wants(step) {
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
        let step = step(looking.layer, op);
        if looking.probe.wants(step) {
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
    /// Numbers that were gathered.
    pub(super) fn reals(&self, at: &Range<usize>) -> Result<Vec<f32>, ArithmeticError> {
        let bytes = self.bytes.get(at.clone()).ok_or(ArithmeticError::Shape)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }

    /// Shows all of it, in its order.
    pub(super) fn show(&self, probe: &mut dyn Probe) -> Result<(), ArithmeticError> {
        for seen in self.seen {
            match seen {
                Seen::Real { step, width, at } => probe.real(*step, &self.reals(at)?, *width),
                Seen::Heads {
                    step,
                    shape,
                    at: [q, scales],
                } => {
                    let q = self.bytes.get(q.clone()).ok_or(ArithmeticError::Shape)?;
                    let (words, _) = q.as_chunks::<2>();
                    let q: Vec<i16> = words.iter().map(|word| i16::from_le_bytes(*word)).collect();
                    probe.heads(*step, &HeadsHere::from_parts(*shape, &q, self.reals(scales)?)?);
                }
            }
        }
        Ok(())
    }
}
