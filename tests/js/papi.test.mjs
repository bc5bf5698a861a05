// PAPI speaks the new JSON-RPC (chainHead, chainSpec) and reads metadata on its own: both have to work.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { createClient } from "polkadot-api";
import { getWsProvider } from "polkadot-api/ws";
import { WebSocket } from "ws";

import { WS, within } from "./lib.mjs";

// A settled task.
const EARLIER = BigInt(process.env.SURETY_TASK ?? 0);

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

test("PAPI asks the runtime about a settled task, prices and slashes", async () => {
  const { TaskApi, TrustApi } = client.getUnsafeApi().apis;
  const view = await within(30, "the task", TaskApi.task(EARLIER));
  assert.equal(view.task.state.type, "Settled");
  assert.equal(view.round, undefined, "its round is over");
  assert.equal(view.escrow, 0n);
  assert.equal(await TaskApi.task(2n ** 63n), undefined, "there is no such task");

  const limit = await TaskApi.price_limit(view.task.cap, view.task.spec.redundancy);
  const paid = view.task.state.value.payments.map(({ price }) => price);
  assert.ok(paid.length > 0 && paid.every((price) => price <= limit));
  assert.equal(await TaskApi.price_limit(0n, 1), undefined, "no cap is too small a cap");
  assert.deepEqual(await TrustApi.disputes(EARLIER), []);
  assert.equal(await TrustApi.slash(2 ** 31), undefined);
});
