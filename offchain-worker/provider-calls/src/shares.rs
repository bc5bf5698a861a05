//! Places of an offer among payers. Who has many of them leaves what becomes free to one that was refused a
//! place: however many channels a payer has, it is one, here and where the engine has clients take turns.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use surety_channel_calls::AccountId;
use surety_channels::{ChannelId, Request};
use surety_engine::serving::ClientKey;

use crate::{
    desk::Desk,
    watch::{Kind, kind},
};

/// For so long somebody waits who was refused a place. Who still wants one asks again by then.
const WAITS: Duration = Duration::from_secs(60);

/// For so long a free place is left for one that waits: others have more use of it than who does not come.
const LEFT: Duration = Duration::from_secs(10);

/// Most of them that are remembered.
const WAITING_MAX: usize = 1_024;

/// How many places payers have: nobody is known to have some whose channel has left the chain.
type Open<'a> = BTreeMap<Option<&'a AccountId>, usize>;

fn has_less<'a>(open: &Open<'a>, payer: Option<&'a AccountId>, share: usize) -> bool {
    open.get(&payer).is_none_or(|own| *own < share)
}

/// How somebody waits.
#[derive(Clone, Copy)]
struct Wait {
    /// When it was refused a place last.
    since: Instant,
    /// When others were first refused one after that, because it was left for this one.
    left: Option<Instant>,
}

impl Wait {
    fn lasts(&self, now: Instant) -> bool {
        let within = |since: Instant, most: Duration| now.saturating_duration_since(since) < most;
        within(self.since, WAITS) && self.left.is_none_or(|left| within(left, LEFT))
    }
}

/// Payers that were refused a place lately, and of which offer.
#[derive(Default)]
pub(crate) struct Waiting(BTreeMap<(Kind, AccountId), Wait>);

impl Waiting {
    /// A payer was refused a place. Beside as many as there may be it takes the place of the one that has not
    /// asked for longest.
    fn note(&mut self, of: Kind, payer: AccountId, now: Instant) {
        self.0.retain(|_, wait| wait.lasts(now));
        let wait = Wait {
            since: now,
            left: None,
        };
        self.0.insert((of, payer), wait);
        if self.0.len() > WAITING_MAX {
            let oldest = self.0.iter().min_by_key(|(_, wait)| wait.since);
            if let Some(of) = oldest.map(|(of, _)| of.clone()) {
                self.0.remove(&of);
            }
        }
    }

    /// Somebody else was refused a place that is left for these.
    fn leave(&mut self, of: Kind, payers: Vec<AccountId>, now: Instant) {
        for payer in payers {
            if let Some(wait) = self.0.get_mut(&(of, payer)) {
                wait.left.get_or_insert(now);
            }
        }
    }

    /// A payer has come for a place.
    fn came(&mut self, of: Kind, payer: AccountId) {
        if let Some(wait) = self.0.get_mut(&(of, payer)) {
            wait.left = None;
        }
    }

    fn of(&self, of: Kind, now: Instant) -> impl Iterator<Item = &AccountId> {
        let waits = move |((kind, _), wait): &(&(Kind, AccountId), &Wait)| *kind == of && wait.lasts(now);
        self.0.iter().filter(waits).map(|((_, payer), _)| payer)
    }
}

/// How the places for a kind of request are shared, as a payer asks for one.
struct Places<'a> {
    all: usize,
    free: usize,
    /// Whether the asker has less than its part.
    has_less: bool,
    /// Others that wait, and have less than theirs.
    awaited: Vec<&'a AccountId>,
}

impl Desk {
    /// Whether there is a place for a request, and it is not left for others that wait and have fewer.
    pub(crate) fn has_place_for(&self, channel: ChannelId, request: &Request) -> bool {
        let places = self.shared(channel, request);
        // What others leave is nobody's while there is much of it, or more than they wait for. Of few places
        // the last one is left.
        let much = (places.all / 4).max(1);
        let is_left = places.free <= much && places.free <= places.awaited.len();
        places.free > 0 && (places.has_less || !is_left)
    }

    /// A request would have been taken, and there was no place for it.
    pub(crate) fn wait_for_place(&mut self, channel: ChannelId, request: &Request) {
        let Some(payer) = self.watch.payers.get(&channel).cloned() else {
            return;
        };
        let places = self.shared(channel, request);
        let left = places.awaited.into_iter().filter(|_| places.free > 0);
        let left = left.cloned().collect();
        let (of, now) = (kind(request.model, request.operation), Instant::now());
        self.watch.waiting.leave(of, left, now);
        self.watch.waiting.note(of, payer, now);
    }

    /// A request of this kind was taken.
    pub(crate) fn has_come(&mut self, channel: ChannelId, of: Kind) {
        if let Some(payer) = self.watch.payers.get(&channel) {
            self.watch.waiting.came(of, payer.clone());
        }
    }

    fn shared(&self, channel: ChannelId, request: &Request) -> Places<'_> {
        let all = self.watch.places(request.model, request.operation) as usize;
        let open = self.open_by_payer(request);
        let taken = open.values().fold(0, |all: usize, of| all.saturating_add(*of));
        let asker = self.watch.payers.get(&channel);
        let of = kind(request.model, request.operation);
        let waiting: BTreeSet<_> = self.watch.waiting.of(of, Instant::now()).collect();
        let waits = waiting.iter().copied().map(Some);
        let payers: BTreeSet<_> = open.keys().copied().chain(waits).chain([asker]).collect();
        let share = all.checked_div(payers.len()).unwrap_or(0).max(1);
        let others = waiting.into_iter().filter(|other| Some(*other) != asker);
        let awaited = others.filter(|other| has_less(&open, Some(*other), share));
        Places {
            all,
            free: all.saturating_sub(taken),
            has_less: has_less(&open, asker, share),
            awaited: awaited.collect(),
        }
    }

    /// How many requests of the same kind are answered, by who pays.
    fn open_by_payer(&self, request: &Request) -> Open<'_> {
        let kind = (request.model, request.operation);
        let mut open = Open::new();
        for (channel, nonce) in self.payee.open_calls() {
            let of = self.payee.request(channel, nonce);
            if of.is_some_and(|of| (of.model, of.operation) == kind) {
                let own = open.entry(self.watch.payers.get(&channel)).or_default();
                *own = own.saturating_add(1);
            }
        }
        open
    }

    /// As which client of the engine a request over a channel takes turns.
    pub(crate) fn client(&self, channel: ChannelId) -> ClientKey {
        let payer = self.watch.payers.get(&channel);
        payer.map_or_else(
            || {
                // Its channel has left the chain meanwhile.
                let mut key = [u8::MAX; 32];
                for (to, from) in key.iter_mut().zip(channel.to_le_bytes()) {
                    *to = from;
                }
                ClientKey(key)
            },
            |payer| ClientKey(payer.clone().into()),
        )
    }
}

#[cfg(test)]
mod tests {
    use surety_types::ModelId;

    use super::*;

    const KIND: Kind = (ModelId::repeat_byte(7), "generate");

    fn payer(number: usize) -> AccountId {
        AccountId::new(ModelId::from_low_u64_be(number as u64).0)
    }

    fn waiting(of: &Waiting, now: Instant) -> Vec<AccountId> {
        of.of(KIND, now).cloned().collect()
    }

    #[test]
    fn who_is_left_a_place_and_does_not_come_waits_no_longer() {
        let mut all = Waiting::default();
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        for number in 1..=3 {
            all.note(KIND, payer(number), start);
        }
        all.leave(KIND, vec![payer(1), payer(2), payer(4)], after(5));
        all.leave(KIND, vec![payer(1), payer(2)], after(9));
        all.came(KIND, payer(2));
        assert_eq!(waiting(&all, after(14)), [payer(1), payer(2), payer(3)]);
        assert_eq!(waiting(&all, after(15)), [payer(2), payer(3)]);
        // Until it asks again.
        all.note(KIND, payer(1), after(16));
        assert_eq!(waiting(&all, after(59)), [payer(1), payer(2), payer(3)]);
        assert_eq!(waiting(&all, after(60)), [payer(1)]);
        assert!(waiting(&all, after(76)).is_empty());
    }

    #[test]
    fn beside_as_many_as_are_remembered_the_newest_is_too() {
        let mut all = Waiting::default();
        let start = Instant::now();
        let after = |number: usize| start + Duration::from_millis(number as u64);
        for number in 0..WAITING_MAX {
            all.note(KIND, payer(number), after(number));
        }
        // The first asks again.
        all.note(KIND, payer(0), after(WAITING_MAX));
        all.note(KIND, payer(WAITING_MAX), after(WAITING_MAX + 1));
        let waits = waiting(&all, after(WAITING_MAX + 1));
        assert_eq!(waits.len(), WAITING_MAX);
        assert!(waits.contains(&payer(0)) && waits.contains(&payer(WAITING_MAX)));
        assert!(!waits.contains(&payer(1)));
    }
}
