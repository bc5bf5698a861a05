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
