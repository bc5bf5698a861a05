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
