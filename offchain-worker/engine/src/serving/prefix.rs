//! Prefixes that may come again, and what the model made of them.
//!
//! What is kept depends on the tokens alone, so that who goes on from it has the bits that it would have
//! without: keys and values, and the digests of the rows for its own trace.

use super::ClientKey;
use crate::exact::Computed;

/// Fewer tokens than these are computed again: every prompt begins with some that all have.
const TOKENS_MIN: usize = 16;

struct Entry {
    client: ClientKey,
    tokens: Vec<u32>,
    computed: Computed,
    bytes: u64,
    /// Of the cache's clock.
    used: u64,
}

/// What is known of a prompt.
pub(super) struct Known {
    /// What was made of its first tokens.
    pub(super) computed: Option<Computed>,
    /// Tokens that it has in common with another one, and which are worth keeping when they have gone
    /// through the model.
    pub(super) shared: Option<usize>,
}

/// The least recently used ones leave when there is no room.
///
/// A client's prefixes are its own: from how soon an answer comes, it could be told what others have asked.
pub(super) struct PrefixCache {
    entries: Vec<Entry>,
    bytes: u64,
    bytes_max: u64,
    clock: u64,
}

impl PrefixCache {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
            bytes_max,
            clock: 0,
        }
    }

    /// What is known of a client's prompt. At least its last token is left to compute: the next one is chosen
    /// by its state, which is not kept.
    /// `copy` gives nothing where there is no memory: then it is computed again.
    pub(super) fn find(
        &mut self,
        client: ClientKey,
        prompt: &[u32],
        copy: impl FnOnce(&Computed) -> Option<Computed>,
    ) -> Known {
        self.clock += 1;
        let most = prompt.len().saturating_sub(1);
        let own = || {
            self.entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.client == client)
        };
        let shared = own()
            .map(|(_, entry)| common(&entry.tokens, prompt).min(most))
            .max();
        let whole =
            own().filter(|(_, entry)| entry.tokens.len() <= most && prompt.starts_with(&entry.tokens));
        let longest = whole
            .max_by_key(|(_, entry)| entry.tokens.len())
            .map(|(at, _)| at);
        let found = longest.and_then(|at| self.entries.get_mut(at));
        let known = found.as_ref().map_or(0, |entry| entry.tokens.len());
        Known {
            computed: found.and_then(|entry| {
                entry.used = self.clock;
                copy(&entry.computed)
            }),
            shared: shared.filter(|shared| *shared >= known.saturating_add(TOKENS_MIN)),
        }
    }

    /// Forgets what a device has that is used no more.
    pub(super) fn forget_lost(&mut self) {
        let lost = |entry: &Entry| entry.computed.is_lost();
        while let Some(at) = self.entries.iter().position(lost) {
            self.remove(at);
        }
    }

    /// Whether something of this size may be kept.
    pub(super) fn takes(&self, tokens: usize, bytes: u64) -> bool {
        tokens >= TOKENS_MIN && bytes <= self.bytes_max
    }

    /// Keeps what was made of some tokens.
    pub(super) fn keep(&mut self, client: ClientKey, tokens: Vec<u32>, computed: Computed, bytes: u64) {
        if !self.takes(tokens.len(), bytes) {
            return;
        }
        let same = |entry: &Entry| entry.client == client && entry.tokens == tokens;
        let same = self.entries.iter().position(same);
        same.into_iter().for_each(|at| self.remove(at));
        while self.bytes.saturating_add(bytes) > self.bytes_max {
            let entries = self.entries.iter().enumerate();
            let Some((oldest, _)) = entries.min_by_key(|(_, entry)| entry.used) else {
                break;
            };
            self.remove(oldest);
        }
        self.clock += 1;
        self.bytes += bytes;
        self.entries.push(Entry {
            client,
            tokens,
            computed,
            bytes,
            used: self.clock,
        });
    }

    fn remove(&mut self, at: usize) {
        let entry = self.entries.swap_remove(at);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
    }
}

/// Tokens that both begin with.
fn common(one: &[u32], other: &[u32]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}
