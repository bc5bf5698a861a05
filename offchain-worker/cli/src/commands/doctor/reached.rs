//! Whether others reach this machine, by what was found and by what the chain tells them.

use surety_chain_client::Chain;
use surety_network::Scope;
use surety_types::multiaddr::Endpoint;

use super::{Checks, Context};
use crate::{
    args::DoctorRole,
    commands::reach::{self, Found},
};

/// Whether peers of the chain reach what is listened on.
pub(super) async fn check_reached(
    context: &Context,
    chain: &dyn Chain,
    role: DoctorRole,
    checks: &mut Checks,
) {
    let data = match role {
        DoctorRole::Provider => &context.config.provider.data,
        DoctorRole::Client => &context.config.task,
        // They need not be reached, or not here.
        DoctorRole::Verifier | DoctorRole::Validator => return,
    };
    let found = reach::try_out(chain, data).await;
    match found.map(|all| reach::summary(&all)) {
        Ok((Found::Reachable, text)) => checks.ok("reached", text),
        Ok((Found::Elsewhere | Found::Unreachable, text)) => checks.fail("reached", text),
        Ok((Found::Nearby | Found::Unknown, text)) => checks.warn("reached", text),
        Err(e) => {
            let finding = format!("cannot be tried now: {e}; a provider that is up says it in its log");
            checks.warn("reached", finding);
        }
    }
}

/// Whether clients elsewhere can reach what the chain tells them.
pub(super) fn check_reach(endpoints: &[Endpoint], checks: &mut Checks) {
    // A name: whoever asks for it finds out.
    let is_near = |endpoint: &&Endpoint| !matches!(Scope::of_endpoint(endpoint), Some(Scope::Global) | None);
    let near = endpoints.iter().filter(is_near).count();
    match (near, endpoints.len().saturating_sub(near)) {
        (0, _) => {}
        (_, 0) => checks.warn(
            "reach",
            "all of its addresses are of this machine or network alone: clients elsewhere need a forwarded port, \
             and its address as --external IP:PORT",
        ),
        (near, _) => checks.ok("reach", format!("{near} addresses are of this network alone, others are not")),
    }
}
