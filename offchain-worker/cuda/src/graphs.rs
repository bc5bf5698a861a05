//! Launches that come again and again in the same order with the same arguments, given to a machine at once.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use surety_exact::ArithmeticError;

use crate::{
    Error,
    backend::{Argument, Capture, GpuBackend, Product, Shape},
};

/// Graphs that are kept: the one that was not used for longest goes first. A batch size takes two, for the
/// two halves of a stage, or six, where a model norms its heads.
const GRAPHS_MAX: usize = 24;
/// Lists of launches that were given once, and are recorded when they come again.
const SEEN_MAX: usize = 64;
/// Fewer launches are not worth a graph.
const LAUNCHES_MIN: usize = 8;
/// More launches than a pass of any model has are no pass.
const LAUNCHES_MAX: usize = 1 << 14;
/// Pieces of memory of which none is looked for that is gone.
const PIECES_MIN: usize = 1 << 10;

/// A piece of memory, and by a number that no other has: a graph is given again only if each of its pieces is
/// there still. One that is dropped while launches that name it are listed is freed with that list.
#[derive(Debug)]
pub struct GraphMemory<T> {
    number: u64,
    memory: Arc<T>,
    /// The last list that names it; 0 before any.
    named_by: AtomicU64,
    dropped: Arc<Mutex<Dropped<T>>>,
}

impl<T> Drop for GraphMemory<T> {
    fn drop(&mut self) {
        let mut dropped = locked(&self.dropped);
        // What named it did so before: who has it now was told after that.
        if self.named_by.load(Ordering::Relaxed) == dropped.list {
            dropped.pieces.push(self.memory.clone());
        }
    }
}

/// Pieces that were dropped, of those that the list of this number names.
#[derive(Debug)]
struct Dropped<T> {
    list: u64,
    pieces: Vec<Arc<T>>,
}

fn locked<T>(dropped: &Mutex<Dropped<T>>) -> MutexGuard<'_, Dropped<T>> {
    dropped.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names of kernels, each with a number of its own.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, u64>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u64;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn name(&self, number: u64) -> Option<&str> {
        let number = usize::try_from(number).ok()?;
        self.names.get(number).map(String::as_str)
    }
}

/// Pieces by their numbers.
#[derive(Debug)]
struct Pieces<T> {
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
    fn add(&mut self, memory: &Arc<T>) -> u64 {
        if self.pieces.len() >= self.most {
            self.pieces.retain(|_, piece| piece.strong_count() > 0);
            self.most = PIECES_MIN.max(2 * self.pieces.len());
        }
        let number = self.next;
        self.next += 1;
        self.pieces.insert(number, Arc::downgrade(memory));
        number
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
fn write<T>(
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
struct Launch<T> {
    kernel: u64,
    shape: Shape,
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
    fn read(words: &mut &[u64], all: &Pieces<T>) -> Option<Self> {
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

/// Launches since the machine was last read from, written to, or asked for memory.
#[derive(Debug, Default)]
struct List {
    words: Vec<u64>,
    launches: usize,
    /// Whether the machine was given them: no graph begins so. Otherwise all of them wait.
    is_given: bool,
    /// Whether it is too long to be kept.
    is_too_long: bool,
    /// A graph that begins with it, by its place.
    follows: Option<usize>,
}

impl List {
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.words.hash(&mut hasher);
        hasher.finish()
    }
}

/// A machine that is given launches as graphs, once they have come for the second time.
///
/// What it computes does not depend on it: a graph is given in place of launches only where each of them is
/// the same, with the same memory and the same numbers. Those launches wait until something is read, written
/// or allocated, and are given then; others are given at once.
#[derive(Debug)]
pub struct Graphs<M: Capture> {
    machine: M,
    is_on: bool,
    /// Why no graphs are made any more.
    refused: Option<Error>,
    names: Names,
    pieces: Pieces<M::Memory>,
    dropped: Arc<Mutex<Dropped<M::Memory>>>,
    /// The number of the list, from 1.
    number: u64,
    list: List,
    /// Hashes of lists that came once, the last one last.
    seen: VecDeque<u64>,
    /// With the words of their lists; the one that was used last is last.
    graphs: VecDeque<(Vec<u64>, M::Graph)>,
}

impl<M: Capture> Graphs<M> {
    /// A machine that is given graphs, or one to which nothing changes.
    pub fn new(machine: M, is_on: bool) -> Self {
        Self {
            machine,
            is_on,
            refused: None,
            names: Names::default(),
            pieces: Pieces::default(),
            dropped: Arc::new(Mutex::new(Dropped {
                list: 1,
                pieces: Vec::new(),
            })),
            number: 1,
            list: List::default(),
            seen: VecDeque::new(),
            graphs: VecDeque::new(),
        }
    }

    /// Gives the machine all launches of some words.
    fn give(&mut self, mut words: &[u64]) -> Result<(), Error> {
        while !words.is_empty() {
            let gone = || Error::Device("memory is gone that a launch names".into());
            let launch = Launch::read(&mut words, &self.pieces).ok_or_else(gone)?;
            let arguments = launch.arguments.iter().map(|argument| launch.argument(argument));
            let arguments: Vec<_> = arguments.collect::<Option<_>>().ok_or_else(gone)?;
            let kernel = self.names.name(launch.kernel).ok_or_else(gone)?;
            self.machine.launch(kernel, launch.shape, &arguments)?;
        }
        Ok(())
    }

    /// Gives the machine all launches that wait, and begins another list.
    fn end_list(&mut self) -> Result<(), Error> {
        let mut given = Ok(());
        if self.list.launches > 0 {
            // Also where something fails: what waits then is nobody's any more.
            let mut list = mem::take(&mut self.list);
            given = self.give_list(&mut list);
            list.words.clear();
            // It keeps its memory.
            self.list.words = list.words;
            self.number += 1;
        }
        let mut dropped = locked(&self.dropped);
        dropped.list = self.number;
        let pieces = mem::take(&mut dropped.pieces);
        // The machine frees them, and may take its time.
        drop(dropped);
        drop(pieces);
        given
    }

    fn give_list(&mut self, list: &mut List) -> Result<(), Error> {
        if !list.is_given {
            let is_it = |(words, _): &(Vec<u64>, M::Graph)| *words == list.words;
            let followed = list
                .follows
                .filter(|place| self.graphs.get(*place).is_some_and(is_it));
            let found = followed.or_else(|| self.graphs.iter().position(is_it));
            if let Some((words, graph)) = found.and_then(|found| self.graphs.remove(found)) {
                match self.machine.replay(&graph) {
                    // It is put into the machine's memory when it is first given. Nothing of it has started,
                    // and its launches need no memory.
                    Err(Error::OutOfMemory(_)) => self.refuse("the device has no memory for it".into()),
                    replayed => {
                        self.graphs.push_back((words, graph));
                        return replayed;
                    }
                }
            }
            self.give(&list.words)?;
        }
        if self.refused.is_some() || list.is_too_long || list.launches < LAUNCHES_MIN {
            return Ok(());
        }
        let hash = list.hash();
        match self.seen.iter().position(|seen| *seen == hash) {
            Some(found) => {
                self.seen.remove(found);
                self.record(mem::take(&mut list.words))
            }
            None => {
                self.seen.push_back(hash);
                if self.seen.len() > SEEN_MAX {
                    self.seen.pop_front();
                }
                Ok(())
            }
        }
    }

    /// Records launches that were given, for the next time. A machine that cannot goes on without.
    fn record(&mut self, words: Vec<u64>) -> Result<(), Error> {
        let recorded = self.machine.begin_capture().and_then(|()| {
            let given = self.give(&words);
            // In any case: what comes next is not to be recorded.
            let graph = self.machine.end_capture();
            given.and(graph)
        });
        match recorded {
            Ok(graph) => {
                self.graphs.push_back((words, graph));
                if self.graphs.len() > GRAPHS_MAX {
                    self.graphs.pop_front();
                }
                Ok(())
            }
            Err(error @ (Error::Lost(_) | Error::Arithmetic(_))) => Err(error),
            Err(error) => {
                self.refuse(error.to_string());
                Ok(())
            }
        }
    }

    /// A graph that begins with the whole list, of which all but the words from `start` on are known to be
    /// those of the one that it follows.
    fn followed(&self, start: usize) -> Option<usize> {
        let list = &self.list;
        let new = list.words.get(start..)?;
        let goes_on = |place: &usize| {
            let words = self.graphs.get(*place).map(|(words, _)| words);
            words.and_then(|words| words.get(start..list.words.len())) == Some(new)
        };
        let follows = list.follows.filter(goes_on);
        follows.or_else(|| {
            self.graphs
                .iter()
                .position(|(words, _)| words.starts_with(&list.words))
        })
    }

    /// Makes and gives no more graphs.
    fn refuse(&mut self, why: String) {
        self.graphs.clear();
        self.seen.clear();
        self.refused = Some(Error::NoGraphs(why));
    }
}

impl<M: Capture> GpuBackend for Graphs<M> {
    type Memory = GraphMemory<M::Memory>;
    type Landing = M::Landing;

    fn processors(&self) -> usize {
        self.machine.processors()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Self::Memory, Error> {
        // What waits may keep memory that was dropped to make room.
        self.end_list()?;
        let memory = Arc::new(self.machine.allocate(bytes)?);
        Ok(GraphMemory {
            number: self.pieces.add(&memory),
            memory,
            named_by: AtomicU64::new(0),
            dropped: self.dropped.clone(),
        })
    }

    fn write(&mut self, into: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error> {
        self.end_list()?;
        // Nobody else may have it, not even weakly.
        self.pieces.pieces.remove(&into.number);
        let memory = Arc::get_mut(&mut into.memory).ok_or(ArithmeticError::Shape);
        let written = memory
            .map_err(Error::from)
            .and_then(|memory| self.machine.write(memory, bytes));
        let piece = Arc::downgrade(&into.memory);
        self.pieces.pieces.insert(into.number, piece);
        written
    }

    fn read(&mut self, from: &Self::Memory, bytes: &mut [u8]) -> Result<(), Error> {
        self.end_list()?;
        self.machine.read(&from.memory, bytes)
    }

    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, Self::Memory>],
    ) -> Result<(), Error> {
        if !self.is_on || self.refused.is_some() || self.list.is_too_long {
            // What waits comes first; nothing does where graphs are off.
            self.end_list()?;
            let arguments: Vec<_> = arguments
                .iter()
                .map(|argument| argument.of(|piece| &*piece.memory))
                .collect();
            return self.machine.launch(kernel, shape, &arguments);
        }
        let number = self.names.number(kernel);
        let start = self.list.words.len();
        write((number, shape), arguments, (self.number, &mut self.list.words));
        self.list.launches += 1;
        if !self.list.is_given {
            self.list.follows = self.followed(start);
            if self.list.follows.is_some() {
                return Ok(());
            }
            self.list.is_given = true;
            let words = mem::take(&mut self.list.words);
            let given = self.give(words.get(..start).unwrap_or_default());
            self.list.words = words;
            given?;
        }
        self.list.is_too_long = self.list.launches >= LAUNCHES_MAX;
        let arguments: Vec<_> = arguments
            .iter()
            .map(|argument| argument.of(|piece| &*piece.memory))
            .collect();
        self.machine.launch(kernel, shape, &arguments)
    }

    fn product(&mut self, product: &Product<'_, Self::Memory>) -> Result<bool, Error> {
        self.end_list()?;
        self.machine.product(&product.of(|piece| &*piece.memory))
    }

    fn landing(&mut self, bytes: usize) -> Result<Option<M::Landing>, Error> {
        self.machine.landing(bytes)
    }

    fn begin_read(&mut self, from: &[(&Self::Memory, usize)], into: &mut M::Landing) -> Result<(), Error> {
        self.end_list()?;
        let from: Vec<_> = from
            .iter()
            .map(|(piece, bytes)| (&*piece.memory, *bytes))
            .collect();
        self.machine.begin_read(&from, into)
    }

    fn slower(&self) -> Option<Error> {
        self.refused.clone().or_else(|| self.machine.slower())
    }
}
