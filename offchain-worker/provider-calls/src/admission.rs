//! Whether a request is taken: all that the provider would owe by it has to be possible.

use std::time::Duration;

use surety_channel_calls::{Refusal, payee::ChannelSeen};
use surety_channels::{ChannelId, Request, Time};

use crate::{
    desk::{Decided, Desk},
    front::CallId,
};

/// Nothing new is taken when the chain was out of sight for so long: a channel may be closing.
const BLIND_MAX: Duration = Duration::from_secs(300);

impl Desk {
    /// Whether it would be, where there is a place. What is known of a channel, and the latest time at which
    /// a voucher of a request that is taken now might have to be redeemed.
    pub(crate) fn may_take(
        &self,
        channel: ChannelId,
        request: &Request,
    ) -> Result<(Option<ChannelSeen>, Time), Refusal> {
        let sight = self.watch.sight.as_ref().ok_or(Refusal::Busy)?;
        let is_blind = self.watch.seen_at.is_none_or(|at| at.elapsed() > BLIND_MAX);
        // An input may be large: nothing more is kept while the disk is full.
        if !self.parts.takes_new || is_blind || self.is_stuck() {
            return Err(Refusal::Busy);
        }
        // A payer waits less long for its vectors than a pause may last.
        if (self.parts.stands_aside)(request.operation) {
            return Err(Refusal::Busy);
        }
        // Nor does it wait for a device that does not answer.
        if self.parts.models.is_stuck(request) {
            return Err(Refusal::Busy);
        }
        if !sight.may_sell(&self.parts) {
            return Err(Refusal::NotOffered);
        }
        if self.watch.silent.is_given_back(channel) {
            return Err(Refusal::Closing);
        }
        // What is answered has to find room in batches: a demand of its receipt has to be met in time.
        let price = request.price(request.units_max);
        let at_risk = price.and_then(|price| self.watch.at_risk.checked_add(price));
        let at_risk = at_risk.ok_or(Refusal::Busy)?;
        if !self.watch.has_room(sight, at_risk) || !sight.has_place() {
            return Err(Refusal::Busy);
        }
        // And that costs fees and a levy before it pays anything.
        if !self.affords_one_more(sight, channel, at_risk) {
            return Err(Refusal::Busy);
        }
        let at = sight.time.saturating_add(sight.rules.closing_period);
        Ok((self.watch.channel(channel), at))
    }

    /// Ends answers that wait for a device which does not answer: whatever is left makes their traces.
    pub(crate) fn cut_stuck(&mut self, step: &mut Decided) {
        let is_stuck = |(channel, nonce): &&CallId| {
            let request = self.payee.request(*channel, *nonce);
            request.is_some_and(|request| self.parts.models.is_stuck(request))
        };
        let stuck: Vec<CallId> = self.running.keys().filter(is_stuck).copied().collect();
        for (channel, nonce) in stuck {
            tracing::error!(
                channel,
                nonce,
                "an answer is cut: the device that makes it does not answer"
            );
            let faults = &self.parts.metrics.device_faults;
            faults.with_label_values(&["silent"]).inc();
            self.running.remove(&(channel, nonce));
            step.join(self.payee.abandon(channel, nonce));
        }
    }
}
