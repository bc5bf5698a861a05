//! How much the payee keeps in memory: its operator is told before there is no place for anything new.

use surety_chain_client::BlockNumber;

use crate::{desk::Desk, sight::Sight, terms::AGAIN};

/// Since when it is known that there is much, as far as that was said.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    said: Option<BlockNumber>,
}

impl Memory {
    /// Whether it is to be said now.
    fn is_due(&mut self, is_filling_up: bool, block: BlockNumber) -> bool {
        let is_said = self.said.is_some_and(|said| block.saturating_sub(said) < AGAIN);
        let is_due = is_filling_up && !is_said;
        if is_due {
            self.said = Some(block);
        }
        is_due
    }
}

impl Desk {
    /// Says how many requests are kept, and so where that is much.
    pub(crate) fn look_at_memory(&mut self, sight: &Sight) {
        let (whole, kept) = self.payee.kept();
        let metrics = &self.parts.metrics;
        for (gauge, count) in [(&metrics.whole, whole), (&metrics.kept, kept)] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let is_filling_up = self.payee.is_filling_up();
        if self.watch.memory.is_due(is_filling_up, sight.block) {
            let config = &self.parts.config;
            tracing::warn!(
                whole,
                whole_max = config.calls_max,
                kept,
                kept_max = config.kept_max,
                "more than three quarters of the requests are there that are kept over channels: beyond that \
                 new ones are refused as busy. Those that are whole wait for batches to be final: see that the \
                 chain takes them. The others go with their channels: give back those that have had most \
                 (surety channel close --agreed)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_memory_fills_up_is_said_once_an_hour_at_most() {
        let mut memory = Memory::default();
        let said = [
            (false, 1),
            (true, 2),
            (true, 3),
            (false, 4),
            (true, 5),
            (true, AGAIN + 2),
        ];
        let said = said.map(|(is_filling_up, block)| memory.is_due(is_filling_up, block));
        assert_eq!(said, [false, true, false, false, false, true]);
    }
}
