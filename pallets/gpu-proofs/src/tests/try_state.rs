//! Each invariant, broken.

use frame_support::assert_err;
use sp_core::H256;
use surety_gpu_proofs::{Plan, Standing};

use crate::{
    Commitment, Commitments, CurrentRound, Measurement, Measurements, RoundsBegun, RoundsOver, Stage, mock::*,
};

fn breaks(corrupt: impl FnOnce(), message: &'static str) {
    TestExt::new().provider(1).build().execute_with(|| {
        pass_round(&[1]);
        begin_round();
        corrupt();
        assert_err!(GpuProofs::do_try_state(), message);
    });
}

#[test]
fn gpu_1() {
    breaks(
        || RoundsOver::<Test>::put(2),
        "GPU-1: more rounds are over than have begun",
    );
    breaks(
        || RoundsBegun::<Test>::put(3),
        "GPU-1: the round is not the last that has begun",
    );
    breaks(
        || {
            CurrentRound::<Test>::mutate(|round| {
                let round = round.as_mut().unwrap();
                let gathered = crate::Gathered {
                    last: 1,
                    authors_left: 0,
                    hash: H256::zero(),
                };
                round.stage = Stage::Seeding { gathered };
            })
        },
        "GPU-1: a round waits for no author, or for too many",
    );
}

fn commitment(round: u32, rows: u32) -> Commitment {
    Commitment {
        round,
        plan: Plan { rows, layers: 8 },
        root: H256::zero(),
    }
}

#[test]
fn gpu_2() {
    breaks(
        || Commitments::<Test>::insert(1, commitment(2, 31)),
        "GPU-2: no run has such a size",
    );
    breaks(
        || Commitments::<Test>::insert(1, commitment(3, 32)),
        "GPU-2: a commitment in a round that there was not",
    );
}

fn measurement(rounds_over: u32, grace_from: u32) -> Measurement {
    Measurement {
        giga_operations: 1,
        memory_mib: 1,
        standing: Standing {
            rounds_over,
            grace_from,
        },
    }
}

#[test]
fn gpu_3() {
    breaks(
        || Measurements::<Test>::insert(1, measurement(2, 3)),
        "GPU-3: somebody was measured in a round to come",
    );
    breaks(
        || Measurements::<Test>::insert(1, measurement(1, 10)),
        "GPU-3: somebody waits too long until it may miss a round",
    );
}

#[test]
fn gpu_4() {
    breaks(
        || Measurements::<Test>::insert(7, measurement(0, 8)),
        "GPU-4: something is kept for somebody without stake",
    );
    breaks(
        || Commitments::<Test>::insert(7, commitment(1, 32)),
        "GPU-4: something is kept for somebody without stake",
    );
}
