//! The key that signs calls.

use std::{fmt, str::FromStr};

use sp_core::crypto::AccountId32;
use subxt_signer::{sr25519::Keypair, SecretUri};

use crate::ChainError;

/// An sr25519 key pair. Never printed; `Debug` shows the account only.
#[derive(Clone)]
pub struct Signer {
    keypair: Keypair,
    account: AccountId32,
}

impl Signer {
    /// The key pair that a secret URI names: a mnemonic or a hex seed, with derivations such as `//agent`.
    /// Surrounding white space is ignored, so that a key file may end in a line feed.
    ///
    /// # Errors
    /// [`ChainError::Key`]; the message never holds a part of the secret.
    pub fn from_uri(uri: &str) -> Result<Self, ChainError> {
        let refused = |reason: &str| ChainError::Key {
            reason: reason.into(),
        };
        let uri = uri.trim();
        if uri.is_empty() {
            return Err(refused("it is empty"));
        }
        let uri = SecretUri::from_str(uri).map_err(|_| refused("it is not a secret URI"))?;
        let keypair = Keypair::from_uri(&uri)
            .map_err(|_| refused("neither a valid mnemonic nor 32 bytes of hexadecimal digits after 0x"))?;
        let account = AccountId32::new(keypair.public_key().0);
        Ok(Self { keypair, account })
    }

    /// The account it signs for.
    pub fn account(&self) -> &AccountId32 {
        &self.account
    }

    pub(crate) fn keypair(&self) -> &Keypair {
        &self.keypair
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.account).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use sp_core::crypto::Ss58Codec;

    const ALICE: &str = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY";

    #[test]
    fn development_keys_are_the_well_known_ones_and_white_space_is_ignored() {
        let signer = Signer::from_uri(" //Alice\n").unwrap();
        assert_eq!(signer.account().to_ss58check(), ALICE);
    }

    #[test]
    fn a_bad_key_is_refused_without_being_shown() {
        for secret in [
            "",
            "correct horse battery staple",
            "0xdeadbeefdeadbeef",
            "\u{0}///",
        ] {
            let error = Signer::from_uri(secret).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(secret.is_empty() || !text.contains(secret), "{text}");
        }
    }

    #[test]
    fn debug_output_has_the_account_and_nothing_of_the_secret() {
        let signer = Signer::from_uri("//Alice").unwrap();
        assert_eq!(format!("{signer:?}"), format!("Signer({:?})", signer.account()));
    }
}
