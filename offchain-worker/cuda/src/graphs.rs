//! Launches that come again and again in the same order with the same arguments, given to a machine at once.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    ops::Range,
    sync::Arc,
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

/// A piece of memory that launches which were not given yet keep, and by a number that no other has: a graph
/// is given again only if each of its pieces is there still.
#[derive(Debug)]
pub struct GraphMemory<T> {
    number: u64,
    memory: Arc<T>,
}

/// A launch's argument that is kept.
#[derive(Debug)]
enum Held<T> {
    Memory(Arc<T>),
    Table(Vec<Arc<T>>),
    Null,
    U32(u32),
    U64(u64),
    F32(f32),
}

impl<T> Held<T> {
    /// Keeps an argument, and writes what tells it from all others.
    fn new(argument: &Argument<'_, GraphMemory<T>>, words: &mut Vec<u64>) -> Self {
        let (kind, word, held) = match argument {
            Argument::Memory(piece) => (0, piece.number, Self::Memory(piece.memory.clone())),
            Argument::Table(pieces) => {
                let held = pieces.iter().map(|piece| piece.memory.clone());
                (1, pieces.len() as u64, Self::Table(held.collect()))
            }
            Argument::Null => (2, 0, Self::Null),
            Argument::U32(value) => (3, u64::from(*value), Self::U32(*value)),
            Argument::U64(value) => (4, *value, Self::U64(*value)),
            Argument::F32(value) => (5, u64::from(value.to_bits()), Self::F32(*value)),
        };
        words.extend([kind, word]);
        if let Argument::Table(pieces) = argument {
            words.extend(pieces.iter().map(|piece| piece.number));
        }
        held
    }

    fn argument(&self) -> Argument<'_, T> {
        match self {
            Self::Memory(memory) => Argument::Memory(memory),
            Self::Table(pieces) => Argument::Table(pieces.iter().map(|piece| &**piece).collect()),
            Self::Null => Argument::Null,
            Self::U32(value) => Argument::U32(*value),
            Self::U64(value) => Argument::U64(*value),
            Self::F32(value) => Argument::F32(*value),
        }
    }
}

#[derive(Debug)]
struct Launch<T> {
    /// Its number among [`Names`].
    kernel: u64,
    shape: Shape,
    arguments: Vec<Held<T>>,
}

/// Names of kernels, each with a number of its own: what is compared again and again is short.
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

    fn name(&self, number: u64) -> &str {
        let name = usize::try_from(number)
            .ok()
            .and_then(|number| self.names.get(number));
        name.map_or("", String::as_str)
    }
}

/// Launches since the machine was last read from, written to, or asked for memory.
#[derive(Debug)]
struct List<T> {
    launches: Vec<Launch<T>>,
    /// All that tells this list from others.
    words: Vec<u64>,
    /// How many of the launches the machine was given.
    given: usize,
    /// Whether some graph may still begin with it.
    is_known: bool,
    /// Whether it is too long to be kept.
    is_too_long: bool,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            launches: Vec::new(),
            words: Vec::new(),
            given: 0,
            is_known: true,
            is_too_long: false,
        }
    }
}

impl<T> List<T> {
    /// Adds a launch; the answer is where its words are.
    fn add(&mut self, kernel: u64, shape: Shape, arguments: &[Argument<'_, GraphMemory<T>>]) -> Range<usize> {
        let start = self.words.len();
        let [x, y, z] = shape.grid.map(u64::from);
        let words = &mut self.words;
        words.extend([kernel, x, y, z, u64::from(shape.block), arguments.len() as u64]);
        let arguments = arguments.iter().map(|argument| Held::new(argument, words));
        self.launches.push(Launch {
            kernel,
            shape,
            arguments: arguments.collect(),
        });
        start..self.words.len()
    }

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
    pieces: u64,
    names: Names,
    list: List<M::Memory>,
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
            pieces: 0,
            names: Names::default(),
            list: List::default(),
            seen: VecDeque::new(),
            graphs: VecDeque::new(),
        }
    }

    fn give(machine: &mut M, names: &Names, launches: &[Launch<M::Memory>]) -> Result<(), Error> {
        for launch in launches {
            let arguments: Vec<_> = launch.arguments.iter().map(Held::argument).collect();
            machine.launch(names.name(launch.kernel), launch.shape, &arguments)?;
        }
        Ok(())
    }

    /// Gives the machine all launches that wait, and begins another list.
    fn end_list(&mut self) -> Result<(), Error> {
        if self.list.launches.is_empty() {
            return Ok(());
        }
        // Also where something fails: what waits then is nobody's any more.
        let mut list = mem::take(&mut self.list);
        if list.given == 0 && list.is_known {
            let found = self.graphs.iter().position(|(words, _)| *words == list.words);
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
        }
        Self::give(
            &mut self.machine,
            &self.names,
            list.launches.get(list.given..).unwrap_or_default(),
        )?;
        if self.refused.is_some() || list.is_too_long || list.launches.len() < LAUNCHES_MIN {
            return Ok(());
        }
        let hash = list.hash();
        match self.seen.iter().position(|seen| *seen == hash) {
            Some(found) => {
                self.seen.remove(found);
                self.record(mem::take(&mut list.words), &list.launches)
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
    fn record(&mut self, words: Vec<u64>, launches: &[Launch<M::Memory>]) -> Result<(), Error> {
        let recorded = self.machine.begin_capture().and_then(|()| {
            let given = Self::give(&mut self.machine, &self.names, launches);
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
        let number = self.pieces;
        self.pieces += 1;
        Ok(GraphMemory { number, memory })
    }

    fn write(&mut self, into: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error> {
        self.end_list()?;
        // No launch keeps it any more.
        let memory = Arc::get_mut(&mut into.memory).ok_or(ArithmeticError::Shape)?;
        self.machine.write(memory, bytes)
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
        let kernel = self.names.number(kernel);
        let added = self.list.add(kernel, shape, arguments);
        let list = &mut self.list;
        let new = list.words.get(added.clone());
        let begins = |(words, _): &(Vec<u64>, M::Graph)| words.get(added.clone()) == new;
        // Graphs that differ before this launch may agree here: the whole list is compared when it ends.
        list.is_known = list.is_known && self.graphs.iter().any(begins);
        if list.is_known {
            return Ok(());
        }
        let waiting = list.launches.get(list.given..).unwrap_or_default();
        let given = Self::give(&mut self.machine, &self.names, waiting);
        list.given = list.launches.len();
        list.is_too_long = list.launches.len() >= LAUNCHES_MAX;
        given
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
