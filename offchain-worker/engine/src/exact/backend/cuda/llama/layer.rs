//! A decoder's layer in a device's memory.

use std::mem;

use surety_cuda::{Floats, GpuBackend, Kernels, Packed};
use surety_exact::ArithmeticError;
use surety_kernels::Packed as PackedHere;
use surety_model_trace::Op;
use surety_models::weights::LlamaLayer;

use super::super::{
    NormThere, linear,
    shown::{Looking, Shown},
    smoothing,
};

/// As [`LlamaLayer`].
pub(super) struct Layer<M: GpuBackend> {
    pub(super) attention_norm: NormThere<M>,
    pub(super) attention_smoothing: Option<Floats<M>>,
    pub(super) query: Packed<M>,
    pub(super) key: Packed<M>,
    pub(super) value: Packed<M>,
    /// Of queries and of keys.
    pub(super) head_norms: Option<[NormThere<M>; 2]>,
    pub(super) output_smoothing: Option<Floats<M>>,
    pub(super) output: Packed<M>,
    pub(super) mlp_norm: NormThere<M>,
    pub(super) mlp_smoothing: Option<Floats<M>>,
    pub(super) gate: Packed<M>,
    pub(super) up: Packed<M>,
    pub(super) down_smoothing: Option<Floats<M>>,
    pub(super) down: Packed<M>,
}

impl<M: GpuBackend> Layer<M> {
    pub(super) fn new(
        kernels: &mut Kernels<M>,
        layer: &LlamaLayer<PackedHere>,
    ) -> Result<Self, surety_cuda::Error> {
        let head_norms = match &layer.head_norms {
            Some(norms) => Some([
                NormThere::new(kernels, &norms.query)?,
                NormThere::new(kernels, &norms.key)?,
            ]),
            None => None,
        };
        Ok(Self {
            attention_norm: NormThere::new(kernels, &layer.attention_norm)?,
            attention_smoothing: smoothing(kernels, layer.attention_smoothing.as_ref())?,
            query: linear(kernels, &layer.query)?,
            key: linear(kernels, &layer.key)?,
            value: linear(kernels, &layer.value)?,
            head_norms,
            output_smoothing: smoothing(kernels, layer.output_smoothing.as_ref())?,
            output: linear(kernels, &layer.output)?,
            mlp_norm: NormThere::new(kernels, &layer.mlp_norm)?,
            mlp_smoothing: smoothing(kernels, layer.mlp_smoothing.as_ref())?,
            gate: linear(kernels, &layer.gate)?,
            up: linear(kernels, &layer.up)?,
            down_smoothing: smoothing(kernels, layer.down_smoothing.as_ref())?,
            down: linear(kernels, &layer.down)?,
        })
    }

    /// Norms each head of queries and of keys, where the model does. `spare` is written over.
    pub(super) fn norm_heads(
        &self,
        kernels: &mut Kernels<M>,
        [query, key]: [&mut Option<Floats<M>>; 2],
        spare: &mut Option<Floats<M>>,
        (shown, looking): (&mut Shown<M>, Looking<'_>),
    ) -> Result<(), surety_cuda::Error> {
        let Some([of_queries, of_keys]) = &self.head_norms else {
            return Ok(());
        };
        let parts = [
            (Op::NormQuery, of_queries, query, self.query.outputs()),
            (Op::NormKey, of_keys, key, self.key.outputs()),
        ];
        for (op, norm, rows, width) in parts {
            let from = rows.as_ref().ok_or(ArithmeticError::Shape)?;
            let into = kernels.sized(spare, from.len())?;
            norm.normalize(kernels, from, into)?;
            shown.real(kernels, looking, (op, into, width))?;
            mem::swap(rows, spare);
        }
        Ok(())
    }
}
