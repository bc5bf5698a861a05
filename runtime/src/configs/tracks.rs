//! Tracks of referenda: who speaks, what has to be put down, how long it takes, and how much of SURE has to
//! agree. ADR 40 has them as a table.
//!
//! Periods are parts and multiples of two parameters, so that a devnet decides in minutes, and no veto takes
//! longer than the slash waits that it is about. They are in blocks of the chain, as everything of referenda
//! is; a slash waits by the running clock, which is the slower one.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use alloc::borrow::Cow;
use frame_support::{parameter_types, traits::Get};
use frame_system::RawOrigin;
use pallet_referenda::{Curve, Track, TrackInfo, TracksInfo};
use sp_runtime::{Perbill, str_array};

use super::{origins::Origin, stake::UnbondingPeriod};
use crate::{
    Balance, BlockNumber, OriginCaller,
    params::dynamic::{governance, trust_lock},
    units::{DAYS, SURE},
};

/// Shortest unit: shorter ones would leave nobody a block to vote in.
pub const UNIT_MIN: BlockNumber = 10;

/// Longest unit. With a longer one nobody could soon make it shorter again: root takes 17 of them.
pub const UNIT_MAX: BlockNumber = 7 * DAYS;

/// Shortest time for a veto: that of the devnets.
pub const DEFERRAL_MIN: BlockNumber = 15;

/// Longest time for a veto, where stake takes longer still to unbond.
pub const DEFERRAL_MAX: BlockNumber = 30 * DAYS;

parameter_types! {
    /// What all periods but a veto's are made of, in blocks of the chain.
    pub GovernanceUnit: BlockNumber = governance::GovernanceUnit::get().clamp(UNIT_MIN, UNIT_MAX);
    /// How long slashes wait for a veto, in blocks of the running clock. Half as long as stake takes to
    /// unbond: whoever takes it out as it is convicted, or a little before, has it still when it is slashed.
    pub SlashDeferral: BlockNumber = trust_lock::SlashDeferral::get()
        .min(UnbondingPeriod::get() / 2)
        .clamp(DEFERRAL_MIN, DEFERRAL_MAX);
}

/// What tracks are known by.
pub type TrackId = u16;

/// Root's track.
pub const ROOT: TrackId = 0;
/// For calls that the technical committee has whitelisted.
pub const WHITELISTED: TrackId = 1;
/// For parameters of work and its price.
pub const PARAMETERS: TrackId = 2;
/// For small payments.
pub const SPENDER: TrackId = 3;
/// For large ones.
pub const TREASURER: TrackId = 4;
/// For ending another referendum.
pub const CANCELLER: TrackId = 5;
/// For vetoes.
pub const SLASH_VETO: TrackId = 10;

/// Blocks by which referenda may wake up later than they have to.
pub const ALARM_INTERVAL: BlockNumber = 1;

/// So many of what the track's periods are made of: a fraction.
type Part = (u32, u32);

/// Per mille that are needed as a decision begins, and as it ends.
type Needed = (u32, u32);

struct Terms {
    id: TrackId,
    name: &'static str,
    deciding_max: u32,
    deposit: Balance,
    prepare: Part,
    decide: Part,
    confirm: Part,
    enact: Part,
    /// Of the votes.
    approval: Needed,
    /// Of all SURE.
    support: Needed,
}

static TERMS: [Terms; 7] = [
    Terms {
        id: ROOT,
        name: "root",
        deciding_max: 2,
        deposit: 20_000 * SURE,
        prepare: (1, 1),
        decide: (14, 1),
        confirm: (1, 1),
        enact: (1, 1),
        approval: (800, 500),
        support: (400, 50),
    },
    Terms {
        id: WHITELISTED,
        name: "whitelisted",
        deciding_max: 100,
        deposit: 2_000 * SURE,
        prepare: (1, 48),
        decide: (3, 1),
        confirm: (1, 24),
        enact: (1, 144),
        approval: (800, 500),
        support: (200, 10),
    },
    Terms {
        id: PARAMETERS,
        name: "parameters",
        deciding_max: 5,
        deposit: 2_000 * SURE,
        prepare: (1, 4),
        decide: (7, 1),
        confirm: (1, 2),
        enact: (1, 4),
        approval: (750, 500),
        support: (200, 20),
    },
    Terms {
        id: SPENDER,
        name: "spender",
        deciding_max: 10,
        deposit: 50 * SURE,
        prepare: (1, 4),
        decide: (7, 1),
        confirm: (1, 2),
        enact: (1, 4),
        approval: (750, 500),
        support: (100, 5),
    },
    Terms {
        id: TREASURER,
        name: "treasurer",
        deciding_max: 3,
        deposit: 2_000 * SURE,
        prepare: (1, 1),
        decide: (14, 1),
        confirm: (2, 1),
        enact: (1, 1),
        approval: (800, 500),
        support: (300, 40),
    },
    Terms {
        id: CANCELLER,
        name: "canceller",
        deciding_max: 100,
        deposit: 2_000 * SURE,
        prepare: (1, 24),
        decide: (3, 1),
        confirm: (1, 8),
        enact: (1, 144),
        approval: (900, 500),
        support: (100, 10),
    },
    // Of what a slash waits: 31 parts of 48 in all. Who finds sham ones in all places waits until one is
    // over, which is too late: to have them all costs 100,000 SURE, and ten times as much for half a day.
    Terms {
        id: SLASH_VETO,
        name: "slash veto",
        deciding_max: 10_000,
        deposit: 100 * SURE,
        prepare: (1, 24),
        decide: (1, 2),
        confirm: (1, 12),
        enact: (1, 48),
        approval: (750, 500),
        support: (200, 30),
    },
];

impl Terms {
    fn info(&self, unit: BlockNumber, deferral: BlockNumber) -> TrackInfo<Balance, BlockNumber> {
        let whole = if self.id == SLASH_VETO { deferral } else { unit };
        let period = |(parts, of): Part| (whole.saturating_mul(parts) / of).max(1);
        TrackInfo {
            name: str_array(self.name),
            max_deciding: self.deciding_max,
            decision_deposit: self.deposit,
            prepare_period: period(self.prepare),
            decision_period: period(self.decide),
            confirm_period: period(self.confirm),
            min_enactment_period: period(self.enact),
            min_approval: curve(self.approval),
            min_support: curve(self.support),
        }
    }
}

/// Falls from one to the other over the whole decision.
fn curve((begin, end): Needed) -> Curve {
    Curve::LinearDecreasing {
        length: Perbill::one(),
        floor: Perbill::from_perthousand(end),
        ceil: Perbill::from_perthousand(begin),
    }
}

/// The track of vetoes where slashes wait so long.
pub fn slash_veto(deferral: BlockNumber) -> Option<TrackInfo<Balance, BlockNumber>> {
    let terms = TERMS.iter().find(|terms| terms.id == SLASH_VETO)?;
    Some(terms.info(UNIT_MIN, deferral))
}

/// Most blocks from a referendum's submission to its call, where a place is free when it is prepared.
pub fn longest(track: &TrackInfo<Balance, BlockNumber>) -> BlockNumber {
    track
        .prepare_period
        .saturating_add(track.decision_period)
        .saturating_add(track.confirm_period)
        .saturating_add(track.min_enactment_period)
}

/// Whether a veto that takes all its time still comes before its slash: with the last alarm, and a block each
/// for submitting it and for the call that it makes.
pub fn is_in_time(deferral: BlockNumber) -> bool {
    slash_veto(deferral).is_some_and(|track| longest(&track) + ALARM_INTERVAL + 2 < deferral)
}

/// The tracks, as the parameters are now.
pub struct Tracks;

impl TracksInfo<Balance, BlockNumber> for Tracks {
    type Id = TrackId;
    type RuntimeOrigin = OriginCaller;

    fn tracks() -> impl Iterator<Item = Cow<'static, Track<Self::Id, Balance, BlockNumber>>> {
        let (unit, deferral) = (GovernanceUnit::get(), SlashDeferral::get());
        TERMS.iter().map(move |terms| {
            Cow::Owned(Track {
                id: terms.id,
                info: terms.info(unit, deferral),
            })
        })
    }

    fn track_ids() -> impl Iterator<Item = Self::Id> {
        TERMS.iter().map(|terms| terms.id)
    }

    fn info(id: Self::Id) -> Option<Cow<'static, TrackInfo<Balance, BlockNumber>>> {
        let terms = TERMS.iter().find(|terms| terms.id == id)?;
        let info = terms.info(GovernanceUnit::get(), SlashDeferral::get());
        Some(Cow::Owned(info))
    }

    fn track_for(origin: &OriginCaller) -> Result<Self::Id, ()> {
        Ok(match origin {
            OriginCaller::system(RawOrigin::Root) => ROOT,
            OriginCaller::Origins(origin) => match origin {
                Origin::WhitelistedCaller => WHITELISTED,
                Origin::ParameterAdmin => PARAMETERS,
                Origin::Spender => SPENDER,
                Origin::Treasurer => TREASURER,
                Origin::ReferendumCanceller => CANCELLER,
                Origin::SlashVetoer => SLASH_VETO,
            },
            _ => return Err(()),
        })
    }
}
