//! Why a device gave no result.

use surety_exact::ArithmeticError;

/// Why there is no result.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// `libcuda` is not there, or is none.
    #[error("this machine has no NVIDIA driver (libcuda)")]
    NoDriver,
    /// There is a driver, and no such device.
    #[error("there is no CUDA device {0}")]
    NoDevice(usize),
    /// The driver is older than what the kernels need.
    #[error("the NVIDIA driver offers CUDA {found}, and {needed} is needed")]
    DriverTooOld {
        /// What the driver offers: 1000 times the major number plus 10 times the minor.
        found: i32,
        /// What is needed, likewise.
        needed: i32,
    },
    /// The driver cannot read what the installed compiler writes.
    #[error("the NVIDIA driver is older than the compiler (libnvrtc) beside it")]
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
    #[error("this machine has no CUDA run-time compiler (libnvrtc)")]
    NoCompiler,
    /// The compiler refused the kernels: a defect, or a compiler too old.
    #[error("the kernels do not compile: {0}")]
    Compile(String),
    /// The device's memory is used up.
    #[error("the device has no {0} bytes of memory left")]
    OutOfMemory(usize),
    /// The driver refused something else.
    #[error("the device failed: {0}")]
    Device(String),
    /// The numbers have no canonical result. Every honest machine finds the same.
    #[error("there is no canonical result: {0:?}")]
    Arithmetic(ArithmeticError),
}

impl From<ArithmeticError> for Error {
    fn from(fault: ArithmeticError) -> Self {
        Self::Arithmetic(fault)
    }
}
