//! Sizes, speeds, tiers.

use codec::{DecodeAll, Encode, MaxEncodedLen};
use sp_core::H256;
use surety_gpu_proofs::{LAYERS_MAX, LAYERS_MIN, Openings, Plan, ROWS_MAX, Tier, draw, open};

use crate::support::{honest, processor};

#[test]
fn what_is_shown_fits_its_bound_and_a_call() {
    let samples = draw(honest().job().plan(), &H256::zero(), 0, &0u64);
    let openings = open(&mut processor(2), honest(), &samples).unwrap();
    let bytes = openings.encode();
    assert_eq!(Openings::decode_all(&mut &bytes[..]).as_ref(), Ok(&openings));
    assert!(bytes.len() <= Openings::max_encoded_len());
    assert!(Openings::max_encoded_len() <= 256 * 1024);
    assert!(Openings::decode_all(&mut &[bytes, vec![0]].concat()[..]).is_err());
}

#[test]
fn a_run_shows_its_operations_over_the_window() {
    // 8 GiB, a hundred times over: 2 * 2^20 operations a row.
    let plan = Plan {
        rows: 8 << 20,
        layers: 100,
    };
    assert!(plan.is_sound());
    assert_eq!(plan.operations(), (8 << 20) * 100 * (2 << 20));
    assert_eq!(plan.giga_operations(30_000), 58_640);
    assert_eq!(plan.giga_operations(0), 0);
    assert_eq!(plan.memory_mib(), 8 * 1024);
    assert_eq!(Plan { rows: 1_023, ..plan }.memory_mib(), 0);
}

#[test]
fn the_largest_run_is_counted_without_overflow() {
    let largest = Plan {
        rows: ROWS_MAX,
        layers: 2_048,
    };
    assert!(largest.is_sound());
    assert_eq!(
        u128::from(largest.operations()),
        u128::from(ROWS_MAX) * 2_048 * (2 << 20)
    );
    assert!(
        !Plan {
            layers: 2_049,
            ..largest
        }
        .is_sound()
    );
    assert!(
        !Plan {
            rows: ROWS_MAX + 32,
            layers: 8
        }
        .is_sound()
    );
    assert!(
        !Plan {
            rows: 64,
            layers: LAYERS_MIN - 1
        }
        .is_sound()
    );
    assert!(
        Plan {
            rows: 64,
            layers: LAYERS_MAX
        }
        .is_sound()
    );
    assert!(
        !Plan {
            rows: 64,
            layers: LAYERS_MAX + 1
        }
        .is_sound()
    );
}

#[test]
fn tiers_begin_where_they_say() {
    let tiers = [0, 4_999, 5_000, 19_999, 20_000, u32::MAX].map(Tier::of);
    assert_eq!(tiers, [Tier::C, Tier::C, Tier::B, Tier::B, Tier::A, Tier::A]);
    assert!(Tier::A < Tier::B && Tier::B < Tier::C, "the best comes first");
}
