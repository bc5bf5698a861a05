//! What `vectors/generate.py` makes by the formulas, with another implementation of BLAKE2b.

use super::*;
use codec::{Decode, Encode};
use serde_json::Value;

fn read(json: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(json).unwrap();
    assert!(vectors.len() >= 2);
    vectors
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

fn hash(value: &Value) -> H256 {
    H256::from_slice(&bytes(value))
}

fn small(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn large<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &Value) -> T {
    value.as_str().unwrap().parse().unwrap()
}

/// Its bytes, and the message that is signed of it.
fn check(vector: &Value, scale: Vec<u8>, message: [u8; 32]) {
    assert_eq!(scale, bytes(&vector["scale"]), "{vector}");
    assert_eq!(H256(message), hash(&vector["message"]), "{vector}");
    assert_eq!(
        wallet_bytes(&message).to_vec(),
        bytes(&vector["wallet_bytes"]),
        "{vector}"
    );
}

#[test]
fn requests() {
    for vector in read(include_str!("../../vectors/request.json")) {
        let request = Request {
            model: hash(&vector["model"]),
            operation: match vector["operation"].as_str().unwrap() {
                "embed" => Operation::Embed,
                _ => Operation::Generate,
            },
            input: hash(&vector["input"]),
            input_bytes: small(&vector["input_bytes"]),
            units_max: small(&vector["units_max"]),
            unit_price: large(&vector["unit_price"]),
        };
        assert_eq!(request.encode(), bytes(&vector["scale"]), "{vector}");
        assert_eq!(request.hash(), hash(&vector["hash"]), "{vector}");
    }
}

#[test]
fn vouchers_and_cancellations() {
    for vector in read(include_str!("../../vectors/voucher.json")) {
        let voucher = Voucher {
            channel: large(&vector["channel"]),
            payee: hash(&vector["payee"]).0,
            expiry: small(&vector["expiry"]),
            nonce: small(&vector["nonce"]),
            request: hash(&vector["request"]),
            sum: large(&vector["sum"]),
        };
        check(
            &vector,
            voucher.encode(),
            voucher.message(&hash(&vector["genesis"])),
        );
    }
    for vector in read(include_str!("../../vectors/cancel.json")) {
        let cancel = Cancel {
            channel: large(&vector["channel"]),
            payee: hash(&vector["payee"]).0,
            nonce: small(&vector["nonce"]),
            request: hash(&vector["request"]),
        };
        check(
            &vector,
            cancel.encode(),
            cancel.message(&hash(&vector["genesis"])),
        );
    }
}

#[test]
fn statements() {
    for vector in read(include_str!("../../vectors/statement.json")) {
        let tokens: Vec<u32> = (0..small(&vector["tokens"]))
            .map(|place| place * place % 30_000)
            .collect();
        let how = match vector["end"].as_str() {
            Some("stop") => Some(End::Stop),
            Some("length") => Some(End::Length),
            Some("cancelled") => Some(End::Cancelled),
            Some("cut") => Some(End::Cut),
            _ => None,
        };
        let end = how.map(|how| Ending {
            how,
            trace_root: hash(&vector["trace_root"]),
        });
        let statement = ChunkStatement {
            channel: large(&vector["channel"]),
            payee: hash(&vector["payee"]).0,
            nonce: small(&vector["nonce"]),
            request: hash(&vector["request"]),
            bytes: small(&vector["bytes"]),
            output: hash(&vector["output"]),
            units: small(&vector["units"]),
            price: large(&vector["price"]),
            end,
        };
        assert_eq!(content_hash(&said(&tokens)), statement.output, "{vector}");
        check(
            &vector,
            statement.encode(),
            statement.message(&hash(&vector["genesis"])),
        );
    }
}

#[test]
fn batches() {
    for vector in read(include_str!("../../vectors/batch.json")) {
        let channels: Vec<(ChannelId, Nonce, Vec<u128>)> = vector["channels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                let prices = part["prices"].as_array().unwrap().iter().map(large).collect();
                (large(&part["channel"]), small(&part["first"]), prices)
            })
            .collect();
        let batch = Batch::new(&entries(&channels)).unwrap();
        let root = BatchRoot::decode(&mut &bytes(&vector["root"])[..]).unwrap();
        assert_eq!(batch.root(), root, "{vector}");
        for opening in vector["openings"].as_array().unwrap() {
            let (channel, nonce) = (large(&opening["channel"]), small(&opening["nonce"]));
            let scale = bytes(&opening["scale"]);
            let decoded = ReceiptOpening::decode(&mut &scale[..]).unwrap();
            assert_eq!(batch.open(channel, nonce), Some(decoded.clone()), "{opening}");
            let shown = decoded.verify(&root).unwrap();
            assert_eq!(
                (shown.channel, shown.nonce, shown.start),
                (channel, nonce, large(&opening["start"]))
            );
        }
    }
}

/// Made by `@polkadot/util-crypto`, of a message of `voucher.json`: what a browser's wallet signs.
#[test]
fn a_signature_made_in_a_browser_is_good() {
    let vector = &read(include_str!("../../vectors/voucher.json"))[2];
    let signed: Value = serde_json::from_str(include_str!("../../vectors/wallet_signature.json")).unwrap();
    let (message, key) = (hash(&vector["message"]), hash(&signed["public"]).0);
    let signature = bytes(&signed["signature"]).try_into().unwrap();
    assert!(verify(&key, &wallet_bytes(&message.0), &signature));
    assert!(!verify(&key, &message.0, &signature));
}
