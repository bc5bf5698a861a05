#![allow(clippy::unwrap_used)]

use surety_chain_client::message_verifier;
use surety_channels::{
    Cancel, ChunkStatement, Clash, End, Ending, Equivocation, SignedCancel, Voucher,
    view::{NotMet, Says},
};
use surety_proofs::SegmentOpening;

use super::*;

fn signer(uri: &str) -> Signer {
    Signer::from_uri(uri).unwrap()
}

fn account(uri: &str) -> AccountId {
    signer(uri).account().clone()
}

/// What is said of an answer, signed by its agent.
fn said(bytes: u32, end: Option<Ending>) -> Vec<u8> {
    let statement = ChunkStatement {
        channel: 3,
        payee: account("//Stash"),
        nonce: 0,
        request: Hash::repeat_byte(1),
        bytes,
        output: Hash::repeat_byte(2),
        units: bytes / 4,
        price: bytes.into(),
        end,
    };
    let agent = signer("//Agent");
    let statement = SignedChunkStatement {
        signature: agent.sign_hash(&statement.message(&Hash::zero())),
        agent: agent.account().clone(),
        statement,
    };
    let bytes = vec![0; 8].try_into().unwrap();
    FromPayee::Chunk { bytes, statement }.encode()
}

fn statement(frame: &[u8]) -> SignedChunkStatement<AccountId> {
    match message::read(frame).unwrap() {
        FromPayee::Chunk { statement, .. } => statement,
        other => unreachable!("{other:?}"),
    }
}

fn line(standing: Standing) -> Line {
    Line {
        standing,
        last: Mutex::default(),
        told: Mutex::new(vec![0; WORD_BYTES]),
    }
}

#[test]
fn a_second_receipt_and_what_was_said_before_it_convict_who_signed_both() {
    let line = line(Standing::DoubleReceipt(Box::new(signer("//Agent")), Hash::zero()));
    let end = Ending {
        how: End::Length,
        trace_root: Hash::repeat_byte(3),
    };
    let first = said(8, None);
    assert_eq!(line.outward(first.clone()), Some(first.clone()));
    let second = line.outward(said(12, Some(end))).unwrap();
    let shown = Equivocation {
        one: statement(&first),
        other: statement(&second),
        shown: None,
    };
    assert_eq!(
        shown.verify(&Hash::zero(), &*message_verifier()),
        Some(Clash::Output)
    );
    // An answer of one piece has nothing before it.
    let alone = said(12, Some(end));
    assert_eq!(line.outward(alone.clone()), Some(alone));
}

#[test]
fn who_says_one_thing_and_keeps_another_signs_what_it_says() {
    let line = line(Standing::SaysOther(Box::new(signer("//Agent")), Hash::zero()));
    let end = Ending {
        how: End::Length,
        trace_root: Hash::repeat_byte(3),
    };
    let kept = [said(12, None), said(20, Some(end))];
    let told = kept.clone().map(|frame| line.outward(frame).unwrap());
    let mut all = vec![0; 4];
    for (kept, told) in kept.iter().zip(&told) {
        let FromPayee::Chunk {
            bytes,
            statement: says,
        } = message::read(told).unwrap()
        else {
            unreachable!("it was a chunk");
        };
        all.extend(&bytes);
        assert_eq!(bytes[..], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(says.statement.output, content_hash(&all));
        assert_eq!(says.statement.bytes as usize, all.len());
        assert!(says.is_signed(&Hash::zero(), &*message_verifier()));
        assert_eq!(says.statement.price, statement(kept).statement.price);
    }
}

/// What an honest end says of an answer: these bytes are the last so far of this output.
fn honest(output: &[u8], bytes: &[u8], end: Option<Ending>) -> Vec<u8> {
    let mut statement = statement(&said(output.len().try_into().unwrap(), end));
    statement.statement.output = content_hash(output);
    let bytes = bytes.to_vec().try_into().unwrap();
    FromPayee::Chunk { bytes, statement }.encode()
}

#[test]
fn who_breaks_off_says_no_end_and_signs_what_its_receipt_does_not_go_on_from() {
    let line = line(Standing::BreaksOff(Box::new(signer("//Agent")), Hash::zero()));
    let end = Ending {
        how: End::Length,
        trace_root: Hash::repeat_byte(3),
    };
    let (mut output, mut both) = (vec![0u8; 4], Vec::new());
    // The first token comes alone.
    for tokens in [&[5u8, 0, 0, 0][..], &[6, 0, 0, 0, 7, 0, 0, 0]] {
        output.extend(tokens);
        let kept = honest(&output, tokens, None);
        let told = line.outward(kept.clone()).unwrap();
        both.push((statement(&kept), statement(&told)));
    }
    let last = [8u8, 0, 0, 0];
    output.extend(last);
    let receipt = honest(&output, &last, Some(end));
    assert_eq!(line.outward(receipt.clone()), None);
    let receipt = statement(&receipt).statement;
    let shown = SegmentOpening::new(&output, 0);
    for (kept, told) in both {
        let met = |held: &SignedChunkStatement<_>| {
            let says = Says::of(&held.statement, &Hash::zero());
            says.met_by(&receipt, shown.as_ref(), &Hash::zero())
        };
        assert_eq!((met(&kept), met(&told)), (Ok(()), Err(NotMet::Other)));
        assert!(told.is_signed(&Hash::zero(), &*message_verifier()));
    }
}

fn voucher(sum: u128) -> SignedVoucher<AccountId> {
    let payer = signer(PAYER);
    let voucher = Voucher {
        channel: 3,
        payee: account("//Stash"),
        expiry: 1_000,
        nonce: 0,
        request: Hash::repeat_byte(1),
        sum,
    };
    SignedVoucher {
        signature: payer.sign_hash(&voucher.message(&Hash::zero())),
        voucher,
    }
}

#[test]
fn nothing_that_is_made_of_a_voucher_is_signed_for_its_channel_and_chain() {
    let (good, payer) = (voucher(5), account(PAYER));
    let is_signed =
        |voucher: &SignedVoucher<_>| voucher.is_signed(&Hash::zero(), &payer, &*message_verifier());
    assert!(is_signed(&good));
    let tried = replayed(&good, &Hash::zero());
    assert_eq!(tried.len(), 3);
    assert!(tried.iter().all(|(_, voucher)| !is_signed(voucher)));
}

#[tokio::test]
async fn who_pays_for_no_more_says_everything_else() {
    let net = MemoryNet::default();
    let provider = end("provider").unwrap();
    let (far, near) = (net.join(provider.clone()), net.join(end("payer").unwrap()));
    let mut calls = far.calls().unwrap();
    let dialled = near.open_call(&[provider]).await.unwrap();
    let mut call = Standing::UnpaidLastChunk.dial(dialled).await.unwrap();
    let cancel = Cancel {
        channel: 3,
        payee: account("//Stash"),
        nonce: 0,
        request: Hash::zero(),
    };
    let cancel = ToPayee::Cancel(SignedCancel {
        cancel,
        signature: [0; 64],
    });
    call.send(&ToPayee::Pay(voucher(5)).encode()).await.unwrap();
    call.send(&cancel.encode()).await.unwrap();
    let mut heard = calls.next().await.unwrap();
    let first = heard.recv(1 << 20).await.unwrap();
    assert_eq!(first, Some(cancel.encode()));
    heard.send(b"answer").await.unwrap();
    assert_eq!(call.recv(100).await.unwrap().as_deref(), Some(&b"answer"[..]));
    drop(call);
    assert_eq!(heard.recv(100).await.unwrap(), None);
}
