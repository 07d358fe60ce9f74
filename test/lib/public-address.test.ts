import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { isPublicAddress } from "../../src/lib/ssrf-safe-fetch/public-address.ts";

test.each(["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:800::200e", "::ffff:8.8.8.8"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

test.each([
  ["this machine", ["127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::"]],
  ["private networks", ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1", "fc00::1"]],
  ["link-local ones", ["169.254.1.1", "fe80::1", "fe80::1%eth0", "fec0::1"]],
  ["the insides of clouds", ["169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"]],
  ["Azure's inside", ["168.63.129.16", "::ffff:168.63.129.16"]],
  ["a provider's network", ["100.64.0.1", "100.127.255.255"]],
  [
    "a reserved range",
    ["192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "240.0.0.1", "2001:db8::1"],
  ],
  ["all at once", ["255.255.255.255", "224.0.0.1", "ff02::1"]],
  ["IPv4 in IPv6", ["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::7f00:1", "::ffff:0:127.0.0.1"]],
  [
    "ways into IPv4",
    ["64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "192.88.99.1"],
  ],
  ["what is not given out", ["4000::1", "5f00::1", "3fff::1", "100::1", "8000::1"]],
  ["what is no address", ["", "localhost", "example.com", "1.2.3.4.5", "1.2.3.4/8"]],
])("%s is not public", (_, addresses) => {
  expect(addresses.filter(isPublicAddress)).toEqual([]);
});

test("no address of this machine is public", () => {
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  expect(own.length).toBeGreaterThan(0);
  expect(own.filter(({ address }) => isPublicAddress(address))).toEqual([]);
});
