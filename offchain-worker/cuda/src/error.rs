//! Why a device gave no result.

use surety_exact::ArithmeticError;

use crate::backend::TABLE;

/// Why there is no result.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// `libcuda` is not there, or is none.
    #[error("this machine has no NVIDIA driver (libcuda): install one, or choose the device `cpu`")]
    NoDriver,
    /// There is a driver, and no such device.
    #[error("there is no CUDA device {0}: `nvidia-smi -L` lists those that there are")]
    NoDevice(usize),
    /// The driver is older than what the kernels need.
    #[error(
        "the NVIDIA driver is too old: it offers CUDA {}, and {} is needed. Install a newer one",
        version(*found), version(*needed)
    )]
    DriverTooOld {
        /// What the driver offers: 1000 times the major number plus 10 times the minor.
        found: i32,
        /// What is needed, likewise.
        needed: i32,
    },
    /// The driver cannot read what the installed compiler writes.
    #[error("the NVIDIA driver is older than the compiler (libnvrtc) beside it: install an older libnvrtc")]
    DriverOlderThanCompiler,
    /// The device lacks integer dot products of the kind used.
    #[error("the device is of compute capability {major}.{minor}, and 7.5 is needed")]
    DeviceTooOld {
        /// Of the device's compute capability.
        major: i32,
        /// Of the device's compute capability.
        minor: i32,
    },
    /// `libnvrtc` is not there.
    #[error("this machine has no CUDA run-time compiler (libnvrtc): see docs/cuda.md")]
    NoCompiler,
    /// The compiler refused the kernels: a defect, or a compiler too old.
    #[error("the kernels do not compile: {0}")]
    Compile(String),
    /// The device's memory is used up, by us or by other programs. How much was needed is not known (0) where
    /// the driver itself needs it.
    #[error(
        "the device has no {}memory left: `nvidia-smi` shows who has it. End other programs, offer fewer \
         models, or choose another device",
        bytes(.0)
    )]
    OutOfMemory(usize),
    /// No memory of the computer that stays where it is. Nothing ends: ordinary memory does.
    #[error(
        "the system gives no {0} bytes of page-locked memory: what is shown leaves the device through \
         ordinary memory, slower. End other programs, or raise what the system lets one lock"
    )]
    PinnedMemory(usize),
    /// What copies beside the device's work need. Nothing ends: results leave it in turn with the work.
    #[error(
        "the driver refused copies beside the device's work, and what is shown leaves it through ordinary \
         memory, slower: {0}"
    )]
    NoCopies(String),
    /// The driver records no launches. Nothing ends: they are given one by one.
    #[error("the driver refused a graph of launches, and they are given one by one, slower: {0}")]
    NoGraphs(String),
    /// More is needed than this program may take.
    #[error(
        "{needed} more bytes of the device's memory are needed, and {used} of {max} are taken: raise the \
         memory cap, or offer fewer models"
    )]
    MemoryCap {
        /// Bytes that were asked for.
        needed: u64,
        /// Bytes that are taken.
        used: u64,
        /// Most bytes that may be.
        max: u64,
    },
    /// Pages of keys and values are in as many pieces of memory as kernels can choose from.
    #[error(
        "{0} more bytes for keys and values are needed, and they are in {max} pieces of the device's memory, \
         the most that there can be: it was short while they grew. Once sequences end there are fewer: try \
         again. Raise the memory cap, end other programs, or offer fewer models",
        max = TABLE
    )]
    Scattered(usize),
    /// The device was there and is no more, or its context is broken. Nothing works on it until the program
    /// is started again.
    #[error("the device has vanished ({0}): look into the system's log for NVRM, then start again")]
    Lost(String),
    /// Somebody waits for it already, for longer than work takes. It is used again once it answers; if it
    /// does not, it is lost.
    #[error(
        "the device does not answer: what waits for it goes on without it. If it stays so, look into the \
         system's log for NVRM, then start again"
    )]
    NoAnswer,
    /// The program was built without what talks to devices.
    #[error(
        "this program was built without CUDA: use one built with the feature `cuda`, or the device `cpu`"
    )]
    NotBuilt,
    /// The driver refused something else.
    #[error("the device failed: {0}")]
    Device(String),
    /// The numbers have no canonical result. Every honest machine finds the same.
    #[error("there is no canonical result: {0:?}")]
    Arithmetic(ArithmeticError),
}

impl Error {
    /// Whether it is for want of memory on the device, which may come back: nothing is wrong with it.
    pub fn is_memory(&self) -> bool {
        matches!(
            self,
            Self::OutOfMemory(_) | Self::MemoryCap { .. } | Self::Scattered(_)
        )
    }
}

/// How many, where that is known.
fn bytes(count: &usize) -> String {
    match count {
        0 => String::new(),
        count => format!("{count} bytes of "),
    }
}

/// As the driver's makers write it.
fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

impl From<ArithmeticError> for Error {
    fn from(fault: ArithmeticError) -> Self {
        Self::Arithmetic(fault)
    }
}
