//! Builds the Wasm runtime that the node embeds.

fn main() {
    #[cfg(feature = "std")]
    {
        // Without the hash, `CheckMetadataHash` still works for wallets that do not ask for it.
        #[cfg(feature = "metadata-hash")]
        substrate_wasm_builder::WasmBuilder::init_with_defaults()
            .enable_metadata_hash("SURE", 12)
            .build();
        #[cfg(not(feature = "metadata-hash"))]
        substrate_wasm_builder::WasmBuilder::build_using_defaults();
    }
}
