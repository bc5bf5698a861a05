// The verifier for browsers, with the hash and the signatures of libraries for browsers.

import { blake2b } from "@noble/hashes/blake2b";
import { verify } from "@scure/sr25519";

import { verifier } from "../../clients/js/receipt.mjs";

export const check = verifier({
  blake2b: (bytes, dkLen) => blake2b(bytes, { dkLen }),
  isSigned: (message, signature, key) => verify(message, signature, key),
});
