//! A machine that fails when it is told to.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use surety_cuda::{Argument, Error, GpuBackend, Product, Shape};

/// How it fails.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    /// Not at all.
    Nothing,
    /// What is read from it has another bit.
    FlipsBits,
    /// It takes no work any more.
    Vanishes,
}

/// Tells it.
pub struct Switch(Arc<AtomicU8>);

impl Switch {
    pub fn set(&self, fails: Fails) {
        self.0.store(fails as u8, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct Failing<M> {
    machine: M,
    fails: Arc<AtomicU8>,
}

impl<M> Failing<M> {
    pub fn new(machine: M) -> (Self, Switch) {
        let fails = Arc::new(AtomicU8::new(Fails::Nothing as u8));
        let switch = Switch(fails.clone());
        (Self { machine, fails }, switch)
    }

    fn is(&self, fails: Fails) -> bool {
        self.fails.load(Ordering::Relaxed) == fails as u8
    }

    fn there(&self) -> Result<(), Error> {
        match self.is(Fails::Vanishes) {
            true => Err(Error::Lost("it was told to".into())),
            false => Ok(()),
        }
    }
}

impl<M: GpuBackend> GpuBackend for Failing<M> {
    type Memory = M::Memory;

    fn allocate(&mut self, bytes: usize) -> Result<M::Memory, Error> {
        self.there()?;
        self.machine.allocate(bytes)
    }

    fn write(&mut self, into: &mut M::Memory, bytes: &[u8]) -> Result<(), Error> {
        self.there()?;
        self.machine.write(into, bytes)
    }

    fn read(&mut self, from: &M::Memory, bytes: &mut [u8]) -> Result<(), Error> {
        self.there()?;
        self.machine.read(from, bytes)?;
        // The word of faults is right.
        if self.is(Fails::FlipsBits) && bytes.len() > 4 {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, M::Memory>],
    ) -> Result<(), Error> {
        self.there()?;
        self.machine.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, M::Memory>) -> Result<bool, Error> {
        self.there()?;
        self.machine.product(product)
    }
}
