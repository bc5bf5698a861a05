//! Signs payments from accounts to each other, for `scripts/bench staking`, which measures how many a chain
//! takes: one extrinsic in hexadecimal on each line, the accounts in turns.
//!
//! Takes the genesis hash, the versions of runtime and transactions, how many accounts, and how many
//! payments; without the last it prints the accounts' addresses. Any runtime takes them that has `Balances`
//! where this one has it, and the same transaction extensions.

use std::{
    error::Error,
    io::{BufWriter, Write, stdout},
};

use codec::Encode;
use sp_core::{Pair, crypto::Ss58Codec, hexdisplay::HexDisplay, sr25519};
use sp_crypto_hashing::blake2_256;
use sp_runtime::{MultiSignature, generic::Era};
use surety_runtime::{
    AccountId, Hash, Nonce, RuntimeCall, SignedPayload, TxExtension, UncheckedExtrinsic, units::MICRO_SURE,
};

const AMOUNT: u128 = MICRO_SURE;

fn pair(index: u32) -> sr25519::Pair {
    sr25519::Pair::from_seed(&blake2_256(format!("surety bench {index}").as_bytes()))
}

fn extension(nonce: Nonce) -> TxExtension {
    (
        frame_system::AuthorizeCall::new(),
        frame_system::CheckNonZeroSender::new(),
        frame_system::CheckSpecVersion::new(),
        frame_system::CheckTxVersion::new(),
        frame_system::CheckGenesis::new(),
        frame_system::CheckEra::from(Era::Immortal),
        frame_system::CheckNonce::from(nonce),
        frame_system::CheckWeight::new(),
        pallet_transaction_payment::ChargeTransactionPayment::from(0),
        frame_metadata_hash_extension::CheckMetadataHash::new(false),
        frame_system::WeightReclaim::new(),
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || {
        arguments
            .next()
            .ok_or("see the head of this example for its arguments")
    };
    let genesis = next()?.parse::<Hash>()?;
    let (spec, transaction) = (next()?.parse::<u32>()?, next()?.parse::<u32>()?);
    let accounts = next()?.parse::<u32>()?;
    let pairs: Vec<_> = (0..accounts).map(pair).collect();
    let ids: Vec<AccountId> = pairs.iter().map(|pair| pair.public().into()).collect();
    let mut out = BufWriter::new(stdout().lock());
    let Ok(payments) = next() else {
        for id in &ids {
            writeln!(out, "{}", id.to_ss58check())?;
        }
        return Ok(out.flush()?);
    };
    for index in 0..payments.parse::<u32>()? {
        let (nonce, place) = (index / accounts, usize::try_from(index % accounts)?);
        let call: RuntimeCall = pallet_balances::Call::transfer_keep_alive {
            dest: ids[(place + 1) % ids.len()].clone().into(),
            value: AMOUNT,
        }
        .into();
        let implicit = ((), (), spec, transaction, genesis, genesis, (), (), (), None, ());
        let payload = SignedPayload::from_raw(call.clone(), extension(nonce), implicit);
        let signature = payload.using_encoded(|bytes| pairs[place].sign(bytes));
        let signature = MultiSignature::Sr25519(signature);
        let signed =
            UncheckedExtrinsic::new_signed(call, ids[place].clone().into(), signature, extension(nonce));
        writeln!(out, "0x{}", HexDisplay::from(&signed.encode()))?;
    }
    Ok(out.flush()?)
}
