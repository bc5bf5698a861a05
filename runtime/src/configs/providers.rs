//! What is asked of providers beside their stake: another asset on hold, and an identity that somebody has
//! judged. Neither unless governance says so.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use codec::Compact;
use frame_support::traits::{AsEnsureOriginWithArg, ConstU32, ConstU128, Get};
use frame_system::{EnsureNever, EnsureRootWithSuccess};
use pallet_identity::{IdentityOf, Judgement, SuperOf};
use surety_pallet_staking::CollateralTerms;
use surety_types::traits::Admission;

use super::compute::TreasuryAccount;
use crate::{
    AccountId, AssetsHolder, Balance, Balances, Runtime, RuntimeEvent, RuntimeHoldReason,
    params::{AssetId, dynamic},
    units::deposit,
};

impl pallet_assets::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type Balance = Balance;
    type RemoveItemsLimit = ConstU32<1_000>;
    type AssetId = AssetId;
    type AssetIdParameter = Compact<AssetId>;
    type ReserveData = ();
    type Currency = Balances;
    // They belong to the treasury, as which root can act (`Utility::dispatch_as`).
    type CreateOrigin = AsEnsureOriginWithArg<EnsureRootWithSuccess<AccountId, TreasuryAccount>>;
    // It alone could make an asset sufficient, and only agents have accounts without money (STAKE-7).
    type ForceOrigin = EnsureNever<()>;
    type AssetDeposit = ConstU128<0>;
    type AssetAccountDeposit = ConstU128<{ deposit(1, 64) }>;
    // A deposit would go to whom an asset is handed, out of what its owner's votes have locked.
    type MetadataDepositBase = ConstU128<0>;
    type MetadataDepositPerByte = ConstU128<0>;
    type ApprovalDeposit = ConstU128<{ deposit(1, 128) }>;
    type StringLimit = ConstU32<50>;
    type Freezer = ();
    type Holder = AssetsHolder;
    type Extra = ();
    type CallbackHandle = ();
    type AssetIdAllocator = ();
    type WeightInfo = pallet_assets::weights::SubstrateWeight<Runtime>;
    #[cfg(feature = "runtime-benchmarks")]
    type BenchmarkHelper = ();
}

impl pallet_assets_holder::Config for Runtime {
    type RuntimeHoldReason = RuntimeHoldReason;
    type RuntimeEvent = RuntimeEvent;
}

/// The parameter says which asset, and how much of it.
pub struct Collateral;

impl CollateralTerms<AccountId, AssetId, Balance> for Collateral {
    fn required() -> Option<(AssetId, Balance)> {
        dynamic::staking::Collateral::get()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn demand_for_benchmark(who: &AccountId) {
        benchmark::demand_collateral(who);
    }
}

/// Everybody is admitted, or, where the parameter says so, whose identity a registrar has found to be right.
/// That of an account stands for those that it has named its own, too: `MaxSubAccounts` of them.
pub struct JudgedIdentity;

impl Admission<AccountId> for JudgedIdentity {
    fn is_admitted(stash: &AccountId) -> bool {
        !dynamic::provider_registry::IdentityRequired::get()
            || is_judged(stash)
            || SuperOf::<Runtime>::get(stash).is_some_and(|(owner, _)| is_judged(&owner))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn admit_for_benchmark(stash: &AccountId) {
        benchmark::judge(stash);
    }
}

fn is_judged(who: &AccountId) -> bool {
    IdentityOf::<Runtime>::get(who).is_some_and(|identity| {
        let mut judgements = identity.judgements.iter();
        judgements.any(|(_, judgement)| matches!(judgement, Judgement::Reasonable | Judgement::KnownGood))
    })
}

#[cfg(feature = "runtime-benchmarks")]
mod benchmark {
    use alloc::vec::Vec;
    use frame_support::{
        BoundedVec, assert_ok,
        traits::{
            dynamic_params::AggregatedKeyValue,
            fungibles::{Create, Mutate},
        },
    };
    use pallet_identity::{Data, IdentityInformationProvider, Registration};
    use sp_runtime::traits::{BlakeTwo256, Hash};

    use super::*;
    use crate::{Assets, RuntimeParameters};

    fn set(parameter: RuntimeParameters) {
        let (key, value) = parameter.into_parts();
        pallet_parameters::Parameters::<Runtime>::set(key, value);
    }

    pub(super) fn demand_collateral(who: &AccountId) {
        use dynamic::staking::{Collateral as Key, Parameters};

        // The one before it, if any, has to make way.
        let asset = Key::get().map_or(0, |(asset, _)| asset.saturating_add(1));
        let amount = 1_000;
        assert_ok!(<Assets as Create<_>>::create(
            asset,
            TreasuryAccount::get(),
            false,
            1
        ));
        assert_ok!(<Assets as Mutate<_>>::mint_into(asset, who, 2 * amount));
        set(RuntimeParameters::Staking(Parameters::Collateral(
            Key,
            Some(Some((asset, amount))),
        )));
    }

    /// Its own identity is as large as it can be, and nobody vouches for it; that of who vouches for it, too.
    pub(super) fn judge(stash: &AccountId) {
        use dynamic::provider_registry::{IdentityRequired as Key, Parameters};

        let owner = AccountId::from(BlakeTwo256::hash_of(stash).0);
        for (who, judgement) in [(stash, Judgement::OutOfDate), (&owner, Judgement::Reasonable)] {
            let judgements: Vec<_> = (0..20).map(|registrar| (registrar, judgement)).collect();
            let info = <Runtime as pallet_identity::Config>::IdentityInformation::create_identity_info();
            let registration = Registration {
                judgements: BoundedVec::truncate_from(judgements),
                deposit: 0,
                info,
            };
            IdentityOf::<Runtime>::insert(who, registration);
        }
        SuperOf::<Runtime>::insert(stash, (owner, Data::None));
        set(RuntimeParameters::ProviderRegistry(Parameters::IdentityRequired(
            Key,
            Some(true),
        )));
    }
}
