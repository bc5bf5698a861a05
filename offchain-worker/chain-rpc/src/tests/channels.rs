//! Payment channels: the functions that are asked, and runtimes that have none.

use std::fmt::Debug;

use codec::Encode;
use scale_info::{TypeInfo, meta_type};
use sp_core::{ConstU32, H256, bounded::BoundedVec, crypto::AccountId32};
use subxt::ext::frame_metadata::v15;
use surety_channels::{
    BatchEvidence, BatchRoot, Batched, ChannelOpening, Equivocation, PointsFound, REDEEMED_MAX, Region,
    Request, SignedChunkStatement, SignedVoucher,
};
use surety_proofs::SegmentOpening;
use surety_types::{
    model::Operation,
    trust::{AuditProof, ItemLeaves},
};

use super::{
    fixture::{AuctionCall, function, metadata_without_channels, pallets, runtime, runtime_with},
    node::Node,
};
use crate::{RpcChain, RpcConfig};
use surety_chain_client::{
    BatchView, Call, ChainError, ChannelChain, ChannelRules, ChannelView, DemandView, DisputedView,
    OfferView, PointsView, PoolView, StandingView, When, sample,
};

type Account = AccountId32;
type Openings = BoundedVec<(u32, ChannelOpening), ConstU32<REDEEMED_MAX>>;

/// As the pallet has it.
#[derive(TypeInfo)]
#[allow(dead_code)]
// Never made: only its type counts.
#[allow(clippy::large_enum_variant)]
pub enum ReceiptSource {
    Batch(u32, Batched<Account>),
    Signed(SignedChunkStatement<Account>),
}

/// The calls of `Channels`, under the indices that they have.
#[derive(TypeInfo)]
#[allow(dead_code, non_camel_case_types)]
// As above.
#[allow(clippy::large_enum_variant)]
pub enum ChannelsCall<Deposit = u128> {
    open {
        payee: Account,
        key: Account,
        deposit: Deposit,
        expiry: u32,
    },
    top_up {
        channel: u64,
        amount: u128,
    },
    extend {
        channel: u64,
        expiry: u32,
    },
    stand {
        lock: u128,
        cap: u128,
    },
    commit_batch {
        root: BatchRoot,
    },
    redeem {
        voucher: SignedVoucher<Account>,
        batches: Openings,
    },
    hold {
        channel: u64,
        batch: u32,
        opening: ChannelOpening,
    },
    close {
        channel: u64,
    },
    close_agreed {
        channel: u64,
    },
    end {
        channel: u64,
    },
    add_signer,
    report_equivocation {
        equivocation: Box<Equivocation<Account>>,
    },
    report_batch {
        provider: Account,
        batch: u32,
        other: Option<u32>,
        evidence: Box<BatchEvidence<Account>>,
    },
    announce_points {
        provider: Account,
        batch: u32,
        proof: AuditProof,
        seal: H256,
    },
    open_points {
        provider: Account,
        batch: u32,
        verifier: Account,
        found: PointsFound,
        salt: H256,
    },
    refute_points {
        provider: Account,
        batch: u32,
        verifier: Account,
        place: u32,
        receipt: Box<(Batched<Account>, Request, Option<ItemLeaves>)>,
    },
    end_points {
        provider: Account,
        batch: u32,
        verifier: Account,
    },
    dispute {
        receipt: Box<ReceiptSource>,
        request: Box<Request>,
        head: Option<SegmentOpening>,
    },
    demand_receipt {
        held: Box<SignedChunkStatement<Account>>,
    },
    demand_point {
        provider: Account,
        batch: u32,
        place: u32,
        proof: AuditProof,
    },
    show_receipt {
        demander: Account,
        batch: u32,
        receipt: Box<Batched<Account>>,
        shown: Option<SegmentOpening>,
    },
    show_point {
        demander: Account,
        batch: u32,
        receipt: Box<Batched<Account>>,
        request: Box<Request>,
        head: Option<SegmentOpening>,
    },
    end_demand {
        provider: Account,
        demander: Account,
    },
    offer {
        model: H256,
        operation: Operation,
        unit_price: u128,
        places: u32,
        region: Option<Region>,
    },
    withdraw_offer {
        model: H256,
        operation: Operation,
    },
    report_busy {
        model: H256,
        operation: Operation,
        busy: u32,
    },
}

/// As above, with a deposit that this program cannot give.
type OtherChannelsCall = ChannelsCall<u64>;

/// The functions of `ChannelApi`.
pub fn functions() -> Vec<v15::RuntimeApiMethodMetadata> {
    let (id, batch, account) = (meta_type::<u64>, meta_type::<u32>, meta_type::<Account>);
    let channels = meta_type::<Vec<ChannelView>>;
    let batches = meta_type::<Vec<BatchView>>;
    vec![
        function("channel", vec![("id", id())], meta_type::<Option<ChannelView>>()),
        function("channels_of", vec![("payee", account())], channels()),
        function("channels_by", vec![("payer", account())], channels()),
        function("offers", Vec::new(), meta_type::<Vec<OfferView>>()),
        function("pools", Vec::new(), meta_type::<Vec<PoolView>>()),
        function(
            "standing",
            vec![("provider", account())],
            meta_type::<Option<StandingView>>(),
        ),
        function("batches", vec![("provider", account())], batches()),
        function("open_batches", Vec::new(), batches()),
        function(
            "demands",
            vec![("provider", account())],
            meta_type::<Vec<DemandView>>(),
        ),
        function(
            "disputed",
            vec![("provider", account())],
            meta_type::<Vec<DisputedView>>(),
        ),
        function(
            "points",
            vec![("provider", account()), ("batch", batch())],
            meta_type::<Vec<PointsView>>(),
        ),
        function("rules", Vec::new(), meta_type::<ChannelRules>()),
        function(
            "least_lock",
            vec![("provider", account()), ("cap", meta_type::<u128>())],
            meta_type::<Option<u128>>(),
        ),
        function("dispute_bond", Vec::new(), meta_type::<u128>()),
        function("time", Vec::new(), meta_type::<u32>()),
    ]
}

fn without_channels() -> Vec<v15::PalletMetadata> {
    let mut pallets = pallets(meta_type::<AuctionCall>());
    pallets.retain(|pallet| pallet.name != "Channels");
    pallets
}

/// Has the node answer one function, and returns what it was given.
async fn given<T, F>(node: &Node, name: &'static str, answer: T, asked: impl Fn() -> F) -> Vec<u8>
where
    T: Encode + PartialEq + Debug,
    F: Future<Output = Result<T, ChainError>>,
{
    node.change(|state| {
        state.functions.insert(name, answer.encode());
    });
    assert_eq!(asked().await, Ok(answer), "{name}");
    let state = node.state();
    let (called, block, given) = state.called.last().cloned().unwrap();
    assert_eq!((called, block), (name, state.finalized));
    given
}

#[tokio::test]
async fn each_function_is_given_its_arguments_and_read() {
    let node = Node::start(1).await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let (at, stash) = (When::Finalized, AccountId32::new([9; 32]));
    let nothing = Vec::<u8>::new();
    let views = sample::channels::channel;
    let api = "ChannelApi_channel";
    let of_id = given(&node, api, Some(views()), || chain.channel(at, 7)).await;
    assert_eq!(of_id, 7u64.encode());
    let none = given(&node, api, None, || chain.channel(at, 8)).await;
    assert_eq!(none, 8u64.encode());
    let api = "ChannelApi_channels_of";
    let of = given(&node, api, vec![views()], || chain.channels_of(at, &stash)).await;
    assert_eq!(of, stash.encode());
    let api = "ChannelApi_channels_by";
    let by = given(&node, api, vec![views()], || chain.channels_by(at, &stash)).await;
    assert_eq!(by, stash.encode());
    let offers = vec![sample::channels::offer()];
    assert_eq!(
        given(&node, "ChannelApi_offers", offers, || chain.offers(at)).await,
        nothing
    );
    let pools = vec![sample::channels::pool()];
    assert_eq!(
        given(&node, "ChannelApi_pools", pools, || chain.pools(at)).await,
        nothing
    );
    let rules = sample::channels::rules();
    assert_eq!(
        given(&node, "ChannelApi_rules", rules, || chain.rules(at)).await,
        nothing
    );
    assert_eq!(
        given(&node, "ChannelApi_time", 77, || chain.time(at)).await,
        nothing
    );
    let api = "ChannelApi_dispute_bond";
    let asked = given(&node, api, 6, || chain.dispute_bond(at)).await;
    assert_eq!(asked, nothing);
    let batches = || vec![sample::channels::batch().unwrap()];
    let api = "ChannelApi_open_batches";
    assert_eq!(
        given(&node, api, batches(), || chain.open_batches(at)).await,
        nothing
    );
    let api = "ChannelApi_batches";
    let of = given(&node, api, batches(), || chain.batches(at, &stash)).await;
    assert_eq!(of, stash.encode());
    let standing = Some(sample::channels::standing());
    let api = "ChannelApi_standing";
    let of = given(&node, api, standing, || chain.standing(at, &stash)).await;
    assert_eq!(of, stash.encode());
    let demands = sample::channels::demands();
    let api = "ChannelApi_demands";
    let of = given(&node, api, demands, || ChannelChain::demands(&chain, at, &stash)).await;
    assert_eq!(of, stash.encode());
    let disputed = sample::channels::disputed();
    let api = "ChannelApi_disputed";
    let of = given(&node, api, disputed, || chain.disputed(at, &stash)).await;
    assert_eq!(of, stash.encode());
    let points = vec![sample::channels::points()];
    let api = "ChannelApi_points";
    let of = given(&node, api, points, || chain.points(at, &stash, 3)).await;
    assert_eq!(of, (&stash, 3u32).encode());
    let api = "ChannelApi_least_lock";
    let of = given(&node, api, Some(5), || chain.least_lock(at, &stash, 4)).await;
    assert_eq!(of, (&stash, 4u128).encode());
}

#[tokio::test]
async fn a_chain_without_channels_fits_and_says_that_it_has_none() {
    let node = Node::start(1).await;
    node.change(|state| state.runtime = metadata_without_channels());
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    let error = chain.offers(When::Finalized).await.unwrap_err();
    assert!(matches!(&error, ChainError::Outgrown { .. }), "{error}");
    assert!(error.to_string().contains("ChannelApi.offers"), "{error}");
    let call = Call::Close { channel: 1 };
    let runtime = runtime_with(without_channels()).unwrap();
    assert!(
        runtime
            .encoded(&call)
            .unwrap_err()
            .to_string()
            .contains("Channels.close")
    );
}

#[test]
fn channels_that_differ_are_refused_with_what_differs() {
    let mut other = pallets(meta_type::<AuctionCall>());
    let channels = other.iter_mut().find(|pallet| pallet.name == "Channels").unwrap();
    channels.calls.as_mut().unwrap().ty = meta_type::<OtherChannelsCall>();
    let error = runtime_with(other).err().unwrap().to_string();
    assert!(error.contains("Channels.open takes another deposit"), "{error}");
}

#[test]
fn a_call_about_channels_is_written_as_the_chain_takes_it() {
    for call in sample::calls() {
        if call.name().pallet != "Channels" {
            continue;
        }
        let index = match &call {
            Call::Open { .. } => 0,
            Call::CommitBatch { .. } => 4,
            Call::Redeem { .. } => 5,
            Call::ReportChunkEquivocation { .. } => 11,
            Call::OpenPoints { .. } => 14,
            Call::Dispute { .. } => 17,
            Call::Offer { .. } => 23,
            Call::ReportBusy { .. } => 25,
            _ => continue,
        };
        let expected = [vec![58, index], call.encode_arguments()].concat();
        assert_eq!(runtime().encoded(&call), Ok(expected), "{call:?}");
    }
}
