#!/usr/bin/env node
// The entry point of the process. V8's compiled code is stored beside package.json, so that the next process can reuse
// it; nothing is stored if the folder is read-only. The cache must be enabled before anything else is loaded.

import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

enableCompileCache(fileURLToPath(new URL("../.compiled", import.meta.url)));
await import("./skein/cli/main.ts");
