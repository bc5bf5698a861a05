//! What runs kernels: a device, or in tests a processor that plays one.

use crate::Error;

/// The kernels, in CUDA C++.
pub const SOURCE: &str = concat!(
    include_str!("kernels/common.cu"),
    include_str!("kernels/rows.cu"),
    include_str!("kernels/products.cu"),
    include_str!("kernels/dots.cu"),
    include_str!("kernels/pages.cu"),
    include_str!("kernels/heads.cu"),
    include_str!("kernels/attention.cu"),
    include_str!("kernels/merge.cu"),
    include_str!("kernels/proofs.cu"),
    include_str!("kernels/trace.cu"),
);

/// How [`SOURCE`] is compiled, besides `GROUP`: nothing fused, nothing flushed, nothing approximate.
pub const OPTIONS: [&str; 4] = [
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
];

/// Pieces of memory that a kernel chooses from. The source's `TABLE`.
pub const TABLE: usize = 64;

/// How many blocks, and how many threads in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block, along x.
    pub block: u32,
}

/// One argument of a kernel.
#[derive(Debug)]
pub enum Argument<'a, M> {
    /// The address of a piece of memory.
    Memory(&'a M),
    /// The addresses of up to [`TABLE`] pieces, the others null.
    Table(Vec<&'a M>),
    /// An absent operand.
    Null,
    /// A `u32`.
    U32(u32),
    /// A `u64`.
    U64(u64),
    /// A `float`.
    F32(f32),
}

/// `batch` integer products, as the vendor's library takes them: `c_b[j][i] = Σ_l a_b[i][l] * b_b[j][l]`.
///
/// Column-major: `a` is transposed, `b` is not. Strides are in elements, from one product of the batch to the
/// next.
#[derive(Debug)]
pub struct Product<'a, M> {
    /// int8: the weights.
    pub a: &'a M,
    /// int8: the activations.
    pub b: &'a M,
    /// Where `b` begins, in elements.
    pub b_from: usize,
    /// int32: the results.
    pub c: &'a M,
    /// Rows of `a`. A multiple of 16.
    pub m: u32,
    /// Rows of `b`.
    pub n: u32,
    /// Columns of both. A multiple of 16.
    pub k: u32,
    /// From a row of `a` to the next. A multiple of 16.
    pub a_row: u32,
    /// From a product's `a` to the next one's. A multiple of 16.
    pub a_stride: u32,
    /// From a row of `b` to the next. A multiple of 16.
    pub b_row: u32,
    /// From a product's `b` to the next one's. A multiple of 16.
    pub b_stride: u32,
    /// From a row of `c` to the next. A multiple of 16.
    pub c_row: u32,
    /// From a product's `c` to the next one's.
    pub c_stride: u64,
    /// Independent products of these dimensions.
    pub batch: u32,
}

impl<'a, M> Argument<'a, M> {
    /// The same, of memory that is a part of this.
    pub(crate) fn of<N>(&self, part: impl Fn(&'a M) -> &'a N) -> Argument<'a, N> {
        match self {
            Self::Memory(memory) => Argument::Memory(part(memory)),
            Self::Table(pieces) => Argument::Table(pieces.iter().map(|piece| part(piece)).collect()),
            Self::Null => Argument::Null,
            Self::U32(value) => Argument::U32(*value),
            Self::U64(value) => Argument::U64(*value),
            Self::F32(value) => Argument::F32(*value),
        }
    }
}

impl<'a, M> Product<'a, M> {
    /// The same, of memory that is a part of this.
    pub(crate) fn of<N>(&self, part: impl Fn(&'a M) -> &'a N) -> Product<'a, N> {
        Product {
            a: part(self.a),
            b: part(self.b),
            b_from: self.b_from,
            c: part(self.c),
            m: self.m,
            n: self.n,
            k: self.k,
            a_row: self.a_row,
            a_stride: self.a_stride,
            b_row: self.b_row,
            b_stride: self.b_stride,
            c_row: self.c_row,
            c_stride: self.c_stride,
            batch: self.batch,
        }
    }
}

/// Memory of the computer into which a machine copies beside its other work.
pub trait Landing: std::fmt::Debug + Send + 'static {
    /// Bytes that it has room for.
    fn room(&self) -> usize;

    /// Waits for what was last begun to be copied into it, and gives so many bytes from its front.
    ///
    /// # Errors
    /// [`surety_exact::ArithmeticError::Shape`] for more than it has room for, or the machine's own.
    fn wait(&mut self, bytes: usize) -> Result<&[u8], Error>;
}

/// That of a machine which has none.
#[derive(Debug)]
pub enum NoLanding {}

impl Landing for NoLanding {
    fn room(&self) -> usize {
        match *self {}
    }

    fn wait(&mut self, _: usize) -> Result<&[u8], Error> {
        match *self {}
    }
}

/// Memory, kernels by name, and a library for products. Work is done in the order in which it is given.
pub trait GpuBackend {
    /// A piece of the machine's memory. Freed when dropped, after the work that was given before: others find
    /// it once [`GpuBackend::settle`] was called.
    type Memory: std::fmt::Debug;

    /// What [`GpuBackend::begin_read`] copies into; [`NoLanding`] where there is no such thing.
    type Landing: Landing;

    /// Processors that blocks of threads are spread over. What is computed does not depend on it.
    fn processors(&self) -> usize {
        1
    }

    /// Takes memory, whose content is unspecified.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or the machine's own.
    fn allocate(&mut self, bytes: usize) -> Result<Self::Memory, Error>;

    /// Copies into the front of `into`, which is at least as long.
    ///
    /// # Errors
    /// The machine's own.
    fn write(&mut self, into: &mut Self::Memory, bytes: &[u8]) -> Result<(), Error>;

    /// Waits for the work given so far, then copies from the front of `from`, which is at least as long.
    ///
    /// # Errors
    /// The machine's own, also those of earlier work.
    fn read(&mut self, from: &Self::Memory, bytes: &mut [u8]) -> Result<(), Error>;

    /// Starts a kernel of [`SOURCE`]. Its arguments have to be those of the source.
    ///
    /// # Errors
    /// The machine's own.
    fn launch(
        &mut self,
        kernel: &str,
        shape: Shape,
        arguments: &[Argument<'_, Self::Memory>],
    ) -> Result<(), Error>;

    /// Starts an integer product, or says that no library here does.
    ///
    /// # Errors
    /// The machine's own.
    fn product(&mut self, product: &Product<'_, Self::Memory>) -> Result<bool, Error>;

    /// Memory of the computer that stays where it is (page-locked), or nothing where this machine only reads.
    ///
    /// # Errors
    /// [`Error::PinnedMemory`] where the system gives none, [`Error::NoCopies`] where what a copy needs is
    /// refused: what would be copied is read then. Or the machine's own.
    fn landing(&mut self, _bytes: usize) -> Result<Option<Self::Landing>, Error> {
        Ok(None)
    }

    /// Begins to copy the fronts of pieces of memory, one behind the other, once the work given so far is
    /// done. Work that is given later does not wait for this copy, only for those that were begun before it:
    /// who reads from two sets of pieces by turns may write to one while the other is copied. Until the copy
    /// was waited for ([`Landing::wait`]), or another was begun behind it, none of the pieces may be dropped.
    ///
    /// # Errors
    /// The machine's own. Where it fails, nothing is copied any more that was begun with it.
    fn begin_read(
        &mut self,
        _from: &[(&Self::Memory, usize)],
        _into: &mut Self::Landing,
    ) -> Result<(), Error> {
        Err(Error::Device("it does not copy beside its work".into()))
    }

    /// Waits for the work given so far, and has memory that was freed before given back, where the machine
    /// keeps it until then: other programs find it, and so do pieces that are larger than those freed.
    ///
    /// # Errors
    /// The machine's own, also those of earlier work.
    fn settle(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Why this machine works slower than it could, where it knows: what it computes is the same.
    fn slower(&self) -> Option<Error> {
        None
    }
}

/// A machine that records launches and gives them to itself again, all at once.
pub trait Capture: GpuBackend {
    /// Recorded launches, in their order.
    type Graph: std::fmt::Debug + Send;

    /// From now on launches are recorded, not run.
    ///
    /// # Errors
    /// The machine's own: nothing is recorded then.
    fn begin_capture(&mut self) -> Result<(), Error>;

    /// Ends what was begun, also after a launch that was refused. Nothing of it has run.
    ///
    /// # Errors
    /// The machine's own.
    fn end_capture(&mut self) -> Result<Self::Graph, Error>;

    /// Starts the launches of a graph, with the arguments that they were recorded with. All memory among
    /// those has to be there still.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]: nothing was started. The machine's own.
    fn replay(&mut self, graph: &Self::Graph) -> Result<(), Error>;
}
