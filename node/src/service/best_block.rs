//! What the network is told of the best block.

use std::sync::Arc;

use futures::StreamExt;
use sc_client_api::BlockchainEvents;
use sc_network::NetworkBlock;
use sp_blockchain::HeaderBackend;
use surety_runtime::{BlockNumber, Hash, opaque::Block};

/// Tells the network of a best block that finality made the best one, for as long as the client lives.
///
/// The SDK tells it of best blocks that are imported, and of no others. When another fork becomes final, a
/// node goes back to the final block, and would go on to offer its former best block to all that it connects
/// to: they ask for what is at that height, it has nothing there, and each leaves it and bans it in the end
/// (ADR 44). It says so again after `pause`: what the SDK says of a block that was imported shortly before
/// may come after the first time.
pub(super) fn follow_finality<C, P: Future>(
    client: Arc<C>,
    network: impl NetworkBlock<Hash, BlockNumber>,
    pause: impl Fn() -> P,
) -> impl Future<Output = ()>
where
    C: BlockchainEvents<Block> + HeaderBackend<Block>,
{
    let mut finalized = client.finality_notification_stream();
    async move {
        let tell_best = || {
            let info = client.info();
            network.new_best_block_imported(info.best_hash, info.best_number);
        };
        while let Some(block) = finalized.next().await {
            if client.info().best_hash == block.hash {
                tell_best();
                pause().await;
                tell_best();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Mutex;

    use futures::{FutureExt, future::ready};
    use sc_client_api::{Backend as _, BlockImportOperation as _, Finalizer, NewBlockState, in_mem::Backend};
    use sc_service::{
        ClientConfig, GenesisBlockBuilder,
        client::{Client, LocalCallExecutor, new_with_backend},
    };
    use sp_core::{H256, testing::TaskExecutor};
    use sp_runtime::traits::Header as _;
    use surety_runtime::{Header, apis::RuntimeApi};

    use super::*;
    use crate::{chain_spec, service::Executor};

    type MemoryClient =
        Client<Backend<Block>, LocalCallExecutor<Block, Backend<Block>, Executor>, Block, RuntimeApi>;

    fn chain() -> (Arc<Backend<Block>>, Arc<MemoryClient>) {
        let spec = chain_spec::load("dev").unwrap();
        let (backend, executor) = (Arc::new(Backend::new()), Executor::builder().build());
        let genesis = GenesisBlockBuilder::new(&spec, true, backend.clone(), executor.clone()).unwrap();
        let client = new_with_backend(
            backend.clone(),
            executor,
            genesis,
            Box::new(TaskExecutor::new()),
            None,
            None,
            ClientConfig::default(),
        );
        (backend, Arc::new(client.unwrap()))
    }

    /// A block that is the best one from now on. `fork` tells it from its siblings.
    fn import(backend: &Backend<Block>, parent: (Hash, BlockNumber), fork: u8) -> (Hash, BlockNumber) {
        let number = parent.1 + 1;
        let root = H256::repeat_byte(fork);
        let header = Header::new(number, root, root, parent.0, Default::default());
        let hash = header.hash();
        let mut operation = backend.begin_operation().unwrap();
        operation
            .set_block_data(header, None, None, None, NewBlockState::Best, true)
            .unwrap();
        backend.commit_operation(operation).unwrap();
        (hash, number)
    }

    /// What the network was told.
    #[derive(Default)]
    struct Told(Mutex<Vec<(Hash, BlockNumber)>>);

    impl NetworkBlock<Hash, BlockNumber> for Told {
        fn announce_block(&self, _: Hash, _: Option<Vec<u8>>) {}

        fn new_best_block_imported(&self, hash: Hash, number: BlockNumber) {
            self.0.lock().unwrap().push((hash, number));
        }
    }

    #[test]
    fn who_goes_back_to_a_final_block_says_so_and_offers_no_block_that_it_gave_up() {
        let (backend, client) = chain();
        let genesis = (client.info().genesis_hash, 0);
        let told = Arc::new(Told::default());
        let mut following = Box::pin(follow_finality(client.clone(), told.clone(), || ready(())));
        let mut told_since = || {
            assert!((&mut following).now_or_never().is_none(), "it ended");
            std::mem::take(&mut *told.0.lock().unwrap())
        };

        let chosen = import(&backend, genesis, 1);
        let own = import(&backend, import(&backend, genesis, 2), 2);
        assert_eq!(client.info().best_hash, own.0);
        client.finalize_block(chosen.0, None, true).unwrap();
        assert_eq!(client.hash(own.1).unwrap(), None, "nothing is at that height");
        assert_eq!(told_since(), [chosen, chosen]);

        let final_one = import(&backend, chosen, 1);
        import(&backend, final_one, 1);
        client.finalize_block(final_one.0, None, true).unwrap();
        assert!(told_since().is_empty(), "the best block stayed what it was");
    }
}
