//! What is shown to those who keep a task's blobs.

use codec::{Decode, Encode};
use surety_chain_client::{AccountId, Hash, Signer, is_message_signed};
use surety_network::Ticket;
use surety_types::{TaskId, trust::AuditProof};

/// Begins what is signed.
const DOMAIN: &[u8] = b"surety-pass";

/// What an auditor, or a party of a dispute, shows to those who keep a task's blobs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct TicketBody {
    pub task: TaskId,
    /// The key that signs; it acts for a stash, or for itself.
    pub agent: AccountId,
    /// That it has drawn itself to audit the result of this provider.
    pub draw: Option<(AccountId, AuditProof)>,
    pub signature: [u8; 64],
}

impl TicketBody {
    /// One that nobody has signed.
    fn of(task: TaskId, agent: &AccountId, draw: Option<(AccountId, AuditProof)>) -> Self {
        Self {
            task,
            agent: agent.clone(),
            draw,
            signature: [0; 64],
        }
    }

    /// Whether its agent has signed it, for the peer with this id to show.
    pub fn is_signed(&self, genesis: &Hash, peer: &str) -> bool {
        let hash = self.hash(genesis, peer);
        is_message_signed(&self.agent, &hash, self.signature) || self.is_signed_by_wallet(&hash)
    }

    /// Wallets sign bytes only between these, so that they are no transaction: 32 bytes alone might be the
    /// hash of a long one.
    fn is_signed_by_wallet(&self, hash: &[u8; 32]) -> bool {
        let wrapped = [b"<Bytes>", &hash[..], b"</Bytes>"].concat();
        is_message_signed(&self.agent, &wrapped, self.signature)
    }

    /// What is signed, where the peer with this id shows it.
    pub fn hash(&self, genesis: &Hash, peer: &str) -> [u8; 32] {
        let said = (DOMAIN, genesis, self.task, &self.agent, &self.draw, peer);
        sp_crypto_hashing::blake2_256(&said.encode())
    }
}

/// What an account signs so that the peer with this id may read the blobs of its task, where its key is not
/// at hand: in a wallet.
pub fn ticket_hash(genesis: &Hash, peer: &str, task: TaskId, account: &AccountId) -> [u8; 32] {
    TicketBody::of(task, account, None).hash(genesis, peer)
}

/// The ticket that it has signed, between `<Bytes>` and `</Bytes>`; nothing where the signature is not that
/// account's, or for another peer or task, or over the hash alone.
pub fn signed_ticket(
    genesis: &Hash,
    peer: &str,
    task: TaskId,
    account: &AccountId,
    signature: [u8; 64],
) -> Option<Ticket> {
    let body = TicketBody {
        signature,
        ..TicketBody::of(task, account, None)
    };
    body.is_signed_by_wallet(&body.hash(genesis, peer))
        .then(|| Ticket::new(body.encode()))
        .flatten()
}

/// A ticket to the blobs of a task, for the peer with this id.
pub fn ticket(
    signer: &Signer,
    genesis: &Hash,
    peer: &str,
    task: TaskId,
    draw: Option<(AccountId, AuditProof)>,
) -> Option<Ticket> {
    let mut body = TicketBody::of(task, signer.account(), draw);
    body.signature = signer.sign_hash(&body.hash(genesis, peer));
    Ticket::new(body.encode())
}
