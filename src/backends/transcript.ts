// The text of a command's output: what of it is said while the command runs, and what is kept.

import { StringDecoder } from "node:string_decoder";
import { firstChars } from "../lib/cut.ts";
import { headTail } from "../lib/head-tail.ts";

/** Of the output the first and the last so many characters are kept. */
const KEPT_CHARS = 50_000;
/** Output is said as it comes up to here, in pieces at most so often. */
const SAID_CHARS = 50_000;
const SAY_EVERY_MS = 100;

/** Decodes output, keeps its ends, and hands out its beginning in pieces of a reasonable size. */
export function newTranscript() {
  const decoder = new StringDecoder("utf8");
  const kept = headTail(KEPT_CHARS);
  let unsaid = "";
  let allowance = SAID_CHARS;
  let dueAt = 0;

  const add = (text: string) => {
    kept.push(text);
    const said = firstChars(text, allowance);
    unsaid += said;
    allowance = said.length < text.length ? 0 : allowance - said.length;
  };
  const say = () => {
    const text = unsaid;
    unsaid = "";
    dueAt = performance.now() + SAY_EVERY_MS;
    return text;
  };

  return {
    take: (chunk: Buffer) => add(decoder.write(chunk)),
    /** What is to be said now; empty when nothing is. */
    due: () => (unsaid !== "" && performance.now() >= dueAt ? say() : ""),
    /** Milliseconds until something is to be said, if there is anything. */
    dueIn: () => (unsaid === "" ? undefined : Math.max(1, dueAt - performance.now())),
    /** No more comes: what was not said yet. */
    end() {
      add(decoder.end());
      return say();
    },
    read: () => kept.read(),
  };
}
