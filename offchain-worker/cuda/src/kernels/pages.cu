// --- Keys and values in pages

// Pieces of memory that pages of keys and values are cut from, and the most pages of each: page `i` is page
// `i % SLAB_PAGES` of piece `i / SLAB_PAGES`.
#define TABLE 64
#define SLAB_PAGES (1u << 24)

template <typename T>
struct Table {
  T *at[TABLE];
};

// Word `at` of a page. A page has BLOCK positions of every layer of a model. A layer's part of it has scales
// of keys and of values, [kv_head][position] each; keys, [kv_head][step][position][16 words]; and values,
// [kv_head][d][32 positions][16 words]. Both are kept as `limbs`, as tensor cores take them: lane t of four
// reads Quad t of 16 words. Of a key a step is 32 elements, zeros behind the last, and Quad t eight of them.
// Of values Quad t is those of the positions whose scores a product leaves with lane t: two of each eight.
// pages.rs counts the words.
__device__ __forceinline__ u32 *in_page(u32 *slab, u32 page, u64 page_words, u64 at) {
  return slab + (u64)(page % SLAB_PAGES) * page_words + at;
}

__device__ __forceinline__ u32 key_steps(u32 head_dim) { return (head_dim + LANES - 1) / LANES; }

// Words before a key's, and before those of LANES values.
__device__ __forceinline__ u32 key_at(u32 kv_heads, u32 kv_head, u32 head_dim, u32 step, u32 position) {
  return kv_heads * 2 * BLOCK + ((kv_head * key_steps(head_dim) + step) * BLOCK + position) * 16;
}
__device__ __forceinline__ u32 values_at(u32 kv_heads, u32 kv_head, u32 head_dim, u32 d, u32 position) {
  return kv_heads * (2 + 16 * key_steps(head_dim)) * BLOCK +
         ((kv_head * head_dim + d) * WARPS + position / LANES) * 16;
}

// Where a row looks, or is put: positions `start` to `end` of a sequence whose keys and values are in
// `pages`.
struct Sight {
  u32 start, end;
  const u32 *pages;
};

// `spans[row]`, or from 0 to `first + row * step`; of the sequence whose pages begin at `table[places[row]]`,
// or of the only one.
__device__ __forceinline__ Sight sight_of(const u32 *spans, const u32 *places, u32 first, u32 step, const u32 *table,
                                          u32 row) {
  Sight sight = {0, first + row * step, table};
  if (spans) {
    sight.start = spans[2 * (u64)row];
    sight.end = spans[2 * (u64)row + 1];
  }
  if (places) sight.pages += places[row];
  return sight;
}

// Eight elements of a head, zeros behind its last.
__device__ __forceinline__ Quad eight_of(const i16 *head, u32 head_dim, u32 d) {
  Quad none = {0, 0, 0, 0};
  if (d >= head_dim) return none;
  if (head_dim % 8 == 0) return *(const Quad *)(head + d);
  u64 low = 0, high = 0;
#pragma unroll 1
  for (u32 i = d; i < d + 8; i++) {
    low = low >> 16 | high << 48;
    high = high >> 16 | (i < head_dim ? (u64)(long long)head[i] : 0) << 48;
  }
  return Quad{(int)low, (int)(low >> 32), (int)high, (int)(high >> 32)};
}

// Puts one element of a head into a page, as limbs.
__device__ __forceinline__ void keep_key(u32 *page, u32 kv_heads, u32 kv_head, u32 head_dim, u32 d, u32 at, int key) {
  i8 *bytes = (i8 *)(page + key_at(kv_heads, kv_head, head_dim, d / LANES, at)) + d % LANES / 8 * 16 + d % 8;
  bytes[0] = (i8)(key >> 6);
  bytes[8] = (i8)(key & 63);
}

__device__ __forceinline__ void keep_value(u32 *page, u32 kv_heads, u32 kv_head, u32 head_dim, u32 d, u32 at,
                                           int value) {
  u32 lane = at % 8 / 2, of_lane = at % LANES / 8 * 2 + at % 2;
  i8 *bytes = (i8 *)(page + values_at(kv_heads, kv_head, head_dim, d, at) + 4 * lane) + of_lane;
  bytes[0] = (i8)(value >> 6);
  bytes[8] = (i8)(value & 63);
}

// Puts rows of quantized heads, from row `from` on, at the last positions that they see. A thread puts an
// element of a value, or eight of a key, or both.
extern "C" __global__ void append(const i16 *keys, const float *key_scales, const i16 *values,
                                  const float *value_scales, Table<u32> slabs, const u32 *table, u64 page_words,
                                  u64 layer_at, const u32 *spans, const u32 *places, u32 first, u32 from, u32 count,
                                  u32 kv_heads, u32 head_dim) {
  u32 eights = key_steps(head_dim) * 4;
  u32 width = head_dim > eights ? head_dim : eights;
  u64 index = thread_index();
  if (index >= (u64)count * kv_heads * width) return;
  u32 d = index % width;
  u64 cell = index / width + (u64)from * kv_heads;
  u32 kv_head = cell % kv_heads;
  Sight sight = sight_of(spans, places, first, 1, table, (u32)(cell / kv_heads));
  u32 page = sight.pages[(sight.end - 1) / BLOCK], at = (sight.end - 1) % BLOCK;
  u32 *kept = in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at);
  if (d < head_dim) {
    keep_value(kept, kv_heads, kv_head, head_dim, d, at, values[cell * head_dim + d]);
  }
  if (d < eights) {
    Quad *into = (Quad *)(kept + key_at(kv_heads, kv_head, head_dim, d / 4, at));
    into[d % 4] = limbs(eight_of(keys + cell * head_dim, head_dim, 8 * d), keys);
  }
  if (d == 0) {
    kept[kv_head * BLOCK + at] = __float_as_uint(key_scales[cell]);
    kept[(kv_heads + kv_head) * BLOCK + at] = __float_as_uint(value_scales[cell]);
  }
}

// Copies whole pages: `pages[i]` to `pages[count + i]`.
extern "C" __global__ void copy_pages(Table<u32> slabs, const u32 *pages, u32 count, u64 page_words) {
  u64 index = thread_index();
  if (index >= count * page_words) return;
  u32 from = pages[index / page_words], into = pages[count + index / page_words];
  u64 at = index % page_words;
  *in_page(slabs.at[into / SLAB_PAGES], into, page_words, at) =
      *in_page(slabs.at[from / SLAB_PAGES], from, page_words, at);
}

// A layer's part of each of some pages, behind each other.
extern "C" __global__ void gather_pages(Table<u32> slabs, const u32 *pages, u32 count, u64 page_words, u64 layer_at,
                                        u64 layer_words, u32 *out) {
  u64 index = thread_index();
  if (index >= count * layer_words) return;
  u32 page = pages[index / layer_words];
  out[index] = *in_page(slabs.at[page / SLAB_PAGES], page, page_words, layer_at + index % layer_words);
}
