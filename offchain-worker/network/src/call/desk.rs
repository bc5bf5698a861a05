//! Who has calls with this node, and where those of others go.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use codec::{DecodeAll, Encode};
use surety_types::ContentHash;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::{
    call::{CallListener, CallStream, Place},
    counters::Tally,
    limits::Limits,
    places::{Guest, Named, NoPlace, Room},
    wire::{CALL_HELLO_BYTES_MAX, CallGreeting, CallHello},
};

/// Calls of others that are refused at once. Whoever comes beyond is hung up on.
const REFUSALS_MAX: usize = 64;

#[derive(Default)]
struct Guests {
    /// By a number that is given once.
    present: HashMap<u64, Guest>,
    next: u64,
}

/// Places for calls, own ones and those of others.
pub(crate) struct Desk {
    guests: Arc<Mutex<Guests>>,
    listener: Mutex<Option<mpsc::Sender<CallStream>>>,
    own: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    calls_max: usize,
    tally: Arc<Tally>,
}

/// A place for a call of another peer.
struct GuestPlace {
    guests: Arc<Mutex<Guests>>,
    number: u64,
    tally: Arc<Tally>,
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.present.remove(&self.number);
        self.tally.calls_inbound.set(guests.present.len() as u64);
    }
}

/// A place for a call of this node.
#[derive(Debug)]
pub(crate) struct OwnPlace {
    _permit: OwnedSemaphorePermit,
    tally: Arc<Tally>,
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        self.tally.calls_outbound.less_one();
    }
}

impl Desk {
    pub(crate) fn new(limits: &Limits, tally: Arc<Tally>) -> Self {
        Self {
            guests: Arc::default(),
            listener: Mutex::default(),
            own: Arc::new(Semaphore::new(limits.calls_made_max)),
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
            calls_max: limits.calls_max,
            tally,
        }
    }

    /// Where calls of others go from now on; nothing while there is a listener already.
    pub(crate) fn listen(&self) -> Option<CallListener> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.as_ref().is_some_and(|calls| !calls.is_closed()) {
            return None;
        }
        let (calls, sender) = CallListener::new(self.calls_max);
        *listener = Some(sender);
        Some(calls)
    }

    /// Where they go now.
    pub(crate) fn listener(&self) -> Option<mpsc::Sender<CallStream>> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.clone().filter(|calls| !calls.is_closed())
    }

    pub(crate) fn admit(&self, guest: Guest, room: &Room, named: &Named) -> Result<Place, NoPlace> {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        room.admit(guests.present.values(), &guest, named)?;
        let number = guests.next;
        guests.next = number.wrapping_add(1);
        guests.present.insert(number, guest);
        self.tally.calls_inbound.set(guests.present.len() as u64);
        Ok(Arc::new(GuestPlace {
            guests: self.guests.clone(),
            number,
            tally: self.tally.clone(),
        }))
    }

    /// To tell somebody that there is no place.
    pub(crate) fn refuse(&self) -> Option<Place> {
        let permit = self.refusals.clone().try_acquire_owned().ok()?;
        Some(Arc::new(permit))
    }

    pub(crate) fn own_place(&self) -> Option<OwnPlace> {
        let permit = self.own.clone().try_acquire_owned().ok()?;
        self.tally.calls_outbound.one();
        Some(OwnPlace {
            _permit: permit,
            tally: self.tally.clone(),
        })
    }
}

/// What becomes of a call of another peer.
pub(crate) enum Verdict {
    /// It goes there.
    Taken(mpsc::Sender<CallStream>),
    /// It is told this.
    Refused(CallGreeting),
}

/// Hears which chain a call is for, answers, and hands it on.
pub(crate) async fn greet(
    mut call: CallStream,
    genesis: ContentHash,
    verdict: Verdict,
    time: Duration,
    tally: &Tally,
) {
    let heard = tokio::time::timeout(time, call.recv(CALL_HELLO_BYTES_MAX)).await;
    let Ok(Ok(Some(hello))) = heard else {
        tracing::debug!(peer = call.peer(), "a call was opened, and not begun");
        return;
    };
    let hello = CallHello::decode_all(&mut hello.as_slice());
    let (greeting, listener) = match verdict {
        _ if !hello.is_ok_and(|hello| hello.genesis == genesis) => (CallGreeting::OtherChain, None),
        Verdict::Refused(why) => (why, None),
        Verdict::Taken(listener) => match listener.try_reserve_owned() {
            Ok(place) => (CallGreeting::Taken, Some(place)),
            // It was dropped meanwhile. It is never full: each call in it has one of as many places.
            Err(_) => (CallGreeting::NotServed, None),
        },
    };
    if let Err(error) = call.send(&greeting.encode()).await {
        tracing::debug!(peer = call.peer(), %error, "a call could not be answered");
        return;
    }
    match listener {
        Some(place) => {
            tally.calls_taken.one();
            place.send(call.first_within(time));
        }
        None => match greeting {
            CallGreeting::TooMany => tally.calls_refused_peer.one(),
            CallGreeting::Full => tally.calls_refused_full.one(),
            CallGreeting::Taken | CallGreeting::NotServed | CallGreeting::OtherChain => {
                tally.calls_refused_other.one();
            }
        },
    }
}
