//! Who held which session key when: what a report of two of a kind has to show.
//!
//! `pallet_session::historical` makes its proofs, and checks those of the running session, with the keys that
//! its validators have *set*. Who sets new ones goes on signing with the old ones for this session and the
//! next, and for as long no node could report it. The roots that it keeps are right: each was made with the
//! keys that its session signs with. So proofs are made here with those keys, and checked against the root of
//! their session, whichever that is.

use alloc::vec::Vec;
use codec::{Decode, Encode};
use core::marker::PhantomData;
use frame_support::traits::KeyOwnerProofSystem;
use pallet_session::{
    Pallet as Session,
    historical::{HistoricalSessions, IdentificationTuple},
};
use sp_runtime::{KeyTypeId, traits::OpaqueKeys};
use sp_session::MembershipProof;
use sp_staking::SessionIndex;
use sp_trie::{
    LayoutV0, MemoryDB, RandomState, Recorder, StorageProof, Trie, TrieMut, TrieRecorder,
    accessed_nodes_tracker::AccessedNodesTracker,
    recorder_ext::RecorderExt,
    trie_types::{TrieDBBuilder, TrieDBMutBuilderV0},
};

use crate::{Config, RunningKeys};

/// Proves and checks who held which session key.
pub struct KeyOwners<T>(PhantomData<T>);

impl<T: Config, Key: AsRef<[u8]>> KeyOwnerProofSystem<(KeyTypeId, Key)> for KeyOwners<T> {
    type Proof = MembershipProof;
    type IdentificationTuple = IdentificationTuple<T>;

    /// For the running session, or else for the next one: what is signed in its first block is reported on
    /// the state of the one before it.
    fn prove((kind, key): (KeyTypeId, Key)) -> Option<MembershipProof> {
        let running = Session::<T>::current_index();
        Self::prove_in(running, kind, key.as_ref())
            .or_else(|| Self::prove_in(running.saturating_add(1), kind, key.as_ref()))
    }

    fn check_proof((kind, key): (KeyTypeId, Key), proof: MembershipProof) -> Option<IdentificationTuple<T>> {
        let (root, count) = HistoricalSessions::<T>::get(proof.session)?;
        if count != proof.validator_count {
            return None;
        }
        let nodes = StorageProof::new_with_duplicate_nodes_check(proof.trie_nodes).ok()?;
        let mut used = AccessedNodesTracker::<T::Hash>::new(nodes.len());
        let trie = KeyTrie::<T> {
            nodes: nodes.into_memory_db(),
            root,
        };
        let owner = trie.owner(kind, key.as_ref(), &mut used)?;
        used.ensure_no_unused_nodes().ok()?;
        Some(owner)
    }
}

impl<T: Config> KeyOwners<T> {
    /// Shows that `key` signed in `session`, the running one or the next. Nothing for another session, or
    /// where the key did not.
    pub fn prove_in(session: SessionIndex, kind: KeyTypeId, key: &[u8]) -> Option<MembershipProof> {
        let keyed = Self::keys_of(session)?;
        let trie = KeyTrie::<T>::new(&keyed)?;
        let mut recorder = Recorder::<LayoutV0<T::Hashing>>::new();
        trie.owner(kind, key, &mut recorder)?;
        Some(MembershipProof {
            session,
            trie_nodes: recorder.into_raw_storage_proof(),
            validator_count: u32::try_from(keyed.len()).ok()?,
        })
    }

    /// What the root of a session, the running one or the next, has to be, and of how many validators.
    #[cfg(any(feature = "std", feature = "try-runtime"))]
    pub(crate) fn root_of(session: SessionIndex) -> Option<(T::Hash, u32)> {
        let keyed = Self::keys_of(session)?;
        Some((KeyTrie::<T>::new(&keyed)?.root, u32::try_from(keyed.len()).ok()?))
    }

    fn keys_of(session: SessionIndex) -> Option<Vec<(T::AccountId, T::Keys)>> {
        match session.checked_sub(Session::<T>::current_index()) {
            Some(0) => Some(RunningKeys::<T>::get()),
            Some(1) => Some(Session::<T>::queued_keys()),
            _ => None,
        }
    }
}

/// `historical::ProvingTrie`, whose keys can be given: each session key leads to its validator's place, and
/// each place to the validator.
struct KeyTrie<T: Config> {
    nodes: MemoryDB<T::Hashing>,
    root: T::Hash,
}

impl<T: Config> KeyTrie<T> {
    fn new(keyed: &[(T::AccountId, T::Keys)]) -> Option<Self> {
        let mut nodes = MemoryDB::<T::Hashing>::with_hasher(RandomState::default());
        let mut root = T::Hash::default();
        let mut trie = TrieDBMutBuilderV0::<T::Hashing>::new(&mut nodes, &mut root).build();
        for (place, (owner, keys)) in (0u32..).zip(keyed) {
            for kind in T::Keys::key_ids() {
                let key = (kind, keys.get_raw(*kind)).encode();
                trie.insert(&key, &place.encode()).ok()?;
            }
            trie.insert(&place.encode(), &(owner, ()).encode()).ok()?;
        }
        // It writes its root when it goes.
        drop(trie);
        Some(Self { nodes, root })
    }

    fn owner(
        &self,
        kind: KeyTypeId,
        key: &[u8],
        recorder: &mut dyn TrieRecorder<T::Hash>,
    ) -> Option<IdentificationTuple<T>> {
        let trie = TrieDBBuilder::<T::Hashing>::new(&self.nodes, &self.root)
            .with_recorder(recorder)
            .build();
        let place = trie.get(&(kind, key).encode()).ok()??;
        let place = u32::decode(&mut place.as_slice()).ok()?;
        let owner = trie.get(&place.encode()).ok()??;
        IdentificationTuple::<T>::decode(&mut owner.as_slice()).ok()
    }
}
