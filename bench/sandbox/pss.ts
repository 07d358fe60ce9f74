// Measures the memory of a container's processes and of the shim that the engine runs for it. Shared pages count
// proportionally.

import { readdirSync, readFileSync } from "node:fs";
import type Docker from "dockerode";

/** In bytes. NaN if this machine's /proc does not show the engine's processes. */
export async function pssOf(docker: Docker, container: string): Promise<number> {
  const { Id } = await docker.getContainer(container).inspect();
  const sizes = pids()
    .filter((pid) => read(pid, "cgroup").includes(Id) || read(pid, "cmdline").includes(Id))
    .map((pid) => Number(/^Pss:\s+(\d+) kB$/m.exec(read(pid, "smaps_rollup"))?.[1] ?? 0) * 1024);
  const sum = sizes.reduce((all, size) => all + size, 0);
  return sum > 0 ? sum : Number.NaN;
}

const pids = () =>
  process.platform === "linux" ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];

/** Returns an empty string if the process does not exist or belongs to another user. */
function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
