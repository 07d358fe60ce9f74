// Vertex AI's side of the wire for Claude: Anthropic's messages, with the project and the model in the path.

import { anthropic } from "./anthropic.ts";
import { anthropicFault } from "./anthropic-strict.ts";
import type { Failure } from "./script.ts";
import type { Asked, Refusal, Vendor } from "./vendor.ts";

const PATH =
  /^\/v1\/projects\/acme\/locations\/[a-z\d-]+\/publishers\/anthropic\/models\/([^/]+):streamRawPredict$/;

/** Google's own refusals; those of the model are Anthropic's. */
const GOOGLES: Partial<Record<Failure, readonly [code: number, status: string, message: string]>> = {
  auth: [401, "UNAUTHENTICATED", "Request had invalid authentication credentials."],
  quota: [403, "PERMISSION_DENIED", "This API method requires billing to be enabled."],
  rate_limit: [429, "RESOURCE_EXHAUSTED", "Quota exceeded for online_prediction_requests_per_base_model."],
};

export const vertex: Vendor = {
  name: "vertex",
  path: PATH,
  refuse(asked) {
    if (!/^Bearer ./.test(asked.headers.authorization ?? ""))
      return refusal([401, "UNAUTHENTICATED", "Request is missing required authentication credential."]);
    const fault = faultOf(asked);
    return fault === undefined
      ? undefined
      : { status: 400, body: { type: "error", error: { type: "invalid_request_error", message: fault } } };
  },
  fail(failure, answer) {
    const google = GOOGLES[failure];
    return google ? refusal(google) : anthropic.fail(failure, answer);
  },
  errorFrame: (failure) => anthropic.errorFrame(failure),
  frames: (answer, asked) =>
    anthropic.frames(answer, { ...asked, body: { ...Object(asked.body), model: modelIn(asked) } }),
};

const modelIn = ({ url }: Asked) => decodeURIComponent(PATH.exec(url)?.[1] ?? "").replace("@", "-");

function faultOf(asked: Asked): string | undefined {
  const { anthropic_version, ...body } = Object(asked.body);
  if (!anthropic_version) return "anthropic_version: Field required";
  if ("model" in body) return "model: Extra inputs are not permitted";
  const headers = { ...asked.headers, "anthropic-version": anthropic_version };
  return anthropicFault({ ...asked, headers, body: { ...body, model: modelIn(asked) } });
}

function refusal([code, status, message]: readonly [number, string, string]): Refusal {
  return { status: code, body: { error: { code, message, status } } };
}
