// PAPI speaks the new JSON-RPC (chainHead, chainSpec) and reads metadata on its own: both have to work, and what it
// generates from the metadata has to be of use to a dApp.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect } from "node:util";

import { Keyring } from "@polkadot/api";
import { Enum, createClient } from "polkadot-api";
import { getPolkadotSigner } from "polkadot-api/signer";
import { getWsProvider } from "polkadot-api/ws";
import { WebSocket } from "ws";

import { check, generate } from "./descriptors.mjs";
import {
  ANSWER_SECONDS,
  EARLIER,
  FINAL_SECONDS,
  LIFE_SECONDS,
  MODEL,
  NOWHERE,
  REDUNDANCY,
  SERVED,
  WS,
  specOf,
  within,
} from "./lib.mjs";

// Too little for the spare providers of other tests: they are to work for their own tasks alone.
const CAP = 100_000_000_000n;
const TEXTS = ["Typed from the chain's own metadata.", "Computed by three of its providers."];
const OVER = new Set(["Settled", "Failed", "Cancelled"]);

// Node has one of its own only from version 22 on.
const client = createClient(getWsProvider(WS, { websocketClass: WebSocket }));
let api;
let folder;

before(async () => {
  let surety;
  ({ folder, surety } = await within(LIFE_SECONDS, "descriptors", generate(client)));
  api = client.getTypedApi(surety);
});

after(() => client.destroy());

/** What `papi` calls a spec of `specOf`. */
function typedSpec({ operation, inputBytes, unitsMax, security, requirements, ...spec }) {
  return {
    ...spec,
    operation: Enum(operation),
    input_bytes: inputBytes,
    units_max: unitsMax,
    security: { level: Enum(security.level), value_at_risk: BigInt(security.valueAtRisk) },
    requirements: {
      tier: requirements.tier === null ? undefined : Enum(requirements.tier),
      memory_mib: requirements.memoryMib,
      region: requirements.region ?? undefined,
    },
  };
}

/** How a task ended, once that is final. */
function over(task) {
  return new Promise((resolve, reject) => {
    const tasks = api.query.TaskAuction.Tasks.watchValue(task, { at: "finalized" });
    const subscribed = tasks.subscribe({
      next: ({ value }) => {
        if (!OVER.has(value?.state.type)) return;
        resolve(value.state);
        queueMicrotask(() => subscribed.unsubscribe());
      },
      error: reject,
    });
  });
}

test("PAPI follows finalised blocks and reads typed storage, in which names are text", async () => {
  const block = await within(ANSWER_SECONDS, "a finalised block", client.getFinalizedBlock());
  assert.ok(block.number > 0);
  const { name, properties } = await client.getChainSpecData();
  assert.match(name, /Surety/);
  assert.equal(properties.tokenSymbol, "SURE");

  const next = await within(ANSWER_SECONDS, "storage", api.query.TaskAuction.NextTaskId.getValue());
  assert.equal(typeof next, "bigint");
  const models = await within(ANSWER_SECONDS, "storage", api.query.ModelRegistry.Models.getEntries());
  const manifests = models.map(({ value }) => value.manifest);
  assert.deepEqual(manifests.map(({ family }) => family.type).sort(), ["Bert", "Llama"]);
  assert.ok(manifests.some(({ name }) => name === MODEL), manifests.map(({ name }) => name).join());
});

test("the compiler knows calls, answers and text by the generated types, and refuses what is not there", () =>
  check(folder));

test("PAPI asks the runtime about a settled task, prices and slashes", async () => {
  const { TaskApi, TrustApi } = api.apis;
  const view = await within(ANSWER_SECONDS, "the task", TaskApi.task(EARLIER));
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

test("PAPI calls view functions: who works on a model, what they earn, what a task comes to", async () => {
  const { Billing, Disputes, ProviderRegistry, Results, Staking, TaskAuction } = api.view;
  const { task } = await within(ANSWER_SECONDS, "the task", TaskAuction.task(EARLIER));
  const { payments } = task.state.value;
  const quote = await TaskAuction.quote(task.spec, task.cap);
  assert.ok(quote.success, inspect(quote.value));
  const refused = await TaskAuction.quote({ ...task.spec, redundancy: 0 }, task.cap);
  assert.deepEqual([refused.success, refused.value.value.type], [false, "TaskAuction"]);

  const { items } = await ProviderRegistry.providers_of(task.spec.model, undefined);
  const stashes = items.map(({ stash }) => stash);
  for (const { provider, price } of payments) {
    assert.ok(stashes.includes(provider), `${provider} is not among ${stashes.join()}`);
    const earned = (await Billing.earnings(provider, undefined)).items.find(({ task: of }) => of === EARLIER);
    assert.deepEqual(earned, { task: EARLIER, amount: price, is_settled: true });
    assert.ok((await Staking.ledger(provider)).bonded > 0n);
  }
  const { entry, measured } = await ProviderRegistry.provider(payments[0].provider);
  assert.match(entry.endpoints[0], /^\/(ip4|ip6|dns)/);
  assert.equal(measured, undefined, "no rounds of the benchmark without somebody who wants them");
  assert.equal(await Results.round_of(EARLIER), undefined);
  assert.equal(await Disputes.dispute(2 ** 31), undefined);
});

/** Posts a task of a wallet's own texts. Returns its number, once that is final. */
async function postOwn(region) {
  const wallet = new Keyring({ type: "sr25519" }).addFromUri("//Ferdie//stash");
  const signer = getPolkadotSigner(wallet.publicKey, "Sr25519", (bytes) => wallet.sign(bytes));
  const spec = typedSpec(await specOf(wallet.address, TEXTS, region));
  const post = api.tx.TaskAuction.post({ spec, cap: CAP });
  const done = await within(FINAL_SECONDS, "the post to be final", post.signAndSubmit(signer));
  assert.ok(done.ok, inspect(done.dispatchError));
  const [posted] = api.event.TaskAuction.TaskPosted.filter(done.events);
  return (posted.payload ?? posted).task;
}

test("PAPI posts an input of its own by typed calls, and reads the settled result", SERVED, async () => {
  const task = await postOwn();
  const state = await within(LIFE_SECONDS, `task ${task} to be over`, over(task));
  assert.equal(state.type, "Settled", inspect(state));
  assert.equal(state.value.claim.units, TEXTS.length);
  assert.equal(state.value.payments.length, REDUNDANCY);
});

test("PAPI posts a task for a country where nobody is, which lapses", SERVED, async () => {
  const task = await postOwn(NOWHERE);
  const state = await within(LIFE_SECONDS, `task ${task} to be over`, over(task));
  assert.deepEqual([state.type, state.value.reason?.type], ["Failed", "NotEnoughBids"], inspect(state));
  const { spec } = await api.query.TaskAuction.Tasks.getValue(task, { at: "finalized" });
  assert.equal(spec.requirements.region, NOWHERE);
});
