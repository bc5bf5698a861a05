//! An answer while it is made.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use async_trait::async_trait;
use codec::Encode;
use surety_channels::{End, SignedChunkStatement};
use surety_gateway::{Finish, Generating, Receipt, Step, UpstreamError};

use crate::{
    AccountId,
    ask::{Call, lost},
    channel::Ended,
    market::{Shared, named},
};

/// What comes of a call, piece by piece.
pub(crate) struct Run {
    shared: Arc<Shared>,
    call: Call,
    has_answered: bool,
}

impl Run {
    pub const fn new(shared: Arc<Shared>, call: Call) -> Self {
        Self {
            shared,
            call,
            has_answered: false,
        }
    }

    /// Who answers.
    pub const fn provider(&self) -> &AccountId {
        &self.call.provider
    }

    /// The next piece, or how it has ended. Cancel-safe.
    pub async fn piece(&mut self) -> Result<Piece, UpstreamError> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// The same for whoever waits for one of several.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, UpstreamError>> {
        if let Some(bytes) = ready!(self.call.poll_piece(cx)) {
            if !self.has_answered {
                self.has_answered = true;
                self.shared
                    .answered(&self.call.provider, self.call.asked_at.elapsed());
            }
            return Poll::Ready(Ok(Piece::Bytes(bytes)));
        }
        let Some(ended) = &mut self.call.ended else {
            return Poll::Ready(Err(self.lost("it has ended", 0)));
        };
        let ended = ready!(Pin::new(ended).poll(cx));
        self.call.ended = None;
        Poll::Ready(match ended {
            Ok(Ended::Receipt { signed, paid }) => Ok(Piece::End { signed, paid }),
            Ok(Ended::Broken { why, spent }) => Err(self.lost(&why.to_string(), spent)),
            // All that it may cost may have been signed.
            Err(_) => Err(self.lost("its channel has ended", self.call.price)),
        })
    }

    /// It has won its race.
    pub fn has_won(&self) {
        self.call.has_won();
    }

    /// It is enough.
    pub async fn stop(&self) {
        self.call.cancel().await;
    }

    /// The receipt of an answer of which no more was wanted, once it is there. What is said until then goes
    /// to `said`.
    pub async fn rest(&mut self, said: &mut Vec<u8>) -> Result<Receipt, UpstreamError> {
        loop {
            match self.piece().await? {
                Piece::Bytes(bytes) => said.extend(bytes),
                Piece::End { signed, paid } => return Ok(receipt(&signed, paid)),
            }
        }
    }

    fn lost(&self, why: &str, spent: u128) -> UpstreamError {
        self.shared.failed(&self.call.provider);
        lost(&self.call.provider, why, spent)
    }

    /// All of an answer, and its receipt.
    pub async fn all(&mut self) -> Result<(Vec<u8>, Receipt), UpstreamError> {
        let mut bytes = Vec::new();
        loop {
            match self.piece().await? {
                Piece::Bytes(more) => bytes.extend(more),
                Piece::End { signed, paid } => return Ok((bytes, self.whole(&signed, paid)?)),
            }
        }
    }

    /// The receipt of a whole answer.
    pub fn whole(
        &self,
        signed: &SignedChunkStatement<AccountId>,
        paid: u128,
    ) -> Result<Receipt, UpstreamError> {
        let receipt = receipt(signed, paid);
        let why = match receipt.finish {
            Finish::Stop | Finish::Length => return Ok(receipt),
            // This end's channel has cancelled it, for want of money: its provider has not failed.
            Finish::Cancelled => "the channel's money has run out",
            Finish::Cut => {
                self.shared.failed(&self.call.provider);
                "it broke off"
            }
        };
        let is_void = signed.statement.is_void();
        Err(UpstreamError::Failed {
            provider: receipt.provider.clone(),
            why: why.to_owned(),
            spent: 0,
            receipts: if is_void { Vec::new() } else { vec![receipt] },
        })
    }
}

/// What comes next of an answer.
#[allow(clippy::large_enum_variant, reason = "a few are there at a time")]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    End {
        signed: SignedChunkStatement<AccountId>,
        paid: u128,
    },
}

#[async_trait]
impl Generating for Run {
    async fn next(&mut self) -> Result<Step, UpstreamError> {
        match self.piece().await? {
            Piece::Bytes(bytes) => Ok(Step::Tokens(ids(&bytes))),
            Piece::End { signed, paid } => Ok(Step::Done(self.whole(&signed, paid)?)),
        }
    }

    async fn cancel(mut self: Box<Self>) -> Result<Receipt, UpstreamError> {
        self.stop().await;
        self.rest(&mut Vec::new()).await
    }
}

/// Ids of tokens: whole units, as a payer takes no others.
pub(crate) fn ids(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// What was signed, and what is paid for it, in plancks.
pub(crate) fn receipt(signed: &SignedChunkStatement<AccountId>, paid: u128) -> Receipt {
    let said = &signed.statement;
    let finish = match said.end.map(|end| end.how) {
        Some(End::Stop) => Finish::Stop,
        Some(End::Length) => Finish::Length,
        Some(End::Cancelled) => Finish::Cancelled,
        // Without an end it is the last that was said.
        Some(End::Cut) | None => Finish::Cut,
    };
    Receipt {
        provider: named(&said.payee),
        channel: said.channel,
        nonce: said.nonce,
        output_hash: format!("{:?}", said.output),
        trace_root: format!("{:?}", said.end.map(|end| end.trace_root).unwrap_or_default()),
        units: said.units,
        price: paid,
        finish,
        signed: signed.encode(),
    }
}
