// --- Attention's blocks, where each was taken by itself

// Blocks whose partial results a thread reads at once.
#define MERGED 8

// What `attend` has left: `stats` is [rows][heads][blocks][largest, total], `partials`
// [rows][heads][blocks][head_dim], both from row `base` on.
struct Partials {
  const float *partials, *stats;
  u32 blocks;
};

// exact::attention_cell of element `d` of a head of a row: its blocks merged, in their order.
__device__ __forceinline__ float merged(const Partials &of, const Sight &sight, u64 cell, u32 head_dim, u32 d,
                                        u32 *faults) {
  u32 seen = (sight.end - sight.start + BLOCK - 1) / BLOCK;
  const float *partials = of.partials + cell * of.blocks * head_dim + d;
  const float *stats = of.stats + cell * of.blocks * 2;
  Softmax found = {LEAST, 0.0f};
  float sum = 0.0f;
#pragma unroll 1
  for (u32 from = 0; from < seen; from += MERGED) {
    Softmax block[MERGED];
    float partial[MERGED];
#pragma unroll
    for (u32 i = 0; i < MERGED; i++) {
      u32 at = from + i < seen ? from + i : from;
      block[i] = {stats[2 * (u64)at], stats[2 * (u64)at + 1]};
      partial[i] = partials[(u64)at * head_dim];
    }
#pragma unroll
    for (u32 i = 0; i < MERGED; i++) {
      if (from + i < seen) {
        float before, of_block;
        merge_block(&found, block[i], &before, &of_block);
        sum = merge_cell(sum, partial[i], before, of_block);
      }
    }
  }
  float value = div(sum, found.total);
  expect_finite(value, faults);
  return value;
}

// A thread per element of the output.
extern "C" __global__ void merge(const float *partials, const float *stats, const u32 *spans, u32 first,
                                 u32 step_of_rows, u32 base, u32 count, u32 heads, u32 head_dim, u32 blocks, float *out,
                                 u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * head_dim) return;
  u64 cell = index / head_dim;
  Sight sight = sight_of(spans, nullptr, first, step_of_rows, nullptr, base + (u32)(cell / heads));
  Partials of = {partials, stats, blocks};
  out[(u64)base * heads * head_dim + index] = merged(of, sight, cell, head_dim, index % head_dim, faults);
}

// The same of all rows, then `quantize` of what it gives, with a warp for each of a row's groups.
template <typename Q>
__device__ __forceinline__ void merge_quantize_as(const Partials &of, const u32 *spans, u32 first, u32 step_of_rows,
                                                  u32 base, u32 count, u32 heads, u32 head_dim, float *out,
                                                  const float *pre, u32 groups, Q *q, float *scales, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 group = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  // The whole warp.
  if (group >= (u64)count * groups) return;
  u32 row = (u32)(group / groups), width = heads * head_dim;
  Sight sight = sight_of(spans, nullptr, first, step_of_rows, nullptr, base + row);
  float values[WARPS];
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    u32 column = (u32)(group % groups) * GROUP + lane + i * LANES;
    values[i] = 0.0f;
    if (column < width) {
      u64 cell = (u64)row * heads + column / head_dim;
      values[i] = merged(of, sight, cell, head_dim, column % head_dim, faults);
      out[(u64)(base + row) * width + column] = values[i];
      if (pre) values[i] = mul(values[i], pre[column]);
      expect_finite(values[i], faults);
    }
  }
  quantize_group(values, most_of(q), lane, (u64)base * groups + group, q, scales);
}

#define MERGE_QUANTIZE(Q)                                                                                           \
  const float *partials, const float *stats, const u32 *spans, u32 first, u32 step_of_rows, u32 base, u32 count,     \
      u32 heads, u32 head_dim, u32 blocks, float *out, const float *pre, u32 groups, Q *q, float *scales, u32 *faults

extern "C" __global__ void merge_quantize(MERGE_QUANTIZE(i8)) {
  Partials of = {partials, stats, blocks};
  merge_quantize_as(of, spans, first, step_of_rows, base, count, heads, head_dim, out, pre, groups, q, scales, faults);
}

extern "C" __global__ void merge_quantize12(MERGE_QUANTIZE(i16)) {
  Partials of = {partials, stats, blocks};
  merge_quantize_as(of, spans, first, step_of_rows, base, count, heads, head_dim, out, pre, groups, q, scales, faults);
}
