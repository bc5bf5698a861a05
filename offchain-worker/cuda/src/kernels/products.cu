// --- Products on tensor cores

struct __align__(16) Quad {
  int a, b, c, d;
};

// Steps of a group in which the four lanes of a row hold 16 bytes each.
#define STEPS(Q) (GROUP * sizeof(Q) / (4 * sizeof(Quad)))

// Byte by byte, the first and third of `x`, then those of `y`.
__device__ __forceinline__ int even_bytes(u32 x, u32 y) { return (int)__byte_perm(x, y, 0x6420); }

__device__ __forceinline__ Quad limbs(Quad of, const i8 *) { return of; }

// Eight numbers of 14 bits as v = 64 h + l: two words of each, h first.
__device__ __forceinline__ Quad limbs(Quad of, const i16 *) {
  Quad out;
  out.a = even_bytes((u32)of.a >> 6, (u32)of.b >> 6);
  out.b = even_bytes((u32)of.c >> 6, (u32)of.d >> 6);
  out.c = even_bytes((u32)of.a, (u32)of.b) & 0x3f3f3f3f;
  out.d = even_bytes((u32)of.c, (u32)of.d) & 0x3f3f3f3f;
  return out;
}

// What a lane holds of a group of a row.
template <typename Q>
__device__ __forceinline__ Quad quad(const Q *row, u32 group, u32 step, u32 lane) {
  return limbs(((const Quad *)(row + (u64)group * GROUP))[4 * step + lane % 4], row);
}

// Of rows that are not there the last one takes the place: what comes of it is not kept.
__device__ __forceinline__ u32 row_of(u32 row, u32 rows) { return row < rows ? row : rows - 1; }

// exact::dot of 16 outputs and 8 rows, or of their limbs: a lane has four, as multiply_add spreads them.
template <typename Q>
struct Dots;

template <>
struct Dots<i8> {
  int all[4];
};

template <>
struct Dots<i16> {
  int high[4], middle[4], low[4];
};

__device__ __forceinline__ void clear(Dots<i8> *dots) {
#pragma unroll
  for (u32 i = 0; i < 4; i++) dots->all[i] = 0;
}

__device__ __forceinline__ void clear(Dots<i16> *dots) {
#pragma unroll
  for (u32 i = 0; i < 4; i++) dots->high[i] = dots->middle[i] = dots->low[i] = 0;
}

// Adds what a step gives: outputs `g` and `g + 8` of lane 4g + t, and row `g`.
__device__ __forceinline__ void step(Dots<i8> *dots, Quad low, Quad high, Quad row) {
  u32 first[4] = {(u32)low.a, (u32)high.a, (u32)low.b, (u32)high.b}, by_first[2] = {(u32)row.a, (u32)row.b};
  u32 second[4] = {(u32)low.c, (u32)high.c, (u32)low.d, (u32)high.d}, by_second[2] = {(u32)row.c, (u32)row.d};
  multiply_add(dots->all, first, by_first);
  multiply_add(dots->all, second, by_second);
}

__device__ __forceinline__ void step(Dots<i16> *dots, Quad low, Quad high, Quad row) {
  u32 h[4] = {(u32)low.a, (u32)high.a, (u32)low.b, (u32)high.b}, by_h[2] = {(u32)row.a, (u32)row.b};
  u32 l[4] = {(u32)low.c, (u32)high.c, (u32)low.d, (u32)high.d}, by_l[2] = {(u32)row.c, (u32)row.d};
  multiply_add(dots->high, h, by_h);
  multiply_add(dots->middle, h, by_l);
  multiply_add(dots->middle, l, by_h);
  multiply_add(dots->low, l, by_l);
}

__device__ __forceinline__ int dot_of(const Dots<i8> &dots, u32 i) { return dots.all[i]; }

__device__ __forceinline__ int dot_of(const Dots<i16> &dots, u32 i) {
  return (int)(((u32)dots.high[i] << 12) + ((u32)dots.middle[i] << 6) + (u32)dots.low[i]);
}

// A group's dot product as a float. Of int8 it is at most 2^21: its mantissa is the integer, and a
// subtraction is faster than a conversion.
__device__ __forceinline__ float as_float(int dot, const i8 *) {
  return sub(__uint_as_float(__float_as_uint(ROUNDER) + (u32)dot), ROUNDER);
}

__device__ __forceinline__ float as_float(int dot, const i16 *) { return __int2float_rn(dot); }

// Outputs of a matrix are padded to a multiple of this.
#define PIECE_OUTPUTS 16
#define PIECE_ROWS 8

// `weights` is [outputs][groups * GROUP], `scales` [groups][padded outputs], `out` [rows][outputs].
template <typename Q>
struct Matrix {
  const Q *weights;
  const float *scales, *bias;
  float *out;
  u32 outputs;
};

// Up to three products of the same rows are one launch; those that are absent have no outputs.
#define MATRICES(Q)                                                                   \
  const Q *w0, const float *t0, const float *bias0, float *out0, u32 outputs0,        \
      const Q *w1, const float *t1, const float *bias1, float *out1, u32 outputs1,    \
      const Q *w2, const float *t2, const float *bias2, float *out2, u32 outputs2
#define GIVEN(Q)                                                                      \
  Matrix<Q>{w0, t0, bias0, out0, outputs0},                                           \
      Matrix<Q>{w1, t1, bias1, out1, outputs1},                                       \
      Matrix<Q>{w2, t2, bias2, out2, outputs2}

// Which one the block `*tile` is of, if each block has `size` outputs; then `*tile` counts from that one's
// first.
template <typename Q>
__device__ __forceinline__ Matrix<Q> matrix_of(u32 *tile, u32 size, Matrix<Q> first, Matrix<Q> second,
                                               Matrix<Q> third) {
  u32 tiles = (first.outputs + size - 1) / size;
  if (*tile < tiles) return first;
  *tile -= tiles;
  tiles = (second.outputs + size - 1) / size;
  if (*tile < tiles) return second;
  *tile -= tiles;
  return third;
}

template <typename Q>
__device__ __forceinline__ u32 padded(const Matrix<Q> &matrix) {
  return (matrix.outputs + PIECE_OUTPUTS - 1) / PIECE_OUTPUTS * PIECE_OUTPUTS;
}

template <typename Q>
__device__ __forceinline__ void finish(const Matrix<Q> &matrix, u32 row, u32 output, float sum, u32 *faults) {
  sum = add(sum, matrix.bias ? matrix.bias[output] : 0.0f);
  expect_finite(sum, faults);
  matrix.out[(u64)row * matrix.outputs + output] = sum;
}

// exact::product_cell, for few rows: reading the weights is all the work. A block has PIECE_OUTPUTS outputs
// and FEW_ROWS rows; each of its warps takes another group, and then each thread adds the groups up for one
// output and row. `q` is [rows][groups * GROUP], `s` [rows][groups].
#define FEW_ROWS 16
#define FEW_WARPS 8
// From a row of shared memory to the next, so that a warp writes to all banks.
#define PITCH (PIECE_OUTPUTS + 4)

template <typename Q>
__device__ __forceinline__ void product_few_as(const Q *q, const float *s, u32 rows, u32 groups, Matrix<Q> first,
                                               Matrix<Q> second, Matrix<Q> third, u32 *faults) {
  // Two, so that one may be read while the other is written.
  __shared__ int shared[2][FEW_WARPS][FEW_ROWS * PITCH];
  u32 lane = threadIdx.x % LANES;
  u32 warp = threadIdx.x / LANES;
  u32 row_tiles = (rows + FEW_ROWS - 1) / FEW_ROWS;
  u32 tile = blockIdx.x / row_tiles;
  u32 row = blockIdx.x % row_tiles * FEW_ROWS;
  Matrix<Q> matrix = matrix_of(&tile, PIECE_OUTPUTS, first, second, third);
  u32 output = tile * PIECE_OUTPUTS;
  u32 stride = padded(matrix);
  u64 width = (u64)groups * GROUP;
  const Q *low = matrix.weights + (output + lane / 4) * width;
  const Q *high = low + 8 * width;
  const Q *x[FEW_ROWS / PIECE_ROWS];
#pragma unroll
  for (u32 n = 0; n < FEW_ROWS / PIECE_ROWS; n++) x[n] = q + row_of(row + n * PIECE_ROWS + lane / 4, rows) * width;
  u32 own_output = output + threadIdx.x % PIECE_OUTPUTS;
  u32 own_row = row + threadIdx.x / PIECE_OUTPUTS;
  u32 own = threadIdx.x / PIECE_OUTPUTS * PITCH + threadIdx.x % PIECE_OUTPUTS;
  float sum = 0.0f;
  u32 turn = 0;
  for (u32 from = 0; from < groups; from += FEW_WARPS) {
    float scales[FEW_WARPS];
#pragma unroll
    for (u32 i = 0; i < FEW_WARPS; i++) {
      bool there = own_row < rows && from + i < groups;
      scales[i] = there ? mul(s[(u64)own_row * groups + from + i], matrix.scales[(u64)(from + i) * stride + own_output])
                        : 0.0f;
    }
    u32 group = from + warp;
    if (group < groups) {
      Dots<Q> dots[FEW_ROWS / PIECE_ROWS];
#pragma unroll
      for (u32 n = 0; n < FEW_ROWS / PIECE_ROWS; n++) clear(&dots[n]);
#pragma unroll
      for (u32 k = 0; k < STEPS(Q); k++) {
        Quad a = quad(low, group, k, lane);
        Quad b = quad(high, group, k, lane);
#pragma unroll
        for (u32 n = 0; n < FEW_ROWS / PIECE_ROWS; n++) {
          if (row + n * PIECE_ROWS < rows) step(&dots[n], a, b, quad(x[n], group, k, lane));
        }
      }
#pragma unroll
      for (u32 n = 0; n < FEW_ROWS / PIECE_ROWS; n++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          u32 at = (n * PIECE_ROWS + 2 * (lane % 4) + i % 2) * PITCH + lane / 4 + i / 2 * 8;
          shared[turn][warp][at] = dot_of(dots[n], i);
        }
      }
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < FEW_WARPS; i++) {
      if (from + i < groups) sum = add(sum, mul(as_float(shared[turn][i][own], q), scales[i]));
    }
    turn ^= 1;
  }
  if (own_row < rows && own_output < matrix.outputs) finish(matrix, own_row, own_output, sum, faults);
}

extern "C" __global__ void product_few(const i8 *q, const float *s, u32 rows, u32 groups, MATRICES(i8), u32 *faults) {
  product_few_as(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __global__ void product_few12(const i16 *q, const float *s, u32 rows, u32 groups, MATRICES(i16),
                                         u32 *faults) {
  product_few_as(q, s, rows, groups, GIVEN(i16), faults);
}

// exact::product_cell, for many rows: each of four warps has 64 outputs and 32 rows, and all of their sums in
// registers. Warps share what they read in the cache, and wait for nobody.
#define MANY_OUTPUTS 128
#define MANY_ROWS 64
#define PIECES 4

template <typename Q>
__device__ __forceinline__ void product_many_as(const Q *q, const float *s, u32 rows, u32 groups, Matrix<Q> first,
                                                Matrix<Q> second, Matrix<Q> third, u32 *faults) {
  u32 lane = threadIdx.x % LANES;
  u32 warp = threadIdx.x / LANES;
  u32 row_tiles = (rows + MANY_ROWS - 1) / MANY_ROWS;
  u32 tile = blockIdx.x / row_tiles;
  u32 row = blockIdx.x % row_tiles * MANY_ROWS + warp / 2 * PIECES * PIECE_ROWS;
  Matrix<Q> matrix = matrix_of(&tile, MANY_OUTPUTS, first, second, third);
  u32 output = tile * MANY_OUTPUTS + warp % 2 * PIECES * PIECE_OUTPUTS;
  // The whole warp.
  if (row >= rows || output >= matrix.outputs) return;
  u32 stride = padded(matrix);
  u64 width = (u64)groups * GROUP;
  const Q *w = matrix.weights + (output + lane / 4) * width;
  const Q *x[PIECES];
#pragma unroll
  for (u32 n = 0; n < PIECES; n++) x[n] = q + row_of(row + n * PIECE_ROWS + lane / 4, rows) * width;
  float sums[PIECES][PIECES][4];
#pragma unroll
  for (u32 m = 0; m < PIECES; m++) {
#pragma unroll
    for (u32 n = 0; n < PIECES; n++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
    }
  }
  for (u32 group = 0; group < groups; group++) {
    Quad of[PIECES][STEPS(Q)];
    float of_scales[PIECES][2];
#pragma unroll
    for (u32 n = 0; n < PIECES; n++) {
#pragma unroll
      for (u32 k = 0; k < STEPS(Q); k++) of[n][k] = quad(x[n], group, k, lane);
#pragma unroll
      for (u32 i = 0; i < 2; i++) {
        u32 own = row_of(row + n * PIECE_ROWS + 2 * (lane % 4) + i, rows);
        of_scales[n][i] = s[(u64)own * groups + group];
      }
    }
#pragma unroll
    for (u32 m = 0; m < PIECES; m++) {
      u32 above = m * PIECE_OUTPUTS;
      if (output + above < matrix.outputs) {
        Quad low[STEPS(Q)], high[STEPS(Q)];
#pragma unroll
        for (u32 k = 0; k < STEPS(Q); k++) {
          low[k] = quad(w + above * width, group, k, lane);
          high[k] = quad(w + (above + 8) * width, group, k, lane);
        }
        const float *scales = matrix.scales + (u64)group * stride + output + above + lane / 4;
        float by_scales[2] = {scales[0], scales[8]};
#pragma unroll
        for (u32 n = 0; n < PIECES; n++) {
          if (row + n * PIECE_ROWS < rows) {
            Dots<Q> dots;
            clear(&dots);
#pragma unroll
            for (u32 k = 0; k < STEPS(Q); k++) step(&dots, low[k], high[k], of[n][k]);
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
              float scale = mul(of_scales[n][i % 2], by_scales[i / 2]);
              sums[m][n][i] = add(sums[m][n][i], mul(as_float(dot_of(dots, i), q), scale));
            }
          }
        }
      }
    }
  }
#pragma unroll
  for (u32 m = 0; m < PIECES; m++) {
#pragma unroll
    for (u32 n = 0; n < PIECES; n++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        u32 own_row = row + n * PIECE_ROWS + 2 * (lane % 4) + i % 2;
        u32 own_output = output + m * PIECE_OUTPUTS + lane / 4 + i / 2 * 8;
        if (own_row < rows && own_output < matrix.outputs) {
          finish(matrix, own_row, own_output, sums[m][n][i], faults);
        }
      }
    }
  }
}

extern "C" __global__ void product_many(const i8 *q, const float *s, u32 rows, u32 groups, MATRICES(i8), u32 *faults) {
  product_many_as(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __global__ void product_many12(const i16 *q, const float *s, u32 rows, u32 groups, MATRICES(i16),
                                          u32 *faults) {
  product_many_as(q, s, rows, groups, GIVEN(i16), faults);
}

// --- Products through memory: by the vendor's library, or of numbers that tensor cores do not take

// Activation rows that share one read of a weight.
#define TILE 8

// What four bytes of two rows add to a dot product, modulo 2^32.
__device__ __forceinline__ int part(int a, int b, int sum, const i8 *) { return dot4(a, b, sum); }

__device__ __forceinline__ int part(int a, int b, int sum, const i16 *) {
  int low = (int)(i16)(a & 0xffff) * (int)(i16)(b & 0xffff);
  int high = (int)(i16)((u32)a >> 16) * (int)(i16)((u32)b >> 16);
  return (int)((u32)sum + (u32)low + (u32)high);
}

// exact::dot of every group, by ordinary instructions, modulo 2^32 whatever the numbers are. A thread per
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

// --- Tables

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
