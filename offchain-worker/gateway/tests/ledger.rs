//! What is spent, whatever becomes of the gateway.

#![allow(clippy::unwrap_used, missing_docs)]

use surety_gateway::{KeyTerms, Ledger};

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
    ledger.close_call(done, 40, Vec::new()).unwrap();
    ledger.open_call(&key.id, "talker", 70).unwrap();
    // SIGKILL: nothing of this process runs after it.
    let id = std::process::id().to_string();
    std::process::Command::new("kill")
        .args(["-9", &id])
        .status()
        .unwrap();
}

#[test]
fn killed_it_forgets_nothing_that_was_spent_and_keeps_nothing_reserved() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger");
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "dies_with_an_open_call"])
        .env("SURETY_GATEWAY_DIES_AT", &path)
        .status()
        .unwrap();
    assert_eq!(status.code(), None, "it was not killed");
    let ledger = Ledger::open(&path).unwrap();
    let key = ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (110, 0));
    assert_eq!(ledger.call(0).unwrap().spent, 40);
    assert_eq!(
        ledger.call(1).unwrap().state,
        surety_gateway::CallState::Interrupted
    );
}

#[test]
fn no_more_is_spent_than_was_reserved_whatever_is_claimed() {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&home.path().join("ledger")).unwrap();
    let (key, _) = ledger.create_key("k", TERMS).unwrap();
    let call = ledger.open_call(&key.id, "talker", 100).unwrap();
    ledger.reserve_more(call, 50).unwrap();
    ledger.close_call(call, u128::MAX, Vec::new()).unwrap();
    assert_eq!(ledger.call(call).unwrap().spent, 150);
    let key = ledger.keys().unwrap().remove(0);
    assert_eq!((key.spent, key.reserved), (150, 0));
    // And the key can go on.
    assert!(ledger.open_call(&key.id, "talker", TERMS.cap - 150).is_ok());
}
