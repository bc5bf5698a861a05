//! Launches as numbers: all that tells one from others, and all that it takes to give it again.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, Weak, atomic::Ordering},
};

use super::GraphMemory;
use crate::backend::{Argument, Shape};

/// Pieces of memory of which none is looked for that is gone.
const PIECES_MIN: usize = 1 << 10;

/// Names of kernels, each with a number of its own.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<String, u64>,
    names: Vec<String>,
}

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u64;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: u64) -> Option<&str> {
        let number = usize::try_from(number).ok()?;
        self.names.get(number).map(String::as_str)
    }
}

/// Pieces by their numbers.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    pieces: HashMap<u64, Weak<T>>,
    next: u64,
    /// With so many of them those that are gone are forgotten.
    most: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self {
            pieces: HashMap::new(),
            next: 0,
            most: PIECES_MIN,
        }
    }
}

impl<T> Pieces<T> {
    pub(super) fn add(&mut self, memory: &Arc<T>) -> u64 {
        if self.pieces.len() >= self.most {
            self.pieces.retain(|_, piece| piece.strong_count() > 0);
            self.most = PIECES_MIN.max(2 * self.pieces.len());
        }
        let number = self.next;
        self.next += 1;
        self.keep(number, memory);
        number
    }

    pub(super) fn keep(&mut self, number: u64, memory: &Arc<T>) {
        self.pieces.insert(number, Arc::downgrade(memory));
    }

    pub(super) fn forget(&mut self, number: u64) {
        self.pieces.remove(&number);
    }

    fn get(&self, number: u64) -> Option<Arc<T>> {
        self.pieces.get(&number)?.upgrade()
    }
}

/// The numbers that tell an argument's kind.
const MEMORY: u64 = 0;
const TABLE_OF: u64 = 1;
const NULL: u64 = 2;
const WORD: u64 = 3;
const LONG: u64 = 4;
const REAL: u64 = 5;

/// Adds the words of a launch to those of a list: all that tells it from others, and all that it takes to
/// give it.
pub(super) fn write<T>(
    (kernel, shape): (u64, Shape),
    arguments: &[Argument<'_, GraphMemory<T>>],
    (list, words): (u64, &mut Vec<u64>),
) {
    let number = |piece: &GraphMemory<T>| {
        piece.named_by.store(list, Ordering::Relaxed);
        piece.number
    };
    let [x, y, z] = shape.grid.map(u64::from);
    words.extend([kernel, x, y, z, u64::from(shape.block), arguments.len() as u64]);
    for argument in arguments {
        match argument {
            Argument::Memory(piece) => words.extend([MEMORY, number(piece)]),
            Argument::Table(pieces) => {
                words.extend([TABLE_OF, pieces.len() as u64]);
                words.extend(pieces.iter().map(|piece| number(piece)));
            }
            Argument::Null => words.extend([NULL, 0]),
            Argument::U32(value) => words.extend([WORD, u64::from(*value)]),
            Argument::U64(value) => words.extend([LONG, *value]),
            Argument::F32(value) => words.extend([REAL, u64::from(value.to_bits())]),
        }
    }
}

/// A launch that was read, with the pieces that it names.
pub(super) struct Launch<T> {
    pub(super) kernel: u64,
    pub(super) shape: Shape,
    arguments: Vec<Read>,
    pieces: Vec<Arc<T>>,
}

/// Pieces are the launch's, from this one on.
enum Read {
    Memory(usize),
    Table(Range<usize>),
    Null,
    U32(u32),
    U64(u64),
    F32(f32),
}

impl<T> Launch<T> {
    /// Takes one from the front of the words; nothing where a piece is gone.
    pub(super) fn read(words: &mut &[u64], all: &Pieces<T>) -> Option<Self> {
        let [kernel, x, y, z, block, count] = take(words)?;
        let word = |word: u64| u32::try_from(word).ok();
        let shape = Shape {
            grid: [word(x)?, word(y)?, word(z)?],
            block: word(block)?,
        };
        let (mut arguments, mut pieces) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let [kind, value] = take(words)?;
            let first = pieces.len();
            arguments.push(match kind {
                MEMORY => {
                    pieces.push(all.get(value)?);
                    Read::Memory(first)
                }
                TABLE_OF => {
                    for _ in 0..value {
                        let [number] = take(words)?;
                        pieces.push(all.get(number)?);
                    }
                    Read::Table(first..pieces.len())
                }
                NULL => Read::Null,
                WORD => Read::U32(word(value)?),
                LONG => Read::U64(value),
                _ => Read::F32(f32::from_bits(word(value)?)),
            });
        }
        Some(Self {
            kernel,
            shape,
            arguments,
            pieces,
        })
    }

    pub(super) fn arguments(&self) -> Option<Vec<Argument<'_, T>>> {
        self.arguments
            .iter()
            .map(|argument| self.argument(argument))
            .collect()
    }

    fn argument(&self, of: &Read) -> Option<Argument<'_, T>> {
        Some(match of {
            Read::Memory(at) => Argument::Memory(self.pieces.get(*at)?),
            Read::Table(at) => Argument::Table(
                self.pieces
                    .get(at.clone())?
                    .iter()
                    .map(|piece| &**piece)
                    .collect(),
            ),
            Read::Null => Argument::Null,
            Read::U32(value) => Argument::U32(*value),
            Read::U64(value) => Argument::U64(*value),
            Read::F32(value) => Argument::F32(*value),
        })
    }
}

fn take<const N: usize>(words: &mut &[u64]) -> Option<[u64; N]> {
    let (front, rest) = words.split_first_chunk::<N>()?;
    *words = rest;
    Some(*front)
}
