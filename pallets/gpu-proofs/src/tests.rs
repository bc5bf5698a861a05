#![allow(clippy::unwrap_used)]

mod commits;
mod openings;
mod rounds;
mod standing;
mod try_state;
