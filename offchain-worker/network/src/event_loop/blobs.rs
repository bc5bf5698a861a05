//! Serving and reading `/surety/blob/3`: who may read, how much, and how fast.

use libp2p::{
    PeerId,
    request_response::{Event, InboundRequestId, Message, OutboundFailure, ResponseChannel},
    swarm::ConnectionId,
};
use surety_types::{ContentHash, TaskId};
use tokio::time::Instant;

use super::{Answer, EventLoop, answer, request_fault};
use crate::{
    access::{Asked, Audience, Decision, Ticket, ticket_hash},
    outline::chunks_of,
    places::{Guest, Room},
    plane::Announcement,
    store::{BlobStore, StoreError},
    wire::{BLOBS, CHUNK_BYTES, OUTLINE_CHUNKS_MAX, Request, Response, Wanted},
};

/// A request that stands and falls with its ticket.
pub(super) struct Case {
    peer: PeerId,
    wanted: Wanted,
    blob: ContentHash,
    ticket: Ticket,
    channel: ResponseChannel<Response>,
}

impl EventLoop {
    pub(super) fn on_blob_event(&mut self, event: Event<Request, Response>) {
        match event {
            Event::Message {
                peer,
                connection_id,
                message:
                    Message::Request {
                        request_id,
                        request,
                        channel,
                    },
            } => self.on_request(peer, connection_id, request_id, request, channel),
            Event::Message {
                message: Message::Response { request_id, response },
                ..
            } => {
                if let Some(reply) = self.asked.remove(&request_id) {
                    answer(reply, Ok(response));
                }
            }
            Event::OutboundFailure {
                request_id,
                error,
                connection_id,
                ..
            } => {
                if matches!(error, OutboundFailure::Timeout) {
                    // Whoever asks next shall find out at once whether the peer is still there.
                    self.swarm.close_connection(connection_id);
                }
                if let Some(reply) = self.asked.remove(&request_id) {
                    answer(reply, Err(request_fault(error, &BLOBS)));
                }
            }
            Event::InboundFailure {
                request_id,
                peer,
                error,
                ..
            } => {
                tracing::debug!(%peer, %error, "could not answer");
                self.inbound.remove(&request_id);
            }
            Event::ResponseSent { request_id, .. } => {
                self.inbound.remove(&request_id);
            }
        }
    }

    fn on_request(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        id: InboundRequestId,
        request: Request,
        channel: ResponseChannel<Response>,
    ) {
        let places = &self.swarm.behaviour().places;
        let guest = places.guest(connection, peer);
        let room = Room {
            total: self.limits.inbound_requests_max,
            kept: self.limits.inbound_requests_named,
            per_address: self.limits.requests_per_address_max,
            per_peer: self.limits.inbound_per_peer_max,
        };
        if let Err(why) = room.admit(self.inbound.values(), &guest, places.named()) {
            tracing::debug!(%peer, %why, "a request is put off");
            self.shared.tally.requests_refused_busy.one();
            self.send(channel, Response::Busy);
            return;
        }
        self.inbound.insert(id, guest);
        let Request { wanted, ticket } = request;
        let Some((blob, allowed)) = self.look_up(&wanted, &peer, ticket.as_ref()) else {
            self.send(channel, Response::NotFound);
            return;
        };
        match ticket {
            _ if allowed => self.serve(peer, wanted, channel),
            None => {
                self.shared.tally.requests_refused_reader.one();
                self.send(channel, Response::Refused);
            }
            Some(ticket) => {
                let case = Case {
                    peer,
                    wanted,
                    blob,
                    ticket,
                    channel,
                };
                self.judge(case, guest);
            }
        }
    }

    /// The blob that is wanted, if it is here, and whether the peer is among its readers. Who shows a ticket
    /// reads by that alone: it may be for another task than the one that it is a reader of.
    fn look_up(
        &self,
        wanted: &Wanted,
        peer: &PeerId,
        ticket: Option<&Ticket>,
    ) -> Option<(ContentHash, bool)> {
        let (blob, allowed) = match wanted {
            Wanted::Blob { hash, .. } | Wanted::Outline { hash } => {
                let allowed = match ticket {
                    Some(ticket) => {
                        let asked = (*peer, *hash, ticket_hash(ticket));
                        self.allowances.has(&asked, Instant::now())
                    }
                    None => self.grants.may_read(hash, peer),
                };
                (*hash, allowed)
            }
            // Whoever may read the same blob for another task need not know that it is this task's output,
            // too.
            Wanted::Output { genesis, task } => {
                let (output, audience) = self.outputs.entry(*task).filter(|_| *genesis == self.genesis)?;
                (output.hash, audience.has(peer))
            }
        };
        self.shared.store.size(&blob).map(|_| (blob, allowed))
    }

    /// Has the gate look at a ticket, apart from the loop.
    fn judge(&mut self, case: Case, guest: Guest) {
        let was_refused = self.refusals.has(&(case.peer, case.blob), Instant::now());
        let Some(gate) = self.shared.gate().filter(|_| !was_refused) else {
            self.on_judged(case, None);
            return;
        };
        // Each check costs the host questions to its node: no peer and no address has all of them.
        let room = Room {
            total: self.limits.gate_checks_max,
            kept: self.limits.gate_checks_named,
            per_address: self.limits.gate_checks_per_address_max,
            per_peer: self.limits.gate_checks_per_peer_max,
        };
        let named = self.swarm.behaviour().places.named();
        if let Err(why) = room.admit(self.judging.values(), &guest, named) {
            tracing::debug!(peer = %case.peer, %why, "a ticket is put off");
            self.shared.tally.requests_refused_busy.one();
            self.send(case.channel, Response::Busy);
            return;
        }
        let timeout = self.limits.gate_timeout;
        let judging = self.answers.spawn(async move {
            let peer = case.peer.to_base58();
            let asked = Asked {
                peer: &peer,
                blob: case.blob,
                task: case.task(),
                ticket: &case.ticket,
            };
            let decision = tokio::time::timeout(timeout, gate.may_read(asked)).await;
            Answer::Judged(case, decision.ok().flatten())
        });
        self.judging.insert(judging.id(), guest);
    }

    pub(super) fn on_judged(&mut self, case: Case, decision: Option<Decision>) {
        if decision == Some(Decision::Refuse) {
            self.refusals.insert((case.peer, case.blob), Instant::now());
        }
        if decision != Some(Decision::Allow) {
            tracing::debug!(peer = %case.peer, blob = ?case.blob, "a ticket was not taken");
            self.shared.tally.requests_refused_ticket.one();
            self.send(case.channel, Response::Refused);
            return;
        }
        if case.task().is_none() {
            let allowed = (case.peer, case.blob, ticket_hash(&case.ticket));
            self.allowances.insert(allowed, Instant::now());
        }
        self.serve(case.peer, case.wanted, case.channel);
    }

    /// Answers a peer that may know.
    fn serve(&mut self, peer: PeerId, wanted: Wanted, channel: ResponseChannel<Response>) {
        match wanted {
            Wanted::Output { task, .. } => {
                let response = self.output(task).unwrap_or(Response::NotFound);
                self.send(channel, response);
            }
            Wanted::Outline { hash } => {
                let shared = self.shared.clone();
                self.answers
                    .spawn_blocking(move || Answer::Blob(channel, read_outline(&shared.store, &hash)));
            }
            Wanted::Blob { hash, offset, len } => {
                let total = self.shared.store.size(&hash).unwrap_or_default();
                let bytes = total.saturating_sub(offset).min(len.min(CHUNK_BYTES).into());
                // Whoever asked shall not give up in the meantime.
                let patience = self.limits.request_timeout / 4;
                let Some(wait) = self.pace.promise(peer, bytes, patience, Instant::now()) else {
                    self.shared.tally.requests_refused_rate.one();
                    self.send(channel, Response::Busy);
                    return;
                };
                let shared = self.shared.clone();
                self.answers.spawn(async move {
                    tokio::time::sleep(wait).await;
                    let read = move || read_part(&shared.store, &hash, offset, len);
                    let response = tokio::task::spawn_blocking(read).await;
                    // Only a runtime that ends drops such a task.
                    Answer::Blob(channel, response.unwrap_or(Response::NotFound))
                });
            }
        }
    }

    fn output(&self, task: TaskId) -> Option<Response> {
        let (output, _) = self.outputs.entry(task)?;
        Some(Response::Output {
            hash: output.hash,
            bytes: self.shared.store.size(&output.hash)?,
            statement: output.statement.clone(),
            leaves: output.leaves,
        })
    }

    /// Says that this is the output of a task, and lets those who are told read it.
    pub(super) fn announce(&mut self, task: TaskId, output: Announcement, audience: Audience<PeerId>) {
        if let Some((before, _)) = self.outputs.entry(task) {
            self.grants.insert(task, before.hash, Audience::Only(Vec::new()));
        }
        self.grants.insert(task, output.hash, audience.clone());
        self.outputs.insert(task, output, audience);
    }

    pub(super) fn send(&mut self, channel: ResponseChannel<Response>, response: Response) {
        let tally = &self.shared.tally;
        match &response {
            Response::Chunk { bytes, .. } => {
                tally.bytes_served.add(bytes.len() as u64);
                tally.requests_served.one();
            }
            Response::Output { .. } | Response::Outline { .. } => tally.requests_served.one(),
            Response::NotFound => tally.requests_not_found.one(),
            // Refusals are counted where their reason is known.
            Response::Busy | Response::Malformed | Response::Refused => {}
        }
        // An error hands the response back: the peer is gone, which arrives as an event of its own.
        if self
            .swarm
            .behaviour_mut()
            .blobs
            .send_response(channel, response)
            .is_err()
        {
            tracing::debug!("the peer is gone before it was answered");
        }
    }
}

impl Case {
    fn task(&self) -> Option<TaskId> {
        match self.wanted {
            Wanted::Output { task, .. } => Some(task),
            Wanted::Blob { .. } | Wanted::Outline { .. } => None,
        }
    }
}

fn read_part(store: &BlobStore, hash: &ContentHash, offset: u64, len: u32) -> Response {
    match store.read_part(hash, offset, len.min(CHUNK_BYTES)) {
        Ok((bytes, total)) => Response::Chunk { total, bytes },
        Err(e) => instead(e),
    }
}

fn read_outline(store: &BlobStore, hash: &ContentHash) -> Response {
    match store.outline(hash) {
        Ok((chunks, total)) if chunks_of(total) <= OUTLINE_CHUNKS_MAX as u64 => Response::Outline {
            total,
            chunks: chunks.to_vec(),
        },
        // Larger than anybody fetches.
        Ok(_) => Response::Malformed,
        Err(e) => instead(e),
    }
}

/// What is said when the store fails.
fn instead(error: StoreError) -> Response {
    match error {
        StoreError::OutOfRange { .. } => Response::Malformed,
        StoreError::NotFound(_) => Response::NotFound,
        e => {
            tracing::error!(error = %e, "cannot read a blob that was asked for");
            Response::NotFound
        }
    }
}
