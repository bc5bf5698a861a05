// Typed descriptors of the chain under test, by PAPI's own generator from the chain's own metadata.

import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

// Nothing of it is a package that is installed: it is generated for these tests, and gone with them.
const CONFIG = { version: 0, descriptorPath: "descriptors", options: { noDescriptorsPackage: true }, entries: {} };
const MODULES = fileURLToPath(new URL("node_modules", import.meta.url));
const PAPI = join(MODULES, "polkadot-api", "bin", "cli.js");
const TSC = join(MODULES, "typescript", "bin", "tsc");
const TYPED = fileURLToPath(new URL("typed.ts", import.meta.url));
const SECONDS = 600;

const run = (argv, cwd) => promisify(execFile)(process.execPath, argv, { cwd, timeout: SECONDS * 1000 });

/**
 * What `papi add` generates from the metadata of a client's chain. Returns the chain's descriptors, and the folder that
 * they are in: it goes with the process.
 */
export async function generate(client) {
  const { hash } = await client.getFinalizedBlock();
  // Outside of the modules, in which the generator compiles nothing; what it generates imports some of them.
  const folder = await mkdtemp(join(tmpdir(), "surety-descriptors-"));
  process.once("exit", () => rmSync(folder, { recursive: true }));
  await symlink(MODULES, join(folder, "node_modules"));
  await mkdir(join(folder, ".papi"));
  await writeFile(join(folder, ".papi", "polkadot-api.json"), JSON.stringify(CONFIG));
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "dapp", type: "module" }));
  await writeFile(join(folder, "surety.scale"), await client.getMetadata(hash));
  await run([PAPI, "add", "surety", "--file", "surety.scale"], folder);
  const { surety } = await import(pathToFileURL(join(folder, "descriptors", "dist", "index.js")));
  return { folder, surety };
}

/** Has the compiler check `typed.ts` against generated descriptors. Rejects with what it says. */
export async function check(folder) {
  const options = {
    module: "esnext",
    moduleResolution: "bundler",
    noEmit: true,
    paths: { descriptors: [join(folder, "descriptors", "dist")] },
    skipLibCheck: true,
    strict: true,
    target: "esnext",
    types: [],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: [TYPED] }));
  await run([TSC, "--project", folder], folder).catch((error) => {
    throw new Error(error.stdout || String(error));
  });
}
