// Loaded into a program (LD_PRELOAD), it hides instruction sets from it: whoever asks the processor what it has, once
// this is loaded, is answered without them. Linux on x86-64, on processors that can fault on CPUID.
//
//   CPUID_WITHOUT=amx,avx512,avx512-later,avx-vnni LD_PRELOAD=cpuid.so PROGRAM

#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_SET_CPUID = 0x1012, EXTENDED_FEATURES = 7, INSTRUCTION_BYTES = 2 };

// Bits of EAX, EBX, ECX and EDX of leaf 7, by subleaf.
struct set {
  const char *name;
  unsigned bits[2][4];
};

static const struct set SETS[] = {
    // Tiles, with numbers of bfloat16, int8 and float16, and complex ones.
    {"amx", {{0, 0, 0, 1u << 22 | 1u << 24 | 1u << 25}, {1u << 21, 0, 0, 1u << 8}}},
    {"avx512",
     {{0, 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31,
       1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14, 1u << 2 | 1u << 3},
      {0, 0, 0, 1u << 19}}},
    // What came after VNNI: intersections, float16 and bfloat16.
    {"avx512-later", {{0, 0, 0, 1u << 8 | 1u << 23}, {1u << 5, 0, 0, 0}}},
    // With 8 bits, 16 bits, 52-bit integers and conversions.
    {"avx-vnni", {{0, 0, 0, 0}, {1u << 4 | 1u << 23, 0, 0, 1u << 4 | 1u << 5 | 1u << 10}}},
};

static unsigned hidden[2][4];

static long faults(int does) { return syscall(SYS_arch_prctl, ARCH_SET_CPUID, !does); }

// What the program wants done about other faults. Some set what they find back, as Node.js does when it starts.
static struct sigaction wanted;
static int (*next_sigaction)(int, const struct sigaction *, struct sigaction *);

int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
  if (!next_sigaction) next_sigaction = dlsym(RTLD_NEXT, "sigaction");
  if (number != SIGSEGV) return next_sigaction(number, action, before);
  if (before) *before = wanted;
  if (action) wanted = *action;
  return 0;
}

sighandler_t signal(int number, sighandler_t handler) {
  struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  return sigaction(number, &action, &before) ? SIG_ERR : before.sa_handler;
}

static void answer(int number, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *at = (const unsigned char *)registers[REG_RIP];
  if (at[0] != 0x0f || at[1] != 0xa2) {
    // Another fault.
    if (wanted.sa_flags & SA_SIGINFO)
      wanted.sa_sigaction(number, info, context);
    else if (wanted.sa_handler == SIG_DFL || wanted.sa_handler == SIG_IGN)
      next_sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);  // It comes again, and ends the program.
    else
      wanted.sa_handler(number);
    return;
  }
  unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], found[4];
  faults(0);
  __cpuid_count(leaf, subleaf, found[0], found[1], found[2], found[3]);
  faults(1);
  if (leaf == EXTENDED_FEATURES && subleaf < 2)
    for (int i = 0; i < 4; i++) found[i] &= ~hidden[subleaf][i];
  registers[REG_RAX] = found[0];
  registers[REG_RBX] = found[1];
  registers[REG_RCX] = found[2];
  registers[REG_RDX] = found[3];
  registers[REG_RIP] += INSTRUCTION_BYTES;
}

__attribute__((constructor)) static void begin(void) {
  const char *without = getenv("CPUID_WITHOUT");
  char *names = strdup(without ? without : ""), *rest = names;
  for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ","))
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++)
      if (!strcmp(name, SETS[i].name))
        for (int j = 0; j < 8; j++) hidden[j / 4][j % 4] |= SETS[i].bits[j / 4][j % 4];
  free(names);
  struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  next_sigaction = dlsym(RTLD_NEXT, "sigaction");
  if (next_sigaction(SIGSEGV, &action, NULL) || faults(1)) {
    perror("CPUID_WITHOUT: this processor, or its hypervisor, cannot fault on CPUID");
    exit(1);
  }
}
