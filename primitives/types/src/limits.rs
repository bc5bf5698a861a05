//! Bounds that the storage layout depends on. Everything else is a runtime parameter.

/// Most providers that compute one task (redundancy `k`).
pub const REDUNDANCY_MAX: u32 = 16;

/// Most bids one task takes. The shortlist is twice the redundancy; the rest are reserves. Where more bid,
/// seasoned stake decides who has a place.
pub const BIDS_MAX: u32 = 64;

/// Longest endpoint address, in bytes of its text form.
pub const MULTIADDR_BYTES_MAX: u32 = 192;

/// Most addresses a peer may publish.
pub const ENDPOINTS_MAX: u32 = 4;

/// Longest name of a device or a model, in bytes of UTF-8.
pub const NAME_BYTES_MAX: u32 = 64;

/// Most operations one model offers.
pub const OPERATIONS_MAX: u32 = 8;

/// Most ids of one kind that a manifest lists: those before and after a text, those that end a generation.
pub const SPECIAL_IDS_MAX: u32 = 8;

/// Most unbonding chunks a stash may have open at once.
pub const UNLOCKING_MAX: u32 = 32;

/// Most auditors that are expected for one provider's result, whatever the parameters say.
pub const AUDITORS_EXPECTED_MAX: u32 = 4;

/// Most audits of one provider's result. So many are practically never drawn: of many verifiers of whom 3 are
/// expected, the most that a level or a newcomer asks for by default, 25 or more are with a probability of
/// 3 * 10^-15 (Poisson's tail; fewer verifiers make it less).
pub const AUDITS_PER_MEMBER_MAX: u32 = 24;

/// Most items of a task that its auditors compute each, where they do not compute all: their digests are
/// opened on chain, 96 bytes each. A value at risk that asks for more has the whole task computed.
pub const AUDIT_ITEMS_MAX: u32 = 128;

/// Most hashes that lead from neighboring leaves of a trace to its root: two for each level of a tree of
/// as many leaves as there can be.
pub const ITEM_SIBLINGS_MAX: u32 = 64;

/// Most audits of one task, of all its providers.
pub const AUDITS_MAX: u32 = AUDITS_PER_MEMBER_MAX * REDUNDANCY_MAX;

/// Most disputes of one task that are open at once.
pub const DISPUTES_MAX: u32 = 32;

/// Most challenges of one task that are played at once by accounts that are neither its providers nor its
/// auditors. Their bonds are such that taking all these places costs as much as losing the dearest lock.
/// They are places of their own among [`DISPUTES_MAX`].
pub const CHALLENGES_MAX: u32 = 16;

/// Most verifiers that share in the finder's part of one slash: all auditors of the result.
pub const FINDERS_MAX: u32 = AUDITS_PER_MEMBER_MAX;

/// Bytes of a part of content, which is shown at once.
pub const PART_BYTES: u32 = 8 * 1024;

/// Most parts of content that a game can have shown whole, prompt and answer of a generation together.
pub const SHOWN_PARTS_MAX: u32 = 4;

/// Most parts of content that one demand names: all that [`AUDIT_ITEMS_MAX`] items are held against, where
/// the leaves and the output row of each lie across two parts, and a trace's first and last leaf.
pub const DEMAND_PARTS_MAX: u32 = 4 * AUDIT_ITEMS_MAX + 3;

/// Most bytes of a task's input. One demand can have all of it shown, so that no audit depends on who serves
/// it.
pub const INPUT_BYTES_MAX: u32 = 1024 * 1024;

const _: () = assert!(
    INPUT_BYTES_MAX.div_ceil(PART_BYTES) <= DEMAND_PARTS_MAX,
    "one demand asks for all of any input"
);

/// Most demands on one provider that are open at once: one of each of its auditors, and of the client.
pub const DEMANDS_MAX: u32 = AUDITS_PER_MEMBER_MAX + 1;

/// Most pieces of a task's input that one of its providers may demand, one after the other. A member of its
/// own cannot use up those of another, and each moves the round's deadline on.
pub const INPUT_DEMANDS_MAX: u32 = 2;

/// Most verifiers that take part in one vote of all. With more of them those with most stake do, and two
/// thirds of theirs decide.
pub const VOTERS_MAX: u32 = 100;

/// Most verifiers of a model whose stake counts for whether it can be audited. With more of them those with
/// most stake do.
pub const MODEL_AUDITORS_MAX: u32 = 100;

/// Most stashes convicted lately that are kept for what correlated faults cost. With more of them those with
/// most stake are.
pub const CONVICTIONS_MAX: u32 = 256;

/// Most convictions of one stash whose terms in jail overlap and can each still be lifted by a veto.
pub const JAIL_TERMS_MAX: u32 = 32;

// Dimensions of a model whose results can be checked cell by cell. Well above published models of these
// families (a Llama of 405B has 126 layers of width 16,384), and such that at least the smallest task of
// every decoder within them can be disputed, and of every encoder whose leaves fit into memory; how large a
// task may be follows from the model and is the trace's affair. Nothing that a node evaluates may take longer
// because one of them is large.

/// Most layers of a model. A leaf of its trace may hold 96 of them where the model is narrow, at 34 steps
/// each: of 4,096.
pub const LAYERS_MAX: u32 = 160;

/// Most numbers of a state.
pub const WIDTH_MAX: u32 = 16_384;

/// Most attention heads.
pub const HEADS_MAX: u32 = 256;

/// Most numbers of one head: attention's integer sums over it fit 32 bits.
pub const HEAD_DIM_MAX: u32 = surety_exact::HEAD_MAX as u32;

/// Most numbers of all heads together. Keys and values of 96 layers may stand in one row of a trace: of 64
/// MiB.
pub const QUERIES_MAX: u32 = 32_768;

/// Most numbers between a layer's last products.
pub const INNER_MAX: u32 = 65_536;

/// Most positions of a decoder's sequence.
pub const POSITIONS_MAX: u32 = 1 << 20;

/// Most positions of an encoder's: they are the rows of one leaf of its trace, which has to fit into memory
/// as a whole. With many heads there is room for fewer.
pub const ENCODER_POSITIONS_MAX: u32 = 1 << 14;

/// Most tokens of a vocabulary.
pub const VOCABULARY_MAX: u32 = 1 << 19;
