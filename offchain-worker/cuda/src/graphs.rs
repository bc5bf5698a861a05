//! Launches that come again and again in the same order with the same arguments, given to a machine at once.

mod words;

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use surety_exact::ArithmeticError;

use crate::{
    Error,
    backend::{Argument, Capture, GpuBackend, Product, Shape},
};
use words::{Launch, Names, Pieces, write};

/// Graphs that are kept: the one that was not used for longest goes first. A batch size takes two, for the
/// two halves of a stage, or six, where a model norms its heads.
const GRAPHS_MAX: usize = 24;
/// Lists of launches that were given once, and are recorded when they come again.
const SEEN_MAX: usize = 64;
/// Fewer launches are not worth a graph.
const LAUNCHES_MIN: usize = 8;
/// More launches than a pass of any model has are no pass.
const LAUNCHES_MAX: usize = 1 << 14;

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

/// Launches since the machine was last read from, written to, asked for memory, or settled.
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
/// or allocated, or until it is settled, and are given then; others are given at once.
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
            let arguments = launch.arguments().ok_or_else(gone)?;
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
        self.pieces.forget(into.number);
        let memory = Arc::get_mut(&mut into.memory).ok_or(ArithmeticError::Shape);
        let written = memory
            .map_err(Error::from)
            .and_then(|memory| self.machine.write(memory, bytes));
        self.pieces.keep(into.number, &into.memory);
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

    fn settle(&mut self) -> Result<(), Error> {
        // What waits may keep memory that was dropped.
        self.end_list()?;
        self.machine.settle()
    }

    fn slower(&self) -> Option<Error> {
        self.refused.clone().or_else(|| self.machine.slower())
    }
}
