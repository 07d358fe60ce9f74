import { describe, expect, test } from "vitest";
import { Network, Origin, within } from "../../src/lib/hosts.ts";

describe("networks", () => {
  test.each<[string, string[], string[]]>([
    ["10.0.0.5", ["10.0.0.5", "::ffff:10.0.0.5", "::ffff:a00:5"], ["10.0.0.4", "10.0.0.50", "::10.0.0.5"]],
    ["10.1.0.0/16", ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3"], ["10.2.0.0", "10.0.255.255"]],
    ["192.168.4.7/30", ["192.168.4.4", "192.168.4.7"], ["192.168.4.8", "192.168.4.3"]],
    ["fd00::/8", ["fd00::1", "fdff:ffff::", "fd00::1%eth0"], ["fe00::1", "10.0.0.1", "::1"]],
    ["fe80::1", ["fe80::1", "fe80::1%eth0", "FE80:0::1"], ["fe80::2"]],
    ["1.2.3.4/1", ["127.255.255.255"], ["128.0.0.0"]],
  ])("%s", (network, inside, outside) => {
    expect(Network.safeParse(network).success).toBe(true);
    const isIn = within(["203.0.113.9", network]);
    expect(inside.filter((address) => !isIn(address))).toEqual([]);
    expect(outside.filter(isIn)).toEqual([]);
    expect(["", "x", "localhost", "10.0.0.5, 10.0.0.5", "%"].filter(isIn)).toEqual([]);
  });

  test.each([
    ...[
      "",
      "10.0.0",
      "10.0.0.0/33",
      "10.0.0.0/0",
      "::/0",
      "::/129",
      "10.0.0.1/",
      "10.0.0.0/8/8",
      "10.0.0.0/-1",
    ],
    ...[
      "localhost",
      "010.0.0.1",
      "0x0a.0.0.1",
      "167772161",
      "10.0.0.1 ",
      " 10.0.0.1",
      "fe80::1%eth0",
      "*",
      "[::1]",
    ],
  ])("`%s` is invalid", (text) => expect(Network.safeParse(text).success).toBe(false));

  test("that are invalid contain nothing", () => expect(within([])("127.0.0.1")).toBe(false));
});

describe("origins", () => {
  test.each([
    "https://app.example.com",
    "http://localhost:3000",
    "http://[::1]:8080",
    "https://xn--bcher-kva.example",
  ])("%s", (text) => expect(Origin.safeParse(text).success).toBe(true));

  test.each([
    ...["*", "null", "", "https://*", "https://*.example.com", "https://app.example.com/", "app.example.com"],
    ...[
      "https://app.example.com:443",
      "HTTPS://APP.EXAMPLE.COM",
      "https://a@b.example",
      "file://",
      "https://a b",
    ],
  ])("`%s` is invalid", (text) => expect(Origin.safeParse(text).success).toBe(false));
});
