//! What has stood for a while, against all that was ever added.

use super::*;
use proptest::{collection::vec, prelude::*};

const PERIOD: Time = 10;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_was_added_has_stood_after_a_period_or_two_and_never_sooner(
        first in 0u128..5, steps in vec((0u32..15, 0u128..5), 1..60),
    ) {
        let (mut now, mut all) = (0, vec![(0, first)]);
        let mut seasoned = Seasoned::since(first, now);
        let sum = |all: &[(Time, u128)], until: Option<Time>| -> u128 {
            let is_old = |at: Time| until.is_some_and(|until| at <= until);
            all.iter().filter(|(at, _)| is_old(*at)).map(|(_, amount)| amount).sum()
        };
        for (later, amount) in steps {
            for _ in 0..later {
                now += 1;
                let stood = seasoned.stood(now, PERIOD);
                prop_assert!(stood <= sum(&all, now.checked_sub(PERIOD)));
                prop_assert!(stood >= sum(&all, now.checked_sub(2 * PERIOD)));
                let next = seasoned.next(now, PERIOD);
                let there = sum(&all, Some(now));
                prop_assert!(stood == there || next.is_some_and(|at| now < at && at <= now + PERIOD));
            }
            all.push((now, amount));
            seasoned.grow(sum(&all, Some(now)), now, PERIOD);
        }
    }
}
