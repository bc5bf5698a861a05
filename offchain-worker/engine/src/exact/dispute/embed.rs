//! Embeddings, computed again in parts.

use std::{collections::BTreeMap, sync::Arc};

use surety_kernels::Packed;
use surety_model_trace::{Part, Rows, Tensor};
use surety_models::format::{self, Parts};
use surety_types::ContentHash;

use super::{Work, capture::Capture, tensors::of_bert};
use crate::{
    engine::{Job, Sink},
    error::EngineError,
    exact::embed::ExactBert,
};

/// A job of an encoder.
pub(in crate::exact) struct EmbedWork {
    engine: Arc<ExactBert>,
    job: Job,
    output: Option<Vec<u8>>,
}

impl EmbedWork {
    /// With the output, where that is known.
    pub(in crate::exact) fn new(engine: Arc<ExactBert>, job: Job, output: Option<Vec<u8>>) -> Self {
        Self { engine, job, output }
    }

    fn output(&mut self, sink: &mut dyn Sink) -> Result<Option<Rows>, EngineError> {
        if self.output.is_none() {
            self.leaves(sink)?;
        }
        Ok(self.output.clone().and_then(Rows::blob))
    }
}

impl Work for EmbedWork {
    fn leaves(&mut self, sink: &mut dyn Sink) -> Result<Vec<ContentHash>, EngineError> {
        let own = self.engine.own(&self.job, sink)?;
        self.output = Some(own.output);
        Ok(own.leaves)
    }

    fn rows(&mut self, parts: &[Part], sink: &mut dyn Sink) -> Result<Vec<Option<Rows>>, EngineError> {
        let mut strides: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for part in parts {
            if let Part::Rows { sequence, stride, .. } = part {
                strides.entry(*sequence).or_default().push(*stride);
            }
        }
        let mut captured = BTreeMap::new();
        for (item, strides) in strides {
            let wanted = strides.into_iter().map(|stride| (0, stride));
            let mut capture = Capture::new(self.engine.trace_shape(), wanted);
            self.engine.look(&self.job, item, &mut capture, sink)?;
            captured.insert(item, capture);
        }
        let mut found = Vec::with_capacity(parts.len());
        for part in parts {
            found.push(match part {
                Part::Input => Rows::blob(self.job.input.clone()),
                Part::Rows { sequence, stride, .. } => {
                    let capture = captured.get_mut(sequence);
                    capture.and_then(|capture| capture.take(0, *stride))
                }
                Part::Output => self.output(sink)?,
                Part::SampledTokens { .. } => None,
            });
        }
        Ok(found)
    }

    fn claimed(&self) -> Option<&Rows> {
        None
    }

    fn tensor(&self, tensor: Tensor) -> Option<format::Part<'_, Packed>> {
        of_bert(self.engine.weights(), tensor)
    }

    fn parts(&self) -> Parts<'_, Packed> {
        self.engine.weights().into()
    }
}
