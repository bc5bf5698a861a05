// A dApp's view, with @polkadot/api: post a task, follow its events, read the settled result.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";

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
  atFinal,
  specOf,
  within,
} from "./lib.mjs";

const CLIENT = "//Dave";
// Too little for the spare providers of other tests: they are to work for their own tasks alone.
const CAP = 100_000_000_000n;
const TEXTS = ["One line.", "Another line."];
// More than a refused call costs.
const FEE_MAX = 1_000_000_000_000n;
// How JSON-RPC says that a node does not offer a method, or not to us.
const METHOD_NOT_FOUND = -32601;
// Blocks that may refuse a call before it counts as refused for good.
const DRY_RUNS = 5;

let api;

before(async () => {
  const made = ApiPromise.create({ provider: new WsProvider(WS), noInitWarn: true });
  api = await within(ANSWER_SECONDS, "the node", made);
});

after(() => api?.disconnect());

/** Posts a task. Returns its number and the block it is in. */
function post(client, spec) {
  return new Promise((resolve, reject) => {
    api.tx.taskAuction
      .post(spec, CAP)
      .signAndSend(client, ({ status, events, dispatchError }) => {
        if (dispatchError) {
          const { section, name } = api.registry.findMetaError(dispatchError.asModule);
          reject(new Error(`${section}.${name}`));
        } else if (status.isFinalized) {
          const posted = events.find(({ event }) => api.events.taskAuction.TaskPosted.is(event));
          resolve({ task: posted.event.data.task.toNumber(), block: status.asFinalized });
        }
      })
      .catch(reject);
  });
}

/** What an account has by the last final block, in plancks. */
async function balances({ address }) {
  const { free, reserved } = (await (await atFinal(api)).query.system.account(address)).data;
  return { free: free.toBigInt(), reserved: reserved.toBigInt() };
}

/** What would come of a call; nothing where the node does not tell. */
async function dryRun(call, client) {
  // The library leaves out what the node does not list.
  if (api.rpc.system.dryRun === undefined) return undefined;
  for (let left = DRY_RUNS; ; left -= 1) {
    try {
      const outcome = await api.rpc.system.dryRun((await call.signAsync(client)).toHex());
      if (outcome.isOk) return outcome.asOk;
      // It runs on top of the best block, which may have no room left: the next one has.
      assert.ok(left > 0, `no block takes the call: ${outcome}`);
    } catch (error) {
      if (error.code === METHOD_NOT_FOUND) return undefined;
      throw error;
    }
    await nextBlock();
  }
}

/** Resolves when the best block is another one. */
function nextBlock() {
  const next = new Promise((resolve, reject) => {
    let heads = 0;
    const subscribed = api.rpc.chain.subscribeNewHeads(async () => {
      heads += 1;
      // The first is the present one.
      if (heads === 2) resolve((await subscribed)());
    });
    subscribed.catch(reject);
  });
  return within(ANSWER_SECONDS, "another block", next);
}

/** Names of the events about `task` in one block. */
async function eventsOf(hash, task) {
  const records = await (await api.at(hash)).query.system.events();
  return records
    .map(({ event }) => event)
    .filter(({ data }) => data.names?.includes("task") && data.task.eq(task))
    .map((event) => ({ name: `${event.section}.${event.method}`, data: event.data }));
}

/** Follows finalised blocks from `block` on until the task is over. Returns its events in order. */
async function follow(task, block) {
  const seen = [];
  let next = (await api.rpc.chain.getHeader(block)).number.toNumber();
  for (;;) {
    const last = (await api.rpc.chain.getHeader(await api.rpc.chain.getFinalizedHead())).number.toNumber();
    for (; next <= last; next += 1) {
      seen.push(...(await eventsOf(await api.rpc.chain.getBlockHash(next), task)));
      const end = seen.find(({ name }) => /TaskSettled|TaskFailed|TaskCancelled/.test(name));
      if (end) return seen;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** What a view function answers. The library has no calls for them: what it takes is in the metadata. */
async function view(pallet, name, ...args) {
  const { viewFunctions } = api.runtimeMetadata.asLatest.pallets.find((of) => of.name.eq(pallet));
  const { id, inputs, output } = viewFunctions.find((of) => of.name.eq(name));
  const typed = (type, value) => api.createType(api.registry.createLookupType(type), value);
  const input = Buffer.concat(inputs.map(({ type }, at) => typed(type, args[at]).toU8a()));
  const query = { prefix: id.slice(0, 16), suffix: id.slice(16) };
  const answer = await api.call.runtimeViewFunction.executeViewFunction(query, `0x${input.toString("hex")}`);
  return typed(output, answer.asOk.toU8a(true));
}

test("names are text, and runtime APIs and view functions answer about a settled task alike", async () => {
  const models = (await api.query.modelRegistry.models.entries()).map(([, model]) => model.unwrap().manifest);
  assert.ok(models.some(({ name }) => name.toString() === MODEL), models.map(({ name }) => name.toString()).join());

  const { task } = (await within(ANSWER_SECONDS, "the task", api.call.taskApi.task(EARLIER))).unwrap();
  const viewed = (await view("TaskAuction", "task", EARLIER)).unwrap().task;
  assert.equal(viewed.toHex(), task.toHex());
  assert.match(task.spec.sources[0].toString(), /^\/(ip4|ip6|dns)/);
  const [{ provider, price }] = task.state.asSettled.payments;
  const { items } = await view("Billing", "earnings", provider, null);
  const earned = items.find(({ task: of }) => of.eq(EARLIER));
  assert.ok(earned.isSettled.isTrue && earned.amount.eq(price), items.toString());
  const { items: providers } = await view("ProviderRegistry", "providers_of", task.spec.model, null);
  assert.ok(providers.some(({ stash }) => stash.eq(provider)), providers.toString());
  assert.ok((await view("TaskAuction", "task", 2n ** 63n)).isNone, "there is no such task");
  assert.deepEqual((await api.call.trustApi.disputes(EARLIER)).toJSON(), []);
});

test("a task is posted, followed by its events, and its settled result is read", SERVED, async () => {
  const client = new Keyring({ type: "sr25519" }).addFromUri(CLIENT);
  const spec = await specOf(client.address, TEXTS);
  const before = await balances(client);

  const { task, block } = await within(FINAL_SECONDS, "the post to be final", post(client, spec));
  const events = await within(LIFE_SECONDS, `task ${task} to be settled`, follow(task, block));
  const names = events.map(({ name }) => name);
  const at = (name) => names.indexOf(name);

  assert.ok(at("taskAuction.TaskPosted") >= 0, names.join());
  assert.ok(at("billing.EscrowOpened") >= 0, names.join());
  assert.ok(names.includes("taskAuction.TaskSettled"), names.join());
  // Post, assign, commit, verdict, pay: in this order, and nobody is paid before the verdict.
  const order = [
    "taskAuction.TaskPosted",
    "taskAuction.TaskAssigned",
    "results.Committed",
    "results.Revealed",
    "results.VerdictReached",
    "billing.ProviderPaid",
    "taskAuction.TaskSettled",
  ];
  assert.deepEqual([...order].sort((a, b) => at(a) - at(b)), order, names.join());

  const settled = (await (await atFinal(api)).query.taskAuction.tasks(task)).unwrap().state.asSettled;
  assert.equal(settled.claim.units.toNumber(), TEXTS.length);
  assert.equal(settled.payments.length, REDUNDANCY);
  const paid = settled.payments.reduce((sum, payment) => sum + payment.price.toBigInt(), 0n);
  assert.equal(paid + settled.fee.toBigInt() + settled.refund.toBigInt(), CAP, "money is conserved");

  assert.equal((await balances(client)).reserved, before.reserved, "nothing is left in escrow");
});

test("a task for a country where nobody is lapses, and nothing is left in escrow", SERVED, async () => {
  const client = new Keyring({ type: "sr25519" }).addFromUri(CLIENT);
  const spec = await specOf(client.address, TEXTS, NOWHERE);
  const { reserved } = await balances(client);
  const { task, block } = await within(FINAL_SECONDS, "the post to be final", post(client, spec));
  await within(LIFE_SECONDS, `task ${task} to be over`, follow(task, block));
  const over = (await (await atFinal(api)).query.taskAuction.tasks(task)).unwrap();
  assert.equal(over.spec.requirements.region.unwrap().toHex(), NOWHERE);
  assert.equal(over.state.asFailed.reason.type, "NotEnoughBids");
  assert.equal((await balances(client)).reserved, reserved);
});

test("a refused call names its error, and takes no money but its fee", SERVED, async () => {
  const client = new Keyring({ type: "sr25519" }).addFromUri(CLIENT);
  const spec = await specOf(client.address, TEXTS);
  const { free, reserved } = await balances(client);
  let fees = 0n;
  const next = (await (await atFinal(api)).query.taskAuction.nextTaskId()).toBigInt();
  const refused = [
    [{ ...spec, redundancy: 0 }, "taskAuction.ZeroRedundancy"],
    [{ ...spec, redundancy: 17 }, "taskAuction.RedundancyTooHigh"],
    [{ ...spec, model: `0x${"77".repeat(32)}` }, "modelRegistry.UnknownModel"],
    [{ ...spec, inputBytes: 0 }, "taskAuction.InputEmpty"],
    [{ ...spec, inputBytes: 0xffffffff }, "taskAuction.InputTooLarge"],
    [{ ...spec, inputBytes: spec.inputBytes + 1 }, "modelRegistry.InputRagged"],
    [{ ...spec, inputBytes: 12 }, "modelRegistry.InputTooShort"],
    [{ ...spec, unitsMax: 0 }, "taskAuction.ZeroUnits"],
    [{ ...spec, unitsMax: 0xffffffff }, "taskAuction.TooManyUnits"],
    [{ ...spec, security: { level: "Basic", valueAtRisk: 2n ** 127n } }, "results.ValueAtRiskTooHigh"],
    [{ ...spec, sources: [] }, "taskAuction.NoSources"],
    [{ ...spec, sources: ["/ip4/127.0.0.1/tcp/1"] }, "taskAuction.InvalidSource"],
  ];
  for (const [wrong, error] of refused) {
    // Asked beforehand, as wallets do: no block needs to be waited for.
    const call = api.tx.taskAuction.post(wrong, CAP);
    const outcome = await dryRun(call, client);
    if (outcome === undefined) {
      fees += FEE_MAX;
      await assert.rejects(within(FINAL_SECONDS, error, post(client, wrong)), { message: error });
    } else {
      const { section, name } = api.registry.findMetaError(outcome.asErr.asModule);
      assert.equal(`${section}.${name}`, error);
    }
  }
  const account = await balances(client);
  assert.equal(account.reserved, reserved);
  assert.ok(free - account.free <= fees, `${free - account.free} plancks are gone`);
  // Others may post meanwhile.
  const { taskAuction } = (await atFinal(api)).query;
  for (let task = next; task < (await taskAuction.nextTaskId()).toBigInt(); task += 1n) {
    const posted = await taskAuction.tasks(task);
    assert.ok(posted.isNone || posted.unwrap().client.toString() !== client.address, `task ${task} was posted`);
  }
});
