//! A provider and a payer with a channel between them.

use codec::Decode;
use sp_core::{H256, crypto::AccountId32};
use surety_channels::{
    Batch, BatchEntry, Batched, ChannelId, ChunkStatement, End, Ending, Nonce, ReceiptLeaf, Request,
    SignedChunkStatement, SignedVoucher, Voucher, paid_after,
};
use surety_types::model::Operation;

use super::super::{
    super::{FakeChain, blocks::genesis},
    chain_with_agent, signer,
};
use crate::{Call, Chain, ChainError, ChannelChain, Funds, Included, Signer, StandingView, Until, When};

pub const EXPIRY: u32 = 1_000;
pub const UNITS: u32 = 4;

/// A provider that stands behind an offer, and a payer with a channel to it.
pub struct World {
    pub chain: FakeChain,
    pub agent: Signer,
    pub stash: Signer,
    pub payer: Signer,
    pub key: Signer,
    pub channel: ChannelId,
    pub unit_price: u128,
}

impl World {
    pub async fn new(unit_price: u128) -> Self {
        let (chain, agent, _) = chain_with_agent().await;
        let [stash, payer, key] = ["//Stash", "//Payer", "//Key"].map(signer);
        let cap = unit_price * 100;
        chain.change(|state| {
            let funds = Funds { free: cap, held: 0 };
            state.funds.insert(payer.account().clone(), funds);
            state.funds.insert(stash.account().clone(), Funds::default());
        });
        let mut world = Self {
            chain,
            agent,
            stash,
            payer,
            key,
            channel: 0,
            unit_price,
        };
        let stand = Call::Stand { lock: cap, cap };
        world.submit(&world.stash, stand).await.unwrap();
        world.submit(&world.agent, Call::AddSigner).await.unwrap();
        let open = Call::Open {
            payee: world.stash.account().clone(),
            key: world.key.account().clone(),
            deposit: unit_price * 50,
            expiry: EXPIRY,
        };
        let opened = world.submit(&world.payer, open).await.unwrap();
        world.channel = opened.event("Channels", "Opened").unwrap().channel().unwrap();
        world
    }

    pub async fn submit(&self, signer: &Signer, call: Call) -> Result<Included, ChainError> {
        self.chain.submit(signer, call, Until::Included.into()).await
    }

    /// Ends blocks until the clock is there.
    pub fn wait_until(&self, time: u32) {
        while self.chain.change(|state| state.clock) < time {
            self.chain.finalize();
        }
    }

    pub fn request(&self) -> Request {
        Request {
            model: H256([1; 32]),
            operation: Operation::Embed,
            input: H256([2; 32]),
            input_bytes: 4,
            units_max: UNITS,
            unit_price: self.unit_price,
        }
    }

    pub fn receipt(&self, nonce: Nonce) -> ChunkStatement<AccountId32> {
        ChunkStatement {
            channel: self.channel,
            payee: self.stash.account().clone(),
            nonce,
            request: self.request().hash(),
            bytes: 8,
            output: H256([3; 32]),
            units: UNITS,
            price: self.unit_price * u128::from(UNITS),
            end: Some(Ending {
                how: End::Length,
                trace_root: H256([4; 32]),
            }),
        }
    }

    pub fn signed(&self, statement: ChunkStatement<AccountId32>) -> SignedChunkStatement<AccountId32> {
        let signature = self.agent.sign_hash(&statement.message(&genesis()));
        SignedChunkStatement {
            statement,
            agent: self.agent.account().clone(),
            signature,
        }
    }

    /// A batch of one receipt.
    pub fn batch(&self, receipt: &ChunkStatement<AccountId32>) -> (Batch, Batched<AccountId32>) {
        let entry = BatchEntry {
            channel: receipt.channel,
            nonce: receipt.nonce,
            price: receipt.price,
            leaf: ReceiptLeaf {
                receipt: H256(receipt.message(&genesis())),
                salt: H256([5; 32]),
            },
        };
        let batch = Batch::new(&[entry]).unwrap();
        let batched = Batched {
            opening: batch.open(receipt.channel, receipt.nonce).unwrap(),
            statement: receipt.clone(),
        };
        (batch, batched)
    }

    pub async fn commit(&self, batch: &Batch) -> Result<Included, ChainError> {
        let root = batch.root();
        self.submit(&self.agent, Call::CommitBatch { root }).await
    }

    /// Batches of this one, in a voucher of `sum`.
    pub fn redemption(&self, sum: u128, batches: &[(u32, &Batch)]) -> Call {
        let voucher = Voucher {
            channel: self.channel,
            payee: self.stash.account().clone(),
            expiry: EXPIRY,
            nonce: 0,
            request: self.request().hash(),
            sum,
        };
        let signature = self.key.sign_hash(&voucher.message(&genesis()));
        let openings = batches
            .iter()
            .map(|(number, batch)| (*number, batch.open_channel(self.channel).unwrap()));
        Call::Redeem {
            voucher: SignedVoucher { voucher, signature },
            batches: openings.collect::<Vec<_>>().try_into().unwrap(),
        }
    }

    /// Counts these batches, and redeems when that is due. Returns what the payee got.
    pub async fn redeem(&self, sum: u128, batches: &[(u32, &Batch)]) -> u128 {
        let count = self.redemption(sum, batches);
        let counted = self.submit(&self.agent, count).await.unwrap();
        assert_eq!(field::<u128>(&counted, "Redeemed", "paid"), 0);
        let supply = self.chain.rules(When::Best).await.unwrap().supply_window;
        let now = self.chain.change(|state| state.clock);
        self.wait_until(now + paid_after(supply));
        let redeemed = self.submit(&self.agent, self.redemption(sum, &[])).await;
        field(&redeemed.unwrap(), "Redeemed", "paid")
    }

    pub async fn funds(&self, of: &Signer) -> Funds {
        self.chain.funds(When::Best, of.account()).await.unwrap()
    }

    pub async fn standing(&self) -> StandingView {
        let stash = self.stash.account();
        self.chain.standing(When::Best, stash).await.unwrap().unwrap()
    }
}

pub fn refused(result: Result<Included, ChainError>) -> String {
    match result.unwrap_err() {
        ChainError::Dispatch(fault) if fault.pallet.as_deref() == Some("Channels") => fault.name,
        other => panic!("{other}"),
    }
}

pub fn field<T: Decode>(included: &Included, event: &str, name: &str) -> T {
    included.event("Channels", event).unwrap().field(name).unwrap()
}
