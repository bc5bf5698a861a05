//! A request that was taken.

use std::cell::OnceCell;

use codec::{Decode, Encode};
use sp_core::H256;
use surety_channels::{ChunkStatement, End, Ending, Request, SignedCancel, SignedChunkStatement};

use crate::{
    AccountId, Millis,
    answer::{Form, Said},
};

/// What the journal keeps of it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct CallRow {
    pub request: Request,
    /// Of the request.
    pub hash: H256,
    pub form: Form,
    /// Units that were said.
    pub said: u32,
    /// In so many chunks.
    pub chunks: u32,
    /// The last, which may have been sent. With an end it is the receipt.
    pub statement: Option<SignedChunkStatement<AccountId>>,
    /// The payer's word that it wants no more.
    pub cancel: Option<SignedCancel<AccountId>>,
}

impl CallRow {
    /// The receipt.
    pub fn receipt(&self) -> Option<&ChunkStatement<AccountId>> {
        let statement = &self.statement.as_ref()?.statement;
        statement.end.is_some().then_some(statement)
    }

    /// Whether it came to nothing.
    pub fn is_void(&self) -> bool {
        self.receipt().is_some_and(ChunkStatement::is_void)
    }

    /// How it ends where no more is said of it.
    pub const fn early_end(&self) -> End {
        match self.cancel {
            Some(_) => End::Cancelled,
            None => End::Cut,
        }
    }
}

/// What memory keeps of a request whose receipt a final block has, or had: what it takes to forget it, and to
/// read it for nobody who does not know what was asked. All of it is in the journal.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The first bytes of its hash.
    pub hash: [u8; 8],
    /// Chunks of its output.
    pub chunks: u32,
    /// Whether it came to nothing.
    pub is_void: bool,
    /// All of it, where that was read a moment ago.
    pub row: OnceCell<Box<CallRow>>,
}

impl Kept {
    /// Whether it may be the request of this hash.
    pub fn may_be(&self, request: H256) -> bool {
        request.0.starts_with(&self.hash)
    }
}

impl From<&CallRow> for Kept {
    fn from(row: &CallRow) -> Self {
        Self {
            hash: row.hash.0.first_chunk().copied().unwrap_or_default(),
            chunks: row.chunks,
            is_void: row.is_void(),
            row: OnceCell::new(),
        }
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is computed.
    Running,
    /// All of it was computed. What is not said waits for a voucher.
    Finished(Ending),
    /// No more is said, and the trace of what was is made.
    Tracing(End),
}

/// What only memory keeps of a request that has no receipt.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub said: Said,
    /// What was computed and not said: a chunk at most.
    pub pending: Vec<u8>,
    pub stage: Stage,
    /// Since when a chunk waits for its voucher.
    pub unpaid_since: Option<Millis>,
    /// Since when it is open, as far as the payee has been told the time.
    pub since: Option<Millis>,
    /// It is said though it is no whole chunk.
    pub is_due: bool,
    /// Nobody listens, or wants more: it ends with what the request's own voucher pays for.
    pub is_left: bool,
}

impl Live {
    pub fn new() -> Self {
        Self {
            said: Said::default(),
            pending: Vec::new(),
            stage: Stage::Running,
            unpaid_since: None,
            since: None,
            is_due: false,
            is_left: false,
        }
    }
}

pub(crate) struct Call {
    pub row: CallRow,
    /// Nothing once it has a receipt, or is known to get none.
    pub live: Option<Live>,
}
