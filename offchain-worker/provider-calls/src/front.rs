//! Takes connections, and turns frames into events and messages into frames.

use std::{sync::Arc, time::Duration};

use codec::{Encode, MaxEncodedLen};
use surety_channel_calls::{
    AccountId, Ask, FromPayee, ToPayee,
    message::{self, Asked, FromHolder, FromVerifier, Message, PointAsk},
};
use surety_channels::{ChannelId, Nonce, SignedVoucher};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::timeout,
};

use crate::{
    desk::Event,
    line::{Hear, Line, Listen, Tell},
    points::Points,
    receipts,
};

/// A request: its channel and its number.
pub(crate) type CallId = (ChannelId, Nonce);

/// Which connection.
pub(crate) type LineId = u64;

/// Connections at once: as many as the data plane has. What is taken is bounded by the payee.
const LINES_MAX: usize = 256;

/// Connections beyond those of open requests.
const LINES_MORE: usize = 32;

/// For so long a peer that has connected takes to say what it wants. It connects for that.
const ASK_TIME: Duration = Duration::from_secs(8);

/// For so long a message takes to be taken off our hands.
const TELL_TIME: Duration = Duration::from_secs(20);

/// Messages that wait for a peer to take them: those of a second and a half. One that pays for more than it
/// reads is cut off.
pub(crate) const TOLD_MAX: usize = 32;

/// What has arrived of a request: it, and whom to tell.
pub(crate) struct Arrived {
    pub(crate) ask: Ask,
    pub(crate) line: LineId,
    pub(crate) told: mpsc::Sender<FromPayee>,
}

/// Takes connections until there are no more, or nobody listens to what they say.
pub(crate) async fn accept(
    mut listener: Box<dyn Listen>,
    (events, points): (mpsc::Sender<Event>, Points),
    open_max: usize,
) {
    let places = Arc::new(Semaphore::new(open_max.saturating_add(LINES_MORE).max(LINES_MAX)));
    let mut lines = JoinSet::new();
    let mut next: LineId = 0;
    loop {
        let line = tokio::select! {
            line = listener.next() => line,
            // One that is over gives its place back.
            Some(_) = lines.join_next() => continue,
        };
        let Some(line) = line else {
            tracing::warn!("no more calls are taken: the network is down");
            break;
        };
        // Dropped, it is closed: the peer asks somebody else.
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::debug!("a call is closed: as many connections are open as may be");
            continue;
        };
        next = next.wrapping_add(1);
        let (id, events, points) = (next, events.clone(), points.clone());
        lines.spawn(async move {
            serve(line, id, (events, points)).await;
            drop(place);
        });
    }
    while lines.join_next().await.is_some() {}
}

async fn serve(line: Line, id: LineId, (events, points): (mpsc::Sender<Event>, Points)) {
    let Line { mut from, mut to } = line;
    let (told, mut tell) = mpsc::channel(TOLD_MAX);
    let ask = match first(&mut *from).await {
        Some(First::Ask(ask)) => *ask,
        Some(First::Point(ask)) => {
            let answer = points.answer(ask).await.encode();
            timeout(TELL_TIME, to.tell(&answer)).await.ok();
            return;
        }
        Some(First::Receipts(asked)) => {
            timeout(TELL_TIME, points.answer_holder(asked, &mut *to))
                .await
                .ok();
            return;
        }
        None => return,
    };
    let call = (ask.voucher.voucher.channel, ask.voucher.voucher.nonce);
    let line = id;
    let arrived = Arrived { ask, line, told };
    if events.send(Event::Asked(Box::new(arrived))).await.is_err() {
        return;
    }
    tokio::select! {
        () = speak(&mut *to, &mut tell) => {}
        () = listen(&mut *from, call, id, &events) => {}
    }
    // Nobody listens any more only when everything ends.
    events.send(Event::Gone { call, line }).await.ok();
}

/// What a connection is for.
enum First {
    Ask(Box<Ask>),
    Point(PointAsk),
    Receipts(Asked),
}

/// What a connection is for, which comes first.
async fn first(from: &mut dyn Hear) -> Option<First> {
    let frame = timeout(ASK_TIME, from.hear(ToPayee::bytes_max())).await;
    let frame = frame.ok()?.ok()??;
    // No message of a payer is one of a verifier, or of whoever holds a receipt.
    if let Ok(FromVerifier::Show(ask)) = message::read(&frame) {
        return Some(First::Point(ask));
    }
    if let Ok(FromHolder::Show(asked)) = message::read(&frame) {
        return match receipts::check_once(&asked) {
            Ok(()) => Some(First::Receipts(asked)),
            Err(error) => {
                tracing::debug!(%error, "a call is closed");
                None
            }
        };
    }
    match message::read::<ToPayee>(&frame) {
        Ok(ToPayee::Ask(ask)) => Some(First::Ask(Box::new(ask))),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(%error, "a call is closed");
            None
        }
    }
}

/// Passes on what is said to the peer, until that is all.
async fn speak(to: &mut dyn Tell, tell: &mut mpsc::Receiver<FromPayee>) {
    while let Some(message) = tell.recv().await {
        let sent = timeout(TELL_TIME, to.tell(&message.encode())).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

/// Passes on what the peer says of its call, until it says no more, or something else.
async fn listen(from: &mut dyn Hear, call: CallId, line: LineId, events: &mpsc::Sender<Event>) {
    // A cancellation is shorter.
    let bytes_max = SignedVoucher::<AccountId>::max_encoded_len().saturating_add(1);
    while let Ok(Some(frame)) = from.hear(bytes_max).await {
        let message = match message::read::<ToPayee>(&frame) {
            Ok(message) if message.call() == call => message,
            _ => return,
        };
        let event = match message {
            // There is one request for each connection.
            ToPayee::Ask(_) => return,
            ToPayee::Pay(voucher) => Event::Paid { voucher, line },
            ToPayee::Cancel(cancel) => Event::Cancelled { cancel, line },
        };
        if events.send(event).await.is_err() {
            return;
        }
    }
}
