//! Exact models on a CUDA device, or on a program that plays one: weights are uploaded once, activations
//! stay there, and what a pass shows leaves it at its end, in one go.

mod bert;
mod llama;
mod shown;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surety_cuda::{Floats, GpuBackend, Kernels, Packed, Quanta, Rows, Weights};
use surety_exact::{ArithmeticError, Precision};
use surety_kernels::{
    Packed as PackedHere,
    weights::{Norm, Quanta as QuantaHere, Table},
};
use surety_model_trace::Op;

use super::{Backend, Decoder, Encoder, Fault, Standing};
use crate::exact::{bert::BertModel, llama::LlamaModel};
use bert::CudaBert;
use llama::CudaLlama;
use shown::{Looking, Shown};

/// What a model's threads can hand on.
pub trait Machine: GpuBackend<Memory: Send + Sync> + Send + 'static {}

impl<M: GpuBackend<Memory: Send + Sync> + Send + 'static> Machine for M {}

/// One device. Its models take turns, a pass at a time.
pub(super) struct CudaBackend<M: GpuBackend>(Arc<Shared<M>>);

/// What the models of a device share.
struct Shared<M: GpuBackend> {
    kernels: Mutex<Kernels<M>>,
    standing: Standing,
}

impl<M: Machine> CudaBackend<M> {
    /// Of a machine that is ready.
    pub(super) fn new(machine: M, standing: Standing) -> Result<Self, Fault> {
        let kernels = Kernels::new(machine).map_err(|error| standing.fault(error))?;
        let kernels = Mutex::new(kernels);
        Ok(Self(Arc::new(Shared { kernels, standing })))
    }
}

impl<M: Machine> Backend for CudaBackend<M> {
    fn encoder(&self, model: &Arc<BertModel>) -> Result<Arc<dyn Encoder>, Fault> {
        Ok(Arc::new(CudaBert::new(self.0.clone(), model)?))
    }

    fn decoder(&self, model: &Arc<LlamaModel>) -> Result<Arc<dyn Decoder>, Fault> {
        Ok(Arc::new(CudaLlama::new(self.0.clone(), model)?))
    }
}

/// What was computed before a panic is void anyway: a pass begins with nothing of another one's.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a pass. After one that failed, the device has nothing to say of it any more; it is used again only if
/// the fault was the numbers', or memory that others have.
fn pass<M: GpuBackend, T>(
    shared: &Shared<M>,
    run: impl FnOnce(&mut Kernels<M>) -> Result<T, surety_cuda::Error>,
) -> Result<T, Fault> {
    let mut kernels = locked(&shared.kernels);
    let result = run(&mut kernels);
    if result.is_err() {
        // A fault of the numbers is forgotten; one of the machine comes again by itself.
        kernels.check().ok();
    }
    result.map_err(|error| shared.standing.fault(error))
}

/// A normalisation's weights on the device.
struct NormThere<M: GpuBackend> {
    weight: Floats<M>,
    bias: Option<Floats<M>>,
    epsilon: f32,
}

impl<M: GpuBackend> NormThere<M> {
    fn new(kernels: &mut Kernels<M>, norm: &Norm) -> Result<Self, surety_cuda::Error> {
        Ok(Self {
            weight: kernels.upload(&norm.weight)?,
            bias: norm.bias.as_ref().map(|bias| kernels.upload(bias)).transpose()?,
            epsilon: norm.epsilon,
        })
    }

    /// As the device takes it: a layer norm where there is a bias.
    fn there(&self) -> surety_cuda::Norm<'_, M> {
        surety_cuda::Norm {
            weight: &self.weight,
            bias: self.bias.as_ref(),
            epsilon: self.epsilon,
        }
    }

    /// Rows normalized.
    fn normalize(
        &self,
        kernels: &mut Kernels<M>,
        rows: &Floats<M>,
        out: &mut Floats<M>,
    ) -> Result<(), surety_cuda::Error> {
        kernels.norm(rows, &self.there(), out)
    }

    /// Rows normalized and quantized in one launch; what is quantized is kept in `out`, if that is given.
    fn quantize(
        &self,
        kernels: &mut Kernels<M>,
        rows: &Floats<M>,
        out: Option<&mut Floats<M>>,
        (smoothing, into): (Option<&Floats<M>>, &mut Rows<M>),
    ) -> Result<(), surety_cuda::Error> {
        kernels.norm_quantize(rows, &self.there(), out, smoothing, into)
    }
}

/// Uploads a factor for each input, where there are any.
fn smoothing<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    scale: Option<&Vec<f32>>,
) -> Result<Option<Floats<M>>, surety_cuda::Error> {
    scale.map(|scale| kernels.upload(scale)).transpose()
}

/// Uploads a table of rows to look up.
fn table<M: GpuBackend>(kernels: &mut Kernels<M>, table: &Table) -> Result<Packed<M>, surety_cuda::Error> {
    kernels.pack(&Weights {
        inputs: table.width,
        outputs: table.rows,
        q: match &table.q {
            QuantaHere::Int8(q) => Quanta::Int8(q),
            QuantaHere::Int12(q) => Quanta::Int12(q),
        },
        scales: &table.scales,
        bias: None,
    })
}

/// Uploads a matrix.
fn linear<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    packed: &PackedHere,
) -> Result<Packed<M>, surety_cuda::Error> {
    let (mut int8, mut int12, mut scales, mut bias) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for output in 0..packed.outputs() {
        let row = packed.row(output).ok_or(ArithmeticError::Shape)?;
        match packed.precision() {
            // They were packed from as many bits.
            Precision::Int8 => int8.extend(row.q.iter().map(|q| *q as i8)),
            Precision::Int12 => int12.extend(row.q),
        }
        scales.extend(row.scales);
        bias.extend(row.bias);
    }
    kernels.pack(&Weights {
        inputs: packed.inputs(),
        outputs: packed.outputs(),
        q: match packed.precision() {
            Precision::Int8 => Quanta::Int8(&int8),
            Precision::Int12 => Quanta::Int12(&int12),
        },
        scales: &scales,
        bias: (!bias.is_empty()).then_some(&bias[..]),
    })
}

/// A product of what was quantized last.
fn product<'a, M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (rows, count): (&Rows<M>, usize),
    by: &Packed<M>,
    out: &'a mut Option<Floats<M>>,
) -> Result<&'a mut Floats<M>, surety_cuda::Error> {
    let out = kernels.sized(out, count * by.outputs())?;
    kernels.product(rows, by, out)?;
    Ok(out)
}

/// States normalized and quantized; in between they are kept, if somebody looks at them.
fn normed_quantized<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (norm, state, smoothing): (&NormThere<M>, &Floats<M>, Option<&Floats<M>>),
    (normed, rows): (&mut Option<Floats<M>>, &mut Rows<M>),
    (shown, looking, op): (&mut Shown<M>, Looking<'_>, Op),
) -> Result<(), surety_cuda::Error> {
    if !looking.wants(op) {
        return norm.quantize(kernels, state, None, (smoothing, rows));
    }
    let normed = kernels.sized(normed, state.len())?;
    norm.quantize(kernels, state, Some(&mut *normed), (smoothing, rows))?;
    shown.real(kernels, looking, (op, normed, norm.weight.len()))
}

/// Products of the same rows.
fn products<M: GpuBackend, const N: usize>(
    kernels: &mut Kernels<M>,
    rows: &Rows<M>,
    by: [&Packed<M>; N],
    out: [&mut Floats<M>; N],
) -> Result<(), surety_cuda::Error> {
    let mut parts: Vec<_> = by.into_iter().zip(out).collect();
    kernels.products(rows, &mut parts)
}
