//! Points on batches: what they pay, and when they are opened.

use surety_audit_economics::channels::{ReceiptsInput, SURE, points_drawn};
use surety_channels::{PointsFound, points_seal};
use surety_types::{stake::Role, trust::AuditProof};

use super::{super::signer, *};
use crate::{BatchView, ChainError, DispatchFault, Refusal, Signer, sample};

const BONDED: u128 = 100;

/// A verifier with all stake there is, and a batch that it has drawn points on.
struct Audit {
    world: World,
    agent: Signer,
    stash: Signer,
    batch: BatchView,
    proof: AuditProof,
    found: PointsFound,
    salt: H256,
}

impl Audit {
    async fn new() -> Self {
        let world = World::new(SURE).await;
        let (agent, stash) = (signer("//Auditor"), signer("//Verifier"));
        world.chain.change(|state| {
            let mut stake = sample::records::stake();
            stake.role = Role::Verifier;
            (stake.bonded, stake.locked, stake.settled_at) = (BONDED, 0, 0);
            state.stakes.insert(stash.account().clone(), stake);
            let of = stash.account().clone();
            state.agents.insert(agent.account().clone(), of.clone());
            state.funds.insert(of, Funds::default());
        });
        let (batch, _) = world.batch(&world.receipt(0));
        world.commit(&batch).await.unwrap();
        let open = || async { world.chain.open_batches(When::Best).await.unwrap().remove(0) };
        assert_eq!(open().await.draw.seed, None);
        world.chain.finalize();
        world.chain.finalize();
        let batch = open().await;
        let drawn = agent.draw_points(&input(&batch)).unwrap();
        // All stake is this verifier's: it expects all points.
        let count = points_drawn(&drawn.output, crate::FixedU128::from_u32(UNITS));
        assert!(count > 0, "the verifier draws nothing");
        Self {
            world,
            agent,
            stash,
            batch,
            proof: drawn.proof,
            found: vec![H256([7; 32]); count as usize].try_into().unwrap(),
            salt: H256([6; 32]),
        }
    }

    async fn submit(&self, call: Call) -> Result<crate::Included, ChainError> {
        self.world.submit(&self.agent, call).await
    }

    fn announce(&self, proof: AuditProof) -> Call {
        let (provider, batch) = (self.batch.provider.clone(), self.batch.batch);
        let verifier = self.stash.account();
        Call::AnnouncePoints {
            seal: points_seal(&provider, batch, verifier, &self.found, &self.salt),
            provider,
            batch,
            proof,
        }
    }

    fn open(&self, salt: H256) -> Call {
        Call::OpenPoints {
            provider: self.batch.provider.clone(),
            batch: self.batch.batch,
            verifier: self.stash.account().clone(),
            found: self.found.clone(),
            salt,
        }
    }

    fn end(&self) -> Call {
        Call::EndPoints {
            provider: self.batch.provider.clone(),
            batch: self.batch.batch,
            verifier: self.stash.account().clone(),
        }
    }

    fn locked(&self) -> u128 {
        let verifier = self.stash.account();
        self.world.chain.change(|state| state.stakes[verifier].locked)
    }

    /// What all points are paid.
    async fn pay(&self) -> u128 {
        let rules = self.world.chain.rules(When::Best).await.unwrap();
        rules.point_cost * self.found.len() as u128
    }
}

fn input(batch: &BatchView) -> ReceiptsInput<AccountId32> {
    ReceiptsInput {
        seed: batch.draw.seed.unwrap(),
        provider: batch.provider.clone(),
        batch: batch.batch,
    }
}

#[tokio::test]
async fn a_verifier_is_paid_for_the_points_that_it_has_drawn_and_opened() {
    let audit = Audit::new().await;
    let foreign = signer("//Foreign").draw_points(&input(&audit.batch)).unwrap();
    let not_drawn = audit.submit(audit.announce(foreign.proof)).await;
    assert_eq!(refused(not_drawn), "NotDrawn");
    audit.submit(audit.announce(audit.proof)).await.unwrap();
    let again = audit.submit(audit.announce(audit.proof)).await;
    assert_eq!(refused(again), "AlreadyAnnounced");

    let opened = |salt| audit.submit(audit.open(salt));
    assert_eq!(opened(audit.salt).await, Err(Refusal::Future.into()));
    audit.world.wait_until(audit.batch.announce_until + 1);
    assert_eq!(opened(H256::zero()).await, Err(Refusal::BadProof.into()));
    opened(audit.salt).await.unwrap();
    assert_eq!(opened(audit.salt).await, Err(Refusal::Stale.into()));
    let (provider, batch) = (&audit.batch.provider, audit.batch.batch);
    let points = audit.world.chain.points(When::Best, provider, batch).await;
    let points = points.unwrap();
    assert!(points.len() == 1 && points[0].opened);

    assert_eq!(refused(audit.submit(audit.end()).await), "WrongTime");
    let rules = audit.world.chain.rules(When::Best).await.unwrap();
    audit
        .world
        .wait_until(audit.batch.window.until + rules.refute_window + 1);
    let ended = audit.submit(audit.end()).await.unwrap();
    let paid = field::<u128>(&ended, "PointsEnded", "paid");
    assert_eq!(paid, audit.pay().await);
    assert_eq!(audit.world.funds(&audit.stash).await.free, paid);
    assert_eq!(refused(audit.submit(audit.end()).await), "NothingAnnounced");
}

#[tokio::test]
async fn points_may_be_opened_later_than_the_window_and_are_refutable_as_long_after_that() {
    let audit = Audit::new().await;
    let mut rules = audit.world.chain.rules(When::Best).await.unwrap();
    // Announcements end shortly before the window does.
    rules.supply_window = 2 * rules.batch_window;
    audit.world.chain.change(|state| state.channels.rules = rules);
    audit.submit(audit.announce(audit.proof)).await.unwrap();
    let last = audit.batch.announce_until + rules.supply_window;
    assert!(audit.batch.window.until < last);
    audit.world.wait_until(last);
    audit.submit(audit.open(audit.salt)).await.unwrap();
    audit.world.wait_until(last + rules.refute_window);
    assert_eq!(refused(audit.submit(audit.end()).await), "WrongTime");
    audit.world.chain.finalize();
    let ended = audit.submit(audit.end()).await.unwrap();
    assert_eq!(field::<u128>(&ended, "PointsEnded", "paid"), audit.pay().await);
    assert_eq!(audit.locked(), 0);
}

#[tokio::test]
async fn who_does_not_open_its_points_is_not_paid_and_loses_its_bond() {
    let audit = Audit::new().await;
    audit.submit(audit.announce(audit.proof)).await.unwrap();
    let rules = audit.world.chain.rules(When::Best).await.unwrap();
    let bond = rules.point_bond * audit.found.len() as u128;
    assert_eq!(audit.locked(), bond);
    let last = (audit.batch.announce_until + rules.supply_window).max(audit.batch.window.until);
    audit.world.wait_until(last + 1);
    let opened = audit.submit(audit.open(audit.salt)).await;
    assert_eq!(opened, Err(Refusal::Stale.into()));
    audit.world.wait_until(last + rules.refute_window + 1);
    let ended = audit.submit(audit.end()).await.unwrap();
    let offender: AccountId32 = field(&ended, "Convicted", "offender");
    assert_eq!(offender, *audit.stash.account());
    assert_eq!(field::<u128>(&ended, "PointsEnded", "paid"), 0);
    assert_eq!(audit.locked(), bond);
}

#[tokio::test]
async fn who_has_no_stake_left_for_the_bond_announces_nothing() {
    let audit = Audit::new().await;
    audit.world.chain.change(|state| {
        let stake = state.stakes.get_mut(audit.stash.account()).unwrap();
        stake.locked = BONDED - 1;
    });
    let refusal = audit.submit(audit.announce(audit.proof)).await.unwrap_err();
    let ChainError::Dispatch(DispatchFault { pallet, name, .. }) = refusal else {
        panic!("{refusal}");
    };
    assert_eq!(
        (pallet.as_deref(), name.as_str()),
        (Some("Staking"), "NotEnoughUnlocked")
    );
}
