//! What everybody in that world computes with.

use std::sync::Arc;

use surety_engine::{Devices, Engine};

use super::World;

impl World {
    /// With another engine than one that does what tests want to see.
    pub async fn with(engine: Arc<dyn Engine>) -> Self {
        let world = Self::new().await;
        world.served.set(engine).ok();
        world
    }

    /// With devices, whatever is computed on them.
    pub async fn on(devices: Devices) -> Self {
        let world = Self::new().await;
        world.devices.set(devices).ok();
        world
    }

    /// What exact models are loaded onto.
    pub(super) fn devices(&self) -> Devices {
        self.devices.get().cloned().unwrap_or_default()
    }

    pub(super) fn served(&self) -> Arc<dyn Engine> {
        let other = self.served.get().cloned();
        other.unwrap_or_else(|| self.engine.clone())
    }
}
