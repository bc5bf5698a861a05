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

// exact::dot of 16 outputs and 8 rows: a lane has four, as multiply_add spreads them.
template <typename Q>
struct Dots {
  int all[4];
};

template <typename Q>
__device__ __forceinline__ void fill(Dots<Q> *dots, int with) {
#pragma unroll
  for (u32 i = 0; i < 4; i++) dots->all[i] = with;
}

template <typename Q>
__device__ __forceinline__ void clear(Dots<Q> *dots) {
  fill(dots, 0);
}

// Adds half of what a step gives: outputs `g` and `g + 8` of lane 4g + t, and row `g`. Who has several pieces
// adds one half to all of them before the other, so that no instruction waits for the one before it.
__device__ __forceinline__ void half_step(Dots<i8> *dots, Quad low, Quad high, Quad row, u32 half) {
  u32 first[4] = {(u32)low.a, (u32)high.a, (u32)low.b, (u32)high.b}, by_first[2] = {(u32)row.a, (u32)row.b};
  u32 second[4] = {(u32)low.c, (u32)high.c, (u32)low.d, (u32)high.d}, by_second[2] = {(u32)row.c, (u32)row.d};
  if (half == 0) {
    multiply_add(dots->all, first, by_first);
  } else {
    multiply_add(dots->all, second, by_second);
  }
}

// Of limbs: four products, all of them at once.
__device__ __forceinline__ void half_step(Dots<i16> *dots, Quad low, Quad high, Quad row, u32 half) {
  if (half != 0) return;
  u32 h[4] = {(u32)low.a, (u32)high.a, (u32)low.b, (u32)high.b}, by_h[2] = {(u32)row.a, (u32)row.b};
  u32 l[4] = {(u32)low.c, (u32)high.c, (u32)low.d, (u32)high.d}, by_l[2] = {(u32)row.c, (u32)row.d};
  int highest[4] = {0, 0, 0, 0}, middle[4] = {0, 0, 0, 0};
  multiply_add(highest, h, by_h);
  multiply_add(middle, h, by_l);
  multiply_add(dots->all, l, by_l);
  multiply_add(middle, l, by_h);
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    dots->all[i] = (int)((u32)dots->all[i] + ((u32)highest[i] << 12) + ((u32)middle[i] << 6));
  }
}

template <typename Q>
__device__ __forceinline__ void step(Dots<Q> *dots, Quad low, Quad high, Quad row) {
  half_step(dots, low, high, row, 0);
  half_step(dots, low, high, row, 1);
}

// Before a group's first step. A group's dot product of int8 is at most 2^21: counted from ROUNDER's bits on
// it is the mantissa of a float, and a subtraction is faster than a conversion.
__device__ __forceinline__ void begin_group(Dots<i8> *dots) { fill(dots, (int)__float_as_uint(ROUNDER)); }

__device__ __forceinline__ void begin_group(Dots<i16> *dots) { clear(dots); }

// After its last one, as a float.
__device__ __forceinline__ float group_dot(const Dots<i8> &dots, u32 i) {
  return sub(__uint_as_float((u32)dots.all[i]), ROUNDER);
}

__device__ __forceinline__ float group_dot(const Dots<i16> &dots, u32 i) { return __int2float_rn(dots.all[i]); }

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

// exact::product_cell, for few rows: reading the weights is all the work, and as much as possible of it has
// to be under way at once. A block has PIECE_OUTPUTS outputs and PIECES times PIECE_ROWS rows. Each of its
// warps takes another group, and reads its next one before it computes; then each thread adds the groups up
// for one output and row. `q` is [rows][groups * GROUP], `s` [rows][groups]. Groups that are in shared memory
// before they are added up, if there is one piece of rows.
#define FEW_GROUPS 48
// From a row of shared memory to the next, so that a warp writes to all banks.
#define PITCH (PIECE_OUTPUTS + 4)

// What a lane holds of a group: of two outputs, of a row of each piece, and the scales of its cells.
template <typename Q, u32 PIECES>
struct Held {
  Quad low[STEPS(Q)], high[STEPS(Q)], of[PIECES][STEPS(Q)];
  float by_scales[2], of_scales[PIECES][2];
};

template <typename Q, u32 PIECES>
__device__ __forceinline__ void product_few_as(const Q *q, const float *s, u32 rows, u32 groups, Matrix<Q> first,
                                               Matrix<Q> second, Matrix<Q> third, u32 *faults) {
  constexpr u32 ROWS = PIECES * PIECE_ROWS, ROUND = FEW_GROUPS / PIECES;
  __shared__ float terms[ROUND][ROWS * PITCH];
  u32 lane = threadIdx.x % LANES;
  u32 warp = threadIdx.x / LANES;
  u32 warps = blockDim.x / LANES;
  u32 row_tiles = (rows + ROWS - 1) / ROWS;
  u32 tile = blockIdx.x / row_tiles;
  u32 row = blockIdx.x % row_tiles * ROWS;
  Matrix<Q> matrix = matrix_of(&tile, PIECE_OUTPUTS, first, second, third);
  u32 output = tile * PIECE_OUTPUTS;
  u32 stride = padded(matrix);
  u64 width = (u64)groups * GROUP;
  // The lane's own 16 bytes of each step.
  const Quad *low = (const Quad *)(matrix.weights + (output + lane / 4) * width) + lane % 4;
  const Quad *high = (const Quad *)(matrix.weights + (output + lane / 4 + 8) * width) + lane % 4;
  const float *by_scales = matrix.scales + output + lane / 4;
  const Quad *of[PIECES];
  const float *of_scales[PIECES][2];
#pragma unroll
  for (u32 n = 0; n < PIECES; n++) {
    u32 above = row + n * PIECE_ROWS;
    of[n] = (const Quad *)(q + row_of(above + lane / 4, rows) * width) + lane % 4;
#pragma unroll
    for (u32 i = 0; i < 2; i++) of_scales[n][i] = s + (u64)row_of(above + 2 * (lane % 4) + i, rows) * groups;
  }
  auto read = [&](Held<Q, PIECES> *held, u32 group) {
#pragma unroll
    for (u32 k = 0; k < STEPS(Q); k++) {
      u32 at = (group * STEPS(Q) + k) * 4;
      held->low[k] = read_once(low + at);
      held->high[k] = read_once(high + at);
#pragma unroll
      for (u32 n = 0; n < PIECES; n++) held->of[n][k] = of[n][at];
    }
#pragma unroll
    for (u32 i = 0; i < 2; i++) {
      held->by_scales[i] = by_scales[(u64)group * stride + 8 * i];
#pragma unroll
      for (u32 n = 0; n < PIECES; n++) held->of_scales[n][i] = of_scales[n][i][group];
    }
  };
  u32 own = threadIdx.x / PIECE_OUTPUTS * PITCH + threadIdx.x % PIECE_OUTPUTS;
  float sum = 0.0f;
  Held<Q, PIECES> next;
  u32 group = warp;
  if (group < groups) read(&next, group);
  for (u32 from = 0; from < groups; from += ROUND) {
    u32 end = from + ROUND < groups ? from + ROUND : groups;
    // Who adds up reads what was there before.
    if (from != 0) __syncthreads();
    for (; group < end; group += warps) {
      Held<Q, PIECES> held = next;
      if (group + warps < groups) read(&next, group + warps);
      Dots<Q> dots[PIECES];
#pragma unroll
      for (u32 n = 0; n < PIECES; n++) begin_group(&dots[n]);
#pragma unroll
      for (u32 k = 0; k < STEPS(Q); k++) {
        Quad a = limbs(held.low[k], q);
        Quad b = limbs(held.high[k], q);
#pragma unroll
        for (u32 n = 0; n < PIECES; n++) step(&dots[n], a, b, limbs(held.of[n][k], q));
      }
#pragma unroll
      for (u32 n = 0; n < PIECES; n++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          u32 at = (n * PIECE_ROWS + 2 * (lane % 4) + i % 2) * PITCH + lane / 4 + i / 2 * 8;
          float scale = mul(held.of_scales[n][i % 2], held.by_scales[i / 2]);
          terms[group - from][at] = mul(group_dot(dots[n], i), scale);
        }
      }
    }
    __syncthreads();
    if (threadIdx.x < ROWS * PIECE_OUTPUTS) {
#pragma unroll 8
      for (u32 i = 0; i < end - from; i++) sum = add(sum, terms[i][own]);
    }
  }
  u32 own_row = row + threadIdx.x / PIECE_OUTPUTS;
  u32 own_output = output + threadIdx.x % PIECE_OUTPUTS;
  bool there = threadIdx.x < ROWS * PIECE_OUTPUTS && own_row < rows && own_output < matrix.outputs;
  if (there) finish(matrix, own_row, own_output, sum, faults);
}

// exact::product_cell, for many rows. A block has OUTPUTS outputs and ROWS rows, ACROSS times DOWN warps, and
// each of those M pieces of outputs by N of rows, with all of their sums in registers. What they read comes
// through shared memory, K steps of a group at a time, and is asked for long before: there is room for STAGES
// such parts of the rows, and one more of the weights, which come from farther away.
template <typename Q, u32 ACROSS, u32 DOWN, u32 M, u32 N, u32 K, u32 STAGES>
__device__ __forceinline__ void product_tile_as(const Q *q, const float *s, u32 rows, u32 groups, Matrix<Q> first,
                                                Matrix<Q> second, Matrix<Q> third, u32 *faults) {
  constexpr u32 OUTPUTS = ACROSS * M * PIECE_OUTPUTS, ROWS = DOWN * N * PIECE_ROWS;
  constexpr u32 THREADS = ACROSS * DOWN * LANES;
  // Parts of a group; and how much of a part a thread copies, 16 bytes each time.
  constexpr u32 PARTS = STEPS(Q) / K;
  constexpr u32 OUTPUT_COPIES = OUTPUTS * K * 4 / THREADS, ROW_COPIES = ROWS * K * 4 / THREADS;
  static_assert(PARTS * K == STEPS(Q) && OUTPUTS + ROWS <= THREADS, "a tile that does not work out");
  static_assert(OUTPUT_COPIES * THREADS == OUTPUTS * K * 4 && ROW_COPIES * THREADS == ROWS * K * 4, "nor this");
  // Of a step, 64 bytes of each output or row, one behind the other: a warp reads pieces as they lie.
  __shared__ Quad weights[STAGES + 1][K][OUTPUTS * 4];
  __shared__ Quad of[STAGES][K][ROWS * 4];
  // Those of the outputs, then those of the rows.
  __shared__ float scales[STAGES][OUTPUTS + ROWS];
  u32 lane = threadIdx.x % LANES;
  u32 warp = threadIdx.x / LANES;
  u32 row_tiles = (rows + ROWS - 1) / ROWS;
  u32 tile = blockIdx.x / row_tiles;
  u32 row = blockIdx.x % row_tiles * ROWS;
  Matrix<Q> matrix = matrix_of(&tile, OUTPUTS, first, second, third);
  u32 output = tile * OUTPUTS;
  u32 stride = padded(matrix);
  u64 width = (u64)groups * GROUP;
  u32 parts = groups * PARTS;
  // Where this thread copies from, and where to.
  const Quad *weights_from[OUTPUT_COPIES], *of_from[ROW_COPIES];
  u32 weights_to[OUTPUT_COPIES], of_to[ROW_COPIES];
#pragma unroll
  for (u32 i = 0; i < OUTPUT_COPIES; i++) {
    u32 at = i * THREADS + threadIdx.x, own = at / (4 * K), quad = at % (4 * K);
    weights_from[i] = (const Quad *)(matrix.weights + row_of(output + own, stride) * width) + quad;
    weights_to[i] = quad / 4 * OUTPUTS * 4 + own * 4 + quad % 4;
  }
#pragma unroll
  for (u32 i = 0; i < ROW_COPIES; i++) {
    u32 at = i * THREADS + threadIdx.x, own = at / (4 * K), quad = at % (4 * K);
    of_from[i] = (const Quad *)(q + row_of(row + own, rows) * width) + quad;
    of_to[i] = quad / 4 * ROWS * 4 + own * 4 + quad % 4;
  }
  bool is_output = threadIdx.x < OUTPUTS;
  const float *scale_from = is_output ? matrix.scales + row_of(output + threadIdx.x, stride)
                                      : s + (u64)row_of(row + threadIdx.x - OUTPUTS, rows) * groups;
  u32 scale_step = is_output ? stride : 1;
  auto ask_for_weights = [&](u32 part, u32 stage) {
    if (part < parts) {
#pragma unroll
      for (u32 i = 0; i < OUTPUT_COPIES; i++) {
        begin_copy(&weights[stage][0][weights_to[i]], weights_from[i] + part * (4 * K));
      }
    }
    end_of_copies();
  };
  auto ask_for_rows = [&](u32 part, u32 stage) {
    if (part < parts) {
#pragma unroll
      for (u32 i = 0; i < ROW_COPIES; i++) begin_copy(&of[stage][0][of_to[i]], of_from[i] + part * (4 * K));
      u32 group = part / PARTS;
      if (part % PARTS == 0 && threadIdx.x < OUTPUTS + ROWS) {
        begin_copy(&scales[group % STAGES][threadIdx.x], scale_from + (u64)group * scale_step);
      }
    }
    end_of_copies();
  };
  // The warp's own.
  u32 across = warp % ACROSS * M * PIECE_OUTPUTS, down = warp / ACROSS * N * PIECE_ROWS;
  bool there = output + across < matrix.outputs && row + down < rows;
  float sums[M][N][4];
#pragma unroll
  for (u32 m = 0; m < M; m++) {
#pragma unroll
    for (u32 n = 0; n < N; n++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
    }
  }
  ask_for_weights(0, 0);
#pragma unroll
  for (u32 part = 0; part < STAGES - 1; part++) {
    ask_for_rows(part, part);
    ask_for_weights(part + 1, part + 1);
  }
  // Where the next part is, and where there is room for more of them.
  u32 weights_at = 0, of_at = 0, weights_room = STAGES, of_room = STAGES - 1;
  for (u32 group = 0; group < groups; group++) {
    Dots<Q> dots[M][N];
#pragma unroll
    for (u32 m = 0; m < M; m++) {
#pragma unroll
      for (u32 n = 0; n < N; n++) begin_group(&dots[m][n]);
    }
#pragma unroll 1
    for (u32 p = 0; p < PARTS; p++) {
      u32 part = group * PARTS + p;
      // All but what was asked for after this part of the rows.
      await_copies<2 * STAGES - 3>();
      // Of all threads; and none reads any more what was there before.
      __syncthreads();
      ask_for_rows(part + STAGES - 1, of_room);
      ask_for_weights(part + STAGES, weights_room);
      if (there) {
#pragma unroll
        for (u32 k = 0; k < K; k++) {
          const Quad *a = &weights[weights_at][k][across * 4 + lane], *b = &of[of_at][k][down * 4 + lane];
          Quad rest[N];
#pragma unroll
          for (u32 n = 0; n < N; n++) rest[n] = limbs(b[n * PIECE_ROWS * 4], q);
#pragma unroll
          for (u32 m = 0; m < M; m++) {
            Quad low = limbs(a[m * PIECE_OUTPUTS * 4], q), high = limbs(a[(m * PIECE_OUTPUTS + 8) * 4], q);
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
#pragma unroll
              for (u32 n = 0; n < N; n++) half_step(&dots[m][n], low, high, rest[n], half);
            }
          }
        }
      }
      weights_room = weights_at;
      of_room = of_at;
      weights_at = weights_at == STAGES ? 0 : weights_at + 1;
      of_at = of_at == STAGES - 1 ? 0 : of_at + 1;
    }
    const float *by_scales = &scales[group % STAGES][across + lane / 4];
    const float *of_scales = &scales[group % STAGES][OUTPUTS + down + 2 * (lane % 4)];
#pragma unroll
    for (u32 m = 0; m < M; m++) {
      float by[2] = {by_scales[m * PIECE_OUTPUTS], by_scales[m * PIECE_OUTPUTS + 8]};
#pragma unroll
      for (u32 n = 0; n < N; n++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          float scale = mul(of_scales[n * PIECE_ROWS + i % 2], by[i / 2]);
          sums[m][n][i] = add(sums[m][n][i], mul(group_dot(dots[m][n], i), scale));
        }
      }
    }
  }
#pragma unroll
  for (u32 m = 0; m < M; m++) {
#pragma unroll
    for (u32 n = 0; n < N; n++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        u32 own_row = row + down + n * PIECE_ROWS + 2 * (lane % 4) + i % 2;
        u32 own_output = output + across + m * PIECE_OUTPUTS + lane / 4 + i / 2 * 8;
        if (own_row < rows && own_output < matrix.outputs) {
          finish(matrix, own_row, own_output, sums[m][n][i], faults);
        }
      }
    }
  }
}

// The kernels are named after the outputs and rows of a block. The bounds say how many threads a block has at
// most and, where compilers choose badly, how many of them have to have room beside each other: that decides
// how many registers a thread may take.

// Steps of a part of a small tile: a group of int8. Fewer barriers for little work.
#define LONG(Q) (STEPS(Q) % 2 == 0 ? 2 : 1)

extern "C" __launch_bounds__(512, 1) __global__ void product_16x8(const i8 *q, const float *s, u32 rows, u32 groups,
                                                                  MATRICES(i8), u32 *faults) {
  product_few_as<i8, 1>(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __launch_bounds__(256) __global__ void product12_16x8(const i16 *q, const float *s, u32 rows, u32 groups,
                                                                 MATRICES(i16), u32 *faults) {
  product_few_as<i16, 1>(q, s, rows, groups, GIVEN(i16), faults);
}

extern "C" __launch_bounds__(512, 1) __global__ void product_16x16(const i8 *q, const float *s, u32 rows, u32 groups,
                                                                   MATRICES(i8), u32 *faults) {
  product_few_as<i8, 2>(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __launch_bounds__(256) __global__ void product12_16x16(const i16 *q, const float *s, u32 rows, u32 groups,
                                                                  MATRICES(i16), u32 *faults) {
  product_few_as<i16, 2>(q, s, rows, groups, GIVEN(i16), faults);
}

extern "C" __launch_bounds__(128) __global__ void product_32x32(const i8 *q, const float *s, u32 rows, u32 groups,
                                                                MATRICES(i8), u32 *faults) {
  product_tile_as<i8, 2, 2, 1, 2, LONG(i8), 5>(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __launch_bounds__(128) __global__ void product12_32x32(const i16 *q, const float *s, u32 rows, u32 groups,
                                                                  MATRICES(i16), u32 *faults) {
  product_tile_as<i16, 2, 2, 1, 2, LONG(i16), 5>(q, s, rows, groups, GIVEN(i16), faults);
}

extern "C" __launch_bounds__(128) __global__ void product_64x64(const i8 *q, const float *s, u32 rows, u32 groups,
                                                                MATRICES(i8), u32 *faults) {
  product_tile_as<i8, 2, 2, 2, 4, LONG(i8), 2>(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __launch_bounds__(128) __global__ void product12_64x64(const i16 *q, const float *s, u32 rows, u32 groups,
                                                                  MATRICES(i16), u32 *faults) {
  product_tile_as<i16, 2, 2, 2, 4, LONG(i16), 2>(q, s, rows, groups, GIVEN(i16), faults);
}

extern "C" __launch_bounds__(256, 2) __global__ void product_128x64(const i8 *q, const float *s, u32 rows, u32 groups,
                                                                    MATRICES(i8), u32 *faults) {
  product_tile_as<i8, 4, 2, 2, 4, 1, 3>(q, s, rows, groups, GIVEN(i8), faults);
}

extern "C" __launch_bounds__(256, 1) __global__ void product12_128x64(const i16 *q, const float *s, u32 rows,
                                                                      u32 groups, MATRICES(i16), u32 *faults) {
  product_tile_as<i16, 4, 2, 2, 4, 1, 3>(q, s, rows, groups, GIVEN(i16), faults);
}

extern "C" __launch_bounds__(256, 1) __global__ void product_128x128(const i8 *q, const float *s, u32 rows, u32 groups,
                                                                     MATRICES(i8), u32 *faults) {
  product_tile_as<i8, 2, 4, 4, 4, 1, 2>(q, s, rows, groups, GIVEN(i8), faults);
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
