//! A machine that is a C++ program with the kernels in it: `main.cpp` says how to talk to it.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use surety_cuda::{Argument, Capture, Error, GpuBackend, Landing, Product, SOURCE, Shape};
use surety_exact::GROUP;

/// In which order the threads of a block run between barriers. Each has tensor cores of its own kind.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// As on Ampere and later.
    Forwards,
    /// As on Turing.
    Backwards,
}

impl Order {
    fn word(self) -> &'static str {
        match self {
            Self::Forwards => "forwards",
            Self::Backwards => "backwards",
        }
    }

    /// What CUDA's compilers call the device.
    fn architecture(self) -> u32 {
        match self {
            Self::Forwards => 800,
            Self::Backwards => 750,
        }
    }
}

/// The running program.
#[derive(Debug)]
pub struct Emulator(Arc<Mutex<Line>>);

/// What talks to it: who waits for a copy does so beside who gives it work.
#[derive(Debug)]
struct Line {
    child: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    /// Copies that were begun, by number, and what they copy: done as late as they may be.
    begun: VecDeque<(u64, Vec<(u64, usize)>)>,
    /// Those that are done, until they are taken.
    done: BTreeMap<u64, Vec<u8>>,
    copies: u64,
}

/// A piece of the program's memory, by number.
#[derive(Debug)]
pub struct Piece(u64);

/// Launches that the program has recorded, by number.
#[derive(Debug)]
pub struct Recorded(u64);

/// Where a copy is told to go.
#[derive(Debug)]
pub struct Copied {
    line: Arc<Mutex<Line>>,
    room: usize,
    /// The copy that was begun last.
    number: Option<u64>,
    bytes: Vec<u8>,
}

impl Landing for Copied {
    fn room(&self) -> usize {
        self.room
    }

    fn wait(&mut self, bytes: usize) -> Result<&[u8], Error> {
        if let Some(number) = self.number.take() {
            let mut line = locked(&self.line);
            line.finish(number)?;
            let done = line.done.remove(&number).expect("it was begun");
            self.bytes[..done.len()].copy_from_slice(&done);
        }
        Ok(&self.bytes[..bytes])
    }
}

fn locked(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Emulator {
    pub fn start(order: Order) -> Self {
        let mut child = Command::new(program(order))
            .arg(order.word())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let requests = child.stdin.take();
        let answers = child.stdout.take().expect("a pipe");
        Self(Arc::new(Mutex::new(Line {
            child,
            requests,
            answers,
            begun: VecDeque::new(),
            done: BTreeMap::new(),
            copies: 0,
        })))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        locked(&self.0)
    }
}

impl Line {
    fn ask(&mut self, request: u8, numbers: &[u64], data: &[u8]) -> Result<(), Error> {
        let mut bytes = vec![request];
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(data);
        self.send(&bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let closed = || Error::Device("the emulator was ended".into());
        let pipe = self.requests.as_mut().ok_or_else(closed)?;
        pipe.write_all(bytes).and_then(|()| pipe.flush()).map_err(gone)
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut number = [0; 8];
        self.answers.read_exact(&mut number).map_err(gone)?;
        Ok(u64::from_le_bytes(number))
    }

    fn read(&mut self, piece: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.ask(b'R', &[piece, bytes.len() as u64], &[])?;
        self.answers.read_exact(bytes).map_err(gone)
    }

    /// Does what was begun up to a copy.
    fn finish(&mut self, last: u64) -> Result<(), Error> {
        while self.begun.front().is_some_and(|(number, _)| *number <= last) {
            let (number, pieces) = self.begun.pop_front().expect("it is there");
            let mut all = Vec::new();
            for (piece, bytes) in pieces {
                let from = all.len();
                all.resize(from + bytes, 0);
                self.read(piece, &mut all[from..])?;
            }
            self.done.insert(number, all);
        }
        Ok(())
    }
}

fn gone(error: std::io::Error) -> Error {
    Error::Device(format!("the emulator stopped: {error}"))
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let mut line = self.line();
        // The end of its input is the end of its work.
        line.requests = None;
        let status = line.child.wait().expect("a child that was started");
        if !std::thread::panicking() {
            assert!(status.success(), "the emulator failed: {status}");
        }
    }
}

impl GpuBackend for Emulator {
    type Memory = Piece;
    type Landing = Copied;

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        let mut line = self.line();
        line.ask(b'A', &[bytes as u64], &[])?;
        line.number().map(Piece)
    }

    fn write(&mut self, into: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        self.line().ask(b'W', &[into.0, bytes.len() as u64], bytes)
    }

    fn read(&mut self, from: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        self.line().read(from.0, bytes)
    }

    fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument<'_, Piece>]) -> Result<(), Error> {
        let [x, y, z] = shape.grid.map(u64::from);
        let mut numbers = vec![x, y, z, shape.block.into(), arguments.len() as u64];
        for argument in arguments {
            numbers.extend(match argument {
                Argument::Memory(piece) => [0, piece.0],
                Argument::Table(pieces) => [5, pieces.len() as u64],
                Argument::Null => [1, 0],
                Argument::U32(value) => [2, u64::from(*value)],
                Argument::U64(value) => [3, *value],
                Argument::F32(value) => [4, value.to_bits().into()],
            });
            if let Argument::Table(pieces) = argument {
                numbers.extend(pieces.iter().map(|piece| piece.0));
            }
        }
        let mut bytes = vec![b'L'];
        bytes.extend((kernel.len() as u64).to_le_bytes());
        bytes.extend(kernel.as_bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.line().send(&bytes)
    }

    fn product(&mut self, p: &Product<'_, Piece>) -> Result<bool, Error> {
        let sizes = [p.m, p.n, p.k, p.a_row, p.a_stride, p.b_row, p.b_stride, p.c_row].map(u64::from);
        let mut numbers = vec![p.a.0, p.b.0, p.b_from as u64, p.c.0];
        numbers.extend(sizes);
        numbers.extend([p.c_stride, p.batch.into()]);
        self.line().ask(b'P', &numbers, &[]).map(|()| true)
    }

    fn landing(&mut self, bytes: usize) -> Result<Option<Copied>, Error> {
        Ok(Some(Copied {
            line: self.0.clone(),
            room: bytes,
            number: None,
            bytes: vec![0; bytes],
        }))
    }

    fn begin_read(&mut self, from: &[(&Piece, usize)], into: &mut Copied) -> Result<(), Error> {
        let mut line = self.line();
        // Later work waits for copies before this one, and for no other.
        let last = line.copies;
        line.finish(last)?;
        line.copies += 1;
        let number = line.copies;
        let pieces = from.iter().map(|(piece, bytes)| (piece.0, *bytes));
        line.begun.push_back((number, pieces.collect()));
        if let Some(before) = into.number.replace(number) {
            line.done.remove(&before);
        }
        Ok(())
    }
}

impl Capture for Emulator {
    type Graph = Recorded;

    fn begin_capture(&mut self) -> Result<(), Error> {
        self.line().ask(b'B', &[], &[])
    }

    fn end_capture(&mut self) -> Result<Recorded, Error> {
        let mut line = self.line();
        line.ask(b'E', &[], &[])?;
        line.number().map(Recorded)
    }

    fn replay(&mut self, graph: &Recorded) -> Result<(), Error> {
        self.line().ask(b'G', &[graph.0], &[])
    }
}

fn program(order: Order) -> &'static Path {
    static FORWARDS: OnceLock<PathBuf> = OnceLock::new();
    static BACKWARDS: OnceLock<PathBuf> = OnceLock::new();
    let program = match order {
        Order::Forwards => &FORWARDS,
        Order::Backwards => &BACKWARDS,
    };
    program.get_or_init(|| build(order.architecture()))
}

/// Builds the program, once for one state of its sources.
fn build(architecture: u32) -> PathBuf {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let files = [
        ("kernels.cu", SOURCE),
        ("main.cpp", include_str!("main.cpp")),
        ("shim.h", include_str!("shim.h")),
    ];
    let mut hasher = DefaultHasher::new();
    (files, &compiler, GROUP, architecture).hash(&mut hasher);
    // `scripts/on-device` brings programs that were built elsewhere. Only tests of a folder `tests` are given
    // a folder of their own.
    let brought = std::env::var_os("SURETY_EMULATORS").map(PathBuf::from);
    let own = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
    let folder = brought.or(own).unwrap_or_else(std::env::temp_dir);
    let program = folder.join(format!("emulator-{:016x}", hasher.finish()));
    if program.exists() {
        return program;
    }
    // Test processes run side by side: each builds its own, and the last one stays.
    let own = program.with_extension(std::process::id().to_string());
    let sources = program.with_extension(format!("{}-sources", std::process::id()));
    fs::create_dir_all(&sources).expect("a folder for the sources");
    for (name, text) in files {
        fs::write(sources.join(name), text).expect("a source");
    }
    let output = Command::new(&compiler)
        .args([
            "-std=c++17",
            "-O2",
            "-Wall",
            "-Wno-unknown-pragmas",
            "-ffp-contract=off",
            "-fno-math-errno",
        ])
        .arg(format!("-DGROUP={GROUP}"))
        .arg(format!("-D__CUDA_ARCH__={architecture}"))
        .arg(sources.join("main.cpp"))
        .arg("-o")
        .arg(&own)
        .output()
        .unwrap_or_else(|error| panic!("a C++ compiler is needed, and {compiler} does not start: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    fs::remove_dir_all(&sources).ok();
    assert!(
        output.status.success(),
        "the kernels do not compile as C++:\n{said}"
    );
    fs::rename(&own, &program).expect("the emulator takes its place");
    program
}
