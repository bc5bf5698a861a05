//! What is spent, whatever becomes of the gateway.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use surety_gateway::{CallState, Finish, KeyTerms, Ledger, Receipt, SignedFor};

const TERMS: KeyTerms = KeyTerms {
    cap: 10_000,
    requests_per_minute: 100,
    tokens_per_minute: 100_000,
};

/// Is killed by the test below, in a process of its own.
#[test]
fn dies_with_an_open_call() {
    let Ok(path) = std::env::var("SURETY_GATEWAY_DIES_AT") else {
        return;
    };
    let ledger = Ledger::open(path.as_ref()).unwrap();
    let (key, _) = ledger.create_key("k", TERMS).unwrap();
    let done = ledger.open_call(&key.id, "talker", 100).unwrap();
    ledger.close_call(done.number, 40, Vec::new()).unwrap();
    ledger.open_call(&key.id, "talker", 70).unwrap();
    // SIGKILL: nothing of this process runs after it.
    let id = std::process::id().to_string();
    std::process::Command::new("kill")
        .args(["-9", &id])
        .status()
        .unwrap();
}

/// The ledger of a process that was killed.
fn killed(home: &tempfile::TempDir) -> Ledger {
    let path = home.path().join("ledger");
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "dies_with_an_open_call"])
        .env("SURETY_GATEWAY_DIES_AT", &path)
        .status()
        .unwrap();
    assert_eq!(status.code(), None, "it was not killed");
    Ledger::open(&path).unwrap()
}

/// What stands in the journal of channels under it.
fn journal_id(ledger: &Ledger, call: u64) -> u64 {
    ledger.call(call).unwrap().journal_id.unwrap()
}

fn receipt() -> Receipt {
    Receipt {
        provider: "provider".into(),
        channel: 1,
        nonce: 2,
        output_hash: "aa".into(),
        trace_root: "bb".into(),
        units: 9,
        price: 9,
        finish: Finish::Cut,
        signed: b"signed".to_vec(),
    }
}

fn spent_and_reserved(ledger: &Ledger) -> (u128, u128) {
    let key = ledger.keys().unwrap().remove(0);
    (key.spent, key.reserved)
}

#[test]
fn killed_it_forgets_nothing_that_was_spent_and_keeps_nothing_reserved() {
    let home = tempfile::tempdir().unwrap();
    let ledger = killed(&home);
    // Whoever looks at keys meanwhile settles nothing.
    assert_eq!(spent_and_reserved(&ledger), (40, 70));
    assert_eq!(ledger.call(1).unwrap().state, CallState::Open);
    // Nobody knows what was signed.
    assert_eq!(ledger.settle_interrupted(None).unwrap(), 1);
    assert_eq!(spent_and_reserved(&ledger), (110, 0));
    assert_eq!(ledger.call(0).unwrap().spent, 40);
    assert_eq!(ledger.call(1).unwrap().state, CallState::Interrupted);
    // Once.
    assert_eq!(ledger.settle_interrupted(Some(BTreeMap::new())).unwrap(), 0);
    assert_eq!(spent_and_reserved(&ledger), (110, 0));
}

#[test]
fn killed_it_counts_what_was_signed_for_a_call_and_keeps_its_receipts() {
    let receipts = vec![receipt()];
    let signed = |spent| SignedFor {
        receipts: receipts.clone(),
        spent,
    };
    for (signed_for, spent) in [
        // The first call was settled before.
        (vec![(0, signed(40)), (1, signed(25))], 25),
        (Vec::new(), 0),
        // No more than was reserved for it.
        (vec![(1, signed(71))], 70),
    ] {
        let home = tempfile::tempdir().unwrap();
        let ledger = killed(&home);
        let has_receipts = !signed_for.is_empty();
        let by_id = signed_for
            .into_iter()
            .map(|(call, signed)| (journal_id(&ledger, call), signed));
        ledger.settle_interrupted(Some(by_id.collect())).unwrap();
        assert_eq!(spent_and_reserved(&ledger), (40 + spent, 0));
        let call = ledger.call(1).unwrap();
        assert_eq!((call.state, call.spent), (CallState::Interrupted, spent));
        assert_eq!(call.receipts == receipts, has_receipts);
        assert!(ledger.call(0).unwrap().receipts.is_empty());
    }
}

#[test]
fn what_was_signed_for_calls_of_a_ledger_that_is_lost_is_nobody_elses_in_a_copy_of_it() {
    let home = tempfile::tempdir().unwrap();
    let [lost, copy] = ["lost", "copy"].map(|name| home.path().join(name));
    let ledger = Ledger::open(&lost).unwrap();
    let (key, _) = ledger.create_key("k", TERMS).unwrap();
    let before = ledger.open_call(&key.id, "talker", 100).unwrap();
    drop(ledger);
    std::fs::copy(&lost, &copy).unwrap();
    let ledger = Ledger::open(&lost).unwrap();
    let after = ledger.open_call(&key.id, "talker", 100).unwrap();
    let ledger = Ledger::open(&copy).unwrap();
    let other = ledger.open_call(&key.id, "talker", 100).unwrap();
    assert_eq!(other.number, after.number);
    let signed = SignedFor {
        receipts: vec![receipt()],
        spent: 60,
    };
    let signed = [before, after].map(|call| (call.journal_id, signed.clone()));
    assert_eq!(ledger.settle_interrupted(Some(signed.into())).unwrap(), 2);
    // What was open when it was copied is the same call.
    let spent = [before, other].map(|call| {
        let call = ledger.call(call.number).unwrap();
        (call.spent, call.receipts.len())
    });
    assert_eq!(spent, [(60, 1), (0, 0)]);
}

#[test]
fn no_more_is_spent_than_was_reserved_whatever_is_claimed() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&home.path().join("ledger")).unwrap();
    let (key, _) = ledger.create_key("k", TERMS).unwrap();
    let call = ledger.open_call(&key.id, "talker", 100).unwrap();
    ledger.reserve_more(call.number, 50).unwrap();
    ledger.close_call(call.number, u128::MAX, Vec::new()).unwrap();
    assert_eq!(ledger.call(call.number).unwrap().spent, 150);
    let key = ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (150, 0));
    // And the key can go on.
    assert!(ledger.open_call(&key.id, "talker", TERMS.cap - 150).is_ok());
}
