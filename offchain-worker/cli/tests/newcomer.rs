//! The mistakes that newcomers make first, each of which ends in one line that says what to do.
//!
//! Those for which a chain has to answer, an account without money and a cap that pays nobody, are with the
//! command that finds them: `src/commands/task/submit.rs`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use surety_journal::Journal;

const EXACT: &str = "all-MiniLM-L6-v2-exact";

struct Newcomer {
    home: tempfile::TempDir,
}

impl Newcomer {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home }
    }

    fn with_key(self) -> Self {
        let key = self.surety_home().join("account.key");
        fs::write(&key, "//Alice\n").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    fn surety_home(&self) -> PathBuf {
        let home = self.home.path().join(".local/share/surety");
        fs::create_dir_all(&home).unwrap();
        home
    }

    /// Exit code, and the only line that is said.
    fn told(&self, command: &str) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_surety"))
            .env_clear()
            .env("HOME", self.home.path())
            .args(command.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.stdout.is_empty(), "{command}: {:?}", output.stdout);
        assert!(
            said.starts_with("error: ") && said.ends_with('\n'),
            "{command}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{command}: {said}");
        (output.status.code().unwrap(), said)
    }
}

const SUBMIT: &str = "task submit --model surety-demo-exact --prompt hi --cap 1";

#[test]
fn without_a_key_it_is_said_how_to_make_one() {
    let (code, said) = Newcomer::new().told(SUBMIT);
    assert_eq!(code, 7, "{said}");
    assert!(said.contains("surety account new"), "{said}");
}

#[test]
fn without_a_node_it_is_said_which_was_asked_and_how_to_name_another() {
    let command = format!("{SUBMIT} --rpc ws://127.0.0.1:9");
    let (code, said) = Newcomer::new().with_key().told(&command);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("ws://127.0.0.1:9") && said.contains("--rpc"),
        "{said}"
    );
}

#[test]
fn without_its_model_a_provider_is_told_the_command_that_gets_that_very_one() {
    let newcomer = Newcomer::new().with_key();
    for command in [
        "provider up".to_owned(),
        format!("provider up --model {EXACT}"),
        format!("verifier up --model {EXACT}"),
    ] {
        let (code, said) = newcomer.told(&command);
        assert!(matches!(code, 2 | 7), "{said}");
        assert!(said.contains(&format!("surety model fetch {EXACT}")), "{said}");
    }
}

#[test]
fn a_home_that_another_worker_uses_is_said_to_be_in_use() {
    let newcomer = Newcomer::new().with_key();
    let _other = Journal::open(&newcomer.surety_home().join("journal.redb")).unwrap();
    let (code, said) = newcomer.told("verifier up");
    assert_eq!(code, 7, "{said}");
    assert!(said.contains("in use") && said.contains("--home"), "{said}");
}

#[test]
fn what_is_likely_to_be_mistyped_is_told_with_what_to_write_instead() {
    let newcomer = Newcomer::new().with_key();
    let home = newcomer.surety_home();
    fs::create_dir(home.join("empty")).unwrap();
    let empty = home.join("empty").display().to_string();
    for (command, code, parts) in [
        ("account show --rpc http://localhost:9944", 2, &["ws://"][..]),
        ("provider up --listen 4001", 2, &["4001", "IP:PORT"]),
        (
            "model fetch sentence-transformers/all-MiniLM-L6-v2",
            2,
            &["surety model fetch hub:sentence-transformers/all-MiniLM-L6-v2"],
        ),
        (
            &format!("model convert {empty} --name x"),
            7,
            &[&empty, "config.json", "model.safetensors"],
        ),
        (
            "model convert nothing-here --name x",
            7,
            &["nothing-here", "tokenizer.json"],
        ),
        (
            &format!("model register {EXACT}"),
            7,
            &[EXACT, &format!("surety model fetch {EXACT}")],
        ),
        (
            &format!("account show --key-file {empty}"),
            7,
            &[&empty, "--key-file"],
        ),
        (
            &format!("{SUBMIT} --out {empty}/nowhere/out.bin"),
            7,
            &["nowhere/out.bin"],
        ),
        (&format!("{SUBMIT} --out {empty}"), 2, &[&empty, "name a file"]),
    ] {
        let (found, said) = newcomer.told(command);
        assert_eq!(found, code, "{command}: {said}");
        for part in parts {
            assert!(said.contains(part), "{command}: {part}: {said}");
        }
    }
}

#[test]
fn a_key_that_is_there_is_kept_when_the_faucet_is_asked_again() {
    let newcomer = Newcomer::new().with_key();
    let key = newcomer.surety_home().join("account.key");
    // Of nobody, and a node of nobody: it gets as far as that.
    let asked = Command::new(env!("CARGO_BIN_EXE_surety"))
        .env_clear()
        .env("HOME", newcomer.home.path())
        .args([
            "account",
            "new",
            "--faucet",
            "http://127.0.0.1:9",
            "--rpc",
            "ws://127.0.0.1:9",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8(asked.stderr).unwrap();
    assert_eq!(asked.status.code(), Some(3), "{said}");
    assert!(said.contains("stays as it is"), "{said}");
    assert_eq!(fs::read_to_string(key).unwrap(), "//Alice\n");
}

#[test]
fn a_home_that_is_made_here_nobody_else_looks_into() {
    for (command, says) in [
        ("account new", "twelve words"),
        (
            "model fetch hub:a/b --hub-url http://127.0.0.1:9",
            "a mirror of the hub with --hub-url",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_surety"))
            .env_clear()
            .env("HOME", home.path())
            .args(command.split(' '))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says), "{command}: {said}");
        let made = home.path().join(".local/share/surety");
        let mode = made.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{command}");
    }
}
