//! A data plane that withholds outputs, or after whose first token the process ends.

use std::sync::Arc;

use async_trait::async_trait;
use surety_engine::content_hash;
use surety_network::{
    AccessGate, Announcement, Bytes, Counters, DataPlane, FetchOptions, OutputLocation, PeerError,
    PlaneError, Readers, StreamPage, StreamWriter, Ticket,
};
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint};

use crate::crashing::crash;

/// The data plane of a bad worker.
pub struct BadPlane {
    pub plane: Arc<dyn DataPlane>,
    /// Keeps nothing that was not fetched from somebody: its outputs can be had from nobody.
    pub withholds: bool,
    /// Ends the process when the first token of a generation is there for its reader.
    pub crashes: bool,
}

#[async_trait]
impl DataPlane for BadPlane {
    fn peer_id(&self) -> String {
        self.plane.peer_id()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        self.plane.endpoints()
    }

    fn counters(&self) -> Counters {
        self.plane.counters()
    }

    async fn stopped(&self) {
        self.plane.stopped().await;
    }

    fn set_gate(&self, gate: Arc<dyn AccessGate>) {
        self.plane.set_gate(gate);
    }

    async fn set_named_peers(&self, endpoints: &[Endpoint]) -> Result<(), PlaneError> {
        self.plane.set_named_peers(endpoints).await
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        if self.withholds {
            let hash = content_hash(&bytes);
            let here = self.plane.fetch(hash, &[], &FetchOptions::default()).await;
            if here.is_err() {
                tracing::error!(?hash, "not published, as --cheat demands");
                return Ok(hash);
            }
        }
        self.plane.publish(bytes).await
    }

    async fn release(&self, hash: ContentHash) {
        self.plane.release(hash).await;
    }

    async fn grant(&self, task: TaskId, hash: ContentHash, readers: Readers<'_>) -> Result<(), PlaneError> {
        self.plane.grant(task, hash, readers).await
    }

    async fn fetch(
        &self,
        hash: ContentHash,
        sources: &[Endpoint],
        options: &FetchOptions,
    ) -> Result<Bytes, PlaneError> {
        self.plane.fetch(hash, sources, options).await
    }

    async fn announce_output(
        &self,
        task: TaskId,
        output: Announcement,
        readers: Readers<'_>,
    ) -> Result<(), PlaneError> {
        self.plane.announce_output(task, output, readers).await
    }

    async fn locate_output(
        &self,
        task: TaskId,
        peer: &Endpoint,
        ticket: Option<&Ticket>,
    ) -> Result<OutputLocation, PlaneError> {
        self.plane.locate_output(task, peer, ticket).await
    }

    async fn open_stream(&self, task: TaskId, readers: Readers<'_>) -> Result<StreamWriter, PlaneError> {
        let stream = self.plane.open_stream(task, readers).await?;
        if self.crashes {
            let begun = stream.begun();
            tokio::spawn(async move {
                begun.await;
                crash(task)
            });
        }
        Ok(stream)
    }

    async fn close_stream(&self, task: TaskId) {
        self.plane.close_stream(task).await;
    }

    async fn read_stream(&self, task: TaskId, peer: &Endpoint, from: u32) -> Result<StreamPage, PeerError> {
        self.plane.read_stream(task, peer, from).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use surety_network::memory::MemoryNet;

    use super::*;

    #[tokio::test]
    async fn outputs_are_withheld_and_inputs_kept() {
        let net = MemoryNet::default();
        let endpoint = |name: &str| Endpoint::try_from(name.as_bytes().to_vec()).unwrap();
        let (client, provider) = (net.join(endpoint("client")), net.join(endpoint("provider")));
        let bad = BadPlane {
            plane: Arc::new(provider),
            withholds: true,
            crashes: false,
        };
        let input = client.publish(Bytes::from_static(b"input")).await.unwrap();
        let readers = [endpoint("provider")];
        client.grant(1, input, Readers::Only(&readers)).await.unwrap();
        let fetched = bad
            .fetch(input, &[endpoint("client")], &FetchOptions::default())
            .await;
        assert_eq!(bad.publish(fetched.unwrap()).await.unwrap(), input);
        let output = bad.publish(Bytes::from_static(b"output")).await.unwrap();
        assert_eq!(output, content_hash(b"output"));
        assert!(bad.fetch(input, &[], &FetchOptions::default()).await.is_ok());
        assert!(bad.fetch(output, &[], &FetchOptions::default()).await.is_err());
    }
}
