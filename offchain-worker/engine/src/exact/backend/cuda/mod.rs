//! Exact models on a CUDA device, or on a program that plays one: weights are uploaded once, activations
//! stay there, and what a pass shows leaves it at its end, in one go.

mod bert;
mod llama;
mod placed;
mod shown;
mod timed;
mod turns;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use surety_cuda::{Floats, GpuBackend, Kernels, NormRows, Packed, Quanta, Ring, Rows, Slot, Weights};
use surety_exact::{ArithmeticError, Precision};
use surety_kernels::{
    Packed as PackedHere,
    weights::{Norm, Quanta as QuantaHere, Table},
};

use super::{Backend, Decoder, Encoder, Fault, Standing};
use crate::exact::{bert::BertModel, llama::LlamaModel};
use bert::CudaBert;
use llama::CudaLlama;
use shown::{Arrived, Left};
use timed::Timed;
use turns::Turns;

/// What a model's threads can hand on.
pub trait Machine: GpuBackend<Memory: Send + Sync> + Send + 'static {}

impl<M: GpuBackend<Memory: Send + Sync> + Send + 'static> Machine for M {}

/// One device. Its models take turns, a pass at a time.
pub(super) struct CudaBackend<M: GpuBackend>(Arc<Shared<Timed<M>>>);

/// What the models of a device share.
struct Shared<M: GpuBackend> {
    kernels: Turns<Kernels<M>>,
    /// Where what passes show leaves the device. Of what leaves slowly `standing` is told.
    ring: Ring<M>,
    standing: Standing,
}

impl<M: GpuBackend> Shared<M> {
    /// Does something once nobody else has the device.
    fn turn<T>(&self, run: impl FnOnce(&mut Kernels<M>) -> T) -> Result<T, surety_cuda::Error> {
        let done = self.kernels.take(|| self.standing.answers(), run);
        done.ok_or(surety_cuda::Error::NoAnswer)
    }

    /// Waits until all that has left is there. Others may have the device meanwhile.
    fn arrived<'a>(&self, left: &'a mut Left<M::Landing>) -> Result<Arrived<'a>, Fault> {
        let _open = self.standing.call();
        left.arrived().map_err(|error| self.standing.fault(error))
    }
}

impl<M: Machine> CudaBackend<M> {
    /// Of a machine that is ready.
    pub(super) fn new(machine: M, standing: Standing) -> Result<Self, Fault> {
        let machine = Timed::new(machine, standing.clone());
        let kernels = Kernels::new(machine).map_err(|error| standing.fault(error))?;
        let kernels = Turns::new(kernels);
        let ring = Ring::default();
        Ok(Self(Arc::new(Shared {
            kernels,
            ring,
            standing,
        })))
    }
}

impl<M: Machine> Backend for CudaBackend<M> {
    fn encoder(&self, model: &Arc<BertModel>) -> Result<Arc<dyn Encoder>, Fault> {
        Ok(Arc::new(CudaBert::new(self.0.clone(), model)?))
    }

    fn decoder(&self, model: &Arc<LlamaModel>) -> Result<Arc<dyn Decoder>, Fault> {
        Ok(Arc::new(CudaLlama::new(self.0.clone(), model)?))
    }
}

/// What was computed before a panic is void anyway: a pass begins with nothing of another one's.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a pass. The device is used again after one that failed only if the fault was the numbers', or memory
/// that others have.
fn pass<M: GpuBackend, T>(
    shared: &Shared<M>,
    mut run: impl FnMut(&mut Kernels<M>) -> Result<T, surety_cuda::Error>,
) -> Result<T, Fault> {
    twice_if_short(shared, || pass_once(shared, &mut run))
}

/// Does something, and once more if it found no memory and models kept some for sequences to come.
fn twice_if_short<M: GpuBackend, T>(
    shared: &Shared<M>,
    mut run: impl FnMut() -> Result<T, surety_cuda::Error>,
) -> Result<T, Fault> {
    let mut result = run();
    let is_short = result.as_ref().is_err_and(surety_cuda::Error::is_memory);
    if is_short && shared.turn(Kernels::trim) == Ok(true) {
        result = run();
    }
    result.map_err(|error| shared.standing.fault(error))
}

/// After a pass that failed, the device has nothing to say of it any more.
fn pass_once<M: GpuBackend, T>(
    shared: &Shared<M>,
    run: impl FnOnce(&mut Kernels<M>) -> Result<T, surety_cuda::Error>,
) -> Result<T, surety_cuda::Error> {
    shared.turn(|kernels| {
        let result = run(kernels);
        if let Some(why) = kernels.slower().or_else(|| shared.ring.refused()) {
            shared.standing.is_slower(why);
        }
        if result.is_err() {
            // A fault of the numbers is forgotten; one of the machine comes again by itself.
            kernels.check().ok();
        }
        result
    })?
}

/// [`pass`] of what is shown: a slot is waited for before the device is, so that who looks at what was shown
/// before keeps the device from nobody.
///
/// A pool's thread does not wait. While it waits for parts of one pass's hashes, or beneath such a part, it
/// may take up another pass: those that have all slots might wait for what lies beneath it.
fn shown_pass<M: GpuBackend, T>(
    shared: &Shared<M>,
    mut run: impl FnMut(&mut Kernels<M>, Slot<M::Landing>) -> Result<T, surety_cuda::Error>,
) -> Result<T, Fault> {
    twice_if_short(shared, || {
        let slot = match rayon::current_thread_index() {
            Some(_) => Some(shared.ring.late_slot()),
            None => shared.ring.slot(|| shared.standing.answers()),
        };
        let slot = slot.ok_or(surety_cuda::Error::NoAnswer)?;
        pass_once(shared, |kernels| run(kernels, slot))
    })
}

/// A normalisation's weights on the device.
struct NormThere<M: GpuBackend> {
    weight: Floats<M>,
    bias: Option<Floats<M>>,
    epsilon: f32,
}

impl<M: GpuBackend> NormThere<M> {
    fn new(kernels: &mut Kernels<M>, norm: &Norm) -> Result<Self, surety_cuda::Error> {
        Ok(Self {
            weight: kernels.upload(&norm.weight)?,
            bias: norm.bias.as_ref().map(|bias| kernels.upload(bias)).transpose()?,
            epsilon: norm.epsilon,
        })
    }

    /// As the device takes it: a layer norm where there is a bias.
    fn there(&self) -> surety_cuda::Norm<'_, M> {
        surety_cuda::Norm {
            weight: &self.weight,
            bias: self.bias.as_ref(),
            epsilon: self.epsilon,
        }
    }

    /// Rows normalized.
    fn normalize(
        &self,
        kernels: &mut Kernels<M>,
        rows: &Floats<M>,
        out: &mut Floats<M>,
    ) -> Result<(), surety_cuda::Error> {
        kernels.norm(rows, &self.there(), out)
    }

    /// Rows, to which something may be added first, normalized and quantized in one launch; what is quantized
    /// is kept in `out`, if that is given.
    fn quantize(
        &self,
        kernels: &mut Kernels<M>,
        rows: NormRows<'_, M>,
        out: Option<&mut Floats<M>>,
        (smoothing, into): (Option<&Floats<M>>, &mut Rows<M>),
    ) -> Result<(), surety_cuda::Error> {
        kernels.norm_quantize(rows, &self.there(), out, smoothing, into)
    }
}

/// Uploads a factor for each input, where there are any.
fn smoothing<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    scale: Option<&Vec<f32>>,
) -> Result<Option<Floats<M>>, surety_cuda::Error> {
    scale.map(|scale| kernels.upload(scale)).transpose()
}

/// Uploads a table of rows to look up.
fn table<M: GpuBackend>(kernels: &mut Kernels<M>, table: &Table) -> Result<Packed<M>, surety_cuda::Error> {
    kernels.pack(&Weights {
        inputs: table.width,
        outputs: table.rows,
        q: match &table.q {
            QuantaHere::Int8(q) => Quanta::Int8(q),
            QuantaHere::Int12(q) => Quanta::Int12(q),
        },
        scales: &table.scales,
        bias: None,
    })
}

/// Uploads a matrix.
fn linear<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    packed: &PackedHere,
) -> Result<Packed<M>, surety_cuda::Error> {
    let (mut int8, mut int12, mut scales, mut bias) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for output in 0..packed.outputs() {
        let row = packed.row(output).ok_or(ArithmeticError::Shape)?;
        match packed.precision() {
            // They were packed from as many bits.
            Precision::Int8 => int8.extend(row.q.iter().map(|q| *q as i8)),
            Precision::Int12 => int12.extend(row.q),
        }
        scales.extend(row.scales);
        bias.extend(row.bias);
    }
    kernels.pack(&Weights {
        inputs: packed.inputs(),
        outputs: packed.outputs(),
        q: match packed.precision() {
            Precision::Int8 => Quanta::Int8(&int8),
            Precision::Int12 => Quanta::Int12(&int12),
        },
        scales: &scales,
        bias: (!bias.is_empty()).then_some(&bias[..]),
    })
}

/// A product of what was quantized last.
fn product<'a, M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (rows, count): (&Rows<M>, usize),
    by: &Packed<M>,
    out: &'a mut Option<Floats<M>>,
) -> Result<&'a mut Floats<M>, surety_cuda::Error> {
    let out = kernels.sized(out, count * by.outputs())?;
    kernels.product(rows, by, out)?;
    Ok(out)
}

/// Products of the same rows.
fn products<M: GpuBackend, const N: usize>(
    kernels: &mut Kernels<M>,
    rows: &Rows<M>,
    by: [&Packed<M>; N],
    out: [&mut Floats<M>; N],
) -> Result<(), surety_cuda::Error> {
    let mut parts: Vec<_> = by.into_iter().zip(out).collect();
    kernels.products(rows, &mut parts)
}

#[cfg(test)]
mod tests {
    use std::{
        hint::black_box,
        sync::{
            atomic::{AtomicBool, Ordering},
            mpsc,
        },
        thread,
        time::Duration,
    };

    use rayon::prelude::*;
    use surety_cuda::{Argument, Capped, Error, Landing, Pages, Product, Shape, Stage};
    use surety_exact::{BLOCK, LANES, blocks};

    use super::*;
    use crate::exact::{
        backend::{Device, Patience},
        batch::kv_bytes,
    };

    /// A machine that computes nothing, and whose memory is all zeros.
    struct Idle;

    #[derive(Debug)]
    struct Zeros(Vec<u8>);

    impl Landing for Zeros {
        fn room(&self) -> usize {
            self.0.len()
        }

        fn wait(&mut self, bytes: usize) -> Result<&[u8], Error> {
            self.0.get(..bytes).ok_or_else(|| ArithmeticError::Shape.into())
        }
    }

    impl GpuBackend for Idle {
        type Memory = ();
        type Landing = Zeros;

        fn allocate(&mut self, _: usize) -> Result<(), Error> {
            Ok(())
        }

        fn write(&mut self, (): &mut (), _: &[u8]) -> Result<(), Error> {
            Ok(())
        }

        fn read(&mut self, (): &(), bytes: &mut [u8]) -> Result<(), Error> {
            bytes.fill(0);
            Ok(())
        }

        fn launch(&mut self, _: &str, _: Shape, _: &[Argument<'_, ()>]) -> Result<(), Error> {
            Ok(())
        }

        fn product(&mut self, _: &Product<'_, ()>) -> Result<bool, Error> {
            Ok(false)
        }

        fn landing(&mut self, bytes: usize) -> Result<Option<Zeros>, Error> {
            Ok(Some(Zeros(vec![0; bytes])))
        }

        fn begin_read(&mut self, _: &[(&(), usize)], _: &mut Zeros) -> Result<(), Error> {
            Ok(())
        }
    }

    /// A pass, and what is done while what it shows is here.
    fn show(shared: &Shared<Idle>, look: impl FnOnce()) {
        let mut stage = Stage::<Idle>::default();
        let departed = shown_pass(shared, |kernels, slot| {
            let floats = kernels.upload(&[0.0; 8])?;
            kernels.stage(&floats, &mut stage)?;
            kernels.leave(&mut stage, slot)
        });
        let mut departed = departed.expect("it refuses nothing");
        look();
        assert_eq!(departed.bytes(), Ok(&[0; 32][..]));
    }

    /// Does something in a pool of so many threads, on a device with one slot. It fails if that does not end.
    fn ends(threads: usize, run: impl FnOnce(&Shared<Idle>) + Send + 'static) {
        let (ended, wait) = mpsc::channel();
        thread::spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let shared = Shared {
                kernels: Turns::new(Kernels::new(Idle).expect("it refuses nothing")),
                ring: Ring::new(1, 1 << 20),
                standing: Device::on(Idle, "idle").expect("it refuses nothing").standing,
            };
            pool.expect("a pool").install(|| run(&shared));
            ended.send(shared.ring.free()).ok();
        });
        let free = wait.recv_timeout(Duration::from_secs(60));
        assert_eq!(free, Ok(1), "with {threads} threads");
    }

    /// Who has the only slot waits for a part of its hashes, beneath which another pass was taken up.
    #[test]
    fn a_pass_beneath_the_hashes_of_another_waits_for_no_slot() {
        ends(2, |shared| {
            let is_taken_up = AtomicBool::new(false);
            show(shared, || {
                rayon::join(
                    || {
                        while !is_taken_up.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                    },
                    || {
                        is_taken_up.store(true, Ordering::Relaxed);
                        show(shared, || ());
                    },
                );
            });
        });
    }

    #[test]
    fn more_passes_than_slots_that_are_hashed_together_end() {
        for threads in 1..=4 {
            ends(threads, |shared| {
                (0..500u32).into_par_iter().for_each(|_| {
                    show(shared, || {
                        (0..64u64).into_par_iter().for_each(|part| {
                            black_box((0..100).fold(part, |sum, i| sum.wrapping_mul(31) ^ black_box(i)));
                        });
                    });
                });
            });
        }
    }

    #[test]
    fn a_pass_waits_for_no_slot_of_a_device_that_does_not_answer() {
        let patience = Patience {
            silent: Duration::from_millis(1),
            ..Patience::default()
        };
        let device = Device::patient(Idle, "idle", patience).expect("it refuses nothing");
        let shared = Shared {
            kernels: Turns::new(Kernels::new(Idle).expect("it refuses nothing")),
            ring: Ring::new(1, 1 << 20),
            standing: device.standing,
        };
        let slot = shared.ring.slot(|| true);
        let call = shared.standing.call();
        let refused = shown_pass(&shared, |_, _| Ok(())).expect_err("nobody gives a slot back");
        assert!(
            matches!(
                refused,
                Fault::Device {
                    error: Error::NoAnswer,
                    ..
                }
            ),
            "{refused:?}"
        );
        drop((slot, call));
        shown_pass(&shared, |_, _| Ok(())).expect("there is one");
    }

    /// A pass that needs what a model keeps for sequences to come gets it, with a slot of its own again. One
    /// that needs more is refused, and run no third time.
    #[test]
    fn a_pass_that_is_short_of_memory_takes_what_no_sequence_uses() {
        let pages = Pages::<Capped<Idle>>::new(1, 1, 16).expect("a shape");
        let max = 10 * pages.page_bytes();
        let device = Device::on(Idle, "idle").expect("it refuses nothing");
        let shared = Shared {
            kernels: Turns::new(Kernels::new(Capped::new(Idle, max as u64)).expect("four bytes")),
            ring: Ring::new(1, 1 << 20),
            standing: device.standing,
        };
        let mut held = pages.cache();
        pass(&shared, |kernels| kernels.reserve(&mut held, BLOCK)).expect("there is room");
        let mut ended = pages.cache();
        pass(&shared, |kernels| kernels.reserve(&mut ended, 8 * BLOCK)).expect("there is room");
        drop(ended);
        assert_eq!(pages.bytes(), 9 * pages.page_bytes(), "all are kept");
        for (count, expected) in [(8, 2), (8, 1), (10, 1)] {
            let mut runs = 0;
            let found = shown_pass(&shared, |kernels, _slot| {
                runs += 1;
                kernels.floats(count * pages.page_bytes() / 4)
            });
            assert_eq!((found.is_ok(), runs), (count < 10, expected), "{count} pages");
            assert_eq!(pages.bytes(), pages.page_bytes(), "what is used stays");
        }
        assert!(shared.standing.dropped().is_none());
        assert_eq!(shared.ring.free(), 1);
    }

    /// Heads of whole lanes take just as much.
    #[test]
    fn pages_take_no_more_than_admission_counts() {
        for shape in [
            (1, 1, 1),
            (3, 2, 5),
            (22, 4, 64),
            (28, 8, 128),
            (32, 32, 80),
            (32, 8, 96),
        ] {
            let (layers, kv_heads, head_dim) = shape;
            let pages = Pages::<Idle>::new(layers, kv_heads, head_dim).expect("a model's shape");
            for positions in [1, BLOCK, BLOCK + 1, 10 * BLOCK] {
                let (taken, counted) = (blocks(positions) * pages.page_bytes(), kv_bytes(shape, positions));
                assert!(taken <= counted, "{shape:?}, {positions}: {taken}, {counted}");
                assert!(
                    head_dim % LANES != 0 || taken == counted,
                    "{shape:?}, {positions}"
                );
            }
        }
    }
}
