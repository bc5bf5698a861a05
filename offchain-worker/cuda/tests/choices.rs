//! Which kernel takes what: by how many processors a device has, and the bits are the same.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)]
mod emulator;

use std::sync::{Arc, Mutex};

use emulator::{Emulator, Order, Piece};
use surety_cuda::{
    Argument, Error, GpuBackend, Heads, Kernels, Mask, NoLanding, Pages, Path, Product, Quanta, Rows, Shape,
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

/// 100 rows by 200 outputs: two blocks of 128 by 128, four of 128 by 64, eight of 64 by 64.
#[test]
fn a_product_that_would_leave_processors_idle_takes_smaller_blocks() {
    const INPUTS: usize = 330;
    const OUTPUTS: usize = 200;
    let product = |precision: Precision, count: usize, path: Path| {
        move |kernels: &mut Kernels<Wide>| {
            let mut random = SplitMix64::new(50);
            let q: Vec<i8> = (0..INPUTS * OUTPUTS).map(|_| random.next() as i8).collect();
            let wide: Vec<i16> = q.iter().map(|q| 16 * i16::from(*q)).collect();
            let scales: Vec<f32> = (0..3 * OUTPUTS).map(|_| random.real().abs()).collect();
            let packed = kernels.pack(&Weights {
                inputs: INPUTS,
                outputs: OUTPUTS,
                q: match precision {
                    Precision::Int8 => Quanta::Int8(&q),
                    Precision::Int12 => Quanta::Int12(&wide),
                },
                scales: &scales,
                bias: None,
            });
            kernels.take(path);
            let values: Vec<f32> = (0..count * INPUTS).map(|_| random.real()).collect();
            let (values, mut rows) = (kernels.upload(&values).unwrap(), Rows::new(precision));
            kernels.quantize(&values, INPUTS, None, &mut rows).unwrap();
            let mut out = kernels.floats(count * OUTPUTS).unwrap();
            kernels.product(&rows, &packed.unwrap(), &mut out).unwrap();
            kernels.download(&out).unwrap()
        }
    };
    let choices = [
        (Precision::Int8, 100, 2, "product_128x128"),
        (Precision::Int8, 100, 5, "product_128x64"),
        (Precision::Int8, 100, 10, "product_64x64"),
        (Precision::Int8, 100, 11, "product_32x32"),
        (Precision::Int12, 100, 2, "product12_128x64"),
        (Precision::Int12, 100, 10, "product12_64x64"),
        (Precision::Int12, 100, 11, "product12_32x32"),
        // A piece of 128 rows that has 64 is half empty.
        (Precision::Int8, 64, 2, "product_128x64"),
        (Precision::Int8, 32, 1, "product_32x32"),
        (Precision::Int8, 16, 1, "product_16x16"),
        (Precision::Int8, 8, 1, "product_16x8"),
        (Precision::Int12, 9, 1, "product12_16x16"),
        (Precision::Int12, 3, 1, "product12_16x8"),
    ];
    for (precision, count, processors, kernel) in choices {
        let (expected, _) = on(processors, "dots", product(precision, count, Path::Dots));
        let found = on(processors, kernel, product(precision, count, Path::Auto));
        assert!(
            found == (expected, true),
            "{count} rows on {processors}: {kernel}"
        );
    }
}

/// 20 queries of 4 heads are 8 blocks of threads where each takes all positions of its rows.
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
    let (expected, is_merged) = on(2, "merge", attention(BLOCK + 1));
    assert!(!is_merged);
    assert_eq!(on(3, "merge", attention(BLOCK + 1)), (expected, true));
    // There is nothing to merge.
    assert!(!on(3, "merge", attention(BLOCK)).1);
}
