// Bedrock's side of the wire: Anthropic's messages, with the model in the path, signed, and answered in binary frames.

import { anthropic } from "./anthropic.ts";
import { anthropicFault } from "./anthropic-strict.ts";
import { awsFrame, signatureFault } from "./aws.ts";
import type { Failure } from "./script.ts";
import type { Asked, Refusal, Vendor } from "./vendor.ts";

export const BEDROCK_REGION = "eu-central-1";

const FAILURES: Readonly<Record<Failure, readonly [status: number, type: string, message: string]>> = {
  auth: [403, "UnrecognizedClientException", "The security token included in the request is invalid."],
  rate_limit: [
    429,
    "ThrottlingException",
    "Too many requests, please wait before trying again. The rate limit is reached.",
  ],
  quota: [403, "AccessDeniedException", "You don't have access to the model with the specified model ID."],
  overloaded: [503, "ServiceUnavailableException", "Bedrock is unable to process your request: overloaded."],
  server_error: [500, "InternalServerException", "The server encountered an unexpected error."],
  context_overflow: [400, "ValidationException", "Input is too long for requested model."],
  too_large: [413, "RequestEntityTooLargeException", "Request too large."],
  not_found: [404, "ResourceNotFoundException", "Could not resolve the foundation model claude-none."],
  content_filter: [400, "ValidationException", "Output blocked by content filtering policy"],
};

export const bedrock: Vendor = {
  name: "bedrock",
  path: /^\/model\/[^/]+\/invoke-with-response-stream$/,
  contentType: "application/vnd.amazon.eventstream",
  refuse(asked) {
    const isKey = /^Bearer ./.test(asked.headers.authorization ?? "");
    const unsigned = isKey ? undefined : signatureFault(asked, BEDROCK_REGION);
    if (unsigned !== undefined) return refusal([403, "InvalidSignatureException", unsigned]);
    const fault = faultOf(asked);
    return fault === undefined ? undefined : refusal([400, "ValidationException", fault]);
  },
  fail: (failure) => refusal(FAILURES[failure]),
  errorFrame(failure) {
    const [, type, message] = FAILURES[failure];
    const name = type.charAt(0).toLowerCase() + type.slice(1);
    return awsFrame({ ":message-type": "exception", ":exception-type": name }, { message });
  },
  frames: (answer, asked) =>
    anthropic
      .frames(answer, { ...asked, body: messagesOf(asked) })
      .map((frame) => chunk(/^data: ([^\n]*)/m.exec(String(frame))?.[1] ?? "")),
  rawFrame: (data) => chunk(data),
};

const modelIn = ({ url }: Asked) => decodeURIComponent(url.split("/")[2] ?? "");
const messagesOf = (asked: Asked) => ({ ...Object(asked.body), model: modelIn(asked), stream: true });

function faultOf(asked: Asked): string | undefined {
  const { anthropic_version, anthropic_beta = [], ...body } = Object(asked.body);
  if (!anthropic_version) return "Malformed input request: #: required key [anthropic_version] not found";
  for (const key of ["model", "stream"])
    if (key in body) return `Malformed input request: #: extraneous key [${key}] is not permitted`;
  const headers = { "anthropic-version": anthropic_version, "anthropic-beta": anthropic_beta.join(",") };
  return anthropicFault({ ...asked, headers, body: { ...body, model: modelIn(asked), stream: true } });
}

const EVENT = { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" };

const chunk = (data: string) =>
  awsFrame(EVENT, { bytes: Buffer.from(data).toString("base64"), p: "abcdefghijk" });

function refusal([status, type, message]: (typeof FAILURES)[Failure]): Refusal {
  return { status, body: { message, __type: type } };
}
