import { expect, test } from "vitest";
import { hostList } from "../../src/lib/hosts.ts";

test.each([
  [
    "tools.internal:9100",
    ["http://tools.internal:9100/x", "https://TOOLS.internal:9100"],
    ["http://tools.internal"],
  ],
  [
    "tools.internal",
    ["http://tools.internal", "https://tools.internal:1"],
    ["http://x.tools.internal", "http://t"],
  ],
  ["a:80, b:443 ,", ["http://a", "https://b"], ["https://a", "http://b"]],
  [
    "127.0.0.1:9100",
    ["http://127.1:9100", "http://0x7f000001:9100"],
    ["http://127.0.0.2:9100", "http://localhost:9100"],
  ],
  ["[fd00::5]:9100", ["http://[fd00:0::5]:9100/"], ["http://[fd00::6]:9100/"]],
  ["[::1]", ["http://[::1]:3"], ["http://[::2]:3"]],
  ["", [], ["http://localhost", "http://127.0.0.1"]],
])("%j", (text, hits, misses) => {
  const list = hostList(text);
  expect(hits.filter((url) => !list(new URL(url)))).toEqual([]);
  expect(misses.filter((url) => list(new URL(url)))).toEqual([]);
});

test.each([
  "http://a",
  "a/b",
  "a:0",
  "a:65536",
  "a:x",
  "user@a",
  "::1",
  "a b",
  "[::g]",
  "10.0.0.0/8",
  "*.a:1:2",
])("refuses %j and shows a valid form", (text) => {
  expect(() => hostList(text)).toThrow(/must be a host or host:port/);
});
