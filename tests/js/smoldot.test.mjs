// A light client: it verifies finality itself, from nothing but a chain specification and one peer.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { ApiPromise, WsProvider } from "@polkadot/api";
import { start } from "smoldot";

import { WS, within } from "./lib.mjs";

const light = start({ maxLogLevel: Number(process.env.SMOLDOT_LOG ?? 1) });

after(() => light.terminate());

/** The chain's specification with a recent starting point, and the address of a peer that browsers can reach. */
async function specification() {
  const provider = new WsProvider(WS);
  const api = await ApiPromise.create({ provider, noInitWarn: true });
  try {
    const spec = await provider.send("sync_state_genSyncSpec", [true]);
    const addresses = (await api.rpc.system.localListenAddresses()).map(String);
    const peer = addresses.find((address) => address.includes("/127.0.0.1/") && address.includes("/ws/"));
    assert.ok(peer, `no WebSocket address among ${addresses.join()}`);
    return JSON.stringify({ ...spec, bootNodes: [peer] });
  } finally {
    await api.disconnect();
  }
}

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
  await within(120, "smoldot to finalise a block", follow());
  assert.ok(heads.at(-1) > heads[0]);
});
