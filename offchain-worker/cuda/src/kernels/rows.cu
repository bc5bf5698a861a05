// --- Rows to small integers

// exact::quantize_group, by a warp: lane l has the values l, l + 32, ... `q` rows are `groups` whole groups,
// zeros at the end: they add nothing to a dot product.
template <typename Q>
__device__ __forceinline__ void quantize_group(const float *values, float most, u32 lane, u64 group, Q *q,
                                               float *scales) {
  // As integers: the order of finite sizes.
  u32 largest = 0;
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    u32 bits = __float_as_uint(values[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  float size = __uint_as_float(largest_of(largest));
  bool vanishing = size < VANISHING;
  float by = div(most, size);
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    q[group * GROUP + lane + i * LANES] = vanishing ? (Q)0 : (Q)nearest(mul(values[i], by));
  }
  if (lane == 0) scales[group] = vanishing ? 0.0f : div(size, most);
}

__device__ __forceinline__ float most_of(const i8 *) { return 127.0f; }
__device__ __forceinline__ float most_of(const i16 *) { return INT12_MAX; }

// exact::silu of the gate, times the other.
__device__ __forceinline__ float gated(float gate, float up) {
  return mul(div(gate, add(1.0f, exponential(negate(gate)))), up);
}

// exact::gelu_tanh, or exact::gelu.
__device__ __forceinline__ float gelu(float x, bool is_tanh) {
  float by = is_tanh ? hyperbolic_tangent(mul(0.7978846f, add(x, mul(0.044715f, mul(mul(x, x), x)))))
                     : error_function(mul(x, 0.70710678118654752f));
  return mul(mul(0.5f, x), add(1.0f, by));
}

// What is done to a number before it is quantized.
struct Gated {
  const float *up;
  __device__ __forceinline__ float operator()(float value, u64 at) const { return up ? gated(value, up[at]) : value; }
};

struct Gelu {
  bool is_tanh;
  __device__ __forceinline__ float operator()(float value, u64) const { return gelu(value, is_tanh); }
};

// A warp per group. Before it the function of each number, which is kept in `out` if that is there; and
// exact::scale_row where there is `pre`.
template <typename Q, typename F>
__device__ __forceinline__ void quantize_as(const float *rows, F function, const float *pre, u32 count, u32 width,
                                            u32 groups, float *out, Q *q, float *scales, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 group = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  // The whole warp.
  if (group >= (u64)count * groups) return;
  u64 row = group / groups;
  float values[WARPS];
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    u32 column = (u32)(group % groups) * GROUP + lane + i * LANES;
    values[i] = 0.0f;
    if (column < width) {
      u64 at = row * width + column;
      values[i] = function(rows[at], at);
      if (out) out[at] = values[i];
      if (pre) values[i] = mul(values[i], pre[column]);
    }
    expect_finite(values[i], faults);
  }
  quantize_group(values, most_of(q), lane, group, q, scales);
}

extern "C" __global__ void quantize(const float *rows, const float *up, const float *pre, u32 count, u32 width,
                                    u32 groups, float *out, i8 *q, float *scales, u32 *faults) {
  quantize_as(rows, Gated{up}, pre, count, width, groups, out, q, scales, faults);
}

extern "C" __global__ void quantize12(const float *rows, const float *up, const float *pre, u32 count, u32 width,
                                      u32 groups, float *out, i16 *q, float *scales, u32 *faults) {
  quantize_as(rows, Gated{up}, pre, count, width, groups, out, q, scales, faults);
}

extern "C" __global__ void gelu_quantize(const float *rows, u32 is_tanh, const float *pre, u32 count, u32 width,
                                         u32 groups, float *out, i8 *q, float *scales, u32 *faults) {
  quantize_as(rows, Gelu{is_tanh != 0}, pre, count, width, groups, out, q, scales, faults);
}

extern "C" __global__ void gelu_quantize12(const float *rows, u32 is_tanh, const float *pre, u32 count, u32 width,
                                           u32 groups, float *out, i16 *q, float *scales, u32 *faults) {
  quantize_as(rows, Gelu{is_tanh != 0}, pre, count, width, groups, out, q, scales, faults);
}

// --- Normalisations

// What a row is normalized by, and with.
struct Norm {
  const float *weight, *bias;
  float mean, scale;
};

// Elements that a lane has asked for before it adds the first of them up.
#define AHEAD 16
// The same of a thread that reads a row for the first time.
#define FIRST 4
// Elements of a row that stay in shared memory.
#define NEAR 8192

// The sum of a row's elements, or of their squares after `mean` was subtracted where there is one: each lane
// of a warp keeps to the elements of its own.
template <bool SQUARES>
__device__ __forceinline__ float sum_of(const float *row, u32 width, u32 lane, bool has_mean, float mean) {
  float sum = 0.0f;
  for (u32 from = lane; from < width; from += AHEAD * LANES) {
    float values[AHEAD];
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++) {
      u32 column = from + i * LANES;
      values[i] = column < width ? row[column] : 0.0f;
    }
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++) {
      float value = values[i];
      if (has_mean) value = from + i * LANES < width ? sub(value, mean) : 0.0f;
      // A sum that ends in zeros is the same sum.
      sum = add(sum, SQUARES ? mul(value, value) : value);
    }
  }
  return fold(sum);
}

// exact::layer_norm_stats where there is a bias, exact::rms_norm_scale where there is none: a warp.
__device__ __forceinline__ Norm norm_of(const float *row, const float *weight, const float *bias, float epsilon,
                                        u32 width, u32 lane, u32 *faults) {
  Norm norm = {weight, bias, 0.0f, 0.0f};
  float n = (float)width;
  if (bias) norm.mean = div(sum_of<false>(row, width, lane, false, 0.0f), n);
  float squares = sum_of<true>(row, width, lane, bias != nullptr, norm.mean);
  // Else the quotient would be 0, and the values would vanish.
  expect_finite(squares, faults);
  norm.scale = inverse_root(add(div(squares, n), epsilon));
  return norm;
}

// exact::layer_norm_cell or exact::rms_norm_cell.
__device__ __forceinline__ float normed(const Norm &norm, float value, u32 column, u32 *faults) {
  if (norm.bias) value = sub(value, norm.mean);
  value = mul(mul(value, norm.scale), norm.weight[column]);
  if (norm.bias) value = add(value, norm.bias[column]);
  expect_finite(value, faults);
  return value;
}

// exact::layer_norm_row or exact::rms_norm_row: a warp per row.
extern "C" __global__ void normalize(const float *rows, const float *weight, const float *bias, float epsilon, u32 count,
                                u32 width, float *out, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  // The whole warp.
  if (row >= count) return;
  const float *of = rows + row * width;
  Norm by = norm_of(of, weight, bias, epsilon, width, lane, faults);
  for (u32 j = lane; j < width; j += LANES) out[row * width + j] = normed(by, of[j], j, faults);
}

// The same, then `quantize`: a block per row, whose warps all add it up and then take its groups in turn.
// Before it the row is added to, where there is `added`, and then copied to a row of a trace, where there is
// `traced`: [..][pitch]. `out` may be absent, and may not be `rows`.
template <typename Q>
__device__ __forceinline__ void normalize_quantize_as(float *rows, const float *added, float *traced, u64 traced_at,
                                                      u32 pitch, const float *weight, const float *bias,
                                                      float epsilon, const float *pre, u32 width, u32 groups,
                                                      float *out, Q *q, float *scales, u32 *faults) {
  __shared__ float near[NEAR];
  u32 lane = threadIdx.x % LANES;
  u64 row = blockIdx.x;
  float *whole = rows + row * width;
  // What there is no room for is read from memory again.
  const float *of = width <= NEAR ? near : whole;
  for (u32 from = threadIdx.x; from < width; from += FIRST * blockDim.x) {
    float values[FIRST], others[FIRST];
#pragma unroll
    for (u32 i = 0; i < FIRST; i++) {
      u32 j = from + i * blockDim.x;
      values[i] = j < width ? whole[j] : 0.0f;
      others[i] = added && j < width ? added[row * width + j] : 0.0f;
    }
#pragma unroll
    for (u32 i = 0; i < FIRST; i++) {
      u32 j = from + i * blockDim.x;
      if (j >= width) continue;
      if (added) whole[j] = values[i] = add(values[i], others[i]);
      if (traced) traced[traced_at + row * pitch + j] = values[i];
      if (width <= NEAR) near[j] = values[i];
    }
  }
  __syncthreads();
  Norm by = norm_of(of, weight, bias, epsilon, width, lane, faults);
#pragma unroll 1
  for (u32 group = threadIdx.x / LANES; group < groups; group += blockDim.x / LANES) {
    float values[WARPS];
#pragma unroll
    for (u32 i = 0; i < WARPS; i++) {
      u32 column = group * GROUP + lane + i * LANES;
      values[i] = 0.0f;
      if (column < width) {
        values[i] = normed(by, of[column], column, faults);
        if (out) out[row * width + column] = values[i];
        if (pre) values[i] = mul(values[i], pre[column]);
        expect_finite(values[i], faults);
      }
    }
    quantize_group(values, most_of(q), lane, row * groups + group, q, scales);
  }
}

#define NORMALIZE_QUANTIZE(Q)                                                                                     \
  float *rows, const float *added, float *traced, u64 traced_at, u32 pitch, const float *weight, const float *bias, \
      float epsilon, const float *pre, u32 width, u32 groups, float *out, Q *q, float *scales, u32 *faults

extern "C" __launch_bounds__(512) __global__ void normalize_quantize(NORMALIZE_QUANTIZE(i8)) {
  normalize_quantize_as(rows, added, traced, traced_at, pitch, weight, bias, epsilon, pre, width, groups, out, q, scales,
                        faults);
}

extern "C" __launch_bounds__(512) __global__ void normalize_quantize12(NORMALIZE_QUANTIZE(i16)) {
  normalize_quantize_as(rows, added, traced, traced_at, pitch, weight, bias, epsilon, pre, width, groups, out, q, scales,
                        faults);
}

// --- Single values

extern "C" __global__ void accumulate(float *into, const float *other, u64 count) {
  u64 index = thread_index();
  if (index >= count) return;
  into[index] = add(into[index], other[index]);
}

// Rows by number.
extern "C" __global__ void gather(const float *rows, const u32 *numbers, u32 count, u32 width, float *out) {
  u64 index = thread_index();
  if (index >= (u64)count * width) return;
  out[index] = rows[(u64)numbers[index / width] * width + index % width];
}

// A number of a row, and the number of its place: what the first of the largest ones is looked for by.
struct Best {
  float value;
  u32 place;
};

__device__ __forceinline__ Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.place < a.place) ? b : a;
}

// Threads of a block of `greedy`, and what each has asked for before it looks at the first.
#define GREEDY_WARPS 32
#define ASKED 8

// exact::greedy of finite numbers, a block per row.
extern "C" __launch_bounds__(1024) __global__ void greedy(const float *rows, u32 width, u32 *chosen) {
  __shared__ float values[GREEDY_WARPS];
  __shared__ u32 places[GREEDY_WARPS];
  const float *row = rows + (u64)blockIdx.x * width;
  u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  // Where a thread has none, one that others have.
  Best best = {row[0], 0};
#pragma unroll 1
  for (u32 from = threadIdx.x; from < width; from += ASKED * GREEDY_WARPS * LANES) {
    Best all[ASKED];
#pragma unroll
    for (u32 i = 0; i < ASKED; i++) {
      u32 place = from + i * GREEDY_WARPS * LANES;
      place = place < width ? place : from;
      all[i] = Best{row[place], place};
    }
#pragma unroll
    for (u32 i = 0; i < ASKED; i++) best = better(best, all[i]);
  }
#pragma unroll
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    float value = __shfl_xor_sync(0xffffffffu, best.value, half);
    best = better(best, Best{value, __shfl_xor_sync(0xffffffffu, best.place, half)});
  }
  if (lane == 0) {
    values[warp] = best.value;
    places[warp] = best.place;
  }
  __syncthreads();
  best = Best{values[lane], places[lane]};
#pragma unroll
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    float value = __shfl_xor_sync(0xffffffffu, best.value, half);
    best = better(best, Best{value, __shfl_xor_sync(0xffffffffu, best.place, half)});
  }
  if (threadIdx.x == 0) chosen[blockIdx.x] = best.place;
}

// Copies pairs of bytes behind `into_at` others.
extern "C" __global__ void copy(const i16 *from, u64 count, i16 *into, u64 into_at) {
  u64 index = thread_index();
  if (index < count) into[into_at + index] = from[index];
}

// --- One vector per sequence

// exact::mean_pool over each span of rows: a thread per column.
extern "C" __global__ void mean_pool(const float *rows, const u32 *spans, u32 count, u32 width, float *out,
                                     u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * width) return;
  u32 column = index % width;
  u32 start = spans[2 * (index / width)];
  u32 end = spans[2 * (index / width) + 1];
  float sum = 0.0f;
  for (u32 row = start; row < end; row++) sum = add(sum, rows[(u64)row * width + column]);
  sum = div(sum, __int2float_rn((int)(end - start)));
  expect_finite(sum, faults);
  out[index] = sum;
}

// exact::l2_normalize, a block per row, whose warps all add up the squares.
extern "C" __global__ void l2_normalize(float *rows, u32 width, u32 *faults) {
  float *row = rows + (u64)blockIdx.x * width;
  float sum = 0.0f;
  for (u32 j = threadIdx.x % LANES; j < width; j += LANES) sum = add(sum, mul(row[j], row[j]));
  float squares = fold(sum);
  if (threadIdx.x == 0) {
    expect_finite(squares, faults);
    if (squares == 0.0f) atomicOr(faults, ZERO_NORM);
  }
  float norm = root(squares);
  // All have read the row before it is overwritten.
  __syncthreads();
  for (u32 j = threadIdx.x; j < width; j += BLOCK) {
    float value = div(row[j], norm);
    // Zeros are a fault of their own.
    if (norm != 0.0f) expect_finite(value, faults);
    row[j] = value;
  }
}
