//! From which batches on what was counted can be.

use super::*;
use proptest::prelude::*;

const PERIOD: Time = 50;

proptest! {
    #[test]
    fn what_was_just_counted_can_be_asked_for_for_a_period_and_stands_in_no_older_batch(
        steps in prop::collection::vec((0u32..40, 1u32..5), 1..60),
        begun in 0u32..9,
    ) {
        let mut counted = Counted::new(begun);
        // By request: its batch, and when that was counted.
        let mut all: Vec<(BatchNumber, Time)> = Vec::new();
        let mut now = 1_000;
        for (batch, (later, receipts)) in (begun..).zip(steps) {
            now += later;
            counted.note(now, all.len() as Nonce, batch, PERIOD);
            all.extend((0..receipts).map(|_| (batch, now)));
            for (nonce, (of, at)) in all.iter().enumerate() {
                let oldest = counted.oldest(nonce as Nonce);
                prop_assert!(oldest.is_none_or(|oldest| oldest <= *of));
                prop_assert!(oldest.is_some() || at + PERIOD <= now);
            }
        }
    }
}
