//! How much a node does at once, and for how long it waits.

use std::time::Duration;

/// How much a node does at once, and for how long it waits.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest blob that is fetched, in bytes.
    pub blob_bytes_max: u64,
    /// For one chunk, there and back.
    pub request_timeout: Duration,
    /// For one connection, until it is encrypted.
    pub dial_timeout: Duration,
    /// The same over QUIC, where one packet has a place taken for as long.
    pub quic_handshake_timeout: Duration,
    /// For one fetch, when its caller says nothing.
    pub fetch_timeout: Duration,
    /// A peer that sends slower, after `slow_grace`, is given up.
    pub bytes_per_second_min: u64,
    /// Time in which a peer may be slower than that. Finding it is part of it.
    pub slow_grace: Duration,
    /// How often all sources are tried.
    pub fetch_rounds: u32,
    /// Pause between the first two rounds; each further one is twice as long.
    pub round_pause: Duration,
    /// Sources that one fetch asks. A task has at most 16 providers with 4 endpoints each.
    pub sources_max: usize,
    /// Blobs that are fetched at once; each may take `blob_bytes_max` of memory.
    pub fetches_max: usize,
    /// The same from one peer, so that one that is slow does not hold up the others.
    pub fetches_per_peer_max: usize,
    /// Own requests in flight.
    pub outbound_requests_max: usize,
    /// Requests of others in flight; each may take 1 MiB of memory.
    pub inbound_requests_max: usize,
    /// Of these, kept for peers named on chain.
    pub inbound_requests_named: usize,
    /// Requests of one peer in flight, so that one cannot starve the others.
    pub inbound_per_peer_max: usize,
    /// Requests of strangers at one address (IPv4, or a /64 of IPv6) in flight. Peers named on chain do not
    /// count.
    pub requests_per_address_max: usize,
    /// Bytes that one peer is sent in a second, in the long run.
    pub bytes_per_second_per_peer_max: u64,
    /// Peers that are dialled at once, because they ask whether they can be reached.
    pub dial_backs_max: usize,
    /// Of these, kept for peers named on chain.
    pub dial_backs_named: usize,
    /// Connections that this node makes. Each takes a descriptor of the system, which blobs need, too.
    pub outbound_connections_max: usize,
    /// Connections from others.
    pub inbound_connections_max: usize,
    /// Of these, kept for peers named on chain.
    pub inbound_connections_named: usize,
    /// Connections from strangers at one address (IPv4, or a /64 of IPv6). Peers named on chain do not count.
    pub connections_per_address_max: usize,
    /// Connections from one peer.
    pub connections_per_peer_max: usize,
    /// Connections from others over QUIC that are not encrypted yet. Those over TCP are a quarter of
    /// `inbound_connections_max`.
    pub quic_handshakes_max: usize,
    /// Grants that are remembered; the oldest are forgotten first. Also how many readers that the gate let
    /// in, and how many that it refused, are remembered; when there are more, all of these are forgotten.
    pub grants_max: usize,
    /// Tickets that are judged at once.
    pub gate_checks_max: usize,
    /// Of these, kept for peers named on chain.
    pub gate_checks_named: usize,
    /// Of these, tickets of one peer.
    pub gate_checks_per_peer_max: usize,
    /// Of these, tickets of one address group's peers that are not named on chain.
    pub gate_checks_per_address_max: usize,
    /// For the judgement of one ticket.
    pub gate_timeout: Duration,
    /// For so long whom the gate let in for a blob reads it unjudged. An audit's fetches take less.
    pub gate_memory: Duration,
    /// For so long whom the gate has refused a blob is refused it unjudged.
    pub gate_refusal_memory: Duration,
    /// Outputs that are remembered; the oldest are forgotten first.
    pub outputs_max: usize,
    /// Streams that are served; the oldest are forgotten first. Each may take 2 MiB of memory.
    pub streams_max: usize,
    /// A request for a page of a stream waits so long for news; see [`Limits::poll_wait`].
    pub poll_wait_max: Duration,
    /// Requests of others for pages that wait.
    pub polls_max: usize,
    /// Of these, kept for peers named on chain.
    pub polls_named: usize,
    /// Requests for pages of one peer that wait.
    pub polls_per_peer_max: usize,
    /// Calls of others at once.
    pub calls_max: usize,
    /// Of these, kept for peers named on chain.
    pub calls_named: usize,
    /// Calls of one peer. A gateway has one for each of its users' requests.
    pub calls_per_peer_max: usize,
    /// Calls of strangers at one address (IPv4, or a /64 of IPv6). Peers named on chain do not count.
    pub calls_per_address_max: usize,
    /// Own calls with others at once.
    pub calls_made_max: usize,
    /// A call ends when for so long no frame begins: the other end may have a long prompt to compute. The
    /// first frame of who opened a call has [`Limits::request_timeout`].
    pub call_idle_max: Duration,
    /// A call ends when a frame that has begun takes longer to get through, at `bytes_per_second_min` after
    /// that.
    pub call_stall_max: Duration,
}

impl Limits {
    /// How long a page may wait: whoever asked must not have given up before.
    pub fn poll_wait(&self) -> Duration {
        self.poll_wait_max.min(self.request_timeout / 2)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_bytes_max: 64 << 20,
            request_timeout: Duration::from_secs(20),
            dial_timeout: Duration::from_secs(8),
            // With 300 ms there and back, and one packet lost, which is sent again after a second, 1.3 s.
            quic_handshake_timeout: Duration::from_secs(2),
            fetch_timeout: Duration::from_secs(600),
            bytes_per_second_min: 128 << 10,
            slow_grace: Duration::from_secs(10),
            fetch_rounds: 3,
            round_pause: Duration::from_millis(500),
            sources_max: 64,
            fetches_max: 8,
            fetches_per_peer_max: 2,
            outbound_requests_max: 64,
            inbound_requests_max: 64,
            inbound_requests_named: 32,
            inbound_per_peer_max: 8,
            // Two peers at full use: more at one address are behind one gateway, or one party.
            requests_per_address_max: 16,
            bytes_per_second_per_peer_max: 64 << 20,
            dial_backs_max: 8,
            dial_backs_named: 4,
            // Twice the requests that may be in flight: idle ones are closed after half a minute.
            outbound_connections_max: 256,
            inbound_connections_max: 256,
            inbound_connections_named: 128,
            connections_per_address_max: 16,
            connections_per_peer_max: 8,
            // Each takes some 40 KiB of memory, and no descriptor.
            quic_handshakes_max: 1024,
            grants_max: 8192,
            gate_checks_max: 8,
            gate_checks_named: 4,
            gate_checks_per_peer_max: 1,
            gate_checks_per_address_max: 2,
            gate_timeout: Duration::from_secs(5),
            gate_memory: Duration::from_secs(600),
            // Three blocks: who was refused because our node is behind is soon let in.
            gate_refusal_memory: Duration::from_secs(6),
            outputs_max: 4096,
            // More than a provider computes at once, with those that are done and not settled yet.
            streams_max: 64,
            // Long enough that an idle stream costs next to nothing.
            poll_wait_max: Duration::from_secs(5),
            polls_max: 64,
            polls_named: 32,
            polls_per_peer_max: 8,
            // Each may take 256 KiB for a frame, and as much in the transport.
            calls_max: 256,
            calls_named: 64,
            // As many requests as a channel may have open. Most payers are strangers to the chain: it knows
            // their accounts, not their peers.
            calls_per_peer_max: 64,
            calls_per_address_max: 64,
            calls_made_max: 256,
            // A prompt of 32,000 tokens at 100 a second.
            call_idle_max: Duration::from_secs(320),
            // Who writes down what it hears before it reads on may take some seconds.
            call_stall_max: Duration::from_secs(30),
        }
    }
}
