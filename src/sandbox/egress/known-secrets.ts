// The secrets that a host may know, and the forms in which answers may repeat them.

import { replacer, replacingAll } from "../../lib/replacer.ts";
import type { AnswerMask } from "./onward.ts";

/** The number of values to keep for a variable, because tokens are renewed. */
const MAX_VALUES = 4;

export interface KnownSecrets {
  /** Adds a secret. `value` contains its bytes as Latin-1 text. */
  add(placeholder: string, value: string): void;
  /** Returns a mask that replaces secrets with placeholders, or undefined if no secrets are known. */
  mask(): AnswerMask | undefined;
}

export function knownSecrets(): KnownSecrets {
  const known = new Map<string, readonly string[]>();
  let made: AnswerMask | undefined;
  return {
    add(placeholder, value) {
      const values = known.get(placeholder) ?? [];
      if (values.includes(value)) return;
      known.set(placeholder, [...values, value].slice(-MAX_VALUES));
      made = undefined;
    },
    mask() {
      if (known.size === 0) return undefined;
      const words = () =>
        new Map(
          [...known].flatMap(([placeholder, values]) =>
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

/**
 * Returns the forms of a value: unchanged, in JSON as different libraries escape it, in a URL, and in base64
 * after any text.
 */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value, "latin1");
  const inUrl = encodeURIComponent(bytes.toString());
  const inJson = value.replace(/["\\]/g, "\\$&");
  const asCode = (char: string) => `\\u00${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
  const coded = value.replace(/["'\\+&<>]/g, asCode);
  const encoded = [0, 1, 2].map((before) => insideBase64(bytes, before));
  return [
    value,
    ...[inJson, inJson.replaceAll("/", "\\/")],
    ...[coded, coded.replace(/\\u00(..)/g, (_, digits: string) => `\\u00${digits.toUpperCase()}`)],
    ...[inUrl, inUrl.replace(/%../g, (code) => code.toLowerCase())],
    ...encoded,
    ...encoded.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}

/**
 * Returns the base64 characters that depend only on the secret, if `before` other bytes precede it in its
 * first group of three.
 */
function insideBase64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
}
