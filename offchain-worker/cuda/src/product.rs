//! Quantized matrix products.

use surety_exact::{ArithmeticError, GROUP, Precision, groups};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Product, Shape},
    kernels::{BLOCK, Floats, GRID_MAX, Kernels, Numbers, fits, size},
};

/// Outputs are padded to a multiple of this: what tensor cores ask for.
const OUTPUTS_STEP: usize = 16;
/// Rows that one thread of the kernel `dots` takes. The source's `TILE`.
const TILE: usize = 8;
/// Most rows for which [`Path::Auto`] takes our own kernel: reading the weights is then all the work, and the
/// library's tiles of 64 rows and more would be mostly empty. Not measured yet.
const OWN_ROWS_MAX: usize = 16;

/// Who computes the groups' dot products. No choice changes a bit: they are integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// Our kernel for few rows, the library for many if there is one. Products of int12 are always our
    /// kernel's: the library has none.
    #[default]
    Auto,
    /// The vendor's library, if there is one.
    Library,
    /// Our kernel.
    Own,
}

/// Quantized values in the computer's memory.
#[derive(Clone, Copy, Debug)]
pub enum Quanta<'a> {
    /// One byte each.
    Int8(&'a [i8]),
    /// Two bytes each.
    Int12(&'a [i16]),
}

impl Quanta<'_> {
    /// int8 or int12.
    pub fn precision(&self) -> Precision {
        match self {
            Self::Int8(_) => Precision::Int8,
            Self::Int12(_) => Precision::Int12,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Int8(q) => q.len(),
            Self::Int12(q) => q.len(),
        }
    }

    /// Rows of `inputs` values as bytes, each padded with zeros to `padded` values.
    fn padded(&self, inputs: usize, padded: usize) -> Vec<u8> {
        match self {
            Self::Int8(q) => lay_out(q, inputs, padded, |quantum| quantum.to_le_bytes()),
            Self::Int12(q) => lay_out(q, inputs, padded, |quantum| quantum.to_le_bytes()),
        }
    }
}

fn lay_out<Q: Copy, const BYTES: usize>(
    q: &[Q],
    inputs: usize,
    padded: usize,
    bytes: impl Fn(Q) -> [u8; BYTES],
) -> Vec<u8> {
    let mut all = vec![0; q.len() / inputs * padded * BYTES];
    for (into, row) in all.chunks_exact_mut(padded * BYTES).zip(q.chunks_exact(inputs)) {
        for (into, quantum) in into.chunks_exact_mut(BYTES).zip(row) {
            into.copy_from_slice(&bytes(*quantum));
        }
    }
    all
}

/// The kernel of a precision.
fn kernel(of_int8: &'static str, of_int12: &'static str, precision: Precision) -> &'static str {
    match precision {
        Precision::Int8 => of_int8,
        Precision::Int12 => of_int12,
    }
}

/// A quantized matrix or table in the computer's memory.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Columns of `q`.
    pub inputs: usize,
    /// Rows of `q`.
    pub outputs: usize,
    /// `[outputs][inputs]`.
    pub q: Quanta<'a>,
    /// `[outputs][groups(inputs)]`.
    pub scales: &'a [f32],
    /// `[outputs]`.
    pub bias: Option<&'a [f32]>,
}

/// A quantized matrix or table on the machine.
#[derive(Debug)]
pub struct Packed<M: GpuBackend> {
    /// `[padded outputs][padded inputs]`, zeros where padded.
    q: M::Memory,
    /// `[groups][padded outputs]`.
    scales: M::Memory,
    bias: Option<Floats<M>>,
    inputs: usize,
    outputs: usize,
    precision: Precision,
}

impl<M: GpuBackend> Packed<M> {
    /// Columns of the matrix.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Rows of the matrix.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    fn stride(&self) -> usize {
        self.outputs.next_multiple_of(OUTPUTS_STEP)
    }
}

/// Quantized activations on the machine; a buffer to be used again.
#[derive(Debug)]
pub struct Rows<M: GpuBackend> {
    /// `[count][padded width]`, with the bytes it has room for.
    q: Option<(M::Memory, usize)>,
    /// `[count][groups]`.
    scales: Option<Floats<M>>,
    count: usize,
    width: usize,
    precision: Precision,
}

impl<M: GpuBackend> Rows<M> {
    /// Empty, for rows of a precision.
    pub fn new(precision: Precision) -> Self {
        Self {
            precision,
            q: None,
            scales: None,
            count: 0,
            width: 0,
        }
    }
}

impl<M: GpuBackend> Kernels<M> {
    /// Who computes dot products from now on: for tests and measurements.
    pub fn take(&mut self, path: Path) {
        self.path = path;
    }

    /// Copies weights to the machine.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own.
    pub fn pack(&mut self, weights: &Weights<'_>) -> Result<Packed<M>, Error> {
        let Weights {
            inputs,
            outputs,
            q,
            scales,
            bias,
        } = *weights;
        let groups = groups(inputs);
        fits(inputs > 0 && outputs > 0)?;
        fits(inputs.checked_mul(outputs) == Some(q.len()) && scales.len() == outputs * groups)?;
        fits(bias.is_none_or(|bias| bias.len() == outputs))?;
        let (stride, padded) = (outputs.next_multiple_of(OUTPUTS_STEP), groups * GROUP);
        size(stride)?;
        let mut bytes = q.padded(inputs, padded);
        bytes.resize(stride * padded * q.precision().bytes(), 0);
        let mut memory = self.machine.allocate(bytes.len())?;
        self.machine.write(&mut memory, &bytes)?;
        drop(bytes);
        let mut turned = vec![0.0; groups * stride];
        for (output, row) in scales.chunks_exact(groups).enumerate() {
            for (into, scale) in turned.iter_mut().skip(output).step_by(stride).zip(row) {
                *into = *scale;
            }
        }
        let scales = self.upload(&turned)?.memory;
        let bias = bias.map(|bias| self.upload(bias)).transpose()?;
        Ok(Packed {
            q: memory,
            scales,
            bias,
            inputs,
            outputs,
            precision: q.precision(),
        })
    }

    /// Quantizes rows of a width, after multiplying by `smoothing_scale`: `exact::scale_row`,
    /// `exact::quantize_row`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own. Checked later:
    /// [`ArithmeticError::NotFinite`].
    pub fn quantize(
        &mut self,
        rows: &Floats<M>,
        width: usize,
        smoothing_scale: Option<&Floats<M>>,
        into: &mut Rows<M>,
    ) -> Result<(), Error> {
        let count = rows.rows(width)?;
        fits(smoothing_scale.is_none_or(|scale| scale.len == width))?;
        let groups = groups(width);
        let bytes = count * groups * GROUP * into.precision.bytes();
        if into.q.as_ref().is_none_or(|(_, room)| *room < bytes) {
            into.q = None;
            into.q = Some((self.machine.allocate(bytes)?, bytes));
        }
        Self::ensure(&mut self.machine, &mut into.scales, count * groups)?;
        (into.count, into.width) = (count, width);
        let (q, scales) = into.parts()?;
        let shape = Shape {
            grid: [size(count * groups)?, 1, 1],
            block: size(GROUP)?,
        };
        let arguments = [
            Argument::Memory(&rows.memory),
            smoothing_scale.map_or(Argument::Null, |smoothing_scale| {
                Argument::Memory(&smoothing_scale.memory)
            }),
            Argument::U32(size(width)?),
            Argument::U32(size(groups)?),
            Argument::Memory(q),
            Argument::Memory(scales),
            Argument::Memory(&self.faults),
        ];
        let kernel = kernel("quantize", "quantize12", into.precision);
        self.machine.launch(kernel, shape, &arguments)
    }

    /// `out[row][output] = exact::product_cell`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own. Checked later:
    /// [`ArithmeticError::NotFinite`].
    pub fn product(&mut self, rows: &Rows<M>, weights: &Packed<M>, out: &mut Floats<M>) -> Result<(), Error> {
        fits(rows.width == weights.inputs && rows.precision == weights.precision)?;
        fits(out.len == rows.count * weights.outputs)?;
        let (groups, stride) = (groups(rows.width), weights.stride());
        let most = (self.room / (groups * stride)).clamp(1, GRID_MAX);
        Self::ensure(
            &mut self.machine,
            &mut self.scratch,
            most.min(rows.count) * groups * stride,
        )?;
        for first in (0..rows.count).step_by(most) {
            let count = most.min(rows.count - first);
            self.dots(rows, weights, first, count)?;
            self.flush(rows, weights, first, count, out)?;
        }
        Ok(())
    }

    /// The groups' dot products of rows `first .. first + count`, into the scratch.
    fn dots(&mut self, rows: &Rows<M>, weights: &Packed<M>, first: usize, count: usize) -> Result<(), Error> {
        let (q, _) = rows.parts()?;
        let out = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let (groups, stride) = (groups(rows.width), weights.stride());
        let own = match self.path {
            _ if weights.precision == Precision::Int12 => true,
            Path::Auto => count <= OWN_ROWS_MAX,
            Path::Library => false,
            Path::Own => true,
        };
        let step = size(GROUP)?;
        let padded = size(groups * GROUP)?;
        let product = Product {
            a: &weights.q,
            b: q,
            b_from: first * groups * GROUP,
            c: &out.memory,
            m: size(stride)?,
            n: size(count)?,
            k: step,
            a_row: padded,
            a_stride: step,
            b_row: padded,
            b_stride: step,
            c_row: size(stride)?,
            c_stride: (count * stride) as u64,
            batch: size(groups)?,
        };
        if !own && self.machine.product(&product)? {
            return Ok(());
        }
        let blocks = weights.outputs.div_ceil(BLOCK as usize);
        let shape = Shape {
            grid: [size(blocks)?, size(groups)?, size(count.div_ceil(TILE))?],
            block: BLOCK,
        };
        let arguments = [
            Argument::Memory(q),
            Argument::Memory(&weights.q),
            Argument::U32(size(first)?),
            Argument::U32(size(count)?),
            Argument::U32(size(weights.outputs)?),
            Argument::U32(size(groups)?),
            Argument::U32(size(stride)?),
            Argument::Memory(&out.memory),
        ];
        let kernel = kernel("dots", "dots12", weights.precision);
        self.machine.launch(kernel, shape, &arguments)
    }

    /// From the scratch to `out`.
    fn flush(
        &mut self,
        rows: &Rows<M>,
        weights: &Packed<M>,
        first: usize,
        count: usize,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let (_, scales) = rows.parts()?;
        let dots = self.scratch.as_ref().ok_or(ArithmeticError::Shape)?;
        let blocks = weights.outputs.div_ceil(BLOCK as usize);
        let shape = Shape {
            grid: [size(blocks)?, size(count)?, 1],
            block: BLOCK,
        };
        let bias = weights.bias.as_ref();
        let arguments = [
            Argument::Memory(&dots.memory),
            Argument::Memory(scales),
            Argument::Memory(&weights.scales),
            bias.map_or(Argument::Null, |bias| Argument::Memory(&bias.memory)),
            Argument::U32(size(first)?),
            Argument::U32(size(count)?),
            Argument::U32(size(weights.outputs)?),
            Argument::U32(size(groups(rows.width))?),
            Argument::U32(size(weights.stride())?),
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ];
        self.machine.launch("flush", shape, &arguments)
    }

    /// A table's row per token: `out[i][j] = q as f32 * scale`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for a token that the table does not have or an output of another size, or
    /// the machine's own.
    pub fn embed(
        &mut self,
        table: &Packed<M>,
        tokens: &Numbers<M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        fits((tokens.largest as usize) < table.outputs && out.len == tokens.len * table.inputs)?;
        if tokens.len == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Memory(&table.q),
            Argument::Memory(&table.scales),
            Argument::Memory(&tokens.memory),
            Argument::U32(size(tokens.len)?),
            Argument::U32(size(table.inputs)?),
            Argument::U32(size(groups(table.inputs))?),
            Argument::U32(size(table.stride())?),
            Argument::Memory(&out.memory),
        ];
        let kernel = kernel("embed", "embed12", table.precision);
        Self::each(&mut self.machine, kernel, out.len, &arguments)
    }
}

impl<M: GpuBackend> Rows<M> {
    fn parts(&self) -> Result<(&M::Memory, &M::Memory), ArithmeticError> {
        match (&self.q, &self.scales) {
            (Some((q, _)), Some(scales)) => Ok((q, &scales.memory)),
            _ => Err(ArithmeticError::Shape),
        }
    }
}
