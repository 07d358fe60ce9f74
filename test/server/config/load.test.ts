import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import type { TlsFiles } from "../../../src/lib/tls-files.ts";
import { loadServerConfig } from "../../../src/server/config/load.ts";
import { ServerConfig } from "../../../src/server/config/server.ts";
import { newCertificates } from "../../support/certificates.ts";

async function fileWith(text: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "skein-config-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, "server.yaml"), text);
  return join(dir, "server.yaml");
}

const load = async (text: string, env = {}) =>
  loadServerConfig({ ...env, CONFIG_FILE: await fileWith(text) });

/** With the file's folder left out. */
async function problemsOf(text: string, env = {}): Promise<string[]> {
  const error: Error = await load(text, env).then(
    () => expect.unreachable("the settings were accepted"),
    (error) => error,
  );
  expect(error).toMatchObject({ name: "AppError", code: "config_invalid" });
  return error.message.split("\n").map((line) => line.replace(/\S*\/server\.yaml/, "server.yaml"));
}

test("has a default for everything", async () => {
  expect(await load("")).toEqual(ServerConfig.parse({}));
  expect(ServerConfig.parse({})).toMatchObject({
    listen: { host: "127.0.0.1", port: 8000 },
    ...{ data_dir: "./data", agents_file: "./agents.yaml", store: "sqlite", log_level: "info" },
    backends: { allow_local: false },
    streams: { heartbeat: 10_000, stall: 30_000 },
  });
});

test("the default file shows every key with its default", async () => {
  const text = await readFile("config/server.yaml", "utf8");
  expect(ServerConfig.parse(parse(text) ?? {})).toEqual(ServerConfig.parse({}));
  const all = parse(text.replaceAll(/^#(?=\s*[a-z_]+:)/gm, ""));
  expect(ServerConfig.parse(all)).toEqual(ServerConfig.parse({}));
  for (const [group, defaults] of Object.entries(ServerConfig.parse({}))) {
    expect(all).toHaveProperty(group);
    if (typeof defaults === "object") expect(Object.keys(all[group])).toEqual(Object.keys(defaults));
  }
});

test("reads the file, and the environment takes precedence", async () => {
  const text = `
listen: { host: localhost, port: 1 }
store: memory
log_level: warn
limits: { runs: 3 }
shutdown: { grace: 1m }
`;
  expect(await load(text)).toMatchObject({
    listen: { host: "localhost", port: 1 },
    ...{ store: "memory", log_level: "warn" },
    limits: { runs: 3, streams: 10_000 },
    shutdown: { grace: 60_000 },
  });
  const env = {
    ...{ HOST: "::1", PORT: "0", DATA_DIR: "/var/skein", AGENTS_FILE: "a.yaml", STORE: "sqlite" },
    ...{ LOG_LEVEL: "silent", ALLOW_LOCAL_BACKEND: "true", UNRELATED: "x" },
  };
  expect(await load(text, env)).toMatchObject({
    listen: { host: "::1", port: 0 },
    ...{ data_dir: "/var/skein", agents_file: "a.yaml", store: "sqlite", log_level: "silent" },
    backends: { allow_local: true },
    limits: { runs: 3 },
  });
});

test("an error names only the first keys of many that are possible", async () => {
  expect(await problemsOf("xyzzy: 1", {})).toEqual([
    expect.stringMatching(/^server\.yaml:1:1: unknown key `xyzzy`; use one of (?:\w+, ){20}…$/),
  ]);
});

test("an empty variable counts as not set", async () => {
  expect(await load("", { PORT: "", HOST: "", STORE: "" })).toEqual(ServerConfig.parse({}));
});

test("reports every error in the environment and the file at once", async () => {
  const text =
    "listen:\n  prot: 1\nstore: sqlit\nstreams: { heartbeat: never, stall: 0 }\nlimits: { runs: 0 }\n";
  const env = { PORT: "80a", STORE: "reddis", LOG_LEVEL: "loud", ALLOW_LOCAL_BACKEND: "yes" };
  expect(await problemsOf(text, env)).toEqual([
    "environment: PORT: `80a` must be a whole number",
    "environment: STORE: `reddis` must be one of `memory`, `sqlite`, `redis`, `postgres`; did you mean `redis`?",
    "environment: LOG_LEVEL: `loud` must be one of `fatal`, `error`, `warn`, `info`, `debug`, `trace`, `silent`",
    "environment: ALLOW_LOCAL_BACKEND: `yes` must be one of `0`, `1`, `true`, `false`",
    "server.yaml:2:3: listen: unknown key `prot`; did you mean `port`?",
    "server.yaml:3:8: store: `sqlit` must be one of `memory`, `sqlite`, `redis`, `postgres`; did you mean `sqlite`?",
    "server.yaml:4:23: streams.heartbeat: `never` must be a duration of at most 24 days, such as 10s, 15m or 1h, or a number of seconds",
    "server.yaml:4:37: streams.stall: `0` must be longer than 0 s",
    "server.yaml:5:17: limits.runs: `0` must be at least 1",
  ]);
});

test.each(["hunter2", "hunter2/x", "hunter2@x"])("never repeats a password: %s", async (password) => {
  const problems = await problemsOf(`redis: { url: 'http://me:${password}@redis' }`, {
    REDIS_URL: `redis://me:${password}@redis/none`,
  });
  expect(problems).toHaveLength(2);
  expect(problems.join()).not.toContain("hunter2");
  expect(problems[0]).toMatch(/^environment: REDIS_URL: `redis:\/\/…@redis\/none` must be redis:\/\//);
});

test("takes PostgreSQL's address from POSTGRES_URL, or otherwise from DATABASE_URL if it is one", async () => {
  const urlWith = async (env: Record<string, string>) => (await load("", env)).postgres.url;
  const [own, general] = ["postgres://skein@db/skein", "postgresql://app@db/app"];
  expect(await urlWith({ POSTGRES_URL: own, DATABASE_URL: general })).toBe(own);
  expect(await urlWith({ DATABASE_URL: general })).toBe(general);
  expect(await urlWith({ DATABASE_URL: "mysql://app@db/app" })).toBe("postgres://127.0.0.1:5432/skein");
  const [problem] = await problemsOf("", { POSTGRES_URL: "postgres://me:hunter2@db" });
  expect(problem).toMatch(/^environment: POSTGRES_URL: `postgres:\/\/…@db` must be postgres:\/\//);
});

test.each(["65536", "-1", "1e3", "0x50"])("refuses the port %s", async (PORT) => {
  expect(await problemsOf("", { PORT })).toEqual([
    expect.stringContaining(`environment: PORT: \`${PORT}\` must be`),
  ]);
});

test.each(["127.0.0.1", "127.8.8.8", "::1", "0:0:0:0:0:0:0:1", "localhost", "LocalHost"])(
  "listens on %s",
  async (HOST) => expect((await load("", { HOST })).listen.host).toBe(HOST),
);

test.each([
  "0.0.0.0",
  "::",
  "192.168.1.5",
  "example.com",
  "localhost.example.com",
  "127.0.0.1.nip.io",
  "0",
  "127.1",
])("refuses public addresses without authentication, on %s", async (host) => {
  const refusal = `HOST=${host} is an address that other machines can reach, and there is no authentication`;
  expect(await problemsOf("", { HOST: host })).toEqual([expect.stringContaining(refusal)]);
  expect(await problemsOf(`listen: { host: "${host}" }`)).toEqual([expect.stringContaining(refusal)]);
  expect((await load("", { HOST: host, AUTH: "api_key" })).listen.host).toBe(host);
});

test("a named file must exist, but the default one need not", async () => {
  const nowhere = await mkdtemp(join(tmpdir(), "skein-config-"));
  const before = process.cwd();
  onTestFinished(async () => {
    process.chdir(before);
    await rm(nowhere, { recursive: true });
  });
  process.chdir(nowhere);
  expect(await loadServerConfig({})).toEqual(ServerConfig.parse({}));
  await expect(loadServerConfig({ CONFIG_FILE: "other.yaml" })).rejects.toThrow(
    "environment: CONFIG_FILE: `other.yaml` does not exist",
  );
});

test("refuses a path that is not a file, or a file that is too large", async () => {
  await expect(loadServerConfig({ CONFIG_FILE: tmpdir() })).rejects.toThrow("is not a file");
  await expect(load(`# ${"x".repeat(1024 * 1024)}`)).rejects.toThrow("is larger than 1024 KiB");
});

const TLS = "tls: { ca: no/ca.pem, cert: no/cert.pem, key: no/key.pem }";
const engines = (list: string) => `backends: { docker: { engines: [${list}] } }`;

test.each([
  [
    "{ name: a, host: 'tcp://10.0.0.5:2376' }",
    /engines\[0\]\.tls.*is required: access to an engine is root access/,
  ],
  ["{ name: a, host: 'unix:///run/a.sock', tls: { ca: a, cert: b, key: c } }", /tls.*not for a socket/],
  ["{ name: a, host: /a }, { name: a, host: /b }", /engines.*must have different names/],
  ["{ name: A B, host: /a }", /must be 1 to 32 characters out of a-z 0-9 -/],
  [`{ name: east, host: 'tcp://10.0.0.5:2376', ${TLS} }`, /`east`: tls\.ca: `no\/ca\.pem` does not exist/],
])("unusable engines are refused, with a valid form: %s", async (list, words) => {
  expect((await problemsOf(engines(list))).join("\n")).toMatch(words);
});

test("engines on this machine need no certificates", async () => {
  const list =
    "{ name: a, host: 'tcp://127.0.0.1:2375' }, { name: b, host: 'unix:///run/b.sock', drain: true }";
  expect((await load(engines(list))).backends.docker.engines).toMatchObject([
    { name: "a", drain: false },
    { name: "b", drain: true },
  ]);
});

test("several engines together with one from the environment are refused because it is unclear which apply", async () => {
  const [problem] = await problemsOf(engines("{ name: a, host: /a }"), { DOCKER_HOST: "unix:///b" });
  expect(problem).toMatch(/engines: is not allowed together with DOCKER_HOST/);
});

test("an engine's certificates are read, and mismatched ones are refused", async () => {
  const [one, other] = [await newCertificates(onTestFinished), await newCertificates(onTestFinished)];
  const of = ({ ca, cert, key }: TlsFiles) =>
    engines(`{ name: a, host: 'tcp://10.0.0.5:2376', tls: { ca: ${ca}, cert: ${cert}, key: ${key} } }`);
  const { ca, client } = one;
  await load(of({ ca, ...client }));
  const problems = async (files: TlsFiles) => (await problemsOf(of(files))).join("\n");
  expect(await problems({ ca, cert: client.cert, key: other.client.key })).toMatch(
    /is not the key of the certificate/,
  );
  expect(await problems({ ca: client.key, ...client })).toMatch(
    /tls\.ca: .* contains no certificate in PEM format/,
  );
  expect(await problems({ ca, cert: client.cert, key: ca })).toMatch(/tls\.key: .* contains no private key/);
});

test("four previous keys of the vault are accepted, and a fifth is refused", async () => {
  const keys = Array.from({ length: 5 }, (_, at) => Buffer.alloc(32, at).toString("base64"));
  const vault = (previous_keys: string[]) => JSON.stringify({ vault: { previous_keys } });
  expect((await load(vault(keys.slice(1)))).vault.previous_keys).toHaveLength(4);
  expect((await problemsOf(vault(keys))).join()).toContain("vault.previous_keys");
});

test("a search service without its address or its key does not start", async () => {
  const problems = (search: string) => problemsOf(`web: { search: ${search} }\n`, {});
  expect(await problems("{ provider: searxng }")).toEqual([
    "server.yaml:1:8: web.search.url: is required for `searxng`",
  ]);
  expect(await problems("{ provider: brave }")).toEqual([
    "server.yaml:1:8: web.search.api_key: is required for `brave`",
  ]);
  expect((await problems(`{ provider: tavily, api_key: '\${TAVILY_API_KEY}' }`))[0]).toContain(
    "TAVILY_API_KEY",
  );
  const config = await load(`web: { search: { provider: brave, api_key: '\${KEY}' } }\n`, { KEY: "k-1" });
  expect(config.web.search).toEqual({ provider: "brave", api_key: "k-1" });
});
