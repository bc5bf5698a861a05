//! Showing samples.

use std::convert::Infallible;

use frame_support::{assert_noop, assert_ok, dispatch::Pays};
use sp_core::H256;
use surety_gpu_proofs::{Job, Memory, ROW, Row, Tier, draw, open, run, seed};
use surety_proofs::merkle_root;

use crate::{Commitments, Error, Event, Measurements, mock::*};

#[test]
fn who_shows_its_samples_is_measured_and_pays_nothing() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        let made = make(1, entropy, 10);
        commit(1, entropy, &made);
        assert_eq!(GpuProofs::measured(1), None);
        let samples = pass_until_drawn();
        let taken = GpuProofs::open_run(signed(1), shown(1, &made, samples)).unwrap();
        assert_eq!(taken.pays_fee, Pays::No);
        let measurement = Measurements::<Test>::get(1).unwrap();
        // 32 rows, ten times, two million operations each: in thirty seconds that rounds to nothing.
        assert_eq!(
            measurement.giga_operations,
            made.job().plan().giga_operations(WINDOW_MS)
        );
        System::assert_last_event(
            Event::Measured {
                provider: 1,
                measurement,
            }
            .into(),
        );
        assert!(!Commitments::<Test>::contains_key(1));
        let view = GpuProofs::measured(1).unwrap();
        assert_eq!((view.tier, view.memory_mib, view.rounds_missed), (Tier::C, 0, 0));
    });
}

#[test]
fn what_is_wrong_is_refused_and_what_is_right_is_taken_after_it() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        let made = make(1, entropy, 8);
        commit(1, entropy, &made);
        let samples = pass_until_drawn();
        let right = shown(1, &made, samples);

        let mut wrong = right.clone();
        wrong[3].row.bytes[17] ^= 1;
        assert_noop!(GpuProofs::open_run(signed(1), wrong), Error::<Test>::WrongRow);
        let mut fewer = right.clone();
        fewer.pop();
        assert_noop!(GpuProofs::open_run(signed(1), fewer), Error::<Test>::WrongCount);
        assert_ok!(GpuProofs::open_run(signed(1), right.clone()));
        assert_noop!(
            GpuProofs::open_run(signed(1), right),
            Error::<Test>::NothingToOpen
        );
    });
}

/// The same device, the same run, another name: its seed is another.
#[test]
fn the_run_of_another_shows_nothing() {
    TestExt::new().provider(1).provider(2).execute_with(|| {
        let entropy = begin_round();
        let made = make(1, entropy, 8);
        commit(1, entropy, &made);
        commit(2, entropy, &made);
        let samples = pass_until_drawn();
        // What the root commits to at the places that were drawn for the other name.
        assert_noop!(
            GpuProofs::open_run(signed(2), shown(2, &made, samples)),
            Error::<Test>::WrongRow
        );
        assert_ok!(GpuProofs::open_run(signed(1), shown(1, &made, samples)));
        pass_until_over();
        assert!(GpuProofs::measured(1).is_some());
        assert_eq!(GpuProofs::measured(2), None);
    });
}

#[test]
fn samples_are_shown_in_their_time_and_of_what_was_committed_to() {
    TestExt::new().provider(1).provider(2).execute_with(|| {
        let entropy = begin_round();
        let made = make(1, entropy, 8);
        commit(1, entropy, &made);
        let early = shown(1, &made, entropy);
        assert_noop!(GpuProofs::open_run(signed(1), early), Error::<Test>::NotOpening);
        let samples = pass_until_drawn();
        let right = shown(1, &made, samples);
        assert_noop!(
            GpuProofs::open_run(signed(2), right.clone()),
            Error::<Test>::NothingToOpen
        );
        assert_noop!(
            GpuProofs::open_run(RuntimeOrigin::signed(99), right.clone()),
            Error::<Test>::NotAgent
        );
        Finality::set(Finality::get() + OPEN_WINDOW);
        assert_noop!(
            GpuProofs::open_run(signed(1), right.clone()),
            Error::<Test>::TooLate
        );
        pass_until_over();
        assert_noop!(GpuProofs::open_run(signed(1), right), Error::<Test>::NotOpening);
    });
}

/// No device at all: every row is the same.
struct Nothing {
    row: Row,
    batch_rows: usize,
}

impl Memory for Nothing {
    type Error = Infallible;

    fn fill(&mut self, job: &Job) -> Result<(), Infallible> {
        self.batch_rows = job.plan().batch_rows() as usize;
        Ok(())
    }

    fn step(&mut self, _: &Job, _: u32, _: u32) -> Result<H256, Infallible> {
        self.digests().map(|digests| merkle_root(digests.into_iter()))
    }

    fn digests(&mut self) -> Result<Vec<H256>, Infallible> {
        let digest = H256(sp_crypto_hashing::blake2_256(&self.row.map(|cell| cell as u8)));
        Ok(vec![digest; self.batch_rows])
    }

    fn row(&mut self, _: u32) -> Result<Row, Infallible> {
        Ok(self.row)
    }
}

/// However large a run it says that it has made, and whatever it says that its rows are: zeros, too.
#[test]
fn who_has_computed_nothing_is_found() {
    for row in [[0; ROW], [1; ROW], [-128; ROW]] {
        TestExt::new().provider(1).execute_with(|| {
            let entropy = begin_round();
            let mut nothing = Nothing { row, batch_rows: 0 };
            let made = run(&mut nothing, 4_096, &seed(&entropy, 1, &1u64), |done| done < 300).unwrap();
            commit(1, entropy, &made);
            let samples = pass_until_drawn();
            let drawn = draw(made.job().plan(), &samples, 1, &1u64);
            let openings = Box::new(open(&mut nothing, &made, &drawn).unwrap());
            assert_noop!(GpuProofs::open_run(signed(1), openings), Error::<Test>::WrongCell);
            pass_until_over();
            assert_eq!(GpuProofs::measured(1), None);
        });
    }
}
