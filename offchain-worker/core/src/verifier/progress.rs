//! How far audits are.

use super::audit_task::{AuditTask, Check, Draw};
use crate::{AccountId, Hash};

/// How far an audit is, for people to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditProgress {
    /// We have not drawn ourselves yet.
    Undrawn,
    /// It is not ours to do.
    NotOurs,
    /// It is ours; there is no result yet.
    Drawn,
    /// There is a result; the chain does not show its seal yet.
    Sealed,
    /// The chain shows our audit.
    Announced,
}

impl AuditProgress {
    /// In one word, as metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undrawn => "undrawn",
            Self::NotOurs => "not_ours",
            Self::Drawn => "drawn",
            Self::Sealed => "sealed",
            Self::Announced => "announced",
        }
    }
}

pub(super) fn progress(entry: &AuditTask, key: Hash, check: &Check, stash: &AccountId) -> AuditProgress {
    let shown = entry
        .provider(key)
        .and_then(|provider| entry.audit_shown(&provider, stash).cloned());
    match (shown, &check.sealed, &check.draw) {
        (Some(_), _, _) => AuditProgress::Announced,
        (None, Some(_), _) => AuditProgress::Sealed,
        (None, None, Draw::Ours(_)) => AuditProgress::Drawn,
        (None, None, Draw::NotOurs) => AuditProgress::NotOurs,
        (None, None, Draw::Unknown) => AuditProgress::Undrawn,
    }
}
