// Names the operations of the OpenAPI document. Generated clients use these names for their functions.

/** The last segments of paths that name an action instead of a thing. */
const VERBS: ReadonlySet<string> = new Set(
  "cancel connect copy count fork join restart resume rotate run search start stop stream test wait".split(
    " ",
  ),
);
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "POST /threads/{thread_id}/title": "generateThreadTitle",
  "POST /threads/{thread_id}/runs/{run_id}/messages": "steerThreadRun",
  "POST /tool-results/{token}": "deliverToolResult",
  "POST /hooks/{address}": "deliverToTrigger",
  "GET /agents/{name}/overrides": "getAgentOverrides",
  "DELETE /agents/{name}/overrides": "deleteAgentOverrides",
  "GET /langgraph/threads/{thread_id}/state/{checkpoint_id}": "getLanggraphThreadCheckpoint",
  "POST /langgraph/threads/{thread_id}/stream/events": "followLanggraphThread",
};

/**
 * `GET /threads/{thread_id}/runs` becomes `listThreadRuns`, and `POST /threads/{thread_id}/runs/{run_id}/cancel`
 * becomes `cancelThreadRun`.
 */
export function operationId(method: string, path: string, isStream: boolean): string {
  const exception = EXCEPTIONS[`${method} ${path}`];
  if (exception) return exception;
  const segments = path.split("/").slice(1);
  const last = segments.at(-1) ?? "";
  if (VERBS.has(last)) return last + nouns(segments.slice(0, -1));
  return verbOf(method, last, isStream) + nouns(segments, method === "POST");
}

const isParameter = (segment = "") => segment.startsWith("{");
const isPlural = (segment: string) => segment.endsWith("s");
/** `branches` becomes `branch`, and `messages` becomes `message`. */
const singular = (plural: string) => plural.replace(/(?<=ch|sh|ss|x)es$|s$/, "");

function verbOf(method: string, last: string, isStream: boolean): string {
  const isList = isPlural(last) && !isParameter(last);
  switch (method) {
    case "GET":
      return isStream && !isParameter(last) ? "follow" : isList ? "list" : "get";
    case "POST":
      return isList ? "create" : "post";
    case "PATCH":
      return "update";
    case "PUT":
      return "put";
    default:
      return isList ? "clear" : "delete";
  }
}

/** A segment before a parameter names one of several things: `/threads/{thread_id}/runs` are the runs of a thread. */
function nouns(segments: readonly string[], makesOne = false): string {
  return segments
    .map((segment, index) => {
      if (isParameter(segment)) return "";
      const isOne = isParameter(segments[index + 1]) || (makesOne && index === segments.length - 1);
      return capitalized(isOne ? singular(segment) : segment);
    })
    .join("");
}

const capitalized = (segment: string) =>
  segment
    .split(/[^a-zA-Z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
