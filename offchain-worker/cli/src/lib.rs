//! The `surety` command apart from its `main`: what each command does.
//!
//! - [`args`] is the command line as typed, [`config`] what it means together with file and environment.
//! - [`commands`] has one module per command; [`assembly`] is where another program gets between a worker's
//!   parts.
//! - [`prices`] is what a provider asks for.
//! - [`output`] and [`error`] are what a person, or a script, sees of all that.

mod advice;
pub mod args;
pub mod assembly;
pub mod chat;
pub mod commands;
pub mod config;
pub mod decimal;
pub mod error;
pub mod keys;
pub mod models;
pub mod output;
pub mod prices;

pub use surety_client::amount::{self, SURE};
