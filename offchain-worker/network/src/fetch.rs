//! Putting a blob together from one peer's chunks.

use std::time::Duration;

use async_trait::async_trait;
use surety_types::{multiaddr::Endpoint, ContentHash};
use surety_verification::content_hash;
use tokio::time::Instant;

use crate::{
    plane::{Attempt, Fault},
    wire::{Request, Response, CHUNK_BYTES},
    Limits,
};

/// Asks one peer one thing.
#[async_trait]
pub(crate) trait Ask: Sync {
    async fn ask(&self, endpoint: &Endpoint, request: Request) -> Result<Response, Fault>;
}

/// The blob from the first of `sources` that delivers it, or what each of them did instead.
///
/// Peers whose fault may pass are asked once more in each further round; the others never again.
pub(crate) async fn from_any(
    net: &impl Ask,
    limits: &Limits,
    hash: ContentHash,
    bytes_expected: Option<u64>,
    sources: &[Endpoint],
) -> Result<Vec<u8>, Vec<Attempt>> {
    let mut candidates: Vec<&Endpoint> = sources.iter().take(limits.sources_max).collect();
    let mut attempts = Vec::new();
    for round in 0..limits.fetch_rounds {
        if round > 0 {
            tokio::time::sleep(limits.round_pause).await;
        }
        let mut again = Vec::new();
        for endpoint in candidates {
            match from_one(net, limits, hash, bytes_expected, endpoint).await {
                Ok(bytes) => return Ok(bytes),
                Err(fault) => {
                    let text = crate::address::endpoint_text(endpoint);
                    tracing::info!(peer = %text, ?hash, %fault, "fetch failed, going on");
                    if fault.may_pass() {
                        again.push(endpoint);
                    }
                    attempts.push(Attempt {
                        endpoint: text,
                        fault,
                    });
                }
            }
        }
        candidates = again;
    }
    Err(attempts)
}

async fn from_one(
    net: &impl Ask,
    limits: &Limits,
    hash: ContentHash,
    bytes_expected: Option<u64>,
    endpoint: &Endpoint,
) -> Result<Vec<u8>, Fault> {
    let started = Instant::now();
    let mut blob: Vec<u8> = Vec::new();
    let mut total_before = bytes_expected;
    loop {
        let offset = blob.len() as u64;
        let request = Request::Blob {
            hash,
            offset,
            len: CHUNK_BYTES,
        };
        let (total, bytes) = match net.ask(endpoint, request).await? {
            Response::Chunk { total, bytes } => (total, bytes),
            Response::NotFound => return Err(Fault::NotFound),
            Response::Busy => return Err(Fault::Busy),
            other => return Err(Fault::Protocol(format!("unexpected answer {}", name(&other)))),
        };
        check_total(total, total_before, limits.blob_bytes_max)?;
        total_before = Some(total);
        let after = offset.saturating_add(bytes.len() as u64);
        if after > total || (bytes.is_empty() && after < total) || bytes.len() > CHUNK_BYTES as usize {
            return Err(Fault::Protocol(format!(
                "{} bytes at {offset} of {total}",
                bytes.len()
            )));
        }
        blob.extend_from_slice(&bytes);
        if after == total {
            break;
        }
        if started.elapsed() > time_allowed(limits, after) {
            return Err(Fault::TooSlow {
                bytes: after,
                seconds: started.elapsed().as_secs(),
            });
        }
    }
    if content_hash(&blob) != hash {
        return Err(Fault::WrongHash);
    }
    Ok(blob)
}

fn check_total(total: u64, expected: Option<u64>, max: u64) -> Result<(), Fault> {
    if total > max {
        return Err(Fault::TooLarge { bytes: total, max });
    }
    match expected {
        Some(expected) if expected != total => Err(Fault::WrongSize {
            found: total,
            expected,
        }),
        _ => Ok(()),
    }
}

/// A peer must have sent `bytes` within this time: otherwise one that trickles could hold a fetch for hours.
fn time_allowed(limits: &Limits, bytes: u64) -> Duration {
    let seconds = bytes / limits.bytes_per_second_min.max(1);
    limits.slow_grace + Duration::from_secs(seconds)
}

fn name(response: &Response) -> &'static str {
    match response {
        Response::Chunk { .. } => "chunk",
        Response::Output { .. } => "output",
        Response::NotFound => "not found",
        Response::Busy => "busy",
        Response::Refused => "refused",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers from a script, whatever the endpoint.
    struct Scripted<F>(F, AtomicUsize);

    #[async_trait]
    impl<F: Fn(usize, u64) -> Result<Response, Fault> + Sync> Ask for Scripted<F> {
        async fn ask(&self, _: &Endpoint, request: Request) -> Result<Response, Fault> {
            let Request::Blob { offset, .. } = request else {
                return Err(Fault::NotFound);
            };
            (self.0)(self.1.fetch_add(1, Ordering::SeqCst), offset)
        }
    }

    fn chunk(total: u64, bytes: usize) -> Result<Response, Fault> {
        Ok(Response::Chunk {
            total,
            bytes: vec![0; bytes],
        })
    }

    async fn fault(script: impl Fn(usize, u64) -> Result<Response, Fault> + Sync) -> (Fault, usize) {
        let limits = Limits {
            blob_bytes_max: 10,
            fetch_rounds: 2,
            round_pause: Duration::ZERO,
            ..Limits::default()
        };
        let net = Scripted(script, AtomicUsize::new(0));
        let endpoint = Endpoint::try_from(b"/somewhere".to_vec()).unwrap();
        let faults = from_any(&net, &limits, ContentHash::zero(), None, &[endpoint])
            .await
            .unwrap_err();
        (faults[0].fault.clone(), net.1.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_peer_that_breaks_the_protocol_is_not_asked_again() {
        let over = fault(|_, _| chunk(11, 1)).await;
        assert_eq!(over, (Fault::TooLarge { bytes: 11, max: 10 }, 1));
        assert!(matches!(fault(|_, _| chunk(4, 0)).await, (Fault::Protocol(_), 1)));
        assert!(matches!(fault(|_, _| chunk(4, 5)).await, (Fault::Protocol(_), 1)));
        assert!(matches!(
            fault(|_, _| Ok(Response::Refused)).await,
            (Fault::Protocol(_), 1)
        ));
        let changing = fault(|call, _| chunk(4 + call as u64, 1)).await;
        assert_eq!(
            changing.0,
            Fault::WrongSize {
                found: 5,
                expected: 4
            }
        );
        assert_eq!(fault(|_, _| chunk(4, 4)).await, (Fault::WrongHash, 1));
    }

    #[tokio::test]
    async fn a_peer_that_is_busy_is_asked_once_more() {
        assert_eq!(fault(|_, _| Ok(Response::Busy)).await, (Fault::Busy, 2));
        assert_eq!(fault(|_, _| Err(Fault::TimedOut)).await, (Fault::TimedOut, 2));
    }

    #[tokio::test]
    async fn a_trickling_peer_is_given_up() {
        struct Trickle;
        #[async_trait]
        impl Ask for Trickle {
            async fn ask(&self, _: &Endpoint, _: Request) -> Result<Response, Fault> {
                tokio::time::sleep(Duration::from_millis(5)).await;
                chunk(1 << 20, 1)
            }
        }
        let endpoint = Endpoint::try_from(b"/somewhere".to_vec()).unwrap();
        let limits = Limits {
            slow_grace: Duration::from_millis(20),
            fetch_rounds: 1,
            ..Limits::default()
        };
        let faults = from_any(&Trickle, &limits, ContentHash::zero(), None, &[endpoint])
            .await
            .unwrap_err();
        assert!(matches!(faults[0].fault, Fault::TooSlow { .. }), "{faults:?}");
    }
}
