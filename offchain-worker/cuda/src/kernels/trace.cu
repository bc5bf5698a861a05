// --- Rows of a trace, put together and hashed: surety-model-trace says what is in one

// Copies states into their places in rows: [count][width] to [count][pitch], behind `into_at` others. All
// sizes are in words. What else a row has, those write it who make it: `quantize_heads`,
// `normalize_quantize`.
extern "C" __global__ void record(const u32 *state, u32 count, u32 width, u32 *into, u64 into_at, u32 pitch) {
  u64 index = thread_index();
  if (index < (u64)count * width) into[into_at + index / width * pitch + index % width] = state[index];
}

// Of a segment, in bytes; and segments that a block hashes, with a thread for each.
#define SEGMENT 1024
#define SEGMENTS BLOCK

// surety_proofs's row digest of rows of `bytes` bytes, at most SEGMENTS segments: a row's root over its
// segments. As many whole rows to a block as it has segments for. `rows` is [count][pitch] in words, a row
// begins where a quad does and has room for a whole number of blocks, `digests` [count][DIGEST_WORDS].
extern "C" __global__ void digest_rows(const u64 *rows, u64 rows_at, u32 count, u32 bytes, u32 pitch, u64 *digests,
                                       u64 digests_at) {
  __shared__ u64 level[SEGMENTS * DIGEST_WORDS];
  u32 segments = (bytes + SEGMENT - 1) / SEGMENT;
  u32 each = SEGMENTS / segments;
  u32 first = blockIdx.x * each;
  u32 there = count - first < each ? count - first : each;
  if (threadIdx.x < there * segments) {
    u32 segment = threadIdx.x % segments;
    const u64 *row = rows + rows_at + (u64)(first + threadIdx.x / segments) * pitch;
    const Pair *from = (const Pair *)(row + segment * (SEGMENT / 8));
    u32 left = bytes - segment * SEGMENT;
    u32 len = left < SEGMENT ? left : SEGMENT;
    Blake hash = blake();
#pragma unroll 1
    for (u32 start = 0; start < len; start += BLAKE_BLOCK) {
      u64 m[16];
#pragma unroll
      for (u32 i = 0; i < 8; i++) {
        Pair pair = from[start / 16 + i];
        m[2 * i] = pair.a;
        m[2 * i + 1] = pair.b;
      }
      u32 rest = len - start;
      if (rest < BLAKE_BLOCK) {
        // What is behind the end is nothing of the row.
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
          u32 own = rest <= 8 * i ? 0 : rest - 8 * i;
          m[i] = own >= 8 ? m[i] : m[i] & ((1ull << 8 * own) - 1);
        }
      }
      bool last = rest <= BLAKE_BLOCK;
      compress(&hash, m, last ? len : start + BLAKE_BLOCK, last);
    }
    hash_above(hash.h, 0, level + threadIdx.x * DIGEST_WORDS);
  }
  __syncthreads();
  for (u32 nodes = segments; nodes > 1; nodes = (nodes + 1) / 2) {
    u32 next = (nodes + 1) / 2;
    u32 row = threadIdx.x / next;
    u32 own = threadIdx.x % next;
    u64 *of_row = level + row * segments * DIGEST_WORDS;
    u64 node[DIGEST_WORDS] = {};
    if (row < there) {
      const u64 *left = of_row + 2 * own * DIGEST_WORDS;
      if (2 * own + 1 < nodes) {
        hash_above(left, left + DIGEST_WORDS, node);
      } else {
#pragma unroll
        for (u32 i = 0; i < DIGEST_WORDS; i++) node[i] = left[i];
      }
    }
    // All have read the level before it is overwritten.
    __syncthreads();
    if (row < there) {
#pragma unroll
      for (u32 i = 0; i < DIGEST_WORDS; i++) of_row[own * DIGEST_WORDS + i] = node[i];
    }
    __syncthreads();
  }
  for (u32 i = threadIdx.x; i < there * DIGEST_WORDS; i += SEGMENTS) {
    u64 word = level[i / DIGEST_WORDS * segments * DIGEST_WORDS + i % DIGEST_WORDS];
    digests[digests_at + (u64)first * DIGEST_WORDS + i] = word;
  }
}
