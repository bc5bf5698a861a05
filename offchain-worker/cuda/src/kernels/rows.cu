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

// A warp per group; before it exact::scale_row where there is `pre`.
template <typename Q>
__device__ __forceinline__ void quantize_as(const float *rows, const float *pre, u32 count, u32 width, u32 groups,
                                            Q *q, float *scales, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 group = (u64)blockIdx.x * WARPS + threadIdx.x / LANES;
  // The whole warp.
  if (group >= (u64)count * groups) return;
  u64 row = group / groups;
  float values[WARPS];
#pragma unroll
  for (u32 i = 0; i < WARPS; i++) {
    u32 column = (u32)(group % groups) * GROUP + lane + i * LANES;
    values[i] = column < width ? rows[row * width + column] : 0.0f;
    if (pre && column < width) values[i] = mul(values[i], pre[column]);
    expect_finite(values[i], faults);
  }
  quantize_group(values, most_of(q), lane, group, q, scales);
}

extern "C" __global__ void quantize(const float *rows, const float *pre, u32 count, u32 width, u32 groups, i8 *q,
                                    float *scales, u32 *faults) {
  quantize_as(rows, pre, count, width, groups, q, scales, faults);
}

extern "C" __global__ void quantize12(const float *rows, const float *pre, u32 count, u32 width, u32 groups, i16 *q,
                                      float *scales, u32 *faults) {
  quantize_as(rows, pre, count, width, groups, q, scales, faults);
}

// --- Normalisations

// What a row is normalized by, and with.
struct Norm {
  const float *weight, *bias;
  float mean, scale;
};

// exact::layer_norm_stats where there is a bias, exact::rms_norm_scale where there is none: a warp, of which
// each lane keeps to the elements of its own.
__device__ __forceinline__ Norm norm_of(const float *row, const float *weight, const float *bias, float epsilon,
                                        u32 width, u32 lane, u32 *faults) {
  Norm norm = {weight, bias, 0.0f, 0.0f};
  float n = (float)width;
  if (bias) {
    float sum = 0.0f;
    for (u32 j = lane; j < width; j += LANES) sum = add(sum, row[j]);
    norm.mean = div(fold(sum), n);
  }
  float sum = 0.0f;
  for (u32 j = lane; j < width; j += LANES) {
    float difference = bias ? sub(row[j], norm.mean) : row[j];
    sum = add(sum, mul(difference, difference));
  }
  float squares = fold(sum);
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
// `out` may be absent, and may not be `rows`.
template <typename Q>
__device__ __forceinline__ void normalize_quantize_as(const float *rows, const float *weight, const float *bias,
                                                 float epsilon, const float *pre, u32 width, u32 groups, float *out,
                                                 Q *q, float *scales, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u64 row = blockIdx.x;
  const float *of = rows + row * width;
  Norm by = norm_of(of, weight, bias, epsilon, width, lane, faults);
  for (u32 group = threadIdx.x / LANES; group < groups; group += WARPS) {
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

extern "C" __global__ void normalize_quantize(const float *rows, const float *weight, const float *bias, float epsilon,
                                         const float *pre, u32 width, u32 groups, float *out, i8 *q, float *scales,
                                         u32 *faults) {
  normalize_quantize_as(rows, weight, bias, epsilon, pre, width, groups, out, q, scales, faults);
}

extern "C" __global__ void normalize_quantize12(const float *rows, const float *weight, const float *bias, float epsilon,
                                           const float *pre, u32 width, u32 groups, float *out, i16 *q, float *scales,
                                           u32 *faults) {
  normalize_quantize_as(rows, weight, bias, epsilon, pre, width, groups, out, q, scales, faults);
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

// exact::silu of the gate, times the other.
extern "C" __global__ void swiglu(float *gate, const float *up, u64 count) {
  u64 index = thread_index();
  if (index >= count) return;
  float x = gate[index];
  gate[index] = mul(div(x, add(1.0f, exponential(negate(x)))), up[index]);
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

// Copies pairs of bytes behind `into_at` others.
extern "C" __global__ void copy(const i16 *from, u64 count, i16 *into, u64 into_at) {
  u64 index = thread_index();
  if (index < count) into[into_at + index] = from[index];
}

// exact::rotate_row for every head: a thread per pair. Row i is at position `first + i`, or at
// `positions[i]`.
extern "C" __global__ void rotate(float *rows, const u64 *turns, const u32 *positions, u32 first, u32 count, u32 heads,
                                  u32 half) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * half) return;
  u32 pair = index % half;
  u64 head = index / half;
  u32 row = head / heads;
  u32 position = positions ? positions[row] : first + row;
  u32 turn = (u32)((turns[pair] * position) >> 32);
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
  // exact::rotate_pair
  float *low = rows + head * 2 * half + pair;
  float *high = low + half;
  float a = *low;
  float b = *high;
  *low = sub(mul(a, cosine), mul(b, sine));
  *high = add(mul(b, cosine), mul(a, sine));
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
