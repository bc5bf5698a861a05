// What all tests share.

import assert from "node:assert/strict";

import { ApiPromise, WsProvider } from "@polkadot/api";

/** Where the node is. */
export const WS = process.env.SURETY_WS ?? "ws://127.0.0.1:9944";

// Where `surety serve` is, and the page that it is there for.
export const HTTP = process.env.SURETY_HTTP;
export const ORIGIN = process.env.SURETY_ORIGIN ?? "http://localhost:5173";
export const SERVED = { skip: HTTP ? false : "SURETY_HTTP names no `surety serve`" };

// A settled task.
export const EARLIER = BigInt(process.env.SURETY_TASK ?? 0);

// What a node takes to answer, a call until it is final, and a task until it is over, where many share a machine.
export const [ANSWER_SECONDS, FINAL_SECONDS, LIFE_SECONDS] = [120, 300, 900];

export const MODEL = "all-MiniLM-L6-v2-exact";
export const REDUNDANCY = Number(process.env.SURETY_REDUNDANCY ?? 3);

/** A country in which no provider says that it is: `AQ`. */
export const NOWHERE = "0x4151";

/** The chain's specification with a recent starting point, and the address of a peer that browsers can reach. */
export async function specification() {
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

/** POSTs to `surety serve` what a page does. Returns the status and the JSON that comes back. */
export async function ask(path, body, origin = ORIGIN) {
  const headers = { "content-type": "application/json", origin };
  const answer = await fetch(`${HTTP}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: answer.status, headers: answer.headers, ...(await answer.json()) };
}

/**
 * The spec of a task that has texts of an account's embedded, which `surety serve` keeps for it; where a region is
 * given, by those alone that say that they are there.
 */
export async function specOf(account, texts, region = null) {
  const { status, headers, ...input } = await ask("/v1/inputs", { account, model: MODEL, texts });
  assert.equal(status, 200, JSON.stringify(input));
  assert.equal(headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(input.operation, "Embed");
  assert.equal(input.units_max, texts.length);
  assert.ok(input.sources.length > 0);
  return {
    model: input.model,
    operation: input.operation,
    input: input.input,
    inputBytes: input.input_bytes,
    unitsMax: input.units_max,
    redundancy: REDUNDANCY,
    sources: input.sources,
    security: { level: "Basic", valueAtRisk: 0 },
    requirements: { tier: null, memoryMib: 0, region },
  };
}

/** What a node says by its last final block: a best one may be replaced by a sibling. */
export const atFinal = async (api) => api.at(await api.rpc.chain.getFinalizedHead());

/** Rejects when `promise` takes longer than `seconds`. */
export function within(seconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${seconds} s in vain for ${what}`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
