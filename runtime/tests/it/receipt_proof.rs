//! What a verifier in a browser reads (`clients/js/receipt.mjs`): its vectors are what this runtime stores,
//! and what its types encode. `SURETY_WRITE_VECTORS=1` has them written anew, by a real chain.

use std::{collections::BTreeMap, env, fs};

use codec::{DecodeAll, Encode};
use serde_json::{Value, json};
use sp_core::{
    H256, Pair,
    bytes::{from_hex, to_hex},
    sr25519::{Public, Signature},
};
use surety_channels::{
    Batch, BatchEntry, Batched, ChannelId, ChunkStatement, End, Ending, ReceiptLeaf, ReceiptOpening, Request,
    SignedChunkStatement, Struck,
};
use surety_model_trace::embeddings_header;
use surety_pallet_channels::{BatchRecord, Batches, Call, Provider, Standings};
use surety_pallet_finality_clock::Elapsed;
use surety_proofs::content_hash;
use surety_runtime::{AccountId, BlockNumber, Results, Runtime, units::MILLI_SURE};
use surety_types::model::Operation;

use crate::{
    disputes::World,
    market::hash,
    shop::{PROVIDER, Shop},
};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../clients/js/vectors/receipts.json");

/// Receipts of three channels in one batch; of the second, requests from this one on.
const FIRST: u32 = 4;

struct Case {
    request: Request,
    statement: ChunkStatement<AccountId>,
    answer: Value,
}

fn hex(value: &impl Encode) -> String {
    to_hex(&value.encode(), false)
}

fn case(shop: &Shop<'_>, (channel, nonce): (ChannelId, u32), operation: Operation) -> Case {
    let prompt = 10;
    let (output, units, answer) = match operation {
        // More than a segment of 1 KiB.
        Operation::Generate => {
            let tokens: Vec<u32> = (0..600).map(|place| place * place % 30_000).collect();
            let words = [0u32].iter().chain(&tokens).flat_map(|word| word.to_le_bytes());
            (
                words.collect::<Vec<u8>>(),
                prompt + 600,
                json!({ "tokens": tokens }),
            )
        }
        Operation::Embed => {
            let vectors = [[0.5f32, -1.0 / 3.0, 1e-7], [0.0, 1.0, -0.25]];
            let mut output = embeddings_header(2, 3).unwrap();
            output.extend(
                vectors
                    .as_flattened()
                    .iter()
                    .flat_map(|number| number.to_le_bytes()),
            );
            (output, 2, json!({ "vectors": vectors }))
        }
    };
    let request = Request {
        model: shop.world.manifest.id(),
        operation,
        input: hash(1),
        input_bytes: (6 + prompt) * 4,
        units_max: 1_000,
        unit_price: MILLI_SURE,
    };
    let statement = ChunkStatement {
        channel,
        payee: PROVIDER.account(),
        nonce,
        request: request.hash(),
        bytes: u32::try_from(output.len()).unwrap(),
        output: content_hash(&output),
        units,
        price: request.price(units).unwrap(),
        end: Some(Ending {
            how: if nonce % 2 == 0 { End::Length } else { End::Stop },
            trace_root: hash(2),
        }),
    };
    assert_eq!(statement.check(&request), Ok(()));
    Case {
        request,
        statement,
        answer,
    }
}

fn write() {
    let world = World::new();
    let mut shop = Shop::open(&world);
    let genesis = shop.chain.query(Results::genesis);
    let cases = [
        case(&shop, (shop.channel, FIRST + 2), Operation::Generate),
        case(&shop, (shop.channel + 1, FIRST + 3), Operation::Embed),
    ];
    let entry = |channel, nonce| BatchEntry {
        channel,
        nonce,
        price: 7,
        leaf: ReceiptLeaf {
            receipt: hash(3),
            salt: hash(u8::try_from(nonce).unwrap()),
        },
    };
    // Those of channels on either side, too.
    let mut entries: Vec<BatchEntry> = (0..3)
        .flat_map(|channel| (FIRST..FIRST + 5).map(move |nonce| (channel, nonce)))
        .map(|(channel, nonce)| entry(channel + shop.channel, nonce))
        .collect();
    for case in &cases {
        let said = &case.statement;
        let own = entries
            .iter_mut()
            .find(|entry| (entry.channel, entry.nonce) == (said.channel, said.nonce));
        let own = own.unwrap();
        own.price = said.price;
        own.leaf.receipt = H256(said.message(&genesis));
    }
    let batch = Batch::new(&entries).unwrap();
    let number = shop
        .chain
        .query(|| Standings::<Runtime>::get(PROVIDER.account()).unwrap().next);
    shop.chain
        .call(PROVIDER.agent, Call::commit_batch { root: batch.root() });

    let mut receipts = Vec::new();
    for Case {
        request,
        statement,
        answer,
    } in cases
    {
        let opening = batch.open(statement.channel, statement.nonce).unwrap();
        let signed = shop.signed(statement);
        let proof = json!({
            "genesis": format!("{genesis:?}"),
            "batch": number,
            "signed": hex(&signed),
            "request": hex(&request),
            "opening": hex(&opening),
        });
        receipts.push(json!({ "proof": proof, "answer": answer }));
    }
    let batches_key = to_hex(
        &Batches::<Runtime>::hashed_key_for(PROVIDER.account(), number),
        false,
    );
    let (record, standing, now) = shop.chain.query(|| {
        let record = Batches::<Runtime>::get(PROVIDER.account(), number).unwrap();
        let standing = Standings::<Runtime>::get(PROVIDER.account()).unwrap();
        (record, standing, Elapsed::<Runtime>::get())
    });
    let clock_key = to_hex(&Elapsed::<Runtime>::hashed_key(), false);
    let storage = BTreeMap::from([
        (batches_key.clone(), hex(&record)),
        (
            to_hex(&Standings::<Runtime>::hashed_key_for(PROVIDER.account()), false),
            hex(&standing),
        ),
        (clock_key.clone(), hex(&now)),
    ]);
    let (mut struck, mut void) = (record.clone(), record.clone());
    struck.window.strike(Struck {
        channel: shop.channel,
        nonce: FIRST + 2,
        price: 1,
    });
    void.window.void();
    let changes = json!({
        "final": { clock_key: hex(&(record.window.until + 1)) },
        "struck": { batches_key.clone(): hex(&struck) },
        "void": { batches_key: hex(&void) },
    });
    let all = json!({
        "genesis": format!("{genesis:?}"),
        "storage": storage,
        // What is different where a batch is final, one receipt of it was found wrong, or all of it is void.
        "changes": changes,
        "receipts": receipts,
    });
    fs::write(VECTORS, serde_json::to_string_pretty(&all).unwrap() + "\n").unwrap();
}

fn bytes(value: &Value) -> Vec<u8> {
    from_hex(value.as_str().unwrap()).unwrap()
}

#[test]
fn the_vectors_of_the_verifier_in_a_browser_are_of_this_runtime() {
    if env::var_os("SURETY_WRITE_VECTORS").is_some() {
        write();
    }
    let vectors: Value = serde_json::from_str(&fs::read_to_string(VECTORS).unwrap()).unwrap();
    let genesis = H256::from_slice(&bytes(&vectors["genesis"]));
    let stored = |key: Vec<u8>| bytes(&vectors["storage"][to_hex(&key, false)]);
    assert_eq!(vectors["storage"].as_object().unwrap().len(), 3);
    BlockNumber::decode_all(&mut &*stored(Elapsed::<Runtime>::hashed_key().to_vec())).unwrap();
    let receipts = vectors["receipts"].as_array().unwrap();
    assert_eq!(receipts.len(), 2);
    for receipt in receipts {
        let proof = &receipt["proof"];
        let signed = SignedChunkStatement::<AccountId>::decode_all(&mut &*bytes(&proof["signed"])).unwrap();
        let verify = |key: &AccountId, message: &[u8], signature: &[u8; 64]| {
            let key = Public::from_raw(*AsRef::<[u8; 32]>::as_ref(key));
            sp_core::sr25519::Pair::verify(&Signature::from_raw(*signature), message, &key)
        };
        assert!(signed.is_signed(&genesis, verify));
        let request = Request::decode_all(&mut &*bytes(&proof["request"])).unwrap();
        let statement = signed.statement;
        assert_eq!(statement.check(&request), Ok(()));

        let payee = statement.payee.clone();
        let standing = stored(Standings::<Runtime>::hashed_key_for(&payee));
        let standing = Provider::<AccountId>::decode_all(&mut &*standing).unwrap();
        assert!(standing.signers.contains(&signed.agent));

        let number = u32::try_from(proof["batch"].as_u64().unwrap()).unwrap();
        let key = Batches::<Runtime>::hashed_key_for(&payee, number);
        let record = BatchRecord::<BlockNumber>::decode_all(&mut &*stored(key.clone())).unwrap();
        let opening = ReceiptOpening::decode_all(&mut &*bytes(&proof["opening"])).unwrap();
        let batched = Batched { opening, statement };
        assert!(batched.place_in(&genesis, &record.window.root).is_some());

        let changed = |name: &str| {
            let value = bytes(&vectors["changes"][name][to_hex(&key, false)]);
            BatchRecord::<BlockNumber>::decode_all(&mut &*value)
                .unwrap()
                .window
        };
        assert!(changed("void").is_void && !changed("struck").struck.is_empty());
    }
}
