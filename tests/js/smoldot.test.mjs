// A light client: it verifies finality itself, from nothing but a chain specification and one peer.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { start } from "smoldot";

import { FINAL_SECONDS, specification, within } from "./lib.mjs";

const light = start({ maxLogLevel: Number(process.env.SMOLDOT_LOG ?? 1) });

after(() => light.terminate());

test("smoldot verifies a finalised block", async () => {
  const chain = await light.addChain({ chainSpec: await specification() });
  chain.sendJsonRpc(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "chain_subscribeFinalizedHeads", params: [] }));
  const heads = [];
  const follow = async () => {
    for await (const text of chain.jsonRpcResponses) {
      const message = JSON.parse(text);
      assert.equal(message.error, undefined, text);
      const number = message.params?.result?.number;
      if (number !== undefined) heads.push(Number(number));
      // The first head is where it starts; the next one it has verified by itself.
      if (heads.length > 1 && heads.at(-1) > heads[0]) return;
    }
  };
  await within(FINAL_SECONDS, "smoldot to finalise a block", follow());
  assert.ok(heads.at(-1) > heads[0]);
});
