//! A channel's account: the rules of `surety_channels::Tally`, in a form that a journal can keep.

use codec::{Decode, Encode};
use surety_channels::{
    ChannelTerms, Nonce, OPEN_REQUESTS_MAX, SignedVoucher, Time, Unpaid, Voucher, VoucherRefusal,
};

use crate::AccountId;

/// What a payee keeps of a channel beside its requests.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Account {
    /// What a finalised block has said of it last.
    pub terms: ChannelTerms<AccountId>,
    /// The best voucher: it is worth all before it.
    pub voucher: Option<SignedVoucher<AccountId>>,
    /// What was served costs, in plancks: never more than the voucher's sum.
    pub served: u128,
    /// Number of the next request.
    pub next: Nonce,
    /// The first request whose receipt is in no batch.
    pub unbatched: Nonce,
    /// The channel has ended: the account goes with its last receipt.
    pub is_over: bool,
}

impl Account {
    pub const fn new(terms: ChannelTerms<AccountId>) -> Self {
        Self {
            terms,
            voucher: None,
            served: 0,
            next: 0,
            unbatched: 0,
            is_over: false,
        }
    }

    /// Sum of the best voucher, in plancks.
    pub fn sum(&self) -> u128 {
        self.voucher.as_ref().map_or(0, |signed| signed.voucher.sum)
    }

    /// Whether a voucher would open the next request, while so many are open.
    pub fn check_ask(
        &self,
        voucher: &Voucher<AccountId>,
        at: Time,
        open: usize,
    ) -> Result<(), VoucherRefusal> {
        voucher.check(&self.terms, at)?;
        let last = self.sum();
        if voucher.nonce != self.next {
            return Err(VoucherRefusal::OtherNonce { next: self.next });
        }
        if voucher.sum < last {
            return Err(VoucherRefusal::NotLarger { last });
        }
        if open >= OPEN_REQUESTS_MAX as usize || self.next == Nonce::MAX {
            return Err(VoucherRefusal::TooManyOpen);
        }
        Ok(())
    }

    /// Whether a voucher of an open request adds something.
    pub fn check_pay(&self, voucher: &Voucher<AccountId>, at: Time) -> Result<(), VoucherRefusal> {
        voucher.check(&self.terms, at)?;
        let last = self.sum();
        if voucher.sum <= last {
            return Err(VoucherRefusal::NotLarger { last });
        }
        Ok(())
    }

    /// What is paid for and was not served, in plancks.
    pub fn left(&self) -> u128 {
        self.sum().saturating_sub(self.served)
    }

    /// Whether so much more is paid for.
    pub fn check_serve(&self, price: u128) -> Result<(), Unpaid> {
        let sum = self.served.saturating_add(price);
        if sum > self.sum() {
            return Err(Unpaid { sum });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use sp_core::H256;
    use surety_channels::Tally;

    const TERMS: ChannelTerms<AccountId> = ChannelTerms {
        channel: 3,
        payee: AccountId::new([1; 32]),
        key: AccountId::new([2; 32]),
        deposit: 60,
        expiry: 100,
    };

    #[derive(Clone, Debug)]
    enum Event {
        Voucher { nonce: Nonce, sum: u128, at: Time },
        Serve(u128),
        End(Nonce),
    }

    fn any_event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (0u32..70, 0u128..70, 95u32..103).prop_map(|(nonce, sum, at)| Event::Voucher { nonce, sum, at }),
            (0u128..9).prop_map(Event::Serve),
            (0u32..70).prop_map(Event::End),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn an_account_takes_and_serves_what_a_tally_does(events in vec(any_event(), 0..150)) {
            let mut tally = Tally::new(TERMS);
            let mut account = Account::new(TERMS);
            let mut open: Vec<Nonce> = Vec::new();
            for event in events {
                match event {
                    Event::Voucher { nonce, sum, at } => {
                        // Half of them ask for the next one.
                        let nonce = if nonce % 2 == 0 { account.next } else { nonce };
                        let (channel, payee) = (3, AccountId::new([1; 32]));
                        let request = H256::zero();
                        let voucher = Voucher { channel, payee, expiry: 100, nonce, request, sum };
                        let is_open = open.contains(&nonce);
                        let checked = if is_open {
                            account.check_pay(&voucher, at)
                        } else {
                            account.check_ask(&voucher, at, open.len())
                        };
                        prop_assert_eq!(checked, tally.take(&voucher, at));
                        if checked.is_ok() {
                            account.voucher = Some(SignedVoucher { voucher, signature: [0; 64] });
                            if !is_open {
                                account.next += 1;
                                open.push(nonce);
                            }
                        }
                    }
                    Event::Serve(price) => {
                        let checked = account.check_serve(price);
                        prop_assert_eq!(checked, tally.serve(price));
                        if checked.is_ok() {
                            account.served += price;
                        }
                    }
                    Event::End(nonce) => {
                        tally.end(nonce);
                        open.retain(|open| *open != nonce);
                    }
                }
                prop_assert_eq!((account.sum(), account.served), (tally.sum(), tally.served()));
            }
        }
    }
}
