//! What a reader has of a generation, and what a batcher has of a reader.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::admission::{Admission, Reservation};
use crate::{engine::Outcome, error::EngineError, exact::Generated, generation::FinishReason};

/// How a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Finished(FinishReason),
    /// Its reader wanted no more.
    Cancelled,
    /// The server was shut down.
    Cut,
}

/// A generation that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Its output and claim. Where it was cancelled or cut they are those of a job of which no more units
    /// are paid for than its reader has taken: so it is audited, and so it is disputed. Nothing without a
    /// token.
    pub outcome: Option<Outcome>,
}

/// What a batcher knows in the end.
pub(super) struct Answer {
    pub(super) end: End,
    pub(super) generated: Option<Generated>,
    /// Of the trace, which is kept as long as this is.
    pub(super) _memory: Option<Reservation>,
}

type Answered = Result<Answer, EngineError>;

/// Where a generation goes.
pub(super) struct Reader {
    tokens: mpsc::Sender<u32>,
    answer: oneshot::Sender<Answered>,
}

/// Both ends.
pub(super) fn pair(admission: Arc<Admission>) -> (Reader, TokenStream) {
    let (token_sender, tokens) = mpsc::channel(admission.limits.ahead_max.max(1));
    let (answer_sender, answer) = oneshot::channel();
    let reader = Reader {
        tokens: token_sender,
        answer: answer_sender,
    };
    let stream = TokenStream {
        tokens,
        taken: 0,
        answer,
        admission,
    };
    (reader, stream)
}

impl Reader {
    /// Whether there is room for a token behind so many that are held back.
    pub(super) fn has_room(&self, held: usize) -> bool {
        self.tokens.capacity() > held
    }

    /// Whether nobody reads any more.
    pub(super) fn is_gone(&self) -> bool {
        self.tokens.is_closed()
    }

    /// Whether somebody waits to be told how it ends.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Passes a token on. There has to be room; who is gone does not miss it.
    pub(super) fn pass_on(&self, token: u32) {
        self.tokens.try_send(token).ok();
    }

    pub(super) fn end(self, answer: Answered) {
        // Tokens end before the answer is there.
        drop(self.tokens);
        self.answer.send(answer).ok();
    }

    /// Ends what has not begun.
    pub(super) fn unbegun(self, end: End) {
        self.end(Ok(Answer {
            end,
            generated: None,
            _memory: None,
        }));
    }
}

/// The tokens of a generation, as they come. A batcher is only so many tokens ahead of its reader
/// ([`super::Limits::ahead_max`]): not reading pauses the generation, which keeps its place. Dropping this
/// cancels it.
pub struct TokenStream {
    tokens: mpsc::Receiver<u32>,
    /// Tokens that were taken.
    taken: usize,
    answer: oneshot::Receiver<Answered>,
    admission: Arc<Admission>,
}

impl TokenStream {
    /// The next token; nothing after the last. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<u32> {
        let token = self.tokens.recv().await?;
        self.taken += 1;
        self.admission.change();
        Some(token)
    }

    /// How the generation ended. Tokens that were not taken are taken.
    ///
    /// # Errors
    /// The faults of the computation, if it came to nothing; [`EngineError::Closed`] if the batcher is gone.
    pub async fn finish(mut self) -> Result<Ended, EngineError> {
        while self.next().await.is_some() {}
        self.ended().await
    }

    /// Stops the generation: it ends with the tokens that were taken.
    ///
    /// # Errors
    /// As for [`TokenStream::finish`].
    pub async fn cancel(mut self) -> Result<Ended, EngineError> {
        self.tokens.close();
        self.admission.change();
        self.ended().await
    }

    async fn ended(&mut self) -> Result<Ended, EngineError> {
        let answer = (&mut self.answer).await.unwrap_or(Err(EngineError::Closed))?;
        let made = answer.generated.as_ref().map_or(0, Generated::len);
        Ok(Ended {
            end: if self.taken < made {
                End::Cancelled
            } else {
                answer.end
            },
            outcome: answer
                .generated
                .and_then(|generated| generated.outcome(self.taken)),
        })
    }
}

impl Drop for TokenStream {
    fn drop(&mut self) {
        self.tokens.close();
        self.admission.change();
    }
}
