//! How large things are, and what a call costs on the chain.

use super::*;
use codec::{Encode, MaxEncodedLen};

/// What a transaction has beside its call: length, version, address, signature, era, nonce, tip, extensions.
const TRANSACTION: usize = 150;

#[test]
fn sizes_are_those_of_the_readme() {
    let voucher = SignedVoucher {
        voucher: voucher(0, 1),
        signature: [0; 64],
    };
    assert_eq!(
        (voucher.voucher.encode().len(), voucher.encode().len()),
        (96, 160)
    );
    let open = statement(0, &[1], None);
    assert_eq!((open.encode().len(), signed(open).encode().len()), (133, 229));
    let receipt = statement(0, &[1], Some(End::Stop));
    assert_eq!(
        (receipt.encode().len(), signed(receipt).encode().len()),
        (166, 262)
    );
    assert_eq!(
        (BatchRoot::max_encoded_len(), SumNode::max_encoded_len()),
        (56, 52)
    );
    // Twenty levels of channels and twenty of receipts: more than any batch has together.
    assert_eq!(
        (
            ChannelOpening::max_encoded_len(),
            ReceiptOpening::max_encoded_len()
        ),
        (1_109, 2_234)
    );
    assert_eq!(Absence::max_encoded_len(), 2_221);
    assert_eq!(Equivocation::<Account>::max_encoded_len(), 2_580);
    assert_eq!(BatchEvidence::<Account>::max_encoded_len(), 6_858);
    assert_eq!(Purse::max_encoded_len(), 289);
    assert_eq!(BatchWindow::max_encoded_len(), 962);
}

#[test]
fn an_opening_grows_by_52_bytes_with_each_doubling() {
    let of = |receipts: u32| {
        let batch = Batch::new(&entries(&[(1, 0, vec![1; receipts as usize])])).unwrap();
        batch.open(1, 0).unwrap().encode().len()
    };
    assert_eq!(
        [of(1), of(2), of(1 << 10), of(1 << 14)],
        [154, 206, 154 + 520, 154 + 728]
    );
}

/// Bytes on the chain for 10,000 calls over so many channels of one provider, all in one batch: its root, the
/// redemption of each channel, and the audits that are expected.
fn bytes_for_10_000_calls(channels: u32) -> usize {
    let calls = 10_000;
    let parts: Vec<_> = (0..channels)
        .map(|channel| (ChannelId::from(channel), 0, vec![1; (calls / channels) as usize]))
        .collect();
    let batch = Batch::new(&entries(&parts)).unwrap();
    let root = TRANSACTION + batch.root().encode().len();
    let voucher = SignedVoucher {
        voucher: voucher(0, 1),
        signature: [0; 64],
    };
    let redemption = |channel| {
        let opening = batch.open_channel(channel).unwrap();
        TRANSACTION + voucher.encode().len() + 4 + opening.encode().len()
    };
    let redemptions: usize = (0..channels).map(|channel| redemption(channel.into())).sum();
    // Opening and closing each channel: payee, key, deposit and expiry; its id.
    let lives = channels as usize * (2 * TRANSACTION + 84 + 8);
    // A draw's proof, what it is about and a seal; later the seal's opening. At 0.1 points per SURE and
    // 10 mSURE a call ten are expected.
    let audit = TRANSACTION + 96 + 36 + 32 + 36 + 32 + 36 + 32;
    root + redemptions + lives + 10 * audit
}

#[test]
fn a_call_over_a_busy_channel_takes_less_than_ten_bytes_on_the_chain() {
    let bytes = [1, 10, 100].map(bytes_for_10_000_calls);
    let per_call = bytes.map(|bytes| bytes as f64 / 10_000.0);
    assert!(per_call[0] < 0.6 && per_call[1] < 1.5, "{per_call:?}");
    // Each of a hundred calls bears a hundredth of its channel: below ten from some 130 on.
    assert!((11.0..13.0).contains(&per_call[2]), "{per_call:?}");
}
