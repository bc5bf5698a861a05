//! Small models of every family: what is right holds, what is not is refuted, and games end as they should.

#![allow(clippy::unwrap_used)]

mod bounds;
mod carried;
mod faults;
mod games;
mod hostile;
mod kept;
mod liar;
mod plain;
mod shapes;
mod sizes;
mod small;
mod verdicts;
