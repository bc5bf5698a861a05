//! What is signed, what is proven and what is paid: against plain models, hostile bytes and hostile people.

#![allow(clippy::unwrap_used)]

mod batches;
mod counted;
mod demanded;
mod draws;
mod faults;
mod lives;
mod purse;
mod regions;
mod seasoned;
mod sizes;
mod statements;
mod sums;
mod vectors;
mod vouchers;

use sp_core::{H256, Pair, sr25519};
use sp_crypto_hashing::blake2_256;
use surety_channels::*;
use surety_proofs::{SegmentOpening, content_hash};
use surety_types::model::Operation;

type Account = [u8; 32];

const GENESIS: H256 = H256::repeat_byte(9);
const CHANNEL: ChannelId = 7;

fn pair(seed: u8) -> sr25519::Pair {
    sr25519::Pair::from_seed(&[seed; 32])
}

fn payee() -> sr25519::Pair {
    pair(1)
}

fn payer() -> sr25519::Pair {
    pair(2)
}

fn account(pair: &sr25519::Pair) -> Account {
    pair.public().0
}

/// As the runtime does.
fn verify(key: &Account, bytes: &[u8], signature: &[u8; 64]) -> bool {
    let signature = sr25519::Signature::from_raw(*signature);
    sr25519::Pair::verify(&signature, bytes, &sr25519::Public::from_raw(*key))
}

fn named(name: &str) -> H256 {
    H256(blake2_256(name.as_bytes()))
}

/// A request of 10 ids, at 5 plancks a token.
fn request() -> Request {
    Request {
        model: named("model"),
        operation: Operation::Generate,
        input: named("input"),
        input_bytes: 4 * (6 + 10),
        units_max: 10_000,
        unit_price: 5,
    }
}

/// What a generation of these ids says so far.
fn said(tokens: &[u32]) -> Vec<u8> {
    let words = std::iter::once(&0).chain(tokens);
    words.flat_map(|word| word.to_le_bytes()).collect()
}

/// An honest statement of them.
fn statement(nonce: Nonce, tokens: &[u32], how: Option<End>) -> ChunkStatement<Account> {
    let (request, bytes) = (request(), said(tokens));
    let units = 10 + tokens.len() as u32;
    ChunkStatement {
        channel: CHANNEL,
        payee: account(&payee()),
        nonce,
        request: request.hash(),
        bytes: bytes.len() as u32,
        output: content_hash(&bytes),
        units,
        price: request.price(units).unwrap(),
        end: how.map(|how| Ending {
            how,
            trace_root: named("trace"),
        }),
    }
}

/// The segment of what `longer` says in which what `shorter` says ends.
fn shown(longer: &[u32], shorter: &[u32]) -> Option<SegmentOpening> {
    SegmentOpening::new(&said(longer), (said(shorter).len() as u32 - 1) / 1024)
}

fn signed(statement: ChunkStatement<Account>) -> SignedChunkStatement<Account> {
    let agent = payee();
    SignedChunkStatement {
        signature: agent.sign(&statement.message(&GENESIS)).0,
        agent: account(&agent),
        statement,
    }
}

fn voucher(nonce: Nonce, sum: u128) -> Voucher<Account> {
    Voucher {
        channel: CHANNEL,
        payee: account(&payee()),
        expiry: 1_000,
        nonce,
        request: request().hash(),
        sum,
    }
}

fn terms(deposit: u128) -> ChannelTerms<Account> {
    ChannelTerms {
        channel: CHANNEL,
        payee: account(&payee()),
        key: account(&payer()),
        deposit,
        expiry: 1_000,
    }
}

fn entry(channel: ChannelId, nonce: Nonce, price: u128) -> BatchEntry {
    BatchEntry {
        channel,
        nonce,
        price,
        leaf: ReceiptLeaf {
            receipt: named(&format!("receipt {channel} {nonce}")),
            salt: named(&format!("salt {channel} {nonce}")),
        },
    }
}

/// Entries of channels with so many receipts each.
fn entries(channels: &[(ChannelId, Nonce, Vec<u128>)]) -> Vec<BatchEntry> {
    let of = |(channel, first, prices): &(ChannelId, Nonce, Vec<u128>)| {
        let numbered = (0..).zip(prices);
        let entry = |(at, price): (Nonce, &u128)| entry(*channel, first + at, *price);
        numbered.map(entry).collect::<Vec<_>>()
    };
    channels.iter().flat_map(of).collect()
}

/// A batch of one receipt for each of some statements of consecutive requests.
fn batch_of(statements: &[ChunkStatement<Account>]) -> Batch {
    let entry = |statement: &ChunkStatement<Account>| BatchEntry {
        channel: statement.channel,
        nonce: statement.nonce,
        price: statement.price,
        leaf: ReceiptLeaf {
            receipt: H256(statement.message(&GENESIS)),
            salt: named("salt"),
        },
    };
    Batch::new(&statements.iter().map(entry).collect::<Vec<_>>()).unwrap()
}
