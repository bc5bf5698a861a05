//! Which instructions the kernels use.

use std::sync::{
    Mutex, OnceLock, PoisonError,
    atomic::{AtomicU8, Ordering},
};

/// An instruction set that there are kernels for. What is said of products is about int8; the crate's
/// introduction has a column for int12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// What the compiler may assume of every machine of this architecture.
    Scalar,
    /// Arm: 128-bit registers, int8 products widened to 16 bits.
    Neon,
    /// Arm: four int8 products per lane (`sdot`).
    NeonDot,
    /// x86: 256-bit registers, int8 widened to 16 bits.
    Avx2,
    /// x86: 256-bit registers, four int8 products per lane (`vpdpbusd`).
    AvxVnni,
    /// x86: 512-bit registers, four int8 products per lane.
    Avx512Vnni,
    /// [`Isa::Avx512Vnni`], and int8 tiles for products of many rows; of int12 four of them for each.
    Amx,
}

const ALL: [Isa; 7] = [
    Isa::Scalar,
    Isa::Neon,
    Isa::NeonDot,
    Isa::Avx2,
    Isa::AvxVnni,
    Isa::Avx512Vnni,
    Isa::Amx,
];

/// Instruction sets of this machine, worst first.
pub fn available() -> &'static [Isa] {
    static AVAILABLE: OnceLock<Vec<Isa>> = OnceLock::new();
    AVAILABLE.get_or_init(|| ALL.into_iter().filter(|isa| detect(*isa)).collect())
}

#[cfg(target_arch = "x86_64")]
fn detect(isa: Isa) -> bool {
    use std::arch::is_x86_feature_detected as has;
    let avx512 = || has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq");
    match isa {
        Isa::Scalar => true,
        Isa::Avx2 => has!("avx2"),
        Isa::AvxVnni => has!("avx2") && has!("avxvnni"),
        Isa::Avx512Vnni => avx512() && has!("avx512vnni"),
        Isa::Amx => avx512() && has!("avx512vnni") && crate::simd::amx::usable(),
        Isa::Neon | Isa::NeonDot => false,
    }
}

#[cfg(target_arch = "aarch64")]
fn detect(isa: Isa) -> bool {
    use std::arch::is_aarch64_feature_detected as has;
    match isa {
        Isa::Scalar => true,
        Isa::Neon => has!("neon"),
        Isa::NeonDot => has!("neon") && has!("dotprod"),
        _ => false,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect(isa: Isa) -> bool {
    isa == Isa::Scalar
}

/// Kernels that this machine has instructions for, and that are not used: they were tried, and were wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What they would have computed, and with what.
    pub kernels: &'static str,
    /// What computes it instead, with the same bits, slower.
    pub instead: &'static str,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernels, instead } = self;
        write!(
            f,
            "{kernels} gave wrong sums when they were tried, and are not used: {instead} compute the same, slower. \
             Report it, with the processor's name"
        )
    }
}

/// Kernels that were tried and are not used. The first call tries those that have not been, some
/// microseconds.
pub fn refused() -> Option<Refused> {
    int12_refused(available(), int12_tiles_are_right)
}

fn int12_refused(available: &[Isa], tiles_are_right: impl FnOnce() -> bool) -> Option<Refused> {
    (available.contains(&Isa::Amx) && !tiles_are_right()).then_some(Refused {
        kernels: "int12 products in AMX tiles",
        instead: "those of AVX-512 VNNI",
    })
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn int12_tiles_are_right() -> bool {
    // SAFETY: asked only where AMX is available.
    unsafe { crate::simd::amx::is_right_with_int12() }
}

#[cfg(not(target_arch = "x86_64"))]
fn int12_tiles_are_right() -> bool {
    true
}

const NOT_FORCED: u8 = u8::MAX;
static FORCED: AtomicU8 = AtomicU8::new(NOT_FORCED);

/// The one to use: the best there is, unless [`with_isa`] says another. Always one of [`available`].
pub(crate) fn current() -> Isa {
    let forced = FORCED.load(Ordering::Relaxed);
    let found = available().iter().find(|isa| **isa as u8 == forced);
    found.or(available().last()).copied().unwrap_or(Isa::Scalar)
}

/// Runs `work` with the kernels of one instruction set in the whole process, or of the best when this machine
/// does not have it; for tests and benchmarks. One call at a time: others wait, so do not nest it.
pub fn with_isa<T>(isa: Isa, work: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            FORCED.store(NOT_FORCED, Ordering::Relaxed);
        }
    }
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _reset = Reset;
    FORCED.store(isa as u8, Ordering::Relaxed);
    work()
}

/// Compiles a function once per instruction set. Called as `name(isa, arguments)`; the body is ordinary safe
/// code, whose loops the compiler turns into the registers of the set.
macro_rules! per_isa {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code)]
        fn $name(isa: $crate::isa::Isa, $($arg: $type),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $type),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($arg: $type),*) $(-> $ret)? {
                body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
            fn avx512($($arg: $type),*) $(-> $ret)? {
                body($($arg),*)
            }
            match isa {
                // SAFETY: `isa` is one of `available`, so that the machine has these instructions.
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Isa::Avx2 | $crate::isa::Isa::AvxVnni => unsafe { avx2($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::isa::Isa::Avx512Vnni | $crate::isa::Isa::Amx => unsafe { avx512($($arg),*) },
                _ => body($($arg),*),
            }
        }
    };
}
pub(crate) use per_isa;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_were_found_wrong_are_named_with_what_is_used_instead() {
        let with_tiles = [Isa::Scalar, Isa::Avx512Vnni, Isa::Amx];
        let told = int12_refused(&with_tiles, || false).map(|refused| refused.to_string());
        let names = |word: &str| told.as_ref().is_some_and(|told| told.contains(word));
        assert!(names("AMX") && names("AVX-512 VNNI"), "{told:?}");
        assert_eq!(int12_refused(&with_tiles, || true), None);
        // Without tiles there is nothing to try.
        assert_eq!(
            int12_refused(&with_tiles[..2], || panic!("no such instructions")),
            None
        );
    }
}
