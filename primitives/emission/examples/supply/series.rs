//! What becomes of the supply, session by session, by the formulas that the chain mints with.

use surety_emission::{SESSIONS_PER_YEAR, earned, genesis, granted, session_pay, tau};

/// Parts of a year that a series has points for.
pub const MONTHS: u32 = 12;

/// All that was ever minted, in plancks, month after month, the genesis first. `percent` of it are behind
/// operators all the time, who make every block that is expected of them; they are paid every `day` sessions,
/// and nothing is burned. What is owed and not paid yet counts.
pub fn months(percent: u32, years: u32, day: u32) -> Vec<u128> {
    let mut minted = genesis::ALL;
    let (mut owed, mut points) = (0, vec![minted]);
    for session in 1..=years * SESSIONS_PER_YEAR {
        owed += session_pay(minted / 100 * u128::from(percent), tau(minted));
        if session.is_multiple_of(day) {
            minted += granted(earned(owed, 1, 1_000_000), minted);
            owed = 0;
        }
        if session.is_multiple_of(SESSIONS_PER_YEAR / MONTHS) {
            points.push(minted + owed);
        }
    }
    points
}
