//! What has come of an answer and was not read yet, between a channel's task and whoever reads it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use surety_types::input::{NEW_TOKENS_MAX, WORD_BYTES};
use tokio::sync::mpsc;

/// Pieces of an answer: no answer has more tokens that are not its prompt's.
const PIECES_MAX: usize = NEW_TOKENS_MAX as usize;

/// Chunks of an answer that wait for whoever reads it before no more is paid ahead. A chunk may come in many
/// pieces.
const UNREAD_MAX: usize = 4;

/// Both ends, for an answer of so many units, paid in chunks of so many. With one piece whoever reads a
/// race's answer is behind, until that has won: so that no more is paid for those that lose.
pub(crate) fn pieces(units: u32, chunk_units: u32, is_race: bool) -> (PieceSender, PieceReceiver) {
    let size = |units: u32| usize::try_from(units).unwrap_or(usize::MAX);
    let (to, from) = mpsc::channel(size(units).clamp(1, PIECES_MAX));
    let chunk = size(chunk_units).saturating_mul(WORD_BYTES as usize);
    let most = chunk.saturating_mul(UNREAD_MAX);
    let unread = Arc::new(Unread {
        bytes: AtomicUsize::new(0),
        most: AtomicUsize::new(if is_race { 1 } else { most }),
    });
    let sender = PieceSender {
        to,
        unread: unread.clone(),
    };
    (sender, PieceReceiver { from, unread, most })
}

struct Unread {
    bytes: AtomicUsize,
    /// With so many bytes whoever reads is behind.
    most: AtomicUsize,
}

impl Unread {
    fn are_too_many(&self, bytes: usize) -> bool {
        bytes >= self.most.load(Relaxed)
    }
}

/// The task's end.
#[derive(Clone)]
pub(crate) struct PieceSender {
    to: mpsc::Sender<Vec<u8>>,
    unread: Arc<Unread>,
}

impl PieceSender {
    /// Whole units: there is room for as many pieces as there are units. Who has gone does not miss it.
    pub fn push(&self, bytes: Vec<u8>) {
        self.unread.bytes.fetch_add(bytes.len(), Relaxed);
        self.to.try_send(bytes).ok();
    }

    /// Whether whoever reads is behind.
    pub fn is_behind(&self) -> bool {
        self.unread.are_too_many(self.unread.bytes.load(Relaxed))
    }

    /// Once nobody reads any more.
    pub async fn closed(&self) {
        self.to.closed().await;
    }
}

/// The reader's end.
pub(crate) struct PieceReceiver {
    from: mpsc::Receiver<Vec<u8>>,
    unread: Arc<Unread>,
    most: usize,
}

impl PieceReceiver {
    /// The next piece, and whether this reader was behind until now; nothing after the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Vec<u8>, bool)>> {
        let Some(bytes) = ready!(self.from.poll_recv(cx)) else {
            return Poll::Ready(None);
        };
        let before = self.unread.bytes.fetch_sub(bytes.len(), Relaxed);
        let after = before.saturating_sub(bytes.len());
        let caught_up = self.unread.are_too_many(before) && !self.unread.are_too_many(after);
        Poll::Ready(Some((bytes, caught_up)))
    }

    /// It has won its race.
    pub fn has_won(&self) {
        self.unread.most.store(self.most, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn four_chunks_are_behind_however_many_pieces_they_come_in() {
        let (to, mut from) = pieces(100, 4, false);
        for token in 0..15u32 {
            to.push(token.to_le_bytes().to_vec());
            assert!(!to.is_behind());
        }
        to.push([0; 4 * 4].to_vec());
        assert!(to.is_behind());
        let mut caught_up = Vec::new();
        for _ in 0..4 {
            caught_up.push(
                poll_fn(|cx| from.poll_next(cx))
                    .await
                    .map(|(_, caught_up)| caught_up),
            );
        }
        assert_eq!(caught_up, [Some(false), Some(false), Some(false), Some(true)]);
        assert!(!to.is_behind());
    }

    #[tokio::test]
    async fn of_a_race_one_piece_is_behind_until_it_is_won() {
        let (to, from) = pieces(100, 4, true);
        assert!(!to.is_behind());
        to.push([0; 4].to_vec());
        assert!(to.is_behind());
        from.has_won();
        assert!(!to.is_behind());
    }
}
