//! What a provider says that wants to keep its payer waiting, or says too much.

use std::time::Duration;

use sp_core::H256;
use surety_chain_client::{AccountId, Signer};
use surety_channel_calls::{FromPayee, Refusal};
use surety_channels::{ChunkStatement, Nonce, Request, SignedChunkStatement, Voucher, VoucherRefusal};
use surety_proofs::content_hash;
use tokio::{sync::mpsc::UnboundedSender, time::sleep};

/// Refuses vouchers until nobody hears it.
pub async fn refuse(tell: UnboundedSender<FromPayee>, nonce: Nonce, every: Duration) {
    let why = Refusal::Voucher(VoucherRefusal::Expired);
    while tell.send(FromPayee::Refused { nonce, why }).is_ok() {
        sleep(every).await;
    }
}

/// Says an answer token by token, and never its end.
pub async fn trickle(
    tell: UnboundedSender<FromPayee>,
    (of, request, answered): (Voucher<AccountId>, Request, Vec<u8>),
    (agent, genesis): (Signer, H256),
    every: Duration,
) {
    let (ids, _) = answered.as_chunks::<4>();
    let prompt = request.units_max - ids.len() as u32;
    let mut said = vec![0; 4];
    for (id, count) in ids.iter().zip(1..) {
        said.extend(id);
        let units = prompt + count;
        let statement = ChunkStatement {
            channel: of.channel,
            payee: of.payee.clone(),
            nonce: of.nonce,
            request: of.request,
            bytes: said.len() as u32,
            output: content_hash(&said),
            units,
            price: request.unit_price * u128::from(units),
            end: None,
        };
        let statement = SignedChunkStatement {
            signature: agent.sign_hash(&statement.message(&genesis)),
            agent: agent.account().clone(),
            statement,
        };
        let bytes = id.to_vec().try_into().unwrap();
        tell.send(FromPayee::Chunk { bytes, statement }).ok();
        sleep(every).await;
    }
}

/// The receipt of another answer to the same request.
pub fn another_receipt(message: &FromPayee, (agent, genesis): (&Signer, H256)) -> Option<FromPayee> {
    let FromPayee::Chunk { statement, .. } = message else {
        return None;
    };
    let statement = ChunkStatement {
        output: H256::repeat_byte(9),
        ..statement.statement.clone()
    };
    let statement = SignedChunkStatement {
        signature: agent.sign_hash(&statement.message(&genesis)),
        agent: agent.account().clone(),
        statement,
    };
    let bytes = Default::default();
    Some(FromPayee::Chunk { bytes, statement })
}
