#![allow(clippy::unwrap_used)]

mod commit;
mod honesty;
mod machine;
mod open;
mod replacement;
mod reveal;
mod time;
mod try_state;
mod verdict;
