#![allow(clippy::unwrap_used)]

mod bidding;
mod cancelling;
mod drawing;
mod liveness;
mod lottery;
mod opening;
mod places;
mod pooled;
mod posting;
mod removing;
mod requiring;
mod reserves;
mod settling;
mod sweeping;
mod try_state;
mod view;
