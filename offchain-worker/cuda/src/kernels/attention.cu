// --- Attention

// Memory of up to so many sequences.
#define TABLE 8

template <typename T>
struct Table {
  T *at[TABLE];
};

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

// Where a row looks, or is put: positions `start` to `end` of one of several sequences' keys and values,
// which have room for so many.
struct Sight {
  u32 start, end, sequence, capacity;
};

// `spans[row]`, or from 0 to `first + row * step`; of the sequence and with the room of `places[row]`, or of
// the first.
__device__ __forceinline__ Sight sight_of(const u32 *spans, const u32 *places, u32 first, u32 step, u32 capacity,
                                          u32 row) {
  Sight sight = {0, first + row * step, 0, capacity};
  if (spans) {
    sight.start = spans[2 * (u64)row];
    sight.end = spans[2 * (u64)row + 1];
  }
  if (places) {
    sight.sequence = places[2 * (u64)row];
    sight.capacity = places[2 * (u64)row + 1];
  }
  return sight;
}

// Puts rows of quantized heads, from row `from` on, at the last positions that they see. Keys are kept
// [kv_head][pair of elements][position], as `score` reads them with neighboring threads at neighboring
// positions; values [kv_head][position][d], as `mix` does; scales [kv_head][position].
extern "C" __global__ void append(const i16 *keys, const float *key_scales, const i16 *values,
                                  const float *value_scales, Table<int> kept_keys, Table<float> kept_key_scales,
                                  Table<i16> kept_values, Table<float> kept_value_scales, const u32 *spans,
                                  const u32 *places, u32 first, u32 from, u32 count, u32 kv_heads, u32 head_dim,
                                  u32 capacity) {
  u64 index = thread_index();
  if (index >= (u64)count * kv_heads * head_dim) return;
  u32 d = index % head_dim;
  u32 head = index / head_dim % kv_heads;
  u32 row = from + (u32)(index / head_dim / kv_heads);
  index += (u64)from * kv_heads * head_dim;
  u64 cell = index / head_dim;
  Sight sight = sight_of(spans, places, first, 1, capacity, row);
  u64 kept = (u64)head * sight.capacity + sight.end - 1;
  kept_values.at[sight.sequence][kept * head_dim + d] = values[index];
  if (d % 2 == 0) {
    u32 second = d + 1 < head_dim ? (u32)(int)keys[index + 1] : 0u;
    u32 pair = ((u32)(int)keys[index] & 0xffffu) | second << 16;
    u64 at = ((u64)head * ((head_dim + 1) / 2) + d / 2) * sight.capacity + sight.end - 1;
    kept_keys.at[sight.sequence][at] = (int)pair;
  }
  if (d == 0) {
    kept_key_scales.at[sight.sequence][kept] = key_scales[cell];
    kept_value_scales.at[sight.sequence][kept] = value_scales[cell];
  }
}

// exact::score_cell: a thread per position, a block row per head and query row. `row` counts from `base`, at
// which the rows of this launch begin. `scores` is [rows of the launch][heads][reach].
extern "C" __global__ void score(const i16 *queries, const float *query_scales, Table<const int> keys,
                                 Table<const float> key_scales, const u32 *spans, const u32 *places, u32 first,
                                 u32 step, u32 base, u32 heads, u32 kv_heads, u32 head_dim, u32 capacity, u32 reach,
                                 float scale, float *scores) {
  u32 j = blockIdx.x * blockDim.x + threadIdx.x;
  u32 head = blockIdx.y;
  u32 row = base + blockIdx.z;
  Sight sight = sight_of(spans, places, first, step, capacity, row);
  if (j >= sight.end - sight.start) return;
  u64 cell = (u64)row * heads + head;
  const i16 *query = queries + cell * head_dim;
  u64 kv_head = head / (heads / kv_heads);
  const int *key = keys.at[sight.sequence] + kv_head * ((head_dim + 1) / 2) * sight.capacity + sight.start + j;
  u32 sum = 0;
  for (u32 d = 0; d < head_dim; d += 2) {
    u32 pair = (u32)key[(u64)(d / 2) * sight.capacity];
    sum += (u32)((int)query[d] * (int)(i16)(pair & 0xffffu));
    // The second of the last pair may be nobody's.
    if (d + 1 < head_dim) sum += (u32)((int)query[d + 1] * (int)(i16)(pair >> 16));
  }
  float key_scale = key_scales.at[sight.sequence][kv_head * sight.capacity + sight.start + j];
  float by = mul(mul(query_scales[cell], scale), key_scale);
  scores[((u64)blockIdx.z * heads + head) * reach + j] = mul(__int2float_rn((int)sum), by);
}

// exact::softmax_block: a block of threads per block of BLOCK positions, head and query row. Scores become
// quantized weights in place. `stats` is [rows of the launch][heads][blocks of the reach][largest, total,
// scale of the weights].
extern "C" __global__ void softmax(float *scores, Table<const float> value_scales, const u32 *spans,
                                   const u32 *places, u32 first, u32 step, u32 base, u32 heads, u32 kv_heads,
                                   u32 capacity, u32 reach, float *stats, u32 *faults) {
  __shared__ float shared[BLOCK], warps[WARPS];
  __shared__ u32 size_bits;
  u32 head = blockIdx.y;
  Sight sight = sight_of(spans, places, first, step, capacity, base + blockIdx.z);
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
  u64 kv_head = head / (heads / kv_heads);
  const float *scales = value_scales.at[sight.sequence] + kv_head * sight.capacity + sight.start;
  if (seen) weight = mul(weight, scales[j]);
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

// The rest of exact::attention_row: a thread per element of the output merges the blocks
// (exact::Softmax::merge).
extern "C" __global__ void mix(const int *weights, const float *stats, Table<const i16> values, const u32 *spans,
                               const u32 *places, u32 first, u32 step, u32 base, u32 count, u32 heads, u32 kv_heads,
                               u32 head_dim, u32 capacity, u32 reach, float *out, u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * head_dim) return;
  u32 d = index % head_dim;
  u64 cell = index / head_dim;
  u32 head = cell % heads;
  Sight sight = sight_of(spans, places, first, step, capacity, base + (u32)(cell / heads));
  u32 seen = sight.end - sight.start;
  const int *weight = weights + cell * reach;
  const float *of = stats + cell * ((reach + BLOCK - 1) / BLOCK) * 3;
  u64 kv_head = head / (heads / kv_heads);
  const i16 *value = values.at[sight.sequence] + (kv_head * sight.capacity + sight.start) * head_dim + d;
  float largest = LEAST, total = 0.0f, sum = 0.0f;
  for (u32 from = 0; from < seen; from += BLOCK, of += 3) {
    u32 to = seen - from < BLOCK ? seen : from + BLOCK;
    u32 dot = 0;
    for (u32 j = from; j < to; j++) dot += (u32)(weight[j] * (int)value[(u64)j * head_dim]);
    float partial = mul(__int2float_rn((int)dot), of[2]);
    float before = 1.0f, block = 1.0f;
    if (of[0] > largest) {
      before = exponential(sub(largest, of[0]));
      largest = of[0];
    } else {
      block = exponential(sub(of[0], largest));
    }
    total = add(mul(total, before), mul(of[1], block));
    sum = add(mul(sum, before), mul(partial, block));
  }
  sum = div(sum, total);
  expect_finite(sum, faults);
  out[(u64)base * heads * head_dim + index] = sum;
}
