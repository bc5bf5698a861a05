#![allow(clippy::unwrap_used)]
use std::{collections::BTreeMap, fs};

use surety_types::model::Operation;

use super::{
    environment::{ENVIRONMENT, setting},
    *,
};
use crate::SURE;

fn flags(home: &Path) -> RawConfig {
    RawConfig {
        home: Some(home.to_owned()),
        ..RawConfig::default()
    }
}

fn invalid(raw: RawConfig) -> String {
    let home = Some(PathBuf::from("/home"));
    validate(raw, home).unwrap_err().to_string()
}

#[test]
fn defaults_are_complete() {
    let dir = tempfile::tempdir().unwrap();
    let config = load(None, flags(dir.path())).unwrap();
    assert_eq!(config.rpc, ["ws://127.0.0.1:9944"]);
    assert_eq!(config.key_file, dir.path().join("account.key"));
    assert_eq!(
        config.provider.data.listen,
        ["/ip4/0.0.0.0/udp/4001/quic-v1", "/ip4/0.0.0.0/tcp/4001"]
    );
}

#[test]
fn flags_win_over_the_file_in_the_home_folder() {
    let dir = tempfile::tempdir().unwrap();
    let text = "rpc = \"ws://file:1\"\n[provider]\nprice_per_unit = \"2 SURE\"\nthreads = 3\n";
    fs::write(dir.path().join("config.toml"), text).unwrap();
    let mut raw = flags(dir.path());
    raw.provider.threads = Some(4);
    let config = load(None, raw).unwrap();
    assert_eq!(config.rpc, ["ws://file:1"]);
    assert_eq!(config.provider.work.threads, 4);
    assert_eq!(
        config.provider.prices.per_unit("m", Operation::Embed),
        Amount(2 * SURE)
    );
}

#[test]
fn nodes_are_a_list_or_a_text_with_commas() {
    let dir = tempfile::tempdir().unwrap();
    for written in ["\"ws://a:1, ws://b:2\"", "[\"ws://a:1\", \"ws://b:2\"]"] {
        fs::write(dir.path().join("config.toml"), format!("rpc = {written}\n")).unwrap();
        let config = load(None, flags(dir.path())).unwrap();
        assert_eq!(config.rpc, ["ws://a:1", "ws://b:2"], "{written}");
    }
    let many = vec!["ws://a:1".to_owned(); 9];
    for rpc in [OneOrMore::More(many), OneOrMore::One(" ,".into())] {
        let rpc = Some(rpc);
        let text = invalid(RawConfig {
            rpc,
            ..RawConfig::default()
        });
        assert!(text.contains("between 1 and 8 nodes"), "{text}");
    }
}

#[test]
fn metrics_are_off_unless_an_address_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let config = load(None, flags(dir.path())).unwrap();
    assert_eq!(config.provider.work.metrics_listen, None);
    assert_eq!(config.provider.work.tip_max, Amount(SURE / 100));
    let mut raw = flags(dir.path());
    raw.verifier.metrics_listen = Some("127.0.0.1:9616".into());
    let config = load(None, raw.clone()).unwrap();
    assert_eq!(
        config.verifier.metrics_listen,
        Some(([127, 0, 0, 1], 9616).into())
    );
    raw.verifier.metrics_listen = Some("9616".into());
    let text = load(None, raw).unwrap_err().to_string();
    assert!(
        text.contains("verifier.metrics_listen") && text.contains("127.0.0.1:9616"),
        "{text}"
    );
}

#[test]
fn an_unknown_setting_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("config.toml"), "[provider]\nthread = 3\n").unwrap();
    let text = load(None, flags(dir.path())).unwrap_err().to_string();
    assert!(text.contains("thread") && text.contains("config.toml"), "{text}");
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let error = load(Some(Path::new("/nonexistent.toml")), flags(dir.path())).unwrap_err();
    insta::assert_snapshot!(error, @"no configuration file at /nonexistent.toml");
}

#[test]
fn every_problem_is_named_at_once() {
    let raw = RawConfig {
        rpc: Some(OneOrMore::One("http://127.0.0.1:9944".into())),
        faucet: Some("faucet.example".into()),
        provider: RawProvider {
            stash: Some("5Gnobody".into()),
            listen: Some(vec!["/ip4/0.0.0.0/udp/4001".into()]),
            price_per_unit: Some(Amount(0)),
            threads: Some(0),
            device: Some("gpu".into()),
            benchmark: Some("yes".into()),
            region: Some("de".into()),
            ..RawProvider::default()
        },
        storage: RawStorage {
            blob_mib_max: Some(64),
            total_mib_max: Some(64),
        },
        ..RawConfig::default()
    };
    insta::assert_snapshot!(invalid(raw), @r#"
    invalid configuration:
      rpc: "http://127.0.0.1:9944" must start with ws:// or wss://, such as ws://127.0.0.1:9944
      faucet: "faucet.example" must start with http:// or https://
      provider.threads: must be between 1 and 1024
      provider.device: "gpu" is no device: say auto, cpu, or cuda:N for one and cuda:N,M for several, each once, such as cuda:0,1
      provider.stash: "5Gnobody" is not an address (SS58, such as 5Grwva…)
      provider.price_per_unit: must be more than nothing
      provider.benchmark: "yes": say auto, on or off
      provider.region: "de": write the two capital letters of a country, such as DE (ISO 3166-1 alpha-2)
      provider.listen: cannot listen on "/ip4/0.0.0.0/udp/4001": expected /ip4/ADDRESS/udp/PORT/quic-v1 or /ip4/ADDRESS/tcp/PORT (or ip6); or IP:PORT for both, such as 127.0.0.1:4001
      storage.total_mib_max: must be at least twice storage.blob_mib_max, for one input and one output
    "#);
}

#[test]
fn without_a_home_nothing_can_be_kept() {
    let text = validate(RawConfig::default(), None).unwrap_err().to_string();
    assert!(text.contains("--home"), "{text}");
}

#[test]
fn an_address_with_a_port_stands_for_quic_and_tcp() {
    assert_eq!(
        expand_address("[::1]:7").unwrap(),
        ["/ip6/::1/udp/7/quic-v1", "/ip6/::1/tcp/7"]
    );
    assert_eq!(expand_address("/ip4/1.2.3.4/tcp/5").unwrap().len(), 1);
    assert!(expand_address("localhost:7").is_err());
}

#[test]
fn every_variable_stands_for_a_setting_and_every_setting_has_one() {
    let all = RawConfig {
        home: Some("h".into()),
        rpc: Some(OneOrMore::One("r".into())),
        key_file: Some("k".into()),
        log: Some("l".into()),
        faucet: Some("f".into()),
        provider: RawProvider {
            stash: Some("s".into()),
            listen: Some(Vec::new()),
            external: Some(Vec::new()),
            models: Some(Vec::new()),
            price_per_unit: Some(Amount(1)),
            prices: BTreeMap::from([("embed".into(), Amount(1))]),
            threads: Some(1),
            device: Some("cpu".into()),
            device_memory_mib_max: Some(1),
            device_graphs: Some(true),
            device_serves: Some(true),
            units_per_second: Some(1),
            tasks_max: Some(1),
            benchmark: Some("off".into()),
            region: Some("DE".into()),
            metrics_listen: Some("m".into()),
            tip_max: Some(Amount(1)),
        },
        calls: RawCalls {
            enabled: Some(true),
            open_max: Some(1),
            chunk_tokens_max: Some(1),
            memory_mib_max: Some(1),
            batch_blocks: Some(1),
            redeem_min: Some(Amount(1)),
        },
        verifier: RawWork {
            stash: Some("s".into()),
            models: Some(Vec::new()),
            threads: Some(1),
            device: Some("cpu".into()),
            device_memory_mib_max: Some(1),
            device_graphs: Some(true),
            metrics_listen: Some("m".into()),
            tip_max: Some(Amount(1)),
        },
        task: RawTask {
            listen: Some(Vec::new()),
            external: Some(Vec::new()),
        },
        storage: RawStorage {
            blob_mib_max: Some(1),
            total_mib_max: Some(1),
        },
    };
    let mut names: Vec<String> = Vec::new();
    for (name, value) in serde_json::to_value(all).unwrap().as_object().unwrap() {
        match value.as_object() {
            Some(section) => names.extend(section.keys().map(|key| format!("{name}.{key}"))),
            None => names.push(name.clone()),
        }
    }
    let mut variables: Vec<String> = ENVIRONMENT.iter().map(|key| setting(key)).collect();
    names.sort();
    variables.sort();
    assert_eq!(names, variables);
}

#[test]
fn the_example_in_the_readme_is_complete_and_valid() {
    let readme = include_str!("../../README.md");
    let example = readme
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let raw: RawConfig = Figment::from(Toml::string(example)).extract().unwrap();
    let written = serde_json::to_value(&raw).unwrap();
    for variable in ENVIRONMENT {
        let path = format!("/{}", setting(variable).replace('.', "/"));
        assert!(written.pointer(&path).is_some(), "{variable} is missing");
    }
    let dir = tempfile::tempdir().unwrap();
    validate(raw, Some(dir.path().to_owned())).unwrap();
}

#[test]
fn a_variable_in_capitals_names_its_section() {
    assert_eq!(setting("PROVIDER_LISTEN"), "provider.listen");
    assert_eq!(setting("STORAGE_BLOB_MIB_MAX"), "storage.blob_mib_max");
    assert_eq!(setting("RPC"), "rpc");
}
