//! A generation, computed again in parts.

use std::sync::Arc;

use surety_kernels::Packed;
use surety_model_trace::{CHUNK_ROWS, Part, Rows, Tensor};
use surety_models::format::{self, Parts};
use surety_types::ContentHash;

use super::{Work, capture::Capture, tensors::of_llama};
use crate::{
    engine::{Sink, report},
    error::EngineError,
    exact::{
        generate::{ExactLlama, Task, count},
        llama::Sequence,
        recheck::Found,
        teacher_forced::{TeacherForced, claimed},
        trace::TopLevel,
    },
};

/// A decoder's task, with an answer that somebody claims.
pub(in crate::exact) struct GenerateWork {
    engine: Arc<ExactLlama>,
    task: Task,
    claimed: Rows,
    /// What goes through the model.
    fed: Vec<u32>,
    units: u32,
    own: Option<TeacherForced>,
}

impl GenerateWork {
    pub(in crate::exact) fn new(
        engine: Arc<ExactLlama>,
        task: Task,
        output: &[u8],
        units: u32,
    ) -> Result<Self, EngineError> {
        let claimed = claimed(&task, output, Some(units));
        Ok(Self {
            fed: engine.fed(&task, &claimed.tokens),
            engine,
            task,
            claimed: Rows::blob(claimed.encode()).ok_or(EngineError::NotInTrace)?,
            units,
            own: None,
        })
    }

    fn own(&mut self, sink: &mut dyn Sink) -> Result<&TeacherForced, EngineError> {
        if self.own.is_none() {
            let output = self.claimed.row(0).unwrap_or_default();
            let own = self
                .engine
                .teacher_forced(&self.task, &output, Some(self.units), sink)?;
            self.own = Some(own);
        }
        self.own.as_ref().ok_or(EngineError::NotInTrace)
    }

    /// One pass over as much as it takes.
    fn states(&self, parts: &[Part], sink: &mut dyn Sink) -> Result<Capture, EngineError> {
        let wanted = parts.iter().filter_map(|part| match part {
            Part::Rows { chunk, stride, .. } => Some((*chunk, *stride)),
            _ => None,
        });
        let chunks = wanted.clone().map(|(chunk, _)| chunk + 1).max().unwrap_or(0);
        let model = &self.engine.model;
        let rows = self.fed.len().min(chunks as usize * CHUNK_ROWS as usize);
        let fed = self.fed.get(..rows).unwrap_or_default();
        self.engine.computed(|on| {
            let mut capture = Capture::new(model.trace_shape(), wanted.clone());
            let mut trace = TopLevel::new(model.trace_shape());
            let mut sequence = Sequence::behind(model, on.kv(rows));
            for chunk in fed.chunks(on.chunk_rows()) {
                report(sink, count(sequence.len()), count(rows))?;
                capture.start_at(count(sequence.len()));
                if sequence.kv().device().is_some() {
                    let both = &mut (&mut capture, &mut trace);
                    self.engine.forward(&mut sequence, chunk, 0, both)?;
                } else {
                    self.engine.forward(&mut sequence, chunk, 0, &mut capture)?;
                }
            }
            // Nothing is said in a dispute that only a device has seen.
            self.engine.recheck(&Found {
                task: &self.task,
                kv: sequence.kv(),
                fed,
                trace: &trace,
                chosen: &[],
            })?;
            Ok(capture)
        })
    }

    fn choices(&mut self, chunk: u32, sink: &mut dyn Sink) -> Result<Option<Rows>, EngineError> {
        let own = self.own(sink)?;
        let of_chunk = own.choices.chunks(CHUNK_ROWS as usize).nth(chunk as usize);
        Ok(of_chunk.map(|choices| Rows::Bytes {
            row_bytes: 4,
            bytes: choices.iter().flat_map(|token| token.to_le_bytes()).collect(),
        }))
    }
}

impl Work for GenerateWork {
    fn leaves(&mut self, sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        self.own(sink).map(|own| own.leaves.clone())
    }

    fn bytes_of_pass(&self) -> Option<usize> {
        let shape = self.engine.model.trace_shape();
        let rows = (0..shape.strides()).filter_map(|stride| shape.row_bytes(stride));
        let row: usize = rows.map(|bytes| bytes as usize).sum();
        Some(row.saturating_mul(self.fed.len()))
    }

    fn rows(&mut self, parts: &[Part], sink: &mut dyn Sink) -> Result<Vec<Option<Rows>>, EngineError> {
        let mut states = self.states(parts, sink)?;
        let mut found = Vec::with_capacity(parts.len());
        for part in parts {
            found.push(match part {
                Part::Input => Rows::blob(self.task.blob.clone()),
                Part::Rows { chunk, stride, .. } => states.take(*chunk, *stride),
                Part::SampledTokens { chunk } => self.choices(*chunk, sink)?,
                Part::Output => Rows::blob(self.own(sink)?.output.clone()),
            });
        }
        Ok(found)
    }

    fn claimed(&self) -> Option<&Rows> {
        Some(&self.claimed)
    }

    fn tensor(&self, tensor: Tensor) -> Option<format::Part<'_, Packed>> {
        of_llama(self.engine.model.weights(), tensor)
    }

    fn parts(&self) -> Parts<'_, Packed> {
        self.engine.model.weights().into()
    }
}
