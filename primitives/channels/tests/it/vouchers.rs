//! Vouchers: what is refused, and what a signature is good for.

use super::*;
use proptest::prelude::*;

#[test]
fn what_is_not_of_the_channel_cannot_be_redeemed_or_is_above_the_deposit_is_refused() {
    let terms = terms(100);
    let check = |change: fn(&mut Voucher<Account>), at| {
        let mut voucher = voucher(0, 100);
        change(&mut voucher);
        voucher.check(&terms, at)
    };
    assert_eq!(check(|_| {}, 1_000), Ok(()));
    assert_eq!(check(|_| {}, 1_001), Err(VoucherRefusal::Expired));
    assert_eq!(
        check(|voucher| voucher.channel += 1, 0),
        Err(VoucherRefusal::OtherChannel)
    );
    assert_eq!(
        check(|voucher| voucher.payee = [0; 32], 0),
        Err(VoucherRefusal::OtherPayee)
    );
    assert_eq!(
        check(|voucher| voucher.expiry += 1, 0),
        Err(VoucherRefusal::OutlivesChannel)
    );
    assert_eq!(check(|voucher| voucher.expiry = 5, 5), Ok(()));
    assert_eq!(
        check(|voucher| voucher.expiry = 5, 6),
        Err(VoucherRefusal::Expired)
    );
    let deposit = 100;
    assert_eq!(
        check(|voucher| voucher.sum += 1, 0),
        Err(VoucherRefusal::AboveDeposit { deposit })
    );
}

#[test]
fn a_voucher_is_good_on_its_own_chain_with_its_own_key_and_as_a_wallet_signs_it() {
    let voucher = voucher(3, 50);
    let message = voucher.message(&GENESIS);
    let wrapped = wallet_bytes(&message);
    assert_eq!(wrapped.to_vec(), [b"<Bytes>", &message[..], b"</Bytes>"].concat());
    let payer = payer();
    let other_domain = Cancel {
        channel: CHANNEL,
        payee: voucher.payee,
        nonce: voucher.nonce,
        request: voucher.request,
    };
    let signed = |bytes: &[u8]| SignedVoucher {
        voucher: voucher.clone(),
        signature: payer.sign(bytes).0,
    };
    let key = account(&payer);
    for good in [signed(&message), signed(&wrapped)] {
        assert!(good.is_signed(&GENESIS, &key, verify));
        assert!(
            !good.is_signed(&H256::zero(), &key, verify),
            "replayed on another chain"
        );
        assert!(
            !good.is_signed(&GENESIS, &account(&payee()), verify),
            "signed by somebody else"
        );
        let mut raised = good.clone();
        raised.voucher.sum += 1;
        assert!(!raised.is_signed(&GENESIS, &key, verify), "raised");
        let mut moved = good;
        moved.voucher.channel += 1;
        assert!(
            !moved.is_signed(&GENESIS, &key, verify),
            "replayed on another channel"
        );
    }
    assert!(!signed(&other_domain.message(&GENESIS)).is_signed(&GENESIS, &key, verify));
    let cancel = SignedCancel {
        signature: payer.sign(&wallet_bytes(&other_domain.message(&GENESIS))).0,
        cancel: other_domain,
    };
    assert!(cancel.is_signed(&GENESIS, &key, verify));
    assert!(!cancel.is_signed(&H256::zero(), &key, verify));
}

#[test]
fn a_tally_takes_one_request_after_the_other_and_larger_sums_only() {
    let mut tally = Tally::new(terms(100));
    let early = tally.take(&voucher(1, 10), 0);
    assert_eq!(early, Err(VoucherRefusal::OtherNonce { next: 0 }));
    assert_eq!(tally.take(&voucher(0, 10), 0), Ok(()));
    assert_eq!(
        tally.take(&voucher(0, 10), 0),
        Err(VoucherRefusal::NotLarger { last: 10 })
    );
    assert_eq!(
        tally.take(&voucher(0, 9), 0),
        Err(VoucherRefusal::NotLarger { last: 10 })
    );
    let mut other = voucher(0, 20);
    other.request = named("another request");
    assert_eq!(tally.take(&other, 0), Err(VoucherRefusal::OtherRequest));
    // What is left of one request is the next one's.
    assert_eq!(tally.take(&voucher(1, 10), 0), Ok(()));
    assert_eq!(
        tally.take(&voucher(2, 9), 0),
        Err(VoucherRefusal::NotLarger { last: 10 })
    );
    assert_eq!(
        (tally.serve(7), tally.serve(4)),
        (Ok(()), Err(Unpaid { sum: 11 }))
    );
    assert_eq!(tally.take(&voucher(0, 11), 0), Ok(()));
    assert_eq!(tally.serve(4), Ok(()));
    assert_eq!((tally.sum(), tally.served()), (11, 11));
    tally.end(0);
    assert_eq!(
        tally.take(&voucher(0, 50), 0),
        Err(VoucherRefusal::OtherNonce { next: 2 })
    );
    assert_eq!(tally.serve(u128::MAX), Err(Unpaid { sum: u128::MAX }));
}

#[test]
fn only_so_many_requests_are_open_at_once() {
    let mut tally = Tally::new(terms(100));
    for nonce in 0..OPEN_REQUESTS_MAX {
        assert_eq!(tally.take(&voucher(nonce, 10), 0), Ok(()));
    }
    let next = voucher(OPEN_REQUESTS_MAX, 20);
    let before = tally.clone();
    assert_eq!(tally.take(&next, 0), Err(VoucherRefusal::TooManyOpen));
    assert_eq!(tally, before);
    tally.end(5);
    assert_eq!(tally.take(&next, 0), Ok(()));
}

proptest! {
    #[test]
    fn every_part_of_a_voucher_a_cancellation_and_a_statement_is_signed(
        place in 0usize..1_000, bit in 0u32..8,
    ) {
        use codec::{Decode, Encode};
        let flip = |bytes: Vec<u8>| {
            let mut bytes = bytes;
            let place = place % bytes.len();
            bytes[place] ^= 1 << bit;
            bytes
        };
        let one = voucher(3, 50);
        let other = Voucher::<Account>::decode(&mut &flip(one.encode())[..]).unwrap();
        prop_assert_ne!(one.message(&GENESIS), other.message(&GENESIS));
        let one = statement(3, &[1, 2], Some(End::Stop));
        if let Ok(other) = ChunkStatement::<Account>::decode(&mut &flip(one.encode())[..]) {
            prop_assert_ne!(one.message(&GENESIS), other.message(&GENESIS));
        }
        let one = Cancel { channel: 1, payee: [2; 32], nonce: 3, request: H256::repeat_byte(4) };
        let other = Cancel::<Account>::decode(&mut &flip(one.encode())[..]).unwrap();
        prop_assert_ne!(one.message(&GENESIS), other.message(&GENESIS));
    }
}
