//! Quantized matrix products.

use surety_exact::{ArithmeticError, GROUP, LANES, Precision, groups};

use crate::{
    Error, Weights,
    backend::{Argument, GpuBackend, Product, Shape},
    kernels::{BLOCK, Floats, GRID_MAX, Kernels, Numbers, fits, optional, size, warps},
    tiles::{Choice, Tiles},
};

/// Outputs are padded to a multiple of this. The source's `PIECE_OUTPUTS`.
const OUTPUTS_STEP: usize = 16;
/// Rows that one thread of the kernel `dots` takes. The source's `TILE`.
const TILE: usize = 8;
/// Most rows for which [`Path::Auto`] takes the kernels for few: those of one of their blocks.
const FEW_ROWS_MAX: usize = 16;
/// A tile is taken where so many of four processors have one: 128 of an H100's 132 are all of them, with
/// 2,048 outputs and 512 rows.
const BUSY_OF_FOUR: usize = 3;
/// Least warps of a block for few rows: a thread for each of its 256 results.
const WARPS_MIN: usize = 8;
/// Products of the same rows that are one launch: queries, keys and values.
const PARTS_MAX: usize = 3;

/// Who computes products. No choice changes a bit: what takes another order is integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// On tensor cores: our kernels for few or for many rows, by how many there are.
    #[default]
    Auto,
    /// Our kernels on tensor cores for few rows.
    Few,
    /// Our kernels on tensor cores for many rows.
    Many,
    /// The vendor's library, through memory, for int8 and where there is one.
    Library,
    /// Ordinary instructions, through memory. Every path takes it where tensor cores do not do: for numbers
    /// of more than 14 bits, which no conversion gives and a hostile file may hold.
    Dots,
}

/// The kernel of a precision.
pub(crate) fn kernel(of_int8: &'static str, of_int12: &'static str, precision: Precision) -> &'static str {
    match precision {
        Precision::Int8 => of_int8,
        Precision::Int12 => of_int12,
    }
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
    narrow: bool,
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
    pub(crate) precision: Precision,
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
    /// Who computes products from now on: for tests and measurements.
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
            narrow: q.are_narrow(),
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
        let by = ["quantize", "quantize12"];
        self.give_rows((rows, None), (by, Argument::Null), (width, smoothing_scale), into)
    }

    /// [`Kernels::quantize`] of `exact::silu(gate) * up`, which takes the place of the gate if it is kept.
    ///
    /// # Errors
    /// Those of [`Kernels::quantize`].
    pub fn swiglu_quantize(
        &mut self,
        (gate, up): (&mut Floats<M>, &Floats<M>),
        is_kept: bool,
        (width, smoothing_scale): (usize, Option<&Floats<M>>),
        into: &mut Rows<M>,
    ) -> Result<(), Error> {
        fits(gate.len == up.len)?;
        let (gate, by) = (&*gate, ["quantize", "quantize12"]);
        let function = (by, Argument::Memory(&up.memory));
        self.give_rows(
            (gate, is_kept.then_some(gate)),
            function,
            (width, smoothing_scale),
            into,
        )
    }

    /// [`Kernels::quantize`] of `exact::gelu` of rows, or of `exact::gelu_tanh`, which takes their place if
    /// it is kept.
    ///
    /// # Errors
    /// Those of [`Kernels::quantize`].
    pub fn gelu_quantize(
        &mut self,
        (rows, is_tanh): (&mut Floats<M>, bool),
        is_kept: bool,
        (width, smoothing_scale): (usize, Option<&Floats<M>>),
        into: &mut Rows<M>,
    ) -> Result<(), Error> {
        let (rows, by) = (&*rows, ["gelu_quantize", "gelu_quantize12"]);
        let function = (by, Argument::U32(u32::from(is_tanh)));
        self.give_rows(
            (rows, is_kept.then_some(rows)),
            function,
            (width, smoothing_scale),
            into,
        )
    }

    /// Rows, and where what comes of their numbers is kept; the kernels that do that, and what they take.
    fn give_rows(
        &mut self,
        (rows, out): (&Floats<M>, Option<&Floats<M>>),
        ([by, by12], function): ([&'static str; 2], Argument<'_, M::Memory>),
        (width, smoothing_scale): (usize, Option<&Floats<M>>),
        into: &mut Rows<M>,
    ) -> Result<(), Error> {
        let count = rows.rows(width)?;
        fits(smoothing_scale.is_none_or(|scale| scale.len == width))?;
        let groups = self.make_room(into, count, width)?;
        let (q, scales) = into.parts()?;
        let arguments = [
            Argument::Memory(&rows.memory),
            function,
            optional(smoothing_scale),
            Argument::U32(size(count)?),
            Argument::U32(size(width)?),
            Argument::U32(size(groups)?),
            optional(out),
            Argument::Memory(q),
            Argument::Memory(scales),
            Argument::Memory(&self.faults),
        ];
        let kernel = kernel(by, by12, into.precision);
        self.machine.launch(kernel, warps(count * groups)?, &arguments)
    }

    /// Room for quantized rows, which it has from now on; the answer is how many groups a row has.
    pub(crate) fn make_room(
        &mut self,
        into: &mut Rows<M>,
        count: usize,
        width: usize,
    ) -> Result<usize, Error> {
        let groups = groups(width);
        let bytes = count * groups * GROUP * into.precision.bytes();
        if into.q.as_ref().is_none_or(|(_, room)| *room < bytes) {
            into.q = None;
            into.q = Some((self.machine.allocate(bytes)?, bytes));
        }
        Self::ensure(&mut self.machine, &mut into.scales, count * groups)?;
        (into.count, into.width) = (count, width);
        Ok(groups)
    }

    /// `out[row][output] = exact::product_cell`.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own. Checked later:
    /// [`ArithmeticError::NotFinite`].
    pub fn product(&mut self, rows: &Rows<M>, weights: &Packed<M>, out: &mut Floats<M>) -> Result<(), Error> {
        self.products(rows, &mut [(weights, out)])
    }

    /// [`Kernels::product`] of the same rows by up to three matrices: one launch where tensor cores do it.
    ///
    /// # Errors
    /// Those of [`Kernels::product`].
    pub fn products(
        &mut self,
        rows: &Rows<M>,
        parts: &mut [(&Packed<M>, &mut Floats<M>)],
    ) -> Result<(), Error> {
        fits((1..=PARTS_MAX).contains(&parts.len()))?;
        for (weights, out) in &*parts {
            fits(rows.width == weights.inputs && rows.precision == weights.precision)?;
            fits(out.len == rows.count * weights.outputs)?;
        }
        let narrow = parts.iter().all(|(weights, _)| weights.narrow);
        match self.path {
            Path::Auto if narrow && rows.count <= FEW_ROWS_MAX => self.few(rows, parts),
            Path::Few if narrow => self.few(rows, parts),
            Path::Auto | Path::Many if narrow => self.many(rows, parts),
            _ => parts
                .iter_mut()
                .try_for_each(|(weights, out)| self.through_memory(rows, weights, out)),
        }
    }

    /// Products of few rows: each warp has two groups or so, and reads both at once.
    fn few(&mut self, rows: &Rows<M>, parts: &mut [(&Packed<M>, &mut Floats<M>)]) -> Result<(), Error> {
        let choice = Choice::of(rows.precision);
        let is_one_piece = rows.count <= choice.eight.rows;
        let tiles = if is_one_piece {
            &choice.eight
        } else {
            &choice.sixteen
        };
        let warps = groups(rows.width).div_ceil(2).clamp(WARPS_MIN, choice.warps_max);
        self.multiply(tiles, warps, rows, parts)
    }

    /// Products of many rows, by the largest tiles that nearly all of the device's processors have one of.
    fn many(&mut self, rows: &Rows<M>, parts: &mut [(&Packed<M>, &mut Floats<M>)]) -> Result<(), Error> {
        let outputs = || parts.iter().map(|(weights, _)| weights.outputs);
        let processors = self.machine.processors();
        let is_enough =
            |tiles: &&Tiles| 4 * tiles.blocks(tiles.full(rows.count), outputs()) >= BUSY_OF_FOUR * processors;
        let choice = Choice::of(rows.precision);
        let tiles = choice.many.iter().find(is_enough).unwrap_or(&choice.smallest);
        let warps = if tiles.outputs > 64 { 8 } else { 4 };
        self.multiply(tiles, warps, rows, parts)
    }

    /// Products on tensor cores, by blocks of so many warps.
    fn multiply(
        &mut self,
        tiles: &Tiles,
        warps: usize,
        rows: &Rows<M>,
        parts: &mut [(&Packed<M>, &mut Floats<M>)],
    ) -> Result<(), Error> {
        let (q, scales) = rows.parts()?;
        let mut arguments = vec![
            Argument::Memory(q),
            Argument::Memory(scales),
            Argument::U32(size(rows.count)?),
            Argument::U32(size(groups(rows.width))?),
        ];
        let outputs = parts.iter().map(|(weights, _)| weights.outputs);
        let blocks = tiles.blocks(rows.count.div_ceil(tiles.rows), outputs);
        for (weights, out) in &*parts {
            arguments.extend([
                Argument::Memory(&weights.q),
                Argument::Memory(&weights.scales),
                optional(weights.bias.as_ref()),
                Argument::Memory(&out.memory),
                Argument::U32(size(weights.outputs)?),
            ]);
        }
        for _ in parts.len()..PARTS_MAX {
            arguments.extend([const { Argument::Null }; 4]);
            arguments.push(Argument::U32(0));
        }
        arguments.push(Argument::Memory(&self.faults));
        let shape = Shape {
            grid: [size(blocks)?, 1, 1],
            block: size(warps * LANES)?,
        };
        self.machine.launch(tiles.kernel, shape, &arguments)
    }

    /// A product whose groups are in memory before they are added up.
    fn through_memory(
        &mut self,
        rows: &Rows<M>,
        weights: &Packed<M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let (groups, stride) = (groups(rows.width), weights.stride());
        fits(groups <= GRID_MAX)?;
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
        let library = self.path == Path::Library && weights.precision == Precision::Int8;
        if library && self.machine.product(&product)? {
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
        let arguments = [
            Argument::Memory(&dots.memory),
            Argument::Memory(scales),
            Argument::Memory(&weights.scales),
            optional(weights.bias.as_ref()),
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
    pub(crate) fn parts(&self) -> Result<(&M::Memory, &M::Memory), ArithmeticError> {
        match (&self.q, &self.scales) {
            (Some((q, _)), Some(scales)) => Ok((q, &scales.memory)),
            _ => Err(ArithmeticError::Shape),
        }
    }
}
