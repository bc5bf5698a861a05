//! A payer, and its connections.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use codec::Encode;
use surety_chain_client::{AccountId, ChannelView, Signer, message_verifier};
use surety_channel_calls::{
    FromPayee, Payer, PayerConfig, PayerEffect, Refusal, Row, Step, Store, ToPayee,
    message::{self, Message},
    payer::Wanted,
};
use surety_channels::{Nonce, SignedChunkStatement, VoucherRefusal};
use surety_proofs::content_hash;
use surety_provider_calls::line::{Broken, Hear, Line, Listen, Tell};
use tokio::sync::mpsc;

use crate::world::Process;

/// Frames on their way.
const FRAMES: usize = 8;

struct Ear(mpsc::Receiver<Vec<u8>>);
struct Mouth(mpsc::Sender<Vec<u8>>);
pub struct Calls(pub mpsc::Receiver<Line>);

#[async_trait]
impl Hear for Ear {
    async fn hear(&mut self, bytes_max: usize) -> Result<Option<Vec<u8>>, Broken> {
        let frame = self.0.recv().await;
        match frame {
            Some(frame) if frame.len() > bytes_max => Err(Broken("too long".into())),
            frame => Ok(frame),
        }
    }
}

#[async_trait]
impl Tell for Mouth {
    async fn tell(&mut self, frame: &[u8]) -> Result<(), Broken> {
        let sent = self.0.send(frame.to_vec()).await;
        sent.map_err(|_| Broken("gone".into()))
    }
}

#[async_trait]
impl Listen for Calls {
    async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// A disk that always works.
struct Disk;

impl Store for Disk {
    type Error = ();

    fn put(&self, _: &[Row]) -> Result<(), ()> {
        Ok(())
    }
}

/// A payer of one channel.
pub struct Client {
    pub payer: Mutex<Payer>,
    lines: Mutex<BTreeMap<Nonce, mpsc::Sender<Vec<u8>>>>,
    provider: Mutex<mpsc::Sender<Line>>,
    /// Whether it sends what it signs after a request was taken.
    pub pays: AtomicBool,
    /// Answers that nobody listens to. What they have cost meanwhile it hears when it has to know.
    pub held: Mutex<Vec<Call>>,
}

/// A request on its way.
pub struct Call {
    pub nonce: Nonce,
    from: mpsc::Receiver<Vec<u8>>,
    /// What was said of it.
    pub said: Vec<u8>,
    pub chunks: usize,
    pub receipt: Option<SignedChunkStatement<AccountId>>,
    pub refused: Option<Refusal>,
    is_worth_retry: bool,
}

impl Client {
    pub fn new(
        view: &ChannelView,
        signers: Vec<AccountId>,
        key: &Signer,
        genesis: surety_types::ContentHash,
        provider: mpsc::Sender<Line>,
    ) -> Arc<Self> {
        let config = PayerConfig {
            genesis,
            sign: key.message_signer(),
            verify: message_verifier(),
            held_max: 1_000,
        };
        let (payer, step) = Payer::open(config, view.terms(), signers, 0, []).unwrap();
        assert!(step.commit(&Disk).unwrap().is_empty());
        Arc::new(Self {
            payer: Mutex::new(payer),
            lines: Mutex::default(),
            provider: Mutex::new(provider),
            pays: AtomicBool::new(true),
            held: Mutex::default(),
        })
    }

    /// The provider has started again.
    pub fn connect(&self, process: &Process) {
        *self.provider.lock().unwrap() = process.lines.clone();
    }

    /// Connects, and says nothing.
    pub async fn line(&self) -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>) {
        let (to, heard) = mpsc::channel(FRAMES);
        let (told, from) = mpsc::channel(FRAMES);
        let line = Line {
            from: Box::new(Ear(heard)),
            to: Box::new(Mouth(told)),
        };
        let provider = self.provider.lock().unwrap().clone();
        assert!(provider.send(line).await.is_ok());
        (to, from)
    }

    /// Asks, and waits for the answer to that.
    pub async fn ask(&self, wanted: Wanted) -> Call {
        loop {
            let call = self.ask_once(wanted.clone()).await;
            // Vouchers for other answers may overtake it on the way, or be overtaken.
            if !call.is_worth_retry {
                return call;
            }
            self.catch_up().await;
        }
    }

    async fn catch_up(&self) {
        let mut held = std::mem::take(&mut *self.held.lock().unwrap());
        for call in &mut held {
            while let Ok(frame) = call.from.try_recv() {
                self.take(frame, call).await;
            }
        }
        self.held.lock().unwrap().extend(held);
    }

    async fn ask_once(&self, wanted: Wanted) -> Call {
        let (nonce, step) = self.payer.lock().unwrap().ask(wanted).unwrap();
        let (to, from) = self.line().await;
        self.lines.lock().unwrap().insert(nonce, to);
        let mut call = Call {
            nonce,
            from,
            said: Vec::new(),
            chunks: 0,
            receipt: None,
            refused: None,
            is_worth_retry: false,
        };
        self.do_all(step, &mut call).await;
        assert!(self.hear(&mut call).await, "the connection is gone");
        call
    }

    /// Hears all that there is of an answer.
    pub async fn finish(&self, mut call: Call) -> Call {
        while call.receipt.is_none() && self.hear(&mut call).await {}
        call
    }

    /// Hears one message; whether there was one.
    pub async fn hear(&self, call: &mut Call) -> bool {
        let Some(frame) = call.from.recv().await else {
            return false;
        };
        self.take(frame, call).await;
        true
    }

    async fn take(&self, frame: Vec<u8>, call: &mut Call) {
        assert!(frame.len() <= FromPayee::bytes_max());
        let message = message::read::<FromPayee>(&frame).unwrap();
        call.chunks += usize::from(matches!(message, FromPayee::Chunk { .. }));
        let step = self.payer.lock().unwrap().hear(call.nonce, message);
        self.do_all(step, call).await;
    }

    pub async fn cancel(&self, call: &mut Call) {
        let step = self.payer.lock().unwrap().cancel(call.nonce);
        self.do_all(step, call).await;
    }

    async fn do_all(&self, step: Step<PayerEffect>, call: &mut Call) {
        for effect in step.commit(&Disk).unwrap() {
            match effect {
                PayerEffect::Send { nonce, message } => {
                    let is_pay = matches!(message, ToPayee::Pay(_));
                    let line = self.lines.lock().unwrap().get(&nonce).cloned();
                    if let Some(line) = line.filter(|_| !is_pay || self.pays.load(Ordering::Relaxed)) {
                        // It may have ended meanwhile.
                        line.send(message.encode()).await.ok();
                    }
                }
                PayerEffect::Said { nonce, bytes } if nonce == call.nonce => call.said.extend(bytes),
                PayerEffect::Done { nonce, receipt } if nonce == call.nonce => {
                    self.lines.lock().unwrap().remove(&nonce);
                    call.receipt = Some(receipt);
                }
                PayerEffect::Refused {
                    why, is_worth_retry, ..
                } => {
                    let is_voucher = matches!(
                        why,
                        Refusal::Unpaid { .. } | Refusal::Voucher(VoucherRefusal::NotLarger { .. })
                    );
                    call.is_worth_retry = is_worth_retry && is_voucher;
                    call.refused = Some(why);
                }
                PayerEffect::Broken { why, .. } => panic!("{why}"),
                _ => {}
            }
        }
    }
}

pub fn hash(bytes: &[u8]) -> surety_types::ContentHash {
    content_hash(bytes)
}
