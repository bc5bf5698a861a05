//! What is locked of a stash is what everybody has on record that has locked it, after each block.

use std::collections::BTreeMap;

use surety_pallet_channels::{PointsAudits, Standings};
use surety_pallet_disputes::Committees;
use surety_pallet_results::Rounds;
use surety_pallet_staking::Ledgers;
use surety_pallet_task_auction::{Bids, Tasks};
use surety_pallet_trust_lock::Slashes;
use surety_runtime::{AccountId, Balance, Runtime};
use surety_types::{task::TaskState, trust::SlashCause};

/// Has to run with a state.
pub fn assert_add_up() {
    let mut recorded: BTreeMap<AccountId, Balance> = BTreeMap::new();
    let mut record = |stash: AccountId, lock: Balance| *recorded.entry(stash).or_default() += lock;
    for (task, stash, bid) in Bids::<Runtime>::iter() {
        let state = Tasks::<Runtime>::get(task).map(|task| task.state);
        let is_sealed = matches!(
            state,
            Some(TaskState::Bidding { .. } | TaskState::Revealing { .. } | TaskState::Drawing { .. })
        );
        // An opened one has its deposit back, and one that never was has lost it.
        if is_sealed && bid.opened.is_none() {
            record(stash, bid.deposit);
        }
    }
    for round in Rounds::<Runtime>::iter_values() {
        for member in round.members {
            record(member.provider, member.lock);
        }
        for audit in round.audits {
            record(audit.verifier, audit.bond);
        }
    }
    for (stash, provider) in Standings::<Runtime>::iter() {
        record(stash, provider.lock);
    }
    for (_, verifier, audit) in PointsAudits::<Runtime>::iter() {
        record(verifier, audit.bond);
    }
    let of_bonds = |cause: &SlashCause| !matches!(cause, SlashCause::Equivocation(_));
    for slash in Slashes::<Runtime>::iter_values().filter(|slash| of_bonds(&slash.cause)) {
        record(slash.offender, slash.lock);
    }
    let funds = Committees::<Runtime>::iter_values().filter_map(|committee| committee.fund);
    for fund in funds.filter(|fund| fund.is_stake) {
        record(fund.payer, fund.left);
    }
    for (stash, ledger) in Ledgers::<Runtime>::iter() {
        let lock = recorded.remove(&stash).unwrap_or_default();
        assert_eq!(ledger.locked, lock, "{stash}");
    }
    recorded.retain(|_, lock| *lock > 0);
    assert_eq!(recorded, BTreeMap::new(), "of those who have no ledger");
}
