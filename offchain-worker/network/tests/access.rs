//! Real sockets on loopback, and the same in memory: blobs are for those of the round, and for auditors who
//! show their draw.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use common::{QUIC, TCP, endpoint, limits, peer, peer_with, refused};
use surety_network::{
    AccessGate, Announcement, Asked, Bytes, DataPlane, Decision, FetchOptions, Limits, PlaneError, Readers,
    Ticket, memory::MemoryNet,
};
use surety_types::{ContentHash, multiaddr::Endpoint};
use tokio::sync::Notify;

const TASK: u64 = 7;

/// Lets in who shows the right ticket for the right blob under the right name.
struct OneTicket {
    peer: String,
    blob: ContentHash,
    asked: AtomicUsize,
}

impl OneTicket {
    fn for_peer(peer: &dyn DataPlane, blob: ContentHash) -> Arc<Self> {
        Arc::new(Self {
            peer: peer.peer_id(),
            blob,
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl AccessGate for OneTicket {
    async fn may_read(&self, asked: Asked<'_>) -> Option<Decision> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let right = asked.peer == self.peer
            && asked.blob == self.blob
            && asked.task.is_none_or(|task| task == TASK)
            && asked.ticket.as_bytes() == b"drawn";
        Some(if right { Decision::Allow } else { Decision::Refuse })
    }
}

fn showing(ticket: &[u8]) -> FetchOptions {
    FetchOptions::default().showing(Ticket::new(ticket.to_vec()).unwrap())
}

/// Four peers of one kind: who serves, who is of the round, who audits, and who is nobody.
struct Parties {
    server: Arc<dyn DataPlane>,
    member: Arc<dyn DataPlane>,
    auditor: Arc<dyn DataPlane>,
    stranger: Arc<dyn DataPlane>,
    at: Vec<Endpoint>,
    /// What must outlive the peers.
    _kept: Vec<tempfile::TempDir>,
}

impl Parties {
    fn in_memory() -> Self {
        let net = MemoryNet::default();
        let join = |name: &str| -> Arc<dyn DataPlane> {
            Arc::new(net.join(Endpoint::try_from(name.as_bytes().to_vec()).unwrap()))
        };
        let server = join("server");
        Self {
            at: server.endpoints(),
            server,
            member: join("member"),
            auditor: join("auditor"),
            stranger: join("stranger"),
            _kept: Vec::new(),
        }
    }

    async fn over_libp2p() -> Self {
        let mut kept = Vec::new();
        let mut planes: Vec<Arc<dyn DataPlane>> = Vec::new();
        let forgetful = Limits {
            gate_refusal_memory: Duration::ZERO,
            ..limits()
        };
        for listen in [QUIC, TCP, TCP, TCP] {
            let peer = peer_with(&[listen], 0, forgetful.clone()).await.unwrap();
            kept.push(peer.dir);
            planes.push(Arc::new(peer.node));
        }
        let [server, member, auditor, stranger] = planes.try_into().unwrap_or_else(|_| panic!("four peers"));
        Self {
            at: server.endpoints(),
            server,
            member,
            auditor,
            stranger,
            _kept: kept,
        }
    }

    async fn both() -> [Self; 2] {
        [Self::in_memory(), Self::over_libp2p().await]
    }
}

#[tokio::test]
async fn knowing_the_hash_of_an_input_gives_no_right_to_it() {
    for p in Parties::both().await {
        let hash = p.server.publish(Bytes::from_static(b"input")).await.unwrap();
        let any = FetchOptions::default();
        assert!(
            refused(p.member.fetch(hash, &p.at, &any).await),
            "nobody was named"
        );
        let members = p.member.endpoints();
        p.server.grant(TASK, hash, Readers::Only(&members)).await.unwrap();
        assert_eq!(&p.member.fetch(hash, &p.at, &any).await.unwrap()[..], b"input");
        assert!(refused(p.stranger.fetch(hash, &p.at, &any).await));
        assert_eq!(p.server.counters().requests_refused_reader, 2);
        // Whoever has fetched it does not pass it on.
        let of_member = p.stranger.fetch(hash, &p.member.endpoints(), &any).await;
        assert!(refused(of_member));
        // The same input of another task, whose member the stranger is.
        let others = p.stranger.endpoints();
        p.server
            .grant(TASK + 1, hash, Readers::Only(&others))
            .await
            .unwrap();
        p.server.grant(TASK, hash, Readers::NOBODY).await.unwrap();
        assert_eq!(&p.stranger.fetch(hash, &p.at, &any).await.unwrap()[..], b"input");
        assert!(refused(p.auditor.fetch(hash, &p.at, &any).await));
    }
}

#[tokio::test]
async fn who_reads_a_blob_for_one_task_is_judged_where_it_asks_for_another() {
    for p in Parties::both().await {
        let hash = p.server.publish(Bytes::from_static(b"input")).await.unwrap();
        p.server
            .grant(TASK, hash, Readers::Only(&p.member.endpoints()))
            .await
            .unwrap();
        p.server.set_gate(OneTicket::for_peer(&*p.auditor, hash));
        let of_another = showing(b"for another task");
        assert!(refused(p.member.fetch(hash, &p.at, &of_another).await));
        assert!(
            p.member
                .fetch(hash, &p.at, &FetchOptions::default())
                .await
                .is_ok()
        );
        assert!(p.auditor.fetch(hash, &p.at, &showing(b"drawn")).await.is_ok());
        let other = FetchOptions {
            anew: true,
            ..showing(b"for another task")
        };
        assert!(
            refused(p.auditor.fetch(hash, &p.at, &other).await),
            "its first ticket lets in no second"
        );
    }
}

#[tokio::test]
async fn what_is_wanted_anew_comes_from_who_has_it_or_not_at_all() {
    for parties in Parties::both().await {
        let hash = parties
            .member
            .publish(Bytes::from_static(b"an input"))
            .await
            .unwrap();
        let anew = FetchOptions {
            anew: true,
            ..FetchOptions::default()
        };
        let nobody = parties.member.fetch(hash, &[], &anew).await;
        assert!(matches!(nobody, Err(PlaneError::NoSources(_))));
        let without = parties.member.fetch(hash, &parties.at, &anew).await;
        assert!(matches!(without, Err(PlaneError::AllFailed { .. })));
        parties
            .server
            .publish(Bytes::from_static(b"an input"))
            .await
            .unwrap();
        parties.server.grant(TASK, hash, Readers::Everyone).await.unwrap();
        assert!(parties.member.fetch(hash, &parties.at, &anew).await.is_ok());
        assert!(
            parties
                .member
                .fetch(hash, &[], &FetchOptions::default())
                .await
                .is_ok()
        );
    }
}

#[tokio::test]
async fn an_auditor_who_shows_its_draw_reads_and_nobody_else_does_with_its_ticket() {
    for p in Parties::both().await {
        let large = vec![3u8; (2 << 20) + 1];
        let hash = p.server.publish(large.clone().into()).await.unwrap();
        let ticket = showing(b"drawn");
        assert!(
            refused(p.auditor.fetch(hash, &p.at, &ticket).await),
            "no gate, no tickets"
        );
        let gate = OneTicket::for_peer(&*p.auditor, hash);
        p.server.set_gate(gate.clone());
        let without = FetchOptions::default();
        assert!(refused(p.auditor.fetch(hash, &p.at, &without).await));
        assert_eq!(
            gate.asked.load(Ordering::SeqCst),
            0,
            "without a ticket there is nothing to judge"
        );
        assert!(refused(p.auditor.fetch(hash, &p.at, &showing(b"forged")).await));
        assert!(
            refused(p.stranger.fetch(hash, &p.at, &ticket).await),
            "it is another's"
        );
        let asked_before = gate.asked.load(Ordering::SeqCst);
        assert_eq!(p.auditor.fetch(hash, &p.at, &ticket).await.unwrap(), large);
        assert_eq!(
            gate.asked.load(Ordering::SeqCst),
            asked_before + 1,
            "judged once, not for every chunk"
        );
        assert!(p.server.counters().requests_refused_ticket > 0);
    }
}

#[tokio::test]
async fn an_output_is_told_and_served_to_its_readers_and_to_drawn_auditors() {
    for p in Parties::both().await {
        let hash = p.server.publish(Bytes::from_static(b"answer")).await.unwrap();
        let client = p.member.endpoints();
        p.server
            .announce_output(TASK, Announcement::new(hash), Readers::Only(&client))
            .await
            .unwrap();
        p.server.set_gate(OneTicket::for_peer(&*p.auditor, hash));
        let ticket = Ticket::new(b"drawn".to_vec()).unwrap();
        let at = &p.at[0];

        assert_eq!(p.member.locate_output(TASK, at, None).await.unwrap().hash, hash);
        let found = p.auditor.locate_output(TASK, at, Some(&ticket)).await.unwrap();
        assert_eq!((found.hash, found.bytes), (hash, 6));
        assert!(refused(p.auditor.locate_output(TASK, at, None).await));
        assert!(refused(p.stranger.locate_output(TASK, at, Some(&ticket)).await));

        let any = FetchOptions::default();
        assert_eq!(&p.member.fetch(hash, &p.at, &any).await.unwrap()[..], b"answer");
        assert!(refused(p.stranger.fetch(hash, &p.at, &any).await));
        let fetched = p.auditor.fetch(hash, &p.at, &showing(b"drawn")).await;
        assert_eq!(&fetched.unwrap()[..], b"answer");
    }
}

#[tokio::test]
async fn who_may_read_the_same_bytes_for_another_task_is_not_told_whose_output_they_are() {
    for p in Parties::both().await {
        let hash = p.server.publish(Bytes::from_static(b"same")).await.unwrap();
        let others = p.stranger.endpoints();
        p.server
            .grant(TASK + 1, hash, Readers::Only(&others))
            .await
            .unwrap();
        p.server
            .announce_output(TASK, Announcement::new(hash), Readers::NOBODY)
            .await
            .unwrap();
        let any = FetchOptions::default();
        p.stranger.fetch(hash, &p.at, &any).await.unwrap();
        assert!(refused(p.stranger.locate_output(TASK, &p.at[0], None).await));
    }
}

#[tokio::test]
async fn a_refusal_costs_a_try_elsewhere() {
    let (closed, open, client) = (peer(&[QUIC]).await, peer(&[TCP]).await, peer(&[]).await);
    let hash = closed.node.publish(Bytes::from_static(b"x")).await.unwrap();
    common::share(&open, b"x").await;
    let sources = [endpoint(&closed), endpoint(&open)];
    let fetched = client.node.fetch(hash, &sources, &FetchOptions::default()).await;
    assert_eq!(&fetched.unwrap()[..], b"x");
}

/// Judges when it is told to.
#[derive(Default)]
struct SlowGate {
    begun: Notify,
    end: Notify,
}

#[async_trait]
impl AccessGate for SlowGate {
    async fn may_read(&self, _: Asked<'_>) -> Option<Decision> {
        self.begun.notify_one();
        self.end.notified().await;
        Some(Decision::Allow)
    }
}

#[tokio::test]
async fn a_gate_that_takes_its_time_keeps_nobody_else_waiting_and_few_tickets_are_judged_at_once() {
    let one_check = Limits {
        gate_checks_max: 1,
        gate_checks_named: 0,
        ..limits()
    };
    let server = peer_with(&[QUIC], 0, one_check).await.unwrap();
    let (auditor, second, member) = (peer(&[]).await, peer(&[]).await, peer(&[]).await);
    let gate = Arc::new(SlowGate::default());
    server.node.set_gate(gate.clone());
    let secret = server.node.publish(Bytes::from_static(b"secret")).await.unwrap();
    let open = common::share(&server, b"open").await;
    let at = [endpoint(&server)];
    let ticket = showing(b"any");
    let judged = auditor.node.fetch(secret, &at, &ticket);
    let meanwhile = async {
        gate.begun.notified().await;
        let any = FetchOptions::default();
        assert_eq!(&member.node.fetch(open, &at, &any).await.unwrap()[..], b"open");
        let busy = common::attempts(second.node.fetch(secret, &at, &ticket).await);
        assert_eq!(busy[0].fault, surety_network::PeerError::Busy);
        gate.end.notify_one();
    };
    let (fetched, ()) = tokio::join!(judged, meanwhile);
    assert_eq!(&fetched.unwrap()[..], b"secret");
}

#[tokio::test]
async fn whoever_asks_for_an_output_while_another_ticket_is_judged_waits_for_its_turn() {
    let one_check = Limits {
        gate_checks_max: 1,
        gate_checks_named: 0,
        ..limits()
    };
    let server = peer_with(&[QUIC], 0, one_check).await.unwrap();
    let (first, second) = (peer(&[]).await, peer(&[]).await);
    let gate = Arc::new(SlowGate::default());
    server.node.set_gate(gate.clone());
    let output = server.node.publish(Bytes::from_static(b"output")).await.unwrap();
    let announced = server
        .node
        .announce_output(TASK, Announcement::new(output), Readers::NOBODY);
    announced.await.unwrap();
    let at = endpoint(&server);
    let ticket = Ticket::new(b"any".to_vec()).unwrap();
    let asked = async {
        let one = first.node.locate_output(TASK, &at, Some(&ticket));
        let two = second.node.locate_output(TASK, &at, Some(&ticket));
        let (one, two) = tokio::join!(one, two);
        assert_eq!((one.unwrap().hash, two.unwrap().hash), (output, output));
    };
    let judging = async {
        gate.begun.notified().await;
        while server.node.counters().requests_refused_busy == 0 {
            tokio::task::yield_now().await;
        }
        gate.end.notify_one();
        gate.begun.notified().await;
        gate.end.notify_one();
    };
    tokio::join!(asked, judging);
}

#[tokio::test]
async fn a_gate_that_never_answers_or_panics_refuses_and_lets_the_next_be_judged() {
    struct Panics;
    #[async_trait]
    impl AccessGate for Panics {
        async fn may_read(&self, _: Asked<'_>) -> Option<Decision> {
            panic!("a fault in the host");
        }
    }
    let impatient = Limits {
        gate_checks_max: 1,
        gate_checks_named: 0,
        gate_timeout: Duration::from_millis(50),
        ..limits()
    };
    let (server, auditor) = (peer_with(&[QUIC], 0, impatient).await.unwrap(), peer(&[]).await);
    let hash = server.node.publish(Bytes::from_static(b"x")).await.unwrap();
    let at = [endpoint(&server)];
    let ticket = showing(b"drawn");
    server.node.set_gate(Arc::new(SlowGate::default()));
    assert!(refused(auditor.node.fetch(hash, &at, &ticket).await));
    server.node.set_gate(Arc::new(Panics));
    assert!(auditor.node.fetch(hash, &at, &ticket).await.is_err());
    server.node.set_gate(OneTicket::for_peer(&auditor.node, hash));
    assert_eq!(&auditor.node.fetch(hash, &at, &ticket).await.unwrap()[..], b"x");
}

#[tokio::test]
async fn who_could_not_be_judged_is_judged_again_at_once() {
    struct CutOff;
    #[async_trait]
    impl AccessGate for CutOff {
        async fn may_read(&self, _: Asked<'_>) -> Option<Decision> {
            None
        }
    }
    let (server, auditor) = (peer(&[QUIC]).await, peer(&[]).await);
    let hash = server.node.publish(Bytes::from_static(b"x")).await.unwrap();
    let (at, ticket) = ([endpoint(&server)], showing(b"drawn"));
    server.node.set_gate(Arc::new(CutOff));
    assert!(refused(auditor.node.fetch(hash, &at, &ticket).await));
    server.node.set_gate(OneTicket::for_peer(&auditor.node, hash));
    assert_eq!(&auditor.node.fetch(hash, &at, &ticket).await.unwrap()[..], b"x");
}

#[tokio::test]
async fn who_was_refused_is_not_judged_again_for_a_while() {
    let (server, auditor) = (peer(&[QUIC]).await, peer(&[]).await);
    let hash = server.node.publish(Bytes::from_static(b"x")).await.unwrap();
    let at = [endpoint(&server)];
    let gate = OneTicket::for_peer(&auditor.node, hash);
    server.node.set_gate(gate.clone());
    for ticket in [b"forged".as_slice(), b"another", b"drawn"] {
        assert!(refused(auditor.node.fetch(hash, &at, &showing(ticket)).await));
    }
    assert_eq!(gate.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn of_one_peer_and_of_one_address_few_tickets_are_judged_at_once() {
    let server = peer(&[QUIC]).await;
    let secrets = [
        server.node.publish(Bytes::from_static(b"first")).await.unwrap(),
        server.node.publish(Bytes::from_static(b"second")).await.unwrap(),
    ];
    let gate = Arc::new(SlowGate::default());
    server.node.set_gate(gate.clone());
    let (first, second, third) = (peer(&[]).await, peer(&[]).await, peer(&[]).await);
    let (at, ticket) = ([endpoint(&server)], showing(b"any"));
    let judged = async {
        let [one, two] = [&first, &second].map(|peer| peer.node.fetch(secrets[0], &at, &ticket));
        let (one, two) = tokio::join!(one, two);
        one.unwrap();
        two.unwrap();
    };
    let meanwhile = async {
        gate.begun.notified().await;
        gate.begun.notified().await;
        for peer in [&first, &third] {
            let busy = common::attempts(peer.node.fetch(secrets[1], &at, &ticket).await);
            assert_eq!(busy[0].fault, surety_network::PeerError::Busy);
        }
        let counters = server.node.counters();
        assert_eq!(
            (counters.requests_refused_busy, counters.requests_refused_ticket),
            (2, 0)
        );
        gate.end.notify_waiters();
    };
    tokio::join!(judged, meanwhile);
}
