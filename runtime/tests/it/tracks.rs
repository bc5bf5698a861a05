//! Who decides what, how long that takes at most, and that no parameter can keep it from ending.

use codec::Decode;
use frame_support::{storage::with_transaction, traits::Get};
use frame_system::RawOrigin;
use pallet_referenda::{ConstTrackInfo, TracksInfo};
use sp_keyring::Sr25519Keyring::{Alice, Bob};
use sp_runtime::{
    DispatchError, Perbill, Permill, TransactionOutcome,
    traits::{BlakeTwo256, Dispatchable, Hash},
};
use surety_runtime::{
    Balance, BlockNumber, OriginCaller, Parameters, Runtime, RuntimeCall, RuntimeOrigin, RuntimeParameters,
    configs::{
        origins::Origin,
        stake::{POOL_UNBONDING_MIN, PoolUnbondingPeriod, UnbondingPeriod},
        tracks::{self, GovernanceUnit, SlashDeferral, Tracks, UNIT_MAX, UNIT_MIN, is_in_time, longest},
    },
    genesis_config_presets,
    params::dynamic::{
        auction, channels, delegation, disputes, governance, provider_registry, results, staking, trust_lock,
    },
    units::{DAYS, EPOCH_SLOTS, HOURS, MINUTES, SURE},
};

use crate::{chain::account, presets::preset, referenda};

const ORIGINS: [Origin; 6] = [
    Origin::WhitelistedCaller,
    Origin::ParameterAdmin,
    Origin::Spender,
    Origin::Treasurer,
    Origin::ReferendumCanceller,
    Origin::SlashVetoer,
];

fn set(parameter: RuntimeParameters) {
    Parameters::set_parameter(RawOrigin::Root.into(), parameter).unwrap();
}

fn unit(blocks: BlockNumber) -> RuntimeParameters {
    let parameter = governance::Parameters::GovernanceUnit(governance::GovernanceUnit, Some(blocks));
    RuntimeParameters::Governance(parameter)
}

fn deferral(blocks: BlockNumber) -> RuntimeParameters {
    let parameter = trust_lock::Parameters::SlashDeferral(trust_lock::SlashDeferral, Some(blocks));
    RuntimeParameters::TrustLock(parameter)
}

#[test]
fn tracks_take_as_long_in_production_as_is_promised() {
    let promised: [(&str, u32, Balance, [BlockNumber; 4]); 7] = [
        ("root", 2, 20_000, [DAYS, 14 * DAYS, DAYS, DAYS]),
        (
            "whitelisted",
            100,
            2_000,
            [30 * MINUTES, 3 * DAYS, HOURS, 10 * MINUTES],
        ),
        (
            "parameters",
            5,
            2_000,
            [6 * HOURS, 7 * DAYS, 12 * HOURS, 6 * HOURS],
        ),
        ("spender", 10, 50, [6 * HOURS, 7 * DAYS, 12 * HOURS, 6 * HOURS]),
        ("treasurer", 3, 2_000, [DAYS, 14 * DAYS, 2 * DAYS, DAYS]),
        (
            "canceller",
            100,
            2_000,
            [HOURS, 3 * DAYS, 3 * HOURS, 10 * MINUTES],
        ),
        (
            "slash veto",
            10_000,
            100,
            [HOURS, 12 * HOURS, 2 * HOURS, 30 * MINUTES],
        ),
    ];
    preset("testnet", || {
        let tracks: Vec<_> = Tracks::tracks().map(|track| track.into_owned()).collect();
        assert_eq!(tracks.len(), promised.len());
        for (track, (name, deciding, deposit, periods)) in tracks.iter().zip(promised) {
            let info = &track.info;
            assert_eq!(info.name, sp_runtime::str_array(name));
            assert_eq!(
                (info.max_deciding, info.decision_deposit),
                (deciding, deposit * SURE)
            );
            let all = [
                info.prepare_period,
                info.decision_period,
                info.confirm_period,
                info.min_enactment_period,
            ];
            assert_eq!(all, periods, "{name}");
            assert_eq!(Tracks::info(track.id).as_deref(), Some(info));
        }
        Tracks::check_integrity().unwrap();
    });
}

#[test]
fn every_origin_has_a_track_of_its_own_and_nobody_else_has_one() {
    let mut ids: Vec<_> = ORIGINS
        .map(|origin| Tracks::track_for(&origin.into()).unwrap())
        .to_vec();
    ids.push(Tracks::track_for(&OriginCaller::system(RawOrigin::Root)).unwrap());
    ids.sort();
    assert_eq!(ids, Tracks::track_ids().collect::<Vec<_>>());
    ids.dedup();
    assert_eq!(ids.len(), 7);
    let committee = OriginCaller::TechnicalCommittee(pallet_collective::RawOrigin::Members(7, 7));
    for nobody in [
        OriginCaller::system(RawOrigin::Signed(account(Alice))),
        OriginCaller::system(RawOrigin::None),
        committee,
    ] {
        assert_eq!(Tracks::track_for(&nobody), Err(()), "{nobody:?}");
    }
}

#[test]
fn a_veto_is_shorter_than_what_its_slash_waits_whatever_that_is() {
    for blocks in 15..=30 * DAYS {
        assert!(is_in_time(blocks), "{blocks}");
    }
    // What `is_in_time` means is not for it to say.
    for blocks in [15, 16, 47, 48, 49, HOURS, DAYS, 30 * DAYS] {
        let track = tracks::slash_veto(blocks).unwrap();
        let periods = [
            track.prepare_period,
            track.decision_period,
            track.confirm_period,
            track.min_enactment_period,
        ];
        assert!(periods.iter().all(|period| *period > 0));
        assert!(
            periods.iter().sum::<BlockNumber>() + 3 < blocks,
            "{periods:?} of {blocks}"
        );
    }
    for name in genesis_config_presets::preset_names() {
        preset(&name, || {
            let track = Tracks::info(tracks::SLASH_VETO).unwrap();
            assert!(longest(&track) + 3 < SlashDeferral::get(), "{name}");
            // No bound changes what a preset says.
            assert_eq!(SlashDeferral::get(), trust_lock::SlashDeferral::get(), "{name}");
            assert_eq!(GovernanceUnit::get(), governance::GovernanceUnit::get(), "{name}");
            assert_eq!(UnbondingPeriod::get(), staking::UnbondingPeriod::get(), "{name}");
            assert_eq!(
                PoolUnbondingPeriod::get(),
                delegation::UnbondingPeriod::get(),
                "{name}"
            );
        });
    }
}

#[test]
fn raising_the_deferral_by_half_leaves_slashes_that_wait_their_veto() {
    for before in (4 * MINUTES..=20 * DAYS).step_by(97) {
        let track = tracks::slash_veto(before + before / 2).unwrap();
        assert!(longest(&track) + 3 < before, "{before}");
        // Twice as long would be too much.
        let track = tracks::slash_veto(2 * before).unwrap();
        assert!(longest(&track) > before);
    }
}

#[test]
fn no_parameter_keeps_referenda_from_ending_or_leaves_them_no_time() {
    preset("testnet", || {
        for (said, meant) in [(0, UNIT_MIN), (9, UNIT_MIN), (HOURS, HOURS), (u32::MAX, UNIT_MAX)] {
            set(unit(said));
            assert_eq!(GovernanceUnit::get(), meant);
            for track in Tracks::tracks() {
                assert!(longest(&track.info) >= 4 && longest(&track.info) <= 18 * UNIT_MAX);
            }
        }
        for (said, meant) in [(0, 15), (14, 15), (HOURS, HOURS), (u32::MAX, 7 * DAYS / 2)] {
            set(deferral(said));
            type Deferral = <Runtime as surety_pallet_trust_lock::Config>::SlashDeferral;
            assert_eq!(<Deferral as Get<BlockNumber>>::get(), meant);
            assert!(is_in_time(meant));
        }
    });
}

#[test]
fn no_parameter_lets_stake_that_leaves_as_it_is_convicted_be_gone_when_it_is_slashed() {
    type Stakes = <Runtime as surety_pallet_staking::Config>::UnbondingPeriod;
    type Pools = <Runtime as surety_pallet_delegation::Config>::UnbondingPeriod;
    type Deferral = <Runtime as surety_pallet_trust_lock::Config>::SlashDeferral;
    let said = [0, 1, 14, 29, 30, 31, HOURS, 7 * DAYS, 60 * DAYS, u32::MAX];
    preset("testnet", || {
        for period in said {
            let stakes = staking::Parameters::UnbondingPeriod(staking::UnbondingPeriod, Some(period));
            let pools = delegation::Parameters::UnbondingPeriod(delegation::UnbondingPeriod, Some(period));
            set(RuntimeParameters::Staking(stakes));
            set(RuntimeParameters::Delegation(pools));
            for veto in said {
                set(deferral(veto));
                let stays = <Stakes as Get<BlockNumber>>::get();
                let waits = <Deferral as Get<BlockNumber>>::get();
                // So has whoever takes it out as it is convicted, or a little before.
                assert!(stays >= 2 * waits, "{period}, {veto}");
                assert!(stays == period || period < 30);
            }
            let stays = <Pools as Get<BlockNumber>>::get();
            assert_eq!(stays, period.max(POOL_UNBONDING_MIN));
            // What is signed last is reported, and from then on it stays as long as it has to.
            assert!(stays >= 2 * EPOCH_SLOTS as u32 + 15);
        }
    });
}

/// Referenda wake up when their curves say so: one that does not pass then would never wake up again.
#[test]
fn a_referendum_passes_in_the_block_that_it_wakes_up_in() {
    preset("testnet", || {
        for track in Tracks::tracks() {
            let period = track.info.decision_period;
            for curve in [&track.info.min_approval, &track.info.min_support] {
                for parts in (0..=1_000_000_000).step_by(333_667) {
                    let reached = Perbill::from_parts(parts);
                    let needed_at = |blocks| curve.threshold(Perbill::from_rational(blocks, period));
                    let woken_up = curve.delay(reached).mul_ceil(period);
                    assert!(woken_up == period || reached >= needed_at(woken_up));
                    assert!(woken_up == 0 || reached < needed_at(woken_up - 1));
                }
            }
        }
    });
}

fn periods_in_metadata() -> Vec<(u16, ConstTrackInfo<Balance, BlockNumber>)> {
    let metadata = Runtime::metadata_at_version(15).unwrap();
    let bytes: &[u8] = &metadata;
    let decoded = frame_metadata::RuntimeMetadataPrefixed::decode(&mut &*bytes).unwrap();
    let frame_metadata::RuntimeMetadata::V15(metadata) = decoded.1 else {
        panic!("not version 15")
    };
    let of = metadata
        .pallets
        .iter()
        .find(|pallet| pallet.name == "Referenda")
        .unwrap();
    let tracks = of
        .constants
        .iter()
        .find(|constant| constant.name == "Tracks")
        .unwrap();
    Decode::decode(&mut &tracks.value[..]).unwrap()
}

#[test]
fn wallets_read_the_periods_of_the_chain_that_they_talk_to() {
    for (name, root_decides) in [("development", 140), ("testnet", 14 * DAYS)] {
        let told = preset(name, periods_in_metadata);
        assert_eq!(told.len(), 7);
        assert_eq!(
            (told[0].0, told[0].1.decision_period),
            (0, root_decides),
            "{name}"
        );
    }
    // Where there is no state at all, as where the metadata's hash is made.
    let told = sp_io::TestExternalities::default().execute_with(periods_in_metadata);
    assert_eq!(told[0].1.decision_period, 14 * DAYS);
}

/// Calls that somebody beside root may make, or nobody, and who.
fn guarded() -> Vec<(RuntimeCall, Vec<Origin>)> {
    let set = referenda::set;
    let bids = auction::Parameters::BidWindow(auction::BidWindow, Some(3));
    let computing = results::Parameters::CommitWindow(results::CommitWindow, Some(3));
    let bond = staking::Parameters::MinBond(staking::MinBond, Some(1));
    // Whether strangers may provide.
    use provider_registry::{IdentityRequired, Parameters as Providers};
    let judged = Providers::IdentityRequired(IdentityRequired, Some(true));
    // With these, whoever is honest could lose its stake, or whoever lies keep it.
    let shown = results::Parameters::SupplyWindow(results::SupplyWindow, Some(1));
    let paid = results::Parameters::WorkPrice(results::WorkPrice, Some(0));
    let locked = results::Parameters::LockMultiple(results::LockMultiple, Some(0));
    let opened = auction::Parameters::LateRevealWindow(auction::LateRevealWindow, Some(0));
    let played = disputes::Parameters::DisputeClock(disputes::DisputeClock, Some(1));
    let insured = channels::Parameters::VerifiersAble(channels::VerifiersAble, Some(Permill::one()));
    let spend = pallet_treasury::Call::spend {
        asset_kind: Box::new(()),
        amount: SURE,
        beneficiary: Box::new(account(Bob).into()),
        valid_from: None,
    };
    let speed = surety_pallet_model_registry::Call::set_audit_speed {
        model: Default::default(),
        tokens: 1,
    };
    let members = pallet_collective::Call::set_members {
        new_members: vec![account(Bob)],
        prime: None,
        old_count: 4,
    };
    let code_hash = BlakeTwo256::hash(b"code");
    vec![
        (
            surety_pallet_trust_lock::Call::cancel_slash { slash: 0 }.into(),
            vec![Origin::SlashVetoer],
        ),
        (
            set(RuntimeParameters::Auction(bids)),
            vec![Origin::ParameterAdmin],
        ),
        (
            set(RuntimeParameters::Results(computing)),
            vec![Origin::ParameterAdmin],
        ),
        (set(RuntimeParameters::Staking(bond)), vec![]),
        (set(RuntimeParameters::ProviderRegistry(judged)), vec![]),
        (set(RuntimeParameters::Results(shown)), vec![]),
        (set(RuntimeParameters::Results(paid)), vec![]),
        (set(RuntimeParameters::Results(locked)), vec![]),
        (set(RuntimeParameters::Auction(opened)), vec![]),
        (set(RuntimeParameters::Disputes(played)), vec![]),
        (set(RuntimeParameters::Channels(insured)), vec![]),
        (set(unit(HOURS)), vec![]),
        (set(deferral(HOURS)), vec![]),
        (speed.into(), vec![]),
        (spend.into(), vec![Origin::Spender, Origin::Treasurer]),
        (
            pallet_treasury::Call::void_spend { index: 0 }.into(),
            vec![Origin::Treasurer],
        ),
        (
            pallet_referenda::Call::cancel { index: 0 }.into(),
            vec![Origin::ReferendumCanceller],
        ),
        (pallet_referenda::Call::kill { index: 0 }.into(), vec![]),
        (members.into(), vec![]),
        (frame_system::Call::authorize_upgrade { code_hash }.into(), vec![]),
    ]
}

#[test]
fn whoever_is_not_the_origin_of_a_call_is_refused() {
    let committee = OriginCaller::TechnicalCommittee(pallet_collective::RawOrigin::Members(7, 7));
    preset("local_testnet", || {
        let is_refused = |call: &RuntimeCall, origin: RuntimeOrigin| {
            let outcome = with_transaction(|| {
                let outcome = call.clone().dispatch(origin).map_err(|failed| failed.error);
                TransactionOutcome::Rollback(Ok::<_, DispatchError>(outcome))
            });
            // Whoever may do it may still fail for what there is not.
            outcome.unwrap().err() == Some(DispatchError::BadOrigin)
        };
        for (call, allowed) in guarded() {
            assert!(!is_refused(&call, RuntimeOrigin::root()), "{call:?}");
            for origin in ORIGINS {
                let may = allowed.contains(&origin);
                assert_eq!(
                    is_refused(&call, origin.clone().into()),
                    !may,
                    "{origin:?} {call:?}"
                );
            }
            for nobody in [
                RuntimeOrigin::signed(account(Alice)),
                RuntimeOrigin::none(),
                committee.clone().into(),
            ] {
                assert!(is_refused(&call, nobody), "{call:?}");
            }
        }
    });
}
