//! A provider: the real payee, whose engine says what follows from what it is asked, and which dies or lies
//! as it is told to.

mod fault;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
};

use codec::Encode;
use sp_core::H256;
use surety_chain_client::{
    AccountId, Call, Chain, ChainError, ChannelChain, FakeChain, Signer, Until, When, address,
    is_message_signed,
};
use surety_channel_calls::{
    FromPayee, Payee, PayeeConfig, PayeeEffect, ReceiptSalts, Row, Step, Store, ToPayee,
    message::{self, FromHolder, Message},
    payee::{BatchLimits, ChannelSeen, Offer, PayeeLimits},
};
use surety_channels::{
    BatchRoot, ChannelId, ChunkStatement, End, Ending, Nonce, Request, SignedChunkStatement,
};
use surety_network::{CallStream, DataPlane};
use surety_types::{input::WORD_BYTES, model::Operation};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    compared::say_other,
    drawn_out::{another_receipt, refuse, trickle},
    engine::{answer, unit_bytes},
    world::{facts, model},
};

pub use crate::engine::{tokens, vector};
pub use fault::Fault;

/// What its engine makes.
struct Engine {
    request: Request,
    output: Vec<u8>,
    how: End,
    made: usize,
}

/// Rows that nobody reads again.
struct Nowhere;

impl Store for Nowhere {
    type Error = Infallible;

    fn put(&self, _: &[Row]) -> Result<(), Infallible> {
        Ok(())
    }
}

pub struct State {
    pub payee: Payee,
    agent: Signer,
    genesis: H256,
    engines: BTreeMap<(ChannelId, Nonce), Engine>,
    streams: BTreeMap<(ChannelId, Nonce), mpsc::UnboundedSender<FromPayee>>,
    pub fault: Fault,
    /// Chunks that were said.
    pub chunks: usize,
    /// What it said last.
    last: Option<SignedChunkStatement<AccountId>>,
    /// Requests that it was asked, taken or not.
    pub asked: usize,
    /// Questions about receipts that it was asked.
    pub questions: usize,
    /// All that it would say, by channel and number.
    pub outputs: BTreeMap<(ChannelId, Nonce), Vec<u8>>,
    /// Sums of vouchers that it was shown, by channel.
    pub sums: BTreeMap<ChannelId, Vec<u128>>,
    roots: Vec<BatchRoot>,
    /// What was asked, by channel and number.
    pub requests: BTreeMap<(ChannelId, Nonce), Request>,
}

#[derive(Clone)]
pub struct Provider {
    pub stash: AccountId,
    state: Arc<Mutex<State>>,
    agent: Signer,
    chain: FakeChain,
    _accepts: Arc<Aborted>,
}

struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Provider {
    pub fn start(
        (stash, agent): (AccountId, Signer),
        price: u128,
        fault: Fault,
        chain: &FakeChain,
        plane: Arc<dyn DataPlane>,
    ) -> Self {
        let offer = |operation| Offer {
            model: model(),
            operation,
            unit_price: price,
            facts: facts(),
            chunk_units: 1..=512,
        };
        let (genesis, signer) = (chain.info().genesis, agent.clone());
        let config = PayeeConfig {
            genesis,
            stash: stash.clone(),
            agent: agent.account().clone(),
            sign: Arc::new(move |message| signer.sign_hash(message)),
            verify: Arc::new(|key, bytes, signature| is_message_signed(key, bytes, *signature)),
            salts: ReceiptSalts::new([5; 32]),
            offers: [Operation::Generate, Operation::Embed].map(offer).into(),
            limits: PayeeLimits::default(),
        };
        let (payee, _) = Payee::open(config, [], 0).unwrap();
        let state = State {
            payee,
            agent: agent.clone(),
            genesis,
            engines: BTreeMap::new(),
            streams: BTreeMap::new(),
            fault,
            chunks: 0,
            last: None,
            asked: 0,
            questions: 0,
            outputs: BTreeMap::new(),
            sums: BTreeMap::new(),
            roots: Vec::new(),
            requests: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let mut calls = plane.calls().unwrap();
        let (serving, on_chain) = (state.clone(), chain.clone());
        let accepts = tokio::spawn(async move {
            // Its node lives as long as it does.
            let _plane = plane;
            while let Some(stream) = calls.next().await {
                tokio::spawn(serve(serving.clone(), on_chain.clone(), stream));
            }
        });
        Self {
            stash,
            state,
            agent,
            chain: chain.clone(),
            _accepts: Arc::new(Aborted(accepts)),
        }
    }

    /// Its account, as receipts say it.
    pub fn name(&self) -> String {
        address(&self.stash)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Commits what it can batch, in a final block.
    pub async fn batch(&self) {
        let limits = BatchLimits {
            receipts_max: 1_000,
            price_max: u128::MAX,
        };
        let roots = {
            let mut state = self.state();
            let step = state.payee.make_batch(&limits);
            state.act(step);
            std::mem::take(&mut state.roots)
        };
        for root in roots {
            let call = Call::CommitBatch { root };
            self.chain
                .submit(&self.agent, call, Until::Finalized.into())
                .await
                .unwrap();
            let batches = self.chain.batches(When::Finalized, &self.stash).await.unwrap();
            let number = batches.last().unwrap().batch;
            let mut state = self.state();
            let step = state.payee.committed(&root, number);
            state.act(step);
        }
    }

    /// Shows what it has batched for a request that somebody demands, in a final block.
    pub async fn show(&self, to: &AccountId, channel: ChannelId, nonce: Nonce) -> Result<(), ChainError> {
        let shown = self.state().payee.open_receipt(channel, nonce).unwrap();
        let call = Call::ShowReceipt {
            demander: to.clone(),
            batch: shown.batch,
            receipt: Box::new(shown.batched),
            shown: None,
        };
        let submitted = self.chain.submit(&self.agent, call, Until::Finalized.into());
        submitted.await.map(drop)
    }

    /// What was served over a channel, in plancks.
    pub fn served(&self, channel: ChannelId) -> u128 {
        self.state().payee.account(channel).unwrap_or_default().1
    }
}

async fn serve(state: Arc<Mutex<State>>, chain: FakeChain, stream: CallStream) {
    let (mut to, mut from) = stream.split();
    let Ok(Some(frame)) = from.recv(ToPayee::bytes_max()).await else {
        return;
    };
    if let Ok(FromHolder::Show(asked)) = message::read(&frame) {
        let answers = state.lock().unwrap().show(&asked);
        for answer in answers {
            to.send(&answer.encode()).await.ok();
        }
        // Read before it is dropped.
        from.recv(1).await.ok();
        return;
    }
    let ToPayee::Ask(ask) = message::read(&frame).unwrap() else {
        return;
    };
    let (channel, nonce) = (ask.voucher.voucher.channel, ask.voucher.voucher.nonce);
    let view = chain.channel(When::Finalized, channel).await.unwrap();
    let seen = view.map(|view| ChannelSeen {
        terms: view.terms(),
        purse: view.purse,
    });
    let (tell, mut said) = mpsc::unbounded_channel();
    if !state.lock().unwrap().ask(ask, seen.as_ref(), tell) {
        return;
    }
    loop {
        tokio::select! {
            message = said.recv() => {
                let Some(message) = message else { return };
                if to.send(&message.encode()).await.is_err() {
                    break;
                }
            }
            frame = from.recv(ToPayee::bytes_max()) => {
                let Ok(Some(frame)) = frame else { break };
                state.lock().unwrap().hear(message::read(&frame).unwrap());
            }
        }
    }
    let mut state = state.lock().unwrap();
    let step = state.payee.abandon(channel, nonce);
    state.act(step);
    state.streams.remove(&(channel, nonce));
}

impl State {
    /// How many requests it is answering.
    pub fn open(&self) -> usize {
        self.payee.open_calls().count()
    }

    /// False where it is gone.
    fn ask(
        &mut self,
        ask: surety_channel_calls::Ask,
        seen: Option<&ChannelSeen>,
        tell: mpsc::UnboundedSender<FromPayee>,
    ) -> bool {
        self.asked += 1;
        let voucher = &ask.voucher.voucher;
        let (key, request) = ((voucher.channel, voucher.nonce), ask.request.clone());
        let (input, of) = (ask.input.to_vec(), voucher.clone());
        self.sums.entry(voucher.channel).or_default().push(voucher.sum);
        if matches!(self.fault, Fault::Dies(upto) if self.chunks >= upto) {
            return false;
        }
        let taken = match self.fault.refusal(voucher, &request) {
            Some(why) => Err(why),
            None => self.payee.try_ask(ask, seen, 0),
        };
        match taken {
            Err(why) => drop(tell.send(FromPayee::Refused { nonce: key.1, why })),
            Ok(step) => {
                self.streams.insert(key, tell.clone());
                self.requests.insert(key, request.clone());
                self.act(step);
                self.compute();
                match self.fault {
                    Fault::Refuses(every) => drop(tokio::spawn(refuse(tell, key.1, every))),
                    Fault::Trickles(every) => {
                        self.engines.remove(&key);
                        let answered = answer(&request, &input).0;
                        let by = (self.agent.clone(), self.genesis);
                        drop(tokio::spawn(trickle(tell, (of, request, answered), by, every)));
                    }
                    _ => {}
                }
            }
        }
        true
    }

    fn hear(&mut self, message: ToPayee) {
        let step = match message {
            ToPayee::Ask(_) => panic!("two on one stream"),
            ToPayee::Pay(signed) => {
                let voucher = &signed.voucher;
                self.sums.entry(voucher.channel).or_default().push(voucher.sum);
                self.payee.pay(signed, 0, 0)
            }
            ToPayee::Cancel(signed) => self.payee.cancel(signed),
        };
        self.act(step);
        self.compute();
    }

    pub fn act(&mut self, step: Step<PayeeEffect>) {
        for effect in step.commit(&Nowhere).unwrap() {
            match effect {
                PayeeEffect::Send {
                    channel,
                    nonce,
                    message,
                } => self.say((channel, nonce), message),
                PayeeEffect::Compute {
                    channel,
                    nonce,
                    request,
                    input,
                } => {
                    let (mut output, how) = answer(&request, &input);
                    if self.fault == Fault::Errs {
                        output[WORD_BYTES as usize] ^= 1;
                    }
                    let all = [&[0; 4][..], &output].concat();
                    self.outputs.insert((channel, nonce), all);
                    let engine = Engine {
                        request,
                        output,
                        how,
                        made: 0,
                    };
                    self.engines.insert((channel, nonce), engine);
                }
                PayeeEffect::Trace { channel, nonce, .. } => {
                    self.engines.remove(&(channel, nonce));
                    let step = self.payee.traced(channel, nonce, H256::repeat_byte(3));
                    self.act(step);
                }
                PayeeEffect::Stop { channel, nonce } => drop(self.engines.remove(&(channel, nonce))),
                PayeeEffect::Commit { root } => self.roots.push(root),
            }
        }
    }

    fn say(&mut self, call: (ChannelId, Nonce), mut message: FromPayee) {
        let mut is_last = false;
        if let FromPayee::Chunk { bytes, statement } = &mut message {
            let at = self.chunks;
            self.chunks += 1;
            is_last = statement.statement.end.is_some();
            match self.fault {
                Fault::Dies(upto) if at >= upto => {
                    self.streams.clear();
                    self.engines.clear();
                    return;
                }
                Fault::OtherBytes(which) if at == which => {
                    let mut other = bytes.to_vec();
                    other[0] ^= 1;
                    *bytes = other.try_into().unwrap();
                }
                Fault::SaysOther => {
                    say_other(bytes, statement, self.last.as_ref(), (&self.agent, self.genesis));
                }
                Fault::Twice(which) if at == which => {
                    let before = self.last.clone().unwrap().statement;
                    let other = ChunkStatement {
                        output: H256::repeat_byte(9),
                        ..before
                    };
                    *bytes = Default::default();
                    statement.signature = self.agent.sign_hash(&other.message(&self.genesis));
                    statement.statement = other;
                }
                _ => {}
            }
            self.last = Some(statement.clone());
        }
        let again = (is_last && self.fault == Fault::EndsTwice)
            .then(|| another_receipt(&message, (&self.agent, self.genesis)))
            .flatten();
        if let Some(stream) = self.streams.get(&call) {
            for message in [Some(message), again].into_iter().flatten() {
                stream.send(message).ok();
            }
        }
        if is_last {
            self.streams.remove(&call);
        }
    }

    /// It computes from now on.
    pub fn go_on(&mut self) {
        self.fault = Fault::None;
        self.compute();
    }

    /// As much as may be computed by now.
    fn compute(&mut self) {
        let waits = |fault| matches!(fault, Fault::Waits | Fault::Refuses(_) | Fault::Trickles(_));
        while !waits(self.fault) {
            let keys: Vec<_> = self.engines.keys().copied().collect();
            let moved = keys.into_iter().filter(|key| self.compute_some(*key)).count();
            if moved == 0 {
                return;
            }
        }
    }

    fn compute_some(&mut self, (channel, nonce): (ChannelId, Nonce)) -> bool {
        let room = self.payee.room(channel, nonce) as usize;
        let Some(engine) = self.engines.get_mut(&(channel, nonce)) else {
            return false;
        };
        let unit = unit_bytes(engine.request.operation);
        let upto = (engine.made + unit * room).min(engine.output.len());
        let bytes = engine.output[engine.made..upto].to_vec();
        if bytes.is_empty() {
            return false;
        }
        engine.made = upto;
        let whole = (upto == engine.output.len()).then_some(engine.how);
        if whole.is_some() {
            self.engines.remove(&(channel, nonce));
        }
        let step = self.payee.said(channel, nonce, &bytes, 0).unwrap();
        self.act(step);
        if let Some(how) = whole {
            let trace_root = H256::repeat_byte(3);
            let step = self.payee.finished(channel, nonce, Ending { how, trace_root }, 0);
            // It may have died over what it said.
            if let Ok(step) = step {
                self.act(step);
            }
        }
        true
    }
}
