//! What is needed here of a pass's last states: some of them, and the likeliest tokens behind others.

use std::ops::Range;

use surety_cuda::{Floats, GpuBackend, Kernels, Numbers, Packed};
use surety_exact::ArithmeticError;

use super::{
    super::{NormThere, product},
    workspace::Workspace,
};

/// Where among the bytes that leave the device is what is needed here.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) states: Range<usize>,
    pub(super) chosen: Range<usize>,
}

/// Which rows of a pass: all of them, or so many, whose numbers are on the device.
#[derive(Clone, Copy)]
pub(super) enum Which {
    All,
    These(usize),
}

/// Tells the device the numbers of some of a pass's rows, unless they are all or none.
pub(super) fn some_of<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    some: impl Iterator<Item = usize>,
    rows: usize,
    into: &mut Option<Numbers<M>>,
) -> Result<Which, surety_cuda::Error> {
    let numbers: Vec<u32> = some
        .map(|row| u32::try_from(row).map_err(|_| ArithmeticError::Shape))
        .collect::<Result<_, _>>()?;
    if numbers.len() == rows {
        return Ok(Which::All);
    }
    if !numbers.is_empty() {
        kernels.numbers_in(into, &numbers)?;
    }
    Ok(Which::These(numbers.len()))
}

/// Some of a pass's states, if there are any: as they are, or gathered.
fn rows_of<'a, M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (state, width): (&'a mut Floats<M>, usize),
    (which, numbers): (Which, &Option<Numbers<M>>),
    into: &'a mut Option<Floats<M>>,
) -> Result<Option<&'a mut Floats<M>>, surety_cuda::Error> {
    match which {
        Which::All => Ok(Some(state)),
        Which::These(0) => Ok(None),
        Which::These(count) => {
            let numbers = numbers.as_ref().ok_or(ArithmeticError::Shape)?;
            let rows = kernels.sized(into, count * width)?;
            kernels.gather(state, width, numbers, rows)?;
            Ok(Some(rows))
        }
    }
}

/// Gathers states of these rows, and the tokens that are chosen behind those.
pub(super) fn gather<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (norm, head): (&NormThere<M>, &Packed<M>),
    workspace: &mut Workspace<M>,
    (needed, choosing): (Which, Which),
    width: usize,
) -> Result<Gathered, surety_cuda::Error> {
    let Workspace {
        state,
        last,
        needed: numbers,
        chooses_of,
        choosing: choosing_numbers,
        logits,
        chosen,
        rows,
        shown,
        ..
    } = workspace;
    let state = state.as_mut().ok_or(ArithmeticError::Shape)?;
    let mut gathered = Gathered::default();
    if let Some(states) = rows_of(kernels, (&mut *state, width), (needed, numbers), last)? {
        gathered.states = shown.gather(kernels, states)?;
    }
    if let Some(states) = rows_of(kernels, (state, width), (choosing, choosing_numbers), chooses_of)? {
        let count = states.len() / width;
        norm.quantize(kernels, (states, None, None), None, (None, rows))?;
        let logits = product(kernels, (rows, count), head, logits)?;
        let chosen = kernels.sized(chosen, count)?;
        kernels.greedy(logits, head.outputs(), chosen)?;
        gathered.chosen = shown.gather(kernels, chosen)?;
    }
    Ok(gathered)
}
