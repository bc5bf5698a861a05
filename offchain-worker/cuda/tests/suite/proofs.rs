//! The benchmark's runs, held against a processor's.

use std::{num::NonZero, thread};

use sp_core::H256;
use surety_cuda::{DeviceMemory, DeviceMemoryError, GpuBackend};
use surety_gpu_proofs::{BATCHES, Job, LAYERS_MIN, Memory, Plan, Processor, draw, open, run, verify_all};

fn processor() -> Processor {
    Processor::new(thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))
}

/// A job whose batches have so many rows.
pub fn job(batch_rows: u32, seed: u8) -> Job {
    let plan = Plan {
        rows: batch_rows * BATCHES,
        layers: LAYERS_MIN,
    };
    Job::new(plan, &H256::repeat_byte(seed))
}

/// What is committed to and what is shown are the same, and are believed.
pub fn runs_equal_a_processors<M: GpuBackend + 'static>(memory: DeviceMemory<M>) {
    let (rows, seed) = (3 * BATCHES, H256::repeat_byte(11));
    let expected = run(&mut processor(), rows, &seed, |_| false).unwrap();
    // As whoever does not know the device has it.
    let mut boxed: Box<dyn Memory<Error = DeviceMemoryError>> = Box::new(memory);
    let made = run(&mut boxed, rows, &seed, |_| false).unwrap();
    assert_eq!(made.root(), expected.root());
    let plan = made.job().plan();
    let samples = draw(plan, &H256::repeat_byte(12), 1, &2u64);
    let openings = open(&mut boxed, &made, &samples).unwrap();
    assert_eq!(openings, open(&mut processor(), &expected, &samples).unwrap());
    assert_eq!(
        verify_all(&Job::new(plan, &seed), made.root(), &samples, &openings),
        Ok(())
    );
}

/// One row or several blocks of them; batches before and after others; one run after the other.
pub fn batches_equal_a_processors<M: GpuBackend>(memory: &mut DeviceMemory<M>, batch_rows: &[u32]) {
    for (rows, seed) in batch_rows.iter().zip(1..) {
        let job = job(*rows, seed);
        let mut expected = processor();
        expected.fill(&job).unwrap();
        memory.fill(&job).unwrap();
        for (layer, batch) in [(1, 0), (1, 31), (2, 0), (2, 7)] {
            let what = format!("{rows} rows, batch {batch} of layer {layer}");
            let root = expected.step(&job, layer, batch).unwrap();
            assert_eq!(memory.step(&job, layer, batch).unwrap(), root, "{what}");
            let digests = expected.digests().unwrap();
            assert_eq!(memory.digests().unwrap(), digests, "{what}");
            // The last two are of no row of it, and 127 not always.
            let some = [0, rows / 2, 127, rows - 1, *rows, u32::MAX];
            assert_eq!(
                memory.proofs(&some).unwrap(),
                expected.proofs(&some).unwrap(),
                "{what}"
            );
            // The batch's ends, one within it, and one that is of layer 0.
            let first = batch * rows;
            for row in [first, first + rows / 2, first + rows - 1, 20 * rows] {
                assert_eq!(
                    memory.row(row).unwrap(),
                    expected.row(row).unwrap(),
                    "row {row}: {what}"
                );
            }
        }
    }
}
