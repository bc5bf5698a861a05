//! A data plane that serves outputs to nobody, or others than there are, or after whose first token the
//! process ends.

use std::sync::Arc;

use async_trait::async_trait;
use surety_access::OwnOutputs;
use surety_chain_client::{Hash, Signer};
use surety_engine::content_hash;
use surety_host::Tools;
use surety_network::{
    AccessGate, Announcement, Asked, Bytes, CallError, CallListener, CallStream, Counters, DataPlane,
    Decision, FetchOptions, OutputLocation, PeerError, PlaneError, Readers, StreamPage, StreamWriter, Ticket,
};
use surety_proofs::CommitStatement;
use surety_types::{ContentHash, TaskId, multiaddr::Endpoint};

use crate::{crashing::crash, lines::Standing};

/// What becomes of outputs.
pub enum Serving {
    /// Whoever may have them gets them.
    Honest,
    /// Nothing is kept that was not fetched from somebody: they can be had from nobody, and shown by nobody.
    Lost,
    /// They are kept, and served to nobody.
    Hidden,
    /// Auditors get others.
    TwoFaced(Box<Faces>),
}

/// What it takes to deceive auditors.
pub struct Faces {
    signer: Signer,
    genesis: Hash,
    /// Outputs to which auditors are let in.
    outputs: Arc<OwnOutputs>,
}

/// Lets nobody in.
struct Closed;

/// The data plane of a bad worker.
pub struct BadPlane {
    plane: Arc<dyn DataPlane>,
    serving: Serving,
    /// Ends the process when the first token of a generation is there for its reader.
    crashes: bool,
    /// What is done on lines of calls.
    lines: Option<Standing>,
}

impl BadPlane {
    /// Stands before a data plane that has its gate already.
    pub fn new(plane: Arc<dyn DataPlane>, serving: Serving, crashes: bool) -> Self {
        if matches!(serving, Serving::Hidden) {
            plane.set_gate(Arc::new(Closed));
        }
        Self {
            plane,
            serving,
            crashes,
            lines: None,
        }
    }

    /// With somebody on all lines of calls.
    pub fn standing_on(mut self, lines: Standing) -> Self {
        self.lines = Some(lines);
        self
    }

    /// Who may read something.
    fn readers<'a>(&self, readers: Readers<'a>) -> Readers<'a> {
        match self.serving {
            Serving::Hidden => Readers::NOBODY,
            _ => readers,
        }
    }
}

impl Faces {
    pub fn new(tools: &Tools) -> Self {
        Self {
            signer: tools.signer.clone(),
            genesis: tools.chain.info().genesis,
            outputs: tools.outputs.clone(),
        }
    }

    /// What is told instead: the output with its last token changed, and as good a signature.
    async fn turned(
        &self,
        plane: &dyn DataPlane,
        task: TaskId,
        output: &Announcement,
    ) -> Option<Announcement> {
        let statement = output.statement.as_ref()?.statement.clone();
        let kept = plane.fetch(output.hash, &[], &FetchOptions::default()).await;
        let mut bytes = kept.ok()?.to_vec();
        let last = bytes.len().checked_sub(4)?;
        *bytes.get_mut(last)? ^= 1;
        let served = plane.publish(bytes.into()).await.ok()?;
        self.outputs.insert(task, served);
        let said = CommitStatement {
            output: served,
            ..statement
        };
        let signed = self.signer.sign_statement(said, &self.genesis);
        Some(Announcement::new(served).signed(signed))
    }
}

#[async_trait]
impl AccessGate for Closed {
    async fn may_read(&self, _: Asked<'_>) -> Option<Decision> {
        Some(Decision::Refuse)
    }
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
        self.plane.set_gate(match &self.serving {
            Serving::Hidden => Arc::new(Closed),
            _ => gate,
        });
    }

    async fn set_named_peers(&self, endpoints: &[Endpoint]) -> Result<(), PlaneError> {
        self.plane.set_named_peers(endpoints).await
    }

    async fn open_call(&self, provider: &[Endpoint]) -> Result<CallStream, CallError> {
        let peer = self.plane.open_call(provider).await?;
        match &self.lines {
            Some(standing) => standing.dial(peer).await,
            None => Ok(peer),
        }
    }

    fn calls(&self) -> Option<CallListener> {
        let theirs = self.plane.calls()?;
        match &self.lines {
            Some(standing) => standing.listen(theirs),
            None => Some(theirs),
        }
    }

    async fn publish(&self, bytes: Bytes) -> Result<ContentHash, PlaneError> {
        if matches!(self.serving, Serving::Lost) {
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
        self.plane.grant(task, hash, self.readers(readers)).await
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
        let Serving::TwoFaced(faces) = &self.serving else {
            return self
                .plane
                .announce_output(task, output, self.readers(readers))
                .await;
        };
        let Some(turned) = faces.turned(&*self.plane, task, &output).await else {
            return self.plane.announce_output(task, output, readers).await;
        };
        tracing::error!(task, "announced another output, as --cheat demands");
        // Its client would report it.
        self.plane.announce_output(task, turned, Readers::NOBODY).await
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
        let stream = self.plane.open_stream(task, self.readers(readers)).await?;
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
        let bad = BadPlane::new(Arc::new(provider), Serving::Lost, false);
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

    /// Lets everybody in.
    struct Open;

    #[async_trait]
    impl AccessGate for Open {
        async fn may_read(&self, _: Asked<'_>) -> Option<Decision> {
            Some(Decision::Allow)
        }
    }

    fn faces() -> Faces {
        Faces {
            signer: Signer::from_uri("//Agent").unwrap(),
            genesis: Hash::zero(),
            outputs: Arc::default(),
        }
    }

    /// What an auditor gets of a provider that serves like this, for its output `result!`.
    async fn served(serving: Serving) -> Result<(OutputLocation, Bytes), PlaneError> {
        let net = MemoryNet::default();
        let endpoint = |name: &str| Endpoint::try_from(name.as_bytes().to_vec()).unwrap();
        let (auditor, provider) = (net.join(endpoint("auditor")), net.join(endpoint("provider")));
        provider.set_gate(Arc::new(Open));
        let bad = BadPlane::new(Arc::new(provider), serving, false);
        let output = bad.publish(Bytes::from_static(b"result!")).await?;
        let faces = faces();
        let statement = CommitStatement {
            task: 1,
            provider: faces.signer.account().clone(),
            commitment: Hash::repeat_byte(1),
            output,
        };
        let signed = faces.signer.sign_statement(statement, &faces.genesis);
        bad.announce_output(1, Announcement::new(output).signed(signed), Readers::NOBODY)
            .await?;
        let ticket = Ticket::new(vec![1]).unwrap();
        let found = auditor
            .locate_output(1, &endpoint("provider"), Some(&ticket))
            .await?;
        let options = FetchOptions::default().showing(ticket);
        let blob = auditor
            .fetch(found.hash, &[endpoint("provider")], &options)
            .await?;
        Ok((found, blob))
    }

    #[tokio::test]
    async fn a_hidden_output_is_told_to_nobody_and_an_honest_one_to_whom_the_gate_lets_in() {
        let (found, blob) = served(Serving::Honest).await.unwrap();
        assert_eq!(
            (found.hash, &blob[..]),
            (content_hash(b"result!"), &b"result!"[..])
        );
        assert!(served(Serving::Hidden).await.is_err());
    }

    #[tokio::test]
    async fn two_faces_show_auditors_another_output_with_a_good_signature() {
        let (found, blob) = served(Serving::TwoFaced(Box::new(faces()))).await.unwrap();
        assert_eq!(&blob[..], b"restlt!");
        let signed = found.statement.unwrap();
        assert_eq!(signed.statement.output, content_hash(&blob));
        assert_eq!(signed.statement.commitment, Hash::repeat_byte(1));
        assert!(surety_chain_client::is_signed(&signed, &Hash::zero()));
    }
}
