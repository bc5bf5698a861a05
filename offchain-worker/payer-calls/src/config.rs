//! What a payer is told: what it may spend, and how patient it is.

use std::{collections::BTreeMap, fmt, num::NonZeroU64, sync::Arc, time::Duration};

use surety_chain_client::{Chain, ChannelChain, Signer};
use surety_channel_calls::Model;
use surety_channels::{Region, Time};
use surety_journal::CallStore;
use surety_network::DataPlane;
use surety_types::{
    ModelId,
    input::{IdBounds, WORD_BYTES},
    model::{ModelManifest, Operation},
};

/// How much money it may put at stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Most that may be in channels, or was signed for over those that have ended, in plancks. Fees, and what
    /// demands cost, come on top.
    pub budget: u128,
    /// Deposit of a channel, and what it is topped up by, in plancks.
    pub deposit: u128,
    /// A channel that has less left is topped up, in plancks.
    pub least_left: u128,
    /// Most channels at once.
    pub channels_max: usize,
    /// Most that is paid for a unit, in plancks.
    pub unit_price_max: u128,
    /// So much more than the cheapest offer a unit may cost, in hundredths: prices move while somebody asks.
    pub slack_percent: u32,
    /// Providers of which receipts are demanded at once that were not counted. Each demand costs half of what
    /// the chain says, and up to all of it where an answer broke off; of a provider that draws them out until
    /// the end of their time there are thirty.
    pub demands_max: usize,
}

/// How long it waits, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a place, a channel, or money in it. Less than whoever asks waits for the first words.
    pub place: Duration,
    /// For a connection, and then for a request to be taken.
    pub taken: Duration,
    /// For the next words of an answer that is paid for.
    pub words: Duration,
    /// For all of an answer, however its provider draws it out.
    pub answer: Duration,
    /// Until a refused voucher is sent again.
    pub again: Duration,
    /// A channel that nobody uses for so long is closed, on the chain's clock.
    pub idle: Time,
    /// A receipt whose number was not counted after so long is asked for, and demanded where it is not shown,
    /// on the chain's clock; sooner where its channel would have ended before it was shown.
    pub batched: Time,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            // A channel is there when a block is final.
            place: Duration::from_secs(45),
            taken: Duration::from_secs(10),
            // A payee cuts what is not paid after half a minute: this end waits longer.
            words: Duration::from_secs(40),
            // A payee cuts an answer after ten minutes.
            answer: Duration::from_secs(900),
            again: Duration::from_secs(2),
            // A day of two-second blocks.
            idle: 43_200,
            // Two hours: a batch is made within minutes, and final after one. Providers that are late to
            // count it show it when they are asked, which costs nothing.
            batched: 3_600,
        }
    }
}

/// A model that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sold {
    /// Its id on the chain.
    pub model: ModelId,
    /// What it does.
    pub operations: Vec<Operation>,
    /// What both ends have to know of it.
    pub facts: Model,
}

impl Sold {
    /// By a model's manifest; nothing where it is not of the exact tier: nothing that such a model says can
    /// be disputed, so nothing of it is sold over channels.
    pub fn new(manifest: &ModelManifest) -> Option<Self> {
        let form = &manifest.exact.as_ref()?.architecture;
        Some(Self {
            model: manifest.id(),
            operations: manifest.operations.to_vec(),
            facts: Model {
                bounds: IdBounds {
                    vocabulary: form.vocabulary,
                    positions: form.positions,
                },
                item_bytes: form.width.saturating_mul(WORD_BYTES),
                stop_ids: manifest.text.stop.to_vec(),
            },
        })
    }
}

/// All that a payer needs.
#[derive(Clone)]
pub struct Config {
    /// The chain.
    pub chain: Arc<dyn Chain>,
    /// Its channels, by the same client.
    pub channels: Arc<dyn ChannelChain>,
    /// Pays for channels, and signs their vouchers.
    pub signer: Signer,
    /// Reaches providers.
    pub plane: Arc<dyn DataPlane>,
    /// Where promises are kept.
    pub store: Arc<CallStore>,
    /// What can be asked for, by name.
    pub models: BTreeMap<String, Sold>,
    /// How much money it may put at stake.
    pub spending: Spending,
    /// How long it waits.
    pub patience: Patience,
    /// Providers that are asked the same at once; 1 for no race, and no confirmations.
    pub race: usize,
    /// One request in so many goes to another provider than the best, so that newcomers become known; nothing
    /// for none.
    pub tries: Option<NonZeroU64>,
    /// Where providers are preferred, by their own word; nothing for anywhere.
    pub region: Option<Region>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Config");
        shown.field("signer", &self.signer).field("models", &self.models);
        shown
            .field("spending", &self.spending)
            .field("patience", &self.patience)
            .field("race", &self.race)
            .field("tries", &self.tries)
            .field("region", &self.region);
        shown.finish_non_exhaustive()
    }
}
