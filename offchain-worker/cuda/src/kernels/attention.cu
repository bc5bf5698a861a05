// --- Attention

// What blocks of positions have found so far.
struct Softmax {
  float largest, total;
};

// exact::Softmax::merge: the factors of what was there and of the block's.
__device__ __forceinline__ void merge_block(Softmax *so_far, Softmax block, float *before, float *of_block) {
  *before = *of_block = 1.0f;
  if (block.largest > so_far->largest) {
    *before = exponential(sub(so_far->largest, block.largest));
    so_far->largest = block.largest;
  } else {
    *of_block = exponential(sub(block.largest, so_far->largest));
  }
  so_far->total = add(mul(so_far->total, *before), mul(block.total, *of_block));
}

// exact::merge_cell
__device__ __forceinline__ float merge_cell(float before, float block, float first, float second) {
  return add(mul(before, first), mul(block, second));
}

struct __align__(16) Reals {
  float of[4];
};

#define INFINITE __uint_as_float(0x7f800000u)

__device__ __forceinline__ float larger(float a, float b) { return b > a ? b : a; }

// Query heads that a block of threads takes at once, of the same keys: a row of a tensor core's product each.
#define TILE_CELLS 16
// Columns of values that it takes: so many times 8 a warp.
#define COLUMN_TILES 4
#define COLUMNS (COLUMN_TILES * WARPS * 8)
// exact::HEAD_MAX
#define HEAD_MAX 512
// What a processor holds at least of its blocks of threads.
#define ATTEND_BLOCKS 3

// The first row behind `row`, before `end`, that sees other positions than those behind the same first one.
__device__ __forceinline__ u32 run_end(const u32 *spans, const u32 *places, const u32 *table, const Sight &sight,
                                       u32 row, u32 end) {
  if (end - row == 1 || !(spans || places)) return end;
  u32 lane = threadIdx.x % LANES;
  Sight own = sight_of(spans, places, 0, 0, table, row + lane < end ? row + lane : row);
  bool differs = own.start != sight.start || own.pages != sight.pages;
  u32 next = row + LANES - largest_of(differs ? LANES - lane : 0u);
  return next < end ? next : end;
}

// Bytes of four positions of which two are behind `r`, and two behind `r + 8`: ones where they are in front
// of `shift`.
__device__ __forceinline__ u32 in_front(u32 r, u32 shift) {
  return (r < shift ? 0xffu : 0u) | (r + 1 < shift ? 0xff00u : 0u) | (r + 8 < shift ? 0xff0000u : 0u) |
         (r + 9 < shift ? 0xff000000u : 0u);
}

// exact::dot of limbs as `step` of products.cu takes them, with one sum for all of them: Horner's rule saves
// registers.
__device__ __forceinline__ void add_products(u32 *sums, Quad low, Quad high, Quad row) {
  u32 h[4] = {(u32)low.a, (u32)high.a, (u32)low.b, (u32)high.b}, by_h[2] = {(u32)row.a, (u32)row.b};
  u32 l[4] = {(u32)low.c, (u32)high.c, (u32)low.d, (u32)high.d}, by_l[2] = {(u32)row.c, (u32)row.d};
  int dots[4] = {0, 0, 0, 0};
  multiply_add(dots, h, by_h);
#pragma unroll
  for (u32 i = 0; i < 4; i++) dots[i] = (int)((u32)dots[i] << 6);
  multiply_add(dots, h, by_l);
  multiply_add(dots, l, by_h);
#pragma unroll
  for (u32 i = 0; i < 4; i++) dots[i] = (int)((u32)dots[i] << 6);
  multiply_add(dots, l, by_l);
#pragma unroll
  for (u32 i = 0; i < 4; i++) sums[i] += (u32)dots[i];
}

__device__ __forceinline__ int choose(int a, int b, u32 mask) { return (int)(((u32)a & mask) | ((u32)b & ~mask)); }
__device__ __forceinline__ Quad choose(Quad a, Quad b, u32 low, u32 high) {
  return Quad{choose(a.a, b.a, low), choose(a.b, b.b, high), choose(a.c, b.c, low), choose(a.d, b.d, high)};
}

// Calls what a block of threads will read of values, while it still has to do with keys.
__device__ __forceinline__ void prefetch_values(const u32 *kept, const u32 *behind, u32 kv_heads, u32 kv_head,
                                                u32 head_dim, u32 column, u32 at, u32 positions) {
#ifdef __CUDACC_RTC__
#pragma unroll 1
  for (u32 i = threadIdx.x; i < COLUMNS * WARPS / 2; i += BLOCK) {
    u32 d = column + i / (WARPS / 2), behind_at = i % (WARPS / 2) * 2 * LANES;
    if (d >= head_dim || behind_at >= positions) continue;
    const u32 *values = at + behind_at < BLOCK ? kept : behind;
    values += values_at(kv_heads, kv_head, head_dim, d, (at + behind_at) % BLOCK);
    asm volatile("prefetch.global.L2 [%0];" : : "l"(values));
  }
#endif
}

// exact::attention_row. A block of threads has `tile_rows` query rows, from `base` on, and of those up to
// TILE_CELLS heads that share keys, or fewer of either: cell `c` is head `c % tile_heads` of row `c /
// tile_heads`. It takes one block of positions after the other, and merges them. With `partials` it takes
// only one, and leaves what it has found of that: `Partials` of the whole; `merge` does the rest.
//
// Each warp has LANES of a block's positions, those whose distance to a multiple of LANES are alike modulo
// LANES being with one thread: all that exact::fold adds is the same wherever a span begins, as only the
// lanes' numbers are others, and those go round. A warp's positions before `shift` are LANES behind where
// others' are. So rows 32 apart in pages meet what is kept there as it lies.
extern "C" __launch_bounds__(BLOCK, ATTEND_BLOCKS) __global__
    void attend(const i16 *queries, const float *query_scales, Table<u32> slabs, const u32 *table, u64 page_words,
                u64 layer_at, const u32 *spans, const u32 *places, u32 first, u32 step_of_rows, u32 base, u32 count,
                u32 tile_rows, u32 heads, u32 kv_heads, u32 head_dim, float scale, u32 blocks, float *stats,
                float *partials, float *out, u32 *faults) {
  __shared__ Reals exponentials[4][WARPS][LANES];
  __shared__ Quad weights[WARPS][LANES][2];
  __shared__ float largest_of_warp[WARPS][TILE_CELLS], totals[2][TILE_CELLS];
  __shared__ u32 sizes[WARPS][TILE_CELLS];
  __shared__ u32 cells[TILE_CELLS], cell_sees[TILE_CELLS];
  __shared__ float cell_scales[TILE_CELLS];
  // By steps, cells, and lanes of four.
  __shared__ Quad tile_queries[HEAD_MAX / LANES * TILE_CELLS * 4];
  // Of each warp's positions, by their lanes: which ones of the block they are, if they are seen.
  __shared__ u32 indices[WARPS][LANES];
  __shared__ float key_scales[WARPS][LANES], value_scales[WARPS][LANES];
  u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  u32 g = lane / 4, t = lane % 4;
  u32 group = heads / kv_heads;
  u32 tile_heads = group < TILE_CELLS ? group : TILE_CELLS;
  u32 tiles = (group + TILE_CELLS - 1) / TILE_CELLS;
  u32 parts = (head_dim + COLUMNS - 1) / COLUMNS;
  u32 column = blockIdx.y % parts * COLUMNS;
  u32 kv_head = blockIdx.y / parts / tiles;
  u32 head = kv_head * group + blockIdx.y / parts % tiles * TILE_CELLS;
  u32 steps = key_steps(head_dim);
  // The last ones often see the most: they begin.
  u32 tile = base + (gridDim.x - 1 - blockIdx.x) * tile_rows;
  u32 end = tile + tile_rows < base + count ? tile + tile_rows : base + count;
  for (u32 row = tile, next; row < end; row = next) {
    Sight sight = sight_of(spans, places, first, step_of_rows, table, row);
    next = run_end(spans, places, table, sight, row, end);
    // Of the two cells that this thread has scores of: `g` and `g + 8`.
    u32 sees[2];
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
      u32 cell = g + 8 * half;
      u32 own = tile + cell / tile_heads;
      bool there = own >= row && own < next && head + cell % tile_heads < (kv_head + 1) * group;
      Sight of_own = sight_of(spans, places, first, step_of_rows, table, there ? own : row);
      sees[half] = there ? of_own.end - of_own.start : 0;
    }
    u32 most = largest_of(sees[0] > sees[1] ? sees[0] : sees[1]);
    u32 shift = sight.start % LANES;
    u32 begin = partials ? blockIdx.z * BLOCK : 0;
    if (begin >= most) continue;
    // What was kept of other rows is not read any more.
    if (row > tile) __syncthreads();
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
      if (warp == 0 && t == 0) cell_sees[g + 8 * half] = sees[half];
    }
    Softmax found[2] = {{LEAST, 0.0f}, {LEAST, 0.0f}};
    float sums[COLUMN_TILES][4];
#pragma unroll
    for (u32 j = 0; j < COLUMN_TILES; j++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) sums[j][i] = 0.0f;
    }
    for (u32 from = begin; from < most; from += BLOCK) {
      u32 seen = most - from < BLOCK ? most - from : BLOCK;
      // A block's positions are in one page, or two. They are counted from `at`, a multiple of LANES.
      u32 at = sight.start + from - shift;
      const u32 *page_numbers = sight.pages + at / BLOCK;
      bool is_two = at % BLOCK + shift + seen > BLOCK;
      at %= BLOCK;
      u32 page = page_numbers[0], page_behind = page_numbers[is_two];
      const u32 *kept = in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at);
      const u32 *behind = in_page(slabs.at[page_behind / SLAB_PAGES], page_behind, page_words, layer_at);

      // This thread finds the scales of one position.
      {
        u32 position = LANES * (warp + (lane < shift)) + lane;
        bool is_there = position - shift < seen;
        indices[warp][lane] = is_there ? position - shift : ~0u;
        position = at + (is_there ? position : shift);
        const u32 *scales = (position < BLOCK ? kept : behind) + kv_head * BLOCK + position % BLOCK;
        key_scales[warp][lane] = __uint_as_float(scales[0]);
        value_scales[warp][lane] = __uint_as_float(scales[kv_heads * BLOCK]);
      }
      const Quad *key[4];
#pragma unroll
      for (u32 n = 0; n < 4; n++) {
        u32 r = 8 * n + g;
        u32 position = LANES * (warp + (r < shift)) + r;
        position = at + (position - shift < seen ? position : shift);
        key[n] = (const Quad *)((position < BLOCK ? kept : behind) +
                                key_at(kv_heads, kv_head, head_dim, 0, position % BLOCK)) + t;
      }
      // Two steps at a time, of which the first are on their way while scales are.
      Quad keys[2][4];
#pragma unroll
      for (u32 n = 0; n < 4; n++) {
        keys[0][n] = key[n][0];
        keys[1][n] = key[n][steps > 1 ? BLOCK * 4 : 0];
      }
      prefetch_values(kept, behind, kv_heads, kv_head, head_dim, column, at, shift + seen);
      if (from == begin) {
        for (u32 i = threadIdx.x; i < TILE_CELLS * 4 * steps; i += BLOCK) {
          u32 cell = i / 4 % TILE_CELLS, d = (i / 4 / TILE_CELLS * 4 + i % 4) * 8;
          // Of cells that are not there others take the place.
          u32 own = tile + cell / tile_heads, own_head = head + cell % tile_heads;
          u32 of = (own < next ? own : row) * heads + (own_head < heads ? own_head : head);
          tile_queries[i] = limbs(eight_of(queries + (u64)of * head_dim, head_dim, d), queries);
          if (d == 0) {
            cells[cell] = of;
            cell_scales[cell] = mul(query_scales[of], scale);
          }
        }
      }
      __syncthreads();
      u32 dots[4][4];
#pragma unroll
      for (u32 n = 0; n < 4; n++) dots[n][0] = dots[n][1] = dots[n][2] = dots[n][3] = 0;
#pragma unroll 1
      for (u32 s = 0; LANES * warp < seen;) {
#pragma unroll
        for (u32 k = 0; k < 2; k++) {
          if (s + k < steps) {
            const Quad *of = tile_queries + (s + k) * TILE_CELLS * 4 + lane;
            Quad low = of[0], high = of[LANES];
#pragma unroll
            for (u32 n = 0; n < 4; n++) add_products(dots[n], low, high, keys[k][n]);
          }
        }
        s += 2;
        if (s >= steps) break;
#pragma unroll
        for (u32 n = 0; n < 4; n++) {
          keys[0][n] = key[n][s * BLOCK * 4];
          keys[1][n] = key[n][(s + 1 < steps ? s + 1 : s) * BLOCK * 4];
        }
      }

      // How many of them each of the two cells sees.
      u32 limits[2];
#pragma unroll
      for (u32 half = 0; half < 2; half++) {
        u32 all = cell_sees[g + 8 * half];
        limits[half] = all > from ? all - from : 0;
      }
      // exact::score_cell, and exact::softmax_block of the scores
      // One that is not seen is less than any.
      float scores[4][4], largest[2] = {LEAST, LEAST};
      bool is_finite = true;
#pragma unroll
      for (u32 n = 0; n < 4; n++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          u32 r = 8 * n + 2 * t + i % 2;
          float score = mul(__int2float_rn((int)dots[n][i]), mul(cell_scales[g + i / 2 * 8], key_scales[warp][r]));
          bool is_seen = indices[warp][r] < limits[i / 2];
          is_finite = is_finite && (!is_seen || size_of(score) < INFINITE);
          scores[n][i] = is_seen ? score : negate(INFINITE);
          largest[i / 2] = larger(largest[i / 2], scores[n][i]);
        }
      }
      if (!is_finite) atomicOr(faults, NOT_FINITE);
#pragma unroll
      for (u32 half = 0; half < 2; half++) {
        largest[half] = larger(largest[half], __shfl_xor_sync(0xffffffffu, largest[half], 1));
        largest[half] = larger(largest[half], __shfl_xor_sync(0xffffffffu, largest[half], 2));
        if (t == 0) largest_of_warp[warp][g + 8 * half] = largest[half];
      }
      __syncthreads();
#pragma unroll
      for (u32 half = 0; half < 2; half++) {
#pragma unroll
        for (u32 i = 0; i < WARPS; i++) largest[half] = larger(largest[half], largest_of_warp[i][g + 8 * half]);
      }
      u32 size_bits[2] = {0, 0};
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        Reals of_lanes;
#pragma unroll
        for (u32 n = 0; n < 4; n++) {
          // A sum that has zeros behind it is the same sum.
          bool is_seen = scores[n][i] != negate(INFINITE);
          float weight = exponential(sub(scores[n][i], largest[i / 2]));
          of_lanes.of[n] = is_seen ? weight : 0.0f;
          weight = is_seen ? mul(weight, value_scales[warp][8 * n + 2 * t + i % 2]) : 0.0f;
          scores[n][i] = weight;
          u32 bits = __float_as_uint(weight);
          size_bits[i / 2] = bits > size_bits[i / 2] ? bits : size_bits[i / 2];
        }
        exponentials[i][warp][lane] = of_lanes;
      }
#pragma unroll
      for (u32 half = 0; half < 2; half++) {
#pragma unroll
        for (u32 by_lanes = 1; by_lanes < 4; by_lanes *= 2) {
          u32 other = __shfl_xor_sync(0xffffffffu, size_bits[half], by_lanes);
          size_bits[half] = other > size_bits[half] ? other : size_bits[half];
        }
        if (t == 0) sizes[warp][g + 8 * half] = size_bits[half];
      }
      __syncthreads();
      float weight_scale[2];
      Quad own_weights[2];
#pragma unroll
      for (u32 half = 0; half < 2; half++) {
#pragma unroll
        for (u32 i = 0; i < WARPS; i++) {
          u32 other = sizes[i][g + 8 * half];
          size_bits[half] = other > size_bits[half] ? other : size_bits[half];
        }
        float size = __uint_as_float(size_bits[half]);
        bool vanishing = size < VANISHING;
        float by_size = div(WEIGHT_MAX, size);
        weight_scale[half] = vanishing ? 0.0f : div(size, WEIGHT_MAX);
        u32 high[2] = {0, 0}, low[2] = {0, 0};
#pragma unroll
        for (u32 n = 0; n < 4; n++) {
#pragma unroll
          for (u32 i = 0; i < 2; i++) {
            u32 weight = vanishing ? 0u : (u32)nearest(mul(scores[n][2 * half + i], by_size));
            u32 byte = 8 * (n % 2 * 2 + i);
            high[n / 2] |= weight >> 6 << byte;
            low[n / 2] |= (weight & 63) << byte;
          }
        }
        own_weights[half] = Quad{(int)high[0], (int)high[1], (int)low[0], (int)low[1]};
      }
      weights[warp][lane][0] = own_weights[0];
      weights[warp][lane][1] = own_weights[1];
      // exact::lanes::sum, of the positions that are alike modulo 2: their sum is yet to be folded once.
#pragma unroll
      for (u32 i = warp; i < 4; i += WARPS) {
        float of_lanes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (u32 q = 0; q < WARPS; q++) {
          Reals more = exponentials[i][q][lane];
#pragma unroll
          for (u32 n = 0; n < 4; n++) of_lanes[n] = add(of_lanes[n], more.of[n]);
        }
        float total = add(add(of_lanes[0], of_lanes[2]), add(of_lanes[1], of_lanes[3]));
        total = add(total, __shfl_xor_sync(0xffffffffu, total, 2));
        total = add(total, __shfl_xor_sync(0xffffffffu, total, 1));
        if (t == 0) totals[i % 2][g + i / 2 * 8] = total;
      }
      __syncthreads();

      // The mix: products of the weights with values as they lie in pages, LANES positions at a time.
      u32 mixed[COLUMN_TILES][4];
#pragma unroll
      for (u32 j = 0; j < COLUMN_TILES; j++) mixed[j][0] = mixed[j][1] = mixed[j][2] = mixed[j][3] = 0;
#pragma unroll 1
      for (u32 q = 0; q < (shift + seen + LANES - 1) / LANES; q++) {
        Quad low = {0, 0, 0, 0}, high = low;
        if (q < WARPS) {
          low = weights[q][lane][0];
          high = weights[q][lane][1];
        }
        if (shift > 0) {
          Quad low_before = {0, 0, 0, 0}, high_before = low_before;
          if (q > 0) {
            low_before = weights[q - 1][lane][0];
            high_before = weights[q - 1][lane][1];
          }
          u32 mask = in_front(2 * t, shift), mask_behind = in_front(2 * t + 16, shift);
          low = choose(low_before, low, mask, mask_behind);
          high = choose(high_before, high, mask, mask_behind);
        }
        u32 position = at + LANES * q;
        const u32 *values = (position < BLOCK ? kept : behind) + 4 * t;
#pragma unroll
        for (u32 j = 0; j < COLUMN_TILES; j++) {
          u32 d = column + (j * WARPS + warp) * 8;
          if (d < head_dim) {
            d = d + g < head_dim ? d + g : d;
            u32 of_lanes = values_at(kv_heads, kv_head, head_dim, d, position % BLOCK);
            add_products(mixed[j], low, high, *(const Quad *)(values + of_lanes));
          }
        }
      }

#pragma unroll
      for (u32 half = 0; half < 2; half++) {
        if (limits[half] == 0) continue;
        u32 cell = g + 8 * half;
        Softmax block = {largest[half], add(totals[0][cell], totals[1][cell])};
        float before = 0.0f, of_block = 1.0f;
        if (!partials) {
          merge_block(&found[half], block, &before, &of_block);
        } else if (column == 0 && warp == 0 && t == 0) {
          u64 into = (u64)(cells[cell] - base * heads) * blocks + blockIdx.z;
          stats[2 * into] = block.largest;
          stats[2 * into + 1] = block.total;
        }
#pragma unroll
        for (u32 j = 0; j < COLUMN_TILES; j++) {
#pragma unroll
          for (u32 i = 2 * half; i < 2 * half + 2; i++) {
            float partial = mul(__int2float_rn((int)mixed[j][i]), weight_scale[half]);
            sums[j][i] = partials ? partial : merge_cell(sums[j][i], partial, before, of_block);
          }
        }
      }
      if (partials) break;
    }
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
      if (cell_sees[g + 8 * half] <= begin) continue;
      u32 cell = cells[g + 8 * half];
      u64 into = partials ? (u64)(cell - base * heads) * blocks + blockIdx.z : cell;
      float *at = (partials ? partials : out) + into * head_dim;
#pragma unroll
      for (u32 j = 0; j < COLUMN_TILES; j++) {
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
          u32 d = column + (j * WARPS + warp) * 8 + 2 * t + i;
          float value = sums[j][2 * half + i];
          if (!partials) value = div(value, found[half].total);
          if (d < head_dim) {
            expect_finite(value, faults);
            at[d] = value;
          }
        }
      }
    }
  }
}
