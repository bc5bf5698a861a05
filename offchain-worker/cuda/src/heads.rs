//! Heads of queries, keys and values: rotated, and quantized with a scale for each.

use surety_exact::ArithmeticError;

use crate::{
    Error,
    attention::Heads,
    backend::{Argument, GpuBackend},
    kernels::{Floats, Kernels, Numbers, fits, size, warps},
    pages::Cache,
    sequences::Sequences,
    trace::HeadsInRows,
};

/// Queries, keys and values.
const PARTS: usize = 3;

/// Rows of heads, how many heads a row has, and where they go quantized.
pub type HeadRows<'a, M> = (&'a mut Floats<M>, usize, &'a mut Heads<M>);

/// How queries and keys are rotated.
#[derive(Debug)]
pub struct Rotation<'a, M: GpuBackend> {
    /// [`Kernels::turns`]
    pub turns: &'a Floats<M>,
    /// Of each row.
    pub positions: &'a Numbers<M>,
    /// Whether what was rotated takes the place of what was there. Else that is as it was.
    pub keeps: bool,
}

/// Sequences behind whose keys and values those of a pass are put, and in which layer.
pub type Behind<'a, 'b, M> = (&'a Sequences<M>, &'a mut [&'b mut Cache<M>], usize);

/// What a launch takes of a part.
type Part<'a, M> = (&'a <M as GpuBackend>::Memory, &'a Heads<M>);

impl<M: GpuBackend> Kernels<M> {
    /// `exact::quantize_heads` of every row of `heads * head_dim` values.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] when there are no whole rows or a head is too wide, or the
    /// machine's own. Checked later: not finite.
    pub fn quantize_heads(
        &mut self,
        rows: &Floats<M>,
        heads: usize,
        head_dim: usize,
        into: &mut Heads<M>,
    ) -> Result<(), Error> {
        into.make_room(self, rows, (heads, head_dim))?;
        self.give_heads(&[(&rows.memory, into)], (None, None), None)
    }

    /// The same of queries, keys and values of the same rows, in one launch. Before it `exact::rotate_row` of
    /// every head of queries and keys, where there is a rotation. Keys and values are also put into rows of a
    /// trace, if some are `traced`, and `behind` those that a layer of sequences' caches holds, if there are
    /// some. What a pass that failed has left there already is written over.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] when the parts do not fit together, and those of
    /// [`Kernels::quantize_heads`].
    pub fn rotate_quantize(
        &mut self,
        parts: [HeadRows<'_, M>; PARTS],
        head_dim: usize,
        rotation: Option<&Rotation<'_, M>>,
        traced: Option<&HeadsInRows<'_, M>>,
        behind: Option<Behind<'_, '_, M>>,
    ) -> Result<(), Error> {
        let mut given = Vec::with_capacity(PARTS);
        for (rows, heads, into) in parts {
            into.make_room(self, rows, (heads, head_dim))?;
            given.push((&rows.memory, &*into));
        }
        let Some((sequences, caches, layer)) = behind else {
            return self.give_heads(&given, (rotation, traced), None);
        };
        let [_, (_, keys), (_, values)] = given[..] else {
            return Err(ArithmeticError::Shape.into());
        };
        sequences.begin_append(caches, layer, [keys, values])?;
        self.give_heads(&given, (rotation, traced), Some((sequences, layer)))?;
        sequences.end_append(caches, layer);
        Ok(())
    }

    fn give_heads(
        &mut self,
        parts: &[Part<'_, M>],
        (rotation, traced): (Option<&Rotation<'_, M>>, Option<&HeadsInRows<'_, M>>),
        behind: Option<(&Sequences<M>, usize)>,
    ) -> Result<(), Error> {
        let shape = |heads: &Heads<M>| (heads.rows, heads.head_dim);
        let (count, head_dim) = parts.first().map_or((0, 0), |(_, heads)| shape(heads));
        fits(parts.iter().all(|(_, heads)| shape(heads) == (count, head_dim)))?;
        // A turn is two words: as many words as a head has elements.
        let agrees = |by: &Rotation<'_, M>| by.turns.len == head_dim && by.positions.len == count;
        fits(rotation.is_none_or(agrees))?;
        let (mut arguments, mut cells) = (Vec::new(), 0);
        for &(rows, heads) in parts {
            let (q, scales) = heads.memory()?;
            arguments.extend([
                Argument::Memory(rows),
                Argument::U32(size(heads.heads)?),
                Argument::Memory(q),
                Argument::Memory(scales),
            ]);
            cells += count * heads.heads;
        }
        for _ in parts.len()..PARTS {
            arguments.extend([Argument::Null, Argument::U32(0), Argument::Null, Argument::Null]);
        }
        let rotated = rotation.map_or(0, |_| PARTS - 1);
        arguments.extend([
            Argument::U32(size(count)?),
            Argument::U32(size(head_dim)?),
            Argument::U32(size(rotated)?),
            rotation.map_or(Argument::Null, |by| Argument::Memory(&by.turns.memory)),
            rotation.map_or(Argument::Null, |by| Argument::Memory(&by.positions.memory)),
            Argument::U32(u32::from(rotation.is_some_and(|by| by.keeps))),
        ]);
        arguments.extend(match (traced, parts) {
            (Some(rows), [_, (_, keys), (_, values)]) => {
                fits(keys.heads == values.heads)?;
                rows.arguments(count, (keys.heads, head_dim))?
            }
            _ => HeadsInRows::<M>::nowhere(),
        });
        let Some((sequences, layer)) = behind else {
            arguments.extend([
                Argument::Table(Vec::new()),
                Argument::Null,
                Argument::U64(0),
                Argument::U64(0),
                Argument::Null,
                Argument::Null,
                Argument::Memory(&self.faults),
            ]);
            return self.machine.launch("quantize_heads", warps(cells)?, &arguments);
        };
        let (paged, sight) = (sequences.paged(layer), sequences.sight());
        let slabs = paged.pages.lock();
        arguments.extend(paged.arguments(&slabs));
        let [spans, places, ..] = sight.arguments();
        arguments.extend([spans, places, Argument::Memory(&self.faults)]);
        self.machine.launch("quantize_heads", warps(cells)?, &arguments)
    }
}
