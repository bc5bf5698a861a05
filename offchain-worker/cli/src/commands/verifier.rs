//! `surety verifier`.

use surety_chain_client::AccountId;
use surety_host::{Beside, Tools};
use surety_network::{Node, StoreLimits};
use surety_types::{model::ModelManifest, stake::Role as StakeRole};
use surety_worker_core::{Config as CoreConfig, NoBids, SecretSalts, VerifierRole};

use super::{
    Context,
    worker::{self, Mode, Role},
};
use crate::{
    args::VerifierCommand,
    config::{DataConfig, WorkConfig},
    error::Result,
    keys::Key,
};

pub(super) async fn run(context: &Context, command: VerifierCommand) -> Result<()> {
    match command {
        VerifierCommand::Init(args) => super::init::run(context, StakeRole::Verifier, &args).await,
        VerifierCommand::Up(_) => worker::work(context, &Auditing(&context.config.verifier), Mode::Up).await,
    }
}

/// A verifier, as configured.
struct Auditing<'a>(&'a WorkConfig);

impl Role for Auditing<'_> {
    const NAME: &'static str = "verifier";
    const STAKE: StakeRole = StakeRole::Verifier;
    type Core = VerifierRole;

    fn work(&self) -> &WorkConfig {
        self.0
    }

    /// It asks others and is asked by nobody.
    fn data(&self) -> DataConfig {
        DataConfig {
            listen: Vec::new(),
            external: Vec::new(),
        }
    }

    fn core(&self, _: &StoreLimits, key: &Key, stash: &AccountId, _: &[ModelManifest]) -> CoreConfig {
        let mut core = CoreConfig::new(stash.clone(), NoBids, SecretSalts::new(key.salt_secret));
        core.agent = Some(key.signer.account().clone());
        core
    }

    fn audits_points(&self) -> bool {
        true
    }

    async fn enter(&self, _: &Tools, _: &Node, _: &[ModelManifest]) -> Result<Beside> {
        Ok(Beside::Slashes)
    }
}
