// Runs the kernels on a processor, as a process that a test talks to. Usage: emulator forwards|backwards
//
// Requests come on standard input, answers go to standard output. All numbers are u64, little-endian.
//   'A' bytes                                    allocate       -> number of the piece
//   'W' piece length data                        write
//   'R' piece length                             read           -> data
//   'L' length name grid[3] block count (kind value)*          launch; a table's value is how many pieces follow
//   'B'                                          begin to record: launches are kept and not run
//   'E'                                          end that       -> number of the graph
//   'G' graph                                    run the launches of a graph
//   'P' a b b_from c m n k a_row a_stride b_row b_stride c_row c_stride batch      product
// A request that is not sound ends the process with a message.

#include "shim.h"

#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

namespace kernels {
#include "kernels.cu"
}

namespace {

using Word = std::uint64_t;

// The source's kinds of arguments, as backend.rs numbers them.
enum Kind : Word { MEMORY = 0, NOTHING = 1, U32 = 2, U64 = 3, F32 = 4, TABLE_OF = 5 };

struct Argument {
  Word kind, value;
  // Of a table: pieces of memory, `value` of them.
  std::vector<Word> pieces;
};

struct Piece {
  unsigned char *at;
  Word bytes;
};

std::vector<Piece> pieces;

// Ends where a page begins that nobody may touch: an access behind the end stops the process.
Word allocate(Word bytes) {
  const Word page = static_cast<Word>(sysconf(_SC_PAGESIZE));
  Word whole = (bytes + page - 1) / page * page;
  void *at = mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(static_cast<char *>(at) + whole, page, PROT_NONE) != 0) fail("no memory");
  // Not a number, as f32.
  std::memset(at, 0xff, whole);
  pieces.push_back({static_cast<unsigned char *>(at) + whole - bytes, bytes});
  return pieces.size() - 1;
}

const Piece &piece(Word number, Word bytes) {
  if (number >= pieces.size() || bytes > pieces[number].bytes) fail("outside of memory");
  return pieces[number];
}

template <class T>
T *address(Word number) {
  unsigned char *at = piece(number, 0).at;
  if (reinterpret_cast<std::uintptr_t>(at) % alignof(T) != 0) fail("memory is not aligned");
  return reinterpret_cast<T *>(at);
}

template <class T>
void convert(const Argument &argument, kernels::Table<T> &table) {
  if (argument.kind != TABLE_OF || argument.value > TABLE) fail("another kind where the kernel takes a table");
  table = {};
  for (Word i = 0; i < argument.value; i++) table.at[i] = address<T>(argument.pieces[i]);
}

template <class T>
T convert(const Argument &argument) {
  if constexpr (std::is_class_v<T>) {
    T table;
    convert(argument, table);
    return table;
  } else if constexpr (std::is_pointer_v<T>) {
    if (argument.kind == NOTHING) return nullptr;
    if (argument.kind != MEMORY) fail("a number where the kernel takes memory");
    return address<std::remove_pointer_t<T>>(argument.value);
  } else if constexpr (std::is_same_v<T, float>) {
    if (argument.kind != F32) fail("another kind where the kernel takes a float");
    return __uint_as_float(static_cast<unsigned>(argument.value));
  } else {
    static_assert(std::is_unsigned_v<T>);
    if (argument.kind != (sizeof(T) == 4 ? U32 : U64)) fail("another kind where the kernel takes an integer");
    return static_cast<T>(argument.value);
  }
}

using Kernel = std::function<void(const std::vector<Argument> &)>;
std::function<void()> thread;

template <class... T, std::size_t... I>
Kernel checked(void (*kernel)(T...), std::index_sequence<I...>) {
  return [kernel](const std::vector<Argument> &arguments) {
    if (arguments.size() != sizeof...(T)) fail("another number of arguments than the kernel takes");
    std::tuple<T...> values(convert<T>(arguments[I])...);
    thread = [kernel, values] { std::apply(kernel, values); };
  };
}

template <class... T>
Kernel checked(void (*kernel)(T...)) {
  return checked(kernel, std::index_sequence_for<T...>());
}

#define KERNEL(name) {#name, checked(kernels::name)}
const std::map<std::string, Kernel> KERNELS = {
    KERNEL(quantize),    KERNEL(quantize12),    KERNEL(normalize),    KERNEL(normalize_quantize), KERNEL(normalize_quantize12),
    KERNEL(product_16x8),   KERNEL(product_16x16),   KERNEL(product_32x32),   KERNEL(product_64x64),
    KERNEL(product12_16x8), KERNEL(product12_16x16), KERNEL(product12_32x32), KERNEL(product12_64x64),
    KERNEL(product_128x64), KERNEL(product_128x128), KERNEL(product12_128x64),
    KERNEL(dots),
    KERNEL(dots12),      KERNEL(flush),         KERNEL(embed),        KERNEL(embed12),       KERNEL(gelu_quantize), KERNEL(gelu_quantize12), KERNEL(accumulate),    KERNEL(gather),       KERNEL(greedy),
    KERNEL(copy),        KERNEL(quantize_heads), KERNEL(append),      KERNEL(copy_pages),    KERNEL(gather_pages),
    KERNEL(attend),      KERNEL(merge),         KERNEL(merge_quantize), KERNEL(merge_quantize12),
    KERNEL(mean_pool),   KERNEL(l2_normalize),  KERNEL(proof_words),  KERNEL(proof_gather),  KERNEL(proof_product),
    KERNEL(proof_hash),  KERNEL(proof_tree),    KERNEL(record),       KERNEL(digest_rows),
};

void read_exactly(void *into, Word bytes) {
  if (bytes != 0 && std::fread(into, 1, bytes, stdin) != bytes) fail("half a request");
}

Word word() {
  unsigned char bytes[8];
  read_exactly(bytes, 8);
  Word value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

struct Launch {
  std::map<std::string, Kernel>::const_iterator kernel;
  Word grid[3], block;
  std::vector<Argument> arguments;
};

std::vector<std::vector<Launch>> graphs;
bool is_recording = false;

void run(const Launch &launch, bool backwards) {
  launch.kernel->second(launch.arguments);
  fibres::body = [] { thread(); };
  const Word *grid = launch.grid;
  gridDim = {unsigned(grid[0]), unsigned(grid[1]), unsigned(grid[2])};
  blockDim = {unsigned(launch.block), 1, 1};
  for (unsigned z = 0; z < grid[2]; z++) {
    for (unsigned y = 0; y < grid[1]; y++) {
      for (unsigned x = 0; x < grid[0]; x++) {
        blockIdx = {x, y, z};
        fibres::run_block(unsigned(launch.block), backwards);
      }
    }
  }
}

void launch(bool backwards) {
  std::string name(word(), ' ');
  read_exactly(name.data(), name.size());
  Word grid[3] = {word(), word(), word()};
  Word block = word();
  std::vector<Argument> arguments(word());
  for (Argument &argument : arguments) {
    argument.kind = word();
    argument.value = word();
    if (argument.kind == TABLE_OF) argument.pieces.resize(argument.value);
    for (Word &number : argument.pieces) number = word();
  }
  auto kernel = KERNELS.find(name);
  if (kernel == KERNELS.end()) fail("no such kernel");
  if (grid[0] == 0 || grid[0] >> 31 || grid[1] == 0 || grid[1] > 65535 || grid[2] == 0 || grid[2] > 65535) {
    fail("no device takes such a grid");
  }
  if (block == 0 || block > 1024) fail("no device takes such a block");
  Launch launch = {kernel, {grid[0], grid[1], grid[2]}, block, arguments};
  if (is_recording) {
    graphs.back().push_back(launch);
  } else {
    run(launch, backwards);
  }
}

void begin_recording() {
  if (is_recording) fail("it is recording already");
  is_recording = true;
  graphs.emplace_back();
}

void replay(bool backwards) {
  Word graph = word();
  if (is_recording || graph >= graphs.size()) fail("no such graph");
  for (const Launch &launch : graphs[graph]) run(launch, backwards);
}

void answer(Word number) {
  unsigned char bytes[8];
  for (unsigned char &byte : bytes) {
    byte = static_cast<unsigned char>(number);
    number >>= 8;
  }
  std::fwrite(bytes, 1, 8, stdout);
}

// The vendor's cublasGemmStridedBatchedEx, int8 to int32, transposed a; with its conditions for tensor cores.
void product() {
  Word a = word(), b = word(), b_from = word(), c = word(), m = word(), n = word(), k = word();
  Word a_row = word(), a_stride = word(), b_row = word(), b_stride = word(), c_row = word(), c_stride = word();
  Word batch = word();
  for (Word number : {m, k, a_row, a_stride, b_from, b_row, b_stride, c_row, c_stride}) {
    if (number % 16 != 0) fail("a size or a stride that tensor cores do not take");
  }
  auto *x = reinterpret_cast<std::int8_t *>(piece(a, (batch - 1) * a_stride + (m - 1) * a_row + k).at);
  auto *y = reinterpret_cast<std::int8_t *>(piece(b, b_from + (batch - 1) * b_stride + (n - 1) * b_row + k).at);
  auto *z = reinterpret_cast<std::int32_t *>(piece(c, 4 * ((batch - 1) * c_stride + (n - 1) * c_row + m)).at);
  for (Word g = 0; g < batch; g++) {
    for (Word j = 0; j < n; j++) {
      for (Word i = 0; i < m; i++) {
        std::int32_t sum = 0;
        for (Word l = 0; l < k; l++) sum += x[g * a_stride + i * a_row + l] * y[b_from + g * b_stride + j * b_row + l];
        z[g * c_stride + j * c_row + i] = sum;
      }
    }
  }
}

}  // namespace

int main(int count, char **words) {
  if (count != 2) fail("usage: emulator forwards|backwards");
  bool backwards = std::string(words[1]) == "backwards";
  for (int request; (request = std::getchar()) != EOF;) {
    if (request == 'A') {
      answer(allocate(word()));
    } else if (request == 'W') {
      Word number = word(), bytes = word();
      read_exactly(piece(number, bytes).at, bytes);
    } else if (request == 'R') {
      Word number = word(), bytes = word();
      std::fwrite(piece(number, bytes).at, 1, bytes, stdout);
    } else if (request == 'L') {
      launch(backwards);
    } else if (request == 'B') {
      begin_recording();
    } else if (request == 'E') {
      if (!is_recording) fail("nothing is recorded");
      is_recording = false;
      answer(graphs.size() - 1);
    } else if (request == 'G') {
      replay(backwards);
    } else if (request == 'P') {
      product();
    } else {
      fail("no such request");
    }
    std::fflush(stdout);
  }
}
