// What the chain's storage has, by a light client: `verifier` of receipt.mjs reads it there.
//
//   import { start } from "smoldot";
//   const light = await follow(await start().addChain({ chainSpec }));
//   const proven = await check(proof, answer, await light.newest());
//
// smoldot verifies headers and their finality itself, beginning with the block that the chain specification names, and
// has each value of storage shown to it by a Merkle proof under such a header. No node is trusted with either.

/** Finalised blocks whose storage can be read: what is read of one takes less than as many blocks. */
const KEPT = 16;
/** A peer that was asked may be gone. */
const TRIES = 4;

/** Follows finality, by a chain of smoldot's that nobody else speaks to. */
export async function follow(chain) {
  const asked = new Map();
  const operations = new Map();
  const waiting = new Set();
  let [nextId, subscription, blocks, failed] = [1, undefined, [], undefined];

  /** `started` is called with the answer before anything else that is said is looked at. */
  function ask(method, params, started = (result) => result) {
    const id = nextId++;
    return new Promise((resolve, reject) => {
      if (failed) return reject(failed);
      const answered = (result) => {
        try {
          resolve(started(result));
        } catch (error) {
          reject(error);
        }
      };
      asked.set(id, { reject, resolve: answered });
      chain.sendJsonRpc(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  const begin = () => ask("chainHead_v1_follow", [false], (result) => (subscription = result));

  /** Blocks that are not wanted stay pinned for nobody. */
  const unpin = (hashes) => hashes.length > 0 && ask("chainHead_v1_unpin", [subscription, hashes]).catch(() => {});

  function seen({ event, ...told }) {
    if (event === "initialized" || event === "finalized") {
      blocks.push(...told.finalizedBlockHashes);
      unpin([...blocks.splice(0, blocks.length - KEPT), ...(told.prunedBlockHashes ?? [])]);
      const isVerified = event === "finalized";
      for (const one of [...waiting]) if (isVerified && waiting.delete(one)) one.resolve();
    } else if (event === "stop") {
      blocks = [];
      for (const one of operations.values()) one.reject(new Error("the light client has lost its place"));
      operations.clear();
      begin().catch(fail);
    }
    const operation = operations.get(told.operationId);
    if (!operation) return;
    if (event === "operationStorageItems") for (const { value } of told.items) operation.value = value;
    else if (event === "operationWaitingForContinue")
      ask("chainHead_v1_continue", [subscription, told.operationId]).catch(operation.reject);
    else {
      operations.delete(told.operationId);
      if (event === "operationStorageDone") operation.resolve(operation.value);
      else operation.reject(new Error(told.error ?? "no peer shows what the chain's storage has"));
    }
  }

  function fail(error) {
    failed ??= error;
    for (const one of [...asked.values(), ...operations.values(), ...waiting]) one.reject(failed);
  }

  async function hear() {
    for await (const text of chain.jsonRpcResponses) {
      const { id, result, error, params } = JSON.parse(text);
      const of = asked.get(id);
      if (asked.delete(id)) error ? of.reject(new Error(error.message)) : of.resolve(result);
      else if (params?.subscription === subscription) seen(params.result);
    }
    throw new Error("the light client has ended");
  }

  async function read(block, key) {
    const query = [subscription, block, [{ key, type: "value" }], null];
    let done;
    await ask("chainHead_v1_storage", query, ({ result, operationId }) => {
      if (result !== "started") throw new Error("the light client is busy");
      done = new Promise((resolve, reject) => operations.set(operationId, { resolve, reject }));
      done.catch(() => {});
    });
    return done;
  }

  async function storage(block, key) {
    for (let left = TRIES; ; left -= 1) {
      try {
        return await read(block, key);
      } catch (error) {
        if (left <= 1 || failed) throw error;
      }
    }
  }

  hear().catch(fail);
  await begin();
  const genesis = await ask("chainSpec_v1_genesisHash", []);
  /** Once a block is final that the light client has verified by itself, not read in the chain's specification. */
  const verified = new Promise((resolve, reject) => waiting.add({ resolve, reject }));
  verified.catch(() => {});

  return {
    /** What the newest finalised block has: its hash, that of the first block, and what is under a key in storage. */
    async newest() {
      await verified;
      const block = blocks.at(-1);
      if (block === undefined) throw new Error("the light client has lost its place: try again in a moment");
      return { block, genesis, storage: (key) => storage(block, key) };
    },
  };
}
