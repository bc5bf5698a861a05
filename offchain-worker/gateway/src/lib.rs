#![doc = include_str!("../README.md")]

mod answer;
mod api;
mod drive;
mod embed;
mod error;
mod ledger;
mod metrics;
mod rate;
mod request;
mod stop;
mod text;
mod upstream;

pub use api::{Exposed, Gateway, Settings};
pub use ledger::{Call, CallState, Key, KeyTerms, Ledger, LedgerError};
pub use text::{ModelText, Tokenized};
pub use upstream::{
    Embedded, Finish, Generating, GenerationAsk, Offered, Receipt, Served, Step, Upstream, UpstreamError,
    Verdict,
};
