//! One batch.

use std::collections::{BTreeMap, BTreeSet};

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use sp_runtime::FixedU128;
use surety_audit_economics::channels::{ReceiptsInput, drawn_points, points_mean};
use surety_chain_client::{BatchView, BlockNumber, PointsView, VrfDraw};
use surety_channel_calls::AccountId;
use surety_channels::{BatchEvidence, ChannelId, NOT_COMPUTED, Nonce, PointsFound, Time, computed};
use surety_types::trust::AuditProof;

use super::{Kept, Limits, Sight, Stake, Unserved, Went};
use crate::shown::Receipt;

/// Verifiers begin at places of their own in this part of the time that is left: a provider shows only a few
/// of them something at once.
const BEGIN_PART: Time = 4;

/// Begins what is hashed into such a place.
const BEGIN: &[u8] = b"surety-points-begin";

/// What was drawn on a batch.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub seed: H256,
    pub proof: AuditProof,
    output: H256,
    mean: FixedU128,
    pub points: Vec<u128>,
}

/// What was begun about a batch.
#[derive(Default)]
pub(super) struct Entry {
    /// As the newest block has it; nothing between a restart and the first.
    pub view: Option<BatchView>,
    /// Our points, as the chain shows them.
    pub shown: Option<PointsView>,
    pub drawn: Option<Drawn>,
    /// The seed that `found` is for.
    found_for: Option<H256>,
    pub found: BTreeMap<u128, H256>,
    pub wrong: Vec<Receipt>,
    pub faulty: Option<Box<BatchEvidence<AccountId>>>,
    /// How disputes of receipts went that were settled.
    pub disputed: BTreeMap<(ChannelId, Nonce), Went>,
    /// The journal has a row of it.
    pub is_in_journal: bool,
    /// And that row has all of it.
    pub is_written: bool,
    pub is_working: bool,
    /// Points in receipts that cannot be computed here, until they are announced as that: a restart tries
    /// them again.
    pub unable: BTreeSet<u128>,
    /// Points in receipts at which the machine has failed, and how often.
    pub failed: BTreeMap<u128, u32>,
    /// The chain takes no announcement.
    pub is_not_announced: bool,
    /// Places of points whose receipts were demanded.
    pub demanded: BTreeSet<u32>,
    /// The place of a point whose receipt was not shown, and how often it was not.
    pub unserved: Option<(u32, u32)>,
    /// When receipts are asked for; nothing before the points are drawn.
    pub next_try: Option<Time>,
    /// As long after the time for announcements as a provider has for what it owes.
    supplied: Time,
    /// When our points were first seen to be opened: from then on they can be refuted.
    pub opened_at: Option<Time>,
    pub gone_since: Option<BlockNumber>,
}

impl Entry {
    pub fn from_journal(kept: Kept) -> Self {
        Self {
            found_for: Some(kept.seed),
            found: kept.found.into_iter().collect(),
            wrong: kept.wrong,
            is_in_journal: true,
            is_written: true,
            ..Self::default()
        }
    }

    pub fn seed(&self) -> Option<H256> {
        self.drawn.as_ref().map(|drawn| drawn.seed)
    }

    /// Whether its further life matters.
    pub fn is_followed(&self) -> bool {
        let is_drawn = self.drawn.as_ref().is_some_and(|drawn| !drawn.points.is_empty());
        is_drawn || self.is_in_journal || self.shown.is_some() || self.view.is_none()
    }

    /// Whether it was announced, or may have been.
    pub fn may_be_announced(&self) -> bool {
        self.shown.is_some() || self.view.is_none() || (self.is_written && self.all_found().is_some())
    }

    /// Whether nothing is lost with it.
    pub fn holds_nothing(&self) -> bool {
        !self.is_in_journal && self.shown.is_none() && !self.is_working && self.demanded.is_empty()
    }

    /// Whether nothing more comes of it.
    pub fn is_over(&self, time: Time) -> bool {
        let is_final = self.view.as_ref().is_some_and(|view| view.window.is_final(time));
        is_final && self.shown.is_none()
    }

    /// Takes in what a block says of it.
    pub fn see(
        &mut self,
        view: &BatchView,
        shown: Option<&PointsView>,
        sight: &Sight,
        draw: &dyn Fn(&ReceiptsInput<AccountId>) -> Option<VrfDraw>,
    ) {
        self.view = Some(view.clone());
        self.shown = shown.cloned();
        self.supplied = view.announce_until.saturating_add(sight.rules.supply_window);
        let opened = shown.filter(|shown| shown.opened);
        self.opened_at = opened.map(|_| self.opened_at.unwrap_or(sight.time));
        let Some(seed) = view.draw.seed else { return };
        let known = self.drawn.as_ref().filter(|drawn| drawn.seed == seed);
        let (output, proof) = match known {
            Some(drawn) => (drawn.output, drawn.proof),
            None if shown.is_none() && !may_draw(view, sight) => return,
            None => {
                let input = ReceiptsInput {
                    seed,
                    provider: view.provider.clone(),
                    batch: view.batch,
                };
                let Some(VrfDraw { output, proof }) = draw(&input) else {
                    return;
                };
                (H256(output), proof)
            }
        };
        // What was announced stands, whatever the stake is by now.
        let mean = match (shown, sight.stake, known) {
            (Some(shown), ..) => shown.mean,
            (None, Some(stake), _) if is_settled(view, stake) => mean(view, stake),
            (None, _, Some(drawn)) => drawn.mean,
            (None, ..) => FixedU128::default(),
        };
        if known.is_none_or(|drawn| drawn.mean != mean) {
            let price = view.window.root.sums.price;
            self.drawn = Some(Drawn {
                seed,
                proof,
                output,
                mean,
                points: drawn_points(&output.0, price, mean),
            });
            // What is announced of other points is not what was written down of these.
            self.unable.clear();
        }
        if self.found_for.replace(seed).is_some_and(|of| of != seed) {
            self.found.clear();
            self.unable.clear();
            self.failed.clear();
            (self.unserved, self.next_try) = (None, None);
        }
    }

    /// Chooses when to begin, by our own draw. What was announced before a loss is computed again at once.
    pub fn begin(&mut self, time: Time, margin: Time) {
        let (None, Some(drawn)) = (self.next_try, &self.drawn) else {
            return;
        };
        let part = match self.shown {
            Some(_) => 0,
            None => self.time_left(time, margin).checked_div(BEGIN_PART).unwrap_or(0),
        };
        // Points are drawn from the output too: a hash of it says nothing of them.
        let [one, two, three, four, ..] = blake2_256(&(BEGIN, drawn.output).encode());
        let dice = u32::from_le_bytes([one, two, three, four]);
        let after = dice.checked_rem(part.saturating_add(1)).unwrap_or(0);
        self.next_try = Some(time.saturating_add(after));
    }

    /// Points that are still to be looked at, each with its place.
    pub fn open(&self) -> Vec<(u32, u128)> {
        let points = self.drawn.iter().flat_map(|drawn| (0u32..).zip(&drawn.points));
        let open =
            points.filter(|(_, point)| !self.found.contains_key(point) && !self.unable.contains(point));
        open.map(|(place, point)| (place, *point)).collect()
    }

    /// Takes note of points in receipts at which the machine has failed: after a few times, or where no time
    /// is left, they cannot be computed here.
    pub fn note_failed(&mut self, points: BTreeSet<u128>, time: Time, limits: &Limits) {
        let pause = self.pause(time, limits);
        for point in points {
            let times = self.failed.get(&point).map_or(1, |times| times.saturating_add(1));
            if times >= limits.tries_max || pause == 0 {
                self.failed.remove(&point);
                self.unable.insert(point);
            } else {
                self.failed.insert(point, times);
                self.next_try = self.next_try.max(Some(time.saturating_add(pause)));
            }
        }
    }

    /// Once all is there that is announced, what cannot be computed is what is sealed: it has to be known
    /// again after a restart, whatever can be computed by then. Whether there is any.
    pub fn seal_unable(&mut self) -> bool {
        if self.unable.is_empty() || self.shown.is_some() || self.all_found().is_none() {
            return false;
        }
        for point in std::mem::take(&mut self.unable) {
            self.found.entry(point).or_insert(NOT_COMPUTED);
        }
        true
    }

    /// What was found, if each point was looked at and something was computed.
    pub fn all_found(&self) -> Option<PointsFound> {
        let points = &self
            .drawn
            .as_ref()
            .filter(|drawn| !drawn.points.is_empty())?
            .points;
        let found: Option<Vec<H256>> = points.iter().map(|point| self.found_at(point)).collect();
        let found = found?.try_into().ok()?;
        (computed(&found) > 0).then_some(found)
    }

    fn found_at(&self, point: &u128) -> Option<H256> {
        let found = self.found.get(point).copied();
        found.or_else(|| self.unable.contains(point).then_some(NOT_COMPUTED))
    }

    /// Takes note of what was not shown.
    pub fn note_tries(&mut self, unserved: Option<Unserved>, time: Time, limits: &Limits) {
        let open = self.open();
        let before = self
            .unserved
            .filter(|(place, _)| open.iter().any(|(of, _)| of == place));
        self.unserved = before;
        let Some(Unserved { place, is_busy }) = unserved else {
            return;
        };
        let tries = before
            .filter(|(of, _)| *of == place)
            .map_or(0, |(_, tries)| tries);
        self.unserved = Some((place, tries.saturating_add(u32::from(!is_busy))));
        let pause = match is_busy {
            true => 1,
            false => self.pause(time, limits),
        };
        self.next_try = Some(time.saturating_add(pause.max(1)));
    }

    fn pause(&self, time: Time, limits: &Limits) -> Time {
        let left = self.time_left(time, limits.margin);
        left.checked_div(limits.tries_max).unwrap_or(0)
    }

    /// The last time at which the chain takes an opening, of a batch that is final, too.
    pub fn open_until(&self) -> Time {
        let until = self.view.as_ref().map_or(0, |view| view.window.until);
        until.max(self.supplied)
    }

    /// Until the last time at which something computed is of use.
    fn time_left(&self, time: Time, margin: Time) -> Time {
        let Some(view) = &self.view else { return 0 };
        let lasts = match self.shown {
            None => [view.announce_until; 2],
            // What is not shown is demanded before the first, and opened until the second.
            Some(_) => [view.window.until.min(self.supplied), self.supplied],
        };
        let left = lasts.map(|last| last.saturating_sub(margin).saturating_sub(time));
        left.into_iter().find(|left| *left > 0).unwrap_or(0)
    }
}

fn may_draw(view: &BatchView, sight: &Sight) -> bool {
    let is_settled = sight.stake.is_some_and(|stake| is_settled(view, stake));
    is_settled && sight.time <= view.announce_until && view.window.root.sums.price > 0
}

/// Whether the stake was there before the draw could be known.
fn is_settled(view: &BatchView, stake: Stake) -> bool {
    stake.settled_at <= view.draw.settled_by
}

fn mean(view: &BatchView, stake: Stake) -> FixedU128 {
    let price = view.window.root.sums.price;
    points_mean(view.rate, price, stake.bonded, view.draw.verifier_stake)
}
