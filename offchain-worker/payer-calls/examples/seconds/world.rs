//! A payer, a payee, and the chain of both.

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Instant,
};

use codec::Encode;
use sp_core::{H256, Pair, sr25519};
use surety_channel_calls::{
    AccountId, FromPayee, Model, Payee, PayeeConfig, PayeeEffect, Payer, PayerConfig, PayerEffect,
    ReceiptSalts, Row, Sign, Step, Store, Table, ToPayee, message,
    payee::{BatchLimits, ChannelSeen, Duty, Offer, PayeeLimits, RedeemPolicy},
    payer::Wanted,
};
use surety_channels::{
    BatchNumber, BatchWindow, ChannelId, ChannelOpening, ChannelTerms, End, Ending, Nonce, Purse,
    RECEIPTS_MAX, Request, SignedChunkStatement, SignedVoucher, Time,
};
use surety_proofs::content_hash;
use surety_types::{
    input::{IdBounds, Settings, encode_prompt},
    model::Operation,
};

use crate::{Result, clock::each};

pub const GENESIS: H256 = H256::repeat_byte(9);
const MODEL: H256 = H256::repeat_byte(3);
pub const CHANNEL: ChannelId = 7;
const EXPIRY: Time = 1_000_000;
/// Last time of a batch's window, and when it is final.
const WINDOW: Time = 10;
const FINAL: Time = WINDOW + 1;
pub const DEPOSIT: u128 = 1 << 100;
/// Plancks of a token.
const PRICE: u128 = 1_000_000_000;
/// Tokens of a prompt and of its answer, which is one chunk.
const PROMPT: u32 = 16;
const TOKENS: u32 = 16;
/// Bytes of a signed extrinsic beside its call, at most: length 4, version 1, address 33, signature 65,
/// era 2, nonce 4, tip 1, mode of the metadata's hash 1.
const ENVELOPE: usize = 111;
/// Numbers of a pallet and its call.
const CALL: usize = 2;

fn pair(seed: u8) -> sr25519::Pair {
    sr25519::Pair::from_seed(&[seed; 32])
}

fn account(seed: u8) -> AccountId {
    AccountId::from(pair(seed).public())
}

const STASH: u8 = 1;
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

/// By table and key.
type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

#[derive(Default)]
struct Memory(RefCell<Rows>);

impl Store for Memory {
    type Error = Infallible;

    fn put(&self, rows: &[Row]) -> std::result::Result<(), Infallible> {
        let mut all = self.0.borrow_mut();
        for row in rows {
            let key = (row.table, row.key.clone());
            match &row.value {
                Some(value) => all.insert(key, value.clone()),
                None => all.remove(&key),
            };
        }
        Ok(())
    }
}

impl Memory {
    fn commit<E>(&self, step: Step<E>) -> Vec<E> {
        match step.commit(self) {
            Ok(effects) => effects,
            Err(never) => match never.error {},
        }
    }
}

/// What a channel has in some batches.
pub type Openings = Vec<(BatchNumber, ChannelOpening)>;

/// What went to the chain.
#[derive(Default)]
pub struct Sent {
    pub transactions: usize,
    pub bytes: usize,
}

impl Sent {
    fn send(&mut self, arguments: usize) {
        self.transactions += 1;
        self.bytes += ENVELOPE + CALL + arguments;
    }
}

pub struct World {
    payer: Payer,
    pub payee: Payee,
    memory: Memory,
    pub seen: ChannelSeen,
    pub windows: BTreeMap<BatchNumber, BatchWindow>,
    pub payer_seconds: f64,
    pub payee_seconds: f64,
    pub batch_seconds: f64,
    pub by_payer: Sent,
    pub by_payee: Sent,
    pub receipts: Vec<SignedChunkStatement<AccountId>>,
    pub redeemed: Vec<(SignedVoucher<AccountId>, Openings)>,
}

/// What is asked, the same each time.
fn wanted() -> Result<Wanted> {
    let facts = Model {
        bounds: IdBounds {
            vocabulary: 1_000,
            positions: 4_096,
        },
        item_bytes: 0,
        stop_ids: Vec::new(),
    };
    let settings = Settings {
        max_tokens: TOKENS,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: 1_000,
        seed: 0,
    };
    let ids: Vec<u32> = (0..PROMPT).map(|id| 100 + id).collect();
    let input = encode_prompt(&ids, &settings, &facts.bounds).map_err(|fault| fault.to_string())?;
    Ok(Wanted {
        request: Request {
            model: MODEL,
            operation: Operation::Generate,
            input: content_hash(&input),
            input_bytes: u32::try_from(input.len())?,
            units_max: PROMPT + TOKENS,
            unit_price: PRICE,
        },
        input,
        chunk_units: TOKENS,
        facts,
        call: None,
    })
}

fn answer() -> Vec<u8> {
    (0..TOKENS)
        .flat_map(|token| (200 + token).to_le_bytes())
        .collect()
}

impl World {
    pub fn new(calls: u32) -> Result<Self> {
        // Both may share one: they have no table in common.
        let memory = Memory::default();
        let terms = ChannelTerms {
            channel: CHANNEL,
            payee: account(STASH),
            key: account(KEY),
            deposit: DEPOSIT,
            expiry: EXPIRY,
        };
        let payee = PayeeConfig {
            genesis: GENESIS,
            stash: account(STASH),
            agent: account(AGENT),
            sign: sign_with(AGENT),
            verify: Arc::new(is_signed),
            salts: ReceiptSalts::new([5; 32]),
            offers: vec![Offer {
                model: MODEL,
                operation: Operation::Generate,
                unit_price: PRICE,
                facts: wanted()?.facts,
                chunk_units: 1..=512,
            }],
            limits: PayeeLimits::default(),
        };
        let payer = PayerConfig {
            genesis: GENESIS,
            sign: sign_with(KEY),
            verify: Arc::new(is_signed),
            held_max: usize::try_from(calls)?,
        };
        let (payee, start) = Payee::open(payee, [], 0)?;
        memory.commit(start);
        let (payer, start) = Payer::open(payer, terms.clone(), vec![account(AGENT)], 0, [])?;
        memory.commit(start);
        let mut by_payer = Sent::default();
        // `open`, and `close` when it wants no more.
        by_payer.send((&terms.payee, &terms.key, DEPOSIT, EXPIRY).encoded_size());
        by_payer.send(CHANNEL.encoded_size());
        Ok(Self {
            payer,
            payee,
            memory,
            seen: ChannelSeen {
                terms,
                purse: Purse::new(CHANNEL, DEPOSIT, 0),
            },
            windows: BTreeMap::new(),
            payer_seconds: 0.0,
            payee_seconds: 0.0,
            batch_seconds: 0.0,
            by_payer,
            by_payee: Sent::default(),
            receipts: Vec::new(),
            redeemed: Vec::new(),
        })
    }

    /// What the payer does takes time, and gives messages.
    fn payer_does(
        &mut self,
        act: impl FnOnce(&mut Payer) -> Result<Step<PayerEffect>>,
    ) -> Result<VecDeque<Vec<u8>>> {
        let begun = Instant::now();
        let step = act(&mut self.payer)?;
        let mut messages = VecDeque::new();
        for effect in self.memory.commit(step) {
            match effect {
                PayerEffect::Send { message, .. } => messages.push_back(message.encode()),
                PayerEffect::Done { receipt, .. } => self.receipts.push(receipt),
                PayerEffect::Taken { .. } | PayerEffect::Said { .. } => {}
                PayerEffect::Refused { why, .. } => return Err(format!("refused: {why:?}").into()),
                PayerEffect::Broken { why, .. } => return Err(format!("broken off: {why:?}").into()),
            }
        }
        self.payer_seconds += begun.elapsed().as_secs_f64();
        Ok(messages)
    }

    /// The same of the payee, and what it is to compute.
    fn payee_does(
        &mut self,
        act: impl FnOnce(&mut Payee, &ChannelSeen) -> Result<Step<PayeeEffect>>,
    ) -> Result<(VecDeque<Vec<u8>>, Option<Nonce>)> {
        let begun = Instant::now();
        let step = act(&mut self.payee, &self.seen)?;
        let (mut messages, mut asked) = (VecDeque::new(), None);
        for effect in self.memory.commit(step) {
            match effect {
                PayeeEffect::Send { message, .. } => messages.push_back(message.encode()),
                PayeeEffect::Compute { nonce, .. } => asked = Some(nonce),
                other => return Err(format!("nobody expected {other:?}").into()),
            }
        }
        self.payee_seconds += begun.elapsed().as_secs_f64();
        Ok((messages, asked))
    }

    /// One call, from the ask to its receipt.
    pub fn call(&mut self) -> Result<()> {
        let (before, wanted) = (self.receipts.len(), wanted()?);
        let mut to_payee = self.payer_does(|payer| Ok(payer.ask(wanted)?.1))?;
        while let Some(bytes) = to_payee.pop_front() {
            let (mut to_payer, asked) =
                self.payee_does(|payee, seen| match message::read::<ToPayee>(&bytes)? {
                    ToPayee::Ask(ask) => Ok(payee.ask(ask, Some(seen), 50)),
                    ToPayee::Pay(signed) => Ok(payee.pay(signed, 50, 0)),
                    ToPayee::Cancel(signed) => Ok(payee.cancel(signed)),
                })?;
            if let Some(nonce) = asked {
                let output = answer();
                let (said, _) = self.payee_does(|payee, _| {
                    let mut step = payee.said(CHANNEL, nonce, &output, 0)?;
                    let end = Ending {
                        how: End::Length,
                        trace_root: H256::repeat_byte(8),
                    };
                    step.join(payee.finished(CHANNEL, nonce, end, 0)?);
                    Ok(step)
                })?;
                to_payer.extend(said);
            }
            while let Some(bytes) = to_payer.pop_front() {
                let message: FromPayee = message::read(&bytes)?;
                let nonce = Nonce::try_from(before)?;
                to_payee.extend(self.payer_does(|payer| Ok(payer.hear(nonce, message)))?);
            }
        }
        if self.receipts.len() == before {
            return Err("a call has no receipt".into());
        }
        Ok(())
    }

    /// The receipts that are in none go to the chain in a batch.
    pub fn batch(&mut self) -> Result<()> {
        let limits = BatchLimits {
            receipts_max: RECEIPTS_MAX,
            price_max: u128::MAX,
        };
        let mut made = self.payee.make_batch(&limits);
        let root = self.payee.uncommitted().ok_or("there is no batch")?;
        let receipts = f64::from(root.sums.receipts);
        if self.windows.is_empty() {
            // Made again and again: once is too short to be measured.
            self.batch_seconds = each(|| {
                self.memory.commit(self.payee.recall(&root));
                made = self.payee.make_batch(&limits);
                Ok(())
            })? / receipts;
        }
        self.memory.commit(made);
        self.by_payee.send(root.encoded_size());
        let number = BatchNumber::try_from(self.windows.len())?;
        self.windows.insert(number, BatchWindow::new(root, WINDOW));
        self.memory.commit(self.payee.committed(&root, number));
        Ok(())
    }

    /// All batches are final, and the chain pays.
    pub fn redeem(&mut self) -> Result<()> {
        let policy = RedeemPolicy {
            amount_min: 1,
            margin: 5,
            supply: 0,
            redeem_by: EXPIRY,
        };
        loop {
            let duties = self.payee.duties(&self.seen, &self.windows, FINAL, &policy);
            let redeem = duties.into_iter().find_map(|duty| match duty {
                Duty::Redeem {
                    voucher, openings, ..
                } => Some((voucher, openings)),
                _ => None,
            });
            let Some((voucher, openings)) = redeem else { break };
            self.by_payee
                .send(voucher.encoded_size() + openings.encoded_size());
            self.seen.purse = self.paid(self.seen.purse, &voucher, &openings)?;
            self.redeemed.push((voucher, openings));
        }
        let owed: u128 = self.receipts.iter().map(|receipt| receipt.statement.price).sum();
        if self.seen.purse.paid != owed {
            return Err(format!("{} plancks were paid of {owed}", self.seen.purse.paid).into());
        }
        Ok(())
    }

    /// What the chain works out when something is redeemed, without its storage.
    pub fn paid(
        &self,
        mut purse: Purse,
        voucher: &SignedVoucher<AccountId>,
        openings: &[(BatchNumber, ChannelOpening)],
    ) -> Result<Purse> {
        let checked = voucher.voucher.check(&self.seen.terms, FINAL);
        checked.map_err(|why| format!("the voucher is refused: {why:?}"))?;
        if !voucher.is_signed(&GENESIS, &self.seen.terms.key, is_signed) {
            return Err("the voucher is not signed".into());
        }
        for (number, opening) in openings {
            let window = self.windows.get(number).ok_or("no such batch")?;
            let shown = opening.verify(&window.root).ok_or("an opening is wrong")?;
            purse
                .count(window, &shown, FINAL, 0)
                .map_err(|why| format!("not counted: {why:?}"))?;
        }
        purse.redeem(voucher.voucher.sum, FINAL, 0);
        Ok(purse)
    }
}
