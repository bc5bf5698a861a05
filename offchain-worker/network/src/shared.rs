//! What a node's handle and its event loop both hold.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{access::AccessGate, call::desk::Desk, counters::Tally, limits::Limits, store::BlobStore};

pub(crate) struct Shared {
    pub(crate) store: Arc<BlobStore>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) desk: Desk,
    gate: Mutex<Option<Arc<dyn AccessGate>>>,
}

impl Shared {
    pub(crate) fn new(store: Arc<BlobStore>, limits: &Limits) -> Self {
        let tally: Arc<Tally> = Arc::default();
        Self {
            store,
            desk: Desk::new(limits, tally.clone()),
            tally,
            gate: Mutex::default(),
        }
    }

    pub(crate) fn gate(&self) -> Option<Arc<dyn AccessGate>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_gate(&self, gate: Arc<dyn AccessGate>) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate);
    }
}
