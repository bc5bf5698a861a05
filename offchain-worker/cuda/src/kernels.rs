//! What every operation needs: arrays on the machine, and a place for faults.

use std::{
    ops::Range,
    sync::{Mutex, Weak},
};

use surety_exact::ArithmeticError;

use crate::{
    Error,
    backend::{Argument, GpuBackend, Shape},
    pages::Slabs,
};

/// Threads of a block, where the number does not matter: as many as attention's blocks have positions. The
/// source's `BLOCK`.
pub(crate) const BLOCK: u32 = surety_exact::BLOCK as u32;
/// Warps of such a block. The source's `WARPS`.
const WARPS: usize = BLOCK as usize / surety_exact::LANES;
/// Blocks along y or z.
pub(crate) const GRID_MAX: usize = 65_535;
/// The source's bits of `faults`.
const ZERO_NORM: u32 = 2;
/// Dot products or scores in flight, unless said otherwise: 256 MiB.
const ROOM: usize = 1 << 26;

/// An array of `f32` on the machine.
#[derive(Debug)]
pub struct Floats<M: GpuBackend> {
    pub(crate) memory: M::Memory,
    pub(crate) len: usize,
    /// Values that the memory has room for.
    pub(crate) room: usize,
}

impl<M: GpuBackend> Floats<M> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many rows of a width these are.
    pub(crate) fn rows(&self, width: usize) -> Result<usize, ArithmeticError> {
        if width > 0 && self.len > 0 && self.len.is_multiple_of(width) {
            Ok(self.len / width)
        } else {
            Err(ArithmeticError::Shape)
        }
    }
}

/// An array of row numbers, tokens or positions on the machine.
#[derive(Debug)]
pub struct Numbers<M: GpuBackend> {
    pub(crate) memory: M::Memory,
    pub(crate) len: usize,
    pub(crate) largest: u32,
    /// Numbers that the memory has room for.
    room: usize,
    /// What it was told.
    told: Vec<u32>,
}

/// A range of rows per query row or sequence, on the machine.
#[derive(Debug)]
pub struct Spans<M: GpuBackend> {
    pub(crate) memory: M::Memory,
    pub(crate) len: usize,
    /// Length of the longest span.
    pub(crate) reach: usize,
    /// The largest end.
    pub(crate) end: usize,
    /// Numbers that the memory has room for.
    room: usize,
}

/// The exact engine's operations on one machine.
///
/// They return when the work is given, not when it is done. [`Kernels::check`] and [`Kernels::download`]
/// wait, and report a result that is not finite: everything computed since the last check is then void.
#[derive(Debug)]
pub struct Kernels<M: GpuBackend> {
    pub(crate) machine: M,
    pub(crate) faults: M::Memory,
    /// Grows to what the largest operation took: the groups' dot products, or scores.
    pub(crate) scratch: Option<Floats<M>>,
    pub(crate) stats: Option<Floats<M>>,
    pub(crate) partials: Option<Floats<M>>,
    pub(crate) path: crate::Path,
    pub(crate) mixing: crate::Mixing,
    pub(crate) room: usize,
    /// Where sequences have taken pages.
    pub(crate) pools: Vec<Weak<Mutex<Slabs<M::Memory>>>>,
}

impl<M: GpuBackend> Kernels<M> {
    /// Of a machine that is ready.
    ///
    /// # Errors
    /// The machine's own.
    pub fn new(mut machine: M) -> Result<Self, Error> {
        let mut faults = machine.allocate(4)?;
        machine.write(&mut faults, &[0; 4])?;
        let (scratch, stats, partials) = (None, None, None);
        Ok(Self {
            machine,
            faults,
            scratch,
            stats,
            partials,
            path: crate::Path::default(),
            mixing: crate::Mixing::default(),
            room: ROOM,
            pools: Vec::new(),
        })
    }

    /// How many dot products or scores to hold at once, at least those of one row. Operations on more rows
    /// take several rounds, with the same result. It is 2^26 by default, of 4 bytes each.
    pub fn limit(&mut self, values: usize) {
        self.room = values;
    }

    /// An array whose values are unspecified, for results.
    ///
    /// # Errors
    /// The machine's own.
    pub fn floats(&mut self, len: usize) -> Result<Floats<M>, Error> {
        Self::array(&mut self.machine, len)
    }

    /// An array of this length whose values are unspecified: the one that is there, if that has room.
    ///
    /// # Errors
    /// The machine's own.
    pub fn sized<'a>(
        &mut self,
        space: &'a mut Option<Floats<M>>,
        len: usize,
    ) -> Result<&'a mut Floats<M>, Error> {
        if space.as_ref().is_none_or(|space| space.room < len) {
            // The old one first: both may not fit.
            *space = None;
        }
        let floats = match space.take() {
            Some(floats) => floats,
            None => self.floats(len)?,
        };
        Ok(space.insert(Floats { len, ..floats }))
    }

    fn array(machine: &mut M, len: usize) -> Result<Floats<M>, Error> {
        // No allocator gives nothing.
        let memory = machine.allocate(len.max(1) * 4)?;
        Ok(Floats {
            memory,
            len,
            room: len,
        })
    }

    /// Copies values to the machine.
    ///
    /// # Errors
    /// The machine's own.
    pub fn upload(&mut self, values: &[f32]) -> Result<Floats<M>, Error> {
        let mut space = None;
        self.upload_in(&mut space, values)?;
        Ok(space.ok_or(ArithmeticError::Shape)?)
    }

    /// The same, into the memory of the array that is there, if that has room: what reads it is given the
    /// same address again.
    ///
    /// # Errors
    /// The machine's own.
    pub fn upload_in<'a>(
        &mut self,
        space: &'a mut Option<Floats<M>>,
        values: &[f32],
    ) -> Result<&'a mut Floats<M>, Error> {
        let floats = self.sized(space, values.len())?;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.machine.write(&mut floats.memory, &bytes)?;
        Ok(floats)
    }

    /// Copies tokens, positions or row numbers to the machine.
    ///
    /// # Errors
    /// The machine's own.
    pub fn numbers(&mut self, values: &[u32]) -> Result<Numbers<M>, Error> {
        let mut space = None;
        self.numbers_in(&mut space, values)?;
        Ok(space.ok_or(ArithmeticError::Shape)?)
    }

    /// The same, into the memory of those that are there, if that has room: what reads them is given the same
    /// address again.
    ///
    /// # Errors
    /// The machine's own.
    pub fn numbers_in(&mut self, space: &mut Option<Numbers<M>>, values: &[u32]) -> Result<(), Error> {
        if space.as_ref().is_none_or(|space| space.room < values.len()) {
            // The old one first: both may not fit.
            *space = None;
        }
        if space.as_ref().is_some_and(|space| space.told == values) {
            return Ok(());
        }
        let (mut memory, room, mut told) = match space.take() {
            Some(Numbers {
                memory, room, told, ..
            }) => (memory, room, told),
            None => {
                let room = values.len().max(1);
                (self.machine.allocate(room * 4)?, room, Vec::new())
            }
        };
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.machine.write(&mut memory, &bytes)?;
        told.clear();
        told.extend_from_slice(values);
        *space = Some(Numbers {
            memory,
            len: values.len(),
            largest: values.iter().copied().max().unwrap_or(0),
            room,
            told,
        });
        Ok(())
    }

    /// Copies ranges of rows to the machine.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for an empty range, or the machine's own.
    pub fn spans(&mut self, spans: &[Range<u32>]) -> Result<Spans<M>, Error> {
        let mut space = None;
        self.spans_in(&mut space, spans)?;
        Ok(space.ok_or(ArithmeticError::Shape)?)
    }

    /// The same, into the memory of those that are there, if that has room: [`Kernels::numbers_in`].
    ///
    /// # Errors
    /// Those of [`Kernels::spans`].
    pub fn spans_in(&mut self, space: &mut Option<Spans<M>>, spans: &[Range<u32>]) -> Result<(), Error> {
        if spans.iter().any(|span| span.start >= span.end) {
            return Err(ArithmeticError::Shape.into());
        }
        let ends: Vec<u32> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
        let reach = spans.iter().map(|span| span.end - span.start).max();
        let mut numbers = space.take().map(|spans| Numbers {
            memory: spans.memory,
            len: 0,
            largest: 0,
            room: spans.room,
            told: Vec::new(),
        });
        self.numbers_in(&mut numbers, &ends)?;
        let Numbers {
            memory,
            largest,
            room,
            ..
        } = numbers.ok_or(ArithmeticError::Shape)?;
        *space = Some(Spans {
            memory,
            len: spans.len(),
            reach: reach.unwrap_or(0) as usize,
            end: largest as usize,
            room,
        });
        Ok(())
    }

    /// Why the machine works slower than it could, where it knows.
    pub fn slower(&self) -> Option<Error> {
        self.machine.slower()
    }

    /// Waits, and copies values from the machine.
    ///
    /// # Errors
    /// Those of [`Kernels::check`].
    pub fn download(&mut self, floats: &Floats<M>) -> Result<Vec<f32>, Error> {
        self.check()?;
        let mut bytes = vec![0; floats.len * 4];
        self.machine.read(&floats.memory, &mut bytes)?;
        let (values, _) = bytes.as_chunks::<4>();
        Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
    }

    /// Waits for the work given so far, and says whether all of it had a canonical result. Forgets the fault.
    ///
    /// # Errors
    /// [`ArithmeticError::NotFinite`], [`ArithmeticError::ZeroNorm`], or the machine's own.
    pub fn check(&mut self) -> Result<(), Error> {
        let mut bytes = [0; 4];
        self.machine.read(&self.faults, &mut bytes)?;
        let faults = u32::from_le_bytes(bytes);
        if faults == 0 {
            return Ok(());
        }
        self.machine.write(&mut self.faults, &[0; 4])?;
        match faults {
            ZERO_NORM => Err(ArithmeticError::ZeroNorm.into()),
            _ => Err(ArithmeticError::NotFinite.into()),
        }
    }

    /// A kernel with a thread per element.
    pub(crate) fn each(
        machine: &mut M,
        kernel: &str,
        count: usize,
        arguments: &[Argument<'_, M::Memory>],
    ) -> Result<(), Error> {
        let grid = [size(count.div_ceil(BLOCK as usize))?, 1, 1];
        machine.launch(kernel, Shape { grid, block: BLOCK }, arguments)
    }

    /// At least `len` values of working space.
    pub(crate) fn ensure(machine: &mut M, space: &mut Option<Floats<M>>, len: usize) -> Result<(), Error> {
        if space.as_ref().is_none_or(|space| space.len < len) {
            // The old one first: both may not fit.
            *space = None;
            *space = Some(Self::array(machine, len)?);
        }
        Ok(())
    }
}

/// A size as kernels take it; a grid's x has one bit less.
pub(crate) fn size(value: usize) -> Result<u32, ArithmeticError> {
    match i32::try_from(value) {
        Ok(value) => Ok(value.unsigned_abs()),
        Err(_) => Err(ArithmeticError::Shape),
    }
}

/// An operand that may be absent.
pub(crate) fn optional<M: GpuBackend>(floats: Option<&Floats<M>>) -> Argument<'_, M::Memory> {
    floats.map_or(Argument::Null, |floats| Argument::Memory(&floats.memory))
}

/// A warp for each of so many pieces of work.
pub(crate) fn warps(count: usize) -> Result<Shape, ArithmeticError> {
    Ok(Shape {
        grid: [size(count.div_ceil(WARPS))?, 1, 1],
        block: BLOCK,
    })
}

/// Fails unless a condition on shapes holds.
pub(crate) fn fits(condition: bool) -> Result<(), ArithmeticError> {
    if condition {
        Ok(())
    } else {
        Err(ArithmeticError::Shape)
    }
}
