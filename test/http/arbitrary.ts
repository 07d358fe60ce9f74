// Requests that fit the contract, nearly fit it, or are hostile.

import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { type Operation, type Parameter, resolved, type Schema } from "../support/openapi.ts";

export interface RawRequest {
  readonly bytes: Buffer;
  /** Less was sent than was announced. */
  readonly isCut: boolean;
}

/** Values by the names of a route's inputs that lead to things which are there. */
export type Known = Readonly<Record<string, readonly string[]>>;

/** Requests for `operation`; `headers` come first with each. */
export function requestsFor(operation: Operation, known: Known, headers: string): fc.Arbitrary<RawRequest> {
  return fc
    .record({
      path: pathOf(operation, known),
      query: queryOf(operation, known),
      headers: headersOf(operation, known),
      body: operation.body || operation.method === "PUT" ? bodyOf(operation) : rarely(BODY_TEXTS),
      type: fc.oneof({ weight: 9, arbitrary: fc.constant("application/json") }, fc.constantFrom(...TYPES)),
      framing: fc.oneof({ weight: 12, arbitrary: fc.constant("whole") }, fc.constantFrom(...FRAMINGS)),
    })
    .map(({ path, query, headers: more, body, type, framing }) => {
      const head = `${operation.method} ${path}${query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
      const about = body === undefined ? "" : `Content-Type: ${type}\r\n`;
      const { sent, lines } = framed(body, framing);
      return {
        bytes: Buffer.concat([Buffer.from(`${head}${headers}${more}${about}${lines}\r\n`, "utf8"), sent]),
        isCut: body !== undefined && framing === "cut",
      };
    });
}

/** Absent three times out of four. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 });

// What stands in a path, a query or a header.

const LONG = "a".repeat(5_000);
const TRICKS = [
  ...["..", ".", "%2e%2e", "..%2f..%2fetc%2fpasswd", "..%5c..", "....//", "%2f", "%2f%2fetc", "a%2fb", "a/b"],
  ...[
    "%00",
    "a%00.txt",
    "%",
    "%zz",
    "%c0%ae",
    "%ff",
    "%ed%a0%80",
    "%F0%9F%98%80",
    "ä",
    "😀",
    "%0d%0aX-Evil:%201",
  ],
  ...[
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "null",
    "undefined",
    "NaN",
    "-1",
    "1e400",
    "-0",
  ],
  ...["*", "?", "#", ";", ":", "~", "'", '"', "<script>", "$(id)", "`id`", "{{7*7}}", "\\", "%20", "+", ""],
  ...[LONG, "%41".repeat(1_000), "../".repeat(500), "a/".repeat(1_000)],
  ...["9".repeat(400), "run_x:999999999-999999999", "run_x:1-", ":", "0", "18446744073709551616"],
];
const trick = fc.constantFrom(...TRICKS);

function pathOf({ path, parameters }: Operation, known: Known): fc.Arbitrary<string> {
  const named = parameters.filter((parameter) => parameter.in === "path");
  const values = fc.tuple(
    ...named.map((parameter) =>
      fc.oneof(
        { weight: 6, arbitrary: ofParameter(parameter, known).map(encodeURIComponent) },
        { weight: 2, arbitrary: trick },
      ),
    ),
  );
  const filled = values.map((each) =>
    named.reduce((text, { name }, index) => text.replace(`{${name}}`, () => each[index] ?? ""), path),
  );
  return fc.oneof(
    { weight: 30, arbitrary: filled },
    filled.map((text) => `/${text}`),
    filled.map((text) => `${text}/`),
    filled.map((text) => `http://evil.example${text}`),
    fc.tuple(filled, trick).map(([text, more]) => `${text}/${more}`),
    fc.tuple(filled, trick).map(([text, more]) => `/${more}/..${text}`),
  );
}

/** What is there, what fits the schema, and now and then a text that does not. */
function ofParameter({ name, schema }: Parameter, known: Known): fc.Arbitrary<string> {
  const there = known[name] ?? [];
  return fc.oneof(
    ...(there.length > 0 ? [{ weight: 6, arbitrary: fc.constantFrom(...there) }] : []),
    { weight: 2, arbitrary: fitting(schema).map(String) },
    fc.string({ unit: "binary-ascii" }),
  );
}

function queryOf({ parameters }: Operation, known: Known): fc.Arbitrary<string> {
  const named = parameters.filter((parameter) => parameter.in === "query");
  const pairs = named.map((parameter) =>
    rarely(
      fc.oneof(
        { weight: 4, arbitrary: ofParameter(parameter, known).map(encodeURIComponent) },
        trick,
        trick.map((value) => `x&${parameter.name}=${value}`),
      ),
    ).map((value) => (value === undefined ? undefined : `${parameter.name}=${value}`)),
  );
  const odd = rarely(
    fc.oneof(
      fc.tuple(trick, trick).map(([key, value]) => `${key}=${value}`),
      fc.constantFrom(
        "__proto__[x]=1",
        "constructor.prototype.x=1",
        "a[]=1&a[]=2",
        "&".repeat(3_000),
        "=",
        "%",
        "[]",
      ),
    ),
  );
  return fc
    .tuple(fc.tuple(...pairs), odd)
    .map(([values, more]) => [...values, more].filter((each) => each !== undefined).join("&"))
    .map((text) => (text === "" ? "" : `?${text}`));
}

/** Headers that mean something here. A hostile one may hold what ends a header. */
const HEADERS: Readonly<Record<string, readonly string[]>> = {
  accept: [
    "application/json",
    "text/event-stream",
    "*/*",
    "application/json, text/event-stream",
    "x".repeat(2_000),
  ],
  range: ["bytes=0-1", "bytes=-5", "bytes=9-1", "bytes=0-0,2-3", "bytes=99999999999999999999-", "lines=1"],
  "idempotency-key": ["key-1", "x".repeat(256), "", "__proto__"],
  "last-event-id": ["x".repeat(300), "run_x:1-1", "5"],
  origin: ["null", "https://evil.example"],
  expect: ["100-continue"],
  upgrade: ["websocket", "h2c"],
  "x-http-method-override": ["DELETE"],
  "if-none-match": ["*"],
  "content-encoding": ["gzip", "br", "identity"],
};

function headersOf({ isStream }: Operation, known: Known): fc.Arbitrary<string> {
  const line = fc.oneof(
    ...Object.entries(HEADERS).map(([name, values]) =>
      fc.constantFrom(...values).map((value) => `${name}: ${value}`),
    ),
    fc
      .constantFrom("last-event-id", "idempotency-key", "range", "x-request-id", "cookie")
      .chain((name) =>
        fc.oneof(trick, fc.string({ unit: "binary-ascii" })).map((value) => `${name}: ${value}`),
      ),
    ...(isStream && known.after
      ? [fc.constantFrom(...known.after).map((value) => `last-event-id: ${value}`)]
      : []),
    fc.constantFrom(
      ...[
        "x-evil\r\nX-Evil: 1",
        "a: b\nX-Evil: 1",
        "a: b\rX-Evil: 1",
        ": nothing",
        "no colon",
        "a b: c",
        "ä: ö",
      ],
      ...[
        "__proto__: x",
        "constructor: x",
        `x-long: ${"x".repeat(20_000)}`,
        "x-nul: a\0b",
        "host: evil.example",
      ],
      ...[
        "x-skein-user: root",
        "x-skein-tenant: ",
        "authorization: Bearer x",
        "transfer-encoding: gzip",
        " folded: x",
      ],
    ),
    fc.constant(Array.from({ length: 200 }, (_, index) => `x-${index}: y`).join("\r\n")),
  );
  return fc
    .array(line, { maxLength: 3 })
    .chain((lines) => fc.constantFrom(lines, [], []))
    .map((lines) => lines.map((each) => `${each}\r\n`).join(""));
}

// What stands in a body.

const TYPES = [
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
const FRAMINGS = ["cut", "chunked", "bad chunks", "gzip", "short", "two lengths"];

function framed(body: string | undefined, framing: string): { sent: Buffer; lines: string } {
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

const BODY_TEXTS = fc.oneof(
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

function bodyOf({ body }: Operation): fc.Arbitrary<string> {
  if (!body) return BODY_TEXTS;
  const fits = fitting(body);
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
      maxLength: Math.min(Number(maxItems), depth > 2 ? 1 : 5),
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
