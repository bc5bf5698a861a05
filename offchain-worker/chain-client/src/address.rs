//! Accounts as people read them.

use sp_core::crypto::{AccountId32 as AccountId, Ss58Codec};

/// An address as people read it.
pub fn address(account: &AccountId) -> String {
    account.to_ss58check()
}

/// The account of an address; nothing where the text is none.
pub fn parse_address(text: &str) -> Option<AccountId> {
    AccountId::from_ss58check(text.trim()).ok()
}

/// An address short enough for a table.
pub fn short(account: &AccountId) -> String {
    let text = address(account);
    match (text.get(..6), text.get(text.len().saturating_sub(4)..)) {
        (Some(front), Some(back)) => format!("{front}…{back}"),
        _ => text,
    }
}
