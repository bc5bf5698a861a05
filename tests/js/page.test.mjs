// A web page's own input: nothing but fetch() to `surety serve`, and a wallet that posts and signs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";

import {
  ANSWER_SECONDS,
  FINAL_SECONDS,
  HTTP,
  LIFE_SECONDS,
  MODEL,
  SERVED,
  WS,
  ask,
  atFinal,
  specOf,
  within,
} from "./lib.mjs";

const TEXTS = ["A cat sits on the mat.", "The mat has a cat on it.", "Money is conserved."];
const WIDTH = 384;
// Too little for the spare providers of other tests: they are to work for their own tasks alone.
const CAP = 100_000_000_000n;

const wallets = new Keyring({ type: "sr25519" });
let api;

before(async () => {
  const made = () => ApiPromise.create({ provider: new WsProvider(WS), noInitWarn: true });
  if (HTTP) api = await within(ANSWER_SECONDS, "the node", made());
});

after(() => api?.disconnect());

/** A request of an account, where it says nothing else. */
function of(body) {
  return { account: wallets.addFromUri("//Dave//stash").address, ...body };
}

/** Posts a task from a wallet. Returns its number once that is final. */
function postTask(wallet, spec) {
  return new Promise((resolve, reject) => {
    api.tx.taskAuction
      .post(spec, CAP)
      .signAndSend(wallet, ({ status, events, dispatchError }) => {
        if (dispatchError) {
          const { section, name } = api.registry.findMetaError(dispatchError.asModule);
          reject(new Error(`${section}.${name}`));
        } else if (status.isFinalized) {
          const posted = events.find(({ event }) => api.events.taskAuction.TaskPosted.is(event));
          resolve(posted.event.data.task.toNumber());
        }
      })
      .catch(reject);
  });
}

/** The task once it is over, and that is final. */
async function over(task) {
  for (;;) {
    const { state } = (await (await atFinal(api)).query.taskAuction.tasks(task)).unwrap();
    if (state.isSettled || state.isFailed || state.isCancelled) return state;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

/** What a wallet signs for a page: bytes between `<Bytes>` and `</Bytes>`, so that they are no transaction. */
async function signedTicket(wallet, task, account) {
  const { message } = await ask(`/v1/tasks/${task}/ticket`, { account });
  const bytes = Buffer.concat([Buffer.from("<Bytes>"), Buffer.from(message.slice(2), "hex"), Buffer.from("</Bytes>")]);
  return { account, signature: `0x${Buffer.from(wallet.sign(bytes)).toString("hex")}` };
}

test("a page has its own texts embedded, and its wallet alone opens the vectors", SERVED, async () => {
  const [wallet, other] = ["//Dave//stash", "//Ferdie//stash"].map((uri) => wallets.addFromUri(uri));
  const spec = await specOf(wallet.address, TEXTS);
  const task = await within(FINAL_SECONDS, "the post to be final", postTask(wallet, spec));
  const state = await within(LIFE_SECONDS, `task ${task} to be over`, over(task));
  assert.ok(state.isSettled, state.toString());

  const path = `/v1/tasks/${task}/output`;
  const output = await ask(path, await signedTicket(wallet, task, wallet.address));
  assert.equal(output.status, 200, JSON.stringify(output));
  assert.equal(output.output, state.asSettled.claim.output.toHex());
  assert.deepEqual(
    output.vectors.map((vector) => vector.length),
    TEXTS.map(() => WIDTH),
  );
  const product = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const [cat, mat, money] = output.vectors;
  assert.ok(product(cat, mat) > product(cat, money), "vectors mean nothing");

  // Another account has nothing to ask for here, neither in its own name nor in the client's.
  const own = await ask(path, await signedTicket(other, task, other.address));
  assert.deepEqual([own.status, own.error?.code], [403, "not_the_client"]);
  const forged = await ask(path, await signedTicket(other, task, wallet.address));
  assert.deepEqual([forged.status, forged.error?.code], [403, "bad_signature"]);
});

test("a page of another origin is sent away", SERVED, async () => {
  const answer = await ask("/v1/inputs", of({ model: MODEL, texts: TEXTS }), "http://evil.example");
  assert.deepEqual([answer.status, answer.error.code], [403, "foreign_origin"]);
  assert.equal(answer.headers.get("access-control-allow-origin"), null);
});

test("what is wrong with a request is told in words", SERVED, async () => {
  const wrong = [
    [{ model: MODEL, text: TEXTS }, 400, /unknown field `text`/],
    [{ model: "no-such-model", texts: TEXTS }, 404, /no-such-model/],
    [{ model: MODEL, texts: [] }, 422, /./],
    [{ account: "me", model: MODEL, texts: TEXTS }, 400, /SS58/],
  ];
  for (const [body, status, message] of wrong) {
    const answer = await ask("/v1/inputs", of(body));
    assert.equal(answer.status, status, JSON.stringify(answer));
    assert.match(answer.error.message, message);
  }
});
