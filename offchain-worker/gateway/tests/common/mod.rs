//! What tests of the door share.

// Each test binary uses some of it.
#![allow(dead_code)]

pub mod description;
pub mod door;
pub mod providers;

use std::net::SocketAddr;

use surety_gateway::ModelText;
use surety_models::chat::Message;
use surety_types::input::IdBounds;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub const ANSWER: &str = "Grüße aus der Höhle 🐻! ECHO und mehr";

/// A token is a byte: characters of several end between tokens.
pub struct Bytes;

impl ModelText for Bytes {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn chat(&self, messages: &[Message]) -> Result<Vec<u32>, String> {
        self.encode(
            &messages
                .iter()
                .map(|message| message.content.as_str())
                .collect::<String>(),
        )
    }

    fn decode(&self, ids: &[u32]) -> Result<String, String> {
        let bytes: Vec<u8> = ids.iter().map(|id| u8::try_from(*id).unwrap()).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bounds(&self) -> IdBounds {
        IdBounds {
            vocabulary: 256,
            positions: 512,
        }
    }
}

/// Status, head in lower case, and body of an answer.
pub async fn asked(address: SocketAddr, head: &str, key: &str, body: &str) -> (u16, String, String) {
    sent(address, head, key, "application/json", body).await
}

/// The same with a body of another kind.
pub async fn sent(
    address: SocketAddr,
    head: &str,
    key: &str,
    kind: &str,
    body: &str,
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.0\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (told, answered) = answer.split_once("\r\n\r\n").unwrap();
    let (status, told) = (told[9..12].parse().unwrap(), told.to_lowercase());
    description::check(address, head, (status, &told), (kind, body), answered).await;
    (status, told, answered.to_owned())
}

/// What is at an address, without a key, and without a look at how it is described.
pub async fn plain(address: SocketAddr, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{head} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}
