// Certificates for TLS, made by openssl: an authority, and what it has signed.

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const openssl = async (folder: string, line: string) =>
  promisify(execFile)("openssl", line.split(" "), { cwd: folder });

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  readonly server: { readonly cert: string; readonly key: string };
  readonly client: { readonly cert: string; readonly key: string };
}

/** For a server at 127.0.0.1; `onEnd` is when they are not needed any more. */
export async function newCertificates(onEnd: (remove: () => Promise<void>) => void): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), "skein-tls-"));
  onEnd(() => rm(folder, { recursive: true, force: true }));
  const made = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
  await openssl(folder, `req -x509 ${made} -subj /CN=authority -keyout ca.key -out ca.pem`);
  for (const [name, use] of [
    ["server", "serverAuth"],
    ["client", "clientAuth"],
  ]) {
    await writeFile(join(folder, "more"), `subjectAltName=IP:127.0.0.1\nextendedKeyUsage=${use}\n`);
    await openssl(folder, `req ${made} -subj /CN=${name} -keyout ${name}.key -out ${name}.csr`);
    const signed = "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile more";
    await openssl(folder, `x509 -req -in ${name}.csr ${signed} -out ${name}.pem`);
  }
  const pair = (name: string) => ({ cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) });
  return { ca: join(folder, "ca.pem"), server: pair("server"), client: pair("client") };
}
