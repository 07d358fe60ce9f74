// Bodies that fit a schema, nearly fit it, or are hostile; and how they are sent.

import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { type Operation, resolved, type Schema } from "../../support/openapi.ts";

export const LONG = "a".repeat(5_000);

export const TYPES = [
  ...[
    "application/json; charset=utf-8",
    "application/json; charset=utf-16",
    "APPLICATION/JSON",
    "application/json;;",
  ],
  ...[
    "application/problem+json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "a/b/c",
  ],
  ...[
    "application/octet-stream",
    "*/*",
    "",
    "application/json\t",
    `application/${"x".repeat(5_000)}`,
    "__proto__",
  ],
];
export const FRAMINGS = ["cut", "chunked", "bad chunks", "gzip", "short", "two lengths"];

export function framed(body: string | undefined, framing: string): { sent: Buffer; lines: string } {
  if (body === undefined) return { sent: Buffer.alloc(0), lines: "" };
  const bytes = framing === "gzip" ? gzipSync(body) : Buffer.from(body);
  const length = `Content-Length: ${bytes.length}\r\n`;
  const chunked = "Transfer-Encoding: chunked\r\n";
  const chunk = `${bytes.length.toString(16)}\r\n${bytes.toString("latin1")}\r\n0\r\n\r\n`;
  if (framing === "cut") return { sent: bytes, lines: `Content-Length: ${bytes.length + 10}\r\n` };
  if (framing === "chunked") return { sent: Buffer.from(chunk, "latin1"), lines: chunked };
  if (framing === "bad chunks") return { sent: Buffer.from(`zz\r\n${body}`), lines: chunked };
  if (framing === "gzip") return { sent: bytes, lines: `${length}Content-Encoding: gzip\r\n` };
  if (framing === "short") return { sent: Buffer.concat([bytes, bytes]), lines: length };
  if (framing === "two lengths") return { sent: bytes, lines: `${length}Content-Length: 3\r\n` };
  return { sent: bytes, lines: length };
}

const nested = (open: string, close: string, depth: number, inside = "1") =>
  open.repeat(depth) + inside + close.repeat(depth);

/** As JSON: what an object of JavaScript cannot be written down as. */
const JSON_TEXTS = [
  ...[
    "1e400",
    "-1e400",
    "-0",
    "1e-400",
    "9007199254740993",
    "0.1e1",
    "null",
    "true",
    '""',
    "[]",
    "{}",
    "[[]]",
  ],
  ...['{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}', '{"__proto__":null}'],
  ...[
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u202e"',
    '"\\r\\nX-Evil: 1"',
    '"\\u2028"',
  ],
  ...[
    '{"toString":1}',
    '{"length":-1}',
    '{"then":1}',
    '{"toJSON":1}',
    '{"":1}',
    '{"$ref":"#"}',
    '{"a":1,"a":2}',
  ],
  ...[nested("[", "]", 200), nested("[", "]", 20_000), nested('{"a":', "}", 20_000), `"${LONG}"`],
  `[${"1,".repeat(20_000)}1]`,
  `{${Array.from({ length: 3_000 }, (_, index) => `"k${index}":1`).join(",")}}`,
];
const jsonText = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...JSON_TEXTS) }, fc.json());

export const BODY_TEXTS = fc.oneof(
  jsonText,
  fc.constantFrom(
    "",
    " ",
    "{",
    '{"input":',
    '{"input":"a"}}',
    "\ufeff{}",
    "'a'",
    "undefined",
    "NaN",
    "<a/>",
    "a=b",
  ),
  fc.constant(`{"input":"${"x".repeat(1 << 20)}"}`),
  fc.string({ unit: "binary" }),
);

/** `samples` are bodies as JSON. */
export function bodyOf({ body }: Operation, samples: readonly string[] = []): fc.Arbitrary<string> {
  if (!body) return BODY_TEXTS;
  const made = fitting(body);
  const fits =
    samples.length > 0
      ? fc.oneof(
          fc.constantFrom(...samples).map((text) => JSON.parse(text)),
          made,
        )
      : made;
  return fc.oneof(
    { weight: 5, arbitrary: fits.map((value) => JSON.stringify(value)) },
    {
      weight: 4,
      arbitrary: fc.tuple(fits, fc.nat(), jsonText).map(([value, at, text]) => spoilt(value, at, text)),
    },
    { weight: 1, arbitrary: fc.tuple(fits, fc.nat()).map(([value, at]) => cut(JSON.stringify(value), at)) },
    { weight: 2, arbitrary: BODY_TEXTS },
  );
}

const cut = (text: string, at: number) => text.slice(0, at % (text.length + 1));

/** `value` as JSON, with one of its parts replaced by `text`, or with a key that is not known. */
function spoilt(value: unknown, at: number, text: string): string {
  const json = JSON.stringify(value);
  const places = [...json.matchAll(/:("(?:[^"\\]|\\.)*"|[\d.e+-]+|true|false|\[|\{)/g)];
  const place = places[at % (places.length + 1)];
  if (!place) return json.replace(/^\{/, () => `{"unknown":${text},`).replace(",}", "}");
  const end = /[[{]$/.test(place[0]) ? place.index + 1 : place.index + place[0].length;
  const rest = json.slice(end);
  return `${json.slice(0, place.index)}:${text}${end === place.index + 1 ? `,"x":${rest}` : rest}`;
}

/** Values that a schema of the contract allows. Strings are of every kind that their schema allows. */
export function fitting(given: unknown, depth = 0): fc.Arbitrary<unknown> {
  const schema = resolved(given);
  const choices = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(choices)) return fc.oneof(...choices.map((choice) => fitting(choice, depth)));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  return (BY_TYPE[String(schema.type)] ?? (() => fc.jsonValue()))(schema, depth);
}

const boundsOf = ({ minimum = -5, maximum = Number(minimum) + 1_000 }: Schema) => ({
  min: Number(minimum),
  max: Number(maximum),
});

type Maker = (schema: Schema, depth: number) => fc.Arbitrary<unknown>;

const BY_TYPE: Readonly<Record<string, Maker>> = {
  string({ pattern, minLength = 0, maxLength = 40 }) {
    if (typeof pattern === "string") return fc.stringMatching(new RegExp(pattern));
    const lengths = { minLength: Number(minLength), maxLength: Math.min(Number(maxLength), 200) };
    return fc.oneof(fc.string(lengths), fc.string({ ...lengths, unit: "grapheme" }));
  },
  integer: (schema) => fc.integer(boundsOf(schema)),
  number: (schema) => fc.double({ ...boundsOf(schema), noNaN: true }),
  boolean: () => fc.boolean(),
  array: ({ items = {}, minItems = 0, maxItems = 5 }, depth) =>
    fc.array(fitting(items, depth + 1), {
      minLength: Number(minItems),
      maxLength: Math.max(Number(minItems), Math.min(Number(maxItems), depth > 2 ? 1 : 5)),
    }),
  object({ properties = {}, required = [], additionalProperties }, depth) {
    const names = Array.isArray(required) ? required.map(String) : [];
    const fields = Object.entries(Object(properties)).map(
      ([name, each]) =>
        [
          name,
          names.includes(name)
            ? fitting(each, depth + 1)
            : fc.option(fitting(each, depth + 1), { nil: undefined }),
        ] as const,
    );
    if (fields.length > 0 || typeof additionalProperties !== "object")
      return fc.record(Object.fromEntries(fields));
    return fc.dictionary(fc.string({ maxLength: 64 }), fitting(additionalProperties, depth + 1), {
      maxKeys: 5,
    });
  },
};
