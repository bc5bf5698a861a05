//! A round on the CUDA kernels, run by a C++ program that plays a device.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use surety_benchmark::{Failed, Hold, Machine, Pause, RunMemory, in_words};
use surety_cuda::DeviceMemory;
use surety_gpu_proofs::BATCHES;

use crate::{
    emulator::{Emulator, Order},
    setup::World,
};

/// The emulated device. It has room for one run at a time, the least that there is.
#[derive(Default)]
struct Emulated {
    /// What the last trial, run or second run took, in milliseconds, from the pause for it to its end.
    took_ms: Arc<AtomicU64>,
}

/// Ends when everything else may go on.
struct Paused {
    began: Instant,
    took_ms: Arc<AtomicU64>,
}

impl Drop for Paused {
    fn drop(&mut self) {
        let took = self.began.elapsed().as_millis() as u64;
        self.took_ms.store(took, Ordering::Relaxed);
    }
}

#[async_trait]
impl Machine for Emulated {
    async fn pause(&self, _: Duration) -> Result<Pause, String> {
        Ok(Box::new(Paused {
            began: Instant::now(),
            took_ms: self.took_ms.clone(),
        }))
    }

    fn hold(&self, _: Duration) -> Hold {
        Box::new(())
    }

    fn memory(&self, stop: &Arc<AtomicBool>) -> Result<(RunMemory, u32), Failed> {
        let memory = DeviceMemory::new(Emulator::start(Order::Forwards), u64::MAX, stop.clone());
        Ok((
            in_words(memory, |error| Failed::Device(error.to_string())),
            BATCHES,
        ))
    }
}

/// Windows, each twice as long as the one before: what else the machine does may make a run late that was not
/// in its trial.
const WINDOWS: u8 = 3;

/// Whether a run is committed to within its window.
async fn is_committed_to(world: &World, entropy: u8) -> bool {
    world.run_from(entropy);
    let ends = Instant::now() + Duration::from_millis(world.window_ms);
    world
        .until("a commitment, or the window's end", |world| {
            !world.commitments().is_empty() || ends <= Instant::now()
        })
        .await;
    !world.commitments().is_empty()
}

/// Tensor cores are played product by product: the least run takes some seconds, and the window is chosen by
/// how many.
#[tokio::test]
async fn a_round_on_a_device_is_committed_to_and_shown() {
    let mut world = World::new().await;
    // Compiled before anything is timed.
    drop(Emulator::start(Order::Forwards));
    let machine = Arc::new(Emulated::default());
    let trial_ms = || machine.took_ms.load(Ordering::Relaxed);
    let provider = world.start_on(machine.clone(), true);
    world.begin();
    world.until("a trial", |_| trial_ms() > 0).await;
    world.window_ms = trial_ms() * 3 + 2_000;
    let mut entropy = 1;
    while !is_committed_to(&world, entropy).await {
        assert!(entropy < WINDOWS, "no run was made within {} ms", world.window_ms);
        // As on another fork, which asks for another run.
        entropy += 1;
        world.window_ms *= 2;
    }
    let before = world.attempts();
    world.close(entropy);
    world.draw(entropy);
    world.chain.finalize();
    world
        .until("a measurement", |world| world.measured().is_some())
        .await;
    assert_eq!(
        world.attempts(),
        before + 1,
        "what was shown was believed at once"
    );
    provider.stop().await;
}
