//! Lines of calls between an honest end and its peers, on which somebody stands.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use codec::Encode;
use surety_chain_client::{AccountId, Call, Chain, ChainError, Hash, Signer, Until};
use surety_channel_calls::{FromPayee, ToPayee, message, message::Message as _};
use surety_channels::{ChannelId, SignedChunkStatement, SignedVoucher};
use surety_host::Tools;
use surety_network::{
    CallError, CallListener, CallReceiver, CallSender, CallStream, DataPlane, memory::MemoryNet,
};
use surety_proofs::content_hash;
use surety_types::multiaddr::Endpoint;

/// Whose key everybody has: the account that pays for the answers of a development network.
const PAYER: &str = "//Two";

/// Bytes of a token.
const WORD_BYTES: usize = 4;

/// What is done on a line.
#[derive(Clone)]
pub enum Standing {
    /// A receipt that contradicts what was signed before goes out in place of the right one.
    DoubleReceipt(Box<Signer>, Hash),
    /// Other tokens go out than are kept and batched, and what is signed is about those.
    SaysOther(Box<Signer>, Hash),
    /// The same, and nothing goes out that has an end: whoever hears it has no receipt.
    BreaksOff(Box<Signer>, Hash),
    /// Vouchers are tried at other channels, and such as were signed for other chains.
    VoucherReplay(Arc<Replays>),
    /// No voucher goes out but the one that comes with the question.
    UnpaidLastChunk,
}

/// One line, and what was said over it.
struct Line {
    standing: Standing,
    /// The last that was said of an answer, without its end.
    last: Mutex<Option<SignedChunkStatement<AccountId>>>,
    /// What a peer was told of an answer that is another one, from the word before its tokens on.
    told: Mutex<Vec<u8>>,
}

impl Standing {
    /// Stands on every line that comes in.
    pub fn listen(&self, mut theirs: CallListener) -> Option<CallListener> {
        let (standing, net) = (self.clone(), MemoryNet::default());
        let own = end("own")?;
        let (inner, outer) = (net.join(own.clone()), net.join(end("outer")?));
        let listener = inner.calls()?;
        tokio::spawn(async move {
            while let Some(peer) = theirs.next().await {
                match outer.open_call(std::slice::from_ref(&own)).await {
                    Ok(ours) => drop(tokio::spawn(pass_on(standing.clone(), ours, peer))),
                    Err(error) => tracing::debug!(%error, "a call is not taken"),
                }
            }
        });
        Some(listener)
    }

    /// Stands on a line that was opened. Returns the end that is handed on.
    pub async fn dial(&self, peer: CallStream) -> Result<CallStream, CallError> {
        let net = MemoryNet::default();
        let (near, far) = end("near").zip(end("far")).ok_or(CallError::NoEndpoint)?;
        let (inner, outer) = (net.join(near), net.join(far.clone()));
        let mut listener = outer.calls().ok_or(CallError::NotServed)?;
        let handed_on = inner.open_call(&[far]).await?;
        let ours = listener.next().await.ok_or(CallError::Stopped)?;
        tokio::spawn(pass_on(self.clone(), ours, peer));
        Ok(handed_on)
    }
}

fn end(name: &str) -> Option<Endpoint> {
    Endpoint::try_from(name.as_bytes().to_vec()).ok()
}

/// Both ways at once, until both have ended.
async fn pass_on(standing: Standing, ours: CallStream, peer: CallStream) {
    let ((to_us, from_us), (to_peer, from_peer)) = (ours.split(), peer.split());
    let line = Line {
        standing,
        last: Mutex::default(),
        told: Mutex::new(vec![0; WORD_BYTES]),
    };
    tokio::join!(
        one_way(from_peer, to_us, |frame| line.inward(frame)),
        one_way(from_us, to_peer, |frame| line.outward(frame)),
    );
}

async fn one_way(
    mut from: CallReceiver,
    mut to: CallSender,
    mut pass: impl FnMut(Vec<u8>) -> Option<Vec<u8>>,
) {
    let bytes_max = ToPayee::bytes_max()
        .max(FromPayee::bytes_max())
        .max(message::ToVerifier::bytes_max());
    while let Ok(Some(frame)) = from.recv(bytes_max).await {
        if let Some(frame) = pass(frame)
            && to.send(&frame).await.is_err()
        {
            return;
        }
    }
}

impl Line {
    /// What our end hears of what its peer says.
    fn inward(&self, frame: Vec<u8>) -> Option<Vec<u8>> {
        if let Standing::VoucherReplay(replays) = &self.standing {
            match message::read::<ToPayee>(&frame) {
                Ok(ToPayee::Ask(ask)) => replays.try_with(ask.voucher),
                Ok(ToPayee::Pay(voucher)) => replays.try_with(voucher),
                _ => {}
            }
        }
        Some(frame)
    }

    /// What a peer hears of what our end says.
    fn outward(&self, frame: Vec<u8>) -> Option<Vec<u8>> {
        match &self.standing {
            Standing::DoubleReceipt(signer, genesis) => Some(self.doubled(signer, genesis, frame)),
            Standing::BreaksOff(..) if is_end(&frame) => {
                tracing::error!("the end of an answer is kept back, as --cheat demands");
                None
            }
            Standing::SaysOther(signer, genesis) | Standing::BreaksOff(signer, genesis) => {
                Some(self.other(signer, genesis, frame))
            }
            Standing::UnpaidLastChunk if is_payment(&frame) => {
                tracing::error!("a voucher is kept back, as --cheat demands");
                None
            }
            _ => Some(frame),
        }
    }

    /// The receipt says something else than what was said so far, of which as much was signed before.
    fn doubled(&self, signer: &Signer, genesis: &Hash, frame: Vec<u8>) -> Vec<u8> {
        let Ok(FromPayee::Chunk { bytes, statement }) = message::read::<FromPayee>(&frame) else {
            return frame;
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if statement.statement.end.is_none() {
            *last = Some(statement);
            return frame;
        }
        let Some(mut other) = last.take() else {
            return frame;
        };
        let said = &mut other.statement;
        said.end = statement.statement.end;
        said.output = Hash(sp_crypto_hashing::blake2_256(said.output.as_bytes()));
        other.signature = signer.sign_hash(&said.message(genesis));
        tracing::error!(
            channel = said.channel,
            nonce = said.nonce,
            "a receipt that contradicts what was said before is signed, as --cheat demands"
        );
        let statement = other;
        FromPayee::Chunk { bytes, statement }.encode()
    }
}

impl Line {
    /// Another token is the first of each chunk: only where it has several, if the last may be checked to be
    /// an end.
    fn other(&self, signer: &Signer, genesis: &Hash, frame: Vec<u8>) -> Vec<u8> {
        let Ok(FromPayee::Chunk { bytes, mut statement }) = message::read::<FromPayee>(&frame) else {
            return frame;
        };
        let mut bytes = bytes.into_inner();
        let has_ends = !matches!(self.standing, Standing::BreaksOff(..));
        if (bytes.len() > WORD_BYTES || !has_ends)
            && let Some(first) = bytes.first_mut()
        {
            *first ^= 1;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(&bytes);
        let said = &mut statement.statement;
        said.output = content_hash(&told);
        statement.signature = signer.sign_hash(&said.message(genesis));
        if said.end.is_some() {
            tracing::error!(
                channel = said.channel,
                nonce = said.nonce,
                "a receipt is signed for what will not be batched, as --cheat demands"
            );
        }
        // As long as before.
        let Ok(bytes) = bytes.try_into() else { return frame };
        FromPayee::Chunk { bytes, statement }.encode()
    }
}

fn is_end(frame: &[u8]) -> bool {
    let said = message::read::<FromPayee>(frame);
    matches!(said, Ok(FromPayee::Chunk { statement, .. }) if statement.statement.end.is_some())
}

fn is_payment(frame: &[u8]) -> bool {
    matches!(message::read::<ToPayee>(frame), Ok(ToPayee::Pay(_)))
}

/// Vouchers that were seen, and tried where they are not good.
pub struct Replays {
    chain: Arc<dyn Chain>,
    signer: Signer,
    /// By channel, the first of each.
    seen: Mutex<BTreeMap<ChannelId, SignedVoucher<AccountId>>>,
}

impl Replays {
    pub fn new(tools: &Tools) -> Self {
        Self {
            chain: tools.chain.clone(),
            signer: tools.signer.clone(),
            seen: Mutex::default(),
        }
    }

    /// Tries the first voucher of each channel.
    fn try_with(&self, voucher: SignedVoucher<AccountId>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = voucher.voucher.channel;
        if seen.insert(channel, voucher.clone()).is_some() {
            return;
        }
        let (chain, signer) = (self.chain.clone(), self.signer.clone());
        tokio::spawn(async move {
            for (what, voucher) in replayed(&voucher, &chain.info().genesis) {
                redeem(&*chain, &signer, voucher, what).await;
            }
        });
    }
}

/// What might be made of a voucher: money of the channel that was opened with its own, of a later one, and of
/// its own by what its payer has signed for another chain.
fn replayed(
    voucher: &SignedVoucher<AccountId>,
    genesis: &Hash,
) -> Vec<(&'static str, SignedVoucher<AccountId>)> {
    let own = voucher.voucher.channel;
    let others = [own ^ 1, own.saturating_add(2)].into_iter();
    let mut found: Vec<_> = others
        .map(|channel| {
            let mut elsewhere = voucher.clone();
            elsewhere.voucher.channel = channel;
            ("of another channel", elsewhere)
        })
        .collect();
    if let Ok(payer) = Signer::from_uri(PAYER) {
        let other_chain = Hash(sp_crypto_hashing::blake2_256(genesis.as_bytes()));
        let mut abroad = voucher.clone();
        abroad.signature = payer.sign_hash(&abroad.voucher.message(&other_chain));
        found.push(("of another chain", abroad));
    }
    found
}

async fn redeem(chain: &dyn Chain, signer: &Signer, voucher: SignedVoucher<AccountId>, what: &str) {
    let channel = voucher.voucher.channel;
    let call = Call::Redeem {
        voucher,
        batches: Default::default(),
    };
    match chain.submit(signer, call, Until::Included.into()).await {
        Ok(included) => tracing::error!(
            channel,
            block = included.block.number,
            "a voucher {what} was taken, as --cheat demands"
        ),
        Err(ChainError::Dispatch(fault)) => tracing::error!(
            channel,
            name = fault.name,
            "a voucher {what} was refused by the chain, as --cheat demands"
        ),
        Err(error) => tracing::error!(channel, %error, "a voucher {what} never got into a block"),
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
