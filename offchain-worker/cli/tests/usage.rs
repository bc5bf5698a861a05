//! What a person sees: help texts, and errors with their exit codes, from the real binary.
#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

/// Runs `surety` in an environment of its own.
fn surety(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_surety"))
        .env_clear()
        .env("HOME", home)
        .env("COLUMNS", "110")
        .args(args)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error with the home folder's name, which differs from run to run, left out.
fn stderr(output: &Output, home: &Path) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.replace(&home.display().to_string(), "HOME")
}

/// A port on which nothing listens.
const DEAD: &str = "ws://127.0.0.1:9";

struct Case {
    home: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { home }
    }

    fn with_key(self, mode: u32) -> Self {
        let key = self.home.path().join("key");
        fs::write(&key, "//Alice\n").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// Exit code and standard error.
    fn fails(&self, args: &[&str]) -> String {
        let output = surety(self.home.path(), args);
        assert!(stdout(&output).is_empty(), "{}", stdout(&output));
        let code = output.status.code().unwrap();
        format!("exit {code}\n{}", stderr(&output, self.home.path()))
    }

    fn key(&self) -> String {
        self.home.path().join("key").display().to_string()
    }
}

#[test]
fn help_of_every_command() {
    let case = Case::new();
    for (name, args) in [
        ("help", &["--help"] as &[&str]),
        ("help_provider", &["provider", "--help"]),
        ("help_provider_up", &["provider", "up", "--help"]),
        ("help_verifier_up", &["verifier", "up", "--help"]),
        ("help_validator", &["validator", "--help"]),
        ("help_validator_join", &["validator", "join", "--help"]),
        ("help_stake", &["stake", "--help"]),
        ("help_dispute", &["dispute", "--help"]),
        ("help_task", &["task", "--help"]),
        ("help_task_submit", &["task", "submit", "--help"]),
        ("help_account", &["account", "--help"]),
        ("help_account_bond", &["account", "bond", "--help"]),
        ("help_model", &["model", "--help"]),
        ("help_doctor", &["doctor", "--help"]),
        ("help_serve", &["serve", "--help"]),
    ] {
        let output = surety(case.home.path(), args);
        assert!(output.status.success());
        insta::assert_snapshot!(name, stdout(&output));
    }
}

#[test]
fn no_flag_makes_a_worker_do_wrong() {
    let case = Case::new();
    for flag in ["--cheat=lazy", "--crash-at=after-audit"] {
        let said = case.fails(&["verifier", "up", flag]);
        assert!(
            said.starts_with("exit 2\n") && said.contains("unexpected argument"),
            "{said}"
        );
    }
}

#[test]
fn a_new_account_is_made_once() {
    let case = Case::new();
    let key = case.key();
    let args = ["account", "new", "--json", "--key-file", &key];
    let output = surety(case.home.path(), &args);
    assert!(output.status.success());
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["key_file"], key);
    assert!(made["address"].as_str().unwrap().starts_with('5'));
    let words = fs::read_to_string(&key).unwrap();
    assert!(!stdout(&output).contains(words.trim()));
    insta::assert_snapshot!(case.fails(&["account", "new", "--key-file", &key]));
}

#[test]
fn an_exposed_key_is_refused() {
    let case = Case::new().with_key(0o644);
    insta::assert_snapshot!(case.fails(&["account", "show", "--key-file", &case.key()]));
}

#[test]
fn a_missing_key_says_how_to_make_one() {
    let case = Case::new();
    insta::assert_snapshot!(case.fails(&["account", "withdraw"]));
}

#[test]
fn a_node_that_is_down_is_named() {
    let case = Case::new().with_key(0o600);
    let text = case.fails(&["account", "show", "--key-file", &case.key(), "--rpc", DEAD]);
    assert!(text.starts_with("exit 3\n"), "{text}");
    assert!(text.contains(DEAD), "{text}");
}

#[test]
fn session_keys_are_made_by_a_node_of_this_machine_alone() {
    let case = Case::new().with_key(0o600);
    for command in ["init", "rotate"] {
        let args = [
            "validator",
            command,
            "--key-file",
            &case.key(),
            "--rpc",
            "ws://192.0.2.1:9944",
        ];
        let text = case.fails(&args);
        assert!(
            text.starts_with("exit 2\n") && text.contains("sign in the operator's place"),
            "{text}"
        );
    }
    assert!(
        !case
            .home
            .path()
            .join(".local/share/surety/session-keys.json")
            .exists()
    );
}

#[test]
fn a_validator_is_prepared_before_its_node_runs() {
    let case = Case::new().with_key(0o600);
    let args = [
        "validator",
        "init",
        "--json",
        "--key-file",
        &case.key(),
        "--rpc",
        DEAD,
    ];
    let run = || {
        let output = surety(case.home.path(), &args);
        assert!(output.status.success());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let ready = run();
    assert!(ready["session_keys"].is_null() && ready["next"].as_str().unwrap().contains("start the node"));
    let key = ready["node_key"].as_str().unwrap();
    assert!(
        ready["unit"]
            .as_str()
            .unwrap()
            .contains(&format!("--node-key-file {key}"))
    );
    let text = fs::read_to_string(key).unwrap();
    // Peers know the node by it: it stays.
    assert_eq!(run(), ready);
    assert_eq!(fs::read_to_string(key).unwrap(), text);
}

#[test]
fn a_validator_without_session_keys_is_told_how_to_make_them() {
    let case = Case::new().with_key(0o600);
    let text = case.fails(&["validator", "join", "--key-file", &case.key(), "--rpc", DEAD]);
    assert!(
        text.starts_with("exit 2\n") && text.contains("surety validator init"),
        "{text}"
    );
}

#[test]
fn an_amount_that_is_none_is_refused() {
    let case = Case::new();
    insta::assert_snapshot!(case.fails(&["account", "bond", "--role", "provider", "--amount", "12,5"]));
}

#[test]
fn an_address_that_is_none_is_refused() {
    let case = Case::new();
    insta::assert_snapshot!(case.fails(&["account", "fund", "--to", "5Gnobody", "--amount", "1"]));
}

#[test]
fn an_input_without_lines_is_refused() {
    let case = Case::new();
    let text = case.home.path().join("empty.txt").display().to_string();
    fs::write(&text, "\n \n").unwrap();
    let args = [
        "task", "submit", "--file", &text, "--model", "m", "--cap", "1", "--out", "o",
    ];
    insta::assert_snapshot!(case.fails(&args));
}

#[test]
fn a_redundancy_that_no_task_can_have_is_wrong_usage() {
    let case = Case::new();
    let quote = ["quote", "--file", "f", "--model", "m"];
    let submit = ["task", "submit", "--file", "f", "--model", "m", "--out", "o"];
    for (command, redundancy) in [(&quote[..], "0"), (&submit[..], "0"), (&submit[..], "17")] {
        let said = case.fails(&[command, &["--redundancy", redundancy]].concat());
        assert!(said.starts_with("exit 2\n") && said.contains("1..=16"), "{said}");
    }
}

#[test]
fn an_output_is_asked_for_unless_detached() {
    let case = Case::new();
    let text = case.fails(&["task", "submit", "--file", "f", "--model", "m", "--cap", "1"]);
    assert!(text.starts_with("exit 2\n") && text.contains("--out"), "{text}");
}

#[test]
fn a_request_that_makes_no_sense_is_refused() {
    let case = Case::new();
    let refused = |flags: &[&str]| {
        let args = ["task", "submit", "--prompt", "p", "--model", "m", "--cap", "1"];
        case.fails(&[&args, flags].concat())
    };
    insta::assert_snapshot!("a_temperature_out_of_range", refused(&["--temperature", "10.5"]));
    insta::assert_snapshot!("too_many_tokens", refused(&["--max-tokens", "5000"]));
    insta::assert_snapshot!(
        "flags_of_another_operation",
        refused(&["--file", "f", "--out", "o"])
    );
}

#[test]
fn an_unknown_operation_has_no_price() {
    let case = Case::new().with_key(0o600);
    let key = case.key();
    let args = ["provider", "up", "--key-file", &key, "--price", "translate=1"];
    insta::assert_snapshot!(case.fails(&args));
}

#[test]
fn a_model_that_nobody_knows_is_refused() {
    let case = Case::new();
    insta::assert_snapshot!(case.fails(&["model", "fetch", "gpt-5"]));
}

#[test]
fn a_provider_without_models_is_told_how_to_get_one() {
    let case = Case::new().with_key(0o600);
    insta::assert_snapshot!(case.fails(&["provider", "up", "--key-file", &case.key()]));
}

#[test]
fn a_malformed_address_is_explained() {
    let case = Case::new();
    insta::assert_snapshot!(case.fails(&["provider", "up", "--listen", "localhost"]));
}

#[test]
fn a_damaged_journal_is_refused_and_left_alone() {
    let case = Case::new().with_key(0o600);
    let home = case.home.path().join(".local/share/surety");
    fs::create_dir_all(&home).unwrap();
    let damaged = [7u8; 5000];
    fs::write(home.join("journal.redb"), damaged).unwrap();
    let text = case.fails(&["provider", "up", "--key-file", &case.key()]);
    assert!(text.starts_with("exit 7\n") && text.contains("damaged"), "{text}");
    assert_eq!(fs::read(home.join("journal.redb")).unwrap(), damaged);
}

#[test]
fn doctor_goes_on_after_a_fault_and_says_what_to_do() {
    let case = Case::new();
    let output = surety(case.home.path(), &["doctor", "--rpc", DEAD, "--json"]);
    assert_eq!(output.status.code(), Some(8));
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let grade = |name: &str| {
        let check = checks.as_array().unwrap().iter().find(|c| c["name"] == name);
        check.unwrap()["grade"].as_str().unwrap().to_owned()
    };
    assert_eq!(grade("key file"), "fail");
    assert_eq!(grade("models"), "fail");
    assert_eq!(grade("node"), "fail");
    assert_eq!(grade("network key"), "ok");
    for check in checks.as_array().unwrap().iter().filter(|c| c["grade"] == "fail") {
        let finding = check["finding"].as_str().unwrap();
        assert!(
            finding.contains("surety ") || finding.contains("--rpc"),
            "{finding}"
        );
    }
}

#[test]
fn nearest_lines_need_an_output_that_is_one() {
    let case = Case::new();
    let (text, blob) = (case.home.path().join("t"), case.home.path().join("b"));
    fs::write(&text, "a\nb\n").unwrap();
    fs::write(&blob, "no tensors").unwrap();
    let (text, blob) = (text.display().to_string(), blob.display().to_string());
    let said = case.fails(&["task", "nearest", "--input", &text, "--output", &blob]);
    assert!(said.starts_with("exit 6\n"), "{said}");
}

#[test]
fn a_demonstration_model_is_trained_and_told_about() {
    let case = Case::new();
    let text = case.home.path().join("text");
    let paragraph =
        "The sailor who had seen the whale said nothing of it, and the sea said nothing either.\n\n";
    fs::write(&text, paragraph.repeat(400)).unwrap();
    let out = case.home.path().join("demo");
    let args = |out: &str| {
        let text = text.display().to_string();
        [
            "model",
            "train-demo",
            "--json",
            "--steps",
            "2",
            "--text",
            &text,
            "--out",
            out,
        ]
        .map(str::to_owned)
    };
    let run = |out: &Path| {
        let args = args(&out.display().to_string());
        surety(case.home.path(), &args.each_ref().map(String::as_str))
    };
    let output = run(&out);
    assert!(output.status.success(), "{}", stderr(&output, case.home.path()));
    let told: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(told["path"], out.display().to_string());
    assert_eq!(told["tokens"], 2 * 1024);
    assert!(told["perplexity"].as_f64().unwrap() > 1.0);
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }

    // The home itself holds more than a model.
    let output = run(case.home.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(text.exists());
    assert!(stderr(&output, case.home.path()).contains("choose another folder"));
}

#[test]
fn every_command_has_a_man_page_and_is_completed() {
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("man");
    let written = surety(home.path(), &["man", pages.to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written, home.path()));
    for page in ["surety", "surety-task-submit", "surety-provider-init"] {
        let text = fs::read_to_string(pages.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    let script = stdout(&surety(home.path(), &["completions", "bash"]));
    assert!(script.contains("why-idle") && script.contains("--value-at-risk"));
}

#[test]
fn completions_that_could_not_be_written_are_no_success() {
    let home = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_surety"))
        .env_clear()
        .env("HOME", home.path())
        .args(["completions", "fish"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}
