// Prefill and decoding with llama.cpp, measured: see `contestant.py` for how it is asked.
//
//   node llama_cpp.mjs NODE_MODULES MODEL.gguf THREADS
//
// `{"flash": BOOL, "prompt": N}` measures the prefill of N tokens; with `"decode": M` the M tokens after it instead.

import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";
import path from "node:path";

const [modules, modelPath, threads] = process.argv.slice(2);
const entry = pathToFileURL(path.join(modules, "node-llama-cpp", "dist", "index.js"));
const {getLlama, LlamaLogLevel} = await import(entry.href);

const say = answer => process.stdout.write(JSON.stringify(answer) + "\n");

// Times a piece of work: by the clock, and what it had of the processors.
function start() {
    const from = performance.now(), had = process.cpuUsage();
    return () => {
        const {user, system} = process.cpuUsage(had);
        return {seconds: (performance.now() - from) / 1e3, processor_seconds: (user + system) / 1e6};
    };
}

const begun = performance.now();
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath});
const load = (performance.now() - begun) / 1e3;

// One context at a time, as a user would have it.
let context, sequence, flashNow;
async function contextFor(flash, size) {
    if (flash === flashNow) return;
    await context?.dispose();
    context = await model.createContext({
        contextSize: size, batchSize: 512, threads: Number(threads), flashAttention: flash
    });
    sequence = context.getSequence();
    flashNow = flash;
}

say({ready: true, load_seconds: load, instructions: llama.systemInfo});
for await (const line of createInterface({input: process.stdin})) {
    const {flash, prompt, decode} = JSON.parse(line);
    await contextFor(flash, 1024);
    await sequence.clearHistory();
    const tokens = Array.from({length: prompt}, (_, index) => 300 + (index * 7919) % 7000);
    let clock = start();
    await sequence.evaluateWithoutGeneratingNewTokens(tokens);
    if (decode === undefined) {
        say({units: prompt, ...clock()});
        continue;
    }
    clock = start();
    let count = 0;
    for await (const _ of sequence.evaluate([300], {temperature: 0, yieldEogToken: true})) {
        count++;
        if (count >= decode) break;
    }
    say({units: count, ...clock()});
}
process.exit(0);
