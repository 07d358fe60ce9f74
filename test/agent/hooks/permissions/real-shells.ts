// Three shells, each run in an empty folder where there are two programs: `ok` and `evil`. They
// say how they were called; nothing else can be run but a few programs that run others.

import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SHELLS = [
  ["/bin/dash", "-c"],
  ["/bin/bash", "-c"],
  ["/bin/busybox", "sh", "-c"],
];
export const hasShells = SHELLS.every(([path = ""]) => existsSync(path));

const STUB = `#!/bin/sh
for word in "\${0##*/}" "$@"; do printf '%s\\0' "$word"; done >> "$CALLS"
printf '\\n\\0' >> "$CALLS"
`;

export interface Playground extends Disposable {
  /** The calls of `ok` and `evil` that one shell after the other makes for the line, with their arguments. */
  run(line: string): IteratorObject<string[][]>;
}

export function playground(): Playground {
  const folder = mkdtempSync(join(tmpdir(), "skein-shells-"));
  const bin = join(folder, "bin");
  let runs = 0;
  mkdirSync(bin);
  for (const name of ["ok", "evil"]) writeFileSync(join(bin, name), STUB, { mode: 0o755 });
  for (const name of ["env", "xargs", "sh", "nohup", "timeout", "cat"])
    symlinkSync(existsSync(`/usr/bin/${name}`) ? `/usr/bin/${name}` : `/bin/${name}`, join(bin, name));
  const runIn = ([path = "", ...options]: string[], line: string) => {
    // What an earlier line left in the background writes into a file of its own.
    const work = join(folder, `work-${runs++}`);
    const calls = `${work}.calls`;
    mkdirSync(work);
    writeFileSync(calls, "");
    const env = { PATH: bin, CALLS: calls, HOME: work };
    spawnSync(path, [...options, line], {
      cwd: work,
      env,
      stdio: "ignore",
      timeout: 10_000,
      killSignal: "SIGKILL",
    });
    return readFileSync(calls, "utf8")
      .split("\n\0")
      .slice(0, -1)
      .map((call) => call.split("\0").slice(0, -1));
  };
  return {
    run: (line) => SHELLS.values().map((shell) => runIn(shell, line)),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
