//! Where the time of a forward pass goes.

use std::{collections::BTreeMap, time::Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use surety_engine::exact::{
    Probe, Step, TopLevel,
    kernels::{Heads, Rows},
};

/// Looks away, and costs nothing.
pub struct Blind;

impl Probe for Blind {
    fn wants(&self, _: Step) -> bool {
        false
    }

    #[inline(always)]
    fn real(&mut self, _: Step, _: &[f32], _: usize) {}

    #[inline(always)]
    fn quantized(&mut self, _: Step, _: &[f32], _: usize, _: &Rows) {}

    #[inline(always)]
    fn heads(&mut self, _: Step, _: &Heads) {}
}

/// Also looks at what comes after the last layer.
pub trait Look: Probe {
    /// What has been seen until now does not count.
    fn begin(&mut self) {}

    /// A token has been chosen.
    fn chosen(&mut self) {}
}

impl Look for Blind {}

impl Look for TopLevel {}

/// Who looks on at what is measured.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Looking {
    /// Nobody.
    Blind,
    /// The trace is recorded.
    Traced,
    /// Each step is timed.
    Timed,
}

/// Books the time since the step before on each step.
pub struct Clock {
    last: Instant,
    seconds: BTreeMap<String, f64>,
}

impl Look for Clock {
    fn begin(&mut self) {
        *self = Self::start();
    }

    fn chosen(&mut self) {
        self.book("Head".into());
    }
}

impl Clock {
    pub fn start() -> Self {
        Self {
            last: Instant::now(),
            seconds: BTreeMap::new(),
        }
    }

    /// What happens between two passes is nobody's.
    pub fn resume(&mut self) {
        self.last = Instant::now();
    }

    fn book(&mut self, what: String) {
        let now = Instant::now();
        *self.seconds.entry(what).or_default() += (now - self.last).as_secs_f64();
        self.last = now;
    }

    /// Share of each kind of step, summed over the layers.
    pub fn shares(&self) -> Value {
        let total: f64 = self.seconds.values().sum();
        let share = |(what, seconds): (&String, &f64)| (what.clone(), json!(seconds / total));
        Value::Object(self.seconds.iter().map(share).collect())
    }
}

impl Probe for Clock {
    fn real(&mut self, step: Step, _: &[f32], _: usize) {
        self.book(format!("{:?}", step.op));
    }

    fn quantized(&mut self, step: Step, _: &[f32], _: usize, _: &Rows) {
        self.book(format!("{:?}", step.op));
    }

    fn heads(&mut self, step: Step, _: &Heads) {
        self.book(format!("{:?}", step.op));
    }
}
