//! The tokens of a task while it is computed: written by its provider, read by its client in pages.
//!
//! A log that only grows, with bounds on everything. Writing never waits; a reader that is slow, or starts
//! late, or starts over misses nothing.

use std::{future::Future, time::Duration};

use codec::{Decode, Encode};
use tokio::sync::watch;

/// Most tokens of one stream. A generation cannot have more.
pub const STREAM_TOKENS_MAX: usize = 4096;

/// Longest reason for a failure, in bytes. It is said to a person.
pub const REASON_BYTES_MAX: usize = 512;

/// Most tokens in one page.
pub(crate) const PAGE_TOKENS_MAX: usize = 256;

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum StreamEnd {
    /// These were all tokens.
    Complete,
    /// The provider has stopped before the last one. It may begin again.
    Stopped,
    /// It cannot compute the task.
    Failed {
        /// Why, in the provider's words.
        reason: String,
    },
}

/// A part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct StreamPage {
    /// The ids of the tokens from the index on that was asked for. Empty when there was nothing new for a
    /// while.
    pub tokens: Vec<u32>,
    /// How the stream ended, once its last token is in this page or before it.
    pub end: Option<StreamEnd>,
}

#[derive(Default)]
struct Log {
    tokens: Vec<u32>,
    end: Option<StreamEnd>,
}

impl Log {
    fn page(&self, from: usize) -> StreamPage {
        let rest = self.tokens.get(from..).unwrap_or_default();
        let tokens: Vec<u32> = rest.iter().take(PAGE_TOKENS_MAX).copied().collect();
        let last = tokens.len() == rest.len();
        StreamPage {
            end: self.end.clone().filter(|_| last),
            tokens,
        }
    }
}

/// The provider's end of a stream. Dropping it ends the stream as stopped.
pub struct StreamWriter(watch::Sender<Log>);

impl StreamWriter {
    /// A new stream, with its first reader.
    pub(crate) fn new() -> (Self, StreamReader) {
        let (sender, receiver) = watch::channel(Log::default());
        (Self(sender), StreamReader(receiver))
    }

    /// Adds a token. One that is over a bound ends the stream.
    pub fn push(&self, token: u32) {
        self.0.send_modify(|log| {
            if log.end.is_some() {
                return;
            }
            if log.tokens.len() < STREAM_TOKENS_MAX {
                log.tokens.push(token);
            } else {
                log.end = Some(StreamEnd::Stopped);
            }
        });
    }

    /// Returns once there is a token, or never: no reader has to ask for it first.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut log = self.0.subscribe();
        async move {
            if log.wait_for(|log| !log.tokens.is_empty()).await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// There are no more tokens: the task is computed.
    pub fn complete(self) {
        self.end(StreamEnd::Complete);
    }

    /// There is no computing it, for good.
    pub fn fail(self, reason: &str) {
        self.end(failed(reason));
    }

    fn end(&self, end: StreamEnd) {
        self.0.send_modify(|log| {
            log.end.get_or_insert(end);
        });
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.end(StreamEnd::Stopped);
    }
}

fn failed(reason: &str) -> StreamEnd {
    let cut = (0..=reason.len().min(REASON_BYTES_MAX))
        .rev()
        .find(|end| reason.is_char_boundary(*end));
    StreamEnd::Failed {
        reason: reason.get(..cut.unwrap_or_default()).unwrap_or_default().into(),
    }
}

/// Reads a stream, from any place and as often as is wanted.
#[derive(Clone)]
pub(crate) struct StreamReader(watch::Receiver<Log>);

impl StreamReader {
    /// What there is from index `from` on, as soon as there is something; nothing when `wait` has passed.
    pub(crate) async fn page(mut self, from: u32, wait: Duration) -> StreamPage {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let news = self
            .0
            .wait_for(|log| log.end.is_some() || log.tokens.len() > from);
        // Neither time that is up nor a writer that is gone is an error: the log says what there is.
        drop(tokio::time::timeout(wait, news).await);
        self.0.borrow().page(from)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_reader_waits_for_news_and_starts_anywhere() {
        let (writer, reader) = StreamWriter::new();
        assert_eq!(reader.clone().page(0, NOW).await, StreamPage::default());
        let waiting = tokio::spawn(reader.clone().page(1, LONG));
        writer.push(5);
        writer.push(6);
        assert_eq!(waiting.await.unwrap().tokens, [6]);
        let all = reader.clone().page(0, LONG).await;
        assert_eq!(all.tokens, [5, 6]);
        assert_eq!(all.end, None);
        writer.complete();
        let end = reader.page(2, LONG).await;
        assert_eq!((end.tokens.len(), end.end), (0, Some(StreamEnd::Complete)));
    }

    #[tokio::test]
    async fn a_stream_has_begun_with_its_first_token_and_one_without_tokens_never_has() {
        let ((writer, _reader), (empty, _)) = (StreamWriter::new(), StreamWriter::new());
        let (begun, never) = (writer.begun(), empty.begun());
        writer.push(5);
        begun.await;
        empty.complete();
        assert!(tokio::time::timeout(NOW, never).await.is_err());
    }

    #[tokio::test]
    async fn a_writer_that_is_dropped_leaves_what_it_wrote_and_has_stopped() {
        let (writer, reader) = StreamWriter::new();
        writer.push(1);
        drop(writer);
        let page = reader.clone().page(0, LONG).await;
        assert_eq!(page.tokens, [1]);
        assert_eq!(page.end, Some(StreamEnd::Stopped));
        // Beyond the end there is the end, at once.
        assert!(reader.page(u32::MAX, LONG).await.end.is_some());
    }

    #[tokio::test]
    async fn pages_are_bounded_and_together_they_are_everything() {
        let (writer, reader) = StreamWriter::new();
        for id in 0..1000 {
            writer.push(id);
        }
        writer.complete();
        let (mut read, mut pages) = (Vec::new(), 0);
        loop {
            let page = reader.clone().page(read.len() as u32, NOW).await;
            assert!(page.tokens.len() <= PAGE_TOKENS_MAX);
            read.extend(page.tokens);
            pages += 1;
            if let Some(end) = page.end {
                assert_eq!(end, StreamEnd::Complete);
                break;
            }
        }
        assert_eq!(read, (0..1000).collect::<Vec<_>>());
        assert_eq!(pages, 4);
    }

    #[tokio::test]
    async fn what_is_over_a_bound_ends_the_stream() {
        let (writer, reader) = StreamWriter::new();
        for id in 0..=STREAM_TOKENS_MAX as u32 {
            writer.push(id);
        }
        let last = reader.page(STREAM_TOKENS_MAX as u32, NOW).await;
        assert_eq!((last.tokens.len(), last.end), (0, Some(StreamEnd::Stopped)));
    }

    #[tokio::test]
    async fn a_long_reason_is_cut_between_two_characters() {
        let (writer, reader) = StreamWriter::new();
        writer.fail(&format!("x{}", "ä".repeat(REASON_BYTES_MAX)));
        let Some(StreamEnd::Failed { reason }) = reader.page(0, NOW).await.end else {
            panic!("it has not failed");
        };
        assert_eq!(reason.len(), REASON_BYTES_MAX - 1);
    }
}
