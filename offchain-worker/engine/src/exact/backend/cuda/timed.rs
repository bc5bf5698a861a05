//! A machine whose calls are noted, so that one which does not answer is seen.

use surety_cuda::{Argument, Error, GpuBackend, Product, Shape};

use super::Standing;

/// A machine, and who notes its calls.
pub(super) struct Timed<M> {
    machine: M,
    standing: Standing,
}

impl<M> Timed<M> {
    pub(super) fn new(machine: M, standing: Standing) -> Self {
        Self { machine, standing }
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut M) -> T) -> T {
        let _open = self.standing.call();
        call(&mut self.machine)
    }
}

impl<M: GpuBackend> GpuBackend for Timed<M> {
    type Memory = M::Memory;
    type Landing = M::Landing;

    fn processors(&self) -> usize {
        self.machine.processors()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Self::Memory, Error> {
        self.call(|machine| machine.allocate(bytes))
    }

    fn write(&mut self, into: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error> {
        self.call(|machine| machine.write(into, bytes))
    }

    fn read(&mut self, from: &Self::Memory, bytes: &mut [u8]) -> Result<(), Error> {
        self.call(|machine| machine.read(from, bytes))
    }

    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, Self::Memory>],
    ) -> Result<(), Error> {
        self.call(|machine| machine.launch(kernel, shape, arguments))
    }

    fn product(&mut self, product: &Product<'_, Self::Memory>) -> Result<bool, Error> {
        self.call(|machine| machine.product(product))
    }

    fn landing(&mut self, bytes: usize) -> Result<Option<M::Landing>, Error> {
        self.call(|machine| machine.landing(bytes))
    }

    fn begin_read(&mut self, from: &[(&Self::Memory, usize)], into: &mut M::Landing) -> Result<(), Error> {
        self.call(|machine| machine.begin_read(from, into))
    }

    fn slower(&self) -> Option<Error> {
        self.machine.slower()
    }
}
