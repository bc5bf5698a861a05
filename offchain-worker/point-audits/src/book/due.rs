//! What is due.

use surety_chain_client::{Call, ReceiptSource};
use surety_channels::{points_seal, view::Wanted};

use super::{Action, BatchKey, Book, Purpose, Sight, Work, entry::Entry};

impl Book {
    /// Receipts that have to be looked at, those of the batches first whose time is over first.
    pub(super) fn work(&mut self, sight: &Sight, actions: &mut Vec<Action>) {
        let limits = self.verifier.limits;
        let working = self.entries.values().filter(|entry| entry.is_working).count();
        let mut due: Vec<_> = self
            .entries
            .values_mut()
            .filter(|entry| !entry.is_working && entry.next_try.is_some_and(|at| at <= sight.time))
            .filter_map(|entry| {
                let last = last_time(entry, sight, limits.margin)?;
                let open = entry.open();
                (!open.is_empty()).then_some((last, entry, open))
            })
            .collect();
        due.sort_by_key(|(last, ..)| *last);
        for (_, entry, open) in due.into_iter().take(limits.working_max.saturating_sub(working)) {
            let (Some(view), Some(drawn)) = (&entry.view, &entry.drawn) else {
                continue;
            };
            actions.push(Action::Work(Box::new(Work {
                view: view.clone(),
                proof: drawn.proof,
                seed: drawn.seed,
                open,
                points: drawn.points.clone(),
            })));
            entry.is_working = true;
        }
    }

    /// Calls that have to be sent.
    pub(super) fn calls(&self, sight: &Sight, actions: &mut Vec<Action>) {
        for (key, entry) in &self.entries {
            if entry.gone_since.is_none() {
                self.points(key, entry, sight, actions);
                self.faults(key, entry, sight, actions);
                self.demand(key, entry, sight, actions);
            }
        }
        for demand in &sight.demands {
            let is_ours =
                demand.demander == self.verifier.stash && matches!(demand.wanted, Wanted::Point { .. });
            if is_ours && demand.until < sight.time {
                let call = Call::EndDemand {
                    provider: demand.provider.clone(),
                    demander: demand.demander.clone(),
                };
                actions.push(send(Purpose::EndDemand(demand.provider.clone()), call));
            }
        }
    }

    /// What becomes of our own points.
    fn points(&self, key: &BatchKey, entry: &Entry, sight: &Sight, actions: &mut Vec<Action>) {
        let Some(view) = &entry.view else { return };
        let ((provider, batch), verifier) = (key.clone(), self.verifier.stash.clone());
        let Some(shown) = &entry.shown else {
            let is_time = sight.time.saturating_add(self.verifier.limits.margin) <= view.announce_until;
            let is_kept = entry.is_written && entry.unable.is_empty();
            let may = is_time && !entry.is_not_announced && sight.stake.is_some() && is_kept;
            let found = entry.all_found().filter(|_| may);
            if let Some((found, drawn)) = found.zip(entry.drawn.as_ref()) {
                let seal = points_seal(&provider, batch, &verifier, &found, &self.salt(key));
                let call = Call::AnnouncePoints {
                    provider,
                    batch,
                    proof: drawn.proof,
                    seal,
                };
                actions.push(send(Purpose::Announce(key.clone()), call));
            }
            return;
        };
        if shown.opened {
            let since = view.window.until.max(entry.opened_at.unwrap_or(0));
            let refutable = since.saturating_add(sight.rules.refute_window);
            if view.window.is_final(sight.time) && refutable < sight.time {
                let call = Call::EndPoints {
                    provider,
                    batch,
                    verifier,
                };
                actions.push(send(Purpose::End(key.clone()), call));
            }
        } else if view.announce_until < sight.time
            && sight.time <= entry.open_until()
            && let Some(found) = entry.all_found()
        {
            let call = Call::OpenPoints {
                provider,
                batch,
                verifier,
                found,
                salt: self.salt(key),
            };
            actions.push(send(Purpose::Open(key.clone()), call));
        }
    }

    /// What its provider has done.
    fn faults(&self, key: &BatchKey, entry: &Entry, sight: &Sight, actions: &mut Vec<Action>) {
        let Some(view) = &entry.view else { return };
        let window = &view.window;
        if window.is_void || window.is_final(sight.time) {
            return;
        }
        let (provider, batch) = key.clone();
        if let Some(evidence) = &entry.faulty {
            let call = Call::ReportBatch {
                provider: provider.clone(),
                batch,
                other: None,
                evidence: evidence.clone(),
            };
            actions.push(send(Purpose::Report(key.clone()), call));
        }
        for receipt in &entry.wrong {
            let statement = &receipt.batched.statement;
            let (channel, nonce) = (statement.channel, statement.nonce);
            if entry.disputed.contains_key(&(channel, nonce)) || window.has_struck(channel, nonce) {
                continue;
            }
            let call = Call::Dispute {
                receipt: Box::new(ReceiptSource::Batch(batch, receipt.batched.clone())),
                request: Box::new(receipt.request.clone()),
                head: receipt.head(),
            };
            actions.push(send(Purpose::Dispute(key.clone(), channel, nonce), call));
        }
    }

    /// Demands what was not shown: all that is left of the batch, as its window does not wait.
    fn demand(&self, key: &BatchKey, entry: &Entry, sight: &Sight, actions: &mut Vec<Action>) {
        let Some(view) = &entry.view else { return };
        let (provider, batch) = key.clone();
        let limits = self.verifier.limits;
        let is_time = sight.time.saturating_add(limits.margin) <= view.window.until && !view.window.is_void;
        if let (Some((unserved, tries)), Some(drawn)) = (entry.unserved, &entry.drawn)
            && is_time
            && sight.stake.is_some()
            && !entry.is_working
            && (tries >= limits.tries_max || last_time(entry, sight, limits.margin).is_none())
        {
            let known = |point: u128| {
                let wanted = Wanted::Point { batch, point };
                let mut demands = sight.demands.iter();
                demands.any(|demand| demand.provider == provider && demand.wanted == wanted)
            };
            let open = entry.open().into_iter();
            // What the machine has failed at was shown, if that is before what was not: what comes after may
            // not have been asked for again.
            let open = open.filter(|(place, point)| *place >= unserved || !entry.failed.contains_key(point));
            for (place, _) in open.filter(|(place, point)| !entry.demanded.contains(place) && !known(*point))
            {
                let call = Call::DemandPoint {
                    provider: provider.clone(),
                    batch,
                    place,
                    proof: drawn.proof,
                };
                actions.push(send(Purpose::Demand(key.clone(), place), call));
            }
        }
    }
}

/// The last time at which something that is computed now is of use; nothing where that is over. What was
/// announced has to be opened.
fn last_time(entry: &Entry, sight: &Sight, margin: u32) -> Option<u32> {
    let view = entry.view.as_ref()?;
    match &entry.shown {
        Some(shown) => (!shown.opened && sight.time <= entry.open_until()).then_some(0),
        None if entry.is_not_announced => None,
        None => (sight.time.saturating_add(margin) <= view.announce_until).then_some(view.announce_until),
    }
}

fn send(purpose: Purpose, call: Call) -> Action {
    Action::Send(purpose, Box::new(call))
}
