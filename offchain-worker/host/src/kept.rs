//! Free money that parts of a worker keep for the fees of what may be demanded of them: none takes on
//! anything for money that another one keeps, nor before it is known what that is.

use surety_chain_client::Balance;
use tokio::sync::watch;

/// Who keeps how much, in plancks. After a start a part does not know before it has seen a block.
#[derive(Clone, Debug)]
pub struct Kept {
    /// For tasks.
    pub tasks: watch::Sender<Option<Balance>>,
    /// For what is sold over payment channels: nothing, until a part that sells there says otherwise.
    pub channels: watch::Sender<Option<Balance>>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            tasks: watch::Sender::new(None),
            channels: watch::Sender::new(Some(0)),
        }
    }
}
