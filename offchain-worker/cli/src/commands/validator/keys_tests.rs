#![allow(clippy::unwrap_used)]
use std::sync::Mutex;

use async_trait::async_trait;
use surety_chain_client::{Signer, sample};

use super::*;

/// A node that makes keys, and has those that it made; or one of another kind.
#[derive(Default)]
pub(crate) struct Node {
    pub made: Mutex<Vec<String>>,
    pub asked: Mutex<Vec<Value>>,
    /// What it makes in their place.
    pub instead: Option<Value>,
}

#[async_trait]
impl Ask for Node {
    async fn ask(&self, method: &str, params: Vec<Value>) -> std::result::Result<Value, NodeFault> {
        let first = params.first().cloned().unwrap_or_default();
        match method {
            "author_rotateKeysWithOwner" => {
                self.asked.lock().unwrap().push(first);
                if let Some(instead) = &self.instead {
                    return Ok(instead.clone());
                }
                let keys = text(&sample::stake::keys());
                self.made.lock().unwrap().push(keys.clone());
                Ok(json!({"keys": keys, "proof": "0x0102"}))
            }
            "author_hasSessionKeys" => {
                let made = self.made.lock().unwrap();
                Ok(json!(made.iter().any(|keys| json!(keys) == first)))
            }
            _ => Err(NodeFault::Refused(format!("{method} is unknown"))),
        }
    }
}

fn operator() -> AccountId {
    Signer::from_uri("//Alice").unwrap().account().clone()
}

#[tokio::test]
async fn keys_are_made_for_the_operator_and_kept_with_their_proof() {
    let (node, home) = (Node::default(), tempfile::tempdir().unwrap());
    assert_eq!(read(home.path()).unwrap(), None);
    let made = made_by(&node, &operator()).await.unwrap();
    let owner = json!(format!("0x{}", hex::encode(operator())));
    assert_eq!(*node.asked.lock().unwrap(), [owner]);
    assert_eq!(
        (made.keys, made.proof.as_slice()),
        (sample::stake::keys(), &[1, 2][..])
    );
    write(home.path(), &made).unwrap();
    // Others take their place.
    let other = Made {
        proof: vec![3],
        ..made.clone()
    };
    write(home.path(), &other).unwrap();
    assert_eq!(read(home.path()).unwrap(), Some(other));
    assert!(has(&node, &made.keys).await.unwrap());
    let missing = SessionKeys {
        babe: [9; 32],
        ..made.keys
    };
    assert!(!has(&node, &missing).await.unwrap());
}

#[tokio::test]
async fn keys_of_another_kind_are_refused() {
    for instead in [
        json!({"keys": "0x01", "proof": "0x02"}),
        json!({"keys": text(&sample::stake::keys())}),
        json!("0x00"),
    ] {
        let node = Node {
            instead: Some(instead),
            ..Node::default()
        };
        assert!(matches!(
            made_by(&node, &operator()).await,
            Err(NodeFault::Refused(_))
        ));
    }
}

#[test]
fn a_file_that_is_something_else_is_named() {
    let home = tempfile::tempdir().unwrap();
    for text in ["", "{}", r#"{"operator":"x","keys":"0x","proof":"0x"}"#] {
        fs::write(file(home.path()), text).unwrap();
        let said = read(home.path()).unwrap_err().to_string();
        assert!(
            said.contains("session-keys.json") && said.contains("validator init"),
            "{said}"
        );
    }
}
