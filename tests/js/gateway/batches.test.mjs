// The official client against a gateway before which nobody answers at once: models, files, and a batch that is over.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI, { toFile } from "openai";

import { EMBEDDER, GENERATOR, WIDTH, client, lines, told } from "./lib.mjs";

const openai = client();

test("models on the chain are listed, and known by their names", async () => {
  const names = [];
  for await (const model of openai.models.list()) names.push(model.id);
  assert.ok(names.includes(EMBEDDER) && names.includes(GENERATOR), names.join());
  assert.equal((await openai.models.retrieve(EMBEDDER)).id, EMBEDDER);
});

test("what is refused is an error of its own kind, with its code and its field", async () => {
  const input = { model: "nobody", input: "a" };
  await assert.rejects(openai.embeddings.create(input), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError, String(error));
    assert.deepEqual([error.status, error.code, error.param], [404, "model_not_found", "model"]);
    return true;
  });
  const chat = { model: GENERATOR, messages: [{ role: "user", content: "a" }], temperature: 11 };
  await assert.rejects(openai.chat.completions.create(chat), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError, String(error));
    assert.equal(error.param, "temperature");
    return true;
  });
  await assert.rejects(client("sk-surety-00").models.list(), OpenAI.AuthenticationError);
});

test("files are given, listed, read and deleted", async () => {
  const text = '{"custom_id": "ä"}\n';
  const file = await openai.files.create({ file: await toFile(Buffer.from(text), "a b.jsonl"), purpose: "batch" });
  assert.deepEqual([file.filename, file.bytes], ["a b.jsonl", Buffer.byteLength(text)]);
  const ids = [];
  for await (const one of openai.files.list({ limit: 1 })) ids.push(one.id);
  assert.ok(ids.includes(file.id), "page by page");
  assert.equal(await (await openai.files.content(file.id)).text(), text);
  assert.ok((await openai.files.delete(file.id)).deleted);
  await assert.rejects(openai.files.retrieve(file.id), OpenAI.NotFoundError);
});

test("a batch that is over has a vector for each request, and its receipt says what the chain does", async () => {
  const batch = await openai.batches.retrieve(process.env.SURETY_BATCH);
  assert.equal(batch.status, "completed");
  const answers = lines(await (await openai.files.content(batch.output_file_id)).text());
  assert.equal(answers.size, batch.request_counts.completed);
  for (const [name, { body, request_id, status_code }] of answers) {
    assert.equal(status_code, 200, name);
    assert.ok(body.data.every(({ embedding }) => embedding.length === WIDTH));
    const { body: receipt, headers } = await told(`/receipts/${request_id}`);
    assert.deepEqual([receipt.object, receipt.state, receipt.verdict], ["surety.task", "ended", "final"]);
    assert.equal(headers.get("x-surety-verdict"), "final");
    const paid = receipt.receipt.payments.reduce((sum, { price }) => sum + BigInt(price), BigInt(receipt.receipt.fee));
    assert.equal(BigInt(receipt.spent), paid);
  }
});
