//! Luck, from a seed.

use surety_dispute_game::testsuite::dice::Dice;

pub struct Random(Dice);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Dice::seeded(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.number()
    }

    /// From 0 to `bound`, the latter excluded.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True `thousandths` times in a thousand.
    pub fn happens(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }
}
