// Puts the certificate of the sandbox's own authority where its programs find it, together with the image's own.

import { randomId } from "../../lib/random-id.ts";
import { HOME } from "./prelude.ts";
import { MAKE_HOME } from "./process.ts";
import { quote, type ScriptRunner } from "./script.ts";

const { rootCertificates } = process.getBuiltinModule("node:tls");

/** Below the home directory of commands. */
const FOLDER = ".skein-authorities";
/** How many openings of the sandbox keep their files: each server that has opened it needs its own. */
const KEPT = 8;
/** Places of an image's own certificates. */
const BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

interface AuthorityFile {
  readonly workdir: string;
  /** In PEM. */
  readonly certificate: string;
}

/** Returns the variables that lead programs to the files. Undefined if they cannot be written. */
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
    // Node adds these to its own.
    NODE_EXTRA_CA_CERTS: `${place}/own.pem`,
  };
}

/** The file with the certificates that the image trusts, if it has one. */
async function bundleOf(
  shell: Pick<ScriptRunner, "runOnce">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const tries = BUNDLES.map((path, at) => `[ -f ${path} ] && [ -r ${path} ] && r="0 ${at}"`);
  const { fields } = await shell.runOnce({ script: `r="0 none"; ${tries.toReversed().join("; ")}` }, signal);
  return BUNDLES[Number(fields[1])];
}
