// What an operator may write under `mcp_servers`.

import { expect, test } from "vitest";
import { McpServerDefinitions } from "../../../../src/agent/tools/mcp/options.ts";
import { check } from "../../../../src/lib/check.ts";

const faults = (value: unknown) => {
  const checked = check(McpServerDefinitions, value);
  return "faults" in checked
    ? checked.faults.map(({ path, message }) => `${path.join(".")}: ${message}`)
    : [];
};

test("an address or a command is sufficient", () => {
  expect(
    McpServerDefinitions.parse({ far: { url: "https://example.com/mcp" }, near: { command: "npx" } }),
  ).toEqual({
    far: { url: "https://example.com/mcp", headers: {}, ...DEFAULTS },
    near: { command: "npx", args: [], env: {}, ...DEFAULTS },
  });
});

const DEFAULTS = {
  ...{ timeout: 600_000, idle_timeout: 60_000, connect_timeout: 60_000, refresh: 300_000 },
  tools: { include: ["*"], exclude: [] },
  trust_annotations: false,
};

test.each([
  [{ GitHub: { url: "https://example.com" } }, "GitHub: must be 1 to 32 characters"],
  [{ a: { url: "ftp://example.com" } }, "a.url: must be a URL that begins with http"],
  [{ a: { url: "https://me:pw@example.com" } }, "a.url: must not contain a user name"],
  [{ a: { url: "https://example.com", args: ["-y"] } }, "unknown key `args`"],
  [{ a: { command: "npx", headers: {} } }, "unknown key `headers`"],
  [{ a: { command: "npx", timeout: "soon" } }, "a.timeout: must be a duration"],
  [{ a: { command: "npx", idle_timeout: 0 } }, "a.idle_timeout: must be longer than 0 s"],
  [{ a: { command: "npx", env: { "A=B": "c" } } }, "a.env.A=B: must be the name of a variable"],
  [{ a: { url: "https://example.com", headers: { "X Y": "c" } } }, "must be the name of a header"],
  [{ a: { url: "https://example.com", headers: { X: "a\r\nY: b" } } }, "a.headers.X: must be one line"],
  [{ a: { command: "npx", tools: { include: ["[a"] } } }, "must be a glob: it has a `[` without `]`"],
])("%j is refused with a readable error", (value, fault) => {
  expect(faults(value).join("\n")).toContain(fault);
});
