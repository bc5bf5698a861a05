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

// A warp per group. Before it `gated` where there is `up`, which is kept in `out` if that is there; and
// exact::scale_row where there is `pre`.
template <typename Q>
__device__ __forceinline__ void quantize_as(const float *rows, const float *up, const float *pre, u32 count, u32 width,
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
      values[i] = rows[at];
      if (up) values[i] = gated(values[i], up[at]);
      if (out) out[at] = values[i];
      if (pre) values[i] = mul(values[i], pre[column]);
    }
    expect_finite(values[i], faults);
  }
  quantize_group(values, most_of(q), lane, group, q, scales);
}

extern "C" __global__ void quantize(const float *rows, const float *up, const float *pre, u32 count, u32 width,
                                    u32 groups, float *out, i8 *q, float *scales, u32 *faults) {
  quantize_as(rows, up, pre, count, width, groups, out, q, scales, faults);
}

extern "C" __global__ void quantize12(const float *rows, const float *up, const float *pre, u32 count, u32 width,
                                      u32 groups, float *out, i16 *q, float *scales, u32 *faults) {
  quantize_as(rows, up, pre, count, width, groups, out, q, scales, faults);
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
__device__ __forceinline__ float sum_of(const float *row, u32 width, u32 lane, const float *mean) {
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
      if (mean) value = from + i * LANES < width ? sub(value, *mean) : 0.0f;
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
  if (bias) norm.mean = div(sum_of<false>(row, width, lane, nullptr), n);
  float squares = sum_of<true>(row, width, lane, bias ? &norm.mean : nullptr);
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

// exact::gelu
extern "C" __global__ void gelu(float *values, u64 count) {
  u64 index = thread_index();
  if (index >= count) return;
  float x = values[index];
  values[index] = mul(mul(0.5f, x), add(1.0f, error_function(mul(x, 0.70710678118654752f))));
}

// exact::gelu_tanh
extern "C" __global__ void gelu_tanh(float *values, u64 count) {
  u64 index = thread_index();
  if (index >= count) return;
  float x = values[index];
  float inner = mul(0.7978846f, add(x, mul(0.044715f, mul(mul(x, x), x))));
  values[index] = mul(mul(0.5f, x), add(1.0f, hyperbolic_tangent(inner)));
}

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

// exact::greedy of finite numbers, a block per row: the number of the largest one, the first of equal ones.
extern "C" __global__ void greedy(const float *rows, u32 width, u32 *chosen) {
  __shared__ float largest_of_warp[WARPS];
  __shared__ u32 first_of_warp[WARPS];
  const float *row = rows + (u64)blockIdx.x * width;
  // Where a thread has none, one that others have.
  float largest = row[0];
  u32 first = 0;
#pragma unroll 8
  for (u32 i = threadIdx.x; i < width; i += BLOCK) {
    float value = row[i];
    if (value > largest) {
      largest = value;
      first = i;
    }
  }
#pragma unroll
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    float other = __shfl_xor_sync(0xffffffffu, largest, half);
    u32 other_first = __shfl_xor_sync(0xffffffffu, first, half);
    if (other > largest || (other == largest && other_first < first)) {
      largest = other;
      first = other_first;
    }
  }
  if (threadIdx.x % LANES == 0) {
    largest_of_warp[threadIdx.x / LANES] = largest;
    first_of_warp[threadIdx.x / LANES] = first;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll
  for (u32 i = 1; i < WARPS; i++) {
    float other = largest_of_warp[i];
    if (other > largest || (other == largest && first_of_warp[i] < first)) {
      largest = other;
      first = first_of_warp[i];
    }
  }
  chosen[blockIdx.x] = first;
}

// Copies pairs of bytes behind `into_at` others.
extern "C" __global__ void copy(const i16 *from, u64 count, i16 *into, u64 into_at) {
  u64 index = thread_index();
  if (index < count) into[into_at + index] = from[index];
}

// --- Heads

// exact::rotate_pair at a position.
__device__ __forceinline__ void rotate(float *low, float *high, u64 turn_of, u32 position) {
  u32 turn = (u32)((turn_of * position) >> 32);
  // exact::sin_cos_turn
  u32 quarter = (turn + (1u << 29)) >> 30;
  int rest = (int)(turn - (quarter << 30));
  float x = mul(__int2float_rn(rest >> 6), __uint_as_float(0x32800000u));
  float x2 = mul(x, x);
  float s = -76.7046f;
  s = add(mul(s, x2), 81.60525f);
  s = add(mul(s, x2), -41.3417f);
  s = add(mul(s, x2), 6.2831855f);
  s = mul(s, x);
  float c = 60.24464f;
  c = add(mul(c, x2), -85.45682f);
  c = add(mul(c, x2), 64.93939f);
  c = add(mul(c, x2), -19.739208f);
  c = add(mul(c, x2), 1.0f);
  quarter &= 3;
  float sine = quarter & 1 ? c : s;
  float cosine = quarter & 1 ? s : c;
  if (quarter >= 2) sine = negate(sine);
  if (quarter == 1 || quarter == 2) cosine = negate(cosine);
  float a = *low;
  float b = *high;
  *low = sub(mul(a, cosine), mul(b, sine));
  *high = add(mul(b, cosine), mul(a, sine));
}

// Rows of heads, and where they go quantized: `rows` and `q` are [count][heads][head_dim], `scales`
// [count][heads].
struct HeadRows {
  float *rows;
  u32 heads;
  i16 *q;
  float *scales;
};

// Up to three of them are one launch; those that are absent have no heads.
#define HEADS                                                                                             \
  float *rows0, u32 heads0, i16 *q0, float *scales0, float *rows1, u32 heads1, i16 *q1, float *scales1,   \
      float *rows2, u32 heads2, i16 *q2, float *scales2

// exact::quantize_heads, a warp per head. Before it exact::rotate_row of those of the first `rotated` parts:
// row i is at `positions[i]`. What was rotated takes the place of what was there if it `keeps` it. The second
// part and the third behind it, quantized, are also in rows of a trace, where those are: [..][pitch], from
// `traced_at` on, and their scales from `scales_at` on. These are in pairs of bytes.
extern "C" __global__ void quantize_heads(HEADS, u32 count, u32 head_dim, u32 rotated, const u64 *turns,
                                          const u32 *positions, u32 keeps, i16 *traced, u64 traced_at, u64 scales_at,
                                          u32 pitch, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 cell = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  HeadRows part = {rows0, heads0, q0, scales0};
  u32 number = 0;
  if (cell >= (u64)count * part.heads) {
    cell -= (u64)count * part.heads;
    part = HeadRows{rows1, heads1, q1, scales1};
    number = 1;
  }
  if (number == 1 && cell >= (u64)count * part.heads) {
    cell -= (u64)count * part.heads;
    part = HeadRows{rows2, heads2, q2, scales2};
    number = 2;
  }
  // The whole warp.
  if (cell >= (u64)count * part.heads) return;
  float *head = part.rows + cell * head_dim;
  i16 *q = part.q + cell * head_dim;
  i16 *copy = nullptr;
  float *copy_scale = nullptr;
  if (traced && number > 0) {
    u64 of_row = cell / part.heads * pitch;
    u32 head = (number - 1) * heads1 + (u32)(cell % part.heads);
    copy = traced + traced_at + of_row + head * head_dim;
    copy_scale = (float *)(traced + scales_at + of_row) + head;
  }
  bool turned = number < rotated;
  u32 position = turned ? positions[cell / part.heads] : 0;
  u32 half = (head_dim + 1) / 2;
  u32 largest = 0;
  for (u32 pair = lane; pair < half; pair += LANES) {
    // The second of the last pair may not be there.
    bool both = pair + half < head_dim;
    float low = head[pair], high = both ? head[pair + half] : 0.0f;
    if (turned) rotate(&low, &high, turns[pair], position);
    expect_finite(low, faults);
    expect_finite(high, faults);
    u32 low_bits = __float_as_uint(low) & 0x7fffffffu, high_bits = __float_as_uint(high) & 0x7fffffffu;
    largest = low_bits > largest ? low_bits : largest;
    largest = high_bits > largest ? high_bits : largest;
  }
  float size = __uint_as_float(largest_of(largest));
  bool vanishing = size < VANISHING;
  float by = div(INT12_MAX, size);
  for (u32 pair = lane; pair < half; pair += LANES) {
    bool both = pair + half < head_dim;
    float low = head[pair], high = both ? head[pair + half] : 0.0f;
    if (turned) rotate(&low, &high, turns[pair], position);
    i16 low_q = vanishing ? (i16)0 : (i16)nearest(mul(low, by));
    i16 high_q = vanishing ? (i16)0 : (i16)nearest(mul(high, by));
    q[pair] = low_q;
    if (both) q[pair + half] = high_q;
    if (copy) copy[pair] = low_q;
    if (copy && both) copy[pair + half] = high_q;
    if (turned && keeps) head[pair] = low;
    if (turned && keeps && both) head[pair + half] = high;
  }
  float scale = vanishing ? 0.0f : div(size, INT12_MAX);
  if (lane == 0) part.scales[cell] = scale;
  if (lane == 0 && copy) *copy_scale = scale;
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
