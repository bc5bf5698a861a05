// A chat of the official client is on the chain, as a light client sees it that trusts neither the gateway nor a node.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { blake2b } from "@noble/hashes/blake2b";
import { start } from "smoldot";

import { follow } from "../../../clients/js/light.mjs";
import { hex, unhex } from "../../../clients/js/receipt.mjs";
import { ANSWER_SECONDS, FINAL_SECONDS, specification, within } from "../lib.mjs";
import { check } from "../verifier.mjs";
import { told } from "./lib.mjs";

// What the official client got.
const { surety, usage } = JSON.parse(readFileSync(process.env.SURETY_ANSWER, "utf8"));
const answer = { tokens: surety.token_ids };
const client = start({ maxLogLevel: Number(process.env.SMOLDOT_LOG ?? 1) });
let chain;
let proof;

before(async () => {
  const { status, body } = await told(`/receipts/${surety.receipt}/proof`);
  assert.equal(status, 200, JSON.stringify(body));
  // Of several providers the last has answered to the end.
  proof = body.proofs.at(-1).proof;
  const light = await follow(await client.addChain({ chainSpec: await specification() }));
  chain = await within(FINAL_SECONDS, "the light client to verify a block", light.newest());
});

after(() => client.terminate());

const refuses = (code, ...args) =>
  assert.rejects(check(...args), (error) => {
    assert.equal(error.code, code, String(error));
    return true;
  });

/** The proof with one bit of something turned over. */
function changed(part, at) {
  const bytes = unhex(proof[part]);
  bytes[at < 0 ? bytes.length + at : at] ^= 1;
  return { ...proof, [part]: hex(bytes) };
}

/** Where an opening has its leaf: behind the channel's place, number, first request, sums and path, and its place. */
const leafAt = () => 4 + 8 + 4 + 52 + 1 + 52 * (unhex(proof.opening)[68] >> 2) + 4;

/** What would be right if its provider had committed a batch of this receipt alone. */
function alone() {
  const opening = unhex(proof.opening);
  const [nonce, at] = [proof.says.nonce, leafAt()];
  const [leaf, price] = [opening.slice(at, at + 64), opening.slice(at + 64, at + 80)];
  const node = [...blake2b(Uint8Array.from([0, ...leaf]), { dkLen: 32 }), 1, 0, 0, 0, ...price];
  const first = [nonce & 255, (nonce >> 8) & 255, nonce >> 16, 0];
  const forged = [0, 0, 0, 0, ...opening.slice(4, 12), ...first, ...node, 0, 0, 0, 0, 0, ...leaf, ...price, 0];
  return { ...proof, opening: hex(Uint8Array.from(forged)) };
}

test("the chat's receipt is on the chain, by a finalised header", async (t) => {
  const proven = await within(ANSWER_SECONDS, "storage", check(proof, answer, chain));
  t.diagnostic(proven.words);
  assert.ok(["batched", "final"].includes(proven.verdict), proven.verdict);
  assert.equal(proven.units, usage.total_tokens);
  assert.equal(proven.price, BigInt(proven.units) * proven.unitPrice);
  // What people read of it is what was proven.
  const { says } = proof;
  assert.deepEqual(
    [says.channel, says.nonce, says.units, says.end, says.output, says.model],
    [Number(proven.channel), proven.nonce, proven.units, proven.end, proven.output, proven.model],
  );
  assert.deepEqual([says.price, says.unit_price], [proven.price, proven.unitPrice].map(String));
});

test("a changed token, another price, channel, root or genesis is refused", async () => {
  const tokens = [...answer.tokens];
  tokens[1] += 1;
  await refuses("other_answer", proof, { tokens }, chain);
  await refuses("other_request", changed("request", -16), answer, chain);
  await refuses("price", changed("opening", leafAt() + 64), answer, chain);
  await refuses("channel", changed("opening", 4), answer, chain);
  await refuses("not_in_batch", alone(), answer, chain);
  await refuses("no_batch", { ...proof, batch: proof.batch + 1000 }, answer, chain);
  const other = hex(new Uint8Array(32).fill(7));
  await refuses("other_chain", proof, answer, { ...chain, genesis: other });
  await refuses("signature", { ...proof, genesis: other }, answer, { ...chain, genesis: other });
});
