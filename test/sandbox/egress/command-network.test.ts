// The network of commands, with a relay that the test plays.

import { expect, onTestFinished, test } from "vitest";
import { openEgress } from "../../../src/sandbox/docker/egress.ts";
import { encodeFrame, type FrameField, frameReader } from "../../../src/sandbox/shell/perl/frames.ts";
import type { ChannelEvents } from "../../../src/sandbox/shell/session.ts";

const { signal } = new AbortController();

async function opened() {
  let events: ChannelEvents | undefined;
  let isScript = true;
  let last = 0;
  const answers = new Map<number, string>();
  const read = frameReader(({ id, letter, fields }) => {
    if (letter === "d") answers.set(id, `${answers.get(id) ?? ""}${fields[0]}`);
  });
  const send = (id: number, letter: string, ...fields: FrameField[]) =>
    events?.onOutput(encodeFrame(id, letter, fields));
  const egress = await openEgress(
    {
      hosts: ["api.example.com"],
      dialing: { resolve: async () => [] },
      async open(its) {
        events = its;
        return {
          async write(bytes) {
            if (!isScript) return read(Buffer.from(bytes));
            isScript = false;
            send(0, "h", "skein-network", "1", "4000");
          },
          ...{ pause() {}, resume() {}, close: () => its.onClose() },
        };
      },
    },
    signal,
  );
  onTestFinished(() => egress.close());
  /** The status with which the proxy answers to a tunnel: 502 for a host that is allowed, which has no address here. */
  const tunnel = async (host: string, proxy = "") => {
    const id = ++last;
    const user = /\/\/(.*)@/.exec(proxy)?.[1];
    const credentials = user ? `Proxy-Authorization: Basic ${Buffer.from(user).toString("base64")}\r\n` : "";
    send(id, "o");
    send(id, "d", `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n${credentials}\r\n`);
    await expect.poll(() => answers.get(id)).toBeDefined();
    return Number(answers.get(id)?.slice(9, 12));
  };
  return { egress, tunnel };
}

test("each command has its own additional hosts and refusals", async () => {
  const { egress, tunnel } = await opened();
  const [other, one] = [egress.enter([]), egress.enter(["more.example.com"])];
  const proxy = one.environment.HTTPS_PROXY ?? "";
  expect(proxy).toMatch(/^http:\/\/\w{22}:x@127\.0\.0\.1:4000$/);
  expect(await tunnel("api.example.com")).toBe(502);
  expect(await tunnel("more.example.com", proxy)).toBe(502);
  expect(await tunnel("more.example.com", other.environment.HTTPS_PROXY)).toBe(403);
  expect(await tunnel("more.example.com")).toBe(403);
  expect(one.refused).toEqual([]);
  expect(other.refused).toEqual([{ target: "more.example.com:443", reason: "host" }]);
});

test("a process that a command leaves behind keeps its hosts, and a command reports at most eight refusals", async () => {
  const { egress, tunnel } = await opened();
  const command = egress.enter(["more.example.com"]);
  for (let at = 0; at < 10; at++) await tunnel(`h${at}.example`, command.environment.HTTPS_PROXY);
  expect(command.refused).toHaveLength(8);
  command.end();
  expect(await tunnel("more.example.com", command.environment.HTTPS_PROXY)).toBe(502);
  for (let at = 0; at < 256; at++) egress.enter([]);
  expect(await tunnel("more.example.com", command.environment.HTTPS_PROXY)).toBe(403);
});
