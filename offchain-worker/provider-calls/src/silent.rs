//! Channels over which nothing is asked for long, while their money keeps others from asking: what is
//! deposited with a provider, and no final batch has, is taken off what its lock covers.

use std::collections::{BTreeMap, BTreeSet};

use surety_chain_client::{BlockNumber, Call};
use surety_channels::ChannelId;

use crate::{
    desk::Desk,
    errands::{Errand, Purpose},
    sight::Sight,
};

/// Channels that are given back at once.
const AT_ONCE: usize = 4;

/// What changes with each request over a channel, and with its deposit.
type Mark = ((u128, u128), u128);

/// What is known of silent channels.
#[derive(Default)]
pub(crate) struct Silent {
    /// Since which block nothing has changed.
    since: BTreeMap<ChannelId, (Mark, BlockNumber)>,
    /// Those that are being given back: nothing is taken over them any more.
    given_back: BTreeSet<ChannelId>,
}

impl Silent {
    pub(crate) fn is_given_back(&self, channel: ChannelId) -> bool {
        self.given_back.contains(&channel)
    }
}

impl Desk {
    /// Gives back the largest deposits over which nothing was asked for long, until what is deposited is
    /// within the cap; all of them where the provider leaves. Nothing of what was earned is given up.
    pub(crate) fn give_back_silent(&mut self, sight: &Sight, due: &mut Vec<Errand>) {
        let channels = &self.watch.channels;
        let silent = &mut self.watch.silent;
        silent.since.retain(|id, _| channels.contains_key(id));
        silent
            .given_back
            .retain(|id| self.errands.is_away(&Purpose::GiveBack(*id)));
        let cap = sight.standing.as_ref().map_or(0, |standing| standing.cap);
        let is_leaving = sight.standing.as_ref().is_some_and(|of| of.is_leaving);
        // While money is short nothing is sent that can wait.
        let is_short = self.watch.float.is_short();
        if is_short || !sight.may_sell(&self.parts) || !(self.parts.takes_new || is_leaving) {
            return;
        }
        let (mut deposited, mut idle) = (0u128, Vec::new());
        for (id, seen) in channels.range(sight.since_channel()..) {
            let mark = (self.payee.account(*id).unwrap_or_default(), seen.purse.deposit);
            let (known, since) = silent.since.entry(*id).or_insert((mark, sight.block));
            if *known != mark {
                (*known, *since) = (mark, sight.block);
            }
            if seen.purse.closing.is_some() {
                continue;
            }
            let uncounted = seen.purse.uncounted();
            deposited = deposited.saturating_add(uncounted);
            let is_silent = sight.block.saturating_sub(*since) >= self.parts.config.silent_blocks;
            if is_silent && self.payee.is_settled(seen) {
                idle.push((uncounted, *id));
            }
        }
        idle.sort_unstable_by(|one, other| other.cmp(one));
        for (uncounted, channel) in idle.into_iter().take(AT_ONCE) {
            if deposited <= cap && !is_leaving {
                return;
            }
            deposited = deposited.saturating_sub(uncounted);
            if silent.given_back.insert(channel) {
                tracing::info!(
                    channel,
                    "a channel is given back: nothing was asked over it for long"
                );
            }
            due.push(Errand::new(
                Purpose::GiveBack(channel),
                Call::CloseAgreed { channel },
            ));
        }
    }
}
