//! How fast each peer is served.

use std::{collections::HashMap, hash::Hash, time::Duration};

use tokio::time::Instant;

/// Peers that are remembered at most; each takes some 60 bytes.
const PEERS_MAX: usize = 4096;

/// Lets each peer have so many bytes a second, after one second's worth at once. A number for each peer: when
/// it will have been sent all that it was promised, at that rate.
pub(crate) struct Pace<P> {
    busy_until: HashMap<P, Instant>,
    bytes_per_second: u64,
}

impl<P: Eq + Hash> Pace<P> {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self {
            busy_until: HashMap::new(),
            bytes_per_second: bytes_per_second.max(1),
        }
    }

    /// Promises `peer` so many bytes, and says how long it has to wait for them; nothing is promised when
    /// that is longer than `patience`.
    pub(crate) fn promise(
        &mut self,
        peer: P,
        bytes: u64,
        patience: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let busy_until = self.busy_until.get(&peer).copied().unwrap_or(now).max(now);
        let wait = (busy_until - now).saturating_sub(Duration::from_secs(1));
        if wait > patience {
            return None;
        }
        if self.busy_until.len() >= PEERS_MAX {
            self.busy_until.retain(|_, until| *until > now);
        }
        if self.busy_until.len() >= PEERS_MAX {
            // Thousands of peers at full speed: what they had is forgotten rather than remembered without
            // bound.
            self.busy_until.clear();
        }
        let micros = bytes.saturating_mul(1_000_000) / self.bytes_per_second;
        self.busy_until
            .insert(peer, busy_until + Duration::from_micros(micros));
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    #[test]
    fn a_peer_has_a_seconds_worth_at_once_then_waits_then_is_put_off() {
        let (mut pace, now) = (Pace::new(100), Instant::now());
        let mut promise = |peer, bytes, now| pace.promise(peer, bytes, PATIENCE, now);
        assert_eq!(promise("ann", 100, now), Some(Duration::ZERO));
        assert_eq!(promise("ann", 100, now), Some(Duration::ZERO));
        assert_eq!(promise("ann", 200, now), Some(Duration::from_secs(1)));
        assert_eq!(promise("ann", 1, now), None, "3 s to wait");
        assert_eq!(promise("bob", 1, now), Some(Duration::ZERO));
        let later = now + Duration::from_secs(3);
        assert_eq!(promise("ann", 1, later), Some(Duration::ZERO));
    }

    #[test]
    fn peers_are_forgotten_rather_than_kept_without_bound() {
        let (mut pace, now) = (Pace::new(1), Instant::now());
        for peer in 0..3 * PEERS_MAX {
            pace.promise(peer, 1 << 20, PATIENCE, now);
            assert!(pace.busy_until.len() <= PEERS_MAX);
        }
    }
}
