// llama.cpp's side of `scripts/on-device`: a model whose layers are all on one device, with flash attention.
//
// Usage: llama-cuda MODEL_FILE DEVICE. It says whether it can, then answers line by line. Sequences are given as
// llama.cpp's own batched bench does it: each has its own keys and values, and tokens are made up, so nothing is sampled.

#include <llama.h>

#include <ggml-backend.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using json = nlohmann::json;

// Tokens that go through the model together, unless a command says otherwise.
static const uint32_t ROWS_MAX = 2048;
static const uint32_t LOGITS_SHOWN = 256;
static const uint32_t SEED = 7;

// Stands for every function that was left out of this build: of other kinds of weights, head sizes and models.
extern "C" [[noreturn]] void left_out() {
    std::fputs("this build of llama.cpp has no kernel for that\n", stderr);
    std::abort();
}

static void say(const json & answer) {
    std::cout << answer.dump() << std::endl;
}

// Nothing but what is wrong.
static void tell(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) {
        std::fputs(text, stderr);
    }
}

static ggml_backend_dev_t device(size_t number) {
    for (size_t index = 0; index < ggml_backend_dev_count(); index++) {
        ggml_backend_dev_t found = ggml_backend_dev_get(index);
        if (ggml_backend_dev_type(found) == GGML_BACKEND_DEVICE_TYPE_GPU && number-- == 0) {
            return found;
        }
    }
    return nullptr;
}

// Tokens, each with its sequence and position.
class Batch {
  public:
    explicit Batch(uint32_t size) : batch(llama_batch_init(size, 0, 1)), size(size) {}
    ~Batch() { llama_batch_free(batch); }
    Batch(const Batch &) = delete;
    Batch & operator=(const Batch &) = delete;

    bool full() const { return uint32_t(batch.n_tokens) == size; }

    void add(llama_token token, llama_pos position, llama_seq_id sequence, bool answered) {
        const int32_t at = batch.n_tokens++;
        batch.token[at] = token;
        batch.pos[at] = position;
        batch.n_seq_id[at] = 1;
        batch.seq_id[at][0] = sequence;
        batch.logits[at] = answered;
    }

    void compute(llama_context * context) {
        if (batch.n_tokens == 0) {
            return;
        }
        if (const int32_t code = llama_decode(context, batch)) {
            throw std::runtime_error("llama_decode returned " + std::to_string(code));
        }
        batch.n_tokens = 0;
    }

  private:
    llama_batch batch;
    uint32_t size;
};

// So many sequences at once.
class Sequences {
  public:
    Sequences(llama_model * model, uint32_t streams, uint32_t rows) : streams(streams), rows(rows), batch(rows) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = streams * llama_model_n_ctx_train(model);
        params.n_batch = params.n_ubatch = rows;
        params.n_seq_max = streams;
        // All that is left to the processor is to look up tokens. More threads would be started for each of those.
        params.n_threads = params.n_threads_batch = 1;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        params.no_perf = true;
        context.reset(llama_init_from_model(model, params));
        if (!context) {
            throw std::runtime_error("there is no room for " + std::to_string(streams) + " sequences");
        }
        vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    }

    // Seconds of reading prompts, or of adding `decode` tokens behind each of them.
    json generate(const std::string & what, int32_t prompt, int32_t decode) {
        llama_memory_clear(llama_get_memory(context.get()), false);
        llama_synchronize(context.get());
        double seconds = timed([&] { read(prompt); });
        if (what == "prefill") {
            return {{"units", streams * prompt}, {"seconds", seconds}};
        }
        seconds = timed([&] {
            for (int32_t position = prompt; position < prompt + decode; position++) {
                add(position);
                // A token is only known once the one before it is.
                llama_synchronize(context.get());
            }
        });
        return {{"units", streams * decode}, {"seconds", seconds}};
    }

    // Some of what the last sequence has behind a prompt and a token: whether a device computes what a processor does.
    json logits(int32_t prompt) {
        numbers.seed(SEED);
        llama_memory_clear(llama_get_memory(context.get()), false);
        read(prompt);
        add(prompt);
        const float * found = llama_get_logits_ith(context.get(), int32_t(streams) - 1);
        return {{"logits", std::vector<float>(found, found + std::min(vocabulary, LOGITS_SHOWN))}};
    }

    const uint32_t streams, rows;

  private:
    template <typename Work> double timed(Work work) {
        const auto begun = std::chrono::steady_clock::now();
        work();
        llama_synchronize(context.get());
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    }

    void read(int32_t prompt) {
        for (uint32_t sequence = 0; sequence < streams; sequence++) {
            for (int32_t position = 0; position < prompt; position++) {
                batch.add(token(), position, sequence, position == prompt - 1);
                if (batch.full()) {
                    batch.compute(context.get());
                }
            }
        }
        batch.compute(context.get());
    }

    // A token behind each sequence.
    void add(int32_t position) {
        for (uint32_t sequence = 0; sequence < streams; sequence++) {
            batch.add(token(), position, sequence, true);
        }
        batch.compute(context.get());
    }

    llama_token token() { return llama_token(numbers() % vocabulary); }

    struct Freed {
        void operator()(llama_context * context) const { llama_free(context); }
    };
    std::unique_ptr<llama_context, Freed> context;
    Batch batch;
    uint32_t vocabulary = 0;
    std::minstd_rand numbers{SEED};
};

int main(int argc, char ** argv) {
    if (argc != 3) {
        std::fputs("usage: llama-cuda MODEL_FILE DEVICE\n", stderr);
        return 2;
    }
    llama_log_set(tell, nullptr);
    llama_backend_init();
    // With none it is the processor: only to try this out.
    const std::string where = argv[2];
    ggml_backend_dev_t devices[] = {where == "cpu" ? nullptr : device(std::stoul(where)), nullptr};
    if (where != "cpu" && devices[0] == nullptr) {
        say({{"ready", false}, {"error", "llama.cpp finds no device"}});
        return 0;
    }
    llama_model_params params = llama_model_default_params();
    params.devices = devices;
    llama_model * model = llama_model_load_from_file(argv[1], params);
    if (model == nullptr) {
        return 1;
    }
    say({{"ready", true},
         {"llama_cpp", llama_version()},
         {"device", devices[0] ? ggml_backend_dev_description(devices[0]) : "cpu"},
         {"bytes", llama_model_size(model)},
         {"system", llama_print_system_info()}});
    std::unique_ptr<Sequences> sequences;
    for (std::string line; std::getline(std::cin, line);) {
        const json command = json::parse(line);
        const uint32_t streams = command.at("streams"), rows = command.value("rows", ROWS_MAX);
        if (!sequences || sequences->streams != streams || sequences->rows != rows) {
            sequences.reset();
            sequences = std::make_unique<Sequences>(model, streams, rows);
        }
        const std::string what = command.at("what");
        const int32_t prompt = command.at("prompt"), decode = command.value("decode", 0);
        say(what == "logits" ? sequences->logits(prompt) : sequences->generate(what, prompt, decode));
    }
    sequences.reset();
    llama_model_free(model);
    llama_backend_free();
}
