// PAPI speaks the new JSON-RPC (chainHead, chainSpec) and reads metadata on its own: both have to work.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { createClient } from "polkadot-api";
import { getWsProvider } from "polkadot-api/ws";
import { WebSocket } from "ws";

import { WS, within } from "./lib.mjs";

// Node has one of its own only from version 22 on.
const client = createClient(getWsProvider(WS, { websocketClass: WebSocket }));

after(() => client.destroy());

test("PAPI follows finalised blocks and reads typed storage by the metadata", async () => {
  const block = await within(30, "a finalised block", client.getFinalizedBlock());
  assert.ok(block.number > 0);
  const { name, properties } = await client.getChainSpecData();
  assert.match(name, /Surety/);
  assert.equal(properties.tokenSymbol, "SURE");

  const api = client.getUnsafeApi();
  const next = await within(30, "storage", api.query.TaskAuction.NextTaskId.getValue());
  assert.equal(typeof next, "bigint");
  const models = await within(30, "storage", api.query.ModelRegistry.Models.getEntries());
  const families = models.map(({ value }) => value.manifest.family.type).sort();
  assert.deepEqual(families, ["Bert", "Llama"]);
});
