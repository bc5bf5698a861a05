//! What goes wrong around a worker.

use surety_worker_core::Failure;

use crate::random::Random;

/// How often things go wrong, in thousandths.
#[derive(Clone, Copy)]
pub struct Faults {
    pub crash: u64,
    /// A call is not heard, and said to have failed in any of three ways.
    pub loss: u64,
    /// A call is carried out, and said to have failed in any of three ways.
    pub answer_loss: u64,
    pub replaced_block: u64,
    /// Most of the last three in a row for one call.
    pub row_max: u32,
    /// Blocks that a call takes to arrive, at most.
    pub latency: u64,
    pub partition: u64,
    pub partition_blocks: u32,
    pub stale_state: u64,
    pub repeated_state: u64,
    /// A node that says, some times in a row, that there are no tasks.
    pub empty_state: u64,
    pub empty_blocks: u64,
    pub local_failure: u64,
    /// Blocks that fetching and computing take, at most.
    pub slowness: u64,
    /// Finality stands still for up to a hundred blocks.
    pub stall: u64,
    /// Once per life at most. Computing gives the same result every time then, and prices stay as they are.
    pub journal_loss: u64,
}

impl Faults {
    pub const NONE: Self = Self {
        crash: 0,
        loss: 0,
        answer_loss: 0,
        replaced_block: 0,
        row_max: u32::MAX,
        latency: 3,
        partition: 0,
        partition_blocks: 10,
        stale_state: 0,
        repeated_state: 0,
        empty_state: 0,
        empty_blocks: 6,
        local_failure: 0,
        slowness: 3,
        stall: 0,
        journal_loss: 0,
    };

    pub const MANY: Self = Self {
        crash: 30,
        loss: 200,
        answer_loss: 100,
        replaced_block: 100,
        partition: 20,
        stale_state: 100,
        repeated_state: 200,
        empty_state: 20,
        local_failure: 150,
        slowness: 10,
        stall: 10,
        ..Self::NONE
    };

    /// A chain that can be reached, and refuses in every way it can before it takes a call.
    pub const REFUSING: Self = Self {
        loss: 400,
        answer_loss: 200,
        replaced_block: 100,
        row_max: 2,
        latency: 1,
        stale_state: 100,
        repeated_state: 200,
        empty_state: 20,
        empty_blocks: 2,
        local_failure: 200,
        slowness: 20,
        stall: 10,
        ..Self::NONE
    };
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Fine,
    /// Said to be in a block, which is replaced by one without it.
    Replaced,
    /// Not carried out, and said to have failed so.
    Unheard(Failure),
    /// Carried out, and said to have failed so.
    Misheard(Failure),
}

impl Fate {
    pub fn draw(faults: &Faults, random: &mut Random) -> Self {
        let failure = any(random);
        if random.happens(faults.loss) {
            Self::Unheard(failure)
        } else if random.happens(faults.answer_loss) {
            Self::Misheard(failure)
        } else if random.happens(faults.replaced_block) {
            Self::Replaced
        } else {
            Self::Fine
        }
    }
}

/// Any way to fail.
pub fn any(random: &mut Random) -> Failure {
    [Failure::Refused, Failure::Failed, Failure::Permanent][random.below(3) as usize]
}

/// A way to fail from which this machine recovers.
pub fn passing(random: &mut Random) -> Failure {
    [Failure::Refused, Failure::Failed][random.below(2) as usize]
}
