// The exact engine's kernels, compiled at run time (NVRTC) and, for the tests, by a C++ compiler.
//
// The definition is primitives/exact; every kernel names the function that it equals bit for bit.
// Floating-point arithmetic goes through the five functions below alone: correctly rounded, never fused,
// subnormals kept. The order of every sum is that of the definition; only maxima and integer sums, where no
// order shows, take another.
//
// GROUP comes from the command line, a multiple of 64. Instructions of a warp are all below, and whole warps
// meet at them: the tests' program plays those. Rows are row-major; a null pointer stands for an absent
// operand; `faults` gathers what went wrong. The files of this folder are one program, in the order in which
// backend.rs has them.

typedef signed char i8;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define LANES 32
// Of one block of the kernels that give a row, or a group, to a warp.
#define WARPS (BLOCK / LANES)
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

__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float div(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float root(float a) { return __fsqrt_rn(a); }

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

__device__ __forceinline__ u64 thread_index() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// --- What a warp does together

#ifdef __CUDACC_RTC__
// sum + the dot product of four int8 with four others. Older compilers lack `__dp4a` without their headers.
__device__ __forceinline__ int dot4(int a, int b, int sum) {
  int out;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
  return out;
}

// 16 bytes of memory that nobody else reads: they need not stay in the nearest cache.
template <typename T>
__device__ __forceinline__ T read_once(const T *from) {
  static_assert(sizeof(T) == 16, "other sizes are not read so");
  u32 words[4];
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "l"(from));
  return T{(int)words[0], (int)words[1], (int)words[2], (int)words[3]};
}

// Copies from memory to shared memory that go on while the thread does. Those between two calls of
// `end_of_copies` are one batch; `await_copies` waits for all batches but the newest ones. What other threads
// copied is there after the barrier behind that.
#if __CUDA_ARCH__ >= 800
template <typename T>
__device__ __forceinline__ void begin_copy(T *to, const T *from) {
  static_assert(sizeof(T) == 16 || sizeof(T) == 4, "other sizes are not copied so");
  u32 at = (u32)__cvta_generic_to_shared(to);
  if (sizeof(T) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(at), "l"(from) : "memory");
  }
}

__device__ __forceinline__ void end_of_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }

template <u32 NEWEST>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(NEWEST) : "memory");
}
#else
template <typename T>
__device__ __forceinline__ void begin_copy(T *to, const T *from) {
  *to = *from;
}

__device__ __forceinline__ void end_of_copies() {}

template <u32 NEWEST>
__device__ __forceinline__ void await_copies() {}
#endif

#if __CUDA_ARCH__ >= 800
// c += a * b of int8: 16 rows by 32, and 32 by 8 columns, as PTX spreads them over a warp.
__device__ __forceinline__ void mma_16_8_32(int *c, const u32 *a, const u32 *b) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
// 8 rows by 16, and 16 by 8 columns.
__device__ __forceinline__ void mma_8_8_16(int *c, u32 a, u32 b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(c[0]), "+r"(c[1])
               : "r"(a), "r"(b));
}
#endif
#endif

// c += a * b on integer tensor cores, modulo 2^32. Lane 4g + t gives rows g and g + 8 of `a` and column g of
// `b`, and has columns 2t and 2t + 1 of `c` of the same rows: {a[0], a[2]} and {a[1], a[3]} are eight int8
// of a row, b the eight of its column that they meet. Which eight is free, if both sides agree.
__device__ __forceinline__ void multiply_add(int *c, const u32 *a, const u32 *b) {
#if __CUDA_ARCH__ >= 800
  mma_16_8_32(c, a, b);
#else
  // Turing has quarters of it, spread alike.
  mma_8_8_16(c, a[0], b[0]);
  mma_8_8_16(c, a[2], b[1]);
  mma_8_8_16(c + 2, a[1], b[0]);
  mma_8_8_16(c + 2, a[3], b[1]);
#endif
}

// exact::fold: each lane of a warp gives its sum, and gets that of all. What a lane of the upper half adds is
// the same two numbers the other way round.
__device__ __forceinline__ float fold(float sum) {
#pragma unroll
  for (u32 half = LANES / 2; half > 0; half /= 2) sum = add(sum, __shfl_xor_sync(0xffffffffu, sum, half));
  return sum;
}

// The largest of a warp.
__device__ __forceinline__ u32 largest_of(u32 value) {
#pragma unroll
  for (u32 half = LANES / 2; half > 0; half /= 2) {
    u32 other = __shfl_xor_sync(0xffffffffu, value, half);
    value = other > value ? other : value;
  }
  return value;
}
