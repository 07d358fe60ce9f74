// Reads the certificates for one end of a TLS connection from files that an operator names.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readText } from "./read-text.ts";

/** The paths of PEM files. */
export interface TlsFiles {
  /** The certificate authority that must have signed the other end's certificate. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const MAX_BYTES = 1024 * 1024;

/**
 * Returns the files' contents, or the problems, each beginning with the key's name. The messages never contain a file's
 * content.
 */
export async function readTls(files: TlsFiles): Promise<{ value: TlsFiles } | { problems: string[] }> {
  const read = async (key: keyof TlsFiles) => {
    const found = await readText(files[key], MAX_BYTES);
    return "text" in found ? { key, ...found } : { key, problem: `${key}: \`${files[key]}\` ${found.fault}` };
  };
  const parts = await Promise.all((["ca", "cert", "key"] as const).map(read));
  const unread = parts.flatMap((part) => ("problem" in part ? [part.problem] : []));
  if (unread.length > 0) return { problems: unread };
  const [ca = "", cert = "", key = ""] = parts.map((part) => ("text" in part ? part.text : ""));
  const [theirs, own, secret] = [certificate(ca), certificate(cert), privateKey(key)];
  const problems = [
    ...(theirs ? [] : [`ca: \`${files.ca}\` contains no certificate in PEM format`]),
    ...(own ? [] : [`cert: \`${files.cert}\` contains no certificate in PEM format`]),
    ...(secret ? [] : [`key: \`${files.key}\` contains no private key in PEM format without a passphrase`]),
    ...(own && secret && !own.checkPrivateKey(secret)
      ? [`key: \`${files.key}\` is not the key of the certificate \`${files.cert}\``]
      : []),
  ];
  return problems.length > 0 ? { problems } : { value: { ca, cert, key } };
}

const certificate = (text: string) => orUndefined(() => new X509Certificate(text));
const privateKey = (text: string) => orUndefined(() => createPrivateKey(text));

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
