// llama.cpp behind HTTP, as `scripts/bench seconds` asks the gateway: POST /v1/completions, streamed.
//
//   node llama_server.mjs NODE_MODULES MODEL.gguf THREADS STREAMS CONTEXT
//
// Generations run side by side in the steps of one context; a request beyond STREAMS waits. Each answer has as many
// tokens as are asked for. Prints `{"ready": true, "port": N}`, and ends with its standard input.

import http from "node:http";
import {pathToFileURL} from "node:url";
import path from "node:path";

const [modules, modelPath, threads, streams, contextSize] = process.argv.slice(2);
const entry = pathToFileURL(path.join(modules, "node-llama-cpp", "dist", "index.js"));
const {getLlama, LlamaLogLevel} = await import(entry.href);

const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath});
const context = await model.createContext({
    contextSize: Number(contextSize), sequences: Number(streams), batchSize: 512, threads: Number(threads),
    flashAttention: true
});
const free = Array.from({length: Number(streams)}, () => context.getSequence());
const waiting = [];

const take = () => free.length > 0 ? free.pop() : new Promise(resolve => waiting.push(resolve));

function giveBack(sequence) {
    const next = waiting.shift();
    if (next === undefined) free.push(sequence);
    else next(sequence);
}

async function answer(request, response) {
    let body = "";
    for await (const part of request) body += part;
    const {prompt, max_tokens: most} = JSON.parse(body);
    const sequence = await take();
    try {
        await sequence.clearHistory();
        response.writeHead(200, {"content-type": "text/event-stream"});
        const say = value => response.write(`data: ${JSON.stringify(value)}\n\n`);
        let count = 0;
        for await (const token of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
            say({choices: [{index: 0, text: model.detokenize([token])}]});
            if (++count >= most) break;
        }
        say({choices: [], usage: {completion_tokens: count}});
        response.end("data: [DONE]\n\n");
    } finally {
        giveBack(sequence);
    }
}

const server = http.createServer((request, response) => {
    answer(request, response).catch(error => {
        console.error(error);
        response.destroy();
    });
});
server.listen(0, "127.0.0.1", () => {
    process.stdout.write(JSON.stringify({ready: true, port: server.address().port}) + "\n");
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
