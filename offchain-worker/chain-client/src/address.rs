//! Accounts as people read them.

use sp_core::crypto::{AccountId32 as AccountId, Ss58Codec};

/// An address as people read it.
pub fn address(account: &AccountId) -> String {
    account.to_ss58check()
}

/// The account of an address, whichever prefix it has; nothing where the text is none. Wallets write that of
/// the chain, which nobody has registered.
pub fn parse_address(text: &str) -> Option<AccountId> {
    let (account, _) = AccountId::from_ss58check_with_version(text.trim()).ok()?;
    Some(account)
}

/// An address short enough for a table.
pub fn short(account: &AccountId) -> String {
    let text = address(account);
    match (text.get(..6), text.get(text.len().saturating_sub(4)..)) {
        (Some(front), Some(back)) => format!("{front}…{back}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_the_chains_prefix_and_with_the_generic_one() {
        let account = AccountId::new([7; 32]);
        for prefix in [42u16, 7_373] {
            let text = account.to_ss58check_with_version(prefix.into());
            assert_eq!(parse_address(&format!(" {text}\n")), Some(account.clone()));
            assert_eq!(parse_address(&text[1..]), None);
        }
    }
}
