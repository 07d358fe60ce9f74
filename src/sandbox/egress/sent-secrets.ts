// The secrets that were sent to hosts, and the forms in which answers repeat them.

import { replacer, replacingAll } from "../../lib/replacer.ts";
import type { AnswerMask } from "./onward.ts";

/** How many values of a variable are remembered: renewed tokens replace each other. */
const MAX_VALUES = 4;

export interface SentSecrets {
  /** `value`: its bytes, as latin1. */
  add(placeholder: string, value: string): void;
  /** Puts placeholders where secrets are. Undefined if none was sent. */
  mask(): AnswerMask | undefined;
}

export function sentSecrets(): SentSecrets {
  const sent = new Map<string, readonly string[]>();
  let made: AnswerMask | undefined;
  return {
    add(placeholder, value) {
      const known = sent.get(placeholder) ?? [];
      if (known.includes(value)) return;
      sent.set(placeholder, [...known, value].slice(-MAX_VALUES));
      made = undefined;
    },
    mask() {
      if (sent.size === 0) return undefined;
      const words = () =>
        new Map(
          [...sent].flatMap(([placeholder, values]) =>
            values.flatMap(formsOf).map((form) => [form, placeholder]),
          ),
        );
      made ??= masking(words());
      return made;
    },
  };
}

const masking = (words: ReadonlyMap<string, string>): AnswerMask =>
  Object.assign(replacingAll(words), { inPieces: replacer(words) });

/** As it is, within JSON, within a URL, and within base64 after any text. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value, "latin1");
  const encoded = [0, 1, 2].map((before) => insideBase64(bytes, before));
  return [
    value,
    value.replace(/["\\]/g, "\\$&"),
    encodeURIComponent(bytes.toString()),
    ...encoded,
    ...encoded.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}

/** The characters that depend on the secret alone if `before` bytes are in its first group of three. */
function insideBase64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
}
