// The hosts that commands may reach: the backend's list and the hosts that the user allowed for the thread. The
// request_host tool asks the user.

import { z } from "zod";
import { firstChars } from "../../../lib/text.ts";
import type { BackendConfig, RefusedHost } from "../../core/backend.ts";
import { askFor } from "../../core/open-interrupts.ts";
import { patchState } from "../../core/run.ts";
import { defineTool, denied, done, failed, interrupted, type Run, type Tool } from "../../core/tool.ts";

/**
 * The key in a thread's state for the hosts that the user allowed. The value maps each host to the time when
 * it was allowed.
 */
const STATE_KEY = "hosts";
const MAX_HOSTS = 32;
const MAX_REASON_CHARS = 300;
const MAX_LISTED = 20;
/** A host name, optionally with a port. The backend decides which hosts it may reach. */
const HOST = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){0,8}\.[a-z][a-z0-9-]{0,62}(:\d{1,5})?$/i;

const Allowed = z.record(z.string(), z.string());
const Limits = z.looseObject({
  network: z.looseObject({ allow: z.array(z.string()), ask: z.boolean().default(false) }),
  env: z.record(z.string(), z.looseObject({ hosts: z.array(z.string()) })).default({}),
});

/** Returns the host limits of a backend, or undefined if it does not limit hosts. */
export function hostLimits(config: BackendConfig | undefined) {
  const limits = Limits.safeParse(config).data;
  return limits && { ...limits.network, secrets: limits.env };
}

/** Returns the hosts that the user allowed for this thread. */
export const allowedHosts = (run: Run): readonly string[] =>
  Object.keys(Allowed.safeParse(run.state.get(STATE_KEY)).data ?? {})
    .filter((host) => HOST.test(host))
    .slice(0, MAX_HOSTS);

/** Returns a sentence for the description of a tool that runs commands. */
export function toldOf({ allow, ask, secrets }: NonNullable<ReturnType<typeof hostLimits>>): string {
  const rest = allow.length - MAX_LISTED;
  const names = [...allow.slice(0, MAX_LISTED), ...(rest > 0 ? [`${rest} more`] : [])].join(", ");
  const more = ask ? " Use request_host to ask the user for another host." : "";
  return `The only network access is an HTTP proxy, set in HTTPS_PROXY, for these hosts: ${names}. Programs that do not use a proxy have no network access.${more}${Object.entries(secrets).map(toldOfSecret).join("")}`;
}

const toldOfSecret = ([name, { hosts }]: [name: string, secret: { readonly hosts: readonly string[] }]) =>
  ` $${name} contains a placeholder. Put it into a header of an HTTPS request to ${hosts.slice(0, MAX_LISTED).join(", ")}, and the proxy replaces it with the secret.`;

const REASONS: Readonly<Record<RefusedHost["reason"], string>> = {
  host: "is not among the hosts that commands may reach",
  address: "has a private address",
  name: "was allowed, but the connection was not TLS or HTTP for it",
  placeholder: "may not receive the secret whose placeholder the request contained",
  connection: "did not receive the request, because the connection of its secret is missing or has ended",
};

/** Returns one sentence for each refusal. */
export const refusals = (refused: readonly RefusedHost[]): string[] =>
  refused.map(({ target, reason }) => `${target} ${REASONS[reason]}.`);

export const requestHost: Tool = defineTool({
  name: "request_host",
  description:
    "Ask the user to let commands of this conversation reach a host that the network refused. Then run the command again.",
  parameters: z.object({
    host: z.string().regex(HOST, "must be a name such as api.example.com, optionally with a port"),
    reason: z.string().min(1).describe("Purpose of the connection, shown to the user."),
  }),
  annotations: { category: "network", requiresPermission: false },
  describeCall: ({ host }) => `let commands reach the host \`${host}\``,
  async *execute({ host: asked, reason }, call, run) {
    const host = asked.toLowerCase();
    const known = allowedHosts(run);
    if (known.includes(host)) return done(`Commands may already reach ${host}.`);
    if (known.length >= MAX_HOSTS)
      return failed(`A conversation can have at most ${MAX_HOSTS} additional hosts.`);
    const answer = yield* askFor(
      {
        ...{ call, kind: "approval", options: ["approve", "deny"] },
        prompt: `May commands of this conversation reach the host \`${host}\`? The agent's reason: ${firstChars(reason, MAX_REASON_CHARS)}`,
      },
      run,
    );
    if (!answer) return interrupted();
    if (answer.decision !== "approve")
      return denied(
        answer.message ?? `The user does not allow ${host}. Do not try to reach it in another way.`,
      );
    yield* patchState(run, STATE_KEY, { [host]: new Date().toISOString() });
    return done(`Commands of this conversation may now reach ${host}.`);
  },
});
