// Whether an answer's receipt is on the chain, for whoever trusts neither the gateway that gave the answer nor a node.
//
// It imports nothing, and runs wherever JavaScript does. Handed in are BLAKE2b, sr25519, and what reads the chain's
// storage at a finalised header: a light client, which has each value shown to it by a Merkle proof.
//
//   import { blake2b } from "@noble/hashes/blake2b";
//   import { verify } from "@scure/sr25519";
//   const check = verifier({
//     blake2b: (bytes, dkLen) => blake2b(bytes, { dkLen }),
//     isSigned: (message, signature, key) => verify(message, signature, key),
//   });
//   const proven = await check(proof, { tokens: answer.surety.token_ids }, { genesis, storage });
//
// Formats: primitives/channels/README.md, "What is signed".

/** Why a proof proves nothing. `code` is for programs. */
export class NotProven extends Error {
  constructor(code, message) {
    super(message);
    this.name = "NotProven";
    this.code = code;
  }
}

const refuse = (code, message) => {
  throw new NotProven(code, message);
};

const UNHEX = /^0x(?:[0-9a-f]{2})*$/i;
const TEXT = new TextEncoder();
const ENDS = ["stop", "length", "cancelled", "cut"];
const OPERATIONS = ["embed", "generate"];
const SEGMENT = 1024;
const WORD = 4;
// How an answer is to be made, before the prompt's ids in an input.
const SETTINGS_WORDS = 6;
const RECEIPTS_MAX = 1 << 20;
const U32_MAX = 2 ** 32 - 1;
const U128_MAX = (1n << 128n) - 1n;
const PLANCKS = 10n ** 12n;

// twox_128 of a pallet's name and of its storage item's.
const BATCHES = "0x7759ccc18de172078306ca5973251a7b693613c6489d72d2393dccb449b7d452";
const STANDINGS = "0x7759ccc18de172078306ca5973251a7bfc42d02007fca66d9a5e44bd106a96aa";
const ELAPSED = "0xfb345d9877156dd1cb4439e8e8b9606f6f2cdbc265611ec4ccf58398cfe92181";

/** The bytes of `0x..`. */
export function unhex(text) {
  if (typeof text !== "string" || !UNHEX.test(text)) refuse("malformed", "something is no hexadecimal");
  return Uint8Array.from(text.slice(2).match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/** `0x..` of bytes. */
export const hex = (bytes) => `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;

function concat(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A number, little-endian. */
function number(value, bytes) {
  let rest = BigInt(value);
  return Uint8Array.from({ length: bytes }, () => {
    const byte = Number(rest & 0xffn);
    rest >>= 8n;
    return byte;
  });
}

/** Reads SCALE. */
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(length) {
    const part = this.bytes.subarray(this.at, this.at + length);
    if (part.length !== length) refuse("malformed", "something ends too soon");
    this.at += length;
    return part;
  }

  big(length) {
    return this.take(length).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  }

  u8 = () => this.take(1)[0];
  u32 = () => Number(this.big(4));
  u64 = () => this.big(8);
  u128 = () => this.big(16);
  hash = () => this.take(32);

  /** A list of fewer than 2^14 items. */
  list(item) {
    const first = this.u8();
    if ((first & 2) !== 0) refuse("malformed", "a list is too long");
    const length = first & 1 ? (first >> 2) | (this.u8() << 6) : first >> 2;
    return Array.from({ length }, item);
  }

  /** One of a few names. */
  name(names) {
    return names[this.u8()] ?? refuse("malformed", "something has no such kind");
  }

  end() {
    if (this.at !== this.bytes.length) refuse("malformed", "something goes on after its end");
  }
}

/** All of some bytes, as `read` reads them. */
function all(bytes, read) {
  const reader = new Reader(bytes);
  const value = read(reader);
  reader.end();
  return value;
}

function readStatement(reader) {
  const from = reader.at;
  const said = {
    channel: reader.u64(),
    payee: reader.hash(),
    nonce: reader.u32(),
    request: reader.hash(),
    bytes: reader.u32(),
    output: reader.hash(),
    units: reader.u32(),
    price: reader.u128(),
  };
  if (reader.u8() !== 1) refuse("no_receipt", "what was signed is no receipt: more was to come");
  said.end = reader.name(ENDS);
  said.trace = reader.hash();
  said.scale = reader.bytes.subarray(from, reader.at);
  return said;
}

const readSigned = (reader) => ({ said: readStatement(reader), agent: reader.hash(), signature: reader.take(64) });

function readRequest(reader) {
  return {
    model: reader.hash(),
    operation: reader.name(OPERATIONS),
    input: reader.hash(),
    inputBytes: reader.u32(),
    unitsMax: reader.u32(),
    unitPrice: reader.u128(),
  };
}

const readNode = (reader) => ({ hash: reader.hash(), receipts: reader.u32(), price: reader.u128() });
const readPath = (reader) => reader.list(() => readNode(reader));

function readOpening(reader) {
  const of = {
    place: reader.u32(),
    channel: reader.u64(),
    first: reader.u32(),
    total: readNode(reader),
    path: readPath(reader),
  };
  return {
    of,
    place: reader.u32(),
    receipt: reader.hash(),
    salt: reader.hash(),
    price: reader.u128(),
    path: readPath(reader),
  };
}

/** What the chain's storage has of a batch, as far as it is read. */
function readWindow(reader) {
  return {
    hash: reader.hash(),
    channels: reader.u32(),
    receipts: reader.u32(),
    price: reader.u128(),
    until: reader.u32(),
    disputes: reader.u32(),
    struck: reader.list(() => ({ channel: reader.u64(), nonce: reader.u32(), price: reader.u128() })),
    isVoid: reader.u8() === 1,
  };
}

/** The keys that sign for a provider, out of what the chain's storage has of it. */
function readSigners(reader) {
  // Lock, cap, open sum, channels, oldest batch.
  reader.take(16 + 16 + 16 + 4 + 4);
  reader.list(reader.u32);
  // Next batch, block of the latest.
  reader.take(4 + 4);
  return reader.list(reader.hash);
}

const isU32 = (value) => Number.isInteger(value) && value >= 0 && value <= U32_MAX;
const same = (left, right) => left.length === right.length && left.every((byte, at) => byte === right[at]);

/** The bytes that an answer's hash is of: ids of tokens, or vectors. */
export function outputOf({ tokens, vectors }) {
  if (tokens !== undefined) {
    if (!tokens.every(isU32)) refuse("other_answer", "an answer has ids of tokens");
    const words = new DataView(new ArrayBuffer(4 * (tokens.length + 1)));
    tokens.forEach((id, at) => words.setUint32(4 * (at + 1), id, true));
    return new Uint8Array(words.buffer);
  }
  const width = vectors[0]?.length ?? 0;
  if (vectors.some((vector) => vector.length !== width)) refuse("malformed", "the vectors differ in length");
  const numbers = new DataView(new ArrayBuffer(4 * width * vectors.length));
  vectors.flat().forEach((value, at) => numbers.setFloat32(4 * at, value, true));
  // The header of a safetensors file, in whole words of 8 bytes.
  const shape = `[${vectors.length},${width}],"data_offsets":[0,${numbers.byteLength}]`;
  const header = `{"embeddings":{"dtype":"F32","shape":${shape}}}`;
  const padded = TEXT.encode(header.padEnd(Math.ceil(header.length / 8) * 8));
  return concat(number(padded.length, 8), padded, new Uint8Array(numbers.buffer));
}

/** An amount of plancks, which is a `BigInt`, in SURE. */
export function sure(plancks) {
  const rest = (plancks % PLANCKS).toString().padStart(12, "0").replace(/0+$/, "");
  return `${plancks / PLANCKS}${rest && `.${rest}`} SURE`;
}

/** XXH64 of four bytes, with seed 0, as bytes. */
function twox64(bytes) {
  const mask = (1n << 64n) - 1n;
  const [p1, p2, p3, p5] = [0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x27d4eb2f165667c5n];
  let sum = ((p5 + 4n) ^ (new Reader(bytes).big(4) * p1)) & mask;
  sum = (((sum << 23n) | (sum >> 41n)) * p2 + p3) & mask;
  sum = ((sum ^ (sum >> 33n)) * p2) & mask;
  sum = ((sum ^ (sum >> 29n)) * p3) & mask;
  return number(sum ^ (sum >> 32n), 8);
}

/**
 * Makes a verifier out of `blake2b(bytes, length)` and `isSigned(message, signature, key)`, both of `Uint8Array`s.
 *
 * It is called with a proof, of `proofs` in `/v1/receipts/{id}/proof`; the answer, `{ tokens }` or `{ vectors }`; and
 * the chain, by its genesis hash and `storage(key)`, which returns what a finalised header's state has under a key:
 * `0x..`, or nothing. It resolves to what was proven, and rejects with `NotProven`.
 */
export function verifier({ blake2b, isSigned }) {
  const hash = (...parts) => blake2b(concat(...parts), 32);
  const domain = (name) => concat([name.length * 4], TEXT.encode(name));
  const u32 = (value) => number(value, 4);

  /** Some libraries throw where others say no. */
  function isSignedBy(...signed) {
    try {
      return isSigned(...signed) === true;
    } catch {
      return false;
    }
  }

  const concatenated = (key) => concat(blake2b(key, 16), key);

  /** RFC 6962 over segments of 1 KiB. */
  function contentHash(bytes) {
    let level = [];
    for (let at = 0; at < bytes.length; at += SEGMENT) level.push(hash([0], hash(bytes.subarray(at, at + SEGMENT))));
    if (level.length === 0) return hash();
    while (level.length > 1) {
      level = Array.from({ length: Math.ceil(level.length / 2) }, (_, at) => {
        const [left, right] = level.slice(2 * at, 2 * at + 2);
        return right ? hash([1], left, right) : left;
      });
    }
    return level[0];
  }

  const nodeBytes = (node) => concat(node.hash, u32(node.receipts), number(node.price, 16));

  function above(left, right) {
    const [receipts, price] = [left.receipts + right.receipts, left.price + right.price];
    if (receipts > U32_MAX || price > U128_MAX)
      refuse("not_in_batch", "the sums on the receipt's path are beyond what can be counted");
    return { hash: hash([1], nodeBytes(left), nodeBytes(right)), receipts, price };
  }

  /** Where a path leads from leaf `place` of `leaves`: sums are added on the way, not read. */
  function climb(leaf, path, place, leaves) {
    const siblings = [...path];
    let node = leaf;
    let last = leaves - 1;
    const next = () => siblings.shift() ?? refuse("not_in_batch", "the receipt's path is too short");
    if (place > last) refuse("not_in_batch", "the receipt's place is beyond the end");
    for (let at = place; last > 0; at >>>= 1, last >>>= 1) {
      if (at % 2 === 1) node = above(next(), node);
      else if (at < last) node = above(node, next());
    }
    if (siblings.length > 0) refuse("not_in_batch", "the receipt's path is too long");
    return node;
  }

  const isNode = (one, other) => same(nodeBytes(one), nodeBytes(other));

  /** That the receipt is in the batch. */
  function checkPlace(opening, root) {
    const { of } = opening;
    const isPossible = root.channels > 0 && root.channels <= root.receipts && root.receipts <= RECEIPTS_MAX;
    if (!isPossible) refuse("not_in_batch", "there is no such batch");
    const leaf = { hash: hash([0], opening.receipt, opening.salt), receipts: 1, price: opening.price };
    if (!isNode(climb(leaf, opening.path, opening.place, of.total.receipts), of.total))
      refuse("not_in_batch", "the receipt is not among those of its channel");
    const channel = { ...of.total, hash: hash([2], number(of.channel, 8), u32(of.first), of.total.hash) };
    if (!isNode(climb(channel, of.path, of.place, root.channels), root))
      refuse("not_in_batch", "the receipt is not under the root that the chain has of this batch");
  }

  /** That a receipt says what was asked, and costs what that costs. */
  function checkPrice(said, request) {
    const requestHash = hash(
      domain("surety-channel-request"),
      request.model,
      [OPERATIONS.indexOf(request.operation)],
      request.input,
      u32(request.inputBytes),
      u32(request.unitsMax),
      number(request.unitPrice, 16),
    );
    if (!same(requestHash, said.request)) refuse("other_request", "the receipt answers another request");
    if (BigInt(said.units) * request.unitPrice !== said.price) refuse("price", "the price is not that of the units");
    if (said.units > request.unitsMax) refuse("price", "there are more units than were asked for");
    // One of the words says how it ended.
    const prompt = Math.max(0, Math.floor(request.inputBytes / WORD) - SETTINGS_WORDS);
    const counts = request.operation === "embed" ? said.units > 0 : said.bytes / WORD - 1 + prompt === said.units;
    if (!counts) refuse("price", "the units are not those of the prompt and the answer");
  }

  /** What the chain has under a key. */
  async function stored(chain, key, code, message) {
    const value = await chain.storage(key);
    return value ? new Reader(unhex(value)) : refuse(code, message);
  }

  function verdictOf(window, now, { channel, nonce }) {
    if (window.isVoid || window.struck.some((one) => one.channel === channel && one.nonce === nonce)) return "struck";
    return window.until < now && window.disputes === 0 ? "final" : "batched";
  }

  return async function check(proof, answer, chain) {
    const { said, agent, signature } = all(unhex(proof.signed), readSigned);
    const request = all(unhex(proof.request), readRequest);
    const opening = all(unhex(proof.opening), readOpening);
    const genesis = unhex(chain.genesis);
    if (!same(unhex(proof.genesis), genesis)) refuse("other_chain", "the proof is about another chain");

    // What was said.
    const output = outputOf(answer);
    const isAnswer = output.length === said.bytes && same(contentHash(output), said.output);
    if (!isAnswer) refuse("other_answer", "the receipt is about another answer");
    checkPrice(said, request);

    // Who says so.
    const message = hash(domain("surety-chunk-statement"), genesis, said.scale);
    if (!isSignedBy(message, signature, agent))
      refuse("signature", "the receipt is not signed by the key that it names");
    const standing = await stored(
      chain,
      hex(concat(unhex(STANDINGS), concatenated(said.payee))),
      "no_provider",
      "the chain knows no such provider",
    );
    if (!readSigners(standing).some((key) => same(key, agent)))
      refuse("signer", "the key that has signed does not sign for the provider, or not any more");

    // Where it is.
    if (!same(opening.receipt, message)) refuse("other_receipt", "what is in the batch is another receipt");
    const isOfCall = opening.of.channel === said.channel && opening.of.first + opening.place === said.nonce;
    if (!isOfCall) refuse("channel", "the receipt stands where that of another channel or request belongs");
    if (opening.price !== said.price) refuse("price", "the receipt has another price in the batch");
    if (!isU32(proof.batch)) refuse("malformed", "a batch has a number");
    const batch = u32(proof.batch);
    const batches = concat(unhex(BATCHES), concatenated(said.payee), twox64(batch), batch);
    const window = readWindow(
      await stored(chain, hex(batches), "no_batch", "the chain does not have this batch, or not any more"),
    );
    checkPlace(opening, window);
    const now = (await stored(chain, ELAPSED, "no_clock", "the chain has no clock")).u32();

    const proven = {
      verdict: verdictOf(window, now, said),
      provider: hex(said.payee),
      agent: hex(agent),
      channel: said.channel,
      nonce: said.nonce,
      batch: proof.batch,
      model: hex(request.model),
      operation: request.operation,
      input: hex(request.input),
      output: hex(said.output),
      bytes: said.bytes,
      units: said.units,
      unitPrice: request.unitPrice,
      price: said.price,
      end: said.end,
    };
    return { ...proven, words: words(proven, window) };
  };
}

/** What was proven, for people. */
function words(proven, window) {
  const { provider, channel, nonce, batch, units, unitPrice, price, end, verdict } = proven;
  const later = {
    batched: `It can still be disputed${window.disputes > 0 ? ", and something in its batch is" : ""}.`,
    final: "Nobody can dispute it any more: it stands.",
    struck: "It was found wrong, or its provider was: it is not paid.",
  };
  return (
    `Provider ${provider} has signed this answer (${units} units at ${sure(unitPrice)}, ${sure(price)} in all; ` +
    `ended by ${end}) as request ${nonce} of channel ${channel}, and committed it on the chain in its batch ${batch}. ` +
    later[verdict]
  );
}
