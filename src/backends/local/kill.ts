// Ending a command with everything it has started: its process group, and what has left the group but still
// carries the mark that the command had in its environment. What leaves the group and wipes its environment
// stays; where there is no /proc, only the group is found.

import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { HAS_PROC } from "./platform.ts";

/** The variable that holds the mark. */
export const MARK = "SKEIN_JOB";

/** How long those who are asked to end may take. */
const GRACE_MS = 400;
const MIN_WAIT_MS = 10;
const MAX_WAIT_MS = 80;
/** A process that forks while it is looked for may need several looks. */
const MAX_ROUNDS = 20;
const READS_AT_ONCE = 16;

interface Tree {
  /** The group's leader. Absent when it has ended, for then its number may be another's. */
  readonly leader?: number;
  /** Which marks are meant. */
  readonly isMarked: (mark: string) => boolean;
}

/** Asks first, then kills. Returns when nothing is left. */
export async function endTree({ leader, isMarked }: Tree): Promise<void> {
  const marked = () => processes(async (pid) => isMarked(await markOf(pid)));
  const asked = leader === undefined ? await marked() : [-leader];
  for (const target of asked) {
    signal(target, "SIGTERM");
    // A stopped process hears the other one only when it goes on.
    signal(target, "SIGCONT");
  }
  const left = leader === undefined ? marked : () => processes((pid) => isMember(pid, leader));
  const deadline = performance.now() + GRACE_MS;
  for (let wait = MIN_WAIT_MS; performance.now() < deadline; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
    if (asked.every(isGone) || (HAS_PROC && (await left()).length === 0)) break;
    await sleep(wait);
  }
  for (const target of asked) signal(target, "SIGKILL");
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const strays = await marked();
    if (strays.length === 0) return;
    for (const pid of strays) signal(pid, "SIGKILL");
  }
}

async function processes(test: (pid: number) => Promise<boolean>): Promise<number[]> {
  const pids = (await readdir("/proc").catch(() => [])).map(Number).filter((pid) => pid > 0);
  const found: number[] = [];
  for (let at = 0; at < pids.length; at += READS_AT_ONCE) {
    const batch = pids.slice(at, at + READS_AT_ONCE);
    const answers = await Promise.all(batch.map(test));
    found.push(...batch.filter((_, index) => answers[index]));
  }
  return found;
}

/** Empty for a process without one, one of another user, and one that has ended. */
async function markOf(pid: number): Promise<string> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  const variable = environment.split("\0").find((candidate) => candidate.startsWith(`${MARK}=`));
  return variable?.slice(MARK.length + 1) ?? "";
}

/** Whether it lives and belongs to the group: one that has ended is a member until its parent asks for it. */
async function isMember(pid: number, group: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // `pid (name) state parent group …`; the name may hold anything.
  const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(pgrp) === group && state !== "Z" && state !== "X";
}

function signal(target: number, name: NodeJS.Signals): void {
  try {
    process.kill(target, name);
  } catch {
    // It is gone.
  }
}

function isGone(target: number): boolean {
  try {
    process.kill(target, 0);
    return false;
  } catch {
    return true;
  }
}
