//! Putting a blob together from peers' chunks.
//!
//! The blob's outline is asked for first: its chunks' content hashes, which lead to the blob's own. From then
//! on every chunk is checked as it arrives, and what one peer has delivered is not asked of the next.

use std::time::Duration;

use async_trait::async_trait;
use surety_proofs::content_hash;
use surety_types::{ContentHash, multiaddr::Endpoint};
use tokio::time::Instant;

use crate::{
    Limits,
    access::Ticket,
    address::endpoint_text,
    outline,
    plane::{Attempt, FetchOptions, PeerError},
    wire::{CHUNK_BYTES, Request, Response, Wanted},
};

/// Asks one peer one thing.
#[async_trait]
pub(crate) trait Ask: Sync {
    /// Held while a peer is being asked for one blob.
    type Turn: Send;

    /// Waits until it is this fetch's turn to ask the peer.
    async fn turn(&self, endpoint: &Endpoint) -> Result<Self::Turn, PeerError>;

    async fn ask(&self, endpoint: &Endpoint, request: Request) -> Result<Response, PeerError>;
}

/// What is there of a blob, and who has failed to deliver it. Survives a fetch that is cut off.
pub(crate) struct Fetch<'a> {
    limits: &'a Limits,
    hash: ContentHash,
    ticket: Option<Ticket>,
    /// The size, if whoever fetches knows it.
    expected: Option<u64>,
    /// The most that it may be.
    bytes_max: u64,
    /// The chunks' content hashes; they lead to `hash`. Certain where the size is known; empty until anybody
    /// has said.
    outline: Vec<ContentHash>,
    blob: Vec<u8>,
    /// How many chunks at the start of `blob` are checked.
    checked: usize,
    attempts: Vec<Attempt>,
    /// Who is being asked.
    current: Option<&'a Endpoint>,
}

impl<'a> Fetch<'a> {
    pub(crate) fn new(limits: &'a Limits, hash: ContentHash, options: &FetchOptions) -> Self {
        let is_one = |bytes: u64| outline::chunks_of(bytes) == 1;
        Self {
            limits,
            hash,
            ticket: options.ticket.clone(),
            expected: options.bytes,
            bytes_max: limits.blob_bytes_max.min(options.bytes_max.unwrap_or(u64::MAX)),
            // A blob of one chunk is its own outline.
            outline: options
                .bytes
                .filter(|bytes| is_one(*bytes))
                .map(|_| hash)
                .into_iter()
                .collect(),
            blob: Vec::new(),
            checked: 0,
            attempts: Vec::new(),
            current: None,
        }
    }

    /// The blob from the first of `sources` that delivers it, or from several of them, or what each did
    /// instead.
    ///
    /// Peers whose fault may pass are asked once more in each further round; the others never again.
    pub(crate) async fn run(&mut self, net: &impl Ask, sources: &'a [Endpoint]) -> Option<Vec<u8>> {
        let mut candidates: Vec<&Endpoint> = sources.iter().take(self.limits.sources_max).collect();
        let mut pause = self.limits.round_pause;
        for round in 0..self.limits.fetch_rounds {
            if round > 0 && !candidates.is_empty() {
                tokio::time::sleep(pause).await;
                pause = pause.saturating_mul(2);
            }
            let mut again = Vec::new();
            for endpoint in candidates {
                let outcome = match net.turn(endpoint).await {
                    Ok(_turn) => {
                        self.current = Some(endpoint);
                        self.ask_one(net, endpoint).await
                    }
                    Err(fault) => Err(fault),
                };
                self.current = None;
                let Err(fault) = outcome else {
                    return Some(std::mem::take(&mut self.blob));
                };
                if fault.may_pass() {
                    again.push(endpoint);
                }
                self.failed(endpoint, fault);
            }
            candidates = again;
        }
        None
    }

    /// Who has failed, and how; whoever was being asked when the time was up among them.
    pub(crate) fn into_attempts(mut self) -> Vec<Attempt> {
        if let Some(endpoint) = self.current.take() {
            self.failed(endpoint, PeerError::TimedOut);
        }
        self.attempts
    }

    fn failed(&mut self, endpoint: &Endpoint, fault: PeerError) {
        let endpoint = endpoint_text(endpoint);
        tracing::info!(peer = %endpoint, hash = ?self.hash, %fault, "fetch failed, going on");
        self.attempts.push(Attempt { endpoint, fault });
    }

    /// Goes on by this outline, with the chunks that are the same in the one before.
    fn take_outline(&mut self, outline: Vec<ContentHash>) {
        let both = self.outline.iter().zip(&outline);
        let same = both.take_while(|(a, b)| a == b).count();
        self.checked = self.checked.min(same);
        self.outline = outline;
    }

    async fn ask_one(&mut self, net: &impl Ask, endpoint: &Endpoint) -> Result<(), PeerError> {
        let mut source = Source::new(net, endpoint, (self.limits, self.bytes_max), self.ticket.clone());
        // Each peer has its own word on a size that is not known: an outline does not prove it. It does not
        // prove either how many chunks there are, since nodes further up lead to the same hash; so each peer
        // has its own outline, too.
        let mut total = self.expected;
        if self.expected.is_none() || self.outline.is_empty() {
            let outline = source.outline(self.hash, &mut total).await?;
            self.take_outline(outline);
        }
        // What cannot be checked by itself is no good together with another peer's.
        self.blob
            .truncate(self.checked.saturating_mul(CHUNK_BYTES as usize));
        loop {
            let bytes = source
                .chunk(self.hash, self.blob.len() as u64, &mut total)
                .await?;
            if total.map(outline::chunks_of) != Some(self.outline.len() as u64)
                || self.outline.get(self.checked) != Some(&content_hash(&bytes))
            {
                return Err(PeerError::WrongHash);
            }
            self.checked += 1;
            self.blob.extend_from_slice(&bytes);
            if total == Some(self.blob.len() as u64) {
                return Ok(());
            }
        }
    }
}

/// One peer that is being asked for one blob, and how fast it answers.
struct Source<'a, N> {
    net: &'a N,
    endpoint: &'a Endpoint,
    limits: &'a Limits,
    bytes_max: u64,
    ticket: Option<Ticket>,
    started: Instant,
    /// Received from this peer.
    bytes: u64,
}

impl<'a, N: Ask> Source<'a, N> {
    fn new(
        net: &'a N,
        endpoint: &'a Endpoint,
        (limits, bytes_max): (&'a Limits, u64),
        ticket: Option<Ticket>,
    ) -> Self {
        Self {
            net,
            endpoint,
            limits,
            bytes_max,
            ticket,
            started: Instant::now(),
            bytes: 0,
        }
    }

    /// The blob's chunks, and the peer's word on the size.
    async fn outline(
        &mut self,
        hash: ContentHash,
        total: &mut Option<u64>,
    ) -> Result<Vec<ContentHash>, PeerError> {
        let answer = self.ask(Wanted::Outline { hash }, CHUNK_BYTES.into()).await?;
        let Response::Outline { total: said, chunks } = answer else {
            return Err(instead(&answer));
        };
        check_total(said, *total, self.bytes_max)?;
        *total = Some(said);
        if chunks.len() as u64 != outline::chunks_of(said) {
            let reason = format!("{} chunks of {said} bytes", chunks.len());
            return Err(PeerError::Protocol(reason));
        }
        if outline::root(&chunks) != Some(hash) {
            return Err(PeerError::WrongHash);
        }
        Ok(chunks)
    }

    /// A whole chunk. The first tells the size where that is not known.
    async fn chunk(
        &mut self,
        hash: ContentHash,
        offset: u64,
        total: &mut Option<u64>,
    ) -> Result<Vec<u8>, PeerError> {
        let len = CHUNK_BYTES;
        let expects = total.map_or(u64::from(len), |total| {
            total.saturating_sub(offset).min(len.into())
        });
        let answer = self.ask(Wanted::Blob { hash, offset, len }, expects).await?;
        let Response::Chunk { total: said, bytes } = answer else {
            return Err(instead(&answer));
        };
        check_total(said, *total, self.bytes_max)?;
        *total = Some(said);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if bytes.len() as u64 != said.saturating_sub(offset).min(len.into()) {
            return Err(PeerError::Protocol(format!(
                "{} bytes at {offset} of {said}",
                bytes.len()
            )));
        }
        Ok(bytes)
    }

    /// Asks, and waits for as long as a peer may take for what it has sent so far and `expects` more bytes.
    async fn ask(&mut self, wanted: Wanted, expects: u64) -> Result<Response, PeerError> {
        let request = Request {
            wanted,
            ticket: self.ticket.clone(),
        };
        let allowed = self.time_allowed(self.bytes.saturating_add(expects));
        let answer = self.net.ask(self.endpoint, request);
        match tokio::time::timeout_at(self.started + allowed, answer).await {
            Ok(answer) => answer,
            Err(_) if self.bytes == 0 => Err(PeerError::TimedOut),
            Err(_) => Err(PeerError::TooSlow {
                bytes: self.bytes,
                seconds: self.started.elapsed().as_secs(),
            }),
        }
    }

    /// A peer must have sent `bytes` within this time: otherwise one that trickles could hold a fetch for
    /// hours.
    fn time_allowed(&self, bytes: u64) -> Duration {
        let millis = bytes.saturating_mul(1000) / self.limits.bytes_per_second_min.max(1);
        self.limits.slow_grace + Duration::from_millis(millis)
    }
}

fn check_total(total: u64, expected: Option<u64>, max: u64) -> Result<(), PeerError> {
    if total > max {
        return Err(PeerError::TooLarge { bytes: total, max });
    }
    match expected {
        Some(expected) if expected != total => Err(PeerError::WrongSize {
            found: total,
            expected,
        }),
        _ => Ok(()),
    }
}

/// The fault of a peer that answers with something else than what was asked for.
fn instead(response: &Response) -> PeerError {
    let name = match response {
        Response::NotFound => return PeerError::NotFound,
        Response::Busy => return PeerError::Busy,
        Response::Refused => return PeerError::Refused,
        Response::Chunk { .. } => "chunk",
        Response::Output { .. } => "output",
        Response::Outline { .. } => "outline",
        Response::Malformed => "malformed request",
    };
    PeerError::Protocol(format!("unexpected answer {name}"))
}

#[cfg(test)]
mod tests;
