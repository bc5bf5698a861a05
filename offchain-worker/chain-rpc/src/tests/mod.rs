//! A runtime's metadata, made up after the chain's, and what we make of it.

#![allow(clippy::unwrap_used)]

mod calls;
mod channels;
mod failover;
mod fixture;
mod gpu_proofs;
mod node;
mod nonces;
mod openings;
mod pool;
mod proxy;
mod reveals;
mod stake;
mod submission;
mod upgrade;

use std::time::{Duration, Instant};

use codec::{Compact, Decode, Encode};
use scale_info::meta_type;
use serde_json::json;
use sp_core::{H256, Pair, crypto::AccountId32, sr25519};
use sp_runtime::{DispatchError, ModuleError, MultiAddress, MultiSignature};
use subxt::ext::frame_metadata::{v14, v15};

use super::{
    RpcChain, RpcConfig,
    entries::Entry,
    sign::{Terms, sign, unsigned},
};
use fixture::*;
use surety_chain_client::{
    BidRecord, BlockRef, Call, Chain, ChainError, ChainEvent, RegisteredModel, Signer, TaskRecord, sample,
};

fn misfit(pallets: Vec<v15::PalletMetadata>) -> String {
    match runtime_with(pallets) {
        Err(ChainError::Incompatible { what, .. }) => what,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was found to fit"),
    }
}

#[test]
fn a_runtime_that_differs_is_refused_with_what_differs() {
    let shorter = misfit(pallets(meta_type::<OtherAuctionCall>()));
    assert!(shorter.contains("TaskAuction.post"), "{shorter}");

    let without = pallets(meta_type::<AuctionCall>())
        .into_iter()
        .filter(|pallet| pallet.name != "Results")
        .collect();
    assert!(misfit(without).contains("Results.Rounds"));

    let mut renamed = pallets(meta_type::<AuctionCall>());
    renamed[6].calls = Some(v14::PalletCallMetadata {
        ty: meta_type::<ResultsCall>(),
    });
    assert!(misfit(renamed).contains("no call TaskAuction.post"));

    let mut other_batch = pallets(meta_type::<AuctionCall>());
    let utility = other_batch.iter_mut().find(|pallet| pallet.name == "Utility");
    utility.unwrap().calls.as_mut().unwrap().ty = meta_type::<OtherUtilityCall>();
    assert!(misfit(other_batch).contains("Utility.batch_all"));

    let mut other_record = pallets(meta_type::<AuctionCall>());
    let storage = other_record[8].storage.as_mut().unwrap();
    storage.entries[0].ty = v14::StorageEntryType::Map {
        hashers: vec![v14::StorageHasher::Twox64Concat],
        key: meta_type::<u64>(),
        value: meta_type::<TaskRecord>(),
    };
    assert!(misfit(other_record).contains("Results.Rounds holds other records"));
}

#[test]
fn keys_are_those_of_the_chain() {
    let runtime = runtime();
    // The well-known key of `System.Events`.
    let events = runtime.key(Entry::Events, &[]).unwrap();
    assert_eq!(
        hex::encode(&events),
        "26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7"
    );
    let key = runtime.key(Entry::Tasks, &[&7u64.encode()]).unwrap();
    assert_eq!(key.len(), 32 + 8 + 8);
    assert_eq!(
        runtime
            .last_key(Entry::Tasks, &runtime.prefix(Entry::Tasks), &key)
            .unwrap(),
        7u64.encode()
    );
    let (task, account) = (7u64.encode(), [1u8; 32]);
    let key = runtime.key(Entry::Bids, &[&task, &account]).unwrap();
    assert_eq!(key.len(), 32 + 8 + 8 + 16 + 32);
    assert!(
        runtime
            .last_key(Entry::Tasks, &runtime.prefix(Entry::Tasks), &[0; 10])
            .is_err()
    );
}

#[test]
fn a_signed_call_is_what_the_chain_expects() {
    let runtime = runtime();
    let signer = Signer::from_uri("//Alice").unwrap();
    let (genesis, anchor) = (H256([8; 32]), H256([9; 32]));
    let anchor = BlockRef {
        number: 100,
        hash: anchor,
    };
    let call = Call::Commit {
        task: 5,
        commitment: H256([6; 32]),
    };
    let terms = Terms {
        genesis,
        anchor,
        period: runtime.period(),
        nonce: 300,
        tip: 70,
    };
    let bytes = sign(&runtime, terms, &signer, &runtime.payload(&call).unwrap()).unwrap();

    let mut input = bytes.as_slice();
    let length = Compact::<u32>::decode(&mut input).unwrap().0;
    assert_eq!(length as usize, input.len());
    assert_eq!(u8::decode(&mut input).unwrap(), 0x84);
    let address = MultiAddress::<AccountId32, ()>::decode(&mut input).unwrap();
    assert_eq!(address, MultiAddress::Id(signer.account().clone()));
    let Ok(MultiSignature::Sr25519(signature)) = MultiSignature::decode(&mut input) else {
        panic!("another kind of signature");
    };
    let expected_call = [vec![56, 0], call.encode_arguments()].concat();
    assert!(input.ends_with(&expected_call));
    let extra = input.strip_suffix(expected_call.as_slice()).unwrap();
    // Mortality of 256 blocks (8 - 1 in the low bits) from block 100, nonce 300, a tip of 70, no metadata
    // hash.
    let era = (7u16 | (100 << 4)).encode();
    let (nonce, tip) = (Compact(300u32).encode(), Compact(70u128).encode());
    assert_eq!(extra, [era, nonce, tip, vec![0]].concat());

    let implied = (
        SPEC_VERSION,
        TRANSACTION_VERSION,
        genesis,
        anchor.hash,
        None::<[u8; 32]>,
    )
        .encode();
    let payload = [expected_call.as_slice(), extra, &implied].concat();
    let public = sr25519::Public::from_raw((*signer.account()).clone().into());
    assert!(sr25519::Pair::verify(&signature, payload, &public));
}

#[test]
fn a_batch_is_written_with_the_indices_of_the_runtime_at_hand() {
    let (amount, agent) = (9, AccountId32::new([4; 32]));
    let bond = Call::Bond {
        role: surety_types::stake::Role::Verifier,
        amount,
    };
    let set = Call::SetAgent { agent };
    let whole = runtime().encoded(&Call::Batch(vec![bond.clone(), set.clone()]));
    let arguments = [bond.encode_arguments(), set.encode_arguments()];
    let [bond, set] = arguments.each_ref().map(Vec::as_slice);
    // Utility.batch_all, two calls, Staking.bond, Staking.set_agent.
    let expected = [&[11, 2, 2 << 2, 50, 0][..], bond, &[50, 4], set].concat();
    assert_eq!(whole, Ok(expected));
}

#[test]
fn a_call_that_proves_itself_goes_without_a_signature_in_nine_bytes_more_than_its_own() {
    let runtime = runtime();
    let genesis = H256([8; 32]);
    for call in sample::calls().into_iter().filter(Call::proves_itself) {
        let bytes = unsigned(&runtime, genesis, 100, &call).unwrap();
        let mut input = bytes.as_slice();
        let length = Compact::<u32>::decode(&mut input).unwrap().0;
        assert_eq!(length as usize, input.len());
        // A general transaction of format 5 with the first version of the extensions: immortal, attempt 100
        // mod 16384, no tip, no metadata hash.
        let extra = [0x45, 0, 0, 0x91, 0x01, 0, 0];
        let indices = match call {
            Call::RevealBid { .. } => [53, 2],
            Call::Reveal { .. } => [56, 1],
            Call::RevealAudit { .. } => [56, 3],
            Call::RevealItems { .. } => [56, 4],
            Call::OpenPoints { .. } => [58, 14],
            _ => [57, 4],
        };
        let expected = [&extra[..], &indices, &call.encode_arguments()].concat();
        assert_eq!(input, expected);
        assert_eq!(bytes.len(), 9 + 2 + call.encode_arguments().len());
        // The next attempt is another one, and so is the one in 64 blocks.
        for later in [101, 164] {
            assert_ne!(bytes, unsigned(&runtime, genesis, later, &call).unwrap());
        }
    }
}

#[test]
fn events_are_told_by_name_with_readable_fields() {
    let runtime = runtime();
    let client = AccountId32::new([1; 32]);
    let posted = AuctionEvent::TaskPosted {
        task: 11,
        client: client.clone(),
        cap: 12,
    };
    let record = |phase: Vec<u8>| [phase, vec![53], posted.encode(), vec![0]].concat();
    let applied = record([vec![0], 2u32.encode()].concat());
    let bytes = [Compact(2u32).encode(), applied, record(vec![2])].concat();
    let events: Vec<ChainEvent> = runtime.events(&bytes).unwrap();
    assert_eq!(events.len(), 2);
    assert!(events[0].is("TaskAuction", "TaskPosted"));
    assert_eq!((events[0].extrinsic, events[1].extrinsic), (Some(2), None));
    assert_eq!(events[0].task(), Some(11));
    assert_eq!(events[0].field::<AccountId32>("client"), Some(client));
    let texts: Vec<_> = events[0].fields.iter().map(|field| field.text.as_str()).collect();
    assert_eq!(
        texts,
        ["11", "5C62Ck4UrFPiBtoCmeSrgF7x9yv9mn38446dhCpsi2mLHiFT", "12"]
    );
    assert!(runtime.events(&bytes[..bytes.len() - 3]).is_err());
    assert_eq!(runtime.events(&[]).unwrap(), Vec::new());
}

#[test]
fn errors_are_told_in_the_pallets_words() {
    let runtime = runtime();
    let module = |index, error| {
        DispatchError::Module(ModuleError {
            index,
            error: [error, 0, 0, 0],
            message: None,
        })
    };
    assert_eq!(
        runtime.fault(module(53, 1)).to_string(),
        "TaskAuction.CapBelowFee: The cap does not cover the fee."
    );
    assert_eq!(runtime.fault(module(99, 4)).to_string(), "error 4 of pallet 99");
    let origin = runtime.fault(DispatchError::BadOrigin);
    assert_eq!(origin.to_string(), "BadOrigin: Bad origin");
    let token = runtime.fault(DispatchError::Token(sp_runtime::TokenError::FundsUnavailable));
    assert_eq!(token.to_string(), "Token: Funds are unavailable");
}

#[test]
fn parameters_and_constants_are_read_by_name() {
    let runtime = runtime();
    let key = ParametersKey::Auction(AuctionParametersKey::BidWindow(BidWindow)).encode();
    let full = runtime.key(Entry::Parameters, &[&key]).unwrap();
    let value = ParametersValue::Auction(AuctionParametersValue::BidWindow(8)).encode();
    let parameter = runtime.parameter(&full, &value).unwrap();
    let read = (
        parameter.group.as_str(),
        parameter.name.as_str(),
        parameter.value.as_str(),
    );
    assert_eq!(read, ("Auction", "BidWindow", "8"));
    assert_eq!(runtime.constant::<u128>("Balances", "ExistentialDeposit"), Ok(5));
    assert!(runtime.constant::<u128>("Balances", "Other").is_err());
}

#[test]
fn every_record_survives_its_encoding() {
    let model = sample::records::model();
    assert_eq!(RegisteredModel::decode(&mut &*model.encode()), Ok(model));
    let bid = sample::records::bid_record();
    assert_eq!(BidRecord::decode(&mut &*bid.encode()), Ok(bid));
}

#[tokio::test]
async fn a_node_that_is_down_is_named_after_the_patience_is_spent() {
    // A port that was free a moment ago, and that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    let mut config = RpcConfig::new(format!("ws://127.0.0.1:{port}"));
    config.patience = Duration::from_millis(500);
    let started = Instant::now();
    let error = RpcChain::connect(config).await.err();
    assert!(
        matches!(&error, Some(ChainError::Unreachable { url, .. }) if url.contains(&port.to_string())),
        "{error:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(10));

    let mut config = RpcConfig::new("not an address");
    config.patience = Duration::ZERO;
    let error = RpcChain::connect(config).await.err();
    assert!(matches!(error, Some(ChainError::Unreachable { .. })), "{error:?}");
}

#[tokio::test]
async fn a_test_network_is_one_whose_specification_says_so() {
    let node = node::Node::start(1).await;
    let chain = RpcChain::connect(RpcConfig::new(&node.url)).await.unwrap();
    assert_eq!(chain.is_test_network().await, Ok(true));
    for properties in [
        json!({}),
        json!({ "isTestnet": false }),
        json!({ "isTestnet": "true" }),
    ] {
        node.change(|state| state.properties = properties);
        assert_eq!(chain.is_test_network().await, Ok(false));
    }
}
