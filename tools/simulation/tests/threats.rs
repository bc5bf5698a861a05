//! `docs/threats.md` names tests that exist, for every threat.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use surety_simulation::strategies::STRATEGIES;

/// Those that strategies play. The page has more.
const THREATS: [&str; 37] = [
    "wrong result",
    "wrong items",
    "copying",
    "lazy auditor",
    "collusion of providers",
    "sybils",
    "crowding of bids",
    "self-challenge for refund",
    "wash tasks",
    "false disputes and delay",
    "client withholding input",
    "provider withholding trace",
    "withheld output in a dispute",
    "provider that serves auditors nothing",
    "two-faced data plane",
    "client denying delivery",
    "equivocation",
    "front-run challenges",
    "commit grinding",
    "keys and stake moved after the seed",
    "crowding of audit places",
    "crowding by work",
    "hostile committees",
    "withholding the entropy block",
    "squatted models",
    "censorship of moves",
    "auditor denial of service after announcing",
    "unbond before dispute",
    "replay on another chain or task",
    "storage spam",
    "weight abuse",
    "griefing by failed assignment",
    "grind",
    "flood",
    "losing on purpose",
    "a lesser fault as a shield",
    "aborting when an audit shows up",
];

fn root() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/threats.md")).unwrap()
}

/// What stands in back quotes and is a test: folder and name.
fn named(text: &str) -> Vec<(String, String)> {
    let quoted = text.split('`').skip(1).step_by(2);
    let pairs = quoted.filter_map(|quoted| quoted.split_once("::"));
    pairs.map(|(folder, name)| (folder.into(), name.into())).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Names of functions that `#[test]`, or tokio's, stands above, other attributes between them or not.
fn tests_in(text: &str) -> Vec<String> {
    let mut tests = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line);
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(rest) = function.strip_prefix("fn ").filter(|_| marked) {
            tests.extend(rest.split(['(', '<']).next().map(String::from));
            marked = false;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            marked = false;
        }
    }
    tests
}

#[test]
fn every_test_that_the_page_names_exists() {
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let named = named(&page());
    assert!(named.len() > 50);
    for (folder, name) in named {
        let tests = known.entry(folder.clone()).or_insert_with(|| {
            let mut files = Vec::new();
            sources(&root().join(&folder), &mut files);
            let texts = files.iter().map(|file| fs::read_to_string(file).unwrap());
            texts.flat_map(|text| tests_in(&text)).collect()
        });
        assert!(tests.contains(&name), "there is no test {name} below {folder}");
    }
}

#[test]
fn every_threat_has_an_answer_with_a_test() {
    let page = page();
    for threat in THREATS {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| **{threat}** |")));
        let row = row.unwrap_or_else(|| panic!("nothing about {threat}"));
        assert!(!named(row).is_empty(), "no test against {threat}");
    }
}

#[test]
fn every_threat_is_played() {
    for threat in THREATS {
        assert!(
            STRATEGIES.iter().any(|strategy| strategy.threat == threat),
            "{threat}"
        );
    }
    for strategy in STRATEGIES {
        assert!(THREATS.contains(&strategy.threat), "{}", strategy.name);
    }
}

#[test]
fn a_function_that_is_no_test_does_not_count() {
    let text = "#[test]\n#[ignore]\nfn one() {\n}\nfn two() {\n}\n// #[test]\nfn three() {}\n#[tokio::test]\nasync fn four() {}";
    assert_eq!(tests_in(text), ["one", "four"]);
}
