//! Showing pieces of an own task's input on the chain, as they are demanded there.
//!
//! A client that leaves a demand unanswered loses its lock: whoever serves an input has to look for demands,
//! too. The best block is looked at, so that there is time to try again; what it takes back only costs a fee.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use surety_chain_client::{Call, Chain, Signer, TaskInfo, Until};
use surety_network::{DataPlane, FetchOptions};
use surety_proofs::SegmentOpening;
use surety_types::{ContentHash, TaskId};
use tokio::task::JoinHandle;

/// After an attempt that failed.
const PAUSE: Duration = Duration::from_secs(3);

/// Answers demands for the input of a task.
pub struct Supplier {
    signer: Signer,
    /// The attempt that is under way, and the piece that it shows.
    sending: Option<(u32, JoinHandle<Result<(), String>>)>,
    next: Instant,
}

impl Supplier {
    /// Signs with `signer`, who pays the fees.
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            sending: None,
            next: Instant::now(),
        }
    }

    /// Starts to answer what `info` shows to be demanded, and says how the attempt before went. Never waits.
    pub async fn see(
        &mut self,
        chain: &Arc<dyn Chain>,
        plane: &Arc<dyn DataPlane>,
        task: TaskId,
        info: &TaskInfo,
    ) -> Option<String> {
        let said = match self.sending.take_if(|(_, job)| job.is_finished()) {
            Some((piece, job)) => Some(self.take(piece, job.await.unwrap_or_else(|e| Err(e.to_string())))),
            None => None,
        };
        let demand = info.round.as_ref().and_then(|round| round.input_demand.as_ref());
        if let Some(demand) = demand.filter(|_| self.sending.is_none() && Instant::now() >= self.next) {
            self.start(
                chain.clone(),
                plane.clone(),
                (task, info.task.spec.input, demand.segment),
            );
        }
        said
    }

    fn start(
        &mut self,
        chain: Arc<dyn Chain>,
        plane: Arc<dyn DataPlane>,
        (task, input, segment): (TaskId, ContentHash, u32),
    ) {
        let signer = self.signer.clone();
        let job = async move {
            // Our own blob: it is on this disk.
            let bytes = plane.fetch(input, &[], &FetchOptions::default()).await;
            let bytes = bytes.map_err(|e| e.to_string())?;
            let opening = SegmentOpening::new(&bytes, segment).ok_or("the input has no such piece")?;
            let call = Call::SupplyInput { task, opening };
            match chain.submit(&signer, call, Until::Included.into()).await {
                // Ours was in a block that was replaced, and came first all the same; or somebody else's did.
                Err(e) if e.is_fault("Results", "NotDemanded") => Ok(()),
                included => included.map(drop).map_err(|e| e.to_string()),
            }
        };
        self.sending = Some((segment, tokio::spawn(job)));
    }

    /// What to say of an attempt.
    fn take(&mut self, piece: u32, outcome: Result<(), String>) -> String {
        self.next = Instant::now() + PAUSE;
        match outcome {
            Ok(()) => format!("piece {piece} of the input is on the chain, as was demanded"),
            Err(reason) => format!("piece {piece} of the input is demanded and could not be shown: {reason}"),
        }
    }
}
