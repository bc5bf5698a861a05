//! A peer that speaks the protocol as far as it likes.

use std::{io, time::Duration};

use codec::Encode;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    StreamProtocol, SwarmBuilder, noise,
    request_response::{self, Codec, Event, Message, ProtocolSupport},
    swarm::SwarmEvent,
    tcp, yamux,
};
use surety_network::parse_endpoint;
use surety_types::multiaddr::Endpoint;
use tokio::task::JoinHandle;

/// What it does with a request.
#[derive(Clone)]
pub enum Manner {
    /// Sends this frame byte by byte, with pauses.
    Trickle { frame: Vec<u8>, pause: Duration },
    /// Takes the request, and says nothing.
    Stall,
    /// Sends this instead of a frame with its length.
    Raw(Vec<u8>),
    /// Closes the connection.
    HangUp,
}

impl Manner {
    /// A frame with a whole blob in it, byte by byte.
    pub fn trickle(blob: &[u8], pause: Duration) -> Self {
        let response = (0u8, blob.len() as u64, blob).encode();
        let frame = [&(response.len() as u32).to_le_bytes()[..], &response].concat();
        Self::Trickle { frame, pause }
    }
}

#[derive(Clone)]
struct Bad(Manner);

impl Codec for Bad {
    type Protocol = StreamProtocol;
    type Request = ();
    type Response = ();

    async fn read_request<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<()> {
        let mut len = [0; 4];
        io.read_exact(&mut len).await?;
        let mut request = vec![0; u32::from_le_bytes(len) as usize];
        io.read_exact(&mut request).await
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        _: &mut T,
    ) -> io::Result<()> {
        Ok(())
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        _: &mut T,
        (): (),
    ) -> io::Result<()> {
        Ok(())
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        (): (),
    ) -> io::Result<()> {
        match &self.0 {
            Manner::Trickle { frame, pause } => {
                for byte in frame {
                    io.write_all(&[*byte]).await?;
                    io.flush().await?;
                    tokio::time::sleep(*pause).await;
                }
                Ok(())
            }
            Manner::Raw(bytes) => io.write_all(bytes).await,
            Manner::Stall => std::future::pending().await,
            Manner::HangUp => Ok(()),
        }
    }
}

/// Runs until it is dropped.
pub struct Hostile {
    pub endpoint: Endpoint,
    task: JoinHandle<()>,
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub async fn hostile(manner: Manner) -> Hostile {
    let protocols = [(StreamProtocol::new("/surety/blob/3"), ProtocolSupport::Full)];
    let config = request_response::Config::default().with_request_timeout(Duration::from_secs(600));
    let codec = Bad(manner.clone());
    let mut swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| request_response::Behaviour::with_codec(codec, protocols, config))
        .unwrap()
        .build();
    swarm.listen_on(super::TCP.parse().unwrap()).unwrap();
    let address = loop {
        if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
            break address;
        }
    };
    let endpoint = parse_endpoint(&format!("{address}/p2p/{}", swarm.local_peer_id())).unwrap();
    let task = tokio::spawn(async move {
        loop {
            let event = swarm.select_next_some().await;
            if let SwarmEvent::Behaviour(Event::Message {
                connection_id,
                message: Message::Request { channel, .. },
                ..
            }) = event
            {
                match manner {
                    Manner::HangUp => {
                        swarm.close_connection(connection_id);
                    }
                    _ => drop(swarm.behaviour_mut().send_response(channel, ())),
                }
            }
        }
    });
    Hostile { endpoint, task }
}
