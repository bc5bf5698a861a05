//! Verifiers that audit an item each.

use frame_support::{BoundedVec, dispatch::DispatchResult};
use sp_core::H256;
use surety_audit_economics::{answer_hash, items_seal};
use surety_pallet_test_kit::send_opening;
use surety_proofs::{Proof, merkle_root};
use surety_types::trust::{AuditAnswer, ItemFound, ItemLeaves, ItemsFound};

use crate::*;

/// Items of each auditor, where not all are.
pub const OWN_ITEMS: u32 = 1;

/// From now on each auditor of the task has so many items.
pub fn audit_items(items: u32) {
    Rounds::<Test>::mutate(TASK, |round| {
        for member in round.as_mut().unwrap().members.iter_mut() {
            member.audits.items = items;
        }
    });
}

/// What a verifier has found of its item, of a computation that came to `result`.
pub fn items_found(result: u8) -> ItemsFound {
    let leaf = trace_leaves(result)[ITEM_LEAF as usize];
    ItemsFound::truncate_from(vec![ItemFound {
        leaves: merkle_root(core::iter::once(leaf)),
        row: H256::repeat_byte(result),
    }])
}

/// The salts of yes and of no.
fn salts() -> [H256; 2] {
    [H256::repeat_byte(1), H256::repeat_byte(2)]
}

pub fn items_answer(agrees: bool) -> AuditAnswer {
    let [yes, no] = salts();
    let (salt, other) = if agrees { (yes, no) } else { (no, yes) };
    AuditAnswer {
        agrees,
        salt,
        other: answer_hash(&other),
    }
}

pub fn seal_of_items(verifier: AccountId, provider: AccountId, found: &ItemsFound) -> H256 {
    let answers = salts().map(|salt| answer_hash(&salt));
    items_seal(TASK, &provider, &verifier, found, &answers)
}

/// The opening of a verifier's seal over what it found.
pub fn opening_items(
    verifier: AccountId,
    provider: AccountId,
    found: &ItemsFound,
    answer: AuditAnswer,
) -> ResultsCall {
    ResultsCall::reveal_items {
        task: TASK,
        provider,
        verifier,
        found: found.clone(),
        answer,
    }
}

/// Somebody opens the verifier's seal over its item, without a signature.
pub fn reveal_items(
    verifier: AccountId,
    provider: AccountId,
    found: &ItemsFound,
    agrees: bool,
) -> DispatchResult {
    send_opening(opening_items(verifier, provider, found, items_answer(agrees)))
}

/// What shows an item of a trace of this result.
pub fn item_shown(result: u8) -> ItemLeaves {
    let leaves = trace_leaves(result);
    let proof = Proof::new(&leaves, ITEM_LEAF).unwrap();
    ItemLeaves {
        leaves: BoundedVec::truncate_from(vec![leaves[ITEM_LEAF as usize]]),
        siblings: BoundedVec::truncate_from(proof.0.to_vec()),
    }
}

/// A stranger says that a verifier which confirmed this has not computed it.
pub fn refute(
    (verifier, provider): (AccountId, AccountId),
    found: ItemsFound,
    place: u32,
    shown: ItemLeaves,
) -> DispatchResult {
    send_as(
        FIRST_STRANGER,
        ResultsCall::refute_audit {
            task: TASK,
            provider,
            verifier,
            opened: (found, items_answer(true)),
            place,
            shown,
        },
    )
}
