#![allow(clippy::unwrap_used)]

mod audit_pay;
mod client_lock;
mod conservation;
mod dust;
mod limit;
mod migration;
mod open;
mod refund;
mod settle;
mod try_state;
