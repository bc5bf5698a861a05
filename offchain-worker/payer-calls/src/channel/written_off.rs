//! What a provider says that it has served, and nobody has heard.

/// What is written off over a channel is less than this part of its deposit, or was so only once.
const WRITTEN_OFF_PART: u128 = 8;

/// What was written off over a channel.
#[derive(Default)]
pub(super) struct WriteOffs {
    /// In plancks.
    sum: u128,
    times: u32,
}

impl WriteOffs {
    /// So much more was. Whether its provider has said again that it has served what nobody has heard, and
    /// that has come to more than a part of the deposit: nothing more is asked over the channel then.
    pub const fn add(&mut self, more: u128, deposit: u128) -> bool {
        if more == 0 {
            return false;
        }
        self.sum = self.sum.saturating_add(more);
        self.times = self.times.saturating_add(1);
        self.times > 1 && self.sum.saturating_mul(WRITTEN_OFF_PART) > deposit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_given_up_once_a_part_of_it_was_written_off_for_several_requests() {
        let mut once = WriteOffs::default();
        assert!(!once.add(50, 80) && !once.add(0, 80));
        assert!(once.add(1, 80));
        let mut little = WriteOffs::default();
        let given_up: Vec<bool> = [4, 4, 2, 1].map(|more| little.add(more, 80)).into();
        assert_eq!(given_up, [false, false, false, true]);
    }
}
