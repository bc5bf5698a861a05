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

#define LANES 32
// Of one block of the kernels that give a row to LANES threads.
#define NORM_ROWS (BLOCK / LANES)
// Activation rows that share one read of a weight.
#define TILE 8
// Attention's positions that share a softmax, a group as `exact` has it; and threads of a block, where the
// number does not matter.
#define BLOCK GROUP

#define NOT_FINITE 1u
#define ZERO_NORM 2u

#define ROUNDER 12582912.0f
// exact::quantize: groups that are smaller than this everywhere are zero.
#define VANISHING 1e-30f
#define INT12_MAX 2047.0f
#define WEIGHT_MAX 8191.0f
// The least finite number.
#define LEAST __uint_as_float(0xff7fffffu)

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

// exact::round
__device__ __forceinline__ int nearest(float x) {
  return (int)(__float_as_uint(add(x, ROUNDER)) - __float_as_uint(ROUNDER));
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

// exact::quantize_group, a block of GROUP threads per group; before it exact::scale_row where there is `pre`.
// `q` rows are `padded` wide, zeros at the end: they add nothing to a dot product.
template <typename Q>
__device__ __forceinline__ void quantize_as(const float *rows, const float *pre, u32 width, u32 groups, float most,
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
  bool vanishing = size < VANISHING;
  Q quantum = vanishing ? 0 : (Q)nearest(mul(value, div(most, size)));
  q[(u64)blockIdx.x * GROUP + threadIdx.x] = quantum;
  if (threadIdx.x == 0) scales[blockIdx.x] = vanishing ? 0.0f : div(size, most);
}

extern "C" __global__ void quantize(const float *rows, const float *pre, u32 width, u32 groups, i8 *q, float *scales,
                                    u32 *faults) {
  quantize_as(rows, pre, width, groups, 127.0f, q, scales, faults);
}

extern "C" __global__ void quantize12(const float *rows, const float *pre, u32 width, u32 groups, i16 *q, float *scales,
                                      u32 *faults) {
  quantize_as(rows, pre, width, groups, INT12_MAX, q, scales, faults);
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

// A row of a quantized table per token: quantum * scale. `scales` is [groups][stride].
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

// Copies rows of `width` pairs of bytes; from one row to the next it is so many pairs on either side.
extern "C" __global__ void copy(const i16 *from, u64 from_stride, u64 width, u64 rows, i16 *into, u64 into_at,
                                u64 into_stride) {
  u64 index = thread_index();
  if (index >= rows * width) return;
  into[into_at + index / width * into_stride + index % width] = from[index / width * from_stride + index % width];
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

// exact::quantize_heads, a block of threads per head: `rows` and `q` are [][head_dim], `scales` [].
extern "C" __global__ void quantize_heads(const float *rows, u32 head_dim, i16 *q, float *scales, u32 *faults) {
  __shared__ u32 largest;
  const float *head = rows + (u64)blockIdx.x * head_dim;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  for (u32 d = threadIdx.x; d < head_dim; d += BLOCK) {
    expect_finite(head[d], faults);
    atomicMax(&largest, __float_as_uint(head[d]) & 0x7fffffffu);
  }
  __syncthreads();
  float size = __uint_as_float(largest);
  bool vanishing = size < VANISHING;
  for (u32 d = threadIdx.x; d < head_dim; d += BLOCK) {
    q[(u64)blockIdx.x * head_dim + d] = vanishing ? 0 : (i16)nearest(mul(head[d], div(INT12_MAX, size)));
  }
  if (threadIdx.x == 0) scales[blockIdx.x] = vanishing ? 0.0f : div(size, INT12_MAX);
}

// Puts rows of quantized heads, from row `from` on, at positions from `at`. Keys are kept [kv_head][pair of
// elements][position], as `score` reads them with neighboring threads at neighboring positions; values
// [kv_head][position][d], as `mix` does; scales [kv_head][position].
extern "C" __global__ void append(const i16 *keys, const float *key_scales, const i16 *values,
                                  const float *value_scales, int *kept_keys, float *kept_key_scales,
                                  i16 *kept_values, float *kept_value_scales, u32 from, u32 at, u32 count,
                                  u32 kv_heads, u32 head_dim, u32 capacity) {
  u64 index = thread_index();
  if (index >= (u64)count * kv_heads * head_dim) return;
  u32 d = index % head_dim;
  u32 head = index / head_dim % kv_heads;
  u32 position = at + (u32)(index / head_dim / kv_heads);
  index += (u64)from * kv_heads * head_dim;
  u64 cell = index / head_dim;
  kept_values[((u64)head * capacity + position) * head_dim + d] = values[index];
  if (d % 2 == 0) {
    u32 second = d + 1 < head_dim ? (u32)(int)keys[index + 1] : 0u;
    u32 pair = ((u32)(int)keys[index] & 0xffffu) | second << 16;
    kept_keys[((u64)head * ((head_dim + 1) / 2) + d / 2) * capacity + position] = (int)pair;
  }
  if (d == 0) {
    kept_key_scales[(u64)head * capacity + position] = key_scales[cell];
    kept_value_scales[(u64)head * capacity + position] = value_scales[cell];
  }
}

// Which positions a query row sees: `spans[row]`, or from 0 to `first + row * step`.
__device__ __forceinline__ void span(const u32 *spans, u32 first, u32 step, u32 row, u32 *start, u32 *end) {
  *start = spans ? spans[2 * (u64)row] : 0;
  *end = spans ? spans[2 * (u64)row + 1] : first + row * step;
}

// exact::score_cell: a thread per position, a block row per head and query row. `row` counts from `base`, at
// which the rows of this launch begin. `scores` is [rows of the launch][heads][reach].
extern "C" __global__ void score(const i16 *queries, const float *query_scales, const int *keys,
                                 const float *key_scales, const u32 *spans, u32 first, u32 step, u32 base, u32 heads,
                                 u32 kv_heads, u32 head_dim, u32 capacity, u32 reach, float scale, float *scores) {
  u32 j = blockIdx.x * blockDim.x + threadIdx.x;
  u32 head = blockIdx.y;
  u32 row = base + blockIdx.z;
  u32 start, end;
  span(spans, first, step, row, &start, &end);
  if (j >= end - start) return;
  u64 cell = (u64)row * heads + head;
  const i16 *query = queries + cell * head_dim;
  u64 kv_head = head / (heads / kv_heads);
  const int *key = keys + kv_head * ((head_dim + 1) / 2) * capacity + start + j;
  u32 sum = 0;
  for (u32 d = 0; d < head_dim; d += 2) {
    u32 pair = (u32)key[(u64)(d / 2) * capacity];
    sum += (u32)((int)query[d] * (int)(i16)(pair & 0xffffu));
    // The second of the last pair may be nobody's.
    if (d + 1 < head_dim) sum += (u32)((int)query[d + 1] * (int)(i16)(pair >> 16));
  }
  float by = mul(mul(query_scales[cell], scale), key_scales[kv_head * capacity + start + j]);
  scores[((u64)blockIdx.z * heads + head) * reach + j] = mul(__int2float_rn((int)sum), by);
}

// exact::softmax_block: a block of threads per block of BLOCK positions, head and query row. Scores become
// quantized weights in place. `stats` is [rows of the launch][heads][blocks of the reach][largest, total,
// scale of the weights].
extern "C" __global__ void softmax(float *scores, const float *value_scales, const u32 *spans, u32 first, u32 step,
                                   u32 base, u32 heads, u32 kv_heads, u32 capacity, u32 reach, float *stats,
                                   u32 *faults) {
  __shared__ float shared[BLOCK];
  __shared__ u32 size_bits;
  u32 head = blockIdx.y;
  u32 start, end;
  span(spans, first, step, base + blockIdx.z, &start, &end);
  u32 j = blockIdx.x * BLOCK + threadIdx.x;
  // The whole block of threads.
  if (blockIdx.x * BLOCK >= end - start) return;
  bool seen = j < end - start;
  u64 cell = (u64)blockIdx.z * heads + head;
  float *at = scores + cell * reach + j;
  float value = seen ? *at : LEAST;
  expect_finite(value, faults);
  shared[threadIdx.x] = value;
  if (threadIdx.x == 0) size_bits = 0;
  for (u32 half = BLOCK / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && shared[threadIdx.x + half] > shared[threadIdx.x]) {
      shared[threadIdx.x] = shared[threadIdx.x + half];
    }
  }
  __syncthreads();
  float largest = shared[0];
  __syncthreads();
  // A sum that ends in zeros is the same sum.
  float weight = seen ? exponential(sub(value, largest)) : 0.0f;
  shared[threadIdx.x] = weight;
  __syncthreads();
  if (threadIdx.x < LANES) {
    float sum = 0.0f;
    for (u32 lane = threadIdx.x; lane < BLOCK; lane += LANES) sum = add(sum, shared[lane]);
    shared[threadIdx.x] = sum;
  }
  float total = fold(shared, threadIdx.x);
  u64 kv_head = head / (heads / kv_heads);
  if (seen) weight = mul(weight, value_scales[kv_head * capacity + start + j]);
  atomicMax(&size_bits, __float_as_uint(weight));
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
extern "C" __global__ void mix(const int *weights, const float *stats, const i16 *values, const u32 *spans, u32 first,
                               u32 step, u32 base, u32 count, u32 heads, u32 kv_heads, u32 head_dim, u32 capacity,
                               u32 reach, float *out, u32 *faults) {
  u64 index = thread_index();
  if (index >= (u64)count * heads * head_dim) return;
  u32 d = index % head_dim;
  u64 cell = index / head_dim;
  u32 head = cell % heads;
  u32 start, end;
  span(spans, first, step, base + (u32)(cell / heads), &start, &end);
  const int *weight = weights + cell * reach;
  const float *of = stats + cell * ((reach + BLOCK - 1) / BLOCK) * 3;
  const i16 *value = values + ((u64)(head / (heads / kv_heads)) * capacity + start) * head_dim + d;
  float largest = LEAST, total = 0.0f, sum = 0.0f;
  for (u32 from = 0; from < end - start; from += BLOCK, of += 3) {
    u32 to = end - start - from < BLOCK ? end - start : from + BLOCK;
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

// exact::l2_normalize, a block per row, of which the first LANES threads add up the squares.
extern "C" __global__ void l2_normalize(float *rows, u32 width, u32 *faults) {
  __shared__ float partial[LANES];
  float *row = rows + (u64)blockIdx.x * width;
  if (threadIdx.x < LANES) {
    float sum = 0.0f;
    for (u32 j = threadIdx.x; j < width; j += LANES) sum = add(sum, mul(row[j], row[j]));
    partial[threadIdx.x] = sum;
  }
  float squares = fold(partial, threadIdx.x);
  if (threadIdx.x == 0) {
    expect_finite(squares, faults);
    if (squares == 0.0f) atomicOr(faults, ZERO_NORM);
  }
  float norm = root(squares);
  for (u32 j = threadIdx.x; j < width; j += BLOCK) {
    float value = div(row[j], norm);
    // Zeros are a fault of their own.
    if (norm != 0.0f) expect_finite(value, faults);
    row[j] = value;
  }
}
