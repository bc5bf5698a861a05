//! Serving and reading `/surety/stream/1`.
//!
//! A request for a page waits until there is something to tell: never long, never in the loop, and never more
//! than [`crate::Limits::polls_max`] at once.

use libp2p::{
    PeerId,
    request_response::{Event, InboundRequestId, Message, OutboundFailure, ResponseChannel},
    swarm::ConnectionId,
};

use super::{Answer, EventLoop, answer, request_fault};
use crate::{
    places::Room,
    wire::{PageRequest, PageResponse, STREAMS},
};

impl EventLoop {
    pub(super) fn on_stream_event(&mut self, event: Event<PageRequest, PageResponse>) {
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
            } => self.on_page_request(peer, connection_id, request_id, &request, channel),
            Event::Message {
                message: Message::Response { request_id, response },
                ..
            } => {
                if let Some(reply) = self.pages_asked.remove(&request_id) {
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
                if let Some(reply) = self.pages_asked.remove(&request_id) {
                    answer(reply, Err(request_fault(error, &STREAMS)));
                }
            }
            Event::InboundFailure {
                request_id,
                peer,
                error,
                ..
            } => {
                tracing::debug!(%peer, %error, "could not answer");
                self.polls.remove(&request_id);
            }
            Event::ResponseSent { request_id, .. } => {
                self.polls.remove(&request_id);
            }
        }
    }

    fn on_page_request(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        id: InboundRequestId,
        request: &PageRequest,
        channel: ResponseChannel<PageResponse>,
    ) {
        let places = &self.swarm.behaviour().places;
        let guest = places.guest(connection, peer);
        let room = Room {
            total: self.limits.polls_max,
            kept: self.limits.polls_named,
            per_address: self.limits.requests_per_address_max,
            per_peer: self.limits.polls_per_peer_max,
        };
        if room.admit(self.polls.values(), &guest, places.named()).is_err() {
            self.shared.tally.requests_refused_busy.one();
            self.send_page(channel, PageResponse::Busy);
            return;
        }
        self.polls.insert(id, guest);
        let stream = self.streams.get(request.task, &peer);
        match stream.filter(|_| request.genesis == self.genesis) {
            Some(stream) => {
                let (stream, from, wait) = (stream.clone(), request.from, self.limits.poll_wait());
                self.answers.spawn(async move {
                    let page = stream.page(from, wait).await;
                    Answer::Page(channel, PageResponse::Page(page))
                });
            }
            None => self.send_page(channel, PageResponse::NotFound),
        }
    }

    pub(super) fn send_page(&mut self, channel: ResponseChannel<PageResponse>, response: PageResponse) {
        let streams = &mut self.swarm.behaviour_mut().streams;
        // An error hands the response back: the peer is gone, which arrives as an event of its own.
        if streams.send_response(channel, response).is_err() {
            tracing::debug!("the peer is gone before it was answered");
        }
    }
}
