//! Valid files, damaged at random: every parser gives a value or an error, never a panic, and never asks for
//! much more memory than it was given bytes.

#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)] // An allocator that counts.

mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs,
};

use common::exact::{As, Published};
use proptest::{collection::vec, prelude::*, sample::Index};
use surety_engine::{Embeddings, exact::ExactCalibrator, generation::Generation};
use surety_models::{
    ModelStore,
    config::{BertConfig, LlamaConfig, pooling, stop_tokens},
    convert::{ConvertError, convert_into},
    format::{read, write},
};
use surety_types::{
    input::{IdBounds, InputReader, encode_items},
    model::{ModelFamily, Pooling},
};
use tempfile::TempDir;

/// The system's allocator, and the largest single wish of this thread.
struct Watched;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(bytes: usize) {
    // The thread may be ending.
    LARGEST
        .try_with(|largest| largest.set(largest.get().max(bytes)))
        .ok();
}

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's contract is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note(bytes);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Runs a parser and checks that no allocation was out of proportion to the `bytes` it was given.
fn watched<T>(bytes: usize, parse: impl FnOnce() -> T) -> T {
    LARGEST.set(0);
    let parsed = parse();
    let largest = LARGEST.get();
    // Containers grow by doubling, and JSON numbers take a digit or more for eight bytes.
    assert!(
        largest <= 16 * bytes + 4096,
        "{largest} bytes for a file of {bytes}"
    );
    parsed
}

/// One way to damage a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Drop(Index, usize),
    Splice(Index, Index, usize),
    Append(Vec<u8>),
    /// Another length of the header.
    Header(u64),
    /// In the place of some number or word of the JSON.
    Token(Index, &'static str),
    /// Some part of the JSON once more.
    Twice(Index, Index),
}

const TOKENS: [&str; 16] = [
    "-1",
    "0",
    "1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "1e308",
    "0.5",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\"F64\"",
    "\"I8\"",
    "[[[[[[[[[[[[[[[[",
];

fn damage() -> impl Strategy<Value = Damage> {
    let number = prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(u64::MAX - 7),
        0u64..100_000,
        any::<u64>()
    ];
    prop_oneof![
        4 => (any::<Index>(), 1u8..=255).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), 1usize..64).prop_map(|(at, count)| Damage::Drop(at, count)),
        2 => (any::<Index>(), any::<Index>(), 1usize..128).prop_map(|(to, from, n)| Damage::Splice(to, from, n)),
        1 => vec(any::<u8>(), 1..64).prop_map(Damage::Append),
        1 => number.prop_map(Damage::Header),
        6 => (any::<Index>(), prop::sample::select(&TOKENS[..])).prop_map(|(at, text)| Damage::Token(at, text)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Twice(from, to)),
    ]
}

/// Where the JSON is: after eight bytes of length in a safetensors file, everywhere in others.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Safetensors,
    Json,
}

fn damaged(file: &[u8], kind: Kind, damages: &[Damage]) -> Vec<u8> {
    let mut file = file.to_vec();
    for damage in damages {
        if file.is_empty() {
            return file;
        }
        let len = file.len();
        match damage {
            Damage::Flip(at, bits) => file[at.index(len)] ^= bits,
            Damage::Cut(at) => file.truncate(at.index(len)),
            Damage::Drop(at, count) => {
                let at = at.index(len);
                file.drain(at..len.min(at + count));
            }
            Damage::Splice(to, from, count) => {
                let from = from.index(len);
                let piece = file[from..len.min(from + count)].to_vec();
                let to = to.index(len);
                file.splice(to..to, piece);
            }
            Damage::Append(bytes) => file.extend(bytes),
            Damage::Header(number) => {
                for (byte, new) in file.iter_mut().zip(number.to_le_bytes()) {
                    *byte = new;
                }
            }
            Damage::Token(at, text) => edit(&mut file, kind, |json| {
                let tokens = tokens(json);
                if !tokens.is_empty() {
                    let token = tokens[at.index(tokens.len())].clone();
                    json.splice(token, text.bytes());
                }
            }),
            Damage::Twice(from, to) => edit(&mut file, kind, |json| {
                let commas: Vec<usize> = (0..json.len()).filter(|at| json[*at] == b',').collect();
                if !commas.is_empty() {
                    let [from, to] = [from, to].map(|index| commas[index.index(commas.len())]);
                    let piece = json[from.min(to)..from.max(to)].to_vec();
                    json.splice(to..to, piece);
                }
            }),
        }
    }
    file
}

/// Changes the JSON, and in a safetensors file the length before it too.
fn edit(file: &mut Vec<u8>, kind: Kind, change: impl FnOnce(&mut Vec<u8>)) {
    if kind == Kind::Json {
        return change(file);
    }
    let Some(prefix) = file.first_chunk() else {
        return;
    };
    let end = u64::from_le_bytes(*prefix)
        .saturating_add(8)
        .min(file.len() as u64) as usize;
    let mut json = file[8..end].to_vec();
    change(&mut json);
    let length = (json.len() as u64).to_le_bytes();
    file.splice(..end, length.into_iter().chain(json));
}

/// Numbers, words and strings of some JSON.
fn tokens(json: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut tokens = Vec::new();
    let mut start = None;
    for (at, byte) in json.iter().enumerate() {
        let within = !b"{}[]:, \n".contains(byte);
        match (within, start) {
            (true, None) => start = Some(at),
            (false, Some(begin)) => {
                tokens.push(begin..at);
                start = None;
            }
            _ => {}
        }
    }
    tokens
}

/// A model's published and converted files.
struct Files {
    published: TempDir,
    converted: TempDir,
}

impl Files {
    fn new(published: &Published) -> Self {
        let [from, into] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        published.write(from.path(), As::F32);
        convert_into(
            from.path(),
            into.path(),
            "tiny",
            None,
            &ExactCalibrator,
            &mut |_| (),
        )
        .unwrap();
        Self {
            published: from,
            converted: into,
        }
    }

    fn converted(&self, name: &str) -> Vec<u8> {
        fs::read(self.converted.path().join(name)).unwrap()
    }
}

fn models() -> [(Published, ModelFamily); 3] {
    [
        (Published::bert(), ModelFamily::Bert),
        (Published::llama(true, false), ModelFamily::Llama),
        (Published::qwen3(), ModelFamily::Qwen3),
    ]
}

const CASES: u32 = 1_000;

/// Runs a property over damages.
fn hostile(cases: u32, test: impl Fn(&[Damage])) {
    let config = proptest::test_runner::contextualize_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    });
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&vec(damage(), 1..4), |damages| {
        test(&damages);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn exact_models() {
    for (published, family) in models() {
        let files = Files::new(&published);
        let (weights, config) = (
            files.converted("model.safetensors"),
            files.converted("config.json"),
        );
        hostile(CASES, |damages| {
            let file = damaged(&weights, Kind::Safetensors, damages);
            let bytes = file.len() + config.len();
            // What is taken is a model: it can be written, and is then the same.
            if let Ok(taken) = watched(bytes, || read(file, &config, family)) {
                let mut written = Vec::new();
                write(&taken.parts(), &mut written).unwrap();
                assert_eq!(read(written, &config, family), Ok(taken));
            }
        });
    }
}

#[test]
fn exact_models_with_another_configuration() {
    for (published, family) in models() {
        let files = Files::new(&published);
        let (weights, config) = (
            files.converted("model.safetensors"),
            files.converted("config.json"),
        );
        hostile(CASES, |damages| {
            let config = damaged(&config, Kind::Json, damages);
            let bytes = weights.len() + config.len();
            watched(bytes, || read(weights.clone(), &config, family)).ok();
        });
    }
}

#[test]
fn configurations() {
    for (published, _) in models() {
        let config = published.config.to_string().into_bytes();
        hostile(4 * CASES, |damages| {
            let config = damaged(&config, Kind::Json, damages);
            watched(config.len(), || BertConfig::parse(&config)).ok();
            watched(config.len(), || LlamaConfig::parse(&config)).ok();
            watched(config.len(), || stop_tokens(&config, None)).ok();
        });
    }
}

#[test]
fn what_stands_beside_a_configuration() {
    const MODULES: &[u8] = br#"[
        {"path": "", "type": "a.Transformer"}, {"path": "1_Pooling", "type": "a.Pooling"}, {"path": "", "type": "Normalize"}
    ]"#;
    const POOLING: &[u8] =
        br#"{"pooling_mode": ["cls"], "pooling_mode_max_tokens": true, "eos_token_id": [2, 3]}"#;
    const CONFIG: &[u8] = br#"{"vocab_size": 9}"#;
    assert_eq!(pooling(Some(MODULES), Some(POOLING)), Ok(Some(Pooling::First)));
    hostile(4 * CASES, |damages| {
        let modules = damaged(MODULES, Kind::Json, damages);
        let config = damaged(POOLING, Kind::Json, damages);
        watched(modules.len(), || pooling(Some(&modules), Some(POOLING))).ok();
        watched(config.len(), || pooling(Some(MODULES), Some(&config))).ok();
        watched(config.len(), || stop_tokens(CONFIG, Some(&config))).ok();
    });
}

#[test]
fn published_models() {
    for (published, _) in models() {
        let files = Files::new(&published);
        let [from, into] = [&files.published, &files.converted].map(TempDir::path);
        let path = from.join("model.safetensors");
        let weights = fs::read(&path).unwrap();
        hostile(CASES / 10, |damages| {
            fs::write(&path, damaged(&weights, Kind::Safetensors, damages)).unwrap();
            let converted = convert_into(from, into, "tiny", None, &ExactCalibrator, &mut |_| ());
            // The fault is the model's, not the machine's.
            assert!(!matches!(
                converted,
                Err(ConvertError::Io { .. } | ConvertError::Store(_))
            ));
        });
    }
}

#[test]
fn blobs_of_both_operations() {
    let bounds = IdBounds {
        vocabulary: 40,
        positions: 64,
    };
    let input = encode_items(&[vec![1, 2, 3], vec![39]], &bounds).unwrap();
    let embeddings = Embeddings::new(3, vec![0.5; 12]).unwrap().encode().unwrap();
    hostile(4 * CASES, |damages| {
        let blob = damaged(&input, Kind::Safetensors, damages);
        let reader = InputReader::new(&blob, bounds);
        let ids = [reader.item(0), reader.item(1), reader.prompt()].concat();
        assert!(ids.iter().all(|id| *id < 40));
        watched(blob.len(), || Generation::decode(&blob)).ok();
        let blob = damaged(&embeddings, Kind::Safetensors, damages);
        if let Ok(taken) = watched(blob.len(), || Embeddings::decode(&blob)) {
            assert_eq!(Embeddings::decode(&taken.encode().unwrap()), Ok(taken));
        }
    });
}

#[test]
fn manifests() {
    let files = Files::new(&Published::bert());
    let manifest = files.converted("manifest.json");
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("models").join("tiny");
    fs::create_dir_all(&folder).unwrap();
    let store = ModelStore::new(home.path());
    hostile(CASES, |damages| {
        let manifest = damaged(&manifest, Kind::Json, damages);
        fs::write(folder.join("manifest.json"), &manifest).unwrap();
        if let Ok(stored) = watched(manifest.len(), || store.by_name("tiny")) {
            stored.manifest.id();
        }
    });
}
