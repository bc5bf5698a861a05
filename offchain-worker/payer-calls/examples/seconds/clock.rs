//! How long something takes.

use std::fs;

use crate::Result;

/// What takes little time is done again for so long, in seconds.
const REPEAT_SECONDS: f64 = 0.3;

/// Time that this thread has had on a processor, in seconds: the machine may have other things to do.
fn processor_seconds() -> Result<f64> {
    let times = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = times.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// Seconds of a processor that one of many takes.
pub fn each(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let (begun, mut count) = (processor_seconds()?, 0u32);
    loop {
        work()?;
        count = count.saturating_add(1);
        // Reading the clock takes as long as a signature.
        if count.is_power_of_two() || count.is_multiple_of(256) {
            let taken = processor_seconds()? - begun;
            if taken >= REPEAT_SECONDS {
                return Ok(taken / f64::from(count));
            }
        }
    }
}
