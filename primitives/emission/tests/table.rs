//! The table of 20 years in ADR 40.

#[path = "../examples/supply/series.rs"]
mod series;

use series::{MONTHS, months};
use surety_emission::{CAP, SURE};

const YEARS: [usize; 12] = [0, 1, 2, 3, 4, 5, 8, 10, 12, 15, 18, 20];

/// Percent bonded, supply in hundredths of a million SURE, SURE minted in the first and in the last year.
const TABLE: [(u32, [u128; 12], [u128; 2]); 3] = [
    (
        30,
        [
            945, 965, 986, 1006, 1028, 1050, 1118, 1166, 1216, 1295, 1379, 1438,
        ],
        [200_543, 298_872],
    ),
    (
        50,
        [
            945, 979, 1014, 1050, 1087, 1126, 1250, 1341, 1438, 1597, 1740, 1816,
        ],
        [336_590, 361_792],
    ),
    (
        75,
        [
            945, 996, 1050, 1106, 1166, 1229, 1438, 1597, 1740, 1892, 1984, 2022,
        ],
        [509_342, 173_959],
    ),
];

#[test]
fn twenty_years_are_as_the_decision_says() {
    for (percent, supply, in_a_year) in TABLE {
        let points = months(percent, 20, 288);
        let years: Vec<u128> = points.into_iter().step_by(MONTHS as usize).collect();
        let hundredths = YEARS.map(|year| (years[year] + 5_000 * SURE) / (10_000 * SURE));
        assert_eq!(hundredths, supply, "{percent} %");
        let sure = |year: usize| (years[year] - years[year - 1] + SURE / 2) / SURE;
        assert_eq!([sure(1), sure(20)], in_a_year, "{percent} %");
    }
}

#[test]
fn the_cap_is_approached_and_never_passed() {
    // All of it bonded, for five centuries.
    let points = months(100, 500, 288);
    assert!(points.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(points.iter().all(|point| *point <= CAP));
    assert!(points.last().is_some_and(|last| CAP - last < SURE));
}
