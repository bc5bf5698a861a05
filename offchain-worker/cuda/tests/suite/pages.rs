//! Pages: taken as sequences grow, and given back.

use surety_cuda::{Cache, Error, GpuBackend, Kept, Kernels, Mask, Pages};
use surety_exact::BLOCK;

use super::{Random, assert_same, attention::quantized, values};

const KV_HEADS: usize = 2;
const HEAD_DIM: usize = 16;

/// Pages of one layer, of 26 KiB each.
pub fn pages<M: GpuBackend>() -> Pages<M> {
    Pages::new(1, KV_HEADS, HEAD_DIM).unwrap()
}

/// Adds random positions to a sequence.
pub fn add<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    random: &mut Random,
    cache: &mut Cache<M>,
    positions: usize,
) -> Result<(), Error> {
    let rows = random.activations(positions * KV_HEADS * HEAD_DIM);
    let rows = quantized(kernels, &rows, KV_HEADS, HEAD_DIM);
    kernels.append(cache, 0, &rows, &rows)
}

/// All that a sequence holds.
pub fn all<M: GpuBackend>(kernels: &mut Kernels<M>, cache: &Cache<M>) -> [Kept; 2] {
    kernels.kept(cache, 0, cache.len()).unwrap()
}

/// A sequence that grows or takes another one's pages over changes nothing that others hold.
pub fn pages_that_were_given_back_are_taken_again<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(35);
    let pages = pages();
    let mut caches = [(); 3].map(|()| pages.cache());
    // By turns, so that their pages lie between each other's.
    for positions in [BLOCK - 1, 2, BLOCK, 1] {
        for cache in &mut caches {
            add(kernels, &mut random, cache, positions).unwrap();
        }
    }
    assert_eq!(
        pages.taken(),
        9,
        "two blocks and two positions of three sequences"
    );
    let bytes = pages.bytes();
    let [first, mut second, third] = caches;
    let (of_second, of_third) = (all(kernels, &second), all(kernels, &third));
    drop(first);
    assert_eq!(pages.taken(), 6);
    second.truncate(BLOCK);
    assert_eq!(
        (pages.taken(), second.len(), second.capacity()),
        (4, BLOCK, BLOCK)
    );
    // Others write on all that was given back.
    let mut others = [(); 5].map(|()| pages.cache());
    for cache in &mut others {
        add(kernels, &mut random, cache, BLOCK).unwrap();
    }
    assert_eq!(
        (pages.taken(), pages.bytes()),
        (9, bytes),
        "no memory is taken anew"
    );
    let (kept, before) = (kernels.kept(&second, 0, BLOCK).unwrap(), &of_second);
    for (kept, before) in kept.iter().zip(before) {
        assert!(before.q.starts_with(&kept.q) && before.scales.starts_with(&kept.scales));
    }
    // Behind what it has kept another page comes.
    add(kernels, &mut random, &mut second, 3).unwrap();
    let again = kernels.kept(&second, 0, BLOCK).unwrap();
    assert_eq!(again, kept);
    assert_eq!(all(kernels, &third), of_third);
}

/// What a few heads make of all that a sequence holds.
fn attended<M: GpuBackend>(kernels: &mut Kernels<M>, cache: &mut Cache<M>) -> Vec<f32> {
    let heads = 2 * KV_HEADS;
    let queries = Random::new(38).activations(heads * HEAD_DIM);
    let queries = quantized(kernels, &queries, heads, HEAD_DIM);
    let mut out = kernels.floats(heads * HEAD_DIM).unwrap();
    kernels
        .attention(&queries, cache, 0, Mask::Full, &mut out)
        .unwrap();
    values(kernels, &out)
}

/// In which slab a page is does not show, nor which others there are. Of slabs that nobody uses 64 MiB are
/// kept for who comes next, unless the machine needs them.
pub fn slabs_go_back_to_the_machine<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let pages = pages();
    let mut caches = Vec::new();
    let mut slabs = 0;
    while slabs < 8 {
        let before = pages.bytes();
        let mut cache = pages.cache();
        kernels.reserve(&mut cache, 64 * BLOCK).unwrap();
        caches.push(cache);
        slabs += usize::from(pages.bytes() > before);
    }
    let most = pages.bytes();
    let (mut alone, mut last) = (self::pages().cache(), pages.cache());
    for cache in [&mut alone, &mut last] {
        add(kernels, &mut Random::new(37), cache, BLOCK + 3).unwrap();
    }
    let expected = attended(kernels, &mut alone);
    assert_same(&attended(kernels, &mut last), &expected, "among eight slabs");
    // Some of those before it are given back.
    caches.clear();
    let kept = pages.bytes();
    assert!(kept < most * 2 / 3, "{kept} of {most}");
    assert_eq!(all(kernels, &last), all(kernels, &alone));
    assert_same(&attended(kernels, &mut last), &expected, "beside missing slabs");
    drop(last);
    let kept = pages.bytes();
    assert_eq!(pages.taken(), 0);
    assert!(kept > 0 && kept <= 64 << 20, "{kept} of {most}");
    let mut cache = pages.cache();
    kernels.reserve(&mut cache, 1).unwrap();
    assert_eq!(pages.bytes(), kept, "they are found again");
    assert!(kernels.trim());
    let needed = pages.bytes();
    assert!(needed > 0 && needed < kept, "{needed} of {kept}");
    drop(cache);
    assert_eq!(pages.bytes(), needed, "it is kept");
    assert!(kernels.trim() && !kernels.trim());
    assert_eq!(pages.bytes(), 0);
}

/// Pages of a large model: some go into one slab all the same.
pub fn a_slab_has_several_pages_of_any_size<M: GpuBackend>(kernels: &mut Kernels<M>) {
    // 8 MiB each.
    let pages = Pages::new(128, 1, 128).unwrap();
    assert!(3 * pages.page_bytes() > 16 << 20);
    let mut cache = pages.cache();
    kernels.reserve(&mut cache, 1).unwrap();
    let bytes = pages.bytes();
    assert_eq!(bytes, 8 * pages.page_bytes());
    kernels.reserve(&mut cache, 8 * BLOCK).unwrap();
    assert_eq!(pages.bytes(), bytes);
    drop(cache);
    assert_eq!(pages.bytes(), bytes, "one is kept, however large");
}
