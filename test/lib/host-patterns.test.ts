import { expect, test } from "vitest";
import { HostPattern, hostMatcher } from "../../src/lib/host-patterns.ts";

const matches = (patterns: readonly string[], url: string) => hostMatcher(patterns)(new URL(url));

test.each([
  [["example.com"], "https://example.com/a", true],
  [["example.com"], "https://EXAMPLE.com:8443/", true],
  [["example.com"], "https://example.com./", true],
  [["example.com"], "https://www.example.com/", false],
  [["*.example.com"], "https://www.example.com/", true],
  [["*.example.com"], "https://a.b.example.com./", true],
  [["*.example.com"], "https://example.com/", false],
  [["*.example.com"], "https://notexample.com/", false],
  [["*.example.com"], "https://example.com.evil.org/", false],
  [["b\u00fccher.example"], "https://xn--bcher-kva.example/", true],
  [["*.B\u00fccher.example"], "https://a.b\u00fccher.example/", true],
  [["10.0.0.1"], "http://10.0.0.1/", true],
  [["10.0.0.1"], "http://167772161/", true],
  [["fd00::1"], "http://[fd00:0::1]/", true],
  [["*"], "https://any.example/", true],
  [[], "https://any.example/", false],
] as const)("%j and %s", (patterns, url, isMatch) => {
  expect(matches(patterns, url)).toBe(isMatch);
});

test.each(["example.com:80", "https://example.com", "a b", "", "*.", "a.*.com", "*example.com", "[::1]"])(
  "%s is not a valid pattern",
  (text) => {
    expect(HostPattern.safeParse(text).success).toBe(false);
  },
);
