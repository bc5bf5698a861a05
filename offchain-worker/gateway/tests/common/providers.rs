//! Providers who answer at once, and fail, lie and stall as they are told to.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
};

use async_trait::async_trait;
use surety_gateway::{
    Embedded, EmbeddingAsk, Finish, Generating, GenerationAsk, NoProof, Offered, Proof, Receipt, Says, Step,
    Upstream, UpstreamError, Verdict,
};
use tokio::sync::{Barrier, Notify};

use super::ANSWER;

/// Says [`ANSWER`]; the first provider fails after so many tokens or items, the second may say something
/// else.
#[derive(Default)]
pub struct Providers {
    pub fails_after: Option<usize>,
    pub lies: bool,
    pub stalls: bool,
    /// Cancelled, it says nothing of what it is owed.
    pub mute: bool,
    /// It claims more than anybody has.
    pub greedy: bool,
    pub cancelled: Arc<Notify>,
    pub asked: AtomicU32,
    /// Its receipts are in batches.
    pub has_batched: AtomicBool,
    /// What becomes of receipts that were broken off; nothing for what becomes of all.
    pub of_cut: Option<Verdict>,
    /// How often it was asked where one is.
    pub shown: AtomicU32,
    /// Whoever is asked so shows nothing, and does not say so.
    pub silent: Option<String>,
    /// Questions about receipts that are answered only once so many are asked.
    pub together: Option<Arc<Barrier>>,
    /// Receipts that an answer with vectors has.
    pub parts: u32,
    /// Items that one request has; nothing for all.
    pub at_once: Option<usize>,
    /// Of how many items vectors were wanted, each time.
    pub wanted: Mutex<Vec<usize>>,
}

struct Run {
    left: Vec<u32>,
    said: u32,
    most: u32,
    fails_after: Option<usize>,
    stalls: bool,
    mute: bool,
    greedy: bool,
    provider: String,
    cancelled: Arc<Notify>,
}

impl Run {
    fn receipt(&self, finish: Finish) -> Receipt {
        Receipt {
            provider: self.provider.clone(),
            channel: 1,
            nonce: 2,
            output_hash: "aa".into(),
            trace_root: "bb".into(),
            units: self.said,
            price: if self.greedy {
                u128::MAX
            } else {
                u128::from(self.said)
            },
            finish,
            signed: b"signed".to_vec(),
        }
    }
}

#[async_trait]
impl Generating for Run {
    async fn next(&mut self) -> Result<Step, UpstreamError> {
        if self.fails_after == Some(self.said as usize) {
            return Err(UpstreamError::Failed {
                provider: self.provider.clone(),
                why: "gone".into(),
                spent: 0,
                receipts: vec![self.receipt(Finish::Cut)],
            });
        }
        if self.stalls && self.said == 3 {
            std::future::pending::<()>().await;
        }
        if self.said == self.most {
            return Ok(Step::Done(self.receipt(Finish::Length)));
        }
        if self.left.is_empty() {
            return Ok(Step::Done(self.receipt(Finish::Stop)));
        }
        self.said += 1;
        Ok(Step::Tokens(vec![self.left.remove(0)]))
    }

    async fn cancel(self: Box<Self>) -> Result<Receipt, UpstreamError> {
        self.cancelled.notify_one();
        if self.mute {
            return Err(UpstreamError::Busy);
        }
        Ok(self.receipt(Finish::Cancelled))
    }
}

#[async_trait]
impl Upstream for Providers {
    fn models(&self) -> Vec<Offered> {
        [("talker", true), ("embedder", false)]
            .map(|(name, generates)| Offered {
                name: name.into(),
                generates,
                unit_price_max: 1,
            })
            .into()
    }

    fn unit_price_max(&self, model: &str, generates: bool, _: u32, _: &[String]) -> Option<u128> {
        let mut models = self.models().into_iter();
        let model = models.find(|one| one.name == model && one.generates == generates)?;
        Some(model.unit_price_max)
    }

    async fn generate(
        &self,
        ask: &GenerationAsk,
        avoid: &[String],
    ) -> Result<Box<dyn Generating>, UpstreamError> {
        self.asked.fetch_add(1, SeqCst);
        let is_first = avoid.is_empty();
        let text = if self.lies && !is_first { "Gruss" } else { ANSWER };
        Ok(Box::new(Run {
            left: text.bytes().map(u32::from).collect(),
            said: 0,
            most: ask.settings.max_tokens,
            fails_after: self.fails_after.filter(|_| is_first),
            stalls: self.stalls,
            mute: self.mute,
            greedy: self.greedy,
            provider: format!("provider-{}", avoid.len()),
            cancelled: self.cancelled.clone(),
        }))
    }

    async fn embed(&self, ask: &EmbeddingAsk<'_>, avoid: &[String]) -> Result<Embedded, UpstreamError> {
        let items = ask.items;
        let before: usize = {
            let mut wanted = self.wanted.lock().unwrap();
            wanted.push(items.len());
            wanted[0].saturating_sub(items.len())
        };
        let items = &items[..self.at_once.unwrap_or(items.len()).min(items.len())];
        let part = |part: u32| Receipt {
            provider: format!("provider-{part}"),
            channel: 1,
            nonce: 3 + part,
            output_hash: "cc".into(),
            trace_root: "dd".into(),
            units: u32::try_from(items.len()).unwrap(),
            price: if self.greedy { u128::MAX } else { 1 },
            finish: Finish::Stop,
            signed: if self.parts > 0 {
                b"signed".to_vec()
            } else {
                Vec::new()
            },
        };
        if avoid.is_empty() && self.fails_after.is_some_and(|items| before >= items) {
            let cut = Receipt {
                finish: Finish::Cut,
                ..part(0)
            };
            return Err(UpstreamError::Failed {
                provider: cut.provider.clone(),
                why: "gone".into(),
                spent: 1,
                receipts: vec![cut],
            });
        }
        let vectors = items.iter().map(|ids| vec![ids.len() as f32, 0.5]).collect();
        Ok(Embedded {
            vectors,
            receipts: (0..self.parts.max(1)).map(part).collect(),
            spent: 0,
        })
    }

    async fn verdict(&self, receipt: &Receipt) -> Verdict {
        let of_cut = self.of_cut.filter(|_| receipt.finish == Finish::Cut);
        of_cut.unwrap_or(Verdict::Challengeable)
    }

    async fn proof(&self, receipt: &Receipt) -> Result<Proof, NoProof> {
        self.shown.fetch_add(1, SeqCst);
        if receipt.signed.is_empty() {
            return Err(NoProof::NotKept);
        }
        if !self.has_batched.load(SeqCst) {
            return Err(NoProof::NotBatched);
        }
        if self.silent.as_ref() == Some(&receipt.provider) {
            std::future::pending::<()>().await;
        }
        if let Some(together) = &self.together {
            together.wait().await;
        }
        Ok(Proof {
            genesis: "0x00".into(),
            batch: 3,
            signed: receipt.signed.clone(),
            request: b"request".to_vec(),
            opening: b"opening".to_vec(),
            says: Says {
                provider: receipt.provider.clone(),
                agent: "agent".into(),
                channel: receipt.channel,
                nonce: receipt.nonce,
                model: "0x01".into(),
                operation: "generate".into(),
                input: "0x02".into(),
                output: receipt.output_hash.clone(),
                bytes: 4,
                units: receipt.units,
                unit_price: 1,
                price: receipt.price,
                end: "stop".into(),
            },
        })
    }
}
