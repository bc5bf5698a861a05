#![doc = include_str!("../README.md")]

mod answer;
mod api;
mod batch;
mod drive;
mod embed;
mod error;
mod files;
mod generate;
mod ledger;
mod metrics;
mod models;
mod multipart;
mod openapi;
mod places;
mod prompt;
mod proof;
mod rate;
mod receipts;
mod request;
mod runner;
mod stop;
mod text;
mod upstream;

pub use api::{BatchSettings, Exposed, Gateway, Settings};
pub use ledger::{Call, CallState, Key, KeyTerms, Ledger, LedgerError, OpenCall};
pub use proof::{NoProof, Proof, Says};
pub use runner::{
    BatchModel, BatchRunner, Computed, Ended, Payment, Posting, Quoted, RunnerError, TaskReceipt,
};
pub use text::{ModelText, Tokenized};
pub use upstream::{
    Beside, Embedded, EmbeddingAsk, Finish, Generating, GenerationAsk, NoProviders, Offered, Receipt,
    SignedFor, Step, Upstream, UpstreamError, Verdict,
};
