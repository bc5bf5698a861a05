//! Prints the supply of 20 years as JSON, in SURE. `scripts/bench supply` makes a table and a plot of it.

mod series;

use serde_json::json;
use surety_emission::{CAP, SURE, TAPER, genesis};

const YEARS: u32 = 20;
/// Sessions of a day in production.
const DAY: u32 = 288;

fn main() {
    let curves = [30, 50, 75].map(|percent| {
        let points = series::months(percent, YEARS, DAY);
        let sure: Vec<f64> = points.iter().map(|point| *point as f64 / SURE as f64).collect();
        json!({ "bonded_percent": percent, "supply_by_month": sure })
    });
    let report = json!({
        "cap": CAP / SURE,
        "taper": TAPER / SURE,
        "genesis": {
            "founders": genesis::FOUNDERS / SURE,
            "treasury": genesis::TREASURY / SURE,
            "launch": genesis::LAUNCH / SURE,
        },
        "years": YEARS,
        "months_per_year": series::MONTHS,
        "curves": curves,
    });
    println!("{report}");
}
