// --- Attention

// Pieces of memory that pages of keys and values are cut from, and the most pages of each: page `i` is page
// `i % SLAB_PAGES` of piece `i / SLAB_PAGES`.
#define TABLE 64
#define SLAB_PAGES (1u << 24)

template <typename T>
struct Table {
  T *at[TABLE];
};

// Word `at` of a page. A page has BLOCK positions of every layer of a model. A layer's part of it has scales
// of keys and of values, [kv_head][position] each; keys, [kv_head][pair of elements][position], two int16 a
// word, as `score` reads them with neighboring threads at neighboring positions; and values,
// [kv_head][position][d], int16, as `mix` does. pages.rs counts the words.
__device__ __forceinline__ u32 *in_page(u32 *slab, u32 page, u64 page_words, u64 at) {
  return slab + (u64)(page % SLAB_PAGES) * page_words + at;
}

// exact::quantize_heads, a warp per head: `rows` and `q` are [cells][head_dim], `scales` [cells].
extern "C" __global__ void quantize_heads(const float *rows, u32 cells, u32 head_dim, i16 *q, float *scales,
                                          u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 cell = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  // The whole warp.
  if (cell >= cells) return;
  const float *head = rows + cell * head_dim;
  u32 largest = 0;
  for (u32 d = lane; d < head_dim; d += LANES) {
    expect_finite(head[d], faults);
    u32 bits = __float_as_uint(head[d]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  float size = __uint_as_float(largest_of(largest));
  bool vanishing = size < VANISHING;
  float by = div(INT12_MAX, size);
  for (u32 d = lane; d < head_dim; d += LANES) {
    q[cell * head_dim + d] = vanishing ? (i16)0 : (i16)nearest(mul(head[d], by));
  }
  if (lane == 0) scales[cell] = vanishing ? 0.0f : div(size, INT12_MAX);
}

// Where a row looks, or is put: positions `start` to `end` of a sequence whose keys and values are in
// `pages`.
struct Sight {
  u32 start, end;
  const u32 *pages;
};

// `spans[row]`, or from 0 to `first + row * step`; of the sequence whose pages begin at `table[places[row]]`,
// or of the only one.
__device__ __forceinline__ Sight sight_of(const u32 *spans, const u32 *places, u32 first, u32 step, const u32 *table,
                                          u32 row) {
  Sight sight = {0, first + row * step, table};
  if (spans) {
    sight.start = spans[2 * (u64)row];
    sight.end = spans[2 * (u64)row + 1];
  }
  if (places) sight.pages += places[row];
  return sight;
}

// Puts rows of quantized heads, from row `from` on, at the last positions that they see.
extern "C" __global__ void append(const i16 *keys, const float *key_scales, const i16 *values,
                                  const float *value_scales, Table<u32> slabs, const u32 *table, u64 page_words,
                                  u64 layer_at, const u32 *spans, const u32 *places, u32 first, u32 from, u32 count,
                                  u32 kv_heads, u32 head_dim) {
  u64 index = thread_index();
  if (index >= (u64)count * kv_heads * head_dim) return;
  u32 d = index % head_dim;
  u32 head = index / head_dim % kv_heads;
  u32 row = from + (u32)(index / head_dim / kv_heads);
  index += (u64)from * kv_heads * head_dim;
  u64 cell = index / head_dim;
  Sight sight = sight_of(spans, places, first, 1, table, row);
  u32 page = sight.pages[(sight.end - 1) / BLOCK], at = (sight.end - 1) % BLOCK;
  u32 *kept = in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at);
  u32 pairs = (head_dim + 1) / 2;
  i16 *kept_values = (i16 *)(kept + kv_heads * (2 + pairs) * BLOCK);
  kept_values[(head * BLOCK + at) * head_dim + d] = values[index];
  if (d % 2 == 0) {
    u32 second = d + 1 < head_dim ? (u32)(int)keys[index + 1] : 0u;
    u32 pair = ((u32)(int)keys[index] & 0xffffu) | second << 16;
    kept[(kv_heads * 2 + head * pairs + d / 2) * BLOCK + at] = pair;
  }
  if (d == 0) {
    kept[head * BLOCK + at] = __float_as_uint(key_scales[cell]);
    kept[(kv_heads + head) * BLOCK + at] = __float_as_uint(value_scales[cell]);
  }
}

// Copies whole pages: `pages[i]` to `pages[count + i]`.
extern "C" __global__ void copy_pages(Table<u32> slabs, const u32 *pages, u32 count, u64 page_words) {
  u64 index = thread_index();
  if (index >= count * page_words) return;
  u32 from = pages[index / page_words], into = pages[count + index / page_words];
  u64 at = index % page_words;
  *in_page(slabs.at[into / SLAB_PAGES], into, page_words, at) =
      *in_page(slabs.at[from / SLAB_PAGES], from, page_words, at);
}

// A layer's part of each of some pages, behind each other.
extern "C" __global__ void gather_pages(Table<u32> slabs, const u32 *pages, u32 count, u64 page_words, u64 layer_at,
                                        u64 layer_words, u32 *out) {
  u64 index = thread_index();
  if (index >= count * layer_words) return;
  u32 page = pages[index / layer_words];
  out[index] = *in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at + index % layer_words);
}

// exact::score_cell: a thread per position, a block row per head and query row. `row` counts from `base`, at
// which the rows of this launch begin. `scores` is [rows of the launch][heads][reach].
extern "C" __global__ void score(const i16 *queries, const float *query_scales, Table<u32> slabs, const u32 *table,
                                 u64 page_words, u64 layer_at, const u32 *spans, const u32 *places, u32 first,
                                 u32 step, u32 base, u32 heads, u32 kv_heads, u32 head_dim, u32 reach, float scale,
                                 float *scores) {
  u32 j = blockIdx.x * blockDim.x + threadIdx.x;
  u32 head = blockIdx.y;
  u32 row = base + blockIdx.z;
  Sight sight = sight_of(spans, places, first, step, table, row);
  if (j >= sight.end - sight.start) return;
  u64 cell = (u64)row * heads + head;
  const i16 *query = queries + cell * head_dim;
  u32 kv_head = head / (heads / kv_heads);
  u32 page = sight.pages[(sight.start + j) / BLOCK], at = (sight.start + j) % BLOCK;
  const u32 *kept = in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at);
  const u32 *key = kept + (kv_heads * 2 + kv_head * ((head_dim + 1) / 2)) * BLOCK + at;
  u32 sum = 0;
  for (u32 d = 0; d < head_dim; d += 2) {
    u32 pair = key[d / 2 * BLOCK];
    sum += (u32)((int)query[d] * (int)(i16)(pair & 0xffffu));
    // The second of the last pair may be nobody's.
    if (d + 1 < head_dim) sum += (u32)((int)query[d + 1] * (int)(i16)(pair >> 16));
  }
  float key_scale = __uint_as_float(kept[kv_head * BLOCK + at]);
  float by = mul(mul(query_scales[cell], scale), key_scale);
  scores[((u64)blockIdx.z * heads + head) * reach + j] = mul(__int2float_rn((int)sum), by);
}

// exact::softmax_block: a block of threads per block of BLOCK positions, head and query row. Scores become
// quantized weights in place. `stats` is [rows of the launch][heads][blocks of the reach][largest, total,
// scale of the weights].
extern "C" __global__ void softmax(float *scores, Table<u32> slabs, const u32 *table, u64 page_words, u64 layer_at,
                                   const u32 *spans, const u32 *places, u32 first, u32 step, u32 base, u32 heads,
                                   u32 kv_heads, u32 reach, float *stats, u32 *faults) {
  __shared__ float shared[BLOCK], warps[WARPS];
  __shared__ u32 size_bits;
  u32 head = blockIdx.y;
  Sight sight = sight_of(spans, places, first, step, table, base + blockIdx.z);
  u32 j = blockIdx.x * BLOCK + threadIdx.x;
  // The whole block of threads.
  if (blockIdx.x * BLOCK >= sight.end - sight.start) return;
  bool seen = j < sight.end - sight.start;
  u64 cell = (u64)blockIdx.z * heads + head;
  float *at = scores + cell * reach + j;
  float value = seen ? *at : LEAST;
  expect_finite(value, faults);
  float largest = value;
#pragma unroll
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, largest, half);
    largest = other > largest ? other : largest;
  }
  if (threadIdx.x % LANES == 0) warps[threadIdx.x / LANES] = largest;
  if (threadIdx.x == 0) size_bits = 0;
  __syncthreads();
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) largest = warps[i] > largest ? warps[i] : largest;
  // A sum that ends in zeros is the same sum.
  float weight = seen ? exponential(sub(value, largest)) : 0.0f;
  shared[threadIdx.x] = weight;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) total = add(total, shared[threadIdx.x % LANES + i * LANES]);
  total = fold(total);
  if (seen) {
    u32 page = sight.pages[(sight.start + j) / BLOCK], of = kv_heads + head / (heads / kv_heads);
    const u32 *kept = in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at);
    weight = mul(weight, __uint_as_float(kept[of * BLOCK + (sight.start + j) % BLOCK]));
  }
  u32 size_of_warp = largest_of(__float_as_uint(weight));
  if (threadIdx.x % LANES == 0) atomicMax(&size_bits, size_of_warp);
  __syncthreads();
  float size = __uint_as_float(size_bits);
  bool vanishing = size < VANISHING;
  if (seen) *(int *)at = vanishing ? 0 : nearest(mul(weight, div(WEIGHT_MAX, size)));
  if (threadIdx.x == 0) {
    float *into = stats + (cell * ((reach + BLOCK - 1) / BLOCK) + blockIdx.x) * 3;
    into[0] = largest;
    into[1] = total;
    into[2] = vanishing ? 0.0f : div(size, WEIGHT_MAX);
  }
}

// exact::attention_row's mix of one block: element `d` of the values at `from` to `to` of the positions that
// a row sees. All heads' values are `values_at` behind a page's first word.
__device__ __forceinline__ float partial_of(const int *weight, const Sight &sight, const Table<u32> &slabs,
                                            u64 page_words, u64 values_at, u32 kv_head, u32 head_dim, u32 d, u32 from,
                                            u32 to, float scale) {
  u32 dot = 0;
  // One page, or two where the span begins within one.
  for (u32 j = from; j < to;) {
    u32 page = sight.pages[(sight.start + j) / BLOCK], at = (sight.start + j) % BLOCK;
    u32 end = to - j < BLOCK - at ? to : j + BLOCK - at;
    const i16 *value = (const i16 *)in_page(slabs.at[page / SLAB_PAGES], page, page_words, values_at);
    value += (kv_head * BLOCK + at) * head_dim + d;
    for (; j < end; j++, value += head_dim) dot += (u32)(weight[j] * (int)*value);
  }
  return mul(__int2float_rn((int)dot), scale);
}

// What blocks have found so far, as exact::Softmax has it, and an element of their mix.
struct Merged {
  float largest, total, sum;
};

// exact::Softmax::merge, and exact::merge_cell of the mix; `of` is what `softmax` says of the block.
__device__ __forceinline__ void merge_block(Merged *so_far, const float *of, float partial) {
  float before = 1.0f, block = 1.0f;
  if (of[0] > so_far->largest) {
    before = exponential(sub(so_far->largest, of[0]));
    so_far->largest = of[0];
  } else {
    block = exponential(sub(of[0], so_far->largest));
  }
  so_far->total = add(mul(so_far->total, before), mul(of[1], block));
  so_far->sum = add(mul(so_far->sum, before), mul(partial, block));
}

// The rest of exact::attention_row, for many rows: a thread per element of the output mixes a block after the
// other, and merges them.
extern "C" __global__ void mix(const int *weights, const float *stats, Table<u32> slabs, const u32 *table,
                               u64 page_words, u64 layer_at, const u32 *spans, const u32 *places, u32 first,
                               u32 step, u32 base, u32 count, u32 heads, u32 kv_heads, u32 head_dim, u32 reach,
                               float *out, u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * head_dim) return;
  u32 d = index % head_dim;
  u64 cell = index / head_dim;
  u32 head = cell % heads;
  Sight sight = sight_of(spans, places, first, step, table, base + (u32)(cell / heads));
  u32 seen = sight.end - sight.start;
  const int *weight = weights + cell * reach;
  const float *of = stats + cell * ((reach + BLOCK - 1) / BLOCK) * 3;
  u64 values_at = layer_at + kv_heads * (2 + (head_dim + 1) / 2) * BLOCK;
  Merged merged = {LEAST, 0.0f, 0.0f};
  for (u32 from = 0; from < seen; from += BLOCK, of += 3) {
    u32 to = seen - from < BLOCK ? seen : from + BLOCK;
    float partial = partial_of(weight, sight, slabs, page_words, values_at, head / (heads / kv_heads), head_dim, d,
                               from, to, of[2]);
    merge_block(&merged, of, partial);
  }
  float value = div(merged.sum, merged.total);
  expect_finite(value, faults);
  out[(u64)base * heads * head_dim + index] = value;
}

// The same for few rows, whose threads would leave most of a device idle, in two launches. First each block's
// mix by itself: a block of threads per block of positions, head and query row. `partials` is [rows of the
// launch][heads][blocks of the reach][head_dim].
extern "C" __global__ void partials(const int *weights, const float *stats, Table<u32> slabs, const u32 *table,
                                    u64 page_words, u64 layer_at, const u32 *spans, const u32 *places, u32 first,
                                    u32 step, u32 base, u32 heads, u32 kv_heads, u32 head_dim, u32 reach,
                                    float *partials) {
  u32 head = blockIdx.y;
  Sight sight = sight_of(spans, places, first, step, table, base + blockIdx.z);
  u32 seen = sight.end - sight.start, from = blockIdx.x * BLOCK;
  if (from >= seen) return;
  u32 to = seen - from < BLOCK ? seen : from + BLOCK;
  u64 cell = (u64)blockIdx.z * heads + head;
  u64 block = cell * ((reach + BLOCK - 1) / BLOCK) + blockIdx.x;
  u64 values_at = layer_at + kv_heads * (2 + (head_dim + 1) / 2) * BLOCK;
  for (u32 d = threadIdx.x; d < head_dim; d += blockDim.x) {
    partials[block * head_dim + d] = partial_of(weights + cell * reach, sight, slabs, page_words, values_at,
                                                head / (heads / kv_heads), head_dim, d, from, to, stats[block * 3 + 2]);
  }
}

// Then a thread per element of the output merges them, in their order.
extern "C" __global__ void merge(const float *partials, const float *stats, const u32 *spans, u32 first, u32 step,
                                 u32 base, u32 count, u32 heads, u32 head_dim, u32 reach, float *out, u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * head_dim) return;
  u32 d = index % head_dim;
  u64 cell = index / head_dim;
  Sight sight = sight_of(spans, nullptr, first, step, nullptr, base + (u32)(cell / heads));
  u64 block = cell * ((reach + BLOCK - 1) / BLOCK);
  Merged merged = {LEAST, 0.0f, 0.0f};
  for (u32 from = 0; from < sight.end - sight.start; from += BLOCK, block++) {
    merge_block(&merged, stats + block * 3, partials[block * head_dim + d]);
  }
  float value = div(merged.sum, merged.total);
  expect_finite(value, faults);
  out[(u64)base * heads * head_dim + index] = value;
}
