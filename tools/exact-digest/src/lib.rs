#![doc = include_str!("../README.md")]
#![no_std]

mod cases;
mod stream;

pub use cases::digest;

#[cfg(target_arch = "wasm32")]
mod export {
    #![allow(unsafe_code)] // A symbol that the host finds by its name.

    /// [`crate::digest`] for the host.
    #[unsafe(no_mangle)]
    pub extern "C" fn digest(seed: u64) -> u64 {
        crate::digest(seed)
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo) -> ! {
        core::arch::wasm32::unreachable()
    }
}
