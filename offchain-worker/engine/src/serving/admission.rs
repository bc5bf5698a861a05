//! Who may begin, and when: memory, and clients in turn.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    ClientKey, Limits, Refusal,
    stream::{End, Reader},
};
use crate::exact::Request;

/// How much there is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that wait for memory.
    pub waiting: usize,
    /// Memory that is taken, of [`Limits::bytes_max`].
    pub bytes: u64,
}

/// A request that has not begun.
pub(super) struct Waiting {
    pub(super) client: ClientKey,
    pub(super) request: Request,
    pub(super) reader: Reader,
}

/// What a batcher shares with those who submit and read.
pub(super) struct Admission {
    pub(super) limits: Limits,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Clients that wait, with their requests, none without any; the one whose turn it is first.
    clients: VecDeque<(ClientKey, VecDeque<Waiting>)>,
    /// Memory that is taken, in all and by client.
    bytes: u64,
    client_bytes: BTreeMap<ClientKey, u64>,
    /// Counts what may let a batcher go on.
    changes: u64,
    closed: bool,
    /// Since when the batcher is at something.
    busy_since: Option<Instant>,
}

impl State {
    fn waiting(&self) -> usize {
        self.clients.iter().map(|(_, requests)| requests.len()).sum()
    }

    fn bytes_of(&self, client: &ClientKey) -> u64 {
        self.client_bytes.get(client).copied().unwrap_or(0)
    }

    /// Why a client's request is not taken, if it is not.
    fn refusal(&self, client: &ClientKey, limits: &Limits) -> Option<Refusal> {
        let own = self.clients.iter().find(|(other, _)| other == client);
        let (all_max, own_max) = (limits.waiting_max.max(1), limits.client_waiting_max.max(1));
        if self.closed {
            Some(Refusal::Closed)
        } else if own.is_some_and(|(_, requests)| requests.len() >= own_max) {
            Some(Refusal::ClientBusy { limit: own_max })
        } else if self.waiting() >= all_max {
            Some(Refusal::Busy { limit: all_max })
        } else {
            None
        }
    }

    /// Puts a request behind those of its client, and a client that has none behind all others.
    fn push(&mut self, waiting: Waiting) {
        let own = self
            .clients
            .iter_mut()
            .find(|(client, _)| *client == waiting.client);
        match own {
            Some((_, requests)) => requests.push_back(waiting),
            None => self.clients.push_back((waiting.client, [waiting].into())),
        }
    }

    /// The request whose turn it is, if there is memory for it, and what else its client waits for.
    ///
    /// It waits for memory if there is not enough, so that nobody waits for ever behind smaller requests; but
    /// who waits for memory of its own client is passed over.
    fn next(&mut self, limits: &Limits) -> Option<(Waiting, VecDeque<Waiting>)> {
        let needs = |requests: &VecDeque<Waiting>| requests.front().map(|waiting| waiting.request.bytes);
        let at = self.clients.iter().position(|(client, requests)| {
            needs(requests)
                .is_some_and(|bytes| self.bytes_of(client).saturating_add(bytes) <= limits.client_bytes_max)
        })?;
        let bytes = self.clients.get(at).and_then(|(_, requests)| needs(requests))?;
        if self.bytes.saturating_add(bytes) > limits.bytes_max {
            return None;
        }
        let (_, mut requests) = self.clients.remove(at)?;
        Some((requests.pop_front()?, requests))
    }

    /// Takes out those whose reader is gone.
    fn take_gone(&mut self) -> Vec<Waiting> {
        let mut gone = Vec::new();
        for (_, requests) in &mut self.clients {
            let all = mem::take(requests).into_iter();
            let (left, others): (VecDeque<_>, _) = all.partition(|waiting| waiting.reader.is_gone());
            gone.extend(left);
            *requests = others;
        }
        self.clients.retain(|(_, requests)| !requests.is_empty());
        gone
    }
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics within it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request wait for its turn.
    pub(super) fn submit(&self, waiting: Waiting) -> Result<(), Refusal> {
        let limits = &self.limits;
        let has = limits.bytes_max.min(limits.client_bytes_max);
        let needs = waiting.request.bytes;
        if needs > has {
            return Err(Refusal::TooLarge { needs, has });
        }
        let mut state = self.lock();
        let gone = state.take_gone();
        let refusal = state.refusal(&waiting.client, limits);
        if refusal.is_none() {
            state.push(waiting);
        }
        drop(state);
        self.change();
        gone.into_iter()
            .for_each(|waiting| waiting.reader.unbegun(End::Cancelled));
        refusal.map_or(Ok(()), Err)
    }

    /// Those who begin now, each with its memory.
    pub(super) fn admit(self: &Arc<Self>) -> Vec<(Waiting, Reservation)> {
        let mut admitted = Vec::new();
        let mut state = self.lock();
        let gone = state.take_gone();
        while let Some((waiting, others)) = state.next(&self.limits) {
            let (client, bytes) = (waiting.client, waiting.request.bytes);
            if !others.is_empty() {
                state.clients.push_back((client, others));
            }
            state.bytes += bytes;
            *state.client_bytes.entry(client).or_default() += bytes;
            let reservation = Reservation {
                admission: self.clone(),
                client,
                bytes,
            };
            admitted.push((waiting, reservation));
        }
        drop(state);
        gone.into_iter()
            .for_each(|waiting| waiting.reader.unbegun(End::Cancelled));
        admitted
    }

    fn release(&self, client: ClientKey, bytes: u64) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        let left = state.bytes_of(&client).saturating_sub(bytes);
        match left {
            0 => state.client_bytes.remove(&client),
            _ => state.client_bytes.insert(client, left),
        };
        drop(state);
        self.change();
    }

    pub(super) fn load(&self) -> Load {
        let state = self.lock();
        Load {
            waiting: state.waiting(),
            bytes: state.bytes,
        }
    }

    /// Says that there may be something to do.
    pub(super) fn change(&self) {
        let mut state = self.lock();
        state.changes = state.changes.wrapping_add(1);
        drop(state);
        self.changed.notify_all();
    }

    /// How often that was said.
    pub(super) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Waits until it was said again since it was said so often, or this is closed.
    pub(super) fn wait(&self, changes: u64) {
        let state = self.lock();
        let idle = |state: &mut State| state.changes == changes && !state.closed;
        // A poisoned lock is as good as another.
        drop(self.changed.wait_while(state, idle));
    }

    /// Notes that the batcher is at something, until this is dropped.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.lock().busy_since = Some(Instant::now());
        Busy(self.clone())
    }

    /// How long it is at that.
    pub(super) fn busy_for(&self) -> Duration {
        let since = self.lock().busy_since;
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes nothing any more, and ends what waits.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let clients = mem::take(&mut state.clients);
        drop(state);
        self.changed.notify_all();
        for waiting in clients.into_iter().flat_map(|(_, requests)| requests) {
            waiting.reader.unbegun(End::Cut);
        }
    }
}

/// Something that a batcher is at.
pub(super) struct Busy(Arc<Admission>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().busy_since = None;
    }
}

/// Memory that is taken until this is dropped.
pub(super) struct Reservation {
    admission: Arc<Admission>,
    client: ClientKey,
    bytes: u64,
}

impl Reservation {
    /// Gives back what is more than so much.
    pub(super) fn shrink(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.admission.release(self.client, less);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.admission.release(self.client, self.bytes);
    }
}
