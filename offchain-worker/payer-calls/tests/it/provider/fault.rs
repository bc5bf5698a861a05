//! What a provider does wrong.

use std::time::Duration;

use surety_channel_calls::{AccountId, Refusal};
use surety_channels::{Request, Voucher, VoucherRefusal};

/// What it is to do wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fault {
    #[default]
    None,
    /// It is gone after so many chunks in all.
    Dies(usize),
    /// Its so-manieth chunk is another than it signs.
    OtherBytes(usize),
    /// Instead of that chunk it says something else about the one before.
    Twice(usize),
    /// After a receipt it signs another one.
    EndsTwice,
    /// It has no place.
    Busy,
    /// Whatever it is asked for, it wants a planck more for each unit.
    Haggles,
    /// It computes nothing until it is told to.
    Waits,
    /// It takes nothing, and says each time that it has served a planck more than is known.
    Ratchets,
    /// It takes nothing so many times, and says each time that it has served two units more than is known.
    Misses(usize),
    /// It takes nothing, and says each time that the number after the one that it is asked for is its next.
    Renumbers,
    /// It takes what it is asked, and then does nothing but refuse vouchers, after so long each time.
    Refuses(Duration),
    /// It says a token at a time, after so long each time, also when it is cancelled.
    Trickles(Duration),
    /// It shows something else than what is in its batches.
    ShowsOther,
    /// It does not show where in a longer receipt that ends which was heard.
    ShowsNoBeginning,
    /// It shows others something, so many times more.
    BusyShowing(usize),
    /// It says something else than it keeps and batches: of answers of one chunk.
    SaysOther,
    /// Its engine makes something else, from the second token or number on.
    Errs,
}

impl Fault {
    /// What it says instead of taking a request.
    pub fn refusal(&mut self, voucher: &Voucher<AccountId>, request: &Request) -> Option<Refusal> {
        match self {
            Self::Busy => Some(Refusal::Busy),
            Self::Haggles => Some(Refusal::Price {
                unit_price: request.unit_price + 1,
            }),
            Self::Ratchets => Some(Refusal::Unpaid { sum: voucher.sum + 1 }),
            Self::Misses(times @ 1..) => {
                *times -= 1;
                let sum = voucher.sum + 2 * request.unit_price;
                Some(Refusal::Unpaid { sum })
            }
            Self::Renumbers => {
                let next = voucher.nonce + 1;
                Some(Refusal::Voucher(VoucherRefusal::OtherNonce { next }))
            }
            _ => None,
        }
    }
}
