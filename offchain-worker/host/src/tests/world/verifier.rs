//! The verifier of that world.

use std::sync::Arc;

use surety_access::OwnOutputs;
use surety_chain_client::Signer;
use surety_engine::{EnginePool, PoolConfig};
use surety_journal::{Journal, RecordLog};
use surety_types::stake::Role;
use surety_worker_core::{Config, NoBids, Record, SecretSalts, Verifier};
use tokio::sync::watch;

use super::{Running, TIP_MAX, World};
use crate::{Audits, Beside, Engines, Host, Kept, Tools, Traces, Vitals};

impl World {
    pub(super) async fn prepare_verifier(&self) {
        let stash = Signer::from_uri("//Auditor").unwrap();
        self.bond(&stash, &self.auditor, Role::Verifier).await;
        // Everybody is drawn.
        self.chain
            .change(|state| state.auditors_expected = 1_000_000_000_000_000_000);
        self.chain.finalize();
    }

    /// Starts a verifier on its journal.
    pub fn start_verifier(&self) -> Running {
        let journal = Journal::open(&self.dir.path().join("auditor.redb")).unwrap();
        let records = journal.load().unwrap();
        self.start_verifier_on(Arc::new(journal), &records)
    }

    /// Starts a verifier that writes its records there.
    pub fn start_verifier_on(&self, log: Arc<dyn RecordLog>, records: &[Record]) -> Running {
        let config = Config::new(self.auditor(), NoBids, SecretSalts::new([8; 32]));
        let core = Verifier::new(config, records.to_vec()).unwrap();
        let tools = self.auditor_tools();
        let host = Host::new(tools, Beside::Slashes, core, log, records);
        let (stop, stopped) = watch::channel(false);
        Running {
            stop,
            host: tokio::spawn(async move { host.run(stopped).await.unwrap() }),
        }
    }

    /// What a verifier works with.
    pub fn auditor_tools(&self) -> Tools {
        let (vitals, outputs) = (Arc::new(Vitals::new().unwrap()), Arc::<OwnOutputs>::default());
        let pool = EnginePool::new(PoolConfig { threads: 1, queue: 4 });
        Tools {
            chain: Arc::new(self.chain.clone()),
            signer: self.auditor.clone(),
            stash: self.auditor(),
            plane: self.auditor_plane.clone(),
            engines: Engines::new(pool.unwrap(), [self.served()], vitals.clone()),
            traces: Traces::default(),
            audits: Audits::default(),
            outputs,
            tip_max: TIP_MAX,
            kept: Kept::default(),
            vitals,
        }
    }
}
