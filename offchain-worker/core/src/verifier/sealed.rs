//! What a verifier says of a result, sealed before it can see what the provider says.

use surety_audit_economics::{answer_hash, audit_seal, items_seal};
use surety_types::{
    TaskId,
    trust::{AuditAnswer, AuditState},
};

use crate::{AccountId, BlockNumber, Effect, Found, Hash, Record, TaskSnapshot};

/// What we say of a result, once and for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealedResult {
    pub found: Found,
    /// One for a whole result. Of items those of the two answers, the confirming one first.
    pub salts: [Hash; 2],
    pub seal: Hash,
}

impl SealedResult {
    pub fn new(
        (task, provider, verifier): (TaskId, &AccountId, &AccountId),
        found: Found,
        salts: [Hash; 2],
    ) -> Self {
        let [salt, _] = salts;
        match found {
            Found::Whole(claim) => Self {
                seal: audit_seal(task, provider, verifier, &claim, &salt),
                found: Found::Whole(claim),
                salts: [salt, Hash::zero()],
            },
            Found::Items(items) => {
                let answers = salts.map(|salt| answer_hash(&salt));
                Self {
                    seal: items_seal(task, provider, verifier, &items, &answers),
                    found: Found::Items(items),
                    salts,
                }
            }
        }
    }

    /// Opens it. One over items takes an answer.
    pub fn opening(self, task: TaskId, provider: AccountId, agrees: Option<bool>) -> Option<Effect> {
        let [salt, differing] = self.salts;
        Some(match self.found {
            Found::Whole(claim) => Effect::SubmitAuditReveal {
                task,
                provider,
                claim,
                salt,
            },
            Found::Items(found) => Effect::SubmitItemsReveal {
                task,
                provider,
                found,
                answer: answer(agrees?, salt, differing),
            },
        })
    }

    /// What the journal holds of it.
    pub fn record(&self, task: TaskId, at: BlockNumber, provider: AccountId) -> Record {
        let SealedResult { found, salts, seal } = self.clone();
        match found {
            Found::Whole(claim) => {
                let [salt, _] = salts;
                Record::AuditMade {
                    task,
                    at,
                    provider,
                    claim,
                    salt,
                    seal,
                }
            }
            Found::Items(found) => Record::ItemsAudited {
                task,
                at,
                provider,
                found,
                salts,
                seal,
            },
        }
    }
}

/// One of the two answers of a seal, shown by its salt.
fn answer(agrees: bool, confirming: Hash, differing: Hash) -> AuditAnswer {
    let (salt, other) = if agrees {
        (confirming, differing)
    } else {
        (differing, confirming)
    };
    AuditAnswer {
        agrees,
        salt,
        other: answer_hash(&other),
    }
}

/// Whether the chain waits for `stash` to open a seal.
pub(super) fn owes_opening(seen: &TaskSnapshot, stash: &AccountId) -> bool {
    let mut audits = seen.round.iter().flat_map(|round| round.audits.iter());
    audits.any(|audit| audit.verifier == *stash && matches!(audit.state, AuditState::Sealed(_)))
}
