// Puts the certificate of the sandbox's own authority where its programs can find it, together with the image's
// certificates.

import { randomId } from "../../lib/random-id.ts";
import { HOME } from "./prelude.ts";
import { MAKE_HOME } from "./process.ts";
import { quote, type ScriptRunner } from "./script.ts";

const { rootCertificates } = process.getBuiltinModule("node:tls");

/** A folder below the home directory of commands. */
const FOLDER = ".skein-authorities";
/**
 * The number of certificate folders to keep, one for each time that the sandbox was opened. Each server that has opened
 * the sandbox needs its own files.
 */
const KEPT = 8;
/** The usual paths of an image's own certificates. */
const BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

interface AuthorityFile {
  readonly workdir: string;
  /** The certificate in PEM format. */
  readonly certificate: string;
}

/**
 * Returns the variables through which programs find the files, or undefined if the files cannot be written.
 */
export async function writeAuthority(
  shell: Pick<ScriptRunner, "runOnce">,
  { workdir, certificate }: AuthorityFile,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>> | undefined> {
  const bundle = await bundleOf(shell, signal);
  const roots = bundle === undefined ? rootCertificates.join("\n") : "";
  const input = Buffer.from(`${certificate}${roots}\n`);
  const folder = `${workdir}/${HOME}/${FOLDER}`;
  const place = `${folder}/${randomId()}`;
  const script = `r=1
    HOME=${quote(`${workdir}/${HOME}`)}; ${MAKE_HOME}
    mkdir -p ${quote(place)} && cd -P -- ${quote(place)} && head -c ${input.length} >bundle.pem &&
      printf %s ${quote(certificate)} >own.pem ${bundle === undefined ? "" : `&& cat ${quote(bundle)} >>bundle.pem`} &&
      [ -s own.pem ] && [ -s bundle.pem ] && r=0
    cd -P -- ${quote(folder)} && ls -t | tail -n +${KEPT + 1} | while read -r old; do rm -rf "./$old"; done`;
  const { fields } = await shell.runOnce({ script, input }, signal);
  if (fields[0] !== "0") return undefined;
  const all = `${place}/bundle.pem`;
  return {
    ...{ SSL_CERT_FILE: all, REQUESTS_CA_BUNDLE: all, CURL_CA_BUNDLE: all, GIT_SSL_CAINFO: all },
    // Node adds these certificates to its own.
    NODE_EXTRA_CA_CERTS: `${place}/own.pem`,
  };
}

/** Returns the file with the certificates that the image trusts, if the image has one. */
async function bundleOf(
  shell: Pick<ScriptRunner, "runOnce">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const tries = BUNDLES.map((path, at) => `[ -f ${path} ] && [ -r ${path} ] && r="0 ${at}"`);
  const { fields } = await shell.runOnce({ script: `r="0 none"; ${tries.toReversed().join("; ")}` }, signal);
  return BUNDLES[Number(fields[1])];
}
