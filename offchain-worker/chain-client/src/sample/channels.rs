//! Samples of the calls about channels, and for tests of what the chain says of them.

use sp_core::{H256, crypto::AccountId32};
use surety_channels::{
    Batch, BatchEntry, BatchEvidence, Batched, ChunkStatement, End, Ending, Equivocation, ReceiptLeaf,
    Request, SignedChunkStatement, SignedVoucher, Voucher,
};
use surety_proofs::SegmentOpening;
use surety_types::{model::Operation, trust::ItemLeaves};

use super::{HASH, account, trust};
use crate::{Call, ReceiptSource};

const CHANNEL: u64 = 3;
const PRICE: u128 = 8;

/// One call of each kind.
pub(super) fn calls() -> Vec<Call> {
    let (amount, expiry, places, busy) = (4, 5, 6, 1);
    let (model, operation, channel) = (HASH, Operation::Generate, CHANNEL);
    let mut calls = vec![
        Call::Open {
            payee: account(),
            key: account(),
            deposit: amount,
            expiry,
        },
        Call::TopUp { channel, amount },
        Call::Extend { channel, expiry },
        Call::Stand {
            lock: amount,
            cap: amount,
        },
        Call::Close { channel },
        Call::CloseAgreed { channel },
        Call::End { channel },
        Call::AddSigner,
        Call::ReportChunkEquivocation {
            equivocation: Box::new(Equivocation {
                one: signed(),
                other: signed(),
                shown: segment(),
            }),
        },
        Call::DemandReceipt {
            held: Box::new(signed()),
        },
        Call::EndDemand {
            provider: account(),
            demander: account(),
        },
        Call::Offer {
            model,
            operation,
            unit_price: amount,
            places,
            region: "DE".parse().ok(),
        },
        Call::WithdrawOffer { model, operation },
        Call::ReportBusy {
            model,
            operation,
            busy,
        },
    ];
    calls.extend(of_points());
    calls.extend(of_batch().unwrap_or_default());
    calls
}

fn of_points() -> Vec<Call> {
    let (provider, verifier, batch, place) = (account(), account(), 1, 2);
    vec![
        Call::AnnouncePoints {
            provider: provider.clone(),
            batch,
            proof: trust::proof(),
            seal: HASH,
        },
        Call::OpenPoints {
            provider: provider.clone(),
            batch,
            verifier: verifier.clone(),
            found: vec![HASH].try_into().unwrap_or_default(),
            salt: HASH,
        },
        Call::EndPoints {
            provider: provider.clone(),
            batch,
            verifier,
        },
        Call::DemandPoint {
            provider,
            batch,
            place,
            proof: trust::proof(),
        },
    ]
}

/// Those that show what is in a batch; nothing if there could be no such batch.
fn of_batch() -> Option<Vec<Call>> {
    let (channel, batch, place) = (CHANNEL, 1, 2);
    let whole = whole()?;
    let (root, opening) = (whole.root(), whole.open_channel(CHANNEL)?);
    let batched = Batched {
        opening: whole.open(CHANNEL, 0)?,
        statement: statement(),
    };
    let receipt = || Box::new(batched.clone());
    let leaves = ItemLeaves {
        leaves: vec![HASH].try_into().unwrap_or_default(),
        siblings: vec![HASH].try_into().unwrap_or_default(),
    };
    Some(vec![
        Call::CommitBatch { root },
        Call::Redeem {
            voucher: voucher(),
            batches: vec![(batch, opening.clone())].try_into().unwrap_or_default(),
        },
        Call::Hold {
            channel,
            batch,
            opening,
        },
        Call::ReportBatch {
            provider: account(),
            batch,
            other: Some(2),
            evidence: Box::new(BatchEvidence::Receipt {
                batched: batched.clone(),
                request: Some(request()),
            }),
        },
        Call::RefutePoints {
            provider: account(),
            batch,
            verifier: account(),
            place,
            receipt: Box::new((batched.clone(), request(), Some(leaves))),
        },
        Call::Dispute {
            receipt: Box::new(ReceiptSource::Batch(batch, batched.clone())),
            request: Box::new(request()),
            head: segment(),
        },
        Call::ShowReceipt {
            demander: account(),
            batch,
            receipt: receipt(),
            shown: segment(),
        },
        Call::ShowPoint {
            demander: account(),
            batch,
            receipt: receipt(),
            request: Box::new(request()),
            head: segment(),
        },
    ])
}

/// A batch of one receipt.
fn whole() -> Option<Batch> {
    let leaf = ReceiptLeaf {
        receipt: HASH,
        salt: HASH,
    };
    let entry = BatchEntry {
        channel: CHANNEL,
        nonce: 0,
        price: PRICE,
        leaf,
    };
    Batch::new(&[entry]).ok()
}

fn segment() -> Option<SegmentOpening> {
    SegmentOpening::new(&[1; 2000], 0)
}

fn request() -> Request {
    Request {
        model: HASH,
        operation: Operation::Generate,
        input: HASH,
        input_bytes: 4,
        units_max: 8,
        unit_price: 1,
    }
}

fn statement() -> ChunkStatement<AccountId32> {
    ChunkStatement {
        channel: CHANNEL,
        payee: account(),
        nonce: 0,
        request: HASH,
        bytes: 4,
        output: HASH,
        units: 8,
        price: PRICE,
        end: Some(Ending {
            how: End::Length,
            trace_root: HASH,
        }),
    }
}

fn signed() -> SignedChunkStatement<AccountId32> {
    SignedChunkStatement {
        statement: statement(),
        agent: account(),
        signature: [1; 64],
    }
}

fn voucher() -> SignedVoucher<AccountId32> {
    SignedVoucher {
        voucher: Voucher {
            channel: CHANNEL,
            payee: account(),
            expiry: 5,
            nonce: 0,
            request: H256([3; 32]),
            sum: PRICE,
        },
        signature: [1; 64],
    }
}

#[cfg(any(test, feature = "testsuite"))]
pub use views::*;

#[cfg(any(test, feature = "testsuite"))]
mod views {
    use sp_runtime::FixedU128;
    use surety_channels::{BatchNumber, BatchWindow, Demanded, Purse, Sums, view};
    use surety_types::TaskId;

    use super::*;
    use crate::{
        BatchView, ChannelRules, ChannelView, DemandView, DisputedView, OfferView, PointsView, PoolView,
        StandingView,
    };

    /// A channel that something was paid of.
    pub fn channel() -> ChannelView {
        ChannelView {
            channel: CHANNEL,
            payer: account(),
            payee: AccountId32::new([7; 32]),
            key: AccountId32::new([8; 32]),
            expiry: 5,
            purse: Purse {
                returned: 3,
                counted: 6,
                paid: 5,
                closing: Some(4),
                ..Purse::new(CHANNEL, 9, 2)
            },
            demanded_until: 6,
            demanded: Demanded {
                times: 5,
                requests: 3,
            },
        }
    }

    /// An offer.
    pub fn offer() -> OfferView {
        OfferView {
            provider: account(),
            model: HASH,
            operation: Operation::Embed,
            unit_price: 1,
            places: 2,
            busy: 1,
            signers: vec![account()],
            room: 4,
            region: "DE".parse().ok(),
            record: view::TrackRecord {
                settled: Sums {
                    receipts: 5,
                    price: 6,
                },
                batches: 7,
                was_convicted: true,
                faults: 8,
                missed: 9,
                settled_for: 10,
            },
        }
    }

    /// A pool.
    pub fn pool() -> PoolView {
        PoolView {
            model: HASH,
            operation: Operation::Generate,
            price: 1,
            places: 2,
            busy: 1,
        }
    }

    /// What a provider stands behind.
    pub fn standing() -> StandingView {
        StandingView {
            provider: account(),
            lock: 9,
            cap: 8,
            open: 7,
            signers: vec![account()],
            oldest: 1,
            unfinished: 2,
            next: 3,
            batched_at: 4,
            channels: 5,
            disputes: 6,
            demands: 7,
            since_channel: 8,
            since_batch: 9,
            needed_lock: Some(10),
            is_leaving: false,
        }
    }

    /// A batch; nothing if there could be no such batch.
    pub fn batch() -> Option<BatchView> {
        Some(BatchView {
            provider: account(),
            batch: 1,
            window: BatchWindow::new(whole()?.root(), 9),
            draw: super::super::trust_records::draw(),
            rate: FixedU128::from_u32(2),
            announce_until: 4,
            announced: 1,
        })
    }

    /// Demands of both kinds.
    pub fn demands() -> Vec<DemandView> {
        let receipt = view::Wanted::Receipt {
            channel: CHANNEL,
            nonce: 0,
            says: view::Says::of(&statement(), &HASH),
            counted: Some((1, 2)),
        };
        let point = view::Wanted::Point { batch: 1, point: 2 };
        let demand = |wanted| DemandView {
            provider: account(),
            demander: account(),
            wanted,
            until: 5,
        };
        [receipt, point].into_iter().map(demand).collect()
    }

    /// Rounds about a receipt of a batch, and about one that was only signed.
    pub fn disputed() -> Vec<DisputedView> {
        let round = |(round, batch): (TaskId, Option<BatchNumber>)| DisputedView {
            round,
            batch,
            channel: CHANNEL,
            nonce: 2,
            is_challenged: batch.is_none(),
        };
        [(5, Some(1)), (6, None)].into_iter().map(round).collect()
    }

    /// A verifier's points.
    pub fn points() -> PointsView {
        PointsView {
            verifier: account(),
            bond: 1,
            output: HASH,
            mean: FixedU128::from_u32(3),
            opened: true,
        }
    }

    /// What everybody works by.
    pub fn rules() -> ChannelRules {
        ChannelRules {
            min_deposit: 1,
            max_life: 2,
            closing_period: 3,
            batch_window: 4,
            announce_window: 5,
            refute_window: 6,
            redeem_by: 7,
            supply_window: 8,
            dispute_window: 9,
            demand_price: 10,
            point_bond: 11,
            point_cost: 12,
        }
    }
}
