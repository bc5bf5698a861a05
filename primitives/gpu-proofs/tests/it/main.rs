//! What is shown of a run is believed exactly when it is right.
#![allow(clippy::unwrap_used)]

mod cheats;
mod openings;
mod runs;
mod sizes;
mod standing;
mod support;
