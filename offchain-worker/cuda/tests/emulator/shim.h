// What a CUDA compiler gives kernels without being asked, for a C++ compiler: indices, barriers, rounding.
//
// A block's threads are fibres that run one after the other, each until its next barrier. Compile with
// -ffp-contract=off: then the plain operators are the correctly rounded ones.
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
  for (int i = 0; i < 4; i++) sum += x[i] * y[i];
  return sum;
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

namespace fibres {

constexpr std::size_t STACK = 64 * 1024;
enum class State { AtBarrier, Done };
constexpr const char *DIVERGED = "a barrier was not reached by all threads of a block";

struct Fibre {
  ucontext_t context;
  jmp_buf at;
  std::vector<char> stack = std::vector<char>(STACK);
  State state;
  bool begun = false;
};

inline std::deque<Fibre> all;
inline jmp_buf scheduler;
inline Fibre *current;
inline void (*body)();

// Contexts only begin: to go on with them takes system calls, and these jumps take none.
inline __attribute__((noinline)) void leave(State state) {
  if (current == nullptr) fail(DIVERGED);
  current->state = state;
  if (_setjmp(current->at) == 0) _longjmp(scheduler, 1);
}

// One thread after the other, of as many blocks as there are.
inline void enter() {
  for (;;) {
    body();
    leave(State::Done);
  }
}

// Until its next barrier, or its end.
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

// Runs one block. A barrier that only some of the threads reach is a fault of the kernel.
inline void run_block(unsigned threads, bool backwards) {
  while (all.size() < threads) all.emplace_back();
  for (unsigned turn = 0; turn < threads; turn++) {
    unsigned i = backwards ? threads - 1 - turn : turn;
    threadIdx = {i, 0, 0};
    // The first one met no barrier: no other may, and none needs to wait. Much faster.
    if (turn > 0 && all[0].state == State::Done) {
      current = nullptr;
      body();
      continue;
    }
    run(all[turn]);
    if (turn > 0 && all[turn].state == State::Done) fail(DIVERGED);
  }
  while (all[0].state != State::Done) {
    for (unsigned turn = 0; turn < threads; turn++) {
      unsigned i = backwards ? threads - 1 - turn : turn;
      threadIdx = {i, 0, 0};
      run(all[turn]);
      if (all[turn].state != all[0].state) fail(DIVERGED);
    }
  }
}

}  // namespace fibres

inline void __syncthreads() { fibres::leave(fibres::State::AtBarrier); }
