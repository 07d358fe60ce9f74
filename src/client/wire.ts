// The types of the native API. Written by `npm run openapi` out of the routes; do not edit.

export type SignInOptions = {
  /** How the server learns who is asking. */
  auth: "none" | "api_key" | "jwt" | "header" | "plugin";
  /** With `jwt`, when people can sign in at the issuer: the code flow with PKCE, without a secret. */
  oidc?: {
    /** Client id of the page at the issuer. With it people sign in on the page. */
    client_id: string;
    /** Scopes that the page requests. With `offline_access` most issuers return a refresh token. */
    scopes: string;
    /** Token that the page sends; its audience is `auth.jwt.audience`. Use `id_token` when access tokens are no JWTs. */
    token: "access_token" | "id_token";
    authorization_endpoint: string;
    token_endpoint: string;
    end_session_endpoint?: string | undefined;
    issuer: string;
    audience: string;
  } | undefined;
  /** What the operator says to people who sign in: plain text. */
  note?: string | undefined;
};

export type Part = {
  type: "text";
  text: string;
} | {
  type: "image";
  media_type: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  /** The image itself, in base64. */
  data: string;
} | {
  type: "file";
  media_type: string;
  /** The file itself, in base64. */
  data: string;
  name?: string | undefined;
};

export type ToolCall = {
  /** Given by the model, or by the server. Every tool's idempotency key. */
  id: string;
  name: string;
  args: Record<string, unknown>;
  /** The arguments as the model wrote them, when they were not a JSON object. */
  malformed?: string | undefined;
};

export type Reasoning = {
  text: string;
  metadata?: Record<string, unknown> | undefined;
};

export type Usage = {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  /** In millionths. Absent when the models have no price. */
  cost?: number | undefined;
  /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
  estimated?: true | undefined;
  /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
  cache_hit_ratio?: number | undefined;
};

export type Message = {
  id: string;
  created_at: string;
  role: "system";
  content: string | Part[];
} | {
  id: string;
  created_at: string;
  role: "user";
  content: string | Part[];
} | {
  id: string;
  created_at: string;
  role: "assistant";
  content: string;
  tool_calls?: ToolCall[] | undefined;
  reasoning?: Reasoning[] | undefined;
  /** provider:model that wrote it. */
  model?: string | undefined;
  usage?: Usage | undefined;
  /** No model wrote it: a user started a run with these calls. */
  by_user?: true | undefined;
  /** Present only when the answer was cut off: `stopped` by someone, or `failed` by an error or a limit. `content` is what was said until then. */
  incomplete?: "stopped" | "failed" | undefined;
} | {
  id: string;
  created_at: string;
  role: "tool";
  /** The tool's output. */
  content: string | Part[];
  tool_call_id: string;
  name: string;
  /** Present only when the call failed. */
  error?: string | undefined;
  /** A person or a rule did not allow the call, and `error` is why; or the user did not want to answer its question. */
  denied?: true | undefined;
};

export type RememberOption = {
  remember_as: "call" | "command" | "tool";
  /** With `command`: how each command of a line must begin; whole words. */
  command_prefix?: string[] | undefined;
};

export type Interrupt = {
  id: string;
  /** May the call run? · What is the user's answer? · The front end executes the call. */
  kind: "approval" | "question" | "tool";
  call_id: string;
  run_id: string;
  /** The tool. */
  name: string;
  args: Record<string, unknown>;
  /** The question, for a person. */
  prompt: string;
  /** The options. */
  options?: string[] | undefined;
  /** The answer must be one of `options`, word for word. Absent: any text is an answer. */
  one_of_options?: true | undefined;
  /** Values that `remember_as` may have when you answer this approval. Default: `call` only. */
  remember_options?: RememberOption[] | undefined;
  created_at: string;
  /** When it is decided automatically. */
  expires_at?: string | undefined;
  /** The subagent, its thread, and the id of the interrupt there. */
  asked_by?: {
    agent: string;
    name: string;
    thread_id: string;
    id: string;
  } | undefined;
};

export type LimitDetails = {
  /** The same sentence as the `message` of `done`. */
  message: string;
  /** A quota, such as `cost_per_day`, or `max_iterations`, `budgets.tokens`, `budgets.seconds`, `loop_detection`, `stall_detection`. */
  limit: string;
  /** Whose quota it is. */
  of?: "tenant" | "user" | undefined;
  /** In the unit in which the limit is configured. */
  most?: number | undefined;
  used?: number | undefined;
  left?: number | undefined;
  /** The currency of an amount of money, if the settings name one. */
  currency?: string | undefined;
  resets_at?: string | undefined;
};

export type Error = {
  code: string;
  message: string;
  details?: Record<string, unknown> | undefined;
};

export type StreamEvent = {
  event: "run_start";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    agent: string;
    model: string;
    attempt: number;
    /** The id of the message that the run has replaced: it and all later ones have left the thread. */
    replaces?: string | undefined;
  };
} | {
  event: "run_resumed";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    attempt: number;
  };
} | {
  event: "message_discard";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    message_id: string;
  };
} | {
  event: "on_chat_model_start";
  name: string;
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    message_id: string;
    model: string;
    /** Number of messages in the request. */
    message_count?: number | undefined;
  };
} | {
  event: "on_chat_model_stream";
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  data: {
    delta: string;
  } | {
    reasoning_delta: string;
  } | {
    tool_call: {
      index: number;
      id?: string | undefined;
      name?: string | undefined;
      args_delta: string;
    };
  };
} | {
  event: "on_chat_model_end";
  name: string;
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    message_id: string;
    stop_reason?: string | undefined;
    usage?: Usage | undefined;
    /** From the request to the first delta. */
    first_token_ms?: number | undefined;
    error?: Error | undefined;
  };
} | {
  event: "on_tool_start";
  name: string;
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    call_id: string;
    args: Record<string, unknown>;
  };
} | {
  event: "on_tool_progress";
  name: string;
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    call_id: string;
    output: string;
  };
} | {
  event: "on_tool_end";
  name: string;
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    call_id: string;
    output?: string | undefined;
    error?: string | undefined;
    interrupted?: true | undefined;
    duration_ms: number;
  };
} | {
  event: "on_message";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    message: Message;
  };
} | {
  event: "on_state";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    key: string;
    value?: unknown;
    /** Merged into the value, key by key; null deletes. */
    patch?: Record<string, unknown> | undefined;
  };
} | {
  event: "on_interrupt";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: Interrupt;
} | {
  event: "on_resume";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    id: string;
    /** Of the tool. */
    name?: string | undefined;
    decision: "approve" | "deny" | "edit" | "respond";
  };
} | {
  event: "on_subagent_start";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    /** Its element in the `path` of its events. */
    id: string;
    call_id: string;
    agent: string;
    name: string;
    /** The agent's icon, for display. */
    prefix?: string | undefined;
    /** The agent that delegated the task. */
    parent?: string | undefined;
    thread_id: string;
    run_id: string;
  };
} | {
  event: "on_subagent_end";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    id: string;
    call_id: string;
    /** `interrupted`: the parent follows it again later. `running`: it continues in the background. */
    status: "completed" | "failed" | "cancelled" | "interrupted" | "running";
    summary: string;
    /** Its part of this run's usage. */
    usage?: Usage | undefined;
  };
} | {
  event: "warning";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    code: string;
    message: string;
  };
} | {
  event: "error";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    code: string;
    message: string;
    details?: Record<string, unknown> | undefined;
    usage?: Usage | undefined;
  };
} | {
  event: "done";
  run_id?: string | undefined;
  thread_id?: string | undefined;
  /** Tool call ids from the root run down to the agent that emitted the event. */
  path?: string[] | undefined;
  ts?: string | undefined;
  data: {
    status: "success" | "interrupted" | "cancelled" | "error";
    stop_reason: string;
    usage: Usage;
    message_id?: string | undefined;
    /** What the agent answered, as its `output_schema` has it. */
    output?: Record<string, unknown> | undefined;
    /** With `status: error`: the limit at which the run ended. */
    details?: LimitDetails | undefined;
    /** How the run ended, in a sentence for people. Absent: it ended in the ordinary way. */
    message?: string | undefined;
  };
};

export type Parent = {
  thread_id: string;
  run_id: string;
  call_id: string;
  /** Whether it continues after the parent's run. */
  background: boolean;
  /** Only for a branch: the id of the message that the parent's run replaced. The branch contains it and all later ones. */
  replaced?: string | undefined;
};

export type ForkedFrom = {
  thread_id: string;
  /** The last message that was copied. Absent: the thread was empty. */
  message_id?: string | undefined;
};

export type Thread = {
  id: string;
  /** The agent of its newest run. */
  agent?: string | undefined;
  title?: string | undefined;
  metadata: Record<string, string | number | boolean>;
  /** The call of the parent's run that it works for. */
  parent?: Parent | undefined;
  /** What it began as a copy of. That thread may have changed, or be deleted. */
  forked_from?: ForkedFrom | undefined;
  /** The phase of its newest run. */
  status: "idle" | "busy" | "interrupted" | "error";
  message_count: number;
  created_at: string;
  updated_at: string;
};

export type Run = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Grows with each take-over after a crash. */
  attempt: number;
  /** The interrupted run that it resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit at which the run ended. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
};

export type FoundThread = {
  id: string;
  /** The agent of its newest run. */
  agent?: string | undefined;
  title?: string | undefined;
  metadata: Record<string, string | number | boolean>;
  /** The call of the parent's run that it works for. */
  parent?: Parent | undefined;
  /** What it began as a copy of. That thread may have changed, or be deleted. */
  forked_from?: ForkedFrom | undefined;
  /** The phase of its newest run. */
  status: "idle" | "busy" | "interrupted" | "error";
  message_count: number;
  created_at: string;
  updated_at: string;
  /** The newest message that has the text. Absent when only the title has it. */
  match?: {
    message_id: string;
    /** Up to 160 characters. */
    text: string;
  } | undefined;
};

export type Phase = {
  name: "idle" | "processing" | "calling_model" | "executing_tool" | "waiting_for_subagent" | "waiting_for_permission" | "waiting_for_answer" | "waiting_for_tool";
  /** The tools or subagents. */
  of?: string[] | undefined;
};

export type RunNow = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Grows with each take-over after a crash. */
  attempt: number;
  /** The interrupted run that it resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit at which the run ended. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
  /** What the run is doing, until it has ended. */
  phase?: Phase | undefined;
  /** The answer of a run with an `output_schema`, while its events are kept. */
  output?: Record<string, unknown> | undefined;
};

export type FinishedRun = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Grows with each take-over after a crash. */
  attempt: number;
  /** The interrupted run that it resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit at which the run ended. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
  /** The messages that the run added to the thread, its input included. */
  messages: Message[];
  /** The answer of a run with an `output_schema`, while its events are kept. */
  output?: Record<string, unknown> | undefined;
};

export type ThreadState = {
  thread_id: string;
  messages: Message[];
  todos?: unknown;
  files?: unknown;
  /** The phase of its newest run. */
  status: "idle" | "busy" | "interrupted" | "error";
  /** Grows with every message. */
  version: number;
  [key: string]: unknown;
};

export type OpenInterrupt = {
  id: string;
  /** May the call run? · What is the user's answer? · The front end executes the call. */
  kind: "approval" | "question" | "tool";
  call_id: string;
  run_id: string;
  /** The tool. */
  name: string;
  args: Record<string, unknown>;
  /** The question, for a person. */
  prompt: string;
  /** The options. */
  options?: string[] | undefined;
  /** The answer must be one of `options`, word for word. Absent: any text is an answer. */
  one_of_options?: true | undefined;
  /** Values that `remember_as` may have when you answer this approval. Default: `call` only. */
  remember_options?: RememberOption[] | undefined;
  created_at: string;
  /** When it is decided automatically. */
  expires_at?: string | undefined;
  /** The subagent, its thread, and the id of the interrupt there. */
  asked_by?: {
    agent: string;
    name: string;
    thread_id: string;
    id: string;
  } | undefined;
  thread_id: string;
};

export type UsageReport = {
  /** By day, agent and model, newest day first. */
  items: Array<{
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** In millionths of the currency of the server's prices. */
    cost: number;
    /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
    cache_hit_ratio?: number | undefined;
    /** Model calls. */
    calls: number;
    day: string;
    agent: string;
    model: string;
  }>;
  totals: {
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** In millionths of the currency of the server's prices. */
    cost: number;
    /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
    cache_hit_ratio?: number | undefined;
    /** Model calls. */
    calls: number;
  };
  /** Of a tenant: the 256 users who cost most, dearest first. Without `user`, last: the rest, and who came after the first 256 users of a day. */
  users?: Array<{
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** In millionths of the currency of the server's prices. */
    cost: number;
    /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
    cache_hit_ratio?: number | undefined;
    /** Model calls. */
    calls: number;
    user?: string | undefined;
  }> | undefined;
  /** In units of the limit; `cost_per_day` and `cost_per_month` in millionths. */
  limits: Array<{
    limit: "requests_per_minute" | "concurrent_runs" | "threads" | "streams" | "stored_bytes" | "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month";
    /** Whether it applies to the tenant or to the user. */
    of: "tenant" | "user";
    most: number;
    used: number;
    left: number;
    resets_at?: string | undefined;
    /** Of money: in units of the currency, as in the settings and in the details of refusals. */
    in_units?: {
      most: number;
      used: number;
      left: number;
    } | undefined;
  }>;
  /** The currency of costs and of limits on them, if the settings name one. */
  currency?: string | undefined;
};

export type User = {
  tenant: string;
  user: string;
  /** The last change of one of the user's threads. */
  updated_at: string;
};

export type Sandbox = {
  id: string;
  tenant: string;
  user: string;
  /** The backend's name. */
  name: string;
  /** The engine with its files; `default` where the settings name none. */
  engine: string;
  /** `removed`: the container; the files exist. */
  state: "running" | "ending" | "stopped" | "removed";
  used_at: string;
};

export type TenantUsage = {
  tenant: string;
  user?: string | undefined;
  totals: {
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** In millionths of the currency of the server's prices. */
    cost: number;
    /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
    cache_hit_ratio?: number | undefined;
    /** Model calls. */
    calls: number;
  };
  /** In units of the limit; `cost_per_day` and `cost_per_month` in millionths. */
  limits: Array<{
    limit: "requests_per_minute" | "concurrent_runs" | "threads" | "streams" | "stored_bytes" | "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month";
    /** Whether it applies to the tenant or to the user. */
    of: "tenant" | "user";
    most: number;
    used: number;
    left: number;
    resets_at?: string | undefined;
    /** Of money: in units of the currency, as in the settings and in the details of refusals. */
    in_units?: {
      most: number;
      used: number;
      left: number;
    } | undefined;
  }>;
  /** The currency of costs and of limits on them, if the settings name one. */
  currency?: string | undefined;
  /** Of a tenant: as in `GET /usage`. */
  users?: Array<{
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** In millionths of the currency of the server's prices. */
    cost: number;
    /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
    cache_hit_ratio?: number | undefined;
    /** Model calls. */
    calls: number;
    user?: string | undefined;
  }> | undefined;
};

export type ApiKey = {
  id: string;
  tenant: string;
  user: string;
  scopes: Array<"run" | "read" | "tools" | "admin" | "operator">;
  /** What it is for. */
  name: string;
  created_at: string;
  expires_at?: string | undefined;
  revoked_at?: string | undefined;
};

export type IssuedApiKey = {
  id: string;
  tenant: string;
  user: string;
  scopes: Array<"run" | "read" | "tools" | "admin" | "operator">;
  /** What it is for. */
  name: string;
  created_at: string;
  expires_at?: string | undefined;
  revoked_at?: string | undefined;
  /** Shown in this answer alone: the server keeps only its hash. */
  key: string;
};

export type ThreadUsage = {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  /** In millionths. Absent when the models have no price. */
  cost?: number | undefined;
  /** Some of it is an estimate: a provider reported nothing, or an answer ended early. */
  estimated?: true | undefined;
  /** Fraction of the input (0–1) that the provider read from its cache. In the usage of runs and threads, if they have input. */
  cache_hit_ratio?: number | undefined;
  /** The number of runs: the newest 10000 at most. */
  runs: number;
};

/** What this request has deleted. */
export type DeletedUser = {
  /** False: more is left than one request deletes, or in use. Repeat it. */
  complete: boolean;
  runs_cancelled: number;
  threads: number;
  /** What agents keep for the user: overrides, permission rules, reflections. */
  items: number;
  /** With their files; of Docker backends the sandboxes and volumes. */
  workspaces: number;
  keys: number;
};

export type Backup = {
  /** On the server's machine. */
  path: string;
  files: number;
  bytes: number;
  /** Sandboxes whose files are in volumes of a Docker engine: they are not in the backup. */
  workspaces_left_out: number;
};

export type ForgottenEngine = {
  /** Sandboxes whose files were there. */
  lost: number;
  /** Those that were being moved: they continue with what the other engine has of their files. */
  kept: number;
};

export type Agent = {
  name: string;
  description?: string | undefined;
  /** An icon to show before its name. */
  prefix?: string | undefined;
  /** What to offer a person to ask first. */
  suggestions?: string[] | undefined;
  /** Whether it handles runs that name no agent. */
  default: boolean;
  model: string;
  /** Names of the tools in your runs; subagents also have `task_complete`. */
  tools: string[];
  /** In order, first outermost. */
  hooks: string[];
  /** The type of backend that its files and commands live in. */
  backend?: string | undefined;
  context_window: number;
  max_iterations: number;
};

export type AgentOverrides = {
  /** By name: on, off, or options in place of single ones of the configuration. */
  hooks?: Record<string, boolean | Record<string, unknown>> | undefined;
  /** Replaces the configuration, field by field. */
  skills?: {
    paths?: string[] | undefined;
    include?: string[] | undefined;
    exclude?: string[] | undefined;
  } | undefined;
  /** `provider:model` in place of the agent's own. */
  model?: string | undefined;
  /** Overrides that no longer fit the agent, with what would fit. */
  ignored: Array<{
    path: string;
    message: string;
  }>;
  /** The hooks that may be changed: switched off, switched off and on, or given options as well. */
  changeable: Record<string, "disable" | "switch" | "configure">;
};

export type AgentDetails = {
  name: string;
  description?: string | undefined;
  /** An icon to show before its name. */
  prefix?: string | undefined;
  /** What to offer a person to ask first. */
  suggestions?: string[] | undefined;
  /** Whether it handles runs that name no agent. */
  default: boolean;
  model: string;
  /** Names of the tools in your runs; subagents also have `task_complete`. */
  tools: string[];
  /** In order, first outermost. */
  hooks: string[];
  /** The type of backend that its files and commands live in. */
  backend?: string | undefined;
  context_window: number;
  max_iterations: number;
  /** What you may change with your overrides. */
  choices: {
    /** In their order, first outermost. */
    hooks: Array<{
      name: string;
      may: "disable" | "switch" | "configure";
      /** Whether your runs have it. */
      active: boolean;
      /** JSON Schema of its options, if you may `configure` it. */
      schema?: Record<string, unknown> | undefined;
      /** The options that you or the configuration set; the schema has the default of every other one. */
      options?: Record<string, unknown> | undefined;
    }>;
    /** The models that your runs and overrides may name. */
    models: {
      /** Whether every model may be named that the server has a key for; `names` are those that it knows of. */
      any: boolean;
      /** As `provider:model`, the agent's own first; at most 200. */
      names: string[];
      /** Globs of further models that may be named, such as `openai:gpt-5*`; at most 200. */
      patterns: string[];
    };
  };
};

export type AgentTool = {
  name: string;
  /** As the model reads it. */
  description: string;
  /** JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
  /** Whether it changes nothing. */
  read_only: boolean;
};

export type PromptBlock = {
  id: string;
  text: string;
};

export type BackendStatus = {
  name: string;
  type: string;
  status: "stopped" | "starting" | "running" | "error";
  workdir: string;
  error?: string | undefined;
};

export type FileEntry = {
  name: string;
  /** From the root of the sandbox. The routes take it, and paths relative to the workspace. */
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  /** Bytes. */
  size: number;
  modified_at: string;
};

export type UserEvent = {
  event: "backend_status";
  data: BackendStatus;
} | {
  event: "run_started";
  data: {
    thread_id: string;
    run_id: string;
    agent: string;
  };
} | {
  event: "run_ended";
  data: {
    thread_id: string;
    run_id: string;
    agent: string;
    status: "success" | "interrupted" | "cancelled" | "error";
  };
} | {
  event: "interrupt_opened";
  data: {
    thread_id: string;
    run_id: string;
    agent: string;
    id: string;
    /** May the call run? · What is the user's answer? · The front end executes the call. */
    kind: "approval" | "question" | "tool";
    /** The tool. */
    name: string;
  };
} | {
  event: "interrupt_closed";
  data: {
    thread_id: string;
    run_id: string;
    agent: string;
    id: string;
  };
} | {
  event: "thread_changed";
  data: {
    thread_id: string;
    change: "created" | "updated" | "cleared" | "deleted";
  };
} | {
  event: "config_changed";
  data: Record<string, never>;
};

export type Feedback = {
  message_id: string;
  rating: "up" | "down";
  /** Why, in the user's words. */
  comment?: string | undefined;
  updated_at: string;
};

export type DependencyStatus = {
  name: string;
  status: "up" | "down";
  /** When it was found as it is now. */
  since: string;
  checked_at: string;
  error?: string | undefined;
};

export type Me = {
  tenant: string;
  user: string;
  scopes: Array<"run" | "read" | "tools" | "admin" | "operator">;
  /** How the server learns who is asking. */
  auth: "none" | "api_key" | "jwt" | "header" | "plugin";
  /** When the credentials expire. */
  expires_at?: string | undefined;
  /** The protocols of stock front ends that are on. */
  wires: Array<"ai-sdk" | "openai" | "langgraph" | "ag-ui" | "mcp" | "a2a">;
  /** Of the server. */
  version: string;
  /** Of costs, if the settings name one. */
  currency?: string | undefined;
};

export type Ticket = {
  /** For `?ticket=`. */
  ticket: string;
  expires_at: string;
};

export type RememberedRule = {
  id: string;
  decision: "allow" | "deny" | "ask";
  /** A call matches if all conditions hold. */
  matcher: Record<string, unknown>;
  priority?: number | undefined;
  message?: string | undefined;
  description?: string | undefined;
};

export type SentRequest = {
  /** Of the run's own model calls, from 1. */
  number: number;
  /** Of the answer. */
  message_id: string;
  sent_at: string;
  model: string;
  /** Those of the run, in place of the model's own. */
  settings: {
    /** Sampling temperature. Anthropic takes at most 1. */
    temperature?: number | undefined;
    /** Maximum tokens of one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own. */
    max_tokens?: number | undefined;
    /** Maximum tokens for thinking. */
    thinking?: number | undefined;
    /** `auto`: the model decides whether to call tools. `none`: it calls none. `required`: it calls at least one. `name`: it calls this tool. A forced call is required only until a tool was called since the user's last message. */
    tool_choice?: "auto" | "none" | "required" | {
      name: string;
    } | undefined;
  };
  /** The most tokens of the answer that a budget left. */
  output_limit?: number | undefined;
  /** The blocks of the system prompt, in their order. */
  system: Array<{
    id: string;
    cache: "static" | "semi" | "dynamic";
    /** Absent when it had no room. */
    text?: string | undefined;
  }>;
  tools: Array<{
    name: string;
    /** Absent when it had no room. */
    description?: string | undefined;
    /** Absent when it had no room. */
    parameters?: Record<string, unknown> | undefined;
  }>;
  /** Oldest first; the newest 1000. */
  messages: Array<{
    id: string;
    role: "system" | "user" | "assistant" | "tool";
    /** Whether it was sent as the thread had it then. */
    in_thread: boolean;
    /** As it was sent, where that is not as in the thread. Absent when it had no room. */
    message?: Message | undefined;
  }>;
  /** Whether nothing was left out. */
  is_whole: boolean;
};

export type Span = {
  id: string;
  /** The enclosing span. Absent for the run itself. */
  parent_id?: string | undefined;
  name: "run" | "llm.call" | "tool.call" | "subagent";
  started_at: string;
  /** Absent while the span is open. */
  duration_ms?: number | undefined;
  model?: string | undefined;
  agent?: string | undefined;
  tool?: string | undefined;
  call_id?: string | undefined;
  /** Id of the message that the model call wrote. Absent if it wrote none. */
  message_id?: string | undefined;
  /** Of a model call: which one of the run's own it is, from 1. */
  number?: number | undefined;
  /** Messages that the model was sent. */
  message_count?: number | undefined;
  /** Characters of the model's text. */
  content_length?: number | undefined;
  tool_calls_count?: number | undefined;
  /** The tools that the model called. */
  tool_names?: string[] | undefined;
  /** The first 500 characters. */
  args?: string | undefined;
  /** The first 500 characters. */
  output?: string | undefined;
  status?: string | undefined;
  stop_reason?: string | undefined;
  usage?: Usage | undefined;
  /** Of a model call, in millionths. Absent when its model has no price. */
  cost?: number | undefined;
  /** From the request to the model's first delta. */
  first_token_ms?: number | undefined;
  error?: {
    code?: string | undefined;
    message: string;
    details?: Record<string, unknown> | undefined;
  } | undefined;
};

export type Trace = {
  /** In the order in which they started; the first 2000. */
  spans: Span[];
  /** Whether these are all spans so far. */
  is_whole: boolean;
};

export type Share = {
  id: string;
  created_at: string;
  expires_at: string;
};

export type SharedThread = {
  /** Who has shared it. */
  user: string;
  thread_id: string;
  title?: string | undefined;
  /** The agent of its newest run. */
  agent?: string | undefined;
  updated_at: string;
};

export type HttpTool = {
  name: string;
  /** The model reads it. */
  description: string;
  /** JSON Schema (2020-12) of the arguments; `type` is `object`. */
  parameters: Record<string, unknown>;
  /** Without its query. */
  callback_url: string;
  /** For one call, including retries. */
  timeout_ms: number;
  /** A second execution with the same Idempotency-Key does no harm: the call may be repeated. */
  idempotent: boolean;
  /** For the permissions of agents. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` count. */
  annotations: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  };
  /** Agents that may use it: names and globs. */
  agents: string[];
  header_names: string[];
  created_at: string;
};

export type RegisteredHttpTool = {
  name: string;
  /** The model reads it. */
  description: string;
  /** JSON Schema (2020-12) of the arguments; `type` is `object`. */
  parameters: Record<string, unknown>;
  /** Without its query. */
  callback_url: string;
  /** For one call, including retries. */
  timeout_ms: number;
  /** A second execution with the same Idempotency-Key does no harm: the call may be repeated. */
  idempotent: boolean;
  /** For the permissions of agents. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` count. */
  annotations: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  };
  /** Agents that may use it: names and globs. */
  agents: string[];
  header_names: string[];
  created_at: string;
  /** Verifies the signatures of calls. Shown only once. */
  secret: string;
};

export type TriedTool = {
  /** As a model would read it. */
  output: string | Part[];
  /** Present only when the call failed. */
  error?: string | undefined;
  duration_ms: number;
};

export type UserRun = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Grows with each take-over after a crash. */
  attempt: number;
  /** The interrupted run that it resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit at which the run ended. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
  tenant: string;
  user: string;
};

export type UserInterrupt = {
  id: string;
  /** May the call run? · What is the user's answer? · The front end executes the call. */
  kind: "approval" | "question" | "tool";
  call_id: string;
  run_id: string;
  /** The tool. */
  name: string;
  args: Record<string, unknown>;
  /** The question, for a person. */
  prompt: string;
  /** The options. */
  options?: string[] | undefined;
  /** The answer must be one of `options`, word for word. Absent: any text is an answer. */
  one_of_options?: true | undefined;
  /** Values that `remember_as` may have when you answer this approval. Default: `call` only. */
  remember_options?: RememberOption[] | undefined;
  created_at: string;
  /** When it is decided automatically. */
  expires_at?: string | undefined;
  /** The subagent, its thread, and the id of the interrupt there. */
  asked_by?: {
    agent: string;
    name: string;
    thread_id: string;
    id: string;
  } | undefined;
  thread_id: string;
  tenant: string;
  user: string;
};

export type Answer = {
  /** Id of the interrupt. */
  id: string;
  decision: "approve" | "deny" | "edit" | "respond";
  /** With `edit`: the new arguments. */
  args?: Record<string, unknown> | undefined;
  /** With `deny`: why, for the model. With `respond`: the answer, in place of the call's result. */
  message?: string | undefined;
  /** Apply this decision from now on: in this thread, or in all of this user's threads with the agent. */
  remember?: "session" | "agent" | undefined;
  /** With `remember`: to the very same call (default), to commands that begin as its interrupt says, or to every call of the tool. */
  remember_as?: "call" | "command" | "tool" | undefined;
};

export type ClientTool = {
  name: string;
  /** The model reads it. */
  description: string;
  /** JSON Schema (2020-12) of the arguments; `type` is `object`. */
  parameters: Record<string, unknown>;
};

/** Merged into your overrides (RFC 7396); null removes one. */
export type OverridesPatch = {
  hooks?: Record<string, boolean | Record<string, unknown> | null> | null | undefined;
  skills?: {
    paths?: string[] | null | undefined;
    include?: string[] | null | undefined;
    exclude?: string[] | null | undefined;
  } | null | undefined;
  model?: string | null | undefined;
};

export type InputMessage = {
  role: "user" | "system";
  content: string | Part[];
};

export type GivenCall = {
  /** A tool of the agent, or one that the run brings. */
  name: string;
  /** Default: `{}`. */
  args?: Record<string, unknown> | undefined;
};

export type StartRun = {
  /** Default: the thread's agent, else the first one configured. */
  agent?: string | undefined;
  /** Short for one user message. */
  input?: string | undefined;
  messages?: InputMessage[] | undefined;
  /** Instead of a message: the model continues the thread's last answer, which was cut off (`incomplete`), or answers a thread that ends with a message of a user or the result of a call. */
  continue?: true | undefined;
  /** The run executes these calls first, as if its model had made them, and then asks the model. Alone, or after the messages. */
  calls?: GivenCall[] | undefined;
  /** `provider:model` instead of the agent's own. */
  model?: string | undefined;
  /** Sampling temperature. Anthropic takes at most 1. */
  temperature?: number | undefined;
  /** Maximum tokens of one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own. */
  max_tokens?: number | undefined;
  /** Maximum tokens for thinking. */
  thinking?: number | undefined;
  /** `auto`: the model decides whether to call tools. `none`: it calls none. `required`: it calls at least one. `name`: it calls this tool. A forced call is required only until a tool was called since the user's last message. */
  tool_choice?: "auto" | "none" | "required" | {
    name: string;
  } | undefined;
  /** JSON Schema (2020-12) of an object: the final answer is JSON of it, which `done` and the run have as `output`. Default: the agent's own. */
  output_schema?: Record<string, unknown> | undefined;
  /** Tools that the client executes: a call interrupts the run, and `resume` brings its result. */
  tools?: ClientTool[] | undefined;
  /** Default: `{}`. */
  metadata?: Record<string, string | number | boolean> | undefined;
  /** The id of a user message: the run replaces it and all later messages, which are kept as a branch. */
  replaces?: string | undefined;
  /** If the thread has an active run: answer 409, wait for it, or cancel it and start next. Default: `"reject"`. */
  on_busy?: "reject" | "enqueue" | "interrupt" | undefined;
  /** What happens to the run if the client disconnects early. Default: `"continue"`. */
  on_disconnect?: "continue" | "cancel" | undefined;
  /** Answer 202 at once; follow the run's events at `Location`. Default: `false`. */
  background?: boolean | undefined;
};

export type ResumeRun = {
  /** Answers to some or all open interrupts. */
  answers: Answer[];
  /** Tools that the client executes: a call interrupts the run, and `resume` brings its result. */
  tools?: ClientTool[] | undefined;
  /** What happens to the run if the client disconnects early. Default: `"continue"`. */
  on_disconnect?: "continue" | "cancel" | undefined;
  /** Answer 202 at once; follow the run's events at `Location`. Default: `false`. */
  background?: boolean | undefined;
};

export type NewTicket = {
  path: string;
};

export type HttpToolRegistration = {
  name: string;
  /** The model reads it. */
  description: string;
  /** JSON Schema (2020-12) of the arguments; `type` is `object`. */
  parameters: Record<string, unknown>;
  /** Where each call is POSTed to. */
  callback_url: string;
  /** Sent with each call; never shown again. Default: `{}`. */
  headers?: Record<string, string> | undefined;
  /** For one call, including retries. Default: `30000`. */
  timeout_ms?: number | undefined;
  /** A second execution with the same Idempotency-Key does no harm: the call may be repeated. Default: `false`. */
  idempotent?: boolean | undefined;
  /** For the permissions of agents. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` count. Default: `{}`. */
  annotations?: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  } | undefined;
  /** Agents that may use it: names and globs. Default: `["*"]`. */
  agents?: string[] | undefined;
};

export type HttpToolChange = {
  /** The model reads it. */
  description?: string | undefined;
  /** JSON Schema (2020-12) of the arguments; `type` is `object`. */
  parameters?: Record<string, unknown> | undefined;
  /** Where each call is POSTed to. */
  callback_url?: string | undefined;
  /** Merged into those that it has; null removes one. */
  headers?: Record<string, string | null> | undefined;
  timeout_ms?: number | undefined;
  idempotent?: boolean | undefined;
  /** For the permissions of agents. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` count. */
  annotations?: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  } | undefined;
  agents?: string[] | undefined;
};

/** `{result}` or `{error}`, as in the answer to a call. */
export type ToolResult = Record<string, unknown>;

/** By method and path: what is sent and what comes back. */
export interface Operations {
  /** Check liveness. */
  "GET /health": {
    answer: {
      status: "ok";
      version: string;
      agents: number;
    };
  };
  /** Check readiness: the server reaches its store and backends. */
  "GET /ready": {
    query: { verbose?: string | undefined };
    answer: {
      status: "ready";
      dependencies?: DependencyStatus[] | undefined;
    };
  };
  /** Get your tenant, user and scopes. */
  "GET /me": {
    answer: Me;
  };
  /** List all agents. */
  "GET /agents": {
    answer: {
      items: Agent[];
    };
  };
  /** Get an agent, and the settings that you may change. */
  "GET /agents/{name}": {
    path: { name: string };
    answer: AgentDetails;
  };
  /** List the tools that the model of an agent gets in your runs, by name. */
  "GET /agents/{name}/tools": {
    path: { name: string };
    answer: {
      items: AgentTool[];
    };
  };
  /** Get the configured system prompt of an agent. */
  "GET /agents/{name}/prompt": {
    path: { name: string };
    answer: {
      items: PromptBlock[];
    };
  };
  /** Get your overrides of an agent. */
  "GET /agents/{name}/overrides": {
    path: { name: string };
    answer: AgentOverrides;
  };
  /** Change your overrides of an agent: hooks, skills, model. */
  "PATCH /agents/{name}/overrides": {
    path: { name: string };
    body: OverridesPatch;
    answer: AgentOverrides;
  };
  /** Remove all your overrides of an agent. */
  "DELETE /agents/{name}/overrides": {
    path: { name: string };
    answer: void;
  };
  /** Create a thread. */
  "POST /threads": {
    body: {
      id?: string | undefined;
      /** Absent: the first words with which a run starts. Empty: none, and none is made. */
      title?: string | undefined;
      /** Default: `{}`. */
      metadata?: Record<string, string | number | boolean> | undefined;
    };
    answer: Thread;
  };
  /** List threads, last changed first. */
  "GET /threads": {
    query: { limit?: number | undefined; cursor?: string | undefined; agent?: string | undefined; status?: "idle" | "busy" | "interrupted" | "error" | undefined; since?: string | undefined; q?: string | undefined; in?: "title" | "messages" | undefined; parent?: string | undefined; children?: "true" | undefined };
    answer: {
      items: FoundThread[];
      next_cursor?: string | undefined;
    };
  };
  /** Get a thread. */
  "GET /threads/{thread_id}": {
    path: { thread_id: string };
    answer: Thread;
  };
  /** Rename or annotate a thread. */
  "PATCH /threads/{thread_id}": {
    path: { thread_id: string };
    body: {
      /** Empty: none, and none is made. */
      title?: string | undefined;
      metadata?: Record<string, string | number | boolean> | undefined;
    };
    answer: Thread;
  };
  /** Delete a thread with all its runs, and its subagents' threads. */
  "DELETE /threads/{thread_id}": {
    path: { thread_id: string };
    answer: void;
  };
  /** List the messages of a thread, oldest first. */
  "GET /threads/{thread_id}/messages": {
    path: { thread_id: string };
    query: { limit?: number | undefined; after?: string | undefined };
    answer: {
      items: Message[];
      next_cursor?: string | undefined;
    };
  };
  /** Delete messages, state and the subagents' threads; keep the thread. */
  "DELETE /threads/{thread_id}/messages": {
    path: { thread_id: string };
    answer: void;
  };
  /** Get the state of a thread: messages, todos, files, status. */
  "GET /threads/{thread_id}/state": {
    path: { thread_id: string };
    answer: ThreadState;
  };
  /** Fork a thread: create one with its messages up to a message. */
  "POST /threads/{thread_id}/fork": {
    path: { thread_id: string };
    body: {
      /** The last message to copy. Default: all. */
      message_id?: string | undefined;
      id?: string | undefined;
      /** Default: that of the thread. */
      title?: string | undefined;
    };
    answer: Thread;
  };
  /** Generate a title for a thread. */
  "POST /threads/{thread_id}/title": {
    path: { thread_id: string };
    body: Record<string, never>;
    answer: Thread;
  };
  /** Get the usage of a thread's runs. */
  "GET /threads/{thread_id}/usage": {
    path: { thread_id: string };
    answer: ThreadUsage;
  };
  /** List the branches of a thread, newest first. */
  "GET /threads/{thread_id}/branches": {
    path: { thread_id: string };
    answer: {
      items: Thread[];
    };
  };
  /** Restore a branch; the messages that it replaces become a branch. */
  "POST /threads/{thread_id}/branches/{branch_id}/restore": {
    path: { thread_id: string; branch_id: string };
    answer: Run;
  };
  /** Share a thread with the users of the tenant, to read. */
  "POST /threads/{thread_id}/shares": {
    path: { thread_id: string };
    body: {
      /** In seconds. Default: a week. Default: `604800`. */
      expires_in?: number | undefined;
    };
    answer: Share;
  };
  /** List the active shares of a thread, newest first. */
  "GET /threads/{thread_id}/shares": {
    path: { thread_id: string };
    answer: {
      items: Share[];
    };
  };
  /** End a share. */
  "DELETE /threads/{thread_id}/shares/{share_id}": {
    path: { thread_id: string; share_id: string };
    answer: void;
  };
  /** Get a thread that another user of the tenant shares. */
  "GET /shared/{user}/{thread_id}/{share_id}": {
    path: { user: string; thread_id: string; share_id: string };
    answer: SharedThread;
  };
  /** List the messages of a shared thread, oldest first. */
  "GET /shared/{user}/{thread_id}/{share_id}/messages": {
    path: { user: string; thread_id: string; share_id: string };
    query: { limit?: number | undefined; after?: string | undefined };
    answer: {
      items: Message[];
      next_cursor?: string | undefined;
    };
  };
  /** Rate an answer, with an optional comment. */
  "PUT /threads/{thread_id}/messages/{message_id}/feedback": {
    path: { thread_id: string; message_id: string };
    body: {
      rating: "up" | "down";
      /** Why, in the user's words. */
      comment?: string | undefined;
    };
    answer: Feedback;
  };
  /** Remove a rating. */
  "DELETE /threads/{thread_id}/messages/{message_id}/feedback": {
    path: { thread_id: string; message_id: string };
    answer: void;
  };
  /** List the rated answers of a thread, last changed first. */
  "GET /threads/{thread_id}/feedback": {
    path: { thread_id: string };
    answer: {
      items: Feedback[];
    };
  };
  /** Follow a thread across its runs. */
  "GET /threads/{thread_id}/events": {
    path: { thread_id: string };
    query: { after?: string | undefined };
    answer: void;
  };
  /** Start a run and follow it. */
  "POST /threads/{thread_id}/runs": {
    path: { thread_id: string };
    body: StartRun;
    answer: FinishedRun | Run;
  };
  /** List the runs of a thread, newest first. */
  "GET /threads/{thread_id}/runs": {
    path: { thread_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: Run[];
      next_cursor?: string | undefined;
    };
  };
  /** List the runs of all your threads, newest first. */
  "GET /runs": {
    query: { limit?: number | undefined; cursor?: string | undefined; agent?: string | undefined; status?: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error" | undefined; since?: string | undefined };
    answer: {
      items: Run[];
      next_cursor?: string | undefined;
    };
  };
  /** Get a run. */
  "GET /threads/{thread_id}/runs/{run_id}": {
    path: { thread_id: string; run_id: string };
    answer: RunNow;
  };
  /** Follow a run. */
  "GET /threads/{thread_id}/runs/{run_id}/events": {
    path: { thread_id: string; run_id: string };
    query: { after?: string | undefined };
    answer: void;
  };
  /** Get the trace of a run: its model calls, tool calls and subagents as spans. */
  "GET /threads/{thread_id}/runs/{run_id}/trace": {
    path: { thread_id: string; run_id: string };
    answer: Trace;
  };
  /** Get the request that a model received in a model call of a run. */
  "GET /threads/{thread_id}/runs/{run_id}/requests/{n}": {
    path: { thread_id: string; run_id: string; n: number };
    answer: SentRequest;
  };
  /** Stop a run: now (`cancel`), or after its current step (`interrupt`). */
  "POST /threads/{thread_id}/runs/{run_id}/cancel": {
    path: { thread_id: string; run_id: string };
    body: {
      /** Default: `"cancel"`. */
      mode?: "cancel" | "interrupt" | undefined;
    };
    answer: Run;
  };
  /** Steer an active run: add a user message for its next model call. */
  "POST /threads/{thread_id}/runs/{run_id}/messages": {
    path: { thread_id: string; run_id: string };
    body: {
      input: string;
    } | {
      content: string | Part[];
    };
    answer: {
      message_id: string;
    };
  };
  /** List the open interrupts of a thread. */
  "GET /threads/{thread_id}/interrupts": {
    path: { thread_id: string };
    answer: {
      items: Interrupt[];
    };
  };
  /** List the open interrupts of all the user's threads. */
  "GET /interrupts": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: OpenInterrupt[];
      next_cursor?: string | undefined;
    };
  };
  /** Answer an interrupted run and continue it. */
  "POST /threads/{thread_id}/runs/{run_id}/resume": {
    path: { thread_id: string; run_id: string };
    body: ResumeRun;
    answer: FinishedRun | Run;
  };
  /** List the permission rules of a thread. */
  "GET /threads/{thread_id}/permissions": {
    path: { thread_id: string };
    answer: {
      items: RememberedRule[];
    };
  };
  /** Add or replace a permission rule of a thread. */
  "POST /threads/{thread_id}/permissions": {
    path: { thread_id: string };
    body: {
      /** Name of a tool, or a glob of names. */
      allow?: string | undefined;
      /** Name of a tool, or a glob of names. */
      deny?: string | undefined;
      /** Name of a tool, or a glob of names. */
      ask?: string | undefined;
      /** Category of the tool. */
      category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
      /** Words with which a command begins, one of a list. */
      command_prefix?: string[] | undefined;
      /** Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part. */
      regex?: string | undefined;
      /** Exact arguments of the call. */
      arguments?: Record<string, unknown> | undefined;
      /** A rule with the same id is replaced. Default: derived from the conditions. */
      id?: string | undefined;
      /** Priority within the scope; the highest comes first. Default: `0`. */
      priority?: number | undefined;
      /** Text for the model when the rule denies, or for the person when it asks. */
      message?: string | undefined;
      /** Note for people who read the rule. */
      description?: string | undefined;
      /** Long form, with `matcher`, which replaces `allow`, `deny` and `ask`. */
      decision?: "allow" | "deny" | "ask" | undefined;
      /** Conditions of the long form. */
      matcher?: {
        /** Name of a tool, or a glob of names. */
        tool?: string | undefined;
        /** Category of the tool. */
        category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
        /** Words with which a command begins, one of a list. */
        command_prefix?: string[] | undefined;
        /** Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part. */
        regex?: string | undefined;
        /** Exact arguments of the call. */
        arguments?: Record<string, unknown> | undefined;
        /** Matches every call. */
        all?: true | undefined;
      } | undefined;
    };
    answer: RememberedRule;
  };
  /** Delete all rules of a thread. */
  "DELETE /threads/{thread_id}/permissions": {
    path: { thread_id: string };
    answer: void;
  };
  /** Delete a rule of a thread. */
  "DELETE /threads/{thread_id}/permissions/{id}": {
    path: { thread_id: string; id: string };
    answer: void;
  };
  /** List your rules for an agent. */
  "GET /agents/{name}/permissions": {
    path: { name: string };
    answer: {
      items: RememberedRule[];
    };
  };
  /** Add or replace one of your rules for an agent. */
  "POST /agents/{name}/permissions": {
    path: { name: string };
    body: {
      /** Name of a tool, or a glob of names. */
      allow?: string | undefined;
      /** Name of a tool, or a glob of names. */
      deny?: string | undefined;
      /** Name of a tool, or a glob of names. */
      ask?: string | undefined;
      /** Category of the tool. */
      category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
      /** Words with which a command begins, one of a list. */
      command_prefix?: string[] | undefined;
      /** Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part. */
      regex?: string | undefined;
      /** Exact arguments of the call. */
      arguments?: Record<string, unknown> | undefined;
      /** A rule with the same id is replaced. Default: derived from the conditions. */
      id?: string | undefined;
      /** Priority within the scope; the highest comes first. Default: `0`. */
      priority?: number | undefined;
      /** Text for the model when the rule denies, or for the person when it asks. */
      message?: string | undefined;
      /** Note for people who read the rule. */
      description?: string | undefined;
      /** Long form, with `matcher`, which replaces `allow`, `deny` and `ask`. */
      decision?: "allow" | "deny" | "ask" | undefined;
      /** Conditions of the long form. */
      matcher?: {
        /** Name of a tool, or a glob of names. */
        tool?: string | undefined;
        /** Category of the tool. */
        category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
        /** Words with which a command begins, one of a list. */
        command_prefix?: string[] | undefined;
        /** Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part. */
        regex?: string | undefined;
        /** Exact arguments of the call. */
        arguments?: Record<string, unknown> | undefined;
        /** Matches every call. */
        all?: true | undefined;
      } | undefined;
    };
    answer: RememberedRule;
  };
  /** Delete one of your own rules. */
  "DELETE /agents/{name}/permissions/{id}": {
    path: { name: string; id: string };
    answer: void;
  };
  /** List the tenant's registered tools, by name. */
  "GET /tools": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: HttpTool[];
      next_cursor?: string | undefined;
    };
  };
  /** Register a tool that an HTTP endpoint of the tenant executes. */
  "POST /tools": {
    body: HttpToolRegistration;
    answer: RegisteredHttpTool;
  };
  /** Call a registered tool once, without a run. */
  "POST /tools/{name}/try": {
    path: { name: string };
    body: {
      /** Default: `{}`. */
      args?: Record<string, unknown> | undefined;
    };
    answer: TriedTool;
  };
  /** Change a registered tool, which keeps its secret. */
  "PATCH /tools/{name}": {
    path: { name: string };
    body: HttpToolChange;
    answer: HttpTool;
  };
  /** Remove a tool. */
  "DELETE /tools/{name}": {
    path: { name: string };
    answer: void;
  };
  /** Deliver a deferred tool result. */
  "POST /tool-results/{token}": {
    path: { token: string };
    body: ToolResult;
    answer: void;
  };
  /** Get the status of the user's backend; starts nothing. */
  "GET /backend": {
    query: { agent?: string | undefined };
    answer: BackendStatus;
  };
  /** Start the backend. */
  "POST /backend/start": {
    query: { agent?: string | undefined };
    answer: BackendStatus;
  };
  /** Stop the backend; its files stay. */
  "POST /backend/stop": {
    query: { agent?: string | undefined };
    answer: BackendStatus;
  };
  /** Restart the backend. */
  "POST /backend/restart": {
    query: { agent?: string | undefined };
    answer: BackendStatus;
  };
  /** Follow the changes of the user's threads, runs and backends. */
  "GET /events": {
    answer: void;
  };
  /** Get your usage, or your tenant's, with cost and remaining quotas. */
  "GET /usage": {
    query: { days?: number | undefined; of?: "tenant" | "user" | undefined };
    answer: UsageReport;
  };
  /** List the tenants with threads. */
  "GET /admin/tenants": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: Array<{
        tenant: string;
      }>;
      next_cursor?: string | undefined;
    };
  };
  /** List the users with threads. */
  "GET /admin/users": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined };
    answer: {
      items: User[];
      next_cursor?: string | undefined;
    };
  };
  /** List the runs of all users. */
  "GET /admin/runs": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined; status?: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error" | undefined };
    answer: {
      items: UserRun[];
      next_cursor?: string | undefined;
    };
  };
  /** List the open interrupts of all users. */
  "GET /admin/interrupts": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined };
    answer: {
      items: UserInterrupt[];
      next_cursor?: string | undefined;
    };
  };
  /** List the Docker sandboxes of all users. */
  "GET /admin/sandboxes": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined };
    answer: {
      items: Sandbox[];
      next_cursor?: string | undefined;
    };
  };
  /** Get usage and quotas of tenants, or of a user. */
  "GET /admin/usage": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined; days?: number | undefined };
    answer: {
      items: TenantUsage[];
      next_cursor?: string | undefined;
    };
  };
  /** List the API keys of all users. */
  "GET /admin/keys": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined };
    answer: {
      items: ApiKey[];
      next_cursor?: string | undefined;
    };
  };
  /** Create an API key for a user. */
  "POST /admin/keys": {
    body: {
      /** Default: your tenant. */
      tenant?: string | undefined;
      user: string;
      /** Keys with `admin` or `operator` are made by `skein keys create` alone. Default: `["read","run"]`. */
      scopes?: Array<"run" | "read" | "tools"> | undefined;
      /** What it is for. Default: `""`. */
      name?: string | undefined;
      /** Default: it is valid until it is revoked. */
      expires_at?: string | undefined;
    };
    answer: IssuedApiKey;
  };
  /** Revoke an API key. */
  "POST /admin/keys/{key_id}/revoke": {
    path: { key_id: string };
    answer: ApiKey;
  };
  /** Stop the run of any user. */
  "POST /admin/tenants/{tenant}/users/{user}/threads/{thread_id}/runs/{run_id}/cancel": {
    path: { tenant: string; user: string; thread_id: string; run_id: string };
    body: {
      /** Default: `"cancel"`. */
      mode?: "cancel" | "interrupt" | undefined;
    };
    answer: Run;
  };
  /** Back up the data folder while the server runs. */
  "POST /admin/backup": {
    answer: Backup;
  };
  /** Forget a lost Docker engine and the files on it. */
  "DELETE /admin/engines/{engine}": {
    path: { engine: string };
    answer: ForgottenEngine;
  };
  /** Delete everything of a user. */
  "DELETE /admin/tenants/{tenant}/users/{user}": {
    path: { tenant: string; user: string };
    answer: DeletedUser;
  };
  /** Export everything of a user. */
  "GET /admin/tenants/{tenant}/users/{user}/export": {
    path: { tenant: string; user: string };
    answer: void;
  };
  /** Read a file or a byte range, or list a folder. */
  "GET /backend/files/{path}": {
    path: { path: string };
    query: { agent?: string | undefined };
    answer: {
      items: FileEntry[];
    };
  };
  /** Write a file atomically; the body is its content. */
  "PUT /backend/files/{path}": {
    path: { path: string };
    query: { agent?: string | undefined };
    answer: {
      path: string;
      bytes_written: number;
    };
  };
  /** Delete a file or a folder with its contents. */
  "DELETE /backend/files/{path}": {
    path: { path: string };
    query: { agent?: string | undefined };
    answer: void;
  };
  /** Create a ticket with which a browser opens one stream or file within a minute. */
  "POST /tickets": {
    body: NewTicket;
    answer: Ticket;
  };
  /** Get how a front end signs people in. */
  "GET /sign-in": {
    answer: SignInOptions;
  };
}
