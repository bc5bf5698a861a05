//! The bits of the native build and of the Wasm build are the same.

#![allow(clippy::unwrap_used)]

use std::{env, path::PathBuf, process::Command};
use surety_exact_digest::digest;
use wasmtime::{Engine, Instance, Module, Store};

/// What every machine must find. Seeds are their places.
const DIGESTS: [u64; 8] = [
    0xfd96_83b8_9dff_9354,
    0x38ea_aa1b_ba9f_bc93,
    0x5597_de8b_e639_4633,
    0x3773_dfd5_6c24_2664,
    0x8d86_e2a0_d7b7_accd,
    0x4a3c_15ca_676a_9e85,
    0x063c_0715_2437_497d,
    0x4d19_5450_26f8_d6ba,
];

/// More seeds, for comparing without having them written down.
const SEEDS: u64 = 40;

/// Compiles this crate for Wasm, into a folder of its own: whoever runs the test may hold the lock of the
/// usual one.
fn compile() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exact-digest");
    let output = Command::new(env!("CARGO"))
        .args([
            "rustc",
            "--offline",
            "--locked",
            "--release",
            "--lib",
            "--crate-type",
            "cdylib",
        ])
        .args([
            "--package",
            env!("CARGO_PKG_NAME"),
            "--target",
            "wasm32v1-none",
            "--target-dir",
        ])
        .arg(&folder)
        // Read when the test runs: builds of several checkouts share a target directory.
        .current_dir(env::var_os("CARGO_MANIFEST_DIR").unwrap())
        // Flags for the machine's own processor are not for this one.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder.join("wasm32v1-none/release/surety_exact_digest.wasm")
}

#[test]
fn native_digests_are_those_of_every_machine() {
    let found: Vec<u64> = (0..).take(DIGESTS.len()).map(digest).collect();
    assert_eq!(found, DIGESTS, "{found:#x?}");
}

#[test]
fn wasm_digests_are_the_native_ones() {
    let engine = Engine::default();
    let module = Module::from_file(&engine, compile()).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let in_wasm = instance.get_typed_func::<u64, u64>(&mut store, "digest").unwrap();
    for seed in 0..SEEDS {
        assert_eq!(
            in_wasm.call(&mut store, seed).unwrap(),
            digest(seed),
            "seed {seed}"
        );
    }
}
