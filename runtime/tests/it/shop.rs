//! A provider that sells the small model of [`World`](crate::disputes::World) over a channel.

use codec::{Decode, Encode};
use frame_support::{assert_ok, traits::Get};
use frame_system::RawOrigin;
use sp_core::{H256, Pair, crypto::VrfSecret, sr25519::vrf};
use sp_runtime::{FixedU128, traits::One};
use surety_audit_economics::{
    channels::{RECEIPTS_CONTEXT, RECEIPTS_LABEL, ReceiptsInput, drawn_points, item_at, points_mean},
    draw::borrowed,
};
use surety_channels::{
    Batch, BatchEntry, BatchNumber, ChannelId, ChunkStatement, End, Ending, ReceiptLeaf, Request,
    SignedChunkStatement, SignedVoucher, Voucher, paid_after,
};
use surety_pallet_channels::{Batches, Call, NextChannel, ReceiptSource};
use surety_runtime::{
    AccountId, Balance, Channels, Parameters, Results, Runtime, RuntimeParameters,
    configs::trust::Sr25519Draws,
    params::dynamic::channels,
    units::{DAYS, MILLI_SURE, SURE},
};
use surety_runtime_api::runtime_decl_for_channel_api::ChannelApi;
use surety_types::{model::Operation, task::ResultClaim, traits::DrawVerifier, trust::AuditProof};

use crate::{
    chain::{Chain, account},
    disputes::{VERIFIER, World},
    market::{self, CLIENT as PAYER, PROVIDERS, Provider, hash},
};

pub const PROVIDER: Provider = PROVIDERS[0];
/// Of which a receipt has two: it costs all that the cap allows.
pub const UNIT_PRICE: Balance = 5 * SURE;
pub const CAP: Balance = 10 * SURE;
pub const DEPOSIT: Balance = 25 * SURE;

/// A provider that sells the world's model, and a channel to it.
pub struct Shop<'a> {
    pub world: &'a World,
    pub chain: Chain,
    pub channel: ChannelId,
    /// Its standing lock.
    pub lock: Balance,
}

impl<'a> Shop<'a> {
    pub fn open(world: &'a World) -> Self {
        let mut chain = world.chain();
        // As in production: a batch of all that the cap allows can be drawn on.
        let rate = channels::Parameters::PointRate(channels::PointRate, Some(FixedU128::one()));
        let cost = channels::Parameters::PointCost(channels::PointCost, Some(10 * MILLI_SURE));
        chain.query(|| {
            for parameter in [rate, cost] {
                let parameter = RuntimeParameters::Channels(parameter);
                assert_ok!(Parameters::set_parameter(RawOrigin::Root.into(), parameter));
            }
        });
        let lock = chain
            .query(|| Runtime::least_lock(PROVIDER.account(), CAP))
            .unwrap();
        chain.call(PROVIDER.stash, Call::stand { lock, cap: CAP });
        chain.call(PROVIDER.agent, Call::add_signer {});
        let offer = Call::offer {
            model: world.manifest.id(),
            operation: Operation::Embed,
            unit_price: UNIT_PRICE,
            places: 4,
            region: "DE".parse().ok(),
        };
        chain.call(PROVIDER.stash, offer);
        let channel = chain.query(NextChannel::<Runtime>::get);
        let expiry = chain.query(Runtime::time) + DAYS;
        let open = Call::open {
            payee: PROVIDER.account(),
            key: account(PAYER),
            deposit: DEPOSIT,
            expiry,
        };
        chain.call(PAYER, open);
        Self {
            world,
            chain,
            channel,
            lock,
        }
    }

    fn genesis(&mut self) -> H256 {
        self.chain.query(Results::genesis)
    }

    pub fn request(&self) -> Request {
        let facts = self.world.layout.facts();
        Request {
            model: self.world.manifest.id(),
            operation: Operation::Embed,
            input: facts.input,
            input_bytes: facts.input_bytes,
            units_max: 2,
            unit_price: UNIT_PRICE,
        }
    }

    pub fn receipt(&self, claim: &ResultClaim) -> ChunkStatement<AccountId> {
        let request = self.request();
        ChunkStatement {
            channel: self.channel,
            payee: PROVIDER.account(),
            nonce: 0,
            request: request.hash(),
            bytes: self.world.layout.output_bytes(),
            output: claim.output,
            units: claim.units,
            price: request.price(claim.units).unwrap(),
            end: Some(Ending {
                how: End::Length,
                trace_root: claim.trace_root,
            }),
        }
    }

    pub fn signed(&mut self, statement: ChunkStatement<AccountId>) -> SignedChunkStatement<AccountId> {
        let genesis = self.genesis();
        SignedChunkStatement {
            signature: PROVIDER.agent.pair().sign(&statement.message(&genesis)).0,
            agent: account(PROVIDER.agent),
            statement,
        }
    }

    /// Commits a batch of this receipt alone.
    pub fn commit(&mut self, receipt: &ChunkStatement<AccountId>) -> (BatchNumber, Batch) {
        let entry = BatchEntry {
            channel: receipt.channel,
            nonce: receipt.nonce,
            price: receipt.price,
            leaf: ReceiptLeaf {
                receipt: H256(receipt.message(&self.genesis())),
                salt: hash(9),
            },
        };
        let batch = Batch::new(&[entry]).unwrap();
        let standing = self
            .chain
            .query(|| Runtime::standing(PROVIDER.account()))
            .unwrap();
        self.chain
            .call(PROVIDER.agent, Call::commit_batch { root: batch.root() });
        (standing.next, batch)
    }

    /// Counts these batches, and redeems as much as the deposit is when that is due. Returns what the
    /// provider got.
    pub fn redeem(&mut self, made: &[(BatchNumber, Batch)]) -> Balance {
        let count = self.redeeming(made);
        self.chain.call(PROVIDER.agent, count);
        let wait = paid_after(self.chain.query(channels::SupplyWindow::get));
        let due = self.chain.query(Runtime::time) + wait;
        self.chain.run_until(2 * wait, || due <= Runtime::time());
        let before = self.chain.free(&PROVIDER.account());
        let redeem = self.redeeming(&[]);
        self.chain.call(PROVIDER.agent, redeem);
        self.chain.free(&PROVIDER.account()) - before
    }

    /// The call for that.
    pub fn redeeming(&mut self, made: &[(BatchNumber, Batch)]) -> Call<Runtime> {
        let view = self.chain.query(|| Runtime::channel(self.channel)).unwrap();
        let voucher = Voucher {
            channel: self.channel,
            payee: PROVIDER.account(),
            expiry: view.expiry,
            nonce: 0,
            request: self.request().hash(),
            sum: DEPOSIT,
        };
        let genesis = self.genesis();
        let signature = PAYER.pair().sign(&voucher.message(&genesis)).0;
        let opened = made
            .iter()
            .map(|(number, batch)| (*number, batch.open_channel(self.channel).unwrap()));
        Call::redeem {
            voucher: SignedVoucher { voucher, signature },
            batches: opened.collect::<Vec<_>>().try_into().unwrap(),
        }
    }

    pub fn wait_until_final(&mut self, number: BatchNumber) {
        self.chain.run_until(300, || {
            let record = Batches::<Runtime>::get(PROVIDER.account(), number).unwrap();
            record.window.is_final(Runtime::time())
        });
    }

    /// The verifier's proof, and which items its points on a batch are in.
    pub fn drawn(&mut self, number: BatchNumber, batch: &Batch) -> (AuditProof, Vec<u32>) {
        let record = move || Batches::<Runtime>::get(PROVIDER.account(), number).unwrap();
        let seed = move || Channels::seed_of(&PROVIDER.account(), number, &record());
        self.chain.run_until(5, || seed().is_some());
        let input = ReceiptsInput {
            seed: self.chain.query(seed).unwrap(),
            provider: PROVIDER.account(),
            batch: number,
        };
        let (agent, fields) = (VERIFIER.1, input.fields());
        let fields = borrowed(&fields);
        let transcript = vrf::VrfTranscript::new(RECEIPTS_LABEL, &fields);
        let signed = agent.pair().vrf_sign(&transcript.into_sign_data());
        let proof = AuditProof::decode(&mut signed.encode().as_slice()).unwrap();
        let output =
            Sr25519Draws::output(&account(agent), RECEIPTS_LABEL, &fields, RECEIPTS_CONTEXT, &proof).unwrap();
        let (price, record) = (batch.root().sums.price, self.chain.query(record));
        let all = record.draw.verifier_stake;
        let mean = points_mean(record.rate, price, market::BOND, all);
        assert_eq!(all, market::BOND);
        let points = drawn_points(&output, price, mean);
        (
            proof,
            points.iter().map(|point| item_at(*point, price, 2)).collect(),
        )
    }

    /// Disputes a receipt of this channel's one request.
    pub fn dispute(&self, receipt: ReceiptSource<AccountId>) -> Call<Runtime> {
        Call::dispute {
            receipt: Box::new(receipt),
            request: Box::new(self.request()),
            head: None,
        }
    }
}
