//! Real keys, disks that can fail, and models whose answers follow from what they are asked.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use codec::Encode;
use sp_core::{H256, Pair, sr25519};
use sp_crypto_hashing::blake2_256;
use surety_channel_calls::{
    payee::{Offer, PayeeLimits, RedeemPolicy},
    payer::Wanted,
    *,
};
use surety_channels::*;
use surety_model_trace::embeddings_header;
use surety_proofs::content_hash;
use surety_types::{
    input::{IdBounds, InputReader, Settings, encode_items, encode_prompt},
    model::Operation,
};

use crate::world::World;

pub const GENESIS: H256 = H256::repeat_byte(9);
pub const CHANNEL: ChannelId = 7;
pub const EXPIRY: Time = 10_000;
/// Plancks of a token.
pub const TOKEN: u128 = 5;
/// Plancks of an item.
pub const ITEM: u128 = 30;
pub const STOP: u32 = 2;
pub const PATIENCE: Millis = 1_000;
pub const BOUNDS: IdBounds = IdBounds {
    vocabulary: 1_000,
    positions: 4_096,
};

pub const POLICY: RedeemPolicy = RedeemPolicy {
    amount_min: 1,
    margin: 5,
    supply: 0,
    redeem_by: 1_000,
};

pub fn pair(seed: u8) -> sr25519::Pair {
    sr25519::Pair::from_seed(&[seed; 32])
}

pub fn account(seed: u8) -> AccountId {
    AccountId::from(pair(seed).public())
}

pub const STASH: u8 = 1;
pub const AGENT: u8 = 2;
pub const KEY: u8 = 3;

pub fn sign_with(seed: u8) -> Sign {
    let pair = pair(seed);
    Arc::new(move |message| pair.sign(message).0)
}

pub fn is_signed(key: &AccountId, bytes: &[u8], signature: &[u8; 64]) -> bool {
    let key: [u8; 32] = key.clone().into();
    let signature = sr25519::Signature::from_raw(*signature);
    sr25519::Pair::verify(&signature, bytes, &sr25519::Public::from_raw(key))
}

pub fn named(name: &str) -> H256 {
    H256(blake2_256(name.as_bytes()))
}

pub fn writer() -> Model {
    Model {
        bounds: BOUNDS,
        item_bytes: 0,
        stop_ids: vec![STOP],
    }
}

pub fn embedder() -> Model {
    Model {
        bounds: BOUNDS,
        item_bytes: 16,
        stop_ids: Vec::new(),
    }
}

pub fn payee_config() -> PayeeConfig {
    let offer = |model, operation, unit_price, facts| Offer {
        model: named(model),
        operation,
        unit_price,
        facts,
        chunk_units: 1..=512,
    };
    PayeeConfig {
        genesis: GENESIS,
        stash: account(STASH),
        agent: account(AGENT),
        sign: sign_with(AGENT),
        verify: Arc::new(is_signed),
        salts: ReceiptSalts::new([5; 32]),
        offers: vec![
            offer("writer", Operation::Generate, TOKEN, writer()),
            offer("embedder", Operation::Embed, ITEM, embedder()),
        ],
        limits: PayeeLimits {
            patience: PATIENCE,
            ..PayeeLimits::default()
        },
    }
}

pub fn payer_config() -> PayerConfig {
    PayerConfig {
        genesis: GENESIS,
        sign: sign_with(KEY),
        verify: Arc::new(is_signed),
        held_max: 1_000,
    }
}

pub fn terms(deposit: u128) -> ChannelTerms<AccountId> {
    ChannelTerms {
        channel: CHANNEL,
        payee: account(STASH),
        key: account(KEY),
        deposit,
        expiry: EXPIRY,
    }
}

/// What is asked of a model of [`payee_config`].
fn wanted(
    (model, facts): (&str, Model),
    (operation, units_max, unit_price): (Operation, u32, u128),
    input: Vec<u8>,
    chunk_units: u32,
) -> Wanted {
    Wanted {
        request: Request {
            model: named(model),
            operation,
            input: content_hash(&input),
            input_bytes: input.len() as u32,
            units_max,
            unit_price,
        },
        input,
        chunk_units,
        facts,
        call: None,
    }
}

/// A text of so many tokens goes on for so many, unless a stop id comes after `stops_after` (0 for never).
pub fn text(prompt: u32, tokens: u32, stops_after: u64, chunk_units: u32) -> Wanted {
    let settings = Settings {
        max_tokens: tokens,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: 1_000,
        seed: stops_after,
    };
    let ids: Vec<u32> = (0..prompt).map(|id| 100 + id % 800).collect();
    let input = encode_prompt(&ids, &settings, &BOUNDS).unwrap();
    let work = (Operation::Generate, prompt + tokens, TOKEN);
    wanted(("writer", writer()), work, input, chunk_units)
}

pub fn items(count: u32, chunk_units: u32) -> Wanted {
    let ids: Vec<Vec<u32>> = (0..count).map(|item| vec![10 + item % 900; 3]).collect();
    let input = encode_items(&ids, &BOUNDS).unwrap();
    let work = (Operation::Embed, count, ITEM);
    wanted(("embedder", embedder()), work, input, chunk_units)
}

/// What the model says: whole units, and how it ends.
pub fn answer(request: &Request, input: &[u8]) -> (Vec<u8>, End) {
    let seed = request.hash();
    let word = |at: u32| 10 + (u32::from(seed.0[at as usize % 32]) + at) % 900;
    match request.operation {
        Operation::Embed => {
            let words = 4 * request.units_max;
            (
                (0..words).flat_map(|at| word(at).to_le_bytes()).collect(),
                End::Length,
            )
        }
        Operation::Generate => {
            let settings = InputReader::new(input, BOUNDS).settings();
            let tokens = settings.new_tokens(request.work().room(BOUNDS.positions));
            let stops = u32::try_from(settings.seed).unwrap();
            let mut ids: Vec<u32> = (0..tokens).map(word).collect();
            let how = if stops > 0 && stops <= tokens {
                ids.truncate(stops as usize);
                *ids.last_mut().unwrap() = STOP;
                End::Stop
            } else {
                End::Length
            };
            (ids.iter().flat_map(|id| id.to_le_bytes()).collect(), how)
        }
    }
}

/// Bytes of a unit of an answer.
pub fn unit_bytes(request: &Request) -> usize {
    match request.operation {
        Operation::Embed => 16,
        Operation::Generate => 4,
    }
}

/// What stands before the first in an output.
pub fn head(request: &Request) -> Vec<u8> {
    match request.operation {
        Operation::Embed => embeddings_header(request.units_max, 4).unwrap(),
        Operation::Generate => vec![0; 4],
    }
}

pub fn trace_root(request: &Request, said: u32) -> H256 {
    H256(blake2_256(&(request.hash(), said).encode()))
}

type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// A disk, on which the process may die.
#[derive(Default)]
pub struct Disk {
    rows: Arc<Mutex<Rows>>,
    pub puts: Cell<usize>,
    /// At this write, and whether it is durable.
    pub dies_at: Cell<Option<(usize, bool)>>,
}

#[derive(Debug)]
pub struct Died;

impl Store for Disk {
    type Error = Died;

    fn put(&self, rows: &[Row]) -> Result<(), Died> {
        let at = self.puts.replace(self.puts.get() + 1);
        let dies = self.dies_at.get().filter(|(when, _)| *when == at);
        if dies.is_none_or(|(_, is_durable)| is_durable) {
            let mut all = self.rows.lock().unwrap();
            for row in rows {
                let key = (row.table, row.key.clone());
                match &row.value {
                    Some(value) => all.insert(key, value.clone()),
                    None => all.remove(&key),
                };
            }
        }
        if dies.is_some() { Err(Died) } else { Ok(()) }
    }
}

impl Disk {
    pub fn rows(&self) -> Vec<Row> {
        self.of(Table::is_loaded)
    }

    /// Reads rows as they are by then.
    pub fn reader(&self) -> ReadRow {
        let rows = self.rows.clone();
        Arc::new(move |table: Table, key: &[u8]| {
            let key = key.to_vec();
            let value = rows.lock().unwrap().get(&(table, key.clone())).cloned();
            value.map(|value| Row {
                table,
                key,
                value: Some(value),
            })
        })
    }

    pub fn of(&self, is_wanted: impl Fn(Table) -> bool) -> Vec<Row> {
        let all = self.rows.lock().unwrap();
        let wanted = all.iter().filter(|((table, _), _)| is_wanted(*table));
        let row = |((table, key), value): (&(Table, Vec<u8>), &Vec<u8>)| Row {
            table: *table,
            key: key.clone(),
            value: Some(value.clone()),
        };
        wanted.map(row).collect()
    }
}

/// A batch of one receipt, and how that is shown.
pub fn batched(statement: ChunkStatement<AccountId>) -> (BatchRoot, Batched<AccountId>) {
    let (channel, nonce, price) = (statement.channel, statement.nonce, statement.price);
    let leaf = ReceiptLeaf {
        receipt: statement.message(&GENESIS).into(),
        salt: named("salt"),
    };
    let entry = BatchEntry {
        channel,
        nonce,
        price,
        leaf,
    };
    let batch = Batch::new(&[entry]).unwrap();
    let opening = batch.open(channel, nonce).unwrap();
    (batch.root(), Batched { opening, statement })
}

/// Asks for five tokens and has these alone answered, whatever else is open.
pub fn answer_next_to_others(world: &mut World) -> Nonce {
    let short = world.ask(text(10, 5, 0, 16)).unwrap();
    for _ in 0..4 {
        world.tell_payee(short);
        world.compute(short, 5);
        world.tell_payer(short);
    }
    assert!(world.done.contains_key(&short));
    short
}
