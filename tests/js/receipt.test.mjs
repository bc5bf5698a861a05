// The verifier for browsers, against vectors that the runtime's own tests hold to be what the chain stores.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { hex, sure, unhex } from "../../clients/js/receipt.mjs";
import { check } from "./verifier.mjs";

const read = (name) => readFileSync(new URL(`../../clients/js/${name}`, import.meta.url), "utf8");
const VECTORS = JSON.parse(read("vectors/receipts.json"));
const { genesis, changes, receipts } = VECTORS;
const [{ proof, answer }, embedded] = receipts;

/** A chain that has this in its storage. */
const chain = (more = {}, of = genesis) => {
  const stored = { ...VECTORS.storage, ...more };
  return { genesis: of, storage: async (key) => stored[key] };
};

/** The same with one bit of a byte turned over; from the end where `at` is below 0. */
function flipped(text, at) {
  const bytes = unhex(text);
  bytes[at < 0 ? bytes.length + at : at] ^= 1;
  return hex(bytes);
}

const refuses = (code, ...args) => assert.rejects(check(...args), (error) => (assert.equal(error.code, code), true));

test("an answer is proven, with what it says and what has become of it", async () => {
  const proven = await check(proof, answer, chain());
  assert.equal(proven.verdict, "batched");
  assert.equal(proven.units, 610);
  assert.equal(sure(proven.unitPrice), "0.001 SURE");
  assert.equal(proven.price, 610n * proven.unitPrice);
  assert.match(proven.words, /610 units at 0\.001 SURE, 0\.61 SURE in all; ended by length.*can still be disputed/);
  assert.equal((await check(proof, answer, chain(changes.final))).verdict, "final");
  assert.equal((await check(proof, answer, chain(changes.struck))).verdict, "struck");
  assert.equal((await check(embedded.proof, embedded.answer, chain(changes.struck))).verdict, "batched");
  assert.equal((await check(embedded.proof, embedded.answer, chain(changes.void))).verdict, "struck");
});

test("vectors are proven, too", async () => {
  const proven = await check(embedded.proof, embedded.answer, chain());
  assert.deepEqual([proven.operation, proven.units, proven.end], ["embed", 2, "stop"]);
  const vectors = embedded.answer.vectors.map((vector) => [...vector]);
  vectors[1][2] += 0.5;
  await refuses("other_answer", embedded.proof, { vectors }, chain());
});

test("another answer, price, place, root, key or chain is refused, each for its reason", async () => {
  const tokens = [...answer.tokens];
  tokens[300] += 1;
  await refuses("other_answer", proof, { tokens }, chain());
  await refuses("other_answer", proof, { tokens: answer.tokens.slice(1) }, chain());
  await refuses("other_answer", proof, { tokens: answer.tokens.map((id) => id + 2 ** 32) }, chain());
  // Another price for a unit is another request than the one that was answered.
  await refuses("other_request", { ...proof, request: flipped(proof.request, -16) }, answer, chain());
  await refuses("not_in_batch", { ...proof, opening: flipped(proof.opening, -1) }, answer, chain());
  await refuses("other_receipt", { ...proof, opening: embedded.proof.opening }, answer, chain());
  await refuses("channel", { ...proof, opening: flipped(proof.opening, 4) }, answer, chain());
  await refuses("signature", { ...proof, signed: flipped(proof.signed, -1) }, answer, chain());
  await refuses("no_batch", { ...proof, batch: proof.batch + 1 }, answer, chain());
  const other = hex(new Uint8Array(32).fill(7));
  await refuses("other_chain", proof, answer, chain({}, other));
  // As if the statement had been made for the other chain.
  await refuses("signature", { ...proof, genesis: other }, answer, chain({}, other));
  const [batches] = Object.keys(changes.void);
  await refuses("not_in_batch", proof, answer, chain({ [batches]: flipped(VECTORS.storage[batches], 0) }));
  await refuses("no_batch", proof, answer, chain({ [batches]: null }));
});

test("a price that does not follow from the request, and a signature of another's, are refused", async () => {
  // Somebody who signs for nobody: the statement is changed, and no key of the provider's has signed that.
  const cheaper = flipped(proof.signed, 8 + 32 + 4 + 32 + 4 + 32 + 4);
  await refuses("price", { ...proof, signed: cheaper }, answer, chain());
  const agent = proof.signed.slice(-192, -128);
  const key = Object.keys(VECTORS.storage).find((one) => VECTORS.storage[one].includes(agent));
  const without = VECTORS.storage[key].replace(agent, "00".repeat(32));
  assert.notEqual(without, VECTORS.storage[key]);
  await refuses("signer", proof, answer, chain({ [key]: without }));
});

test("every byte of a proof counts", async () => {
  for (const part of ["signed", "request", "opening"]) {
    const length = unhex(proof[part]).length;
    for (let at = 0; at < length; at += part === "signed" ? 13 : 7)
      await assert.rejects(check({ ...proof, [part]: flipped(proof[part], at) }, answer, chain()), `${part} ${at}`);
    await refuses("malformed", { ...proof, [part]: `${proof[part]}00` }, answer, chain());
    await refuses("malformed", { ...proof, [part]: proof[part].slice(0, -2) }, answer, chain());
  }
});
