// The exact engine's kernels, compiled at run time (NVRTC) and, for the tests, by a C++ compiler.
//
// The definition is primitives/exact; every kernel names the function that it equals bit for bit.
// Floating-point arithmetic goes through the five functions below alone: correctly rounded, never fused,
// subnormals kept. The order of every sum is that of the definition; only maxima and integer sums, where no
// order shows, take another.
//
// GROUP comes from the command line. There are no warp instructions, so a block may be run by any loop over
// its threads. Rows are row-major; a null pointer stands for an absent operand; `faults` gathers what went
// wrong.

typedef signed char i8;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define LANES 16
// Of one block of the kernels that give a row to LANES threads.
#define NORM_ROWS 8
// Activation rows that share one read of a weight.
#define TILE 8
#define BLOCK 128

#define NOT_FINITE 1u
#define ZERO_NORM 2u

#define ROUNDER 12582912.0f

// --- Arithmetic
// -----------------------------------------------------------------------------------------------------

__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float div(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float root(float a) { return __fsqrt_rn(a); }

#ifdef __CUDACC_RTC__
// sum + the dot product of four int8 with four others. Older compilers lack `__dp4a` without their headers.
__device__ __forceinline__ int dot4(int a, int b, int sum) {
  int out;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
  return out;
}
#endif

// Signs are bits: -0 and NaN keep theirs.
__device__ __forceinline__ float negate(float a) { return __uint_as_float(__float_as_uint(a) ^ 0x80000000u); }
__device__ __forceinline__ float size_of(float a) { return __uint_as_float(__float_as_uint(a) & 0x7fffffffu); }
__device__ __forceinline__ float with_sign(float size, float sign) {
  return __uint_as_float((__float_as_uint(size) & 0x7fffffffu) | (__float_as_uint(sign) & 0x80000000u));
}

__device__ __forceinline__ void expect_finite(float a, u32 *faults) {
  if ((__float_as_uint(a) & 0x7fffffffu) >= 0x7f800000u) atomicOr(faults, NOT_FINITE);
}

// exact::exp
__device__ __forceinline__ float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float shifted = add(mul(x, __uint_as_float(0x3fb8aa3bu)), ROUNDER);
  float n = sub(shifted, ROUNDER);
  float r = sub(sub(x, mul(n, 0.693359375f)), mul(n, __uint_as_float(0xb95e8083u)));
  float p = __uint_as_float(0x39506967u);
  p = add(mul(p, r), __uint_as_float(0x3ab743ceu));
  p = add(mul(p, r), __uint_as_float(0x3c088908u));
  p = add(mul(p, r), __uint_as_float(0x3d2aa9c1u));
  p = add(mul(p, r), __uint_as_float(0x3e2aaaaau));
  p = add(mul(p, r), __uint_as_float(0x3f000000u));
  p = add(add(mul(p, mul(r, r)), r), 1.0f);
  u32 exponent = __float_as_uint(shifted) - __float_as_uint(ROUNDER) + 127u;
  return mul(__uint_as_float(exponent << 23), p);
}

// exact::tanh
__device__ __forceinline__ float hyperbolic_tangent(float x) {
  float e = exponential(mul(-2.0f, size_of(x)));
  return with_sign(div(sub(1.0f, e), add(1.0f, e)), x);
}

// exact::erf
__device__ __forceinline__ float error_function(float x) {
  float size = size_of(x);
  float t = div(1.0f, add(1.0f, mul(0.3275911f, size)));
  float p = 1.0614054f;
  p = add(mul(p, t), -1.453152f);
  p = add(mul(p, t), 1.4214138f);
  p = add(mul(p, t), -0.28449674f);
  p = add(mul(p, t), 0.2548296f);
  float tail = mul(mul(p, t), exponential(negate(mul(size, size))));
  return with_sign(sub(1.0f, tail), x);
}

// exact::rsqrt
__device__ __forceinline__ float inverse_root(float x) { return div(1.0f, root(x)); }

// exact::fold, by LANES threads that hold `lane` of `partial`. Every thread of the block has to call it.
__device__ __forceinline__ float fold(float *partial, u32 lane) {
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) partial[lane] = add(partial[lane], partial[lane + half]);
  }
  __syncthreads();
  return partial[0];
}

__device__ __forceinline__ u64 thread_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// --- Products
// -------------------------------------------------------------------------------------------------------

// exact::quantise_group, a block of GROUP threads per group; before it exact::scale_row where there is `pre`.
// `q` rows are `padded` wide, zeros at the end: they add nothing to a dot product.
template <typename Q>
__device__ __forceinline__ void quantise_as(const float *rows, const float *pre, u32 width, u32 groups, float most,
                                            Q *q, float *scales, u32 *faults) {
  __shared__ u32 largest;
  u32 row = blockIdx.x / groups;
  u32 group = blockIdx.x % groups;
  u32 column = group * GROUP + threadIdx.x;
  float value = 0.0f;
  if (column < width) {
    value = rows[(u64)row * width + column];
    if (pre) value = mul(value, pre[column]);
  }
  expect_finite(value, faults);
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  // As integers: the order of finite sizes.
  atomicMax(&largest, __float_as_uint(value) & 0x7fffffffu);
  __syncthreads();
  float size = __uint_as_float(largest);
  bool vanishing = size < 1e-30f;
  Q quantum = 0;
  if (!vanishing) {
    float shifted = add(mul(value, div(most, size)), ROUNDER);
    quantum = (Q)(int)(__float_as_uint(shifted) - __float_as_uint(ROUNDER));
  }
  q[(u64)blockIdx.x * GROUP + threadIdx.x] = quantum;
  if (threadIdx.x == 0) scales[blockIdx.x] = vanishing ? 0.0f : div(size, most);
}

extern "C" __global__ void quantise(const float *rows, const float *pre, u32 width, u32 groups, i8 *q, float *scales,
                                    u32 *faults) {
  quantise_as(rows, pre, width, groups, 127.0f, q, scales, faults);
}

extern "C" __global__ void quantise12(const float *rows, const float *pre, u32 width, u32 groups, i16 *q, float *scales,
                                      u32 *faults) {
  quantise_as(rows, pre, width, groups, 2047.0f, q, scales, faults);
}

struct __align__(16) Quad {
  int a, b, c, d;
};

// What four bytes of two rows add to a dot product, modulo 2^32.
__device__ __forceinline__ int part(int a, int b, int sum, const i8 *) { return dot4(a, b, sum); }

__device__ __forceinline__ int part(int a, int b, int sum, const i16 *) {
  int low = (int)(i16)(a & 0xffff) * (int)(i16)(b & 0xffff);
  int high = (int)(i16)((u32)a >> 16) * (int)(i16)((u32)b >> 16);
  return (int)((u32)sum + (u32)low + (u32)high);
}

// exact::dot of every group: what the vendor's library computes for many rows, here for few. A thread per
// output and group, and TILE rows. `q` is [][groups * GROUP], from row `first`; `weights` [outputs][groups *
// GROUP]; `out` [groups][rows][stride].
template <typename Q>
__device__ __forceinline__ void dots_as(const Q *q, const Q *weights, u32 first, u32 rows, u32 outputs, u32 groups,
                                        u32 stride, int *out) {
  u32 output = blockIdx.x * blockDim.x + threadIdx.x;
  u32 group = blockIdx.y;
  u32 tile = blockIdx.z * TILE;
  if (output >= outputs) return;
  u64 width = (u64)groups * GROUP;
  const Quad *w = (const Quad *)(weights + output * width + (u64)group * GROUP);
  const Q *x = q + (first + (u64)tile) * width + (u64)group * GROUP;
  int sums[TILE];
#pragma unroll
  for (u32 r = 0; r < TILE; r++) sums[r] = 0;
#pragma unroll
  for (u32 k = 0; k < GROUP * sizeof(Q) / 16; k++) {
    Quad by = w[k];
#pragma unroll
    for (u32 r = 0; r < TILE; r++) {
      if (tile + r < rows) {
        Quad of = ((const Quad *)(x + r * width))[k];
        sums[r] = part(by.a, of.a, sums[r], q);
        sums[r] = part(by.b, of.b, sums[r], q);
        sums[r] = part(by.c, of.c, sums[r], q);
        sums[r] = part(by.d, of.d, sums[r], q);
      }
    }
  }
#pragma unroll
  for (u32 r = 0; r < TILE; r++) {
    if (tile + r < rows) out[((u64)group * rows + tile + r) * stride + output] = sums[r];
  }
}

extern "C" __global__ void dots(const i8 *q, const i8 *weights, u32 first, u32 rows, u32 outputs, u32 groups,
                                u32 stride, int *out) {
  dots_as(q, weights, first, rows, outputs, groups, stride, out);
}

extern "C" __global__ void dots12(const i16 *q, const i16 *weights, u32 first, u32 rows, u32 outputs, u32 groups,
                                  u32 stride, int *out) {
  dots_as(q, weights, first, rows, outputs, groups, stride, out);
}

// exact::product_cell from the groups' dot products: a thread per output, a block row per activation row.
// `s` is [][groups], `t` [groups][stride], `out` [][outputs]; the two of activations from row `first`.
extern "C" __global__ void flush(const int *dots, const float *s, const float *t, const float *bias, u32 first,
                                 u32 rows, u32 outputs, u32 groups, u32 stride, float *out, u32 *faults) {
  u32 output = blockIdx.x * blockDim.x + threadIdx.x;
  u32 row = blockIdx.y;
  if (output >= outputs) return;
  const float *of = s + (u64)(first + row) * groups;
  float sum = 0.0f;
  for (u32 group = 0; group < groups; group++) {
    float scale = mul(of[group], t[(u64)group * stride + output]);
    int dot = dots[((u64)group * rows + row) * stride + output];
    sum = add(sum, mul(__int2float_rn(dot), scale));
  }
  sum = add(sum, bias ? bias[output] : 0.0f);
  expect_finite(sum, faults);
  out[(u64)(first + row) * outputs + output] = sum;
}

// A row of a quantised table per token: quantum * scale. `scales` is [groups][stride].
template <typename Q>
__device__ __forceinline__ void embed_as(const Q *q, const float *scales, const u32 *tokens, u32 count, u32 width,
                                         u32 groups, u32 stride, float *out) {
  u64 index = thread_index();
  if (index >= (u64)count * width) return;
  u32 token = tokens[index / width];
  u32 column = index % width;
  float quantum = __int2float_rn(q[(u64)token * groups * GROUP + column]);
  out[index] = mul(quantum, scales[(u64)(column / GROUP) * stride + token]);
}

extern "C" __global__ void embed(const i8 *q, const float *scales, const u32 *tokens, u32 count, u32 width, u32 groups,
                                 u32 stride, float *out) {
  embed_as(q, scales, tokens, count, width, groups, stride, out);
}

extern "C" __global__ void embed12(const i16 *q, const float *scales, const u32 *tokens, u32 count, u32 width,
                                   u32 groups, u32 stride, float *out) {
  embed_as(q, scales, tokens, count, width, groups, stride, out);
}

// --- Rows
// -----------------------------------------------------------------------------------------------------------

// exact::layer_norm_row: LANES threads per row, each keeps to the elements of its lane.
extern "C" __global__ void layer_norm(const float *rows, const float *weight, const float *bias, float epsilon,
                                      u32 count, u32 width, float *out, u32 *faults) {
  __shared__ float partial[NORM_ROWS][LANES];
  u32 lane = threadIdx.x % LANES;
  float *mine = partial[threadIdx.x / LANES];
  u64 row = (u64)blockIdx.x * NORM_ROWS + threadIdx.x / LANES;
  // A row too many is read as nothing: its threads still take part in the folds.
  u32 end = row < count ? width : 0;
  const float *of = rows + row * width;
  float n = (float)width;
  float sum = 0.0f;
  for (u32 j = lane; j < end; j += LANES) sum = add(sum, of[j]);
  mine[lane] = sum;
  float mean = div(fold(mine, lane), n);
  // All have read the sum before it is overwritten.
  __syncthreads();
  sum = 0.0f;
  for (u32 j = lane; j < end; j += LANES) {
    float difference = sub(of[j], mean);
    sum = add(sum, mul(difference, difference));
  }
  mine[lane] = sum;
  float squares = fold(mine, lane);
  // Else the quotient would be 0, and the values would vanish.
  expect_finite(squares, faults);
  float scale = inverse_root(add(div(squares, n), epsilon));
  for (u32 j = lane; j < end; j += LANES) {
    float value = add(mul(mul(sub(of[j], mean), scale), weight[j]), bias[j]);
    expect_finite(value, faults);
    out[row * width + j] = value;
  }
}

// exact::rms_norm_row, likewise.
extern "C" __global__ void rms_norm(const float *rows, const float *weight, float epsilon, u32 count, u32 width,
                                    float *out, u32 *faults) {
  __shared__ float partial[NORM_ROWS][LANES];
  u32 lane = threadIdx.x % LANES;
  float *mine = partial[threadIdx.x / LANES];
  u64 row = (u64)blockIdx.x * NORM_ROWS + threadIdx.x / LANES;
  u32 end = row < count ? width : 0;
  const float *of = rows + row * width;
  float sum = 0.0f;
  for (u32 j = lane; j < end; j += LANES) sum = add(sum, mul(of[j], of[j]));
  mine[lane] = sum;
  float squares = fold(mine, lane);
  expect_finite(squares, faults);
  float scale = inverse_root(add(div(squares, (float)width), epsilon));
  for (u32 j = lane; j < end; j += LANES) {
    float value = mul(mul(of[j], scale), weight[j]);
    expect_finite(value, faults);
    out[row * width + j] = value;
  }
}

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

// --- Attention
// ------------------------------------------------------------------------------------------------------

// Puts rows of keys and values at positions from `at`. Keys are kept [kv_head][d][position], as `score` reads
// them with neighbouring threads at neighbouring positions; values [kv_head][position][d], as `mix` does.
extern "C" __global__ void append(const float *keys, const float *values, float *kept_keys, float *kept_values, u32 at,
                                  u32 count, u32 kv_heads, u32 head_dim, u32 capacity) {
  u64 index = thread_index();
  if (index >= (u64)count * kv_heads * head_dim) return;
  u32 d = index % head_dim;
  u32 head = index / head_dim % kv_heads;
  u32 position = at + (u32)(index / head_dim / kv_heads);
  kept_keys[((u64)head * head_dim + d) * capacity + position] = keys[index];
  kept_values[((u64)head * capacity + position) * head_dim + d] = values[index];
}

// Which positions a query row sees: `spans[row]`, or from 0 to `first + row * step`.
__device__ __forceinline__ void span(const u32 *spans, u32 first, u32 step, u32 row, u32 *start, u32 *end) {
  *start = spans ? spans[2 * (u64)row] : 0;
  *end = spans ? spans[2 * (u64)row + 1] : first + row * step;
}

// The scores of exact::attention_row: a thread per position, a block row per head and query row. `row` counts
// from `base`, at which the rows of this launch begin. `scores` is [rows of the launch][heads][reach].
extern "C" __global__ void score(const float *queries, const float *keys, const u32 *spans, u32 first, u32 step,
                                 u32 base, u32 heads, u32 kv_heads, u32 head_dim, u32 capacity, u32 reach, float scale,
                                 float *scores) {
  u32 j = blockIdx.x * blockDim.x + threadIdx.x;
  u32 head = blockIdx.y;
  u32 row = base + blockIdx.z;
  u32 start, end;
  span(spans, first, step, row, &start, &end);
  if (j >= end - start) return;
  const float *query = queries + ((u64)row * heads + head) * head_dim;
  const float *key = keys + (u64)(head / (heads / kv_heads)) * head_dim * capacity + start + j;
  float sum = 0.0f;
  for (u32 d = 0; d < head_dim; d++) sum = add(sum, mul(query[d], key[(u64)d * capacity]));
  scores[((u64)blockIdx.z * heads + head) * reach + j] = mul(sum, scale);
}

// exact::softmax_row in place, a block of BLOCK threads per head and query row.
extern "C" __global__ void softmax(float *scores, const u32 *spans, u32 first, u32 step, u32 base, u32 heads, u32 reach,
                                   float *totals, u32 *faults) {
  __shared__ float largest[BLOCK];
  __shared__ float partial[LANES];
  u32 start, end;
  span(spans, first, step, base + blockIdx.x / heads, &start, &end);
  u32 n = end - start;
  float *row = scores + (u64)blockIdx.x * reach;
  // The least finite number.
  float max = __uint_as_float(0xff7fffffu);
  for (u32 j = threadIdx.x; j < n; j += BLOCK) {
    float value = row[j];
    expect_finite(value, faults);
    max = value > max ? value : max;
  }
  largest[threadIdx.x] = max;
  for (u32 half = BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && largest[threadIdx.x + half] > largest[threadIdx.x]) {
      largest[threadIdx.x] = largest[threadIdx.x + half];
    }
  }
  __syncthreads();
  max = largest[0];
  for (u32 j = threadIdx.x; j < n; j += BLOCK) row[j] = exponential(sub(row[j], max));
  __syncthreads();
  if (threadIdx.x < LANES) {
    float sum = 0.0f;
    for (u32 j = threadIdx.x; j < n; j += LANES) sum = add(sum, row[j]);
    partial[threadIdx.x] = sum;
  }
  float total = fold(partial, threadIdx.x);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// The mixing of exact::attention_row: a thread per element of the output.
extern "C" __global__ void mix(const float *scores, const float *totals, const float *values, const u32 *spans,
                               u32 first, u32 step, u32 base, u32 count, u32 heads, u32 kv_heads, u32 head_dim,
                               u32 capacity, u32 reach, float *out, u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * head_dim) return;
  u32 d = index % head_dim;
  u64 cell = index / head_dim;
  u32 head = cell % heads;
  u32 start, end;
  span(spans, first, step, base + (u32)(cell / heads), &start, &end);
  const float *weight = scores + cell * reach;
  const float *value = values + ((u64)(head / (heads / kv_heads)) * capacity + start) * head_dim + d;
  float sum = 0.0f;
  for (u32 j = 0; j < end - start; j++) sum = add(sum, mul(weight[j], value[(u64)j * head_dim]));
  sum = div(sum, totals[cell]);
  expect_finite(sum, faults);
  out[(u64)base * heads * head_dim + index] = sum;
}

// --- One vector per sequence
// ----------------------------------------------------------------------------------------

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

// exact::l2_normalise, a block per row. The sum has one order from first to last: one thread's work.
extern "C" __global__ void l2_normalise(float *rows, u32 width, u32 *faults) {
  __shared__ float norm;
  float *row = rows + (u64)blockIdx.x * width;
  if (threadIdx.x == 0) {
    float squares = 0.0f;
    for (u32 j = 0; j < width; j++) squares = add(squares, mul(row[j], row[j]));
    expect_finite(squares, faults);
    if (squares == 0.0f) atomicOr(faults, ZERO_NORM);
    norm = root(squares);
  }
  __syncthreads();
  for (u32 j = threadIdx.x; j < width; j += BLOCK) {
    float value = div(row[j], norm);
    // Zeros are a fault of their own.
    if (norm != 0.0f) expect_finite(value, faults);
    row[j] = value;
  }
}
