// The official client against a gateway before which providers answer at once.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

import { EMBEDDER, GENERATOR, PROMPT, WIDTH, client, told } from "./lib.mjs";

const openai = client();
const MESSAGES = [{ role: "user", content: "Where is the whale?" }];
const CHAT = { model: GENERATOR, messages: MESSAGES, max_tokens: 24, seed: 7 };

/** All that a stream says. */
async function heard(stream) {
  const all = { text: "", ids: [], finish: null, usage: null };
  for await (const { choices, surety, usage } of stream) {
    all.text += choices[0]?.delta?.content ?? choices[0]?.text ?? "";
    all.ids.push(...(surety?.token_ids ?? []));
    all.finish = choices[0]?.finish_reason ?? all.finish;
    all.usage = usage ?? all.usage;
  }
  return all;
}

test("a stream says what the whole answer says, and how many tokens it were", async () => {
  const whole = await openai.chat.completions.create(CHAT);
  const stream = await openai.chat.completions.create({ ...CHAT, stream: true, stream_options: { include_usage: true } });
  const parts = await heard(stream);
  assert.equal(parts.text, whole.choices[0].message.content);
  assert.deepEqual(parts.ids, whole.surety.token_ids);
  assert.equal(parts.finish, whole.choices[0].finish_reason);
  assert.deepEqual(parts.usage, whole.usage);
  assert.equal(whole.usage.completion_tokens, whole.surety.token_ids.length);
});

test("models that are answered at once are listed with their prices, and known by their names", async () => {
  const names = new Map();
  for await (const model of openai.models.list()) names.set(model.id, model);
  for (const name of [EMBEDDER, GENERATOR]) {
    assert.ok(BigInt(names.get(name).surety.unit_price_max) > 0n, name);
    assert.deepEqual(await openai.models.retrieve(name), names.get(name));
  }
});

test("continuations, several at once, are the same by their seed, whether they stream or not", async () => {
  const asked = { model: GENERATOR, prompt: PROMPT, max_tokens: 12, seed: 3 };
  const first = await openai.completions.create(asked);
  const again = Array.from({ length: 6 }, () => openai.completions.create(asked));
  for (const { choices } of await Promise.all(again)) assert.equal(choices[0].text, first.choices[0].text);
  const parts = await heard(await openai.completions.create({ ...asked, stream: true }));
  assert.equal(parts.text, first.choices[0].text);
  assert.equal(parts.finish, first.choices[0].finish_reason);
});

test("a prompt may be ids as well as a text", async () => {
  const asked = { model: GENERATOR, max_tokens: 12, seed: 3 };
  const { surety } = await openai.completions.create({ ...asked, prompt: PROMPT });
  const told = await openai.completions.create({ ...asked, prompt: surety.token_ids });
  assert.equal(told.usage.prompt_tokens, surety.token_ids.length);
});

test("vectors come for texts, as numbers, and a receipt with their answer", async () => {
  const { data, response } = await openai.embeddings
    .create({ model: EMBEDDER, input: ["The whale is white.", "The sea is calm."] })
    .withResponse();
  assert.deepEqual(
    data.data.map(({ index, embedding }) => [index, embedding.length]),
    [
      [0, WIDTH],
      [1, WIDTH],
    ],
  );
  assert.equal(response.headers.get("x-surety-privacy"), "providers-and-auditors-read");
  const id = response.headers.get("x-surety-receipt");
  assert.equal(id, data.surety.receipt);
  const { body } = await told(`/receipts/${id}`);
  assert.deepEqual([body.object, body.state], ["surety.call", "closed"]);
  assert.ok(BigInt(body.spent) > 0n && BigInt(body.spent) <= BigInt(body.reserved), JSON.stringify(body));
  assert.ok(body.receipts.length > 0);
  for (const { receipt } of body.receipts) assert.match(receipt.output_hash, /^0x[0-9a-f]{64}$/);
});

test("vectors that are asked for as numbers are those that the client reads from bytes", async () => {
  const asked = { model: EMBEDDER, input: ["The whale is white."] };
  // Unless it is told otherwise it asks for bytes, and makes numbers of them.
  const { data: read } = await openai.embeddings.create(asked);
  const { data: given } = await openai.embeddings.create({ ...asked, encoding_format: "float" });
  assert.deepEqual(Float32Array.from(read[0].embedding), Float32Array.from(given[0].embedding));
});

/** The receipt of a stream that is ended by `end` as soon as it says something. */
async function ended(stream, end) {
  let id;
  for await (const { surety } of stream) {
    id = surety.receipt;
    if (end(stream)) break;
  }
  return id;
}

test("a client that hangs up or aborts pays for no more than a part of its answer", async () => {
  const asked = { ...CHAT, max_tokens: 200, stream: true };
  const begun = () => openai.chat.completions.create(asked);
  const hangsUp = () => true;
  // What is read on then ends.
  const aborts = (stream) => stream.controller.abort();
  for (const id of [await ended(await begun(), hangsUp), await ended(await begun(), aborts)]) {
    // The gateway hears of it when it says more.
    let { body: call } = await told(`/receipts/${id}`);
    while (call.state === "open") {
      await new Promise((resolve) => setTimeout(resolve, 100));
      ({ body: call } = await told(`/receipts/${id}`));
    }
    assert.equal(call.state, "closed");
    assert.ok(BigInt(call.spent) < BigInt(call.reserved), JSON.stringify(call));
  }
});

test("a request that is aborted before it is answered is an error of the client's own", async () => {
  const controller = new AbortController();
  const asked = openai.chat.completions.create({ ...CHAT, max_tokens: 200 }, { signal: controller.signal });
  controller.abort();
  await assert.rejects(asked, OpenAI.APIUserAbortError);
});

test("errors are of their kinds, with their codes and fields", async () => {
  const refuses = (asked, kind, code, param) =>
    assert.rejects(asked, (error) => {
      assert.ok(error instanceof kind, String(error));
      assert.deepEqual([error.code, error.param ?? null], [code, param]);
      return true;
    });
  const chat = (asked) => openai.chat.completions.create({ ...CHAT, ...asked });
  await refuses(chat({ model: "nobody" }), OpenAI.NotFoundError, "model_not_found", "model");
  await refuses(openai.models.retrieve("nobody"), OpenAI.NotFoundError, "model_not_found", "model");
  await assert.rejects(chat({ max_tokens: 100_000, stream: true }), OpenAI.BadRequestError);
  await assert.rejects(openai.embeddings.create({ model: EMBEDDER, input: [] }), OpenAI.BadRequestError);
  await refuses(client("sk-surety-00").models.list(), OpenAI.AuthenticationError, "invalid_api_key", null);
});

test("what is not offered is refused by name, before anything is paid", async () => {
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  await assert.rejects(openai.chat.completions.create({ ...CHAT, tools }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, String(error));
    assert.deepEqual([error.code, error.param], ["unsupported_parameter", "tools"]);
    return true;
  });
});
