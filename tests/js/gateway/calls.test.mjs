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

test("continuations of a text and of its ids, several at once, are the same by their seed", async () => {
  const asked = { model: GENERATOR, max_tokens: 12, seed: 3 };
  const first = await openai.completions.create({ ...asked, prompt: PROMPT });
  const again = Array.from({ length: 6 }, () => openai.completions.create({ ...asked, prompt: PROMPT }));
  for (const { choices } of await Promise.all(again)) assert.equal(choices[0].text, first.choices[0].text);
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

test("a client that hangs up pays for no more than a part of its answer", async () => {
  const asked = { ...CHAT, max_tokens: 200, stream: true };
  const stream = await openai.chat.completions.create(asked);
  let id;
  for await (const { surety } of stream) {
    id = surety.receipt;
    break;
  }
  // The gateway hears of it when it says more.
  let call;
  do ({ body: call } = await told(`/receipts/${id}`));
  while (call.state === "open");
  assert.equal(call.state, "closed");
  assert.ok(BigInt(call.spent) < BigInt(call.reserved), JSON.stringify(call));
});

test("what is not offered is refused by name, before anything is paid", async () => {
  const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
  await assert.rejects(openai.chat.completions.create({ ...CHAT, tools }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, String(error));
    assert.deepEqual([error.code, error.param], ["unsupported_parameter", "tools"]);
    return true;
  });
});
