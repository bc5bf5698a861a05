//! A call's stream: what is said and heard over it, as far as somebody takes it.

use std::{future::pending, pin::pin, time::Duration};

use surety_channel_calls::{FromPayee, message, message::Message as _};
use surety_network::{CallReceiver, CallSender, CallStream};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::{Message, PieceSender};

/// Of a call, within this program.
pub(crate) type CallId = u64;

/// What is said over a stream that its provider has not taken yet. A payer says a voucher for each chunk that
/// it hears, and for each answer that ends: a provider that takes none for so long does not read.
const UNSENT: usize = 256;

/// What a provider says between two chunks that costs it nothing: vouchers that it refuses are sent again
/// every two seconds, for as long as nothing may be said.
const IDLE_MAX: u32 = 32;

/// What was heard.
pub(crate) struct Heard {
    pub(super) call: CallId,
    pub(super) said: Result<FromPayee, String>,
}

/// An open stream. It is closed when this is dropped, once all is sent.
pub(super) struct Line {
    to: mpsc::Sender<Vec<u8>>,
    reader: JoinHandle<()>,
}

impl Line {
    pub fn open(
        call: CallId,
        stream: CallStream,
        pieces: PieceSender,
        inbox: mpsc::Sender<Message>,
        silence: Duration,
    ) -> Self {
        let (to, from) = stream.split();
        let (queue, unsent) = mpsc::channel(UNSENT);
        tokio::spawn(write(to, unsent, silence));
        let reader = Reader {
            call,
            from,
            pieces: Some(pieces),
            inbox,
            silence,
        };
        let reader = tokio::spawn(reader.run());
        Self { to: queue, reader }
    }

    /// Says something; false where the provider takes nothing. One that takes no more may have said its last
    /// words before: its reader notices what has become of it.
    pub fn say(&self, frame: Vec<u8>) -> bool {
        !matches!(self.to.try_send(frame), Err(TrySendError::Full(_)))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// A stream that is lost is noticed by its reader.
async fn write(mut to: CallSender, mut unsent: mpsc::Receiver<Vec<u8>>, silence: Duration) {
    while let Some(frame) = unsent.recv().await {
        match timeout(silence, to.send(&frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return tracing::debug!(%error, "a provider cannot be told something"),
            Err(_) => return tracing::debug!("a provider takes nothing"),
        }
    }
}

struct Reader {
    call: CallId,
    from: CallReceiver,
    /// Until its provider has said how the answer ends.
    pieces: Option<PieceSender>,
    inbox: mpsc::Sender<Message>,
    silence: Duration,
}

impl Reader {
    /// Hears all that is said: what its provider has said it has taken out of money that others wait for,
    /// too. How much that is is bounded by what is paid; after the end one message is enough to show a lie.
    async fn run(mut self) {
        let (mut is_awaited, mut is_taken, mut idle) = (true, false, 0u32);
        let mut until = Instant::now().checked_add(self.silence);
        loop {
            let mut said = self.hear(&mut is_awaited, until).await;
            let goes_on = match &said {
                Ok(FromPayee::Chunk { .. }) => true,
                Ok(FromPayee::Taken { .. }) => !std::mem::replace(&mut is_taken, true),
                Ok(FromPayee::Refused { .. }) | Err(_) => false,
            };
            idle = if goes_on { 0 } else { idle.saturating_add(1) };
            if idle > IDLE_MAX {
                said = Err("the provider says nothing to the point".to_owned());
            }
            let is_over = said.is_err() || self.pieces.is_none();
            if let Ok(FromPayee::Chunk { statement, .. }) = &said
                && statement.statement.end.is_some()
            {
                self.pieces = None;
            }
            let call = self.call;
            // Its task has stopped where this fails, and this one with it.
            self.inbox.send(Message::Heard(Heard { call, said })).await.ok();
            if is_over {
                return;
            }
            if goes_on {
                until = Instant::now().checked_add(self.silence);
            }
        }
    }

    async fn hear(&mut self, is_awaited: &mut bool, until: Option<Instant>) -> Result<FromPayee, String> {
        let until = until.unwrap_or_else(Instant::now);
        let heard = timeout_at(until, self.from.recv(FromPayee::bytes_max()));
        let mut heard = pin!(heard);
        let frame = loop {
            tokio::select! {
                frame = &mut heard => break frame,
                () = closed(self.pieces.as_ref()), if *is_awaited => {
                    *is_awaited = false;
                    self.inbox.send(Message::Cancel(self.call)).await.ok();
                }
            }
        };
        let frame = frame.map_err(|_| "the provider says nothing more".to_owned())?;
        let frame = frame.map_err(|error| error.to_string())?;
        let frame = frame.ok_or("the provider has hung up")?;
        message::read(&frame).map_err(|error| error.to_string())
    }
}

/// Once nobody reads any more.
async fn closed(pieces: Option<&PieceSender>) {
    match pieces {
        Some(pieces) => pieces.closed().await,
        None => pending().await,
    }
}
