// Writes the result of each reader for the logs in test/fixtures/logs. test/wires/golden.test.ts compares against these
// files. Run it only for changes that clients are meant to see. `node script/record-frames.ts [reader]`

import { mkdir, writeFile } from "node:fs/promises";
import { brotliCompressSync } from "node:zlib";
import { FRAMES, framesOf, READERS, recordedLogs } from "../test/support/frames.ts";

const only = process.argv[2];
const logs = recordedLogs();
await mkdir(FRAMES, { recursive: true });
for (const [name, reader] of Object.entries(READERS)) {
  if (only !== undefined && name !== only) continue;
  const made = Object.fromEntries(logs.map(([log, runs]) => [log, framesOf(reader, runs)]));
  await writeFile(`${FRAMES}${name}.json.br`, brotliCompressSync(JSON.stringify(made)));
}
