// Secrets that the proxy puts into requests, with a vault, a host outside, and a client that has the placeholder only.

import { getEventListeners, once } from "node:events";
import { request, type ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { allowing } from "../../../src/sandbox/egress/allowed-hosts.ts";
import { knownSecrets } from "../../../src/sandbox/egress/known-secrets.ts";
import { egressProxy } from "../../../src/sandbox/egress/proxy.ts";
import { openSecrets, placeholderOf, type SecretVariable } from "../../../src/sandbox/egress/secrets.ts";
import { type Heard, httpServer } from "../../support/hostile.ts";
import { newVault, SILENT, secretHost } from "./secret-host.ts";

const ada = { tenant: "acme", user: "ada" };
const SECRET = "s3cr3t-of-ada/=+";
const PLACEHOLDER = placeholderOf("skein-ada", "API_TOKEN");

const outside = (answer: Parameters<typeof secretHost>[0]) => secretHost(answer, onTestFinished);

const echo = ({ headers, body }: Heard, response: ServerResponse) =>
  response.end(JSON.stringify({ headers, body }));

interface World {
  readonly port: number;
  readonly authorities?: readonly string[];
  readonly more?: Partial<SecretVariable>;
  readonly allowedHosts?: readonly string[];
}

/** A sandbox's proxy on a port, with a connection `example` of its user. */
async function world({ port, authorities = [], more = {}, allowedHosts = ["api.example"] }: World) {
  const { vault, used } = newVault();
  const put = (secret_value: string) =>
    vault.put(ada, "example", {
      ...{ type: "environment_variable", secret_name: "API_TOKEN", secret_value },
      networking: { type: "limited", allowed_hosts: [...allowedHosts] },
    });
  await put(SECRET);
  const targets = ["api.example", "also.example", "other.example"].map((host) => `${host}:${port}`);
  const [api = "", also = "", other = ""] = targets;
  const variable = { vault: "example", per: "user", hosts: [api], http: false, ...more } as const;
  const secrets = await openSecrets({
    variables: { API_TOKEN: variable, OTHER_TOKEN: { ...variable, hosts: [also] } },
    ...{ sandbox: "skein-ada", owner: ada, connections: vault, logger: SILENT },
  });
  const refused: string[] = [];
  const closing = new AbortController();
  const serve = egressProxy({
    ...{ authorities, secrets, signal: closing.signal },
    resolve: async () => ["127.0.0.1"],
    allow: () => true,
    passOf: () => ({
      allows: allowing([api, also, other]),
      onRefused: (target, reason) => void refused.push(`${target} ${reason}`),
    }),
  });
  const server = createServer({ allowHalfOpen: true }, serve).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    closing.abort();
    server.close();
  });
  const proxy = (server.address() as AddressInfo).port;
  /** TLS with `host` as a program in the sandbox has it. */
  const open = async (host: string, options: object = { ca: secrets.authority.certificate }) => {
    const path = `${host}:${port}`;
    const asked = request({
      port: proxy,
      host: "127.0.0.1",
      method: "CONNECT",
      path,
      headers: { host: path },
    });
    const [answer, socket] = (await once(asked.end(), "connect")) as [{ statusCode: number }, Socket];
    expect(answer.statusCode).toBe(200);
    const secure = connectTls({ socket, servername: host, ...options });
    onTestFinished(() => void secure.destroy());
    return secure;
  };
  /** All that comes back for these bytes. */
  const say = async (host: string, sent: string): Promise<string> => {
    const secure = await open(host);
    secure.write(sent, "latin1");
    return received(secure);
  };
  const get = (host: string, headers: readonly string[], path = "/") =>
    say(
      host,
      [`GET ${path} HTTP/1.1`, `Host: ${host}:${port}`, "Connection: close", ...headers, "", ""].join("\r\n"),
    );
  return { proxy, secrets, vault, put, used, refused, open, say, get, signal: closing.signal };
}

async function received(socket: TLSSocket): Promise<string> {
  let all = "";
  for await (const bytes of socket) all += bytes.toString("latin1");
  return all;
}

/** 0 if the connection ended without an answer. */
const statusOf = (answer: string) => Number(answer.slice(9, 12));

test("a named host receives the secret in any header, and the sandbox never does", async () => {
  const { port, heard, authority } = await outside(echo);
  const { get, refused, used, signal } = await world({ port, authorities: [authority.certificate] });
  const basic = Buffer.from(`ada:${PLACEHOLDER}`).toString("base64");
  const answer = await get("api.example", [
    `Authorization: Bearer ${PLACEHOLDER}`,
    `X-Api-Key: ${PLACEHOLDER}`,
    `Cookie: a=b; token=${PLACEHOLDER}; again=${PLACEHOLDER}`,
    `X-Basic: Basic ${basic}`,
    "Accept-Encoding: gzip",
    "Range: bytes=0-7",
  ]);
  const [{ headers = {} } = {}] = heard;
  expect(headers).toMatchObject({
    authorization: `Bearer ${SECRET}`,
    "x-api-key": SECRET,
    cookie: `a=b; token=${SECRET}; again=${SECRET}`,
    "x-basic": `Basic ${Buffer.from(`ada:${SECRET}`).toString("base64")}`,
    "accept-encoding": "identity",
  });
  expect(headers).not.toHaveProperty("range");
  expect(statusOf(answer)).toBe(200);
  const echoed = JSON.parse(bodyOf(answer)).headers;
  expect(echoed.authorization).toBe(`Bearer ${PLACEHOLDER}`);
  expect(echoed["x-basic"]).toMatch(new RegExp(`^Basic YWRh.{0,2}${PLACEHOLDER}.{0,3}$`));
  expect(answer).not.toContain(SECRET);
  expect(refused).toEqual([]);
  await get("api.example", [`X-Api-Key: ${PLACEHOLDER}`]);
  // One line of the trail for a minute.
  expect(used).toEqual(["example"]);
  // An ended tunnel leaves nothing behind.
  await expect.poll(() => getEventListeners(signal, "abort")).toEqual([]);
});

/** The body of an answer in chunks. */
function bodyOf(answer: string): string {
  const body = answer.slice(answer.search(/\r\n\r\n/) + 4);
  return body.replace(/(?:^|\r\n)[0-9a-f]+\r\n/g, "").replace(/\r\n$/, "");
}

test("a placeholder in a path, a body or a header's name is sent unchanged", async () => {
  const { port, heard, authority } = await outside(echo);
  const { say } = await world({ port, authorities: [authority.certificate] });
  await say(
    "api.example",
    `POST /${PLACEHOLDER}?q=${PLACEHOLDER} HTTP/1.1\r\nHost: api.example:${port}\r\nConnection: close\r\n${PLACEHOLDER}: 1\r\nContent-Length: ${PLACEHOLDER.length}\r\n\r\n${PLACEHOLDER}`,
  );
  expect(heard).toMatchObject([{ path: `/${PLACEHOLDER}?q=${PLACEHOLDER}`, body: PLACEHOLDER }]);
  expect(JSON.stringify(heard)).not.toContain(SECRET);
});

test("answers that repeat the secret are masked, in headers and in a body that arrives in any pieces", async () => {
  const { port, authority } = await outside(async (_, response) => {
    response.writeHead(200, { "x-echo": `<${SECRET}>`, "content-length": 3 * SECRET.length + 2 });
    for (const byte of `${SECRET}-${SECRET}+${SECRET}`) {
      response.write(byte);
      await new Promise(setImmediate);
    }
    response.end();
  });
  const { get } = await world({ port, authorities: [authority.certificate] });
  const answer = await get("api.example", [`Authorization: Bearer ${PLACEHOLDER}`]);
  expect(answer).toContain(`x-echo: <${PLACEHOLDER}>`);
  expect(bodyOf(answer)).toBe(`${PLACEHOLDER}-${PLACEHOLDER}+${PLACEHOLDER}`);
  // Also for a request without the placeholder.
  expect(await get("api.example", [])).not.toContain(SECRET);
});

test("a host that already knows the secret cannot give it to the sandbox, even if nothing was sent yet", async () => {
  const { port, authority } = await outside((_, response) => response.end(`It is ${SECRET}.`));
  const { get, used } = await world({ port, authorities: [authority.certificate] });
  expect(bodyOf(await get("api.example", []))).toBe(`It is ${PLACEHOLDER}.`);
  // The trail lists only the secrets that were sent.
  expect(used).toEqual([]);
});

test("the newest values of a secret are masked, however often it was renewed", () => {
  const known = knownSecrets();
  for (let n = 1; n <= 9; n++) known.add("placeholder", `secret-value-${n}`);
  expect(known.mask()?.("secret-value-9 or secret-value-8")).toBe("placeholder or placeholder");
});

test("answers are masked in the encodings that servers use", async () => {
  const secret = `${SECRET}/+&"\\é`;
  const inJson = JSON.stringify({ secret });
  const inUrl = `?a=${encodeURIComponent(secret)}`;
  const forms = [
    ...[inJson, inJson.replaceAll("/", "\\/")],
    ...["\\u002b", "\\u002B"].map((plus) =>
      inJson
        .replaceAll("&", "\\u0026")
        .replaceAll('\\"', "\\u0022")
        .replaceAll("\\\\", plus === "\\u002b" ? "\\u005c" : "\\u005C")
        .replaceAll("+", plus),
    ),
    ...[inUrl, inUrl.replaceAll(/%../g, (code) => code.toLowerCase())],
    ...["", "a", "ab", "abc"].flatMap((before) => {
      const bytes = Buffer.from(before + secret);
      return [bytes.toString("base64"), bytes.toString("base64url")];
    }),
  ];
  let at = 0;
  const { port, authority } = await outside((_, response) => response.end(forms[at++]));
  const { get, put } = await world({ port, authorities: [authority.certificate] });
  await put(secret);
  for (const form of forms) {
    const body = bodyOf(await get("api.example", [`X-Key: ${PLACEHOLDER}`]));
    expect([form, body]).toEqual([form, expect.stringContaining(PLACEHOLDER)]);
    expect(body.length - PLACEHOLDER.length).toBeLessThan(20);
  }
});

test("an answer that is compressed against the request is refused", async () => {
  const { port, authority } = await outside((_, response) =>
    response.writeHead(200, { "content-encoding": "gzip" }).end("..."),
  );
  const { get } = await world({ port, authorities: [authority.certificate] });
  expect(statusOf(await get("api.example", [`X-Key: ${PLACEHOLDER}`]))).toBe(502);
});

test("a host receives only its own secrets, by the configuration and by their owner", async () => {
  const { port, heard, authority } = await outside(echo);
  const authorities = [authority.certificate];
  const { get, refused } = await world({ port, authorities });
  expect(statusOf(await get("also.example", [`X-Key: ${PLACEHOLDER}`]))).toBe(403);
  // Its owner has not named this host.
  expect(statusOf(await get("also.example", [`X-Key: ${placeholderOf("skein-ada", "OTHER_TOKEN")}`]))).toBe(
    502,
  );
  // A neighbour's, and one in `Basic`.
  const foreign = placeholderOf("skein-bob", "API_TOKEN");
  expect(statusOf(await get("api.example", [`X-Key: ${foreign}`]))).toBe(403);
  const basic = Buffer.from(`x:${foreign}`).toString("base64");
  expect(statusOf(await get("api.example", [`Authorization: Basic ${basic}`]))).toBe(403);
  expect(heard).toEqual([]);
  expect(refused).toEqual([
    `also.example:${port} placeholder`,
    `also.example:${port} connection`,
    `api.example:${port} placeholder`,
    `api.example:${port} placeholder`,
  ]);
});

test("the secret is read for each request: a new value is sent, and without a connection nothing is", async () => {
  const { port, heard, authority } = await outside(echo);
  const { get, put, vault, refused } = await world({ port, authorities: [authority.certificate] });
  const ask = () => get("api.example", [`X-Key: ${PLACEHOLDER}`]);
  await ask();
  await put("another-secret");
  expect(await ask()).not.toContain("another-secret");
  await vault.delete(ada, "example", { by: ada });
  const answer = await ask();
  expect(statusOf(answer)).toBe(502);
  expect(answer).toContain("API_TOKEN cannot be sent: the connection `example` does not exist");
  expect(heard.map(({ headers }) => headers["x-key"])).toEqual([SECRET, "another-secret"]);
  expect(refused).toEqual([`api.example:${port} connection`]);
});

test("a value with several lines, or a very short one, is never sent", async () => {
  const { port, heard, authority } = await outside(echo);
  const { get, put } = await world({ port, authorities: [authority.certificate] });
  for (const value of ["abcdefgh\r\nX-Evil: 1", "short"]) {
    await put(value);
    expect(statusOf(await get("api.example", [`X-Key: ${PLACEHOLDER}`]))).toBe(502);
  }
  expect(heard).toEqual([]);
});

test("an MCP server's token is sent only to this server's origin", async () => {
  const { port, heard, authority } = await outside(echo);
  const { get, vault } = await world({ port, authorities: [authority.certificate] });
  const bearer = (mcp_server_url: string) =>
    vault.put(ada, "example", { type: "static_bearer", mcp_server_url, token: SECRET });
  for (const url of [
    "https://api.example/mcp",
    `http://api.example:${port}/mcp`,
    `https://x.example:${port}`,
  ]) {
    await bearer(url);
    expect(statusOf(await get("api.example", [`X-Key: ${PLACEHOLDER}`]))).toBe(502);
  }
  expect(heard).toEqual([]);
  await bearer(`https://api.example:${port}/mcp`);
  expect(statusOf(await get("api.example", [`X-Key: ${PLACEHOLDER}`]))).toBe(200);
});

test("no secret is sent over plain HTTP unless the configuration allows it", async () => {
  const server = await httpServer(echo);
  const ask = (proxy: number, host: string) => {
    const headers = { host: `${host}:${server.port}`, "x-key": PLACEHOLDER };
    return once(request({ port: proxy, path: `http://${host}:${server.port}/`, headers }).end(), "response");
  };
  const { proxy, refused } = await world({ port: server.port });
  for (const host of ["api.example", "other.example"])
    expect((await ask(proxy, host))[0].statusCode).toBe(403);
  expect(server.heard).toEqual([]);
  expect(refused).toEqual(["api", "other"].map((name) => `${name}.example:${server.port} placeholder`));
  const { proxy: open } = await world({ port: server.port, more: { http: true } });
  const [answer] = await ask(open, "api.example");
  expect(await text(answer)).toContain(PLACEHOLDER);
  expect(server.heard[0]?.headers["x-key"]).toBe(SECRET);
});

test("TLS with hosts that receive no secret is not decrypted", async () => {
  const { port, authority } = await outside(echo);
  const { open } = await world({ port });
  const secure = await open("other.example", { ca: authority.certificate });
  await once(secure, "secureConnect");
  expect(secure.getPeerX509Certificate()?.checkIssued).toBeDefined();
  expect(secure.authorized).toBe(true);
});

test("a host whose certificate is not trusted receives nothing", async () => {
  const { port, heard } = await outside(echo);
  const { get } = await world({ port });
  const answer = await get("api.example", [`X-Key: ${PLACEHOLDER}`]);
  expect(statusOf(answer)).toBe(502);
  expect(answer).toContain("certificate is not trusted");
  expect(heard).toEqual([]);
});

test("a client that trusts only other authorities, or supports only HTTP/2, gets a TLS error", async () => {
  const { port, heard, authority } = await outside(echo);
  const { open, secrets } = await world({ port, authorities: [authority.certificate] });
  const failure = async (options: object) => (await once(await open("api.example", options), "error"))[0];
  expect((await failure({ ca: authority.certificate })).message).toContain("unable to verify");
  const own = secrets.authority.certificate;
  expect((await failure({ ca: own, ALPNProtocols: ["h2"] })).message).toMatch(/no application protocol/);
  expect(heard).toEqual([]);
});

test("a request that could be read in two ways never reaches the host", async () => {
  const { port, heard, authority } = await outside(echo);
  const { say } = await world({ port, authorities: [authority.certificate] });
  const host = `Host: api.example:${port}`;
  const key = `X-Key: ${PLACEHOLDER}`;
  const heads = [
    ["GET / HTTP/1.1", host, host],
    ["GET / HTTP/1.1", "Host: other.example"],
    ["GET / HTTP/1.1", "Host: api.example"],
    ["GET / HTTP/1.1", `${host}, evil.example`],
    ["GET / HTTP/1.1"],
    ["GET / HTTP/1.0", "Host: evil.example"],
    [`GET https://evil.example/ HTTP/1.1`, host],
    [`GET https://api.example:${port}/ HTTP/1.1`, host],
    ["POST / HTTP/1.1", host, "Content-Length: 4", "Transfer-Encoding: chunked"],
    ["POST / HTTP/1.1", host, "Transfer-Encoding: chunked", "Content-Length: 4"],
    ["POST / HTTP/1.1", host, "Content-Length: 4", "Content-Length: 5"],
    ["POST / HTTP/1.1", host, "Transfer-Encoding: gzip, chunked"],
    ["POST / HTTP/1.1", host, "Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    ["POST / HTTP/1.1", host, "Transfer-Encoding: xchunked"],
    ["POST / HTTP/1.1", host, "Transfer-Encoding : chunked"],
    ["GET / HTTP/1.1", host, "X-A: 1", " X-Folded: 2"],
    ["GET / HTTP/1.1", host, "X-A: 1\nX-B: 2"],
    ["GET / HTTP/1.1", host, "X-A: 1\rX-B: 2"],
    ["GET / HTTP/1.1", host, "X-A: \x00"],
    ["GET /a b HTTP/1.1", host],
    [`CONNECT api.example:${port} HTTP/1.1`, host],
  ];
  for (const head of heads) {
    const answer = await say(
      "api.example",
      `${[...head, key, "Connection: close"].join("\r\n")}\r\n\r\n0\r\n\r\n`,
    );
    expect([head, statusOf(answer) < 400 && answer !== ""]).toEqual([head, false]);
  }
  expect(heard).toEqual([]);
});

test("several requests on a connection are each sent to their host, and a large one is streamed", async () => {
  const { port, heard, authority } = await outside(({ body }, response) => response.end(body));
  const { open, say } = await world({ port, authorities: [authority.certificate] });
  const head = (more: string) => `Host: api.example:${port}\r\nX-Key: ${PLACEHOLDER}\r\n${more}\r\n`;
  const body = "0123456789".repeat(500_000);
  const secure = await open("api.example");
  secure.write(`GET /1 HTTP/1.1\r\n${head("")}POST /2 HTTP/1.1\r\n`);
  secure.write(`${head(`Content-Length: ${body.length}\r\n`)}${body}`);
  secure.write(`PUT /3 HTTP/1.1\r\n${head("Connection: close\r\n")}`);
  const answers = await received(secure);
  expect(answers.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
  expect(answers.length).toBeGreaterThan(body.length);
  expect(heard.map(({ path, headers }) => [path, headers["x-key"]])).toEqual(
    ["/1", "/2", "/3"].map((path) => [path, SECRET]),
  );
  expect(heard[2]?.headers["content-length"]).toBe("0");
  const second = `GET /x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`;
  expect(await say("api.example", `GET /4 HTTP/1.1\r\n${head("")}${second}`)).toContain("421 Misdirected");
});

test("consecutive requests on a connection share one connection to the host", async () => {
  const { port, authority, connections } = await outside((_, response) => response.end("ok"));
  const { open } = await world({ port, authorities: [authority.certificate] });
  const secure = await open("api.example");
  let answer = "";
  secure.on("data", (bytes: Buffer) => {
    answer += String(bytes);
  });
  for (let at = 0; at < 3; at++) {
    answer = "";
    secure.write(`GET / HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`);
    // The last chunk of a masked answer.
    await expect.poll(() => answer).toMatch(/0\r\n\r\n$/);
    expect(answer).toContain("200 OK");
  }
  expect(connections()).toBe(1);
});

test("a client sends at most a hundred requests through a tunnel, answered or not", async () => {
  const { port, heard, authority } = await outside((_, response) => response.end("ok"));
  const { open } = await world({ port, authorities: [authority.certificate] });
  const secure = await open("api.example");
  secure.write(`GET / HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`.repeat(101));
  let answers = "";
  for await (const bytes of secure) {
    answers += String(bytes);
    if (answers.includes(" 503 ")) break;
  }
  expect(answers.match(/HTTP\/1\.1 200/g)).toHaveLength(100);
  expect(heard).toHaveLength(100);
});

test("the connection to a host ends with its tunnel, even if the answer never arrives", async () => {
  const silent = Promise.withResolvers<ServerResponse>();
  const { port, authority } = await outside((_, response) => silent.resolve(response));
  const { open } = await world({ port, authorities: [authority.certificate] });
  const secure = await open("api.example");
  secure.write(`GET / HTTP/1.1\r\nHost: api.example:${port}\r\n\r\n`);
  const response = await silent.promise;
  secure.destroy();
  await once(response, "close");
});
