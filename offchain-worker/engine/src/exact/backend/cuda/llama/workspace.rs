//! What a decoder's passes are made in.

use surety_cuda::{Floats, GpuBackend, Heads, Numbers, Rows};
use surety_exact::Precision;

use super::super::shown::Shown;

/// Arrays that the next pass uses again.
pub(super) struct Workspace<M: GpuBackend> {
    pub(super) state: Option<Floats<M>>,
    pub(super) normed: Option<Floats<M>>,
    pub(super) sum: Option<Floats<M>>,
    pub(super) query: Option<Floats<M>>,
    pub(super) key: Option<Floats<M>>,
    pub(super) value: Option<Floats<M>>,
    pub(super) heads: [Heads<M>; 3],
    pub(super) attended: Option<Floats<M>>,
    pub(super) gate: Option<Floats<M>>,
    pub(super) up: Option<Floats<M>>,
    /// States that are needed, and the numbers of their rows.
    pub(super) last: Option<Floats<M>>,
    pub(super) needed: Option<Numbers<M>>,
    /// The same of those behind which tokens are chosen.
    pub(super) chooses_of: Option<Floats<M>>,
    pub(super) choosing: Option<Numbers<M>>,
    pub(super) logits: Option<Floats<M>>,
    pub(super) chosen: Option<Floats<M>>,
    pub(super) rows: Rows<M>,
    pub(super) shown: Shown<M>,
}

impl<M: GpuBackend> Workspace<M> {
    /// With nothing yet, for rows of a precision.
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            state: None,
            normed: None,
            sum: None,
            query: None,
            key: None,
            value: None,
            heads: Default::default(),
            attended: None,
            gate: None,
            up: None,
            last: None,
            needed: None,
            chooses_of: None,
            choosing: None,
            logits: None,
            chosen: None,
            rows: Rows::new(precision),
            shown: Shown::default(),
        }
    }
}
