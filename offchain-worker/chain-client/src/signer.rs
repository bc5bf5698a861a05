//! The key that signs calls.

use std::{fmt, sync::Arc};

use codec::{DecodeAll, Encode};
use sp_core::{
    H256,
    crypto::{AccountId32, Pair as _, SecretStringError, VrfPublic, VrfSecret},
    sr25519::{
        Pair, Public, Signature,
        vrf::{VrfSignature, VrfTranscript},
    },
};
use surety_audit_economics::{
    channels::{RECEIPTS_CONTEXT, RECEIPTS_LABEL, ReceiptsInput},
    draw::{self, AuditInput, SeatInput},
};
use surety_proofs::{CommitStatement, SignedStatement};
use surety_types::trust::AuditProof;

use crate::ChainError;

/// Label and context of transcripts that secrets are made of. No proof is ever made of them: it would give
/// the secret away.
const SECRETS: &[u8] = b"surety-secrets";

/// Signs messages of 32 bytes with one key.
pub type MessageSigner = Arc<dyn Fn(&[u8; 32]) -> [u8; 64] + Send + Sync>;

/// Says whether bytes were signed with the key of an account.
pub type MessageVerifier = Arc<dyn Fn(&AccountId32, &[u8], &[u8; 64]) -> bool + Send + Sync>;

/// An sr25519 key pair. Never printed; `Debug` shows the account only.
#[derive(Clone)]
pub struct Signer {
    pair: Pair,
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
        let pair = Pair::from_string(uri, None).map_err(|error| match error {
            SecretStringError::InvalidPhrase
            | SecretStringError::InvalidSeed
            | SecretStringError::InvalidSeedLength => {
                refused("neither a valid mnemonic nor 32 bytes of hexadecimal digits after 0x")
            }
            _ => refused("it is not a secret URI"),
        })?;
        let account = AccountId32::new(pair.public().0);
        Ok(Self { pair, account })
    }

    /// The account it signs for.
    pub fn account(&self) -> &AccountId32 {
        &self.account
    }

    /// Gives the agent's word on what it hands over off chain. `genesis` is that of the task's chain.
    ///
    /// Whoever has two that differ about one task can have the provider slashed: only what a journal holds is
    /// signed.
    pub fn sign_statement(
        &self,
        statement: CommitStatement<AccountId32>,
        genesis: &H256,
    ) -> SignedStatement<AccountId32> {
        let signature = self.pair.sign(&statement.message(genesis)).0;
        SignedStatement {
            statement,
            agent: self.account.clone(),
            signature,
        }
    }

    /// Signs a hash. Whoever makes it begins what is hashed with words of its own: no signature may stand for
    /// two things.
    pub fn sign_hash(&self, hash: &[u8; 32]) -> [u8; 64] {
        self.pair.sign(hash).0
    }

    /// Evaluates the key's VRF for an audit. The draw is the same every time, the proof need not be.
    ///
    /// # Errors
    /// [`ChainError::Key`] when the proof has another form than the chain takes.
    pub fn draw_audit(&self, input: &AuditInput<AccountId32>) -> Result<VrfDraw, ChainError> {
        self.draw(draw::LABEL, draw::CONTEXT, &input.fields())
    }

    /// Evaluates the key's VRF for a seat of a committee.
    ///
    /// # Errors
    /// As [`Self::draw_audit`].
    pub fn draw_seat(&self, input: &SeatInput) -> Result<VrfDraw, ChainError> {
        self.draw(draw::SEAT_LABEL, draw::SEAT_CONTEXT, &input.fields())
    }

    /// Evaluates the key's VRF for the points on a batch of receipts.
    ///
    /// # Errors
    /// As [`Self::draw_audit`].
    pub fn draw_points(&self, input: &ReceiptsInput<AccountId32>) -> Result<VrfDraw, ChainError> {
        self.draw(RECEIPTS_LABEL, RECEIPTS_CONTEXT, &input.fields())
    }

    fn draw(
        &self,
        label: &'static [u8],
        context: &'static [u8],
        fields: &[draw::Field],
    ) -> Result<VrfDraw, ChainError> {
        let transcript = VrfTranscript::new(label, &draw::borrowed(fields));
        let output = self.pair.make_bytes::<32>(context, &transcript);
        let signature = self.pair.vrf_sign(&transcript.into_sign_data());
        let proof = AuditProof::decode_all(&mut signature.encode().as_slice());
        let proof = proof.map_err(|error| ChainError::Key {
            reason: error.to_string(),
        })?;
        Ok(VrfDraw { output, proof })
    }

    /// Signs hashes as [`Self::sign_hash`] does, for whoever is to know no more of the key.
    pub fn message_signer(&self) -> MessageSigner {
        let signer = self.clone();
        Arc::new(move |message| signer.sign_hash(message))
    }

    /// A secret for one purpose, the same every time. It says nothing of the key, nor of secrets for other
    /// purposes.
    pub fn secret_for(&self, purpose: &'static [u8]) -> [u8; 32] {
        let transcript = VrfTranscript::new(SECRETS, &[(b"purpose", purpose)]);
        self.pair.make_bytes(SECRETS, &transcript)
    }

    /// Signs what an extrinsic's signature goes over, as the runtime at hand has it.
    pub fn sign_extrinsic(&self, payload: &[u8]) -> [u8; 64] {
        self.pair.sign(payload).0
    }
}

/// Whether a statement is signed by the key that it names, for the chain with this genesis.
pub fn is_signed(signed: &SignedStatement<AccountId32>, genesis: &H256) -> bool {
    let key = Public::from_raw(*AsRef::<[u8; 32]>::as_ref(&signed.agent));
    let signature = Signature::from_raw(signed.signature);
    Pair::verify(&signature, signed.statement.message(genesis), &key)
}

/// Whether these bytes were signed with the key of this account.
pub fn is_message_signed(account: &AccountId32, message: &[u8], signature: [u8; 64]) -> bool {
    let key = Public::from_raw(*AsRef::<[u8; 32]>::as_ref(account));
    Pair::verify(&Signature::from_raw(signature), message, &key)
}

/// [`is_message_signed`], for whoever is to know nothing of signatures.
pub fn message_verifier() -> MessageVerifier {
    Arc::new(|account, message, signature| is_message_signed(account, message, *signature))
}

/// What an agent drew for an audit, by its proof; nothing when the proof is not its own, or for something
/// else.
pub fn checked_draw(
    agent: &AccountId32,
    input: &AuditInput<AccountId32>,
    proof: &AuditProof,
) -> Option<[u8; 32]> {
    checked(agent, (draw::LABEL, draw::CONTEXT), &input.fields(), proof)
}

/// The same of the points on a batch of receipts.
pub fn checked_points(
    agent: &AccountId32,
    input: &ReceiptsInput<AccountId32>,
    proof: &AuditProof,
) -> Option<[u8; 32]> {
    checked(agent, (RECEIPTS_LABEL, RECEIPTS_CONTEXT), &input.fields(), proof)
}

fn checked(
    agent: &AccountId32,
    (label, context): (&'static [u8], &'static [u8]),
    fields: &[draw::Field],
    proof: &AuditProof,
) -> Option<[u8; 32]> {
    let signature = VrfSignature::decode_all(&mut proof.encode().as_slice()).ok()?;
    let key = Public::from_raw(*AsRef::<[u8; 32]>::as_ref(agent));
    let transcript = VrfTranscript::new(label, &draw::borrowed(fields));
    let output = key.make_bytes(context, &transcript, &signature.pre_output).ok()?;
    let is_its_own = key.vrf_verify(&transcript.into_sign_data(), &signature);
    is_its_own.then_some(output)
}

/// What a VRF gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VrfDraw {
    /// To be compared with the chances.
    pub output: [u8; 32],
    /// That it is this key's.
    pub proof: AuditProof,
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
    fn a_draw_is_the_keys_own_and_can_be_checked() {
        let signer = Signer::from_uri("//Alice//agent").unwrap();
        let input = AuditInput {
            seed: H256([1; 32]),
            task: 7,
            provider: AccountId32::new([2; 32]),
        };
        let drawn = signer.draw_audit(&input).unwrap();
        assert_eq!(drawn.output, signer.draw_audit(&input).unwrap().output);
        let other = Signer::from_uri("//Bob//agent").unwrap();
        assert_ne!(drawn.output, other.draw_audit(&input).unwrap().output);

        let checked = |agent: &Signer, input| checked_draw(agent.account(), input, &drawn.proof);
        assert_eq!(checked(&signer, &input), Some(drawn.output));
        assert_eq!(checked(&other, &input), None);
        assert_eq!(
            checked(
                &signer,
                &AuditInput {
                    task: 8,
                    ..input.clone()
                }
            ),
            None
        );
    }

    #[test]
    fn drawn_points_are_the_keys_own_and_no_draw_for_an_audit() {
        let signer = Signer::from_uri("//Alice//agent").unwrap();
        let (seed, provider) = (H256([1; 32]), AccountId32::new([2; 32]));
        let input = ReceiptsInput {
            seed,
            provider: provider.clone(),
            batch: 7,
        };
        let drawn = signer.draw_points(&input).unwrap();
        assert_eq!(drawn.output, signer.draw_points(&input).unwrap().output);

        let checked = |agent: &AccountId32, input| checked_points(agent, input, &drawn.proof);
        assert_eq!(checked(signer.account(), &input), Some(drawn.output));
        let other = Signer::from_uri("//Bob//agent").unwrap();
        assert_eq!(checked(other.account(), &input), None);
        let another = ReceiptsInput {
            batch: 8,
            ..input.clone()
        };
        assert_eq!(checked(signer.account(), &another), None);
        let task = AuditInput {
            seed,
            task: 7,
            provider,
        };
        assert_eq!(checked_draw(signer.account(), &task, &drawn.proof), None);
    }

    #[test]
    fn handed_out_functions_sign_and_check_as_the_key_does() {
        let signer = Signer::from_uri("//Alice").unwrap();
        let (sign, verify) = (signer.message_signer(), message_verifier());
        let signature = sign(&[7; 32]);
        assert!(verify(signer.account(), &[7; 32], &signature));
        assert!(!verify(signer.account(), &[8; 32], &signature));
        let other = Signer::from_uri("//Bob").unwrap();
        assert!(!verify(other.account(), &[7; 32], &signature));
    }

    #[test]
    fn a_secret_is_one_keys_and_one_purposes_and_always_the_same() {
        let [signer, other] = ["//Alice", "//Bob"].map(|uri| Signer::from_uri(uri).unwrap());
        let secret = signer.secret_for(b"salts");
        assert_eq!(secret, signer.secret_for(b"salts"));
        assert_ne!(secret, signer.secret_for(b"others"));
        assert_ne!(secret, other.secret_for(b"salts"));
    }

    #[test]
    fn a_signed_hash_is_one_key_s() {
        let [signer, other] = ["//Alice", "//Bob"].map(|uri| Signer::from_uri(uri).unwrap());
        let signature = signer.sign_hash(&[7; 32]);
        assert!(is_message_signed(signer.account(), &[7; 32], signature));
        assert!(!is_message_signed(signer.account(), &[8; 32], signature));
        assert!(!is_message_signed(other.account(), &[7; 32], signature));
    }

    #[test]
    fn a_statement_is_good_for_its_key_its_words_and_its_chain() {
        let (genesis, other) = (H256([8; 32]), H256([9; 32]));
        let statement = CommitStatement {
            task: 7,
            provider: AccountId32::new([1; 32]),
            commitment: H256([2; 32]),
            output: H256([3; 32]),
        };
        let signer = Signer::from_uri("//Alice//agent").unwrap();
        let signed = signer.sign_statement(statement, &genesis);
        assert!(is_signed(&signed, &genesis));
        assert!(!is_signed(&signed, &other));
        let mut changed = signed.clone();
        changed.statement.output = H256([4; 32]);
        assert!(!is_signed(&changed, &genesis));
        let agent = AccountId32::new([1; 32]);
        assert!(!is_signed(&SignedStatement { agent, ..signed }, &genesis));
    }

    #[test]
    fn debug_output_has_the_account_and_nothing_of_the_secret() {
        let signer = Signer::from_uri("//Alice").unwrap();
        assert_eq!(format!("{signer:?}"), format!("Signer({:?})", signer.account()));
    }
}
