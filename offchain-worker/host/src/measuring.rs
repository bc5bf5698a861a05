//! Keeps true what is bid by: speeds are those of what computes now.

use surety_types::{ModelId, model::Operation};
use surety_worker_core::Event;

use super::{
    Core, Host, Result, Stop,
    speeds::{self, Speeds},
    warm_up,
};

/// How often samples are made anew that have failed: a queue may be full, or memory short.
pub(super) const TRIES: u32 = 5;

impl<C: Core> Host<C> {
    /// Tells core what was measured before, and begins to measure the rest.
    pub(super) async fn begin_measuring(&mut self, stop: &mut Stop) -> Result<()> {
        for measured in self.speeds.iter().flat_map(Speeds::events).collect::<Vec<_>>() {
            self.step(measured, stop).await?;
        }
        self.sample();
        Ok(())
    }

    fn sample(&mut self) {
        let (tools, unmeasured) = (self.tools.clone(), self.unmeasured());
        self.samples.abort_all();
        self.samples
            .spawn(async move { warm_up::measure(&tools.engines, unmeasured).await });
    }

    /// Takes in what was measured, and that a device is used no more: then all is measured again.
    pub(super) async fn see_speeds(&mut self, stop: &mut Stop) -> Result<()> {
        while self.samples.try_join_next().is_some() {}
        // What they have noted is there by now.
        let are_through = self.samples.is_empty();
        let machine = speeds::machine(self.tools.engines.devices());
        if machine != self.machine {
            return self.start_anew(machine, stop).await;
        }
        self.take_measured(stop).await?;
        if self.is_unsure && are_through {
            self.is_unsure = !self.unmeasured().is_empty() && self.samples_left > 0;
            if self.is_unsure {
                self.samples_left = self.samples_left.saturating_sub(1);
                self.sample();
            } else if !self.unmeasured().is_empty() {
                tracing::warn!(
                    "samples fail: what is bid by is `units_per_second`, until a task has shown more"
                );
            }
        }
        Ok(())
    }

    /// Something else computes from now on. A provider bids for nothing until it knows how fast that is: by
    /// the speed of a device that is gone, all that it promised could be late.
    async fn start_anew(&mut self, machine: Vec<String>, stop: &mut Stop) -> Result<()> {
        tracing::warn!(
            ?machine,
            "what computes has changed: how fast it is, is measured anew"
        );
        // Of what computes no more.
        self.tools.engines.take_measured();
        self.speeds = self.speeds.take().map(|speeds| speeds.measured_on(&machine));
        (self.is_unsure, self.samples_left) = (self.speeds.is_some(), TRIES);
        self.machine = machine;
        self.step(Event::Unmeasured, stop).await?;
        self.begin_measuring(stop).await
    }

    /// Takes in how fast work was done.
    pub(super) async fn take_measured(&mut self, stop: &mut Stop) -> Result<()> {
        for measured in self.tools.engines.take_measured() {
            if let Some(speeds) = &mut self.speeds {
                speeds.note(&measured);
            }
            self.step(measured, stop).await?;
        }
        Ok(())
    }

    /// What is on offer, and nobody knows how fast. A verifier offers nothing.
    fn unmeasured(&self) -> Vec<(ModelId, Operation)> {
        let Some(speeds) = &self.speeds else {
            return Vec::new();
        };
        let offered = self.tools.engines.offered();
        offered
            .filter(|(model, operation)| !speeds.knows(*model, *operation))
            .collect()
    }
}
