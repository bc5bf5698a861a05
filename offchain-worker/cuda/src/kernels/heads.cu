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
// `traced_at` on, and their scales from `scales_at` on. These are in pairs of bytes. If there is a `table` of
// pages, they are also what `append` puts there: keys are the second part, and values the third.
extern "C" __global__ void quantize_heads(HEADS, u32 count, u32 head_dim, u32 rotated, const u64 *turns,
                                          const u32 *positions, u32 keeps, i16 *traced, u64 traced_at, u64 scales_at,
                                          u32 pitch, Table<u32> slabs, const u32 *table, u64 page_words, u64 layer_at,
                                          const u32 *spans, const u32 *places, u32 *faults) {
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
  u32 *page = nullptr;
  u32 at = 0, kv_head = (u32)(cell % part.heads);
  if (table && number > 0) {
    Sight sight = sight_of(spans, places, 0, 0, table, (u32)(cell / part.heads));
    u32 of_page = sight.pages[(sight.end - 1) / BLOCK];
    at = (sight.end - 1) % BLOCK;
    page = in_page(slabs.at[of_page / SLAB_PAGES], of_page, page_words, layer_at);
  }
  auto keep = [&](u32 d, int element) {
    if (number == 1) {
      keep_key(page, heads1, kv_head, head_dim, d, at, element);
    } else {
      keep_value(page, heads1, kv_head, head_dim, d, at, element);
    }
  };
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
    if (page) keep(pair, low_q);
    if (page && both) keep(pair + half, high_q);
    if (turned && keeps) head[pair] = low;
    if (turned && keeps && both) head[pair + half] = high;
  }
  float scale = vanishing ? 0.0f : div(size, INT12_MAX);
  if (lane == 0) part.scales[cell] = scale;
  if (lane == 0 && copy) *copy_scale = scale;
  if (!page) return;
  if (lane == 0) page[((number - 1) * heads1 + kv_head) * BLOCK + at] = __float_as_uint(scale);
  // Behind the last element of a key.
  u32 whole = key_steps(head_dim) * LANES;
  if (number == 1) {
    for (u32 d = head_dim + lane; d < whole; d += LANES) keep_key(page, heads1, kv_head, head_dim, d, at, 0);
  }
}
