//! What may be asked of providers beside stake: another asset on hold, and an identity that was judged.

use codec::Compact;
use frame_support::{assert_noop, assert_ok, traits::fungibles::InspectHold};
use frame_system::RawOrigin;
use pallet_identity::{Call as Identity, Data, Judgement};
use sp_keyring::Sr25519Keyring::{self, Alice, Bob, Charlie, One};
use sp_runtime::{
    DispatchError,
    traits::{BlakeTwo256, Hash},
};
use surety_pallet_provider_registry::{Call as Registry, Error as RegistryError};
use surety_pallet_staking::{Call as Staking, Error as StakingError, HeldCollateral};
use surety_pallet_task_auction::Error as AuctionError;
use surety_runtime::{
    Assets, AssetsHolder, Balance, Balances, ProviderRegistry, Runtime, RuntimeHoldReason, RuntimeParameters,
    configs::{compute::TreasuryAccount, stake::UNBONDING_MIN},
    genesis_parameters::Overrides,
    params::{AssetId, dynamic::provider_registry},
};
use surety_types::{stake::Role, traits::StakeLedger};

use crate::{
    chain::{Chain, account, genesis},
    market::{self, BOND, PROVIDERS, device, heartbeats, post, spec},
};

const TOKEN: AssetId = 7;
const WEALTH: Balance = 5_000;
const ASKED: Balance = 1_000;

/// A dev chain whose genesis asks providers for a second token, of which Bob has some.
fn asking() -> Chain {
    let mut config = genesis(sp_genesis_builder::DEV_RUNTIME_PRESET);
    let overrides = &mut config.genesis_parameters.overrides;
    overrides.staking.collateral = Some(Some((TOKEN, ASKED)));
    overrides.staking.unbonding_period = Some(UNBONDING_MIN);
    config.assets.assets = vec![(TOKEN, account(Alice), false, 1)];
    config.assets.accounts = vec![(TOKEN, account(Bob), WEALTH)];
    Chain::with_genesis(config)
}

fn bond(amount: Balance) -> Staking<Runtime> {
    let role = Role::Provider;
    Staking::bond { role, amount }
}

/// What Bob has on hold and free.
fn token(chain: &mut Chain) -> (Balance, Balance) {
    let reason = RuntimeHoldReason::Staking(surety_pallet_staking::HoldReason::Collateral);
    let bob = account(Bob);
    chain.query(|| {
        (
            AssetsHolder::balance_on_hold(TOKEN, &reason, &bob),
            Assets::balance(TOKEN, &bob),
        )
    })
}

#[test]
fn a_requirement_of_two_tokens_is_a_setting_of_genesis() {
    let mut chain = asking();
    assert_eq!(
        chain.try_call(Charlie, bond(BOND)),
        Err(StakingError::<Runtime>::NotEnoughCollateral.into())
    );
    chain.call(Bob, bond(BOND));
    assert_eq!(token(&mut chain), (ASKED, WEALTH - ASKED));
    let (asset, amount) = (TOKEN, ASKED);
    assert_eq!(
        chain.query(|| surety_runtime::Staking::collateral(account(Bob))),
        Some(HeldCollateral { asset, amount })
    );
    // A quarter of the stake, and so of the token.
    let taken = chain.query(|| surety_runtime::Staking::seize(&account(Bob), 0, BOND / 4, &[]));
    assert_eq!(taken, BOND / 4);
    assert_eq!(token(&mut chain), (ASKED * 3 / 4, WEALTH - ASKED));
    assert_eq!(chain.query(|| Assets::total_supply(TOKEN)), WEALTH - ASKED / 4);

    let amount = BOND - BOND / 4;
    chain.call(Bob, Staking::unbond { amount });
    chain.run_to(chain.number() + UNBONDING_MIN + 5);
    assert_eq!(token(&mut chain), (ASKED * 3 / 4, WEALTH - ASKED));
    chain.call(Bob, Staking::withdraw_unbonded {});
    assert_eq!(token(&mut chain), (0, WEALTH - ASKED / 4));
}

#[test]
fn nothing_beside_stake_is_asked_for_unless_somebody_says_so() {
    for preset in surety_runtime::genesis_config_presets::preset_names() {
        let overrides = genesis(&preset).genesis_parameters.overrides;
        assert_eq!(overrides.staking.collateral, None, "{preset}");
        assert_eq!(overrides.provider_registry.identity_required, None, "{preset}");
    }
    // As a chain's specification says it.
    let overrides =
        r#"{"staking": {"collateral": [7, 1000]}, "providerRegistry": {"identityRequired": true}}"#;
    let overrides: Overrides = serde_json::from_str(overrides).unwrap();
    assert_eq!(overrides.staking.collateral, Some(Some((TOKEN, ASKED))));
    assert_eq!(overrides.provider_registry.identity_required, Some(true));
    assert_eq!(overrides.parameters().len(), 2);
}

#[test]
fn root_alone_makes_an_asset_and_nobody_one_that_keeps_accounts() {
    let mut chain = Chain::new(sp_genesis_builder::DEV_RUNTIME_PRESET);
    let id = Compact(TOKEN);
    let admin = || account(Alice).into();
    let create = pallet_assets::Call::create {
        id,
        admin: admin(),
        min_balance: 1,
    };
    assert_eq!(chain.try_call(Alice, create), Err(DispatchError::BadOrigin));
    chain.query(|| {
        let root = || RawOrigin::Root.into();
        assert_noop!(
            Assets::force_create(root(), id, admin(), true, 1),
            DispatchError::BadOrigin
        );
        assert_ok!(Assets::create(root(), id, admin(), 1));
        let asset = pallet_assets::Asset::<Runtime>::get(TOKEN).unwrap();
        assert_eq!(asset.owner, TreasuryAccount::get());
        assert!(!asset.is_sufficient);
    });
    let mint = pallet_assets::Call::mint {
        id,
        beneficiary: account(Bob).into(),
        amount: WEALTH,
    };
    chain.call(Alice, mint);
    assert_eq!(token(&mut chain), (0, WEALTH));
}

/// They would go to whoever is given the asset, out of what its owner's votes have locked.
#[test]
fn whoever_names_an_asset_deposits_nothing() {
    let mut chain = asking();
    let reserved = || Balances::reserved_balance(account(Alice));
    let before = chain.query(reserved);
    let name = pallet_assets::Call::set_metadata {
        id: Compact(TOKEN),
        name: vec![b'g'; 50],
        symbol: vec![b'G'; 50],
        decimals: 12,
    };
    chain.call(Alice, name);
    assert_eq!(chain.query(reserved), before);
}

fn require_identity(chain: &mut Chain) {
    use provider_registry::{IdentityRequired, Parameters as Of};

    let parameter = RuntimeParameters::ProviderRegistry(Of::IdentityRequired(IdentityRequired, Some(true)));
    chain.query(|| {
        let root = RawOrigin::Root.into();
        assert_ok!(surety_runtime::Parameters::set_parameter(root, parameter));
    });
}

/// Has somebody set an identity, and the only registrar judge it.
fn judge(chain: &mut Chain, who: Sr25519Keyring, judgement: Judgement<Balance>) {
    let info = <Runtime as pallet_identity::Config>::IdentityInformation::default();
    let identity = BlakeTwo256::hash_of(&info);
    let info = Box::new(info);
    chain.call(who, Identity::set_identity { info });
    let (reg_index, target) = (0, account(who).into());
    let call = Identity::provide_judgement {
        reg_index,
        target,
        judgement,
        identity,
    };
    chain.call(Alice, call);
}

fn are_available(chain: &mut Chain) -> [bool; 2] {
    heartbeats(chain);
    [Bob, Charlie].map(|stash| {
        let view = chain.query(|| ProviderRegistry::provider(account(stash)));
        view.unwrap().is_available
    })
}

#[test]
fn only_those_with_a_judged_identity_provide_where_one_is_required() {
    let mut chain = market::open();
    chain.query(|| {
        assert_ok!(surety_runtime::Identity::add_registrar(
            RawOrigin::Root.into(),
            account(Alice).into()
        ));
    });
    assert_eq!(are_available(&mut chain), [true, true]);
    require_identity(&mut chain);
    // Who provides already is given nothing from now on, and nobody comes.
    assert_eq!(are_available(&mut chain), [false, false]);
    let task = post(&mut chain, 1);
    let refused = chain.block(vec![PROVIDERS[0].sealed(task)]);
    assert_eq!(
        refused,
        [Err(AuctionError::<Runtime>::ProviderUnavailable.into())]
    );
    let register = || Registry::register {
        device: device(),
        endpoints: spec(1).sources,
    };
    assert_eq!(
        chain.try_call(PROVIDERS[0].agent, register()),
        Err(RegistryError::<Runtime>::NotAdmitted.into())
    );
    assert_eq!(
        chain.try_call(One, bond(BOND)),
        Err(StakingError::<Runtime>::NotAdmitted.into())
    );

    // One that was found wanting is none.
    judge(&mut chain, Bob, Judgement::LowQuality);
    assert_eq!(are_available(&mut chain), [false, false]);
    judge(&mut chain, Bob, Judgement::Reasonable);
    assert_eq!(are_available(&mut chain), [true, false]);
    chain.call(PROVIDERS[0].agent, register());
    let task = post(&mut chain, 1);
    market::all_ok(chain.block(vec![PROVIDERS[0].sealed(task)]));
    // It stands for those that it names its own,
    let (sub, data) = (account(Charlie).into(), Data::None);
    chain.call(Bob, Identity::add_sub { sub, data });
    assert_eq!(are_available(&mut chain), [true, true]);
    // as long as it is there.
    chain.call(Bob, Identity::clear_identity {});
    assert_eq!(are_available(&mut chain), [false, false]);
}
