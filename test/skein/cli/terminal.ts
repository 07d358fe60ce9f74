// Commands at a terminal, as a person has them: what they say, and what is typed when they say so.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished } from "vitest";
import { needing } from "../../support/needing.ts";
import { NODE_ENV } from "../../support/node.ts";
import { MAIN } from "../../support/program.ts";

export const { test: testAtTerminal } = needing(process.platform === "linux", "the `script` of Linux");

interface AtTerminal {
  /** With colours, and lines that are edited; else a terminal that can show text alone. */
  readonly colours?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

export interface TerminalOptions extends Pick<AtTerminal, "colours"> {
  readonly thread?: string;
  readonly args?: readonly string[];
}

/** Killed when the test has finished. */
export function chatting(url: string, { thread = "t1", args = [], colours = false }: TerminalOptions = {}) {
  return atTerminal(["chat", "--url", url, "--thread", thread, ...args], { colours });
}

/** `skein …`, killed when the test has finished. */
export function atTerminal(args: readonly string[], { colours = false, env = {} }: AtTerminal = {}) {
  const command = [process.execPath, MAIN, ...args];
  const shows = colours ? { TERM: "xterm" } : { TERM: "dumb", NO_COLOR: "1" };
  const child = spawn("script", ["-qefc", command.map(quoted).join(" "), "/dev/null"], {
    env: { ...NODE_ENV, ...shows, ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (chunk) => (text += String(chunk).replaceAll("\r", "")));
  const hear = async (cue: string) => {
    await expect.poll(() => text).toContain(cue);
    const end = text.indexOf(cue) + cue.length;
    const heard = text.slice(0, end);
    text = text.slice(end);
    return heard;
  };
  const say = async (cue: string, line: string) => {
    const heard = await hear(cue);
    child.stdin.write(`${line}\n`);
    return heard;
  };
  const press = (key: string) => child.stdin.write(key);
  return { say, hear, press, ended: once(child, "exit") };
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
