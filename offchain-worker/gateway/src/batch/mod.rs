//! `/v1/batches`: requests that nobody waits for, computed as tasks on the chain.
//!
//! | state of a task | what is durable | after a restart |
//! |---|---|---|
//! | waiting | its input, its cap, what is reserved for it | it is posted |
//! | posting | and that it may be on the chain | it is looked for there first, by its cap |
//! | posted | and its number there | it is followed to its end |
//! | ended | what it has cost, its receipt, and its lines in the batch's files | |
//!
//! Each step is one transaction, made before anything is done because of it.

mod plan;
mod read;
pub(crate) mod record;
mod requires;
pub(crate) mod routes;
mod told;
mod validate;
mod work;

pub(crate) use work::Batches;
