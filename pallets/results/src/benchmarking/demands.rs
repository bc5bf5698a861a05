//! Demands of what a provider does not serve.

use frame_benchmarking::v2::account;
use sp_core::H256;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_types::{
    limits::DEMAND_PARTS_MAX,
    model::Operation,
    task::{MemberProgress, RoundPhase},
    trust::{Content, ContentPart, Demand, DemandedParts},
};

use super::setup::{TASK, full_round};
use crate::{Config, Demands, DemandsOf, HoldReason, RoundOf, asset, calls::held};

/// As much as one demand can ask for.
pub(super) fn everything() -> DemandedParts {
    let part = |part| ContentPart {
        content: Content::Input,
        part,
    };
    DemandedParts::truncate_from((0..DEMAND_PARTS_MAX).map(part).collect())
}

/// A full round of a generation in its audit window. So many have demanded these parts of a provider.
pub(super) fn demanding_round<T: Config>(
    provider: &T::AccountId,
    parts: &DemandedParts,
    demanders: u32,
) -> RoundOf<T> {
    let until = TrustLock::<T>::now();
    let mut round = full_round::<T>(RoundPhase::Auditing { until }, |_| {
        MemberProgress::Committed(H256::repeat_byte(2))
    });
    round.terms.operation = Operation::Generate;
    round.demands_until = Some(until);
    round.demands = demanders;
    let demands = (0..demanders).map(|place| {
        let by: T::AccountId = account("demander", place, 0);
        let demand = Demand {
            demander: account("verifier", place, 1),
            by,
            parts: parts.clone(),
            price: T::Balance::from(1_000_000u32),
            until,
        };
        let amount = held(&demand);
        asset::endow::<T>(&demand.by, amount);
        frame_support::assert_ok!(asset::hold::<T>(HoldReason::Demand, &demand.by, amount));
        demand
    });
    Demands::<T>::insert(TASK, provider, DemandsOf::<T>::truncate_from(demands.collect()));
    round
}
