//! The least that a task can be posted for: no provider is paid less than its work is worth
//! (`Results.WorkPrice`), and the chain refuses whatever leaves it less (`PriceTooLow`), with a fee.

use surety_audit_economics::AuditWork;
use surety_chain_client::{Balance, Chain, RegisteredModel, When};
use surety_types::{
    ModelId,
    input::Work,
    model::{Operation, audit_speeds},
};

use crate::{
    SURE,
    amount::Amount,
    error::{CliError, Result},
};

/// What a second of the reference machine is worth at least, unless governance has set it otherwise.
const WORK_PRICE: Balance = SURE / 10_000;

/// Group and name of the parameter.
const PARAMETER: (&str, &str) = ("Results", "WorkPrice");

/// Attempts to find a cap: doubled each time, at worst.
const CAP_STEPS: u32 = 64;

/// What is to be done for a task, as far as its price goes by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) model: ModelId,
    pub(super) registered: &'a RegisteredModel,
    pub(super) work: Work,
    pub(super) redundancy: u32,
}

impl Wanted<'_> {
    pub(super) const fn operation(&self) -> Operation {
        self.work.operation
    }

    pub(super) const fn units(&self) -> u32 {
        self.work.units_max
    }

    /// What each provider has to be paid at least, in plancks.
    ///
    /// # Errors
    /// When the chain cannot be asked.
    pub(super) async fn least_price(&self, chain: &dyn Chain, when: When) -> Result<Balance> {
        let manifest = &self.registered.manifest;
        let (reference, _) = audit_speeds(manifest.work_per_token());
        let speed = chain.audit_speed(when, &self.model).await?.unwrap_or(reference);
        let work = AuditWork {
            operation: self.work.operation,
            units_max: self.work.units_max,
            input_bytes: self.work.input_bytes,
            item_tokens: manifest.item_tokens(),
            speed: manifest.speed_of(&self.work, speed),
        };
        Ok(work.worth(work_price(chain, when).await?))
    }

    /// Refuses a cap that leaves providers less than the chain takes.
    ///
    /// # Errors
    /// [`CliError::CapBelowFee`], [`CliError::CapTooLow`]; or the chain cannot be asked.
    pub(super) async fn check_cap(&self, chain: &dyn Chain, cap: Amount) -> Result<()> {
        let when = When::At(chain.block(When::Finalized).await?.hash);
        let redundancy = self.redundancy;
        let Some(limit) = chain.price_limit(when, cap.0, redundancy).await? else {
            return Err(CliError::CapBelowFee { cap, redundancy });
        };
        let price = self.least_price(chain, when).await?;
        if limit >= price {
            return Ok(());
        }
        let least = Amount(cap_for(chain, when, price, redundancy).await?);
        Err(CliError::CapTooLow { cap, least })
    }
}

/// What a second of the reference machine is worth at least on this chain.
async fn work_price(chain: &dyn Chain, when: When) -> Result<Balance> {
    let parameters = chain.parameters(when).await?;
    let set = parameters
        .into_iter()
        .find(|parameter| (parameter.group.as_str(), parameter.name.as_str()) == PARAMETER);
    match set {
        None => Ok(WORK_PRICE),
        Some(set) => set.value.parse().map_err(|_| {
            CliError::Internal(format!(
                "the chain's WorkPrice is {}, which is no amount",
                set.value
            ))
        }),
    }
}

/// The cap that leaves each provider `price`, and the chain its fee.
pub(super) async fn cap_for(
    chain: &dyn Chain,
    when: When,
    price: Balance,
    redundancy: u32,
) -> Result<Balance> {
    let price = price.max(1);
    let providers = Balance::from(redundancy.max(1));
    let mut cap = price.saturating_mul(providers);
    let mut enough = None;
    for _ in 0..CAP_STEPS {
        match chain.price_limit(when, cap, redundancy).await? {
            None => cap = cap.saturating_mul(2),
            Some(limit) if limit < price => match enough {
                // What it came down to was too little.
                Some(enough) => return Ok(enough),
                None => cap = cap.saturating_add(price.saturating_sub(limit).saturating_mul(providers)),
            },
            Some(limit) => {
                enough = Some(cap);
                // Doubling went over it, as far as the first planck beyond the fee was away.
                let over = limit.saturating_sub(price).saturating_mul(providers);
                if over == 0 {
                    break;
                }
                cap = cap.saturating_sub(over);
            }
        }
    }
    Ok(enough.unwrap_or(cap))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use surety_chain_client::{FakeChain, Parameter, sample};

    use super::*;

    /// Four items of the model of zeros for three providers.
    const fn wanted(registered: &RegisteredModel) -> Wanted<'_> {
        Wanted {
            model: ModelId::zero(),
            registered,
            work: Work {
                operation: Operation::Embed,
                input_bytes: 0,
                units_max: 4,
            },
            redundancy: 3,
        }
    }

    /// A chain on which the reference machine does so many tokens of that model in 1,000 seconds.
    fn chain(speed: u32) -> FakeChain {
        let chain = FakeChain::new();
        chain.change(|state| state.audit_speeds.insert(ModelId::zero(), speed));
        chain.finalize();
        chain
    }

    #[tokio::test]
    async fn a_cap_below_what_the_work_is_worth_is_refused_with_the_least_one() {
        let (chain, registered) = (chain(1), sample::records::model());
        let wanted = wanted(&registered);
        // Four items have a token each at least, and one takes 1,000 seconds.
        let least = 4_000 * WORK_PRICE;
        assert_eq!(wanted.least_price(&chain, When::Finalized).await.unwrap(), least);
        let error = wanted.check_cap(&chain, Amount(least * 3 - 1)).await.unwrap_err();
        assert_eq!(error.exit_code(), 4);
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(&Amount(least * 3).to_string()), "{text}");
        wanted.check_cap(&chain, Amount(least * 3)).await.unwrap();
        // Governance may have set it otherwise.
        let set = Parameter {
            group: "Results".into(),
            name: "WorkPrice".into(),
            value: (WORK_PRICE * 2).to_string(),
        };
        chain.change(|state| state.parameters.push(set));
        chain.finalize();
        wanted.check_cap(&chain, Amount(least * 6 - 1)).await.unwrap_err();
        wanted.check_cap(&chain, Amount(least * 6)).await.unwrap();
        assert!(chain.calls().is_empty());
    }

    #[tokio::test]
    async fn a_cap_below_the_fee_is_refused_before_anything_is_posted() {
        let (chain, registered) = (chain(1), sample::records::model());
        let wanted = wanted(&registered);
        let error = wanted.check_cap(&chain, Amount(2)).await.unwrap_err();
        assert!(matches!(error, CliError::CapBelowFee { redundancy: 3, .. }));
        assert_eq!(error.exit_code(), 4);
        let text = error.to_string();
        assert!(
            text.lines().count() == 1 && text.contains("raise --cap"),
            "{text}"
        );
        assert!(chain.calls().is_empty());
    }
}
