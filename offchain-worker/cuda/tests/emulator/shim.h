// What a CUDA compiler gives kernels without being asked, for a C++ compiler: indices, barriers, rounding, and
// what the threads of a warp do together.
//
// A block's threads are fibres that run one after the other, each until it meets others. Compile with
// -ffp-contract=off: then the plain operators are the correctly rounded ones. __CUDA_ARCH__ says which device
// is played.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
// Blocks run one after the other.
#define __shared__ static

struct Index {
  unsigned x, y, z;
};
inline Index threadIdx, blockIdx, blockDim, gridDim;

[[noreturn]] inline void fail(const char *what) {
  std::fprintf(stderr, "emulator: %s\n", what);
  std::exit(1);
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline float __int2float_rn(int a) { return static_cast<float>(a); }
inline float __uint_as_float(unsigned a) {
  float b;
  std::memcpy(&b, &a, 4);
  return b;
}
inline unsigned __float_as_uint(float a) {
  unsigned b;
  std::memcpy(&b, &a, 4);
  return b;
}
// In the source this is an instruction.
inline int dot4(int a, int b, int sum) {
  std::int8_t x[4], y[4];
  std::memcpy(x, &a, 4);
  std::memcpy(y, &b, 4);
  // Modulo 2^32.
  unsigned all = static_cast<unsigned>(sum);
  for (int i = 0; i < 4; i++) all += static_cast<unsigned>(x[i] * y[i]);
  return static_cast<int>(all);
}
inline unsigned atomicOr(unsigned *at, unsigned value) {
  unsigned old = *at;
  *at |= value;
  return old;
}
inline unsigned atomicMax(unsigned *at, unsigned value) {
  unsigned old = *at;
  *at = old > value ? old : value;
  return old;
}

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; i++) out |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return out;
}

namespace fibres {

constexpr std::size_t STACK = 64 * 1024;
constexpr unsigned WARP = 32;
enum class State { AtBarrier, WithWarp, Done };
constexpr const char *DIVERGED = "a barrier was not reached by all threads of a block";
constexpr const char *ALONE = "an instruction of a warp was not reached by all of its threads";

struct Fibre {
  ucontext_t context;
  jmp_buf at;
  std::vector<char> stack = std::vector<char>(STACK);
  State state;
  // What it does with its warp, and how often it did anything.
  const char *instruction;
  unsigned met = 0;
  bool begun = false;
};

// What a thread gives its warp.
struct Given {
  unsigned words[6];
};

inline std::deque<Fibre> all;
inline jmp_buf scheduler;
inline Fibre *current;
inline void (*body)();
// Two, so that one may still be read while the next is given.
inline Given given[2][1024];

// Contexts only begin: to go on with them takes system calls, and these jumps take none.
inline __attribute__((noinline)) void leave(State state) {
  if (current == nullptr) fail(state == State::AtBarrier ? DIVERGED : ALONE);
  current->state = state;
  if (_setjmp(current->at) == 0) _longjmp(scheduler, 1);
}

// Gives some words to the warp, and waits until all of it have. The answer is what lane 0 gave, with the others'
// behind it.
inline const Given *meet(const char *instruction, const Given &words) {
  if (current == nullptr || blockDim.x % WARP != 0) fail(ALONE);
  Given *place = given[current->met++ % 2];
  place[threadIdx.x] = words;
  current->instruction = instruction;
  leave(State::WithWarp);
  return place + threadIdx.x / WARP * WARP;
}

// One thread after the other, of as many blocks as there are.
inline void enter() {
  for (;;) {
    body();
    leave(State::Done);
  }
}

// Until it meets others, or its end.
inline __attribute__((noinline)) void run(Fibre &fibre) {
  current = &fibre;
  if (_setjmp(scheduler) != 0) return;
  if (fibre.begun) _longjmp(fibre.at, 1);
  fibre.begun = true;
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.data();
  fibre.context.uc_stack.ss_size = STACK;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, enter, 0);
  setcontext(&fibre.context);
  fail("a thread does not begin");
}

// Runs one block: a warp after the other, each until its next barrier. A barrier that only some of the threads
// reach is a fault of the kernel, and so is an instruction of a warp that only some of it reach.
inline void run_block(unsigned threads, bool backwards) {
  while (all.size() < threads) all.emplace_back();
  auto index = [=](unsigned turn) { return backwards ? threads - 1 - turn : turn; };
  // The threads from `first` on that are a warp, until they do not meet each other.
  auto run_warp = [&](unsigned first, bool anew) {
    unsigned end = first + WARP < threads ? first + WARP : threads;
    do {
      for (unsigned turn = first; turn < end; turn++) {
        threadIdx = {index(turn), 0, 0};
        // The first one met nobody: no other may, and none needs to wait. Much faster.
        if (anew && turn > first && all[first].state == State::Done) {
          current = nullptr;
          body();
          all[turn].state = State::Done;
          continue;
        }
        run(all[turn]);
        bool alike = all[turn].state == all[first].state;
        if (alike && all[turn].state == State::WithWarp) alike = all[turn].instruction == all[first].instruction;
        bool barrier = all[turn].state != State::WithWarp && all[first].state != State::WithWarp;
        if (!alike) fail(barrier ? DIVERGED : ALONE);
      }
      anew = false;
    } while (all[first].state == State::WithWarp);
  };
  for (bool anew = true; anew || all[0].state != State::Done; anew = false) {
    for (unsigned first = 0; first < threads; first += WARP) {
      run_warp(first, anew);
      if (all[first].state != all[0].state) fail(DIVERGED);
    }
  }
}

}  // namespace fibres

inline void __syncthreads() { fibres::leave(fibres::State::AtBarrier); }

// Copies to shared memory are done as late as they may be.
struct Copy {
  void *to;
  const void *from;
  std::size_t bytes;
};
inline std::deque<std::vector<Copy>> copies[1024];

template <class T>
void begin_copy(T *to, const T *from) {
  auto &batches = copies[threadIdx.x];
  if (batches.empty()) batches.emplace_back();
  batches.back().push_back({to, from, sizeof(T)});
}
inline void end_of_copies() {
  auto &batches = copies[threadIdx.x];
  if (batches.empty()) batches.emplace_back();
  batches.emplace_back();
}
// The last batch has not ended.
template <unsigned NEWEST>
void await_copies() {
  auto &batches = copies[threadIdx.x];
  for (; batches.size() > NEWEST + 1; batches.pop_front()) {
    for (const Copy &copy : batches.front()) std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

template <class T>
T read_once(const T *from) {
  return *from;
}

inline unsigned __shfl_xor_sync(unsigned mask, unsigned value, int by) {
  if (mask != 0xffffffffu) fail("a shuffle of half a warp");
  const fibres::Given *warp = fibres::meet("shuffle", {{value}});
  return warp[threadIdx.x % fibres::WARP ^ static_cast<unsigned>(by)].words[0];
}
inline float __shfl_xor_sync(unsigned mask, float value, int by) {
  return __uint_as_float(__shfl_xor_sync(mask, __float_as_uint(value), by));
}

// As PTX says it of mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32: where the elements of a, b and c are.
inline void mma_16_8_32(int *c, const unsigned *a, const unsigned *b) {
  const fibres::Given *warp = fibres::meet("m16n8k32", {{a[0], a[1], a[2], a[3], b[0], b[1]}});
  unsigned lane = threadIdx.x % fibres::WARP;
  for (unsigned i = 0; i < 4; i++) {
    unsigned row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
    for (unsigned k = 0; k < 32; k += 4) {
      // Element (row, k) of a is in register (row >= 8) + 2 (k >= 16) of lane 4 (row % 8) + k / 4 % 4.
      unsigned of_a = warp[row % 8 * 4 + k / 4 % 4].words[(row >= 8) + 2 * (k >= 16)];
      unsigned of_b = warp[column * 4 + k / 4 % 4].words[4 + (k >= 16)];
      c[i] = dot4(static_cast<int>(of_a), static_cast<int>(of_b), c[i]);
    }
  }
}

// Likewise of m8n8k16.
inline void mma_8_8_16(int *c, unsigned a, unsigned b) {
  const fibres::Given *warp = fibres::meet("m8n8k16", {{a, b}});
  unsigned lane = threadIdx.x % fibres::WARP;
  for (unsigned i = 0; i < 2; i++) {
    for (unsigned k = 0; k < 4; k++) {
      unsigned of_a = warp[lane / 4 * 4 + k].words[0], of_b = warp[(lane % 4 * 2 + i) * 4 + k].words[1];
      c[i] = dot4(static_cast<int>(of_a), static_cast<int>(of_b), c[i]);
    }
  }
}
