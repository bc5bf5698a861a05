//! What of a sum that grows has stood for a while.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;

use crate::Time;

/// So much there was, since a time.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
struct Step {
    sum: u128,
    at: Time,
}

/// A sum that grows. Two steps are enough: what was added has stood for a period after two of them at most,
/// however often more is added, and never sooner than it has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo,
)]
pub struct Seasoned {
    /// What has stood for a period already.
    stood: u128,
    older: Step,
    newer: Step,
}

impl Seasoned {
    /// One that there is since `at`, all of it.
    pub const fn since(sum: u128, at: Time) -> Self {
        let step = Step { sum, at };
        Self {
            stood: 0,
            older: step,
            newer: step,
        }
    }

    /// There is `sum` of it now.
    pub fn grow(&mut self, sum: u128, now: Time, period: Time) {
        if sum <= self.newer.sum {
            return;
        }
        let new = Step { sum, at: now };
        let has_stood = |step: &Step| step.at.saturating_add(period) <= now;
        if has_stood(&self.newer) {
            (self.stood, self.older) = (self.newer.sum, new);
        } else if has_stood(&self.older) {
            (self.stood, self.older) = (self.older.sum, self.newer);
        }
        // While neither has, this waits with the newer one.
        self.newer = new;
    }

    /// What of it has stood for a period: that of all calls.
    pub const fn stood(&self, now: Time, period: Time) -> u128 {
        if self.newer.at.saturating_add(period) <= now {
            self.newer.sum
        } else if self.older.at.saturating_add(period) <= now {
            self.older.sum
        } else {
            self.stood
        }
    }

    /// When more of it has; nothing where all has.
    pub fn next(&self, now: Time, period: Time) -> Option<Time> {
        let steps = [self.older, self.newer].into_iter();
        let mut at = steps.map(|step| step.at.saturating_add(period));
        at.find(|at| now < *at)
    }
}
