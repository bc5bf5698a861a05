//! A decoder's layer in a device's memory.

use surety_cuda::{Floats, GpuBackend, Kernels, Packed};
use surety_kernels::Packed as PackedHere;
use surety_models::weights::LlamaLayer;

use super::super::{NormThere, linear, smoothing};

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
}
