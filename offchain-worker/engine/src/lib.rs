//! Runs models: inference, result roots, traces.
//!
//! - [`Devices::open`] is what exact models run on, where it is not the processor;
//! - [`open`] makes an [`Engine`] of the files that a [`surety_models::ModelStore`] hands out, the one that
//!   the manifest's family and tier ask for;
//! - [`EnginePool`] runs jobs on threads of its own, so that no tokio thread ever waits for inference;
//! - [`serving::Server`] continues many prompts at once with one decoder, token by token, for clients that
//!   take turns;
//! - [`exact::ExactCalibrator`] reads the calibration text where `surety-models` converts a model.
//!
//! Inputs and outputs are ids of tokens (`surety_types::input`, [`generation`]): no engine reads text.
//!
//! An [`Engine`] is a pure function of its model and the job: the same bits on every run, whatever else the
//! machine does and however many threads it has. How far "the same bits" reaches is the manifest's tier; see
//! `docs/adr/0005-engine-trait-and-first-tier.md`.
//!
//! ```no_run
//! # async fn example(home: &std::path::Path, input: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
//! use surety_engine::{exact::ExactCalibrator, EnginePool, Job, PoolConfig};
//! use surety_model_fetch::{fetch, FetchOptions};
//! use surety_models::{known, ModelStore};
//!
//! let store = ModelStore::new(home);
//! let model = known::all_minilm_l6_v2();
//! fetch(&store, &model, &FetchOptions::default(), &ExactCalibrator, &mut |event| println!("{event:?}"))?;
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
pub mod generation;
mod pool;
pub mod serving;
mod trace;

pub use embeddings::{Embeddings, EmbeddingsError, OUTPUT_BYTES_MAX};
pub use engine::{Claimed, Difference, Engine, Event, ItemParts, Job, Outcome, Sink, View, open, open_on};
pub use error::EngineError;
pub use exact::{Choice, ChoiceError, Device, Devices, Dropped, Patience};
pub use pool::{EnginePool, JobSink, Leave, PoolConfig, Priority, Progress, Ticket};
pub use surety_kernels::{Refused as RefusedKernels, refused as refused_kernels};
pub use surety_proofs::content_hash;
pub use trace::embedding_leaf;
