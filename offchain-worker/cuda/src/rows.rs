//! Operations on rows and single values.

use surety_exact::{LANES, Turns};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    kernels::{Floats, Kernels, Numbers, fits, optional, size, warps},
    product::{Rows, kernel},
    trace::StateInRows,
};

/// Warps of a block that normalizes a row, at most: one for each of its groups, so that few rows take little
/// time.
const NORM_WARPS: usize = 16;
/// Warps of a block that looks for a row's largest number: as many as lanes. The source's.
const GREEDY_WARPS: usize = 32;

/// What rows are normalized with: a layer norm where there is a bias, an RMS norm where there is none.
#[derive(Debug)]
pub struct Norm<'a, M: GpuBackend> {
    /// A factor for each element of a row.
    pub weight: &'a Floats<M>,
    /// What is added to each then.
    pub bias: Option<&'a Floats<M>>,
    /// Added to the mean of the squares.
    pub epsilon: f32,
}

/// Rows to normalize, what is added to them before, and where they are put then in rows of a trace.
pub type NormRows<'a, M> = (
    &'a mut Floats<M>,
    Option<&'a Floats<M>>,
    Option<&'a StateInRows<'a, M>>,
);

impl<M: GpuBackend> Kernels<M> {
    /// `exact::layer_norm_row` or `exact::rms_norm_row` of every row, which are as long as the weight.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] when the parts do not fit together, or the machine's own.
    /// Checked later: not finite.
    pub fn norm(&mut self, rows: &Floats<M>, norm: &Norm<'_, M>, out: &mut Floats<M>) -> Result<(), Error> {
        let width = norm.weight.len;
        let count = rows.rows(width)?;
        fits(norm.bias.is_none_or(|bias| bias.len == width) && out.len == rows.len)?;
        let [weight, bias, epsilon] = norm.arguments();
        let arguments = [
            Argument::Memory(&rows.memory),
            weight,
            bias,
            epsilon,
            Argument::U32(size(count)?),
            Argument::U32(size(width)?),
            Argument::Memory(&out.memory),
            Argument::Memory(&self.faults),
        ];
        self.machine.launch("normalize", warps(count)?, &arguments)
    }

    /// [`Kernels::norm`], then [`Kernels::quantize`] of what it gives, in one launch; before both of them
    /// [`Kernels::add`] to the rows, if something is `added`, and [`Kernels::record`], if they are `traced`.
    /// What the norm gives is kept in `out`, if that is asked for.
    ///
    /// # Errors
    /// Those of all of them.
    pub fn norm_quantize(
        &mut self,
        (rows, added, traced): NormRows<'_, M>,
        norm: &Norm<'_, M>,
        out: Option<&mut Floats<M>>,
        smoothing_scale: Option<&Floats<M>>,
        into: &mut Rows<M>,
    ) -> Result<(), Error> {
        let width = norm.weight.len;
        let count = rows.rows(width)?;
        fits(norm.bias.is_none_or(|bias| bias.len == width))?;
        fits(out.as_ref().is_none_or(|out| out.len == rows.len))?;
        fits(added.is_none_or(|added| added.len == rows.len))?;
        fits(smoothing_scale.is_none_or(|scale| scale.len == width))?;
        let groups = self.make_room(into, count, width)?;
        let (q, scales) = into.parts()?;
        let shape = Shape {
            grid: [size(count)?, 1, 1],
            block: size(groups.min(NORM_WARPS) * LANES)?,
        };
        let [weight, bias, epsilon] = norm.arguments();
        let [traced, traced_at, pitch] = match traced {
            Some(traced) => traced.arguments(count, width)?,
            None => StateInRows::<M>::nowhere(),
        };
        let arguments = [
            Argument::Memory(&rows.memory),
            optional(added),
            traced,
            traced_at,
            pitch,
            weight,
            bias,
            epsilon,
            optional(smoothing_scale),
            Argument::U32(size(width)?),
            Argument::U32(size(groups)?),
            optional(out.as_deref()),
            Argument::Memory(q),
            Argument::Memory(scales),
            Argument::Memory(&self.faults),
        ];
        let kernel = kernel("normalize_quantize", "normalize_quantize12", into.precision);
        self.machine.launch(kernel, shape, &arguments)
    }

    /// `into += other`.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] unless both are of one length, or the machine's own.
    pub fn add(&mut self, into: &mut Floats<M>, other: &Floats<M>) -> Result<(), Error> {
        fits(other.len == into.len)?;
        if into.len == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Memory(&into.memory),
            Argument::Memory(&other.memory),
            Argument::U64(into.len as u64),
        ];
        Self::each(&mut self.machine, "accumulate", into.len, &arguments)
    }

    /// Copies rows of a width, by number.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] for a row that is not there or an output of another size, or
    /// the machine's own.
    pub fn gather(
        &mut self,
        rows: &Floats<M>,
        width: usize,
        numbers: &Numbers<M>,
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        let count = rows.rows(width)?;
        fits((numbers.largest as usize) < count && out.len == numbers.len * width)?;
        if numbers.len == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::Memory(&rows.memory),
            Argument::Memory(&numbers.memory),
            Argument::U32(size(numbers.len)?),
            Argument::U32(size(width)?),
            Argument::Memory(&out.memory),
        ];
        Self::each(&mut self.machine, "gather", out.len, &arguments)
    }

    /// `exact::greedy` of each row of a width, as a `u32`. Rows of numbers that are not finite give any: they
    /// are reported where they were made.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] for an output of another size, or the machine's own.
    pub fn greedy(&mut self, rows: &Floats<M>, width: usize, out: &mut Floats<M>) -> Result<(), Error> {
        let count = rows.rows(width)?;
        fits(out.len == count)?;
        let arguments = [
            Argument::Memory(&rows.memory),
            Argument::U32(size(width)?),
            Argument::Memory(&out.memory),
        ];
        let shape = Shape {
            grid: [size(count)?, 1, 1],
            block: size(GREEDY_WARPS * LANES)?,
        };
        self.machine.launch("greedy", shape, &arguments)
    }

    /// Copies a rotary table to the machine.
    ///
    /// # Errors
    /// The machine's own.
    pub fn turns(&mut self, turns: &[Turns]) -> Result<Floats<M>, Error> {
        let halves = turns
            .iter()
            .flat_map(|turns| [turns.0 as u32, (turns.0 >> 32) as u32]);
        let words: Vec<f32> = halves.map(f32::from_bits).collect();
        self.upload(&words)
    }
}

impl<M: GpuBackend> Norm<'_, M> {
    fn arguments(&self) -> [Argument<'_, M::Memory>; 3] {
        [
            Argument::Memory(&self.weight.memory),
            optional(self.bias),
            Argument::F32(self.epsilon),
        ]
    }
}
