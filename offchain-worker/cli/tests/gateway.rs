//! A gateway's keys, and what keeps it from starting, from the real binary.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    process::{Child, Command, Output},
    time::{Duration, Instant},
};

use serde_json::Value;

fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_surety"));
    command.env_clear().env("HOME", home).args(["gateway"]).args(args);
    command.args(["--home", home.join("home").to_str().unwrap()]);
    command
}

fn surety(home: &Path, args: &[&str]) -> Output {
    command(home, args).output().unwrap()
}

/// A gateway that looks for its node, and is ended with the test.
struct Running(Child);

impl Running {
    fn new(home: &Path) -> Self {
        let dead = "ws://127.0.0.1:9";
        let args = [
            "up",
            "--http",
            "127.0.0.1:0",
            "--without-key",
            "1 SURE",
            "--rpc",
            dead,
        ];
        let mut running = Self(command(home, &args).spawn().unwrap());
        let (socket, begun) = (home.join("home/gateway.sock"), Instant::now());
        // One that was killed has left its own behind.
        while UnixStream::connect(&socket).is_err() {
            assert_eq!(running.0.try_wait().unwrap(), None);
            assert!(begun.elapsed() < Duration::from_secs(30), "it takes too long");
            std::thread::yield_now();
        }
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What signs for the gateway.
fn write_key(home: &Path) {
    fs::create_dir_all(home.join("home")).unwrap();
    let key = home.join("home/account.key");
    fs::write(&key, "//Alice\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(home: &Path, args: &[&str]) -> (i32, String) {
    let output = surety(home, args);
    assert!(output.stdout.is_empty(), "{output:?}");
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_key_is_shown_once_and_its_secret_lies_nowhere() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let output = surety(
        home,
        &["keys", "create", "--cap", "5 SURE", "--label", "notebook"],
    );
    assert!(output.status.success(), "{output:?}");
    let secret = String::from_utf8(output.stdout).unwrap();
    let secret = secret.trim();
    assert!(
        secret.starts_with("sk-surety-") && secret.lines().count() == 1,
        "{secret}"
    );
    assert!(!String::from_utf8(output.stderr).unwrap().contains(secret));
    let ledger = fs::read(home.join("home/gateway.redb")).unwrap();
    let random = secret.strip_prefix("sk-surety-").unwrap().as_bytes();
    assert!(!ledger.windows(random.len()).any(|window| window == random));
    let mode = fs::metadata(home.join("home")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);

    let other = json(&surety(home, &["keys", "create", "--cap", "7 planck", "--json"]));
    assert!(other["key"].as_str().unwrap().starts_with("sk-surety-"));
    let listed = json(&surety(home, &["keys", "list", "--json"]));
    let caps: Vec<_> = listed.as_array().unwrap().iter().map(|key| &key["cap"]).collect();
    assert!(
        caps.contains(&&Value::from("7")) && caps.contains(&&Value::from("5000000000000")),
        "{listed}"
    );
    assert!(!listed.to_string().contains("sk-surety-"));
}

#[test]
fn a_revoked_key_is_listed_as_such_and_an_unknown_one_is_said_to_be_none() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let made = json(&surety(home, &["keys", "create", "--cap", "1", "--json"]));
    let id = made["id"].as_str().unwrap();
    assert_eq!(
        json(&surety(home, &["keys", "revoke", id, "--json"]))["revoked"],
        id
    );
    let listed = json(&surety(home, &["keys", "list", "--json"]));
    assert_eq!(
        (&listed[0]["id"], &listed[0]["revoked"]),
        (&made["id"], &Value::Bool(true))
    );
    let (code, said) = refused(home, &["keys", "revoke", "nobody"]);
    assert!(code == 2 && said.contains("surety gateway keys list"), "{said}");
    let (code, _) = refused(home, &["keys", "create", "--cap", "much"]);
    assert_eq!(code, 2);
}

#[test]
fn it_does_not_start_without_keys_nor_for_others_without_them() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (code, said) = refused(home, &["up"]);
    assert!(code == 7 && said.contains("surety account new"), "{said}");
    write_key(home);
    let (code, said) = refused(home, &["up"]);
    assert!(code == 2 && said.contains("surety gateway keys create"), "{said}");
    let (code, said) = refused(home, &["up", "--http", "0.0.0.0:0", "--without-key", "1 SURE"]);
    assert!(
        code == 2 && said.contains("can be reached from other machines"),
        "{said}"
    );
    // A key that was revoked opens nothing.
    let made = json(&surety(home, &["keys", "create", "--cap", "1", "--json"]));
    surety(home, &["keys", "revoke", made["id"].as_str().unwrap()]);
    let (code, said) = refused(home, &["up"]);
    assert!(code == 2 && said.contains("there is no API key yet"), "{said}");
}

#[test]
fn keys_are_made_and_revoked_while_it_runs_also_after_it_was_killed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write_key(home);
    for round in 1..=2 {
        let running = Running::new(home);
        let socket = fs::metadata(home.join("home/gateway.sock")).unwrap();
        assert_eq!(socket.permissions().mode() & 0o777, 0o600);
        let made = json(&surety(home, &["keys", "create", "--cap", "1", "--json"]));
        assert!(made["key"].as_str().unwrap().starts_with("sk-surety-"));
        surety(home, &["keys", "revoke", made["id"].as_str().unwrap()]);
        let (code, said) = refused(home, &["keys", "revoke", "nobody"]);
        assert!(code == 2 && said.contains("no key of the id"), "{said}");
        // Two gateways do not share a ledger.
        let (code, said) = refused(home, &["up"]);
        assert!(
            code == 7 && said.contains("another program has it open"),
            "{said}"
        );
        drop(running);
        let listed = json(&surety(home, &["keys", "list", "--json"]));
        let revoked = listed
            .as_array()
            .unwrap()
            .iter()
            .filter(|key| key["revoked"] == true);
        assert_eq!(revoked.count(), round, "{listed}");
    }
}

#[test]
fn a_ledger_that_is_damaged_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::create_dir(home.join("home")).unwrap();
    let damaged = [7u8; 5000];
    fs::write(home.join("home/gateway.redb"), damaged).unwrap();
    let (code, said) = refused(home, &["keys", "list"]);
    assert_eq!(code, 7, "{said}");
    assert_eq!(fs::read(home.join("home/gateway.redb")).unwrap(), damaged);
}
