//! A bound on the memory that a program takes of a device which it shares.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    Error,
    backend::{Argument, GpuBackend, Product, Shape},
};

/// A machine of whose memory no more than so much is taken.
#[derive(Debug)]
pub struct Capped<M> {
    machine: M,
    used: Arc<AtomicU64>,
    max: u64,
}

/// A piece of memory that is counted until it is freed.
#[derive(Debug)]
pub struct CappedMemory<T> {
    // Dropped in this order: what is not freed yet is never missing in the count.
    memory: T,
    _counted: Counted,
}

#[derive(Debug)]
struct Counted {
    bytes: u64,
    used: Arc<AtomicU64>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl<M> Capped<M> {
    /// A machine of whose memory `max` bytes may be taken.
    pub fn new(machine: M, max: u64) -> Self {
        Self {
            machine,
            used: Arc::default(),
            max,
        }
    }

    /// Where it is counted how many bytes are taken now.
    pub fn used(&self) -> Arc<AtomicU64> {
        self.used.clone()
    }
}

impl<M: GpuBackend> GpuBackend for Capped<M> {
    type Memory = CappedMemory<M::Memory>;
    type Landing = M::Landing;

    fn processors(&self) -> usize {
        self.machine.processors()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Self::Memory, Error> {
        let needed = bytes as u64;
        let used = self.used.load(Ordering::Relaxed);
        if used.saturating_add(needed) > self.max {
            let max = self.max;
            return Err(Error::MemoryCap { needed, used, max });
        }
        let memory = self.machine.allocate(bytes)?;
        self.used.fetch_add(needed, Ordering::Relaxed);
        let _counted = Counted {
            bytes: needed,
            used: self.used.clone(),
        };
        Ok(CappedMemory { memory, _counted })
    }

    fn write(&mut self, into: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error> {
        self.machine.write(&mut into.memory, bytes)
    }

    fn read(&mut self, from: &Self::Memory, bytes: &mut [u8]) -> Result<(), Error> {
        self.machine.read(&from.memory, bytes)
    }

    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, Self::Memory>],
    ) -> Result<(), Error> {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|argument| argument.of(|capped| &capped.memory))
            .collect();
        self.machine.launch(kernel, shape, &arguments)
    }

    fn product(&mut self, product: &Product<'_, Self::Memory>) -> Result<bool, Error> {
        self.machine.product(&product.of(|capped| &capped.memory))
    }

    fn landing(&mut self, bytes: usize) -> Result<Option<M::Landing>, Error> {
        self.machine.landing(bytes)
    }

    fn begin_read(&mut self, from: &[(&Self::Memory, usize)], into: &mut M::Landing) -> Result<(), Error> {
        let from: Vec<_> = from
            .iter()
            .map(|(capped, bytes)| (&capped.memory, *bytes))
            .collect();
        self.machine.begin_read(&from, into)
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.machine.settle()
    }

    fn slower(&self) -> Option<Error> {
        self.machine.slower()
    }
}
