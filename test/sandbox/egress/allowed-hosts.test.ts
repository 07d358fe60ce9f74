import { expect, test } from "vitest";
import { AllowedHosts, allowing, hostName, isCovered } from "../../../src/sandbox/egress/allowed-hosts.ts";

test.each([
  ["api.example.com", "api.example.com:443", true],
  ["api.example.com", "api.example.com:80", true],
  ["api.example.com", "api.example.com:8443", false],
  ["api.example.com", "x.api.example.com:443", false],
  ["api.example.com", "evilapi.example.com:443", false],
  ["API.Example.com.", "api.example.com:443", true],
  ["api.example.com:8443", "api.example.com:8443", true],
  ["api.example.com:8443", "api.example.com:443", false],
  ["*.example.com", "a.example.com:443", true],
  ["*.example.com", "a.b.example.com:443", true],
  ["*.example.com", "example.com:443", false],
  ["*.example.com", "evilexample.com:443", false],
  ["*", "any.example:443", true],
  ["*", "any.example:22", false],
  ["*:22", "any.example:22", true],
])("the entry %s for %s: %s", (entry, target, isAllowed) => {
  const [host = "", port] = target.split(":");
  expect(AllowedHosts.safeParse([entry]).success).toBe(true);
  expect(allowing([entry])(host, Number(port))).toBe(isAllowed);
});

test.each([
  "",
  "10.0.0.1",
  "[::1]",
  "0x7f.1",
  "https://a.example",
  "a.example/x",
  "a.*.example",
  "*example.com",
  "a b",
  "a:0",
  "a:65536",
  "**",
])("the entry `%s` is refused", (entry) => {
  expect(AllowedHosts.safeParse([entry]).success).toBe(false);
  expect(allowing([entry])("a.example", 443)).toBe(false);
});

test("an address is never accepted as a host name, in any notation", () => {
  for (const text of [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "a.0x7f",
    "1.2.3.4.",
    "::1",
    "a..b",
    "-a",
    "a\0b",
  ])
    expect(hostName(text)).toBeUndefined();
  expect(hostName("1and1.Example.")).toBe("1and1.example");
});

test.each([
  ["a.example", ["a.example"], true],
  ["a.example", ["*.example"], true],
  ["a.example", ["*"], true],
  ["a.example:443", ["a.example"], true],
  ["a.example:8443", ["a.example:8443"], true],
  ["*.a.example", ["*.a.example"], true],
  ["*.b.a.example", ["*.a.example"], true],
  ["a.example:8443", ["a.example"], false],
  ["a.example", ["a.example:443"], false],
  ["*.a.example", ["a.example"], false],
  ["a.example", ["*.a.example"], false],
  ["*", ["*"], false],
  ["b.example", ["a.example"], false],
  ["a.example", [], false],
])("the hosts of %s are among %j: %s", (entry, hosts, isAmong) => {
  expect(isCovered(entry, hosts)).toBe(isAmong);
});
