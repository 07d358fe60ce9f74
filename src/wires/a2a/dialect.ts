// A2A 0.2 and 0.3: the same tasks with older names and shapes. Requests are converted to those of 1.0, and results to
// the shapes that older clients expect.

import { z } from "zod";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";

/** A version of the protocol, as conversions to and from 1.0. */
export interface ProtocolDialect {
  /** Returns the parameters in the shape of 1.0. */
  readonly paramsOf: (params: unknown) => unknown;
  /** Returns a result, or an update of a stream, in the shape that the client expects. */
  readonly resultOf: (result: object) => object;
}

export const CURRENT: ProtocolDialect = { paramsOf: (params) => params, resultOf: (result) => result };

/** The methods of 0.2 and 0.3, with their names in 1.0. */
const METHODS: Readonly<Record<string, string>> = {
  "message/send": "SendMessage",
  "message/stream": "SendStreamingMessage",
  "tasks/get": "GetTask",
  "tasks/cancel": "CancelTask",
  "tasks/resubscribe": "SubscribeToTask",
  "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
  "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
  "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
  "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
  "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
};

/** Returns the 1.0 name of an older method name, or undefined for any other name. */
export const currentMethod = (method: string): string | undefined =>
  Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;

const SentPart = z.looseObject({
  text: z.string().optional(),
  data: z.unknown().optional(),
  file: z
    .looseObject({
      bytes: z.string().optional(),
      uri: z.string().optional(),
      mimeType: z.string().optional(),
      name: z.string().optional(),
    })
    .optional(),
});
const Sent = z.looseObject({
  message: z.looseObject({ parts: boundedList(SentPart, 1000) }).optional(),
  configuration: z
    .looseObject({ blocking: z.boolean().optional(), pushNotificationConfig: z.unknown().optional() })
    .nullish(),
});

/** Leaves malformed parameters unchanged, because the 1.0 checks refuse them. */
function paramsOf(params: unknown): unknown {
  const sent = Sent.safeParse(params).data;
  if (!sent) return params;
  const { message, configuration, ...others } = sent;
  return {
    ...others,
    ...(message ? { message: { ...message, parts: message.parts.map(partFrom) } } : {}),
    ...(configuration ? { configuration: configurationFrom(configuration) } : {}),
  };
}

function partFrom({ text, data, file }: z.infer<typeof SentPart>) {
  if (!file) return omitUndefined({ text, data });
  const { bytes: raw, uri: url, mimeType: mediaType, name: filename } = file;
  return omitUndefined({ raw, url, mediaType, filename });
}

function configurationFrom({
  blocking = true,
  pushNotificationConfig,
  ...others
}: NonNullable<z.infer<typeof Sent>["configuration"]>) {
  return {
    ...others,
    returnImmediately: !blocking,
    ...omitUndefined({ taskPushNotificationConfig: pushNotificationConfig }),
  };
}

interface ResultPart {
  readonly text?: string;
  readonly data?: object;
}
interface ResultMessage {
  readonly role: string;
  readonly parts: readonly ResultPart[];
}
interface ResultStatus {
  readonly state: string;
  readonly message?: ResultMessage;
}
interface ResultArtifact {
  readonly parts: readonly ResultPart[];
}
interface ResultTask {
  readonly status: ResultStatus;
  readonly artifacts?: readonly ResultArtifact[];
  readonly history?: readonly ResultMessage[];
}
/** The results of this wire's routes and folds. */
interface WireResult {
  readonly task?: ResultTask;
  readonly statusUpdate?: { readonly status: ResultStatus };
  readonly artifactUpdate?: { readonly artifact: ResultArtifact };
}

function resultOf(result: object): object {
  // Only this wire's own results reach this function.
  const { task, statusUpdate, artifactUpdate } = result as WireResult;
  if (statusUpdate) {
    const { status } = statusUpdate;
    const final = LAST.has(status.state);
    return { kind: "status-update", ...statusUpdate, status: statusOf(status), final };
  }
  if (artifactUpdate)
    return { kind: "artifact-update", ...artifactUpdate, artifact: artifactOf(artifactUpdate.artifact) };
  return taskOf(task ?? (result as ResultTask));
}

const taskOf = (task: ResultTask) => ({
  kind: "task",
  ...task,
  status: statusOf(task.status),
  ...(task.artifacts ? { artifacts: task.artifacts.map(artifactOf) } : {}),
  ...(task.history ? { history: task.history.map(messageOf) } : {}),
});

/** The states that end a stream in 0.3. */
const LAST: ReadonlySet<string> = new Set(
  ["COMPLETED", "CANCELED", "FAILED", "INPUT_REQUIRED"].map((state) => `TASK_STATE_${state}`),
);

const statusOf = ({ state, message, ...others }: ResultStatus) => ({
  ...others,
  state: state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-"),
  ...(message ? { message: messageOf(message) } : {}),
});

const messageOf = ({ role, parts, ...others }: ResultMessage) => ({
  kind: "message",
  ...others,
  role: role === "ROLE_USER" ? "user" : "agent",
  parts: parts.map(partOf),
});

const artifactOf = ({ parts, ...others }: ResultArtifact) => ({ ...others, parts: parts.map(partOf) });

const partOf = (part: ResultPart) =>
  part.data === undefined ? { kind: "text", text: part.text ?? "" } : { kind: "data", data: part.data };

export const OLDER: ProtocolDialect = { paramsOf, resultOf };
