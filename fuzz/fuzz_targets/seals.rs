//! What is sealed and opened: results, audits, items with their answers, and parts of content.
#![no_main]

use codec::{Decode, Encode};
use libfuzzer_sys::fuzz_target;
use surety_audit_economics::{answer_hashes, audit_seal, items_seal};
use surety_proofs::{commitment, content_hash, parts, PartOpening, Proof, SegmentOpening};
use surety_types::{
    task::ResultClaim,
    trust::{AuditAnswer, ItemLeaves, ItemsFound},
    ContentHash,
};

const MINE: [u8; 32] = [1; 32];
const YOURS: [u8; 32] = [2; 32];

/// A value, if bytes are one that is written again as it was read.
fn value<T: Decode + Encode>(bytes: &mut &[u8]) -> Option<T> {
    let before = *bytes;
    let found = T::decode(bytes).ok()?;
    assert_eq!(found.encode(), before[..before.len() - bytes.len()]);
    Some(found)
}

/// Nobody opens what another has sealed, and an answer cannot be turned round.
fn seals(mut bytes: &[u8]) -> Option<()> {
    let claim: ResultClaim = value(&mut bytes)?;
    let salt: ContentHash = value(&mut bytes)?;
    assert_ne!(commitment(7, &MINE, &claim, &salt), commitment(7, &YOURS, &claim, &salt));
    let sealed = |verifier| audit_seal(7, &MINE, verifier, &claim, &salt);
    assert_ne!(sealed(&MINE), sealed(&YOURS));
    let answer: AuditAnswer = value(&mut bytes)?;
    let found: ItemsFound = value(&mut bytes)?;
    let sealed = |answer: &AuditAnswer| items_seal(7, &MINE, &YOURS, &found, &answer_hashes(answer));
    let turned = AuditAnswer {
        agrees: !answer.agrees,
        ..answer
    };
    // Unless both answers are one: its author has said both.
    let [yes, no] = answer_hashes(&answer);
    assert!(sealed(&answer) != sealed(&turned) || yes == no);
    Some(())
}

/// A part that leads to a blob's hash is that part of it.
fn parts_of(blob: &[u8], mut opened: &[u8]) -> Option<()> {
    let bytes = u32::try_from(blob.len()).ok()?;
    for part in 0..parts(bytes) {
        if let Some(right) = PartOpening::new(blob, part) {
            assert_eq!(right.content(bytes), Some(content_hash(blob)));
        }
    }
    let any: PartOpening = value(&mut opened)?;
    if any.content(bytes) == Some(content_hash(blob)) {
        assert_eq!(Some(any.bytes), PartOpening::new(blob, any.part).map(|right| right.bytes));
    }
    Some(())
}

/// What is shown of traces is refused, and nothing else happens.
fn shown(mut bytes: &[u8]) -> Option<()> {
    let (root, leaf) = (ContentHash::zero(), ContentHash::repeat_byte(1));
    let [index, leaves, row_bytes]: [u32; 3] = value(&mut bytes)?;
    if let Some(proof) = value::<Proof>(&mut &bytes[..]) {
        assert!(!proof.verify(&root, &leaf, index, leaves));
    }
    if let Some(opening) = value::<SegmentOpening>(&mut &bytes[..]) {
        opening.row_digest(row_bytes);
        opening.slice(index..leaves);
    }
    value::<ItemLeaves>(&mut &bytes[..]);
    Some(())
}

fuzz_target!(|bytes: &[u8]| {
    seals(bytes);
    shown(bytes);
    let (blob, opened) = bytes.split_at(bytes.len() / 2);
    parts_of(blob, opened);
});
