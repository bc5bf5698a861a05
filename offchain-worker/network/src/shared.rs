//! What a node's handle and its event loop both hold.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{access::AccessGate, counters::Tally, store::BlobStore};

pub(crate) struct Shared {
    pub(crate) store: Arc<BlobStore>,
    pub(crate) tally: Arc<Tally>,
    gate: Mutex<Option<Arc<dyn AccessGate>>>,
}

impl Shared {
    pub(crate) fn new(store: Arc<BlobStore>) -> Self {
        Self {
            store,
            tally: Arc::default(),
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
