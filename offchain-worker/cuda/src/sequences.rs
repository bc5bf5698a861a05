//! Rows of several sequences, each with a cache of its own, in the same launches.

use std::ops::Range;

use surety_exact::{ArithmeticError, BLOCK};

use crate::{
    Error,
    attention::{Cache, Heads, Mask, Sight},
    backend::{GpuBackend, TABLE},
    kernels::{Floats, Kernels, Numbers, Spans, fits, size},
};

/// Rows of one sequence among those of a pass.
#[derive(Clone, Debug)]
pub struct SequenceRows {
    /// How many there are, behind those of the sequences before.
    pub rows: usize,
    /// The position of the first.
    pub first: usize,
    /// Positions that the sequence's caches have room for.
    pub capacity: usize,
}

/// Which rows of a pass are of which sequence, on the machine. All layers use the same.
#[derive(Debug)]
pub struct Sequences<M: GpuBackend> {
    /// What each row sees: the positions up to its own.
    spans: Spans<M>,
    /// For each row the sequence, counted within a launch, and the room of its caches.
    places: Numbers<M>,
    all: Vec<SequenceRows>,
    /// The first row of each, and behind the last.
    starts: Vec<usize>,
}

impl<M: GpuBackend> Sequences<M> {
    fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The rows of some sequences.
    fn rows_of(&self, sequences: &Range<usize>) -> Result<Range<usize>, ArithmeticError> {
        match (self.starts.get(sequences.start), self.starts.get(sequences.end)) {
            (Some(start), Some(end)) => Ok(*start..*end),
            _ => Err(ArithmeticError::Shape),
        }
    }

    /// Rows of a launch's sequences, as far as the caches have the room that the machine was told.
    fn sight<'a>(&'a self, sequences: &[SequenceRows], caches: &[&Cache<M>]) -> Option<Sight<'a, M>> {
        let reach = sequences.iter().map(|sequence| sequence.first + sequence.rows);
        let known = sequences
            .iter()
            .zip(caches)
            .all(|(sequence, cache)| sequence.capacity == cache.capacity);
        known.then(|| Sight {
            spans: Some(&self.spans),
            places: Some(&self.places),
            first: 0,
            step: 0,
            // Kernels look at a row's own end: up to there the reach is room for scores. So it stays the same
            // for a block of positions, and the launches of one token are those of the next.
            reach: reach.max().unwrap_or(0).next_multiple_of(BLOCK),
        })
    }
}

impl<M: GpuBackend> Kernels<M> {
    /// Copies to the machine which rows are of which sequence.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for a sequence without rows or of too many positions, or the machine's own.
    pub fn sequences(&mut self, all: &[SequenceRows]) -> Result<Sequences<M>, Error> {
        let mut space = None;
        self.sequences_in(&mut space, all)?;
        Ok(space.ok_or(ArithmeticError::Shape)?)
    }

    /// The same, into the memory of those that are there, if that has room: [`Kernels::numbers_in`].
    ///
    /// # Errors
    /// Those of [`Kernels::sequences`].
    pub fn sequences_in(
        &mut self,
        space: &mut Option<Sequences<M>>,
        all: &[SequenceRows],
    ) -> Result<(), Error> {
        let (mut spans, mut places, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for (index, sequence) in all.iter().enumerate() {
            let end = sequence.first.checked_add(sequence.rows);
            let end = end.ok_or(ArithmeticError::Shape)?;
            fits(sequence.rows > 0 && end <= sequence.capacity)?;
            let place = [size(index % TABLE)?, size(sequence.capacity)?];
            for position in size(sequence.first)?..size(end)? {
                spans.push(0..position + 1);
                places.extend(place);
            }
            starts.push(spans.len());
        }
        let (before, mut numbers) = match space.take() {
            Some(sequences) => (Some(sequences.spans), Some(sequences.places)),
            None => (None, None),
        };
        let spans = self.spans_in(before, &spans)?;
        self.numbers_in(&mut numbers, &places)?;
        *space = Some(Sequences {
            spans,
            places: numbers.ok_or(ArithmeticError::Shape)?,
            all: all.to_vec(),
            starts,
        });
        Ok(())
    }

    /// Puts each sequence's rows of keys and values behind those of its cache. Where they are there already
    /// they are put there again: the same bits.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when the parts do not fit together, or the machine's own.
    pub fn append_sequences(
        &mut self,
        sequences: &Sequences<M>,
        caches: &mut [&mut Cache<M>],
        keys: &Heads<M>,
        values: &Heads<M>,
    ) -> Result<(), Error> {
        fits(caches.len() == sequences.all.len() && keys.rows == sequences.rows())?;
        for (sequence, cache) in sequences.all.iter().zip(&mut *caches) {
            let end = sequence.first + sequence.rows;
            fits([sequence.first, end].contains(&cache.len) && end <= cache.capacity)?;
            // Until they are put there.
            cache.len = sequence.first;
        }
        for (launch, caches) in caches.chunks_mut(TABLE).enumerate() {
            let from = launch * TABLE;
            let of = sequences.all.get(from..from + caches.len());
            let of = of.ok_or(ArithmeticError::Shape)?;
            let read: Vec<&Cache<M>> = caches.iter().map(|cache| &**cache).collect();
            fits(alike(&read))?;
            match sequences.sight(of, &read) {
                Some(sight) => {
                    let rows = sequences.rows_of(&(from..from + read.len()))?;
                    self.keep(&read, keys, values, rows, &sight)?;
                    for (sequence, cache) in of.iter().zip(caches) {
                        cache.len = sequence.first + sequence.rows;
                    }
                }
                None => {
                    for (index, cache) in caches.iter_mut().enumerate() {
                        let rows = sequences.rows_of(&(from + index..from + index + 1))?;
                        self.append_rows(cache, keys, values, rows)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// [`Kernels::attention`] of each sequence's rows to what its cache has, each to the positions up to its
    /// own.
    ///
    /// # Errors
    /// Those of [`Kernels::attention`].
    pub fn attend_sequences(
        &mut self,
        sequences: &Sequences<M>,
        queries: &Heads<M>,
        caches: &[&Cache<M>],
        out: &mut Floats<M>,
    ) -> Result<(), Error> {
        fits(caches.len() == sequences.all.len() && queries.rows == sequences.rows())?;
        for (sequence, cache) in sequences.all.iter().zip(caches) {
            fits(sequence.first + sequence.rows <= cache.len)?;
        }
        for (launch, caches) in caches.chunks(TABLE).enumerate() {
            let from = launch * TABLE;
            let of = sequences.all.get(from..from + caches.len());
            let of = of.ok_or(ArithmeticError::Shape)?;
            fits(alike(caches))?;
            match sequences.sight(of, caches) {
                Some(sight) => {
                    let rows = sequences.rows_of(&(from..from + caches.len()))?;
                    self.attend(queries, rows, caches, &sight, out)?;
                }
                None => {
                    for (index, (sequence, cache)) in of.iter().zip(caches).enumerate() {
                        let rows = sequences.rows_of(&(from + index..from + index + 1))?;
                        let mask = Mask::Causal {
                            first: sequence.first,
                        };
                        self.attend_rows(queries, rows, cache, mask, out)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether caches have heads of one shape.
fn alike<M: GpuBackend>(caches: &[&Cache<M>]) -> bool {
    let shape = |cache: &Cache<M>| (cache.kv_heads, cache.head_dim);
    caches
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if shape(a) == shape(b)))
}
