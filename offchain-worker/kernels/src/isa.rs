//! Which instructions the kernels use.

/// An instruction set that there are kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// What the compiler may assume of every machine of this architecture.
    Scalar,
}

/// Instruction sets of this machine, worst first.
pub fn available() -> Vec<Isa> {
    vec![Isa::Scalar]
}

/// Runs `work` with the kernels of one instruction set; for tests and benchmarks.
pub fn with_isa<T>(_isa: Isa, work: impl FnOnce() -> T) -> T {
    work()
}
