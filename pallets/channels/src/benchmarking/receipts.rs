//! Receipts, and openings of them that take longest to be found right.

use alloc::vec;

use codec::Encode;
use frame_benchmarking::v2::account;
use frame_support::{BoundedVec, traits::Get};
use sp_core::H256;
use sp_runtime::traits::{BlakeTwo256, Hash};
use surety_channels::{
    BatchEvidence, BatchNumber, BatchRoot, Batched, ChannelOpening, ChunkStatement, End, Ending,
    Equivocation, Nonce, RECEIPTS_MAX, REDEEMED_MAX, ReceiptLeaf, ReceiptOpening, Request, Said,
    SignedChunkStatement, SignedVoucher, SumNode, SumPath, Sums, Voucher, sum_tree::DEPTH_MAX, view::Says,
    wallet_bytes,
};
use surety_proofs::{Proof, SEGMENT_BYTES, SegmentOpening, segments};
use surety_types::input::WORD_BYTES;

use super::setup::{
    BATCH, CHANNEL, DEPOSIT, change, channel, demand, late, owe, points, put_root, record, sign_by, stash,
};
use crate::{Batches, Config, DEMANDS_MAX, DisputeRounds, Openings, ReceiptDisputes, SignedBytes, Wanted};

/// The last place in the largest tree.
pub(super) const LAST: u32 = RECEIPTS_MAX - 1;

/// Bytes of the longest output of whole words.
const LONGEST: u32 = u32::MAX - u32::MAX % WORD_BYTES;

/// Begin what is hashed of a receipt and of a channel (`surety_channels::batch`).
const OF_RECEIPT: u8 = 0;
const OF_CHANNEL: u8 = 2;

/// Opens the receipt at the end of a batch with the longest ways that there can be: those who have made them
/// may count nothing on the left of a channel. `before` plancks stand before the receipt.
pub(super) fn deepest(first: Nonce, receipt: H256, price: u128, before: u128) -> (BatchRoot, ReceiptOpening) {
    let salt = H256::repeat_byte(8);
    let leaf = ReceiptLeaf { receipt, salt };
    let others = Sums {
        receipts: LAST,
        price: before,
    };
    let node = SumNode {
        hash: hash(&(OF_RECEIPT, leaf)),
        sums: Sums { receipts: 1, price },
    };
    let (path, total) = way(node, others);
    let node = SumNode {
        hash: hash(&(OF_CHANNEL, CHANNEL, first, total.hash)),
        sums: total.sums,
    };
    let (up, SumNode { hash, sums }) = way(node, Sums::default());
    let of = ChannelOpening {
        place: LAST,
        channel: CHANNEL,
        first,
        total,
        path: up,
    };
    let opening = ReceiptOpening {
        of,
        place: LAST,
        leaf,
        price,
        path,
    };
    let channels = RECEIPTS_MAX;
    (BatchRoot { hash, channels, sums }, opening)
}

fn hash(of: &impl Encode) -> H256 {
    BlakeTwo256::hash_of(of)
}

/// From the last leaf of the largest tree to its root. Everything on the way is on the left, the first of it
/// with all that stands before the leaf.
fn way(leaf: SumNode, before: Sums) -> (SumPath, SumNode) {
    let first = SumNode {
        hash: H256::repeat_byte(9),
        sums: before,
    };
    let other = SumNode {
        sums: Sums::default(),
        ..first
    };
    let mut siblings = vec![other; DEPTH_MAX as usize];
    siblings.iter_mut().take(1).for_each(|sibling| *sibling = first);
    let path = SumPath(BoundedVec::truncate_from(siblings));
    let climbed = path.climb(leaf, LAST, RECEIPTS_MAX);
    let root = climbed.expect("it is as long as that of a last leaf").root;
    (path, root)
}

/// A batch that ends with this receipt of request [`LAST`], and its opening there.
pub(super) fn batched<T: Config>(
    statement: ChunkStatement<T::AccountId>,
    before: u128,
) -> (BatchRoot, Batched<T::AccountId>) {
    let message = H256(statement.message(&T::Genesis::get()));
    let (root, opening) = deepest(0, message, statement.price, before);
    (root, Batched { opening, statement })
}

/// Has a batch end with this receipt of request [`LAST`].
fn put<T: Config>(batch: BatchNumber, statement: ChunkStatement<T::AccountId>) -> Batched<T::AccountId> {
    let (root, batched) = batched::<T>(statement, 0);
    put_root::<T>(batch, root);
    batched
}

/// The last of the batches ends with the receipt of a generation that a stop id has ended. Returns what it
/// answers, the first segment of what was said, and the receipt.
pub(super) fn disputable<T: Config>() -> (Request, SegmentOpening, Batched<T::AccountId>) {
    let request = T::Disputes::request_for_benchmark();
    let (statement, head) = receipt::<T>(&request);
    (request, head, put::<T>(BATCH, statement))
}

/// Whether that is disputed.
pub(super) fn is_disputed<T: Config>() -> bool {
    DisputeRounds::<T>::contains_key(stash::<T>(), (Some(BATCH), CHANNEL, LAST))
}

/// The receipt of a generation that a stop id has ended, and the first segment of what was said: it shows
/// what a dispute is about.
fn receipt<T: Config>(request: &Request) -> (ChunkStatement<T::AccountId>, SegmentOpening) {
    let units = request.units_max;
    // One word says how it ended.
    let words = units
        .saturating_add(1)
        .saturating_sub(request.work().prompt_tokens());
    let bytes = words.saturating_mul(WORD_BYTES);
    let head = segment(bytes, 0);
    let ending = Ending {
        how: End::Stop,
        trace_root: H256::repeat_byte(1),
    };
    let statement = ChunkStatement {
        channel: CHANNEL,
        payee: stash::<T>(),
        nonce: LAST,
        request: request.hash(),
        bytes,
        output: head.row_digest(bytes).expect("it was made to have one"),
        units,
        price: request.price(units).expect("a planck for each"),
        end: Some(ending),
    };
    (statement, head)
}

/// The longest statement of whole words, and one of a word less that says something else.
fn clashing<T: Config>() -> [ChunkStatement<T::AccountId>; 2] {
    let statement = |bytes, (units, price), output| ChunkStatement {
        channel: CHANNEL,
        payee: stash::<T>(),
        nonce: LAST,
        request: H256::repeat_byte(2),
        bytes,
        output,
        units,
        price,
        end: None,
    };
    let output = last_segment().row_digest(LONGEST);
    [
        statement(LONGEST, (2, 1_000), output.expect("it was made to have one")),
        statement(LONGEST - WORD_BYTES, (1, 500), H256::repeat_byte(3)),
    ]
}

/// The segment of the longest output in which both of those end: it shows that they clash.
fn last_segment() -> SegmentOpening {
    segment(LONGEST, segments(LONGEST) - 1)
}

/// What was heard of the longest answer, all but its last word, its receipt, and the segment that shows that
/// it goes on from there.
fn longest<T: Config>() -> (
    ChunkStatement<T::AccountId>,
    ChunkStatement<T::AccountId>,
    SegmentOpening,
) {
    let [longest, shorter] = clashing::<T>();
    // As many segments, of which only the last differs.
    let end = segment(shorter.bytes, segments(LONGEST) - 1);
    let heard = ChunkStatement {
        output: end.row_digest(shorter.bytes).expect("it was made to have one"),
        ..shorter
    };
    let ending = Ending {
        how: End::Length,
        trace_root: H256::repeat_byte(1),
    };
    let receipt = ChunkStatement {
        end: Some(ending),
        ..longest
    };
    (heard, receipt, last_segment())
}

/// The last of the batches ends with that receipt. Beside as many points as may be the channel's key, which
/// has heard the rest, demands it, and some of what was counted is due. Returns the key, the receipt, and
/// what shows that it goes on.
pub(super) fn demanded_receipt<T: Config>() -> (T::AccountId, Batched<T::AccountId>, SegmentOpening) {
    let (held, statement, shown) = longest::<T>();
    let key: T::AccountId = account("key", 0, 0);
    let wanted = Wanted::Receipt {
        channel: CHANNEL,
        nonce: statement.nonce,
        says: Says::of(&held, &T::Genesis::get()),
        counted: Some((BATCH, BATCH)),
    };
    channel::<T>(key.clone(), late::<T>());
    owe::<T>(1_000);
    let all = points(BATCH, DEMANDS_MAX - 1).chain([wanted]);
    demand::<T>(&key, &key, all, late::<T>());
    (key, put::<T>(BATCH, statement), shown)
}

/// A segment of some output of so many bytes.
fn segment(bytes: u32, segment: u32) -> SegmentOpening {
    let start = segment.saturating_mul(SEGMENT_BYTES);
    let long = bytes.saturating_sub(start).min(SEGMENT_BYTES);
    let mut opening = SegmentOpening {
        segment,
        bytes: BoundedVec::truncate_from(vec![7; long as usize]),
        proof: Proof::default(),
    };
    // As many siblings as lead up from there.
    while opening.row_digest(bytes).is_none() {
        let pushed = opening.proof.0.try_push(H256::repeat_byte(9));
        pushed.expect("no output has a longer way");
    }
    opening
}

/// A pair of those, each signed by the last of the provider's signers.
pub(super) fn equivocation<T: Config>() -> Equivocation<T::AccountId> {
    let [one, other] = clashing::<T>();
    let genesis = T::Genesis::get();
    let messages = [&one, &other].map(|statement| statement.message(&genesis));
    let (agent, signatures) = T::Signatures::for_benchmark(&messages.each_ref().map(|message| &message[..]));
    sign_by::<T>(&agent);
    let mut signatures = signatures.into_iter();
    let mut signed = |statement| SignedChunkStatement {
        statement,
        agent: agent.clone(),
        signature: signatures.next().expect("there are two"),
    };
    Equivocation {
        one: signed(one),
        other: signed(other),
        shown: Some(last_segment()),
    }
}

/// The longest statement, likewise.
pub(super) fn signed<T: Config>() -> SignedChunkStatement<T::AccountId> {
    equivocation::<T>().one
}

/// The last of the batches and the first end with such a pair. Returns what shows that.
pub(super) fn contradiction<T: Config>() -> BatchEvidence<T::AccountId> {
    let [one, other] = clashing::<T>();
    BatchEvidence::Contradiction {
        batched: put::<T>(BATCH, one),
        said: Said::Batched(put::<T>(0, other)),
        shown: Some(last_segment()),
    }
}

/// What the channel has in as many of the largest batches as one call takes, and a voucher that a wallet has
/// signed for more than that. What was counted before is due.
pub(super) fn redeemable<T: Config>() -> (SignedVoucher<T::AccountId>, Openings) {
    let (payee, expiry) = (stash::<T>(), late::<T>());
    let open = |batch: u32| {
        let first = batch.saturating_mul(RECEIPTS_MAX);
        let (root, opening) = deepest(first, H256::zero(), 1_000, 0);
        let mut record = record::<T>(root, expiry.saturating_sub(1));
        for struck in &mut record.window.struck {
            struck.nonce = struck.nonce.saturating_add(first);
        }
        Batches::<T>::insert(&payee, batch, record);
        (batch, opening.of)
    };
    let openings = (0..REDEEMED_MAX).map(open).collect();
    change::<T>(|provider| provider.next = REDEEMED_MAX);
    let voucher = Voucher {
        channel: CHANNEL,
        payee: payee.clone(),
        expiry,
        nonce: 0,
        request: H256::zero(),
        sum: DEPOSIT,
    };
    let message = wallet_bytes(&voucher.message(&T::Genesis::get()));
    let (key, signatures) = T::Signatures::for_benchmark(&[&message]);
    channel::<T>(key, expiry);
    owe::<T>(1_000);
    let signature = signatures.first().copied().expect("there is one");
    let signed = SignedVoucher { voucher, signature };
    (signed, BoundedVec::truncate_from(openings))
}
