//! Rows of several sequences, each with keys and values of its own, in the same launches.

use surety_exact::{ArithmeticError, BLOCK, blocks};

use crate::{
    Error,
    attention::{Heads, Quantized, Sight},
    backend::GpuBackend,
    kernels::{Floats, Kernels, Numbers, Spans, fits, size},
    pages::{Cache, Paged, Pages},
};

/// Rows of one sequence among those of a pass.
#[derive(Debug)]
pub struct SequenceRows<'a, M: GpuBackend> {
    /// Its keys and values, with pages for these rows too: [`Kernels::reserve`].
    pub cache: &'a Cache<M>,
    /// How many there are, behind those of the sequences before.
    pub rows: usize,
    /// The position of the first.
    pub first: usize,
}

/// Which rows of a pass are of which sequence, on the machine. All layers use the same.
#[derive(Debug)]
pub struct Sequences<M: GpuBackend> {
    /// What each row sees: the positions up to its own.
    spans: Spans<M>,
    /// For each row where its sequence's pages begin in the table.
    places: Numbers<M>,
    /// Numbers of the pages of all sequences, one behind the other.
    table: Numbers<M>,
    pages: Pages<M>,
    all: Vec<Told>,
}

/// What the machine was told of a sequence.
#[derive(Debug)]
struct Told {
    first: usize,
    end: usize,
    pages: Vec<u32>,
}

impl<M: GpuBackend> Sequences<M> {
    fn rows(&self) -> usize {
        self.all.iter().map(|told| told.end - told.first).sum()
    }

    /// Whether these are the sequences that the machine was told of, and on the same pages.
    fn are<'a>(&self, caches: impl ExactSizeIterator<Item = &'a Cache<M>>) -> bool
    where
        M: 'a,
    {
        caches.len() == self.all.len()
            && self
                .all
                .iter()
                .zip(caches)
                .all(|(told, cache)| cache.pages.is(&self.pages) && cache.own.starts_with(&told.pages))
    }

    /// Before rows of keys and values are put behind those that a layer of each sequence's cache holds.
    pub(crate) fn begin_append(
        &self,
        caches: &mut [&mut Cache<M>],
        layer: usize,
        heads: [&Heads<M>; 2],
    ) -> Result<(), ArithmeticError> {
        let kept = self.pages.shape();
        let expected = (self.rows(), kept.kv_heads, kept.head_dim);
        fits(self.are(caches.iter().map(|cache| &**cache)))?;
        fits(heads.map(|heads| (heads.rows, heads.heads, heads.head_dim)) == [expected; 2])?;
        for (told, cache) in self.all.iter().zip(caches) {
            let len = cache.lens.get_mut(layer).ok_or(ArithmeticError::Shape)?;
            fits(*len >= told.first)?;
            // Until they are put there.
            *len = told.first;
        }
        Ok(())
    }

    /// Once they are there.
    pub(crate) fn end_append(&self, caches: &mut [&mut Cache<M>], layer: usize) {
        for (told, cache) in self.all.iter().zip(caches) {
            if let Some(len) = cache.lens.get_mut(layer) {
                *len = told.end;
            }
        }
    }

    pub(crate) fn sight(&self) -> Sight<'_, M> {
        Sight {
            spans: Some(&self.spans),
            places: Some(&self.places),
            first: 0,
            step: 0,
            // Kernels look at a row's own end: up to there the reach is room for partial results. So it stays
            // the same for a block of positions, and the launches of one token are those of the next.
            reach: self.spans.reach.next_multiple_of(BLOCK),
            run: self.rows() / self.all.len(),
        }
    }

    pub(crate) fn paged(&self, layer: usize) -> Paged<'_, M> {
        Paged {
            pages: &self.pages,
            table: &self.table,
            layer,
        }
    }
}

impl<M: GpuBackend> Kernels<M> {
    /// Copies to the machine which rows are of which sequence, and on which pages those are.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] without sequences, for one without rows or pages for them, or of other
    /// [`Pages`] than the first, or the machine's own.
    pub fn sequences(&mut self, all: &[SequenceRows<'_, M>]) -> Result<Sequences<M>, Error> {
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
        all: &[SequenceRows<'_, M>],
    ) -> Result<(), Error> {
        let pages = &all.first().ok_or(ArithmeticError::Shape)?.cache.pages;
        let (mut spans, mut places, mut table, mut told) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for sequence in all {
            let end = sequence.first.checked_add(sequence.rows);
            let end = end.ok_or(ArithmeticError::Shape)?;
            fits(sequence.rows > 0 && sequence.cache.pages.is(pages))?;
            let own = sequence.cache.own.get(..blocks(end));
            let own = own.ok_or(ArithmeticError::Shape)?;
            let place = size(table.len())?;
            for position in size(sequence.first)?..size(end)? {
                spans.push(0..position + 1);
                places.push(place);
            }
            table.extend_from_slice(own);
            told.push(Told {
                first: sequence.first,
                end,
                pages: own.to_vec(),
            });
        }
        let (mut row_spans, mut place_numbers, mut page_numbers) = match space.take() {
            Some(before) => (Some(before.spans), Some(before.places), Some(before.table)),
            None => (None, None, None),
        };
        self.spans_in(&mut row_spans, &spans)?;
        self.numbers_in(&mut place_numbers, &places)?;
        self.page_table_in(&mut page_numbers, table)?;
        *space = Some(Sequences {
            spans: row_spans.ok_or(ArithmeticError::Shape)?,
            places: place_numbers.ok_or(ArithmeticError::Shape)?,
            table: page_numbers.ok_or(ArithmeticError::Shape)?,
            pages: pages.clone(),
            all: told,
        });
        Ok(())
    }

    /// [`Kernels::attention`] of each sequence's rows to what a layer of its cache holds, each to the
    /// positions up to its own, all in one launch but for the room that partial results have. What comes out
    /// is also [quantized](Kernels::quantize), if that is asked for.
    ///
    /// # Errors
    /// Those of [`Kernels::attention`].
    pub fn attend_sequences(
        &mut self,
        sequences: &Sequences<M>,
        queries: &Heads<M>,
        caches: &[&Cache<M>],
        layer: usize,
        (out, quantized): (&mut Floats<M>, Option<Quantized<'_, M>>),
    ) -> Result<(), Error> {
        fits(sequences.are(caches.iter().copied()) && queries.rows == sequences.rows())?;
        for (told, cache) in sequences.all.iter().zip(caches) {
            fits(cache.lens.get(layer).is_some_and(|len| told.end <= *len))?;
        }
        let (paged, rows) = (sequences.paged(layer), 0..queries.rows);
        self.attend(queries, rows, &paged, &sequences.sight(), out, quantized)
    }
}
