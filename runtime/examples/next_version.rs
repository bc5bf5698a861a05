//! Writes the code of the next version to a file: `scripts/bench upgrade` upgrades a network to it.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: next_version FILE")?;
    let code = surety_runtime::WASM_BINARY.ok_or("it was built with SKIP_WASM_BUILD")?;
    Ok(std::fs::write(path, code)?)
}
