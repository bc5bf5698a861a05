//! Runs models: getting them, checking them, inference, result roots.
//!
//! - [`fetch`] downloads a model that is [`known`] into a [`ModelStore`];
//! - [`ModelStore`] hands out files only after their hashes matched the manifest;
//! - [`open`] makes an [`Engine`] of them, the one that the manifest's family and tier ask for;
//! - [`EnginePool`] runs jobs on threads of its own, so that no tokio thread ever waits for inference.
//!
//! An [`Engine`] is a pure function of its model and the job: the same bits on every run, whatever else the machine
//! does and however many threads it has. How far "the same bits" reaches is the manifest's tier; see
//! `docs/adr/0005-engine-trait-and-first-tier.md`.
//!
//! ```no_run
//! # async fn example(home: &std::path::Path, input: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
//! use surety_engine::{fetch, known, EnginePool, FetchOptions, Job, ModelStore, PoolConfig};
//!
//! surety_engine::prepare_process();
//! let store = ModelStore::new(home);
//! let model = known::all_minilm_l6_v2();
//! fetch(&store, &model, &FetchOptions::default(), &mut |event| println!("{event:?}"))?;
//! let pool = EnginePool::new(PoolConfig::default())?;
//! let engine = pool.load(&store, model.manifest.id())?.await?;
//! let job = Job { operation: surety_types::model::Operation::Embed, input, units_max: 1_000 };
//! let outcome = pool.submit(engine, job)?.await?;
//! println!("{:?}", outcome.claim);
//! # Ok(())
//! # }
//! ```

pub mod bert;
mod embeddings;
mod engine;
mod error;
pub mod exact;
pub mod fetch;
pub mod generation;
mod hash;
pub mod input;
pub mod known;
mod model_error;
pub mod paths;
mod pool;
mod process;
mod prompt;
mod store;
mod trace;
pub mod train;

pub use embeddings::{Embeddings, EmbeddingsError, OUTPUT_BYTES_MAX};
pub use engine::{open, Engine, Event, Job, Outcome, Refutation, Sink};
pub use error::EngineError;
pub use fetch::{fetch, fetch_from_hub, FetchError, FetchEvent, FetchOptions, HubModel, Source};
pub use hash::{file_hash, file_hash_of};
pub use input::InputError;
pub use known::KnownModel;
pub use model_error::ModelError;
pub use pool::{EnginePool, JobSink, Leave, PoolConfig, Priority, Progress, Ticket, Token};
pub use process::prepare_process;
pub use prompt::{prompt_size, PromptSize};
pub use store::{ModelFile, ModelFiles, ModelStore, StoreError, StoredModel};
pub use surety_proofs::content_hash;
pub use trace::embedding_leaf;
pub use train::{train, TrainError, TrainEvent, TrainOptions, Trained};
