//! What cheats are found out.

use sp_core::H256;
use surety_gpu_proofs::{
    BATCHES, Fault, LAYERS_MIN, Place, ROW, SAMPLES, Sample, draw, open, run, verify_all,
};

use crate::support::Cheat;

const ROWS: u32 = BATCHES;

/// Rounds that are played whole.
const PLAYED: u32 = 6;

/// Rounds of which only the draw is looked at.
const DRAWN: u32 = 20_000;

/// The chance of a cheat to get through, of whom `is_found` says which samples find it out: by samples of
/// many rounds, after it has been seen in some that these samples are what decides.
fn chance(mut cheat: Cheat, is_found: impl Fn(&Cheat, &Sample) -> bool) -> f64 {
    // The same run under ever other draws: a draw knows nothing of the run.
    let made = run(&mut cheat, ROWS, &H256::zero(), |_| false).unwrap();
    let drawn = |round| draw(made.job().plan(), &H256::repeat_byte(1), round, &1u64);
    let finds =
        |samples: &[Sample; SAMPLES], cheat: &Cheat| samples.iter().any(|sample| is_found(cheat, sample));
    for round in 0..PLAYED {
        let samples = drawn(round);
        let openings = open(&mut cheat, &made, &samples).unwrap();
        let verdict = verify_all(made.job(), made.root(), &samples, &openings);
        let expected = if finds(&samples, &cheat) {
            Err(Fault::Cell)
        } else {
            Ok(())
        };
        assert_eq!(verdict, expected, "round {round}");
    }
    let passed = (0..DRAWN).filter(|round| !finds(&drawn(*round), &cheat)).count();
    passed as f64 / f64::from(DRAWN)
}

fn assert_near(found: f64, expected: f64) {
    let deviation = (expected * (1.0 - expected) / f64::from(DRAWN)).sqrt();
    assert!(
        (found - expected).abs() < 4.0 * deviation + 1e-4,
        "{found}, {expected} was expected"
    );
}

/// Rows that are made up are found when they are drawn; that other rows were computed from them is no fault.
#[test]
fn who_makes_up_a_part_x_of_its_rows_passes_with_one_minus_x_to_the_sixteenth() {
    for millionths in [50_000, 100_000, 300_000] {
        let cheat = Cheat::new(millionths, |place, row, fakes| {
            if fakes {
                *row = [(place.row % 7) as i8; ROW];
            }
        });
        // The part that it really makes up of these few rows.
        let places = (1..=LAYERS_MIN).flat_map(|layer| (0..ROWS).map(move |row| Place { layer, row }));
        let faked = places.filter(|place| cheat.fakes(*place)).count();
        let part = faked as f64 / f64::from(ROWS * LAYERS_MIN);
        // A made-up cell is right by chance once in 256 times; eight of them never.
        let chance = chance(cheat, |cheat, sample| cheat.fakes(sample.place));
        assert_near(chance, (1.0 - part).powi(SAMPLES as i32));
    }
}

/// Who leaves a part of each row out saves no more, and is found sooner: eight cells are looked at.
#[test]
fn who_makes_up_the_same_part_of_every_row_is_found_sooner() {
    const COLUMNS: usize = ROW / 50;
    let cheat = Cheat::new(0, |_, row, _| {
        row[..COLUMNS].iter_mut().for_each(|cell| *cell ^= 1)
    });
    let part = COLUMNS as f64 / ROW as f64;
    let chance = chance(cheat, |_, sample| {
        sample.columns.iter().any(|column| (*column as usize) < COLUMNS)
    });
    assert_near(chance, (1.0 - part).powi(8 * SAMPLES as i32));
    assert!(chance < (1.0 - part).powi(SAMPLES as i32) / 2.0);
}
