//! What providers sign: statements, as auditors get them from peers and report them to the chain.
#![no_main]

use codec::{Decode, Encode, MaxEncodedLen};
use libfuzzer_sys::fuzz_target;
use surety_proofs::{CommitStatement, SignedStatement};
use surety_types::ContentHash;

type Statement = CommitStatement<[u8; 32]>;

/// The statement with one byte of one of its parts changed.
fn changed(statement: &Statement, place: usize) -> Statement {
    let mut bytes = statement.encode();
    let place = place % bytes.len();
    bytes[place] ^= 1;
    Statement::decode(&mut &bytes[..]).expect("all of its parts have a fixed length")
}

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let Ok(signed) = SignedStatement::<[u8; 32]>::decode(&mut rest) else {
        assert!(bytes.len() < SignedStatement::<[u8; 32]>::max_encoded_len(), "they are all as long");
        return;
    };
    assert_eq!(signed.encode(), bytes[..bytes.len() - rest.len()]);
    let (genesis, other) = (ContentHash::zero(), ContentHash::repeat_byte(1));
    let message = signed.statement.message(&genesis);
    assert_ne!(message, signed.statement.message(&other), "good for two chains");
    let place = rest.first().copied().unwrap_or_default();
    let changed = changed(&signed.statement, place.into());
    assert_ne!(message, changed.message(&genesis), "two statements with one signature");
});
