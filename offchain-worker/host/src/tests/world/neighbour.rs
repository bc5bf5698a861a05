//! A second provider.

use std::sync::{Arc, Mutex, OnceLock};

use surety_chain_client::Signer;

use super::{World, endpoint};
use crate::Kept;

impl World {
    /// Another provider on the same chain.
    pub async fn neighbour(&self) -> Self {
        let world = Self {
            chain: self.chain.clone(),
            net: self.net.clone(),
            endpoint: endpoint("neighbour"),
            provider_plane: Arc::new(self.net.join(endpoint("neighbour"))),
            client_plane: self.client_plane.clone(),
            rival_plane: self.rival_plane.clone(),
            auditor_plane: self.auditor_plane.clone(),
            stash: Signer::from_uri("//Neighbour").unwrap(),
            agent: Signer::from_uri("//Neighbour//agent").unwrap(),
            auditor: self.auditor.clone(),
            client: self.client.clone(),
            engine: Arc::default(),
            devices: OnceLock::new(),
            served: OnceLock::new(),
            region: Mutex::default(),
            journal: Mutex::default(),
            vitals: Mutex::default(),
            kept: Kept::default(),
            dir: tempfile::tempdir().unwrap(),
        };
        world.prepare_provider().await;
        world
    }
}
