// What the tests of a gateway share.

import OpenAI from "openai";

const { SURETY_GATEWAY = "http://127.0.0.1:8080/v1", SURETY_API_KEY = "none" } = process.env;

export const EMBEDDER = "all-MiniLM-L6-v2-exact";
export const GENERATOR = "surety-demo-exact";
export const WIDTH = 384;
export const PROMPT = "It was a clear steel-blue day, and";

/** A client as anybody writes it: nothing is said of the gateway but where it is. */
export const client = (apiKey = SURETY_API_KEY) => new OpenAI({ baseURL: SURETY_GATEWAY, apiKey, maxRetries: 0 });

/** What a gateway tells beside OpenAI's routes. */
export async function told(path, base = SURETY_GATEWAY) {
  const answer = await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${SURETY_API_KEY}` } });
  return { status: answer.status, headers: answer.headers, body: await answer.json() };
}

/** The answers in a batch's file, by the names of its requests. */
export const lines = (text) =>
  new Map(
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .map(({ custom_id, response }) => [custom_id, response]),
  );
