//! What the chain starts with, and what it says of itself.

use codec::Decode;
use frame_support::{
    assert_ok,
    traits::{Get, IntegrityTest, OnRuntimeUpgrade, fungible::Mutate},
};
use sp_core::{ed25519, sr25519};
use sp_genesis_builder::runtime_decl_for_genesis_builder::GenesisBuilder;
use sp_keyring::Sr25519Keyring::Alice;
use sp_runtime::BuildStorage;
use surety_pallet_delegation::SESSIONS_TO_LEAVE;
use surety_pallet_emission::genesis::TREASURY;
use surety_pallet_validators::Candidates;
use surety_runtime::{
    AccountId, AllPalletsWithSystem, Balances, Delegation, Emission, Parameters, Runtime,
    RuntimeGenesisConfig, RuntimeParameters, Session, SessionKeys, System, UncheckedExtrinsic, VERSION, apis,
    configs::{
        compute::TreasuryAccount,
        consensus::{SESSIONS_KEPT, VALIDATORS_MAX},
        stake::{ValidatorsMax, ValidatorsMin},
    },
    genesis_config_presets,
    params::dynamic::{
        auction, billing, delegation, disputes, emission, results, staking, trust_lock, validators,
    },
    pots,
    units::{EPOCH_SLOTS, EXISTENTIAL_DEPOSIT, HOURS, MINUTES, SLOT_MS, SURE},
};

use crate::chain::{Chain, account, genesis};

/// Reads what a preset's chain starts with.
pub fn preset<R>(name: &str, read: impl FnOnce() -> R) -> R {
    let storage = genesis(name).build_storage().unwrap();
    sp_io::TestExternalities::new(storage).execute_with(read)
}

#[test]
fn every_preset_builds_a_chain_that_holds_together() {
    let names = genesis_config_presets::preset_names();
    assert_eq!(names, ["development", "local_testnet", "testnet"]);
    for name in names {
        preset(&name, || {
            // The relations that pallets ask of their configuration, with the windows of this preset.
            AllPalletsWithSystem::integrity_test();
            for pot in pots::all() {
                let has_more = name == "testnet" && pot == TreasuryAccount::get();
                let amount = if has_more { TREASURY } else { EXISTENTIAL_DEPOSIT };
                assert_eq!(Balances::free_balance(pot), amount, "{name}");
            }
        });
    }
    assert_eq!(genesis_config_presets::get_preset(&"unknown".into()), None);
}

/// Builds a chain of a specification, as nodes do.
fn build(change: impl FnOnce(&mut RuntimeGenesisConfig)) -> Result<(), String> {
    let mut config = genesis("testnet");
    change(&mut config);
    let config = serde_json::to_vec(&config).unwrap();
    sp_io::TestExternalities::default().execute_with(|| Runtime::build_state(config))
}

#[test]
fn a_specification_that_leaves_a_pot_without_its_deposit_is_refused() {
    assert_eq!(build(|_| ()), Ok(()));
    for pot in pots::all() {
        let built = build(|config| config.balances.balances.retain(|(who, _)| *who != pot));
        // Its pallet's own genesis gives it one.
        if pot == TreasuryAccount::get() {
            assert_eq!(built, Ok(()));
            continue;
        }
        let refusal = built.unwrap_err();
        assert!(refusal.contains(&pot.to_string()), "{refusal}");
    }
}

/// Gives validators keys that are nobody's, and everybody but `kept` another account.
fn make_own(config: &mut RuntimeGenesisConfig, kept: Option<&AccountId>) {
    let rename = |who: &mut AccountId| {
        if Some(&*who) != kept {
            let mut bytes: [u8; 32] = who.clone().into();
            bytes[0] ^= 1;
            *who = bytes.into();
        }
    };
    let owners = 6;
    config
        .balances
        .balances
        .iter_mut()
        .take(owners)
        .for_each(|(who, _)| rename(who));
    config
        .vesting
        .vesting
        .iter_mut()
        .for_each(|(who, ..)| rename(who));
    config
        .delegation
        .pools
        .iter_mut()
        .for_each(|(who, ..)| rename(who));
    config.validators.candidates.iter_mut().for_each(rename);
    config.technical_committee.members.iter_mut().for_each(rename);
    for ((who, validator, keys), byte) in config.session.keys.iter_mut().zip(1..) {
        rename(who);
        rename(validator);
        *keys = SessionKeys {
            babe: sr25519::Public::from_raw([byte; 32]).into(),
            grandpa: ed25519::Public::from_raw([byte; 32]).into(),
            authority_discovery: sr25519::Public::from_raw([byte; 32]).into(),
        };
    }
}

#[test]
fn a_network_of_ones_own_leaves_nothing_to_keys_that_everybody_knows() {
    assert_eq!(build(|config| make_own(config, None)), Ok(()));
    let balances = genesis("testnet").balances.balances;
    let whose = ["0", "1", "2", "3", "founders", "launch"];
    for ((kept, _), name) in balances.iter().zip(whose) {
        let refusal = build(|config| make_own(config, Some(kept))).unwrap_err();
        assert!(
            refusal.starts_with(&format!("//Surety//testnet//{name} ")),
            "{refusal}"
        );
    }
    // Though one validator's keys are still everybody's.
    let refusal = build(|config| {
        let known = config.session.keys[0].2.clone();
        make_own(config, Some(&balances[5].0));
        config.session.keys[0].2 = known;
    });
    assert!(refusal.unwrap_err().starts_with("//Surety//testnet//launch "));
    // A seat alone.
    let refusal = build(|config| {
        make_own(config, None);
        config.technical_committee.members[0] = balances[2].0.clone();
    });
    assert!(refusal.unwrap_err().starts_with("//Surety//testnet//2 "));
}

#[test]
fn a_specification_with_an_asset_that_keeps_accounts_is_refused() {
    let with = |keeps_accounts| {
        build(move |config| config.assets.assets = vec![(7, account(Alice), keeps_accounts, 1)])
    };
    assert_eq!(with(false), Ok(()));
    assert!(with(true).unwrap_err().contains("asset 7"));
}

#[test]
fn an_upgrade_gives_each_pot_that_lacks_it_its_deposit_out_of_the_treasury() {
    type Upgrade = <Runtime as frame_system::Config>::SingleBlockMigrations;

    preset("testnet", || {
        let treasury = TreasuryAccount::get();
        for pot in pots::all() {
            Balances::set_balance(&pot, 0);
        }
        // It keeps its own.
        Balances::set_balance(&treasury, 3 * EXISTENTIAL_DEPOSIT + 1);
        let issued = Balances::total_issuance();
        Upgrade::on_runtime_upgrade();
        assert_eq!(pots::without_deposit().count(), 4);
        assert_eq!(Balances::free_balance(&treasury), EXISTENTIAL_DEPOSIT + 1);
        assert_eq!(Balances::total_issuance(), issued);

        Balances::set_balance(&treasury, SURE);
        for _ in 0..2 {
            Upgrade::on_runtime_upgrade();
            assert_eq!(pots::without_deposit().count(), 0);
            assert_eq!(Balances::free_balance(&treasury), SURE - 4 * EXISTENTIAL_DEPOSIT);
        }
    });
}

#[test]
fn validators_are_as_many_as_the_preset_says() {
    for (name, count) in [("development", 1), ("local_testnet", 3), ("testnet", 4)] {
        preset(name, || {
            assert_eq!(Session::validators().len(), count, "{name}");
            assert_eq!(pallet_babe::Authorities::<Runtime>::get().len(), count, "{name}");
            assert_eq!(
                surety_runtime::Grandpa::grandpa_authorities().len(),
                count,
                "{name}"
            );
            assert_eq!(
                surety_runtime::AuthorityDiscovery::authorities().len(),
                count,
                "{name}"
            );
        });
    }
}

#[test]
fn each_validator_has_stake_of_its_own_and_is_elected_by_it() {
    for name in genesis_config_presets::preset_names() {
        preset(&name, || {
            let validators = Session::validators();
            let (least, most) = (ValidatorsMin::get() as usize, ValidatorsMax::get() as usize);
            assert!((least..=most).contains(&validators.len()), "{name}");
            for operator in validators {
                let pool = Delegation::pool(operator.clone()).unwrap();
                // It may lose half of that and is elected all the same.
                assert!(pool.own >= 2 * delegation::MinSelfBond::get(), "{name}");
                assert_eq!(pool.backing, pool.own, "{name}");
                let candidate = Candidates::<Runtime>::get(&operator).unwrap();
                assert!(candidate.wants_to, "{name}");
            }
        });
    }
}

#[test]
fn all_that_a_preset_endows_counts_as_minted_and_leaves_room_for_what_work_earns() {
    for name in genesis_config_presets::preset_names() {
        preset(&name, || {
            let supply = Emission::supply();
            assert_eq!(supply.minted, Balances::total_issuance(), "{name}");
            // The whole rate is paid at first.
            assert!(supply.tau.is_one(), "{name}");
        });
    }
}

#[test]
fn as_many_validators_as_a_parameter_says_can_be_elected_or_as_consensus_has_room_for() {
    preset("testnet", || {
        assert_eq!((ValidatorsMin::get(), ValidatorsMax::get()), (4, 100));
        let set = |parameter| {
            let origin = frame_system::RawOrigin::Root.into();
            let parameter = RuntimeParameters::Validators(parameter);
            assert_ok!(Parameters::set_parameter(origin, parameter));
        };
        use validators::{Parameters as Of, ValidatorsMax as Most, ValidatorsMin as Least};
        set(Of::ValidatorsMax(Most, Some(5_000)));
        assert_eq!(ValidatorsMax::get(), VALIDATORS_MAX);
        set(Of::ValidatorsMax(Most, Some(7)));
        set(Of::ValidatorsMin(Least, Some(9)));
        assert_eq!((ValidatorsMin::get(), ValidatorsMax::get()), (7, 7));
        set(Of::ValidatorsMin(Least, Some(0)));
        assert_eq!(ValidatorsMin::get(), 1);
    });
}

#[test]
fn only_the_dev_chain_has_a_sudo_key() {
    let has_key = |name| preset(name, || pallet_sudo::Key::<Runtime>::get().is_some());
    assert!(has_key("development"));
    assert!(!has_key("local_testnet"));
    assert!(!has_key("testnet"));
}

#[test]
fn windows_are_short_in_development_and_long_in_production() {
    for name in ["development", "local_testnet"] {
        preset(name, || {
            assert_eq!(auction::BidWindow::get(), 8);
            assert_eq!(auction::RevealWindow::get(), 8);
            assert_eq!(auction::LateRevealWindow::get(), 45);
            assert_eq!(auction::FinishedRetention::get(), 3_600);
            assert_eq!(results::CommitWindow::get(), 45);
            assert_eq!(results::AuditWindow::get(), 12);
            assert_eq!(results::RevealWindow::get(), 45);
            assert_eq!(results::ChallengeWindow::get(), 10);
            assert_eq!(results::LockMultiple::get(), 2);
        });
    }
    preset("testnet", || {
        assert_eq!(results::ChallengeWindow::get(), 1_800);
        assert_eq!(results::LockMultiple::get(), 40);
        assert_eq!(pallet_parameters::Parameters::<Runtime>::iter().count(), 0);
    });
    preset("testnet", || {
        assert_eq!(auction::BidDeposit::get(), SURE);
        assert_eq!(billing::FeeRate::get(), sp_runtime::Permill::from_percent(5));
    });
}

/// Windows that somebody loses money by missing, in blocks.
fn costly_windows() -> [(&'static str, u32); 8] {
    [
        (
            "opening bids",
            auction::RevealWindow::get() + auction::LateRevealWindow::get(),
        ),
        ("committing", results::CommitWindow::get()),
        ("revealing", results::RevealWindow::get()),
        ("opening late", results::OpeningWindow::get()),
        ("supplying output", results::SupplyWindow::get()),
        ("supplying input", results::InputWindow::get()),
        ("a side of a dispute", disputes::DisputeClock::get()),
        ("unbonding", staking::UnbondingPeriod::get()),
    ]
}

#[test]
fn no_window_that_costs_money_is_shorter_than_a_line_may_be_down() {
    for (name, least) in [
        ("testnet", 10 * MINUTES),
        ("development", MINUTES + MINUTES / 2),
        ("local_testnet", MINUTES),
    ] {
        preset(name, || {
            for (what, window) in costly_windows() {
                assert!(window >= least, "{name}: {window} blocks for {what}");
            }
        });
    }
    preset("testnet", || {
        assert!(results::OpeningWindow::get() >= 6 * HOURS);
        assert!(results::SupplyWindow::get() >= 6 * HOURS);
        // Who opens as late as can be still has its share of a slash.
        assert!(trust_lock::SlashDeferral::get() >= results::OpeningWindow::get());
        // Nobody loses by missing it, but an audit that is not made protects nobody.
        assert!(results::AuditWindow::get() >= 10 * MINUTES);
        assert!(results::AuditWindowMax::get() >= results::AuditWindow::get());
    });
}

#[test]
fn stake_stays_until_nothing_can_come_of_what_it_did() {
    for name in genesis_config_presets::preset_names() {
        preset(&name, || {
            // What auditors demand before the reveal is shown as late as can be, a result is opened as late
            // as can be, its auditor opens as late as can be, the dispute takes all its time, and what the
            // client demands its own.
            // In each of them all of the task may have to be computed.
            let all = results::AuditWindowMax::get();
            let openings = 2 * (results::OpeningWindow::get() + all);
            let dispute = 2 * (disputes::DisputeClock::get() + all) + disputes::DecisionWindow::get();
            let demands = 2 * results::SupplyWindow::get() + all;
            let longest = results::ChallengeWindow::get() + openings + dispute + demands;
            assert!(staking::UnbondingPeriod::get() > longest, "{name}: {longest}");
        });
    }
}

#[test]
fn stake_behind_a_validator_stays_until_nothing_can_come_of_what_it_signed() {
    for name in genesis_config_presets::preset_names() {
        preset(&name, || {
            // Who stops works for two sessions more. What it signs then is slashed after the time for a veto.
            let sessions = SESSIONS_TO_LEAVE * EPOCH_SLOTS as u32;
            let longest = sessions + trust_lock::SlashDeferral::get();
            assert!(delegation::UnbondingPeriod::get() > longest, "{name}: {longest}");
        });
    }
    preset("testnet", || {
        let report = SESSIONS_KEPT * EPOCH_SLOTS as u32;
        let longest = report + trust_lock::SlashDeferral::get();
        assert!(delegation::UnbondingPeriod::get() > longest, "{longest}");
        assert_eq!(emission::RewardSessions::get(), SESSIONS_KEPT);
    });
}

#[test]
fn an_unknown_parameter_is_an_error_and_not_ignored() {
    let overrides = r#"{"auction": {"bidWindows": 3}}"#;
    let parsed = serde_json::from_str::<surety_runtime::genesis_parameters::Overrides>(overrides);
    assert!(parsed.unwrap_err().to_string().contains("bidWindows"));
}

#[test]
fn metadata_can_be_read_and_names_every_pallet_at_its_index() {
    let indices: Vec<(String, u8)> = {
        // Tracks are a constant of it, and made of parameters.
        let metadata = preset("testnet", || Runtime::metadata_at_version(15));
        let metadata = metadata.expect("version 15 is what tools read");
        let bytes: &[u8] = &metadata;
        let decoded = frame_metadata::RuntimeMetadataPrefixed::decode(&mut &*bytes).unwrap();
        let frame_metadata::RuntimeMetadata::V15(metadata) = decoded.1 else {
            panic!("not version 15")
        };
        metadata
            .pallets
            .into_iter()
            .map(|pallet| (pallet.name, pallet.index))
            .collect()
    };
    for (name, index) in [
        ("System", 0),
        ("Babe", 2),
        ("Balances", 4),
        ("Session", 6),
        ("Grandpa", 9),
        ("Parameters", 17),
        ("Sudo", 18),
        ("FinalityClock", 20),
        ("BlockEntropy", 21),
        ("Authorship", 22),
        ("GpuProofs", 23),
        ("Origins", 30),
        ("Referenda", 31),
        ("ConvictionVoting", 32),
        ("TechnicalCommittee", 33),
        ("Whitelist", 34),
        ("Treasury", 35),
        ("Vesting", 36),
        ("Assets", 37),
        ("AssetsHolder", 38),
        ("Staking", 50),
        ("ProviderRegistry", 51),
        ("ModelRegistry", 52),
        ("TaskAuction", 53),
        ("TrustLock", 54),
        ("Billing", 55),
        ("Results", 56),
        ("Disputes", 57),
        ("Channels", 58),
        ("Delegation", 60),
        ("Validators", 61),
        ("Emission", 62),
    ] {
        assert!(
            indices.contains(&(name.into(), index)),
            "{name} at {index} in {indices:?}"
        );
    }
    assert!(Runtime::metadata_versions().contains(&14));
}

#[test]
fn the_runtime_answers_what_the_worker_asks() {
    let named = |name: &str| {
        let id = sp_crypto_hashing::blake2_64(name.as_bytes());
        apis::RUNTIME_API_VERSIONS.iter().any(|(known, _)| *known == id)
    };
    for api in [
        "TaskApi",
        "ChannelApi",
        "GpuProofsApi",
        "BabeApi",
        "GrandpaApi",
        "GenesisBuilder",
        "AccountNonceApi",
        "SessionKeys",
    ] {
        assert!(named(api), "{api}");
    }
    assert_eq!(&*VERSION.spec_name, "surety");
    let mut chain = Chain::new("development");
    chain.run_to(2);
    chain.query(|| {
        assert_eq!(System::block_number(), 2);
        assert_eq!(pallet_timestamp::Now::<Runtime>::get() % SLOT_MS, 0);
    });
    // The smallest extrinsic is no extrinsic.
    assert!(UncheckedExtrinsic::decode(&mut &[0u8][..]).is_err());
}

#[test]
fn addresses_are_the_chains_own() {
    let prefix = <Runtime as frame_system::Config>::SS58Prefix::get();
    assert_eq!(prefix, 7_373);
    // No other chain has registered it.
    assert!(sp_core::crypto::Ss58AddressFormat::custom(prefix).is_custom());
}
