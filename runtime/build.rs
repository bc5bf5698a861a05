//! Builds the Wasm runtime that the node embeds.

fn main() {
    #[cfg(feature = "std")]
    {
        let builder = substrate_wasm_builder::WasmBuilder::init_with_defaults();
        // Both versions' Wasm is left in one folder.
        #[cfg(feature = "next-version")]
        let builder = builder.set_file_name("next_version");
        // Without the hash, `CheckMetadataHash` still works for wallets that do not ask for it.
        #[cfg(feature = "metadata-hash")]
        let builder = builder.enable_metadata_hash("SURE", 12);
        builder.build();
    }
}
