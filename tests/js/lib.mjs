// What all tests share.

/** Where the node is. */
export const WS = process.env.SURETY_WS ?? "ws://127.0.0.1:9944";

/** Rejects when `promise` takes longer than `seconds`. */
export function within(seconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${seconds} s in vain for ${what}`)), seconds * 1000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
