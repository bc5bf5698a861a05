//! The channels' side of `scripts/bench seconds`: what paid calls cost in time of a processor, and in bytes
//! on the chain.
//!
//! ```text
//! seconds CALLS PER_BATCH     calls over one channel, with so many receipts in a batch
//! ```
//!
//! Payer and payee are the real ones, with their stores in memory, and messages as bytes between them.
//! Answers are made up: nothing is computed. All of it runs on one thread, and prints a line of JSON.

mod clock;
mod world;

use std::{env, error::Error, hint::black_box};

use surety_channels::{BatchNumber, BatchRoot, POINTS_MAX, Purse};

use clock::each;
use world::{AGENT, CHANNEL, DEPOSIT, GENESIS, KEY, World, is_signed, sign_with};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<u32> = env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<std::result::Result<_, _>>()?;
    let [calls, per_batch] = arguments[..] else {
        return Err("say how many calls, and how many receipts a batch has; scripts/bench runs this".into());
    };
    if !(1..=100_000).contains(&calls) || per_batch == 0 {
        return Err("1 to 100,000 calls, and at least one receipt in a batch".into());
    }
    let mut world = World::new(calls)?;
    for call in 1..=calls {
        world.call()?;
        if call % per_batch == 0 || call == calls {
            world.batch()?;
        }
    }
    world.redeem()?;
    world.report(calls)
}

impl World {
    /// Seconds of a processor that a receipt takes, stage by stage.
    fn stages(&self, calls: f64) -> Result<[(&'static str, f64); 7]> {
        let (voucher, _) = self.redeemed.last().ok_or("nothing was redeemed")?;
        let receipt = self.receipts.last().ok_or("there is no receipt")?;
        let (by_payer, by_payee) = (sign_with(KEY), sign_with(AGENT));
        let sign = each(|| {
            black_box(by_payer(&voucher.voucher.message(&GENESIS)));
            black_box(by_payee(&receipt.statement.message(&GENESIS)));
            Ok(())
        })?;
        let verify = each(|| {
            let are_signed = voucher.is_signed(&GENESIS, &self.seen.terms.key, is_signed)
                && receipt.is_signed(&GENESIS, is_signed);
            are_signed
                .then_some(())
                .ok_or_else(|| "a signature is wrong".into())
        })?;
        let purse = Purse::new(CHANNEL, DEPOSIT, 0);
        let chain = each(|| {
            let mut purse = purse;
            for (voucher, openings) in &self.redeemed {
                purse = self.paid(purse, voucher, openings)?;
            }
            black_box(purse);
            Ok(())
        })? / calls;
        let (number, window) = self.windows.first_key_value().ok_or("there is no batch")?;
        let audit = self.audit(*number, &window.root)?;
        let (payer, payee) = (self.payer_seconds / calls, self.payee_seconds / calls);
        Ok([
            ("sign", sign),
            ("verify", verify),
            ("batch", self.batch_seconds),
            ("chain", chain),
            ("audit", audit),
            ("payer", payer),
            ("payee", payee),
        ])
    }

    /// The most points that a verifier may draw of a batch, shown and checked, by receipt of the batch. What
    /// is drawn is not computed again.
    fn audit(&self, number: BatchNumber, root: &BatchRoot) -> Result<f64> {
        let mut at = 0;
        let point = each(|| {
            at = (at + root.sums.price / 61) % root.sums.price;
            let shown = self
                .payee
                .open_point(number, at)
                .ok_or("a point cannot be shown")?;
            let place = shown.batched.place_in(&GENESIS, root);
            place.map(|_| ()).ok_or_else(|| "what is shown is wrong".into())
        })?;
        Ok(point * f64::from(POINTS_MAX) / f64::from(root.sums.receipts))
    }

    fn report(&self, calls: u32) -> Result<()> {
        let calls = f64::from(calls);
        let stages = self.stages(calls)?;
        let rows: Vec<String> = stages
            .iter()
            .map(|(name, seconds)| format!("\"{name}\": {seconds}"))
            .collect();
        let bytes = self.by_payer.bytes + self.by_payee.bytes;
        println!(
            "{{\"calls\": {calls}, \"batches\": {}, \"client_transactions\": {}, \"provider_transactions\": {}, \
             \"bytes\": {bytes}, \"bytes_per_call\": {}, \"seconds\": {{{}}}}}",
            self.windows.len(),
            self.by_payer.transactions,
            self.by_payee.transactions,
            bytes as f64 / calls,
            rows.join(", "),
        );
        Ok(())
    }
}
