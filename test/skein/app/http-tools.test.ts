import { expect, test } from "vitest";
import { resultAddress } from "../../../src/skein/app/http-tools.ts";

const OWN = "http://127.0.0.1:8000";

test.each([
  ["PUBLIC_URL, where it is set", "https://tools.example.com/", "127.0.0.1", "https://skein.example.com"],
  ["the server's own, for a tool on the same machine", "http://127.0.0.1:9100/", "127.0.0.1", OWN],
  ["the server's own, for a tool on the same machine by name", "http://localhost:9100/", "localhost", OWN],
  ["none, for a tool elsewhere", "https://tools.example.com/", "127.0.0.1", undefined],
  [
    "none, where others reach the server under a name that it does not know",
    "http://127.0.0.1:9100/",
    "0.0.0.0",
    undefined,
  ],
])("later results are delivered at %s", (_, callback_url, host, expected) => {
  const public_url = expected?.startsWith("https:") ? expected : undefined;
  expect(resultAddress({ callback_url }, { public_url, listen: { host, port: 8000 } }, OWN)).toBe(expected);
});
