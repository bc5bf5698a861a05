//! The conversation with `scripts/bench`.

use std::{
    fs,
    io::{BufRead, Write, stdin, stdout},
    time::Instant,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Result;

/// Prints a line.
pub fn say(answer: &Value) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}

/// Answers each line until there are no more.
pub fn answer<C: DeserializeOwned>(mut reply: impl FnMut(C) -> Result<Value>) -> Result<()> {
    for line in stdin().lock().lines() {
        say(&reply(serde_json::from_str(&line?)?)?)?;
    }
    Ok(())
}

/// Threads like those of an engine pool.
pub fn threads(count: usize) -> Result<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(count).build()?)
}

/// Measures a piece of work, and says so of the units that it gives.
pub fn measured(work: impl FnOnce() -> Result<usize>) -> Result<Value> {
    let (begun, processor) = (Instant::now(), processor_seconds()?);
    let units = work()?;
    let seconds = begun.elapsed().as_secs_f64();
    let processor = processor_seconds()? - processor;
    Ok(json!({"units": units, "seconds": seconds, "processor_seconds": processor}))
}

/// Time that this process's threads have had on processors.
fn processor_seconds() -> Result<f64> {
    let mut nanoseconds = 0u64;
    for thread in fs::read_dir("/proc/self/task")? {
        let times = fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += times.split(' ').next().unwrap_or_default().parse::<u64>()?;
    }
    Ok(nanoseconds as f64 / 1e9)
}
