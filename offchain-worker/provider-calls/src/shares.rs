//! Places of an offer among payers. Who has many of them leaves what becomes free to one that was refused a
//! place: however many channels a payer has, it is one, here and where the engine has clients take turns.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use surety_channel_calls::AccountId;
use surety_channels::{ChannelId, Request};
use surety_engine::serving::ClientKey;
use surety_types::ModelId;

use crate::desk::Desk;

/// For so long somebody waits who was refused a place. Who still wants one asks again by then.
const WAITS: Duration = Duration::from_secs(60);

/// Most of them that are remembered.
const WAITING_MAX: usize = 1_024;

/// How many places payers have: nobody is known to have some whose channel has left the chain.
type Open<'a> = BTreeMap<Option<&'a AccountId>, usize>;

fn has_less<'a>(open: &Open<'a>, payer: Option<&'a AccountId>, share: usize) -> bool {
    open.get(&payer).is_none_or(|own| *own < share)
}

/// Payers that were refused a place lately: of which offer, and when.
#[derive(Default)]
pub(crate) struct Waiting(BTreeMap<(ModelId, &'static str, AccountId), Instant>);

impl Waiting {
    fn note(&mut self, request: &Request, payer: AccountId) {
        self.0.retain(|_, since| since.elapsed() < WAITS);
        if self.0.len() < WAITING_MAX {
            let of = (request.model, request.operation.name(), payer);
            self.0.insert(of, Instant::now());
        }
    }

    fn of(&self, request: &Request) -> impl Iterator<Item = &AccountId> {
        let kind = (request.model, request.operation.name());
        let lately = self.0.iter().filter(|(_, since)| since.elapsed() < WAITS);
        lately
            .filter_map(move |((model, operation, payer), _)| ((*model, *operation) == kind).then_some(payer))
    }
}

impl Desk {
    /// Whether there is a place for a request, and nobody else waits for it that has fewer.
    pub(crate) fn has_place_for(&self, channel: ChannelId, request: &Request) -> bool {
        let places = self.watch.places(request.model, request.operation) as usize;
        let open = self.open_by_payer(request);
        let taken = open.values().fold(0, |all: usize, of| all.saturating_add(*of));
        let free = places.saturating_sub(taken);
        let asker = self.watch.payers.get(&channel);
        let waiting: BTreeSet<_> = self.watch.waiting.of(request).map(Some).collect();
        let all: BTreeSet<_> = open.keys().chain(&waiting).copied().chain([asker]).collect();
        let share = places.checked_div(all.len()).unwrap_or(0).max(1);
        let mut others = waiting.into_iter().filter(|other| *other != asker);
        let is_awaited = others.any(|other| has_less(&open, other, share));
        // What others leave is nobody's while there is much of it.
        let is_scarce = free.saturating_mul(4) <= places;
        free > 0 && (has_less(&open, asker, share) || !is_scarce || !is_awaited)
    }

    /// A request would have been taken, and there was no place for it.
    pub(crate) fn wait_for_place(&mut self, channel: ChannelId, request: &Request) {
        if let Some(payer) = self.watch.payers.get(&channel) {
            self.watch.waiting.note(request, payer.clone());
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
