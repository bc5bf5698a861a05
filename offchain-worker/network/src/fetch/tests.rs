#![allow(clippy::unwrap_used)]
use std::{future::Future, pin::Pin, sync::Mutex};

use super::*;

type Answering = Pin<Box<dyn Future<Output = Result<Response, PeerError>> + Send>>;
type Peer = Box<dyn Fn(Wanted) -> Answering + Send + Sync>;

/// Peers that answer as they are told to, named by their numbers.
struct Net {
    peers: Vec<Peer>,
    asked: Mutex<Vec<(usize, Wanted)>>,
}

impl Net {
    fn new(peers: Vec<Peer>) -> Self {
        Self {
            peers,
            asked: Mutex::default(),
        }
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        (0..self.peers.len() as u8)
            .map(|n| Endpoint::try_from(vec![b'0' + n]).unwrap())
            .collect()
    }

    /// The offsets of the chunks that a peer was asked for.
    fn offsets(&self, peer: usize) -> Vec<u64> {
        let asked = self.asked.lock().unwrap();
        let of_peer = asked.iter().filter(|(n, _)| *n == peer);
        let offset = |(_, wanted): &(usize, Wanted)| match wanted {
            Wanted::Blob { offset, .. } => Some(*offset),
            _ => None,
        };
        of_peer.filter_map(offset).collect()
    }
}

#[async_trait]
impl Ask for Net {
    type Turn = ();

    async fn turn(&self, _: &Endpoint) -> Result<(), PeerError> {
        Ok(())
    }

    async fn ask(&self, endpoint: &Endpoint, request: Request) -> Result<Response, PeerError> {
        let n = usize::from(endpoint.as_bytes()[0] - b'0');
        self.asked.lock().unwrap().push((n, request.wanted.clone()));
        self.peers[n](request.wanted).await
    }
}

fn peer(answer: impl Fn(&Wanted) -> Result<Response, PeerError> + Send + Sync + 'static) -> Peer {
    Box::new(move |wanted| Box::pin(std::future::ready(answer(&wanted))))
}

fn slow_peer(
    delay: Duration,
    answer: impl Fn(&Wanted) -> Result<Response, PeerError> + Send + Sync + 'static,
) -> Peer {
    Box::new(move |wanted| {
        let answer = answer(&wanted);
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            answer
        })
    })
}

const MIB: u64 = CHUNK_BYTES as u64;

/// Three chunks, the last of 9 bytes.
fn blob() -> Vec<u8> {
    (0..2 * MIB + 9).map(|i| (i % 251) as u8).collect()
}

/// What an honest peer answers.
fn honest(blob: &[u8], wanted: &Wanted) -> Result<Response, PeerError> {
    let total = blob.len() as u64;
    Ok(match wanted {
        Wanted::Outline { .. } => Response::Outline {
            total,
            chunks: outline::outline(blob),
        },
        Wanted::Blob { offset, len, .. } => Response::Chunk {
            total,
            bytes: blob[*offset as usize..][..(total - offset).min((*len).into()) as usize].to_vec(),
        },
        Wanted::Output { .. } => Response::NotFound,
    })
}

/// The same with the bytes of chunks altered.
fn altered(answer: Result<Response, PeerError>) -> Result<Response, PeerError> {
    answer.map(|response| match response {
        Response::Chunk { total, mut bytes } => {
            bytes.iter_mut().for_each(|byte| *byte ^= 1);
            Response::Chunk { total, bytes }
        }
        other => other,
    })
}

fn limits() -> Limits {
    Limits {
        fetch_rounds: 2,
        round_pause: Duration::ZERO,
        ..Limits::default()
    }
}

/// The blob, or the faults in order.
async fn fetch(net: &Net, limits: &Limits, bytes: Option<u64>) -> Result<Vec<u8>, Vec<PeerError>> {
    let options = bytes.map_or_else(FetchOptions::default, FetchOptions::sized);
    fetch_with(net, limits, &options).await
}

async fn fetch_with(net: &Net, limits: &Limits, options: &FetchOptions) -> Result<Vec<u8>, Vec<PeerError>> {
    let endpoints = net.endpoints();
    let mut fetch = Fetch::new(limits, content_hash(&blob()), options);
    match fetch.run(net, &endpoints).await {
        Some(bytes) => Ok(bytes),
        None => Err(fetch.into_attempts().into_iter().map(|a| a.fault).collect()),
    }
}

/// The only fault of one peer, after which it is not asked again.
async fn final_fault(
    answer: impl Fn(&Wanted) -> Result<Response, PeerError> + Send + Sync + 'static,
) -> PeerError {
    let faults = fetch(&Net::new(vec![peer(answer)]), &limits(), None)
        .await
        .unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].clone()
}

#[tokio::test]
async fn an_honest_peer_delivers_whether_the_size_is_known_or_not() {
    let size = Some(blob().len() as u64);
    for bytes in [None, size] {
        let net = Net::new(vec![peer(|wanted| honest(&blob(), wanted))]);
        assert_eq!(fetch(&net, &limits(), bytes).await.unwrap(), blob());
        assert_eq!(net.offsets(0), [0, MIB, 2 * MIB]);
    }
}

#[tokio::test]
async fn what_one_peer_has_delivered_is_not_asked_of_the_next() {
    let until = |end: u64, then: fn(&Wanted) -> Result<Response, PeerError>| {
        peer(move |wanted| match wanted {
            Wanted::Blob { offset, .. } if *offset >= end => then(wanted),
            wanted => honest(&blob(), wanted),
        })
    };
    let net = Net::new(vec![
        until(MIB, |_| Err(PeerError::TimedOut)),
        until(2 * MIB, |wanted| altered(honest(&blob(), wanted))),
        peer(|wanted| honest(&blob(), wanted)),
    ]);
    assert_eq!(fetch(&net, &limits(), None).await.unwrap(), blob());
    assert_eq!(net.offsets(0), [0, MIB]);
    assert_eq!(net.offsets(1), [MIB, 2 * MIB]);
    assert_eq!(net.offsets(2), [2 * MIB]);
}

#[tokio::test]
async fn a_liar_is_found_out_at_its_first_chunk_and_spoils_nothing() {
    let net = Net::new(vec![
        peer(|wanted| altered(honest(&blob(), wanted))),
        peer(|wanted| honest(&blob(), wanted)),
    ]);
    assert_eq!(fetch(&net, &limits(), None).await.unwrap(), blob());
    assert_eq!(net.offsets(0), [0]);
}

#[tokio::test]
async fn a_word_on_the_size_that_no_outline_proves_binds_nobody_else() {
    // The last chunk is longer, they say: the outline is the same.
    let liar = |wanted: &Wanted| match honest(&blob(), wanted)? {
        Response::Outline { total, chunks } => Ok(Response::Outline {
            total: total + 1,
            chunks,
        }),
        _ => Err(PeerError::TimedOut),
    };
    let net = Net::new(vec![peer(liar), peer(|wanted| honest(&blob(), wanted))]);
    assert_eq!(fetch(&net, &limits(), None).await.unwrap(), blob());
}

#[tokio::test]
async fn an_outline_of_fewer_chunks_that_leads_to_the_same_hash_spoils_nothing() {
    let chunks = outline::outline(&blob());
    let above = vec![outline::root(&chunks[..2]).unwrap(), chunks[2]];
    assert_eq!(outline::root(&above), Some(content_hash(&blob())));
    let liar = move |wanted: &Wanted| match wanted {
        Wanted::Outline { .. } => Ok(Response::Outline {
            total: MIB + 9,
            chunks: above.clone(),
        }),
        _ => Err(PeerError::TimedOut),
    };
    let net = Net::new(vec![peer(liar), peer(|wanted| honest(&blob(), wanted))]);
    assert_eq!(fetch(&net, &limits(), None).await.unwrap(), blob());
}

#[tokio::test]
async fn a_blob_that_is_longer_than_it_may_be_is_not_read() {
    let size = blob().len() as u64;
    let net = || Net::new(vec![peer(|wanted| honest(&blob(), wanted))]);
    let (enough, short) = (net(), net());
    let fetched = fetch_with(&enough, &limits(), &FetchOptions::at_most(size)).await;
    assert_eq!(fetched, Ok(blob()));
    let refused = fetch_with(&short, &limits(), &FetchOptions::at_most(size - 1)).await;
    let fault = PeerError::TooLarge {
        bytes: size,
        max: size - 1,
    };
    assert_eq!((refused, short.offsets(0)), (Err(vec![fault]), vec![]));
}

#[tokio::test]
async fn outlines_that_lead_elsewhere_are_lies() {
    let outline = |total: u64, chunks: usize| {
        move |_: &Wanted| {
            Ok(Response::Outline {
                total,
                chunks: vec![ContentHash::zero(); chunks],
            })
        }
    };
    assert_eq!(final_fault(outline(2 * MIB + 9, 3)).await, PeerError::WrongHash);
    assert!(matches!(
        final_fault(outline(2 * MIB + 9, 2)).await,
        PeerError::Protocol(_)
    ));
    assert!(matches!(final_fault(outline(0, 0)).await, PeerError::Protocol(_)));
    let too_large = final_fault(outline(u64::MAX, 3)).await;
    assert!(matches!(too_large, PeerError::TooLarge { .. }), "{too_large}");
}

#[tokio::test]
async fn a_peer_that_breaks_the_protocol_is_not_asked_again() {
    let cut = |answer: Result<Response, PeerError>, len: usize| match answer? {
        Response::Chunk { total, mut bytes } if !bytes.is_empty() => {
            bytes.resize(len, 0);
            Ok(Response::Chunk { total, bytes })
        }
        other => Ok(other),
    };
    for len in [0, 1, MIB as usize - 1, MIB as usize + 1] {
        let fault = final_fault(move |wanted| cut(honest(&blob(), wanted), len)).await;
        assert!(matches!(fault, PeerError::Protocol(_)), "{len} bytes: {fault}");
    }
    let fault = final_fault(|_| Ok(Response::Malformed)).await;
    assert!(matches!(fault, PeerError::Protocol(_)), "{fault}");
    // Another size with each chunk.
    let changing = final_fault(|wanted| match honest(&blob(), wanted)? {
        Response::Chunk { total, bytes } if !bytes.is_empty() => Ok(Response::Chunk {
            total: total + 1,
            bytes,
        }),
        other => Ok(other),
    });
    assert!(matches!(changing.await, PeerError::WrongSize { .. }));
    assert_eq!(
        final_fault(|wanted| altered(honest(&blob(), wanted))).await,
        PeerError::WrongHash
    );
}

#[tokio::test]
async fn a_peer_that_may_do_better_later_is_asked_once_more() {
    for (response, fault) in [
        (Response::Busy, PeerError::Busy),
        (Response::Refused, PeerError::Refused),
        (Response::NotFound, PeerError::NotFound),
    ] {
        let net = Net::new(vec![peer(move |_| Ok(response.clone()))]);
        let faults = fetch(&net, &limits(), None).await.unwrap_err();
        assert_eq!(faults, [fault.clone(), fault]);
    }
}

#[tokio::test]
async fn who_trickles_or_stalls_is_given_up_and_what_it_delivered_is_kept() {
    let limits = Limits {
        slow_grace: Duration::from_millis(100),
        bytes_per_second_min: 1 << 40,
        ..limits()
    };
    let pause = Duration::from_millis(60);
    let net = Net::new(vec![
        // Says at once what it has, and then takes its time over each chunk.
        Box::new(move |wanted| match wanted {
            Wanted::Outline { .. } => Box::pin(std::future::ready(honest(&blob(), &wanted))),
            wanted => slow_peer(pause, |wanted| honest(&blob(), wanted))(wanted),
        }),
        slow_peer(Duration::from_secs(3600), |wanted| honest(&blob(), wanted)),
        peer(|wanted| match wanted {
            Wanted::Blob { offset: 0, .. } => Err(PeerError::NotFound),
            wanted => honest(&blob(), wanted),
        }),
    ]);
    let started = Instant::now();
    let endpoints = net.endpoints();
    let mut fetch = Fetch::new(&limits, content_hash(&blob()), &FetchOptions::default());
    let fetched = fetch.run(&net, &endpoints).await.unwrap();
    assert_eq!(fetched, blob());
    let faults: Vec<_> = fetch.into_attempts().into_iter().map(|a| a.fault).collect();
    assert_eq!(
        faults,
        [
            PeerError::TooSlow {
                bytes: MIB,
                seconds: 0
            },
            PeerError::TimedOut
        ]
    );
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(net.offsets(2), [MIB, 2 * MIB]);
}

#[tokio::test]
async fn who_was_being_asked_when_the_time_was_up_is_named() {
    let net = Net::new(vec![
        peer(|_| Ok(Response::NotFound)),
        slow_peer(Duration::from_secs(3600), |wanted| honest(&blob(), wanted)),
    ]);
    let (endpoints, limits) = (net.endpoints(), limits());
    let mut fetch = Fetch::new(&limits, content_hash(&blob()), &FetchOptions::default());
    let cut = tokio::time::timeout(Duration::from_millis(50), fetch.run(&net, &endpoints)).await;
    assert!(cut.is_err());
    let faults: Vec<_> = fetch.into_attempts().into_iter().map(|a| a.fault).collect();
    assert_eq!(faults, [PeerError::NotFound, PeerError::TimedOut]);
}
