//! What was counted waits to be paid, and what a client demands keeps it back.

use surety_channels::ChannelId;

use super::trade::{SUPPLY, Trade};

impl Trade<'_> {
    /// A client misses what it was told, and demands it, before what was counted is due.
    pub fn demand(&mut self, channel: ChannelId) {
        let until = self.now + 2 * SUPPLY;
        let of = self.channels.get_mut(channel as usize);
        if let Some(of) = of.filter(|_| self.offer.chain.pay_waits) {
            of.purse.demand(until);
        }
    }

    /// It was shown.
    pub fn show(&mut self, channel: ChannelId) {
        if let Some(of) = self.channels.get_mut(channel as usize) {
            of.purse.end_demand();
        }
    }

    /// All that was counted, and that nobody demands, is paid in the end.
    pub fn finish(&mut self) {
        self.now += SUPPLY;
        for channel in 0..self.channels.len() as ChannelId {
            let purse = &self.channels[channel as usize].purse;
            if purse.redeemable(0, self.now, SUPPLY) > 0 {
                self.redeem(channel);
            }
        }
    }
}
