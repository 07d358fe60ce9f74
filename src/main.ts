#!/usr/bin/env node
// Where a process starts. What V8 compiles is kept beside package.json, so that the next process reads it; nothing is kept where the
// folder cannot be written to. That has to be said before anything else is loaded.

import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

enableCompileCache(fileURLToPath(new URL("../.compiled", import.meta.url)));
await import("./skein/cli/main.ts");
