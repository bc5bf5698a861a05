//! What a node has moved and refused since it started, for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A snapshot. What is not said to be a level only grows.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// All of them with their names, for export.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }

        /// Counts. Each number by itself: a snapshot of them is not of one instant.
        #[derive(Debug, Default)]
        pub(crate) struct Tally {
            $(pub(crate) $name: Count,)*
        }

        impl Tally {
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($name: self.$name.0.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Bytes of blobs sent.
    bytes_served,
    /// Bytes of blobs received.
    bytes_fetched,
    /// Requests for blobs and outputs that were answered with what was asked for.
    requests_served,
    /// Requests for what is not here.
    requests_not_found,
    /// Requests refused, since the peer is not among the readers and shows no ticket.
    requests_refused_reader,
    /// Requests refused, since the ticket was not taken, now or a moment ago.
    requests_refused_ticket,
    /// Requests put off, since there were too many requests or tickets in all or of that peer or address.
    requests_refused_busy,
    /// Requests put off, since the peer has had as many bytes as it may have for now.
    requests_refused_rate,
    /// Fetches that brought their blob.
    fetches_done,
    /// Fetches that did not.
    fetches_failed,
    /// Sources that did not deliver, of all fetches.
    sources_failed,
    /// Level: connections from others.
    connections_inbound,
    /// Level: connections to others.
    connections_outbound,
    /// Connections refused, since all places are taken.
    connections_refused_full,
    /// Connections refused, since the places that strangers may take are taken.
    connections_refused_strangers,
    /// Connections refused, since there are too many from that address.
    connections_refused_address,
    /// Level: calls of others.
    calls_inbound,
    /// Level: calls with others.
    calls_outbound,
    /// Calls of others that were taken.
    calls_taken,
    /// Calls refused, since all places, or those that strangers may take, are taken.
    calls_refused_full,
    /// Calls refused, since there are too many of that peer or address.
    calls_refused_peer,
    /// Calls refused, since they are for another chain, or nobody here serves any.
    calls_refused_other,
    /// Calls with others that were opened.
    calls_opened,
    /// Calls with others that could not be opened.
    calls_failed,
}

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, what: u64) {
        self.0.fetch_add(what, Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn less_one(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn set(&self, what: u64) {
        self.0.store(what, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_every_number_under_its_name() {
        let tally = Tally::default();
        tally.bytes_served.add(7);
        tally.bytes_served.one();
        tally.connections_inbound.set(3);
        let counters = tally.snapshot();
        assert_eq!((counters.bytes_served, counters.connections_inbound), (8, 3));
        let not_zero: Vec<_> = counters.named().filter(|(_, value)| *value > 0).collect();
        assert_eq!(not_zero, [("bytes_served", 8), ("connections_inbound", 3)]);
    }
}
