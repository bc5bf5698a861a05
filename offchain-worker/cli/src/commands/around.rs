//! What goes on around a worker's host: calls over payment channels, audits of those, the benchmark, and
//! whether others reach this machine.

use std::sync::Arc;

use surety_chain_rpc::RpcChain;
use surety_engine::Engine;
use surety_host::Tools;
use surety_network::{DataPlane, Node};
use surety_provider_calls::Owed;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Context, benchmark,
    calls::{Calls, CallsParts},
    part::Part,
    point_audits, reach,
    worker::{Mode, Role},
};
use crate::error::Result;

/// What goes on around a worker's host.
pub(super) struct Around {
    calls: Option<Calls>,
    audits: Option<Part>,
    benchmark: Option<Part>,
    /// Says whether others reach this machine.
    telling: Option<JoinHandle<()>>,
}

impl Around {
    /// Begins all of it. When a part cannot go on, everything is told to stop.
    pub(super) fn start<R: Role>(
        (context, role, mode): (&Context, &R, Mode),
        (tools, channels, node): (&Tools, Arc<RpcChain>, &Arc<Node>),
        engines: Vec<Arc<dyn Engine>>,
        stop: &watch::Sender<bool>,
    ) -> Result<Self> {
        // A verifier is reached by nobody.
        let telling = (!node.endpoints().is_empty())
            .then(|| tokio::spawn(reach::tell(tools.chain.clone(), node.clone())));
        let (home, measured) = (&context.config.home, (role.benchmark(), role.work(), mode));
        let benchmark = benchmark::start((tools, channels.clone()), measured, home, stop.clone())?;
        let audits = role.audits_points().then(|| {
            let models = (engines.clone(), role.work().threads);
            point_audits::start((tools, channels.clone()), models, home, stop.clone())
        });
        let audits = audits.transpose()?;
        let calls = match role.calls(&context.config) {
            Some(config) => {
                let parts = CallsParts {
                    tools,
                    channels,
                    engines,
                    config,
                    home,
                    // What is owed is still batched, shown and redeemed where nothing new is taken.
                    takes_new: mode == Mode::Up,
                };
                Calls::start(parts, stop.clone())?
            }
            None => None,
        };
        Ok(Self {
            calls,
            audits,
            benchmark,
            telling,
        })
    }

    /// What is open over channels, where anything is sold over them.
    pub(super) fn owed(&self) -> Option<watch::Receiver<Option<Owed>>> {
        self.calls.as_ref().map(Calls::owed)
    }

    /// Ends all of it, and the node. Says how it went.
    pub(super) async fn stop(self, node: Arc<Node>) -> Result<()> {
        let calls = self.calls.map(Calls::into_part);
        let mut ended = Ok(());
        for part in [calls, self.audits, self.benchmark].into_iter().flatten() {
            ended = ended.and(part.stop().await);
        }
        if let Some(telling) = self.telling {
            telling.abort();
            // It has the node, too, until it has ended.
            telling.await.ok();
        }
        if let Some(node) = Arc::into_inner(node) {
            node.stop().await;
        }
        ended
    }
}
