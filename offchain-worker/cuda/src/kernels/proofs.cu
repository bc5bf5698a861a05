// --- The benchmark's runs: surety-gpu-proofs says what they are, and its `Memory` who asks for what

// A row of cells, int8, as bytes and as words.
#define CELLS 1024
#define CELL_WORDS (CELLS / 8)
#define PARENTS 4
// Bits of a sum that are dropped.
#define CELL_SHIFT 10
#define DIGEST_WORDS 4

// exact::SplitMix64::mix
__device__ __forceinline__ u64 mixed(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// A number of the generator that begins with a key.
__device__ __forceinline__ u64 drawn(u64 key, u64 number) { return mixed(key + number * 0x9e3779b97f4a7c15ull); }

// Layer 0, or the weights: a thread per word.
extern "C" __global__ void proof_words(u64 key, u64 count, u64 *words) {
  u64 index = thread_index();
  if (index < count) words[index] = drawn(key, index);
}

// `word` by `bound`, over 2^64.
__device__ __forceinline__ u32 scaled(u64 word, u32 bound) {
  u64 low = (word & 0xffffffffu) * bound;
  return (u32)(((word >> 32) * bound + (low >> 32)) >> 32);
}

// Job::gather of `count` rows of a layer, from row `first` on: a warp per row. `state` is [rows][CELL_WORDS],
// `tags` [rows], `gathered` [count][CELL_WORDS].
extern "C" __global__ void proof_gather(const u64 *state, const u64 *tags, u64 parents_key, u64 masks_key, u32 layer,
                                        u32 rows, u32 first, u32 count, u64 *gathered) {
  u32 lane = threadIdx.x % LANES;
  u64 own = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  // The whole warp.
  if (own >= count) return;
  u64 number = (u64)layer * rows + first + own;
  u32 parents[PARENTS];
  u64 key = drawn(masks_key, number);
#pragma unroll
  for (u32 n = 0; n < PARENTS; n++) {
    parents[n] = scaled(drawn(parents_key, PARENTS * number + n), rows);
    key = mixed(key ^ tags[parents[n]]);
  }
#pragma unroll
  for (u32 w = 0; w < CELL_WORDS / LANES; w++) {
    u32 at = w * LANES + lane;
    u64 word = drawn(key, at);
#pragma unroll
    for (u32 n = 0; n < PARENTS; n++) {
      u32 turn = (u32)(key >> 8 * n) & 0xff;
      word ^= state[(u64)parents[n] * CELL_WORDS + (at + turn) % CELL_WORDS];
    }
    gathered[own * CELL_WORDS + at] = word;
  }
}

// Of a warp: so many times 16 rows by so many times 8 columns, with all sums in registers; and of a block's
// warps, how many are beside and above each other.
#define CELL_ROWS 2
#define CELL_COLUMNS 8
#define WARPS_ACROSS 2
#define WARPS_DOWN 4
#define TILE_COLUMNS (WARPS_ACROSS * CELL_COLUMNS * PIECE_ROWS)
#define TILE_ROWS (WARPS_DOWN * CELL_ROWS * PIECE_OUTPUTS)

// Two cells of a row, side by side.
__device__ __forceinline__ u32 two_cells(const int *sums) {
  return ((u32)sums[0] >> CELL_SHIFT & 0xff) | ((u32)sums[1] >> CELL_SHIFT & 0xff) << 8;
}

// Job::cell of all columns of `count` rows, put into the state from row `first` on, by the pieces that
// products have. `gathered` is [count][CELLS], `weights` [CELLS][CELLS] with a row for each column. Which
// columns make a piece is free: a lane gets sixteen of a row that are side by side, so that they are written
// at once.
extern "C" __global__ void proof_product(const i8 *gathered, const i8 *weights, u32 first, u32 count, i8 *state) {
  u32 lane = threadIdx.x % LANES;
  u32 warp = threadIdx.x / LANES;
  u32 column = (blockIdx.x % (CELLS / TILE_COLUMNS) * WARPS_ACROSS + warp % WARPS_ACROSS) * CELL_COLUMNS * PIECE_ROWS;
  u32 row = (blockIdx.x / (CELLS / TILE_COLUMNS) * WARPS_DOWN + warp / WARPS_ACROSS) * CELL_ROWS * PIECE_OUTPUTS;
  // The whole warp.
  if (row >= count) return;
  // Column `lane / 4` of piece n is the state's column + lane / 8 * 16 + 2 n + lane / 4 % 2.
  const i8 *by = weights + (u64)(column + lane / 8 * 16 + lane / 4 % 2) * CELLS;
  const i8 *low[CELL_ROWS], *high[CELL_ROWS];
#pragma unroll
  for (u32 m = 0; m < CELL_ROWS; m++) {
    low[m] = gathered + (u64)row_of(row + m * PIECE_OUTPUTS + lane / 4, count) * CELLS;
    high[m] = gathered + (u64)row_of(row + m * PIECE_OUTPUTS + 8 + lane / 4, count) * CELLS;
  }
  Dots<i8> dots[CELL_ROWS][CELL_COLUMNS];
#pragma unroll
  for (u32 m = 0; m < CELL_ROWS; m++) {
#pragma unroll
    for (u32 n = 0; n < CELL_COLUMNS; n++) clear(&dots[m][n]);
  }
#pragma unroll 1
  for (u32 group = 0; group < CELLS / GROUP; group++) {
#pragma unroll
    for (u32 k = 0; k < STEPS(i8); k++) {
      Quad of[CELL_COLUMNS];
#pragma unroll
      for (u32 n = 0; n < CELL_COLUMNS; n++) of[n] = quad(by + 2 * n * CELLS, group, k, lane);
#pragma unroll
      for (u32 m = 0; m < CELL_ROWS; m++) {
        if (row + m * PIECE_OUTPUTS < count) {
          Quad a = quad(low[m], group, k, lane);
          Quad b = quad(high[m], group, k, lane);
#pragma unroll
          for (u32 n = 0; n < CELL_COLUMNS; n++) step(&dots[m][n], a, b, of[n]);
        }
      }
    }
  }
#pragma unroll
  for (u32 m = 0; m < CELL_ROWS; m++) {
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
      u32 own = row + m * PIECE_OUTPUTS + half * 8 + lane / 4;
      u32 words[4];
#pragma unroll
      for (u32 w = 0; w < 4; w++) {
        words[w] = two_cells(dots[m][2 * w].all + 2 * half) | two_cells(dots[m][2 * w + 1].all + 2 * half) << 16;
      }
      Quad out = {(int)words[0], (int)words[1], (int)words[2], (int)words[3]};
      if (own < count) ((Quad *)(state + ((u64)first + own) * CELLS + column))[lane % 4] = out;
    }
  }
}

// --- blake2b of 32 bytes, without a key (RFC 7693)

#define BLAKE_BLOCK 128

struct Blake {
  u64 h[8];
};

__device__ __forceinline__ u64 turned(u64 x, u32 by) { return x >> by | x << (64 - by); }

#define BLAKE_MIX(a, b, c, d, x, y)  \
  v[a] += v[b] + m[x];               \
  v[d] = turned(v[d] ^ v[a], 32);    \
  v[c] += v[d];                      \
  v[b] = turned(v[b] ^ v[c], 24);    \
  v[a] += v[b] + m[y];               \
  v[d] = turned(v[d] ^ v[a], 16);    \
  v[c] += v[d];                      \
  v[b] = turned(v[b] ^ v[c], 63)

// Places of words are written out, so that all of them are registers.
#define BLAKE_ROUND(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q) \
  BLAKE_MIX(0, 4, 8, 12, a, b);                                     \
  BLAKE_MIX(1, 5, 9, 13, c, d);                                     \
  BLAKE_MIX(2, 6, 10, 14, e, f);                                    \
  BLAKE_MIX(3, 7, 11, 15, g, h);                                    \
  BLAKE_MIX(0, 5, 10, 15, i, j);                                    \
  BLAKE_MIX(1, 6, 11, 12, k, l);                                    \
  BLAKE_MIX(2, 7, 8, 13, n, o);                                     \
  BLAKE_MIX(3, 4, 9, 14, p, q)

#define BLAKE_H0 0x6a09e667f3bcc908ull
#define BLAKE_H1 0xbb67ae8584caa73bull
#define BLAKE_H2 0x3c6ef372fe94f82bull
#define BLAKE_H3 0xa54ff53a5f1d36f1ull
#define BLAKE_H4 0x510e527fade682d1ull
#define BLAKE_H5 0x9b05688c2b3e6c1full
#define BLAKE_H6 0x1f83d9abfb41bd6bull
#define BLAKE_H7 0x5be0cd19137e2179ull

__device__ __forceinline__ Blake blake() {
  // Of 32 bytes, one leaf, no key.
  return {{BLAKE_H0 ^ 0x01010020, BLAKE_H1, BLAKE_H2, BLAKE_H3, BLAKE_H4, BLAKE_H5, BLAKE_H6, BLAKE_H7}};
}

// Takes a block: `bytes` are those of the message up to its end.
__device__ __forceinline__ void compress(Blake *blake, const u64 *m, u64 bytes, bool last) {
  u64 v[16];
#pragma unroll
  for (u32 i = 0; i < 8; i++) v[i] = blake->h[i];
  v[8] = BLAKE_H0;
  v[9] = BLAKE_H1;
  v[10] = BLAKE_H2;
  v[11] = BLAKE_H3;
  v[12] = BLAKE_H4 ^ bytes;
  v[13] = BLAKE_H5;
  v[14] = last ? ~BLAKE_H6 : BLAKE_H6;
  v[15] = BLAKE_H7;
  BLAKE_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  BLAKE_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
  BLAKE_ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
  BLAKE_ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
  BLAKE_ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
  BLAKE_ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
  BLAKE_ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
  BLAKE_ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
  BLAKE_ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
  BLAKE_ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
  BLAKE_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  BLAKE_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
#pragma unroll
  for (u32 i = 0; i < 8; i++) blake->h[i] ^= v[i] ^ v[i + 8];
}

struct __align__(16) Pair {
  u64 a, b;
};

// blake2_256 of `count` rows of the state from row `first` on, a thread per row. `tags` is [rows], `digests`
// [count][DIGEST_WORDS] or absent.
extern "C" __global__ void proof_hash(const u64 *state, u32 first, u32 count, u64 *tags, u64 *digests) {
  u64 own = thread_index();
  if (own >= count) return;
  const Pair *row = (const Pair *)(state + (first + own) * CELL_WORDS);
  Blake hash = blake();
#pragma unroll 1
  for (u32 block = 0; block < CELLS / BLAKE_BLOCK; block++) {
    u64 m[16];
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
      Pair pair = row[block * 8 + i];
      m[2 * i] = pair.a;
      m[2 * i + 1] = pair.b;
    }
    compress(&hash, m, (block + 1) * BLAKE_BLOCK, block + 1 == CELLS / BLAKE_BLOCK);
  }
  tags[first + own] = hash.h[0];
  if (digests) {
#pragma unroll
    for (u32 i = 0; i < DIGEST_WORDS; i++) digests[own * DIGEST_WORDS + i] = hash.h[i];
  }
}

// A tree's leaf, of one digest, or node, of two: a byte that says what follows, then they.
__device__ __forceinline__ void hash_above(const u64 *left, const u64 *right, u64 *out) {
  u64 below[2 * DIGEST_WORDS];
#pragma unroll
  for (u32 i = 0; i < DIGEST_WORDS; i++) {
    below[i] = left[i];
    below[DIGEST_WORDS + i] = right ? right[i] : 0;
  }
  u64 m[16] = {below[0] << 8 | (right ? 1 : 0)};
#pragma unroll
  for (u32 i = 1; i < 2 * DIGEST_WORDS; i++) m[i] = below[i] << 8 | below[i - 1] >> 56;
  m[2 * DIGEST_WORDS] = below[2 * DIGEST_WORDS - 1] >> 56;
  Blake hash = blake();
  compress(&hash, m, 1 + 8 * DIGEST_WORDS * (right ? 2 : 1), true);
#pragma unroll
  for (u32 i = 0; i < DIGEST_WORDS; i++) out[i] = hash.h[i];
}

// Nodes beneath one that a block computes, and its threads.
#define BRANCH 128

// surety_proofs::merkle_root, as many levels at once as BRANCH has: from [count] nodes, or leaves that are to
// be hashed first, to a node for each BRANCH of them. All of DIGEST_WORDS.
extern "C" __global__ void proof_tree(const u64 *nodes, u32 count, u32 are_leaves, u64 *above) {
  __shared__ u64 level[BRANCH * DIGEST_WORDS];
  u32 own = threadIdx.x;
  u32 from = blockIdx.x * BRANCH;
  u32 there = count - from < BRANCH ? count - from : BRANCH;
  for (u32 i = own; i < there * DIGEST_WORDS; i += BRANCH) level[i] = nodes[(u64)from * DIGEST_WORDS + i];
  __syncthreads();
  // Leaves stay as many; of nodes two become one, and one without a sibling stays as it is.
  bool leaves = are_leaves != 0;
  while (leaves || there > 1) {
    u32 left = leaves ? own : 2 * own;
    u32 parts = leaves ? 1 : 2;
    u32 next = (there + parts - 1) / parts;
    u64 node[DIGEST_WORDS] = {};
    if (own < next) {
      const u64 *below = level + left * DIGEST_WORDS;
      if (leaves) {
        hash_above(below, 0, node);
      } else if (left + 1 < there) {
        hash_above(below, below + DIGEST_WORDS, node);
      } else {
#pragma unroll
        for (u32 i = 0; i < DIGEST_WORDS; i++) node[i] = below[i];
      }
    }
    // All have read the level before it is overwritten.
    __syncthreads();
    if (own < next) {
#pragma unroll
      for (u32 i = 0; i < DIGEST_WORDS; i++) level[own * DIGEST_WORDS + i] = node[i];
    }
    __syncthreads();
    there = next;
    leaves = false;
  }
  if (own < DIGEST_WORDS) above[(u64)blockIdx.x * DIGEST_WORDS + own] = level[own];
}
