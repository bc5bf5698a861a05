//! The checker notices each kind of damage.

use frame_support::assert_err;
use sp_runtime::FixedU128;
use surety_channels::{Purse, Struck, view::Says};
use surety_types::traits::SoldModels;

use super::*;
use crate::{
    ChannelsBy, ChannelsOf, Demand, DemandsOf, DisputeRounds, DisputedReceipts, Offers, Payer, Payers,
    PointsAudit, PointsAudits, PointsState, Pools, Provider, Wanted,
};

/// Does `damage` to a sound state with a channel, a batch and an offer, and expects the checker to say
/// `complaint`.
#[track_caller]
fn damaged(damage: impl FnOnce(ChannelId), complaint: &'static str) {
    run_unchecked(|| {
        let channel = open(5 * SURE);
        commit(&batch(channel, 0, &[SURE]));
        assert_ok!(ChannelsPallet::offer(
            signed(stash()),
            model(1),
            Operation::Generate,
            FLOOR,
            5,
            None
        ));
        check();
        damage(channel);
        assert_err!(ChannelsPallet::do_try_state(), complaint);
    });
}

fn provider(change: impl FnOnce(&mut Provider<AccountId32>)) {
    Standings::<Test>::mutate_extant(stash(), change);
}

fn purse(channel: ChannelId, change: impl FnOnce(&mut Purse)) {
    Channels::<Test>::mutate_extant(channel, |channel| change(&mut channel.purse));
}

#[test]
fn chan_1_notices_money_that_is_not_in_the_pot() {
    let complaint = "CHAN-1: less is in the pot than channels and demands have";
    damaged(|channel| purse(channel, |purse| purse.deposit += 1), complaint);
    let demand = Demand {
        wanted: Wanted::Point { batch: 0, point: 0 },
        by: payer(),
        price: 1,
        surplus: 0,
        until: 9,
    };
    let put = |_| Demands::<Test>::insert(stash(), payer(), DemandsOf::truncate_from(vec![demand.clone()]));
    damaged(put, complaint);
}

#[test]
fn chan_2_notices_a_purse_that_has_paid_what_was_not_counted() {
    damaged(
        |channel| {
            purse(channel, |purse| {
                (purse.paid, purse.deposit) = (1, purse.deposit + 1);
            });
        },
        "CHAN-2: a purse is not sound",
    );
    damaged(
        |channel| purse(channel, |purse| purse.counted = 1),
        "CHAN-2: a purse is not sound",
    );
}

#[test]
fn chan_3_notices_who_is_paid_and_does_not_stand() {
    let no_lock = |_| provider(|provider| provider.lock = 0);
    damaged(no_lock, "CHAN-3: a channel pays who does not stand");
    damaged(
        |_| Standings::<Test>::remove(stash()),
        "CHAN-3: a channel pays who never stood",
    );
    let signers = |channel| {
        provider(|provider| (provider.lock, provider.since.channel) = (0, channel + 1));
    };
    let complaint = "CHAN-3: statements bind, or batches come from, who does not stand";
    damaged(signers, complaint);
    let leaving = |channel| {
        provider(|provider| {
            (provider.lock, provider.standing.cap, provider.is_leaving) = (0, 0, true);
            (provider.signers, provider.since.channel) = (Default::default(), channel + 1);
        });
    };
    damaged(leaving, "CHAN-3: who does not stand is still leaving");
}

#[test]
fn chan_4_notices_channels_that_are_miscounted() {
    damaged(
        |_| Payers::<Test>::insert(payer(), Payer { channels: 2 }),
        "CHAN-4: a payer's channels are miscounted",
    );
    damaged(
        |_| provider(|provider| provider.channels = 0),
        "CHAN-4: a provider's channels are miscounted",
    );
    let complaint = "CHAN-4: a channel is not found by who pays or is paid, or one that has ended is";
    damaged(|channel| ChannelsOf::<Test>::remove(stash(), channel), complaint);
    damaged(|channel| ChannelsBy::<Test>::remove(payer(), channel), complaint);
    let other = |channel| ChannelsOf::<Test>::insert(stash(), channel + 1, ());
    damaged(other, complaint);
    let twice = |channel| ChannelsBy::<Test>::insert(stash(), channel, ());
    damaged(twice, complaint);
}

#[test]
fn chan_5_notices_batches_that_are_miscounted_or_gone() {
    damaged(
        |_| provider(|provider| provider.standing.open += 1),
        "CHAN-5: batches are miscounted",
    );
    damaged(|_| Batches::<Test>::remove(stash(), 0), "CHAN-5: a batch is gone");
    damaged(
        |_| {
            provider(|provider| {
                provider.unfinished.pop();
            });
        },
        "CHAN-5: a batch is not final, and not covered",
    );
    damaged(
        |_| ChannelsPallet::change_batch(&stash(), 0, |record| record.window.until = u32::MAX),
        "CHAN-5: a batch is never final",
    );
}

#[test]
fn chan_6_notices_an_audit_of_no_batch() {
    let audit = PointsAudit {
        bond: 1,
        output: H256::zero(),
        mean: FixedU128::from_u32(1),
        state: PointsState::Sealed(H256::zero()),
    };
    damaged(
        |_| PointsAudits::<Test>::insert((stash(), 7), verifier(), audit),
        "CHAN-6: a batch's audits are miscounted, or are of no batch",
    );
    damaged(
        |_| provider(|provider| provider.audits = 1),
        "CHAN-6: a provider's audits are miscounted",
    );
}

#[test]
fn chan_7_notices_disputes_that_are_miscounted() {
    damaged(
        |_| provider(|provider| provider.disputes = 1),
        "CHAN-7: a provider's disputes are miscounted",
    );
    damaged(
        |_| provider(|provider| provider.challenged = 1),
        "CHAN-7: a provider's places for disputes are miscounted",
    );
    damaged(
        |_| DisputeRounds::<Test>::insert(stash(), (None::<BatchNumber>, 0, 0), 3),
        "CHAN-7: a round is about no receipt",
    );
    damaged(
        |channel| {
            let receipt = Struck {
                channel,
                nonce: 0,
                price: 1,
            };
            let disputed = crate::Disputed {
                provider: stash(),
                batch: None,
                receipt,
                model: model(1),
                input: (H256::zero(), 0),
                unserved: None,
            };
            DisputedReceipts::<Test>::insert(3, disputed);
        },
        "CHAN-7: a disputed receipt is not found by its name",
    );
    damaged(
        |_| {
            ChannelsPallet::change_batch(&stash(), 0, |record| record.window.disputes = 1);
        },
        "CHAN-7: a batch's disputes are miscounted",
    );
}

#[test]
fn chan_8_notices_demands_that_are_miscounted() {
    damaged(
        |_| provider(|provider| provider.demands = 1),
        "CHAN-8: a provider's demands are miscounted",
    );
    let demand = |nonce| Demand {
        wanted: Wanted::Receipt {
            channel: 0,
            nonce,
            says: Says::This(H256::zero()),
            counted: None,
        },
        by: payer(),
        price: 0,
        surplus: 0,
        until: 9,
    };
    let put = |nonces: std::ops::Range<u32>| {
        let demands = nonces.map(demand).collect::<Vec<_>>();
        Demands::<Test>::insert(stash(), payer(), DemandsOf::truncate_from(demands));
    };
    damaged(|_| put(0..1), "CHAN-8: a provider's demands are miscounted");
    let twice = |_| {
        let demands = vec![demand(0), demand(0)];
        Demands::<Test>::insert(stash(), payer(), DemandsOf::truncate_from(demands));
    };
    damaged(twice, "CHAN-8: somebody demands a receipt twice at once");
    let complaint = "CHAN-8: a channel is held by other demands than those that there are";
    let forgotten = |_| {
        put(0..1);
        provider(|provider| provider.demands = 1);
    };
    damaged(forgotten, complaint);
    damaged(|channel| purse(channel, |purse| purse.demands = 1), complaint);
    damaged(|_| put(0..0), "CHAN-8: nothing is demanded, and kept");
}

#[test]
fn chan_9_notices_an_offer_that_is_not_counted_covered_or_possible() {
    let pool = (model(1), Operation::Generate);
    let change = |change: fn(&mut crate::Offer)| {
        Offers::<Test>::mutate(stash(), pool, |offer| change(offer.as_mut().expect("offered")));
    };
    damaged(
        |_| change(|offer| offer.busy = 6),
        "CHAN-9: more places are taken, or offered, than may",
    );
    damaged(
        |_| provider(|provider| provider.places = 6),
        "CHAN-9: a provider's offers are miscounted",
    );
    damaged(
        |_| provider(|provider| provider.standing.cap = 5 * PLACE_CAP - 1),
        "CHAN-9: an offer that nobody stands behind",
    );
    damaged(
        |_| Offers::<Test>::insert(payer(), pool, crate::Offer::default()),
        "CHAN-9: an offer of who never stood",
    );
}

#[test]
fn chan_10_notices_a_pool_that_is_miscounted_or_missing() {
    let pool = (model(1), Operation::Generate);
    damaged(
        |_| Pools::<Test>::mutate_extant(pool, |pool| pool.busy = 1),
        "CHAN-10: a pool is miscounted, or nothing is in it",
    );
    damaged(
        |_| Pools::<Test>::mutate_extant(pool, |pool| pool.at += 1),
        "CHAN-10: a pool's price is not sound",
    );
    damaged(|_| Pools::<Test>::remove(pool), "CHAN-10: an offer is in no pool");
}

#[test]
fn chan_11_notices_a_model_that_may_go_or_stays_for_nothing() {
    let complaint = "CHAN-11: a model is kept for other sales than those that there are";
    damaged(|_| Registry::release(&model(1)), complaint);
    damaged(|_| Registry::acquire(&model(1)), complaint);
}
