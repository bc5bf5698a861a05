//! Points on batches: drawn, announced, opened and ended.

use sp_core::{H256, crypto::AccountId32};
use surety_audit_economics::channels::{
    ReceiptsInput, drawn_points, points_drawn, points_mean, receipts_seed,
};
use surety_channels::{BatchNumber, PointsFound, Time, computed, points_seal, view::Wanted};
use surety_types::{
    stake::Role,
    trust::{AuditProof, FaultKind},
};

use super::{
    super::{
        blocks::genesis,
        state::{Applied, FakeState, fault},
    },
    FakePoints, convicted, event, field, refused,
};
use crate::{BatchView, ChainError, ChainEvent, EventField, FixedU128, PointsView, Refusal, checked_points};

/// Most verifiers that audit a batch.
const ANNOUNCED_MAX: u32 = 64;
/// Audits of one old batch that a commitment ends at most.
const ENDED: usize = 4;

/// A batch: the provider's stash, and which of its batches.
type Of<'a> = (&'a AccountId32, BatchNumber);

impl FakeState {
    /// What verifiers draw with: known one block after the batch.
    pub(super) fn receipts_seed(&self, batch: &BatchView) -> Option<H256> {
        let draw = &batch.draw;
        let seed = || {
            let randomness = &draw.epoch_randomness;
            receipts_seed(&genesis(), &batch.provider, batch.batch, randomness, None)
        };
        draw.seed.or_else(|| (self.number > draw.begun_at).then(seed))
    }

    pub(super) fn announce_points(
        &mut self,
        agent: &AccountId32,
        (provider, number): Of<'_>,
        proof: &AuditProof,
        seal: H256,
    ) -> Applied {
        let verifier = self.points_verifier(agent)?;
        let of = (provider.clone(), number);
        let batch = self.batch_of(&of)?.clone();
        if self.clock > batch.announce_until {
            return Err(refused("WrongTime"));
        }
        let key = (of.clone(), verifier.clone());
        if self.channels.points.contains_key(&key) {
            return Err(refused("AlreadyAnnounced"));
        }
        if batch.announced >= ANNOUNCED_MAX {
            return Err(refused("TooManyAnnounced"));
        }
        let (output, mean) = self.drawn(agent, &verifier, &batch, proof)?;
        let points = points_drawn(&output, mean);
        if points == 0 {
            return Err(refused("NotDrawn"));
        }
        let bond = self.channels.rules.point_bond.saturating_mul(points.into());
        if self.unlocked_stake(&verifier) < bond {
            return Err(fault("Staking", "NotEnoughUnlocked"));
        }
        if let Some(stake) = self.stakes.get_mut(&verifier) {
            stake.locked = stake.locked.saturating_add(bond);
        }
        let view = PointsView {
            verifier: verifier.clone(),
            bond,
            output: output.into(),
            mean,
            opened: false,
        };
        let found = None;
        let sealed = FakePoints { view, seal, found };
        self.channels.points.insert(key, sealed);
        if let Some(batch) = self.channels.batches.get_mut(&of) {
            batch.announced = batch.announced.saturating_add(1);
        }
        let fields = vec![
            field("provider", provider),
            field("batch", &number),
            field("verifier", &verifier),
            field("points", &points),
        ];
        Ok(vec![event("PointsAnnounced", fields)])
    }

    pub(super) fn demand_point(
        &mut self,
        agent: &AccountId32,
        (provider, number): Of<'_>,
        place: u32,
        proof: &AuditProof,
    ) -> Applied {
        let verifier = self.points_verifier(agent)?;
        self.standing_to_lose(provider)?;
        let of = (provider.clone(), number);
        let batch = self.batch_of(&of)?.clone();
        if self.clock > batch.window.until || batch.window.is_void {
            return Err(refused("WrongTime"));
        }
        let (output, mean) = self.drawn(agent, &verifier, &batch, proof)?;
        let points = drawn_points(&output, batch.window.root.sums.price, mean);
        let point = points.get(place as usize);
        let wanted = Wanted::Point {
            batch: number,
            point: *point.ok_or_else(|| refused("NotDrawn"))?,
        };
        // Nothing of it is final before it was shown.
        self.change_window(&of, |window| {
            window.disputes = window.disputes.saturating_add(1);
        });
        self.demand_of((provider, &verifier), [agent, &verifier], (wanted, 0))
    }

    fn points_verifier(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let verifier = self.stash_in(agent, Role::Verifier);
        let verifier = verifier.ok_or_else(|| refused("NotVerifierAgent"))?;
        match self.is_jailed(&verifier) {
            true => Err(refused("InJail")),
            false => Ok(verifier),
        }
    }

    /// What a verifier has drawn on a batch, and how many points it expected.
    fn drawn(
        &self,
        agent: &AccountId32,
        verifier: &AccountId32,
        batch: &BatchView,
        proof: &AuditProof,
    ) -> Result<([u8; 32], FixedU128), ChainError> {
        let seed = self.receipts_seed(batch);
        let seed = seed.ok_or_else(|| refused("WrongTime"))?;
        let stake = self.stakes.get(verifier);
        if stake.is_some_and(|stake| stake.settled_at > batch.draw.settled_by) {
            return Err(refused("Unsettled"));
        }
        let input = ReceiptsInput {
            seed,
            provider: batch.provider.clone(),
            batch: batch.batch,
        };
        let price = batch.window.root.sums.price;
        let output = checked_points(agent, &input, proof).filter(|_| price > 0);
        let output = output.ok_or_else(|| refused("NotDrawn"))?;
        let bonded = stake.map_or(0, |stake| stake.bonded);
        let mean = points_mean(batch.rate, price, bonded, batch.draw.verifier_stake);
        Ok((output, mean))
    }

    /// What the chain would refuse its pool does: no such call gets into a block.
    pub(super) fn open_points(
        &mut self,
        (provider, number): Of<'_>,
        verifier: &AccountId32,
        found: &PointsFound,
        salt: &H256,
    ) -> Applied {
        let of = (provider.clone(), number);
        let batch = self.channels.batches.get(&of).ok_or(Refusal::Call)?;
        if self.clock <= batch.announce_until {
            return Err(Refusal::Future.into());
        }
        if self.opened_by(batch) < self.clock {
            return Err(Refusal::Stale.into());
        }
        let now = self.clock;
        let points = self.channels.points.get_mut(&(of, verifier.clone()));
        let points = points.ok_or(Refusal::Call)?;
        if points.found.is_some() {
            return Err(Refusal::Stale.into());
        }
        let drawn = points_drawn(&points.view.output.0, points.view.mean);
        let opened = points_seal(provider, number, verifier, found, salt);
        if found.len() != drawn as usize || opened != points.seal {
            return Err(Refusal::BadProof.into());
        }
        points.found = Some((now, found.clone()));
        points.view.opened = true;
        Ok(vec![event("PointsOpened", of_points(provider, number, verifier))])
    }

    pub(super) fn end_points(&mut self, (provider, number): Of<'_>, verifier: &AccountId32) -> Applied {
        let of = (provider.clone(), number);
        let batch = self.batch_of(&of)?;
        let points = self.channels.points.get(&(of.clone(), verifier.clone()));
        let points = points.ok_or_else(|| refused("NothingAnnounced"))?;
        let until = match &points.found {
            None => self.opened_by(batch),
            Some((at, _)) => batch.window.until.max(*at),
        };
        let refutable = until.saturating_add(self.channels.rules.refute_window);
        if !batch.window.is_final(self.clock) || refutable >= self.clock {
            return Err(refused("WrongTime"));
        }
        Ok(self.end_audit(&of, verifier))
    }

    /// Last time to open what was sealed.
    pub(super) fn opened_by(&self, batch: &BatchView) -> Time {
        let supplied = self.channels.rules.supply_window;
        batch
            .window
            .until
            .max(batch.announce_until.saturating_add(supplied))
    }

    /// Ends some audits of a batch that nobody has ended.
    pub(super) fn end_some_points(&mut self, of: &(AccountId32, BatchNumber)) -> Vec<ChainEvent> {
        let audits = self.channels.points.keys().filter(|(about, _)| about == of);
        let some: Vec<_> = audits.take(ENDED).map(|(_, verifier)| verifier.clone()).collect();
        let ended = some.iter().flat_map(|verifier| self.end_audit(of, verifier));
        ended.collect()
    }

    /// Pays an audit that was opened. The bond of one that was not is lost, and stays locked until then.
    fn end_audit(&mut self, of: &(AccountId32, BatchNumber), verifier: &AccountId32) -> Vec<ChainEvent> {
        let Some(points) = self.channels.points.remove(&(of.clone(), verifier.clone())) else {
            return Vec::new();
        };
        if let Some(batch) = self.channels.batches.get_mut(of) {
            batch.announced = batch.announced.saturating_sub(1);
        }
        let (mut paid, mut events) = (0, Vec::new());
        if let Some((_, found)) = &points.found {
            let points_paid = computed(found);
            paid = self.channels.rules.point_cost.saturating_mul(points_paid.into());
            if let Some(stake) = self.stakes.get_mut(verifier) {
                stake.locked = stake.locked.saturating_sub(points.view.bond);
            }
            if let Some(funds) = self.funds.get_mut(verifier) {
                funds.free = funds.free.saturating_add(paid);
            }
        } else {
            events.push(convicted(verifier, FaultKind::AuditNoShow, None));
        }
        let mut fields = of_points(&of.0, of.1, verifier);
        fields.push(field("paid", &paid));
        events.push(event("PointsEnded", fields));
        events
    }
}

fn of_points(provider: &AccountId32, batch: BatchNumber, verifier: &AccountId32) -> Vec<EventField> {
    vec![
        field("provider", provider),
        field("batch", &batch),
        field("verifier", verifier),
    ]
}
