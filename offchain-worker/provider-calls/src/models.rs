//! What is computed with.

use std::{collections::BTreeMap, sync::Arc};

use surety_channel_calls::Model;
use surety_channels::Request;
use surety_engine::{
    Devices, Engine, EngineError, EnginePool, PoolConfig,
    serving::{Handle, Limits, Server},
};
use surety_types::{
    ModelId,
    input::{IdBounds, WORD_BYTES},
    model::{ModelManifest, Operation},
};
use tokio::sync::Semaphore;

use crate::CallsConfig;

/// Jobs that wait for the pool: vectors, and traces of what was cut.
const QUEUE: usize = 64;

/// Rows of a step where devices serve. By 64, which suits the processor, a device would read all weights for
/// few tokens of a prompt; by 1,024, as tasks do, everybody's next token would wait twice as long. The
/// processor has as many, too, once no device is left.
const DEVICE_STEP_ROWS: usize = 512;

/// A model that is ready.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) engine: Arc<dyn Engine>,
    /// What both sides have to know of it.
    pub(crate) facts: Model,
    /// Takes generations, where it makes any.
    pub(crate) handle: Option<Handle>,
}

/// Models that are ready, and what runs them.
pub struct Models {
    loaded: BTreeMap<ModelId, Loaded>,
    /// One for each model that generates. They end with this.
    _servers: Vec<Server>,
    pub(crate) pool: Arc<EnginePool>,
    /// No more jobs are handed to the pool than it takes.
    pub(crate) jobs: Semaphore,
}

impl Models {
    /// Starts what runs these engines, which were loaded onto these devices. Those outside of the exact tier
    /// are left out: nobody could check what they say.
    ///
    /// # Errors
    /// Where threads do not start.
    pub fn start(
        engines: impl IntoIterator<Item = Arc<dyn Engine>>,
        devices: Devices,
        config: &CallsConfig,
    ) -> Result<Self, EngineError> {
        let sizes = PoolConfig {
            threads: config.threads,
            queue: QUEUE,
        };
        let on_devices = config.device_serves && !devices.is_empty();
        let pool = EnginePool::on(sizes, devices)?;
        let mut limits = Limits {
            bytes_max: config.memory_bytes_max,
            client_bytes_max: config.memory_bytes_max / 2,
            prefix_bytes_max: config.memory_bytes_max / 4,
            waiting_max: config.open_max,
            client_waiting_max: config.open_max,
            ..Limits::default()
        };
        if on_devices {
            limits.step_rows = DEVICE_STEP_ROWS;
        }
        let (mut loaded, mut servers) = (BTreeMap::new(), Vec::new());
        for engine in engines {
            let Some(facts) = facts(engine.manifest()) else {
                continue;
            };
            let decoder = match config.device_serves {
                true => engine.clone().decoder_on_devices(),
                false => engine.clone().decoder(),
            };
            let server = match decoder {
                Some(decoder) => Some(Server::start(decoder, limits, config.threads)?),
                None => None,
            };
            let handle = server.as_ref().map(Server::handle);
            servers.extend(server);
            let id = engine.manifest().id();
            let model = Loaded {
                engine,
                facts,
                handle,
            };
            loaded.insert(id, model);
        }
        Ok(Self {
            loaded,
            _servers: servers,
            pool: Arc::new(pool),
            jobs: Semaphore::new(QUEUE),
        })
    }

    /// What makes vectors, and traces of what was cut: for pauses in which it stands aside.
    pub const fn pool(&self) -> &Arc<EnginePool> {
        &self.pool
    }

    pub(crate) fn get(&self, model: &ModelId) -> Option<&Loaded> {
        self.loaded.get(model)
    }

    /// Whether an answer would wait for a device that does not answer.
    pub(crate) fn is_stuck(&self, request: &Request) -> bool {
        let generates = request.operation == Operation::Generate;
        let model = self.get(&request.model).filter(|_| generates);
        let handle = model.and_then(|model| model.handle.as_ref());
        handle.is_some_and(Handle::is_stuck)
    }

    /// Models whose tokens are chosen on a device, of what is asked for now.
    pub(crate) fn on_devices(&self) -> usize {
        let handles = self.loaded.values().filter_map(|model| model.handle.as_ref());
        handles.filter(|handle| handle.is_on_device()).count()
    }
}

/// What both sides of a call have to know of a model; nothing where it is not of the exact tier.
pub fn facts(manifest: &ModelManifest) -> Option<Model> {
    let architecture = &manifest.exact.as_ref()?.architecture;
    let vectors = manifest.operations.contains(&Operation::Embed);
    Some(Model {
        bounds: IdBounds {
            vocabulary: architecture.vocabulary,
            positions: architecture.positions,
        },
        item_bytes: match vectors {
            true => architecture.width.checked_mul(WORD_BYTES)?,
            false => 0,
        },
        stop_ids: manifest.text.stop.to_vec(),
    })
}
