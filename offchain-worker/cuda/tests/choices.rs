//! Which kernel takes what: by how many processors a device has, and the bits are the same.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)]
mod emulator;

use std::sync::{Arc, Mutex};

use emulator::{Emulator, Order, Piece};
use surety_cuda::{
    Argument, Error, GpuBackend, Heads, Kernels, Mask, NoLanding, Pages, Product, Quanta, Rows, Shape,
    Weights,
};
use surety_exact::{BLOCK, Precision, SplitMix64};

/// A machine with so many processors, and the kernels that were launched on it.
#[derive(Debug)]
struct Wide {
    machine: Emulator,
    processors: usize,
    launched: Arc<Mutex<Vec<String>>>,
}

impl GpuBackend for Wide {
    type Memory = Piece;
    type Landing = NoLanding;

    fn processors(&self) -> usize {
        self.processors
    }

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        self.machine.allocate(bytes)
    }

    fn write(&mut self, into: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        self.machine.write(into, bytes)
    }

    fn read(&mut self, from: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        self.machine.read(from, bytes)
    }

    fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument<'_, Piece>]) -> Result<(), Error> {
        self.launched.lock().unwrap().push(kernel.into());
        self.machine.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, Piece>) -> Result<bool, Error> {
        self.machine.product(product)
    }
}

/// What something gives on a device of so many processors, and whether it has launched a kernel.
fn on(processors: usize, kernel: &str, run: impl Fn(&mut Kernels<Wide>) -> Vec<f32>) -> (Vec<u32>, bool) {
    let launched = Arc::<Mutex<Vec<String>>>::default();
    let machine = Wide {
        machine: Emulator::start(Order::Forwards),
        processors,
        launched: launched.clone(),
    };
    let found = run(&mut Kernels::new(machine).unwrap());
    let bits = found.iter().map(|value| value.to_bits()).collect();
    let has = launched.lock().unwrap().iter().any(|name| name == kernel);
    (bits, has)
}

/// 64 rows by 200 outputs are two blocks of the kernel for many rows.
#[test]
fn a_product_that_would_leave_processors_idle_takes_smaller_blocks() {
    const INPUTS: usize = 130;
    const OUTPUTS: usize = 200;
    const COUNT: usize = 64;
    let product = |kernels: &mut Kernels<Wide>| {
        let mut random = SplitMix64::new(50);
        let q: Vec<i8> = (0..INPUTS * OUTPUTS).map(|_| random.next() as i8).collect();
        let scales: Vec<f32> = (0..2 * OUTPUTS).map(|_| random.real().abs()).collect();
        let packed = kernels.pack(&Weights {
            inputs: INPUTS,
            outputs: OUTPUTS,
            q: Quanta::Int8(&q),
            scales: &scales,
            bias: None,
        });
        let values: Vec<f32> = (0..COUNT * INPUTS).map(|_| random.real()).collect();
        let (values, mut rows) = (kernels.upload(&values).unwrap(), Rows::new(Precision::Int8));
        kernels.quantize(&values, INPUTS, None, &mut rows).unwrap();
        let mut out = kernels.floats(COUNT * OUTPUTS).unwrap();
        kernels.product(&rows, &packed.unwrap(), &mut out).unwrap();
        kernels.download(&out).unwrap()
    };
    let (expected, is_many) = on(2, "product_many", product);
    assert!(is_many);
    assert_eq!(on(3, "product_few", product), (expected, true));
}

/// 20 queries of 4 heads of 32 are 2,560 threads where each mixes all of its positions.
#[test]
fn a_mix_that_would_leave_processors_idle_is_made_by_blocks() {
    const HEADS: usize = 4;
    const HEAD_DIM: usize = 32;
    let attention = |positions: usize| {
        move |kernels: &mut Kernels<Wide>| {
            let mut random = SplitMix64::new(51);
            let mut heads = |kernels: &mut Kernels<Wide>, count: usize| {
                let rows: Vec<f32> = (0..count * HEADS * HEAD_DIM).map(|_| random.real()).collect();
                let (rows, mut into) = (kernels.upload(&rows).unwrap(), Heads::default());
                kernels.quantize_heads(&rows, HEADS, HEAD_DIM, &mut into).unwrap();
                into
            };
            let mut cache = Pages::new(1, HEADS, HEAD_DIM).unwrap().cache();
            let (kept, queries) = (heads(kernels, positions), heads(kernels, 20));
            kernels.append(&mut cache, 0, &kept, &kept).unwrap();
            let mut out = kernels.floats(20 * HEADS * HEAD_DIM).unwrap();
            kernels
                .attention(&queries, &mut cache, 0, Mask::Full, &mut out)
                .unwrap();
            kernels.download(&out).unwrap()
        }
    };
    let (expected, is_by_rows) = on(2, "mix", attention(BLOCK + 1));
    assert!(is_by_rows);
    assert_eq!(on(3, "merge", attention(BLOCK + 1)), (expected, true));
    // There is nothing to merge.
    assert!(on(3, "mix", attention(BLOCK)).1);
}
