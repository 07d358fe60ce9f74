// Requests that fit the contract, nearly fit it, or are hostile.

import fc from "fast-check";
import type { Operation, Parameter } from "../../support/openapi.ts";
import { BODY_TEXTS, bodyOf, FRAMINGS, fitting, framed, LONG, TYPES } from "./arbitrary-bodies.ts";

export interface RawRequest {
  readonly bytes: Buffer;
  /** The body is not what was announced: there need not be an answer. */
  readonly isBroken: boolean;
}

/** Values by the names of a route's inputs that lead to things which are there. */
export type Known = Readonly<Record<string, readonly string[]>>;

/** Requests for `operation`, some with what is `known`; `headers` come first with each. */
export function requestsFor(operation: Operation, known: Known, headers: string): fc.Arbitrary<RawRequest> {
  return fc
    .record({
      path: pathOf(operation, known),
      query: queryOf(operation, known),
      headers: headersOf(operation, known),
      body: operation.body || operation.method === "PUT" ? bodyOf(operation, known.body) : rarely(BODY_TEXTS),
      type: fc.oneof({ weight: 9, arbitrary: fc.constant("application/json") }, fc.constantFrom(...TYPES)),
      framing: fc.oneof({ weight: 12, arbitrary: fc.constant("whole") }, fc.constantFrom(...FRAMINGS)),
    })
    .map(({ path, query, headers: more, body, type, framing }) => {
      const head = `${operation.method} ${path}${query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
      const about = body === undefined ? "" : `Content-Type: ${type}\r\n`;
      const { sent, lines } = framed(body, framing);
      return {
        bytes: Buffer.concat([Buffer.from(`${head}${headers}${more}${about}${lines}\r\n`, "utf8"), sent]),
        isBroken: body !== undefined && isBroken(framing, more),
      };
    });
}

/** After `100 Continue`, a body that is too long can no longer be refused. */
function isBroken(framing: string, headers: string): boolean {
  return framing === "cut" || framing === "bad chunks" || (framing === "short" && /^expect:/im.test(headers));
}

/** Absent three times out of four. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 });

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
