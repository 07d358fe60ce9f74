// The types of the native API. Written by `npm run openapi` out of the routes; do not edit.

export type TriggerVerificationInput = {
  scheme: "github";
} | {
  scheme: "slack";
} | {
  scheme: "stripe";
} | {
  scheme: "standard-webhooks";
} | {
  scheme: "hmac";
  /** Header with the HMAC-SHA256 of the raw body. */
  header: string;
  /** Text before the signature, such as `sha256=`. Default: `""`. */
  prefix?: string | undefined;
  /** Default: `"hex"`. */
  encoding?: "hex" | "base64" | undefined;
} | {
  scheme: "token";
  /** Header that contains the secret itself, alone or after `Bearer `. */
  header?: string | undefined;
};

export type SignInOptions = {
  /** How the server authenticates requests. */
  auth: "none" | "api_key" | "jwt" | "header" | "plugin";
  /** Present with `jwt` if people can sign in at the issuer with the authorization code flow, PKCE and no client secret. */
  oidc?: {
    /** The page's client id at the issuer. If it is set, people can sign in on the page. */
    client_id: string;
    /** Scopes that the page requests. With `offline_access` most issuers return a refresh token. */
    scopes: string;
    /** Token that the page sends. Its audience must be `auth.jwt.audience`. Use `id_token` if access tokens are not JWTs. */
    token: "access_token" | "id_token";
    authorization_endpoint: string;
    token_endpoint: string;
    end_session_endpoint?: string | undefined;
    issuer: string;
    audience: string;
  } | undefined;
  /** The operator's message to people who sign in, as plain text. */
  note?: string | undefined;
};

export type Part = {
  type: "text";
  text: string;
} | {
  type: "image";
  media_type: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  /** The image, encoded in base64. */
  data: string;
} | {
  type: "file";
  media_type: string;
  /** The file, encoded in base64. */
  data: string;
  name?: string | undefined;
};

export type ToolCall = {
  /** Assigned by the model or the server. Tools use it as their idempotency key. */
  id: string;
  name: string;
  args: Record<string, unknown>;
  /** The raw arguments, if the model did not write a JSON object. */
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
  /** Web searches that the models' provider made. Absent if it made none. */
  web_searches?: number | undefined;
  /** Cost in millionths of the currency. Absent if the models have no price. */
  cost?: number | undefined;
  /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
  estimated?: true | undefined;
  /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
  cache_hit_ratio?: number | undefined;
};

export type WebSource = {
  url: string;
  title?: string | undefined;
};

export type Citation = {
  url: string;
  title?: string | undefined;
  /** Position in `content` where the part begins. */
  start_index: number;
  /** Position after its last character. */
  end_index: number;
};

export type ProviderBlock = {
  /** The block as the provider wrote it. Skein sends it back to the provider unchanged. */
  data: Record<string, unknown>;
  /** Characters of `content` before the block. */
  after_text: number;
  /** Calls before the block. */
  after_calls: number;
  /** Blocks of reasoning before the block. */
  after_thoughts: number;
  /** Number of characters of `content` that make up the block's text. Only for a text with citations. */
  characters?: number | undefined;
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
  /** Web pages that the model's provider found while the model wrote the message. */
  sources?: WebSource[] | undefined;
  /** Parts of `content` that come from these pages. */
  citations?: Citation[] | undefined;
  /** Blocks of the provider's own tools, in the order of the reply. */
  provider_blocks?: ProviderBlock[] | undefined;
  /** The model that wrote the message, as `provider:model`. */
  model?: string | undefined;
  usage?: Usage | undefined;
  /** True if no model wrote the message, because a user started a run with these tool calls. */
  by_user?: true | undefined;
  /** Present only if the answer was cut off: `stopped` by someone, or `failed` by an error or a limit. `content` contains the answer up to that point. */
  incomplete?: "stopped" | "failed" | undefined;
} | {
  id: string;
  created_at: string;
  role: "tool";
  /** The tool's output. */
  content: string | Part[];
  tool_call_id: string;
  name: string;
  /** Present only if the call failed. */
  error?: string | undefined;
  /** Web pages that the output comes from. */
  sources?: WebSource[] | undefined;
  /** True if a person or a rule denied the call (`error` is the reason), or if the user declined to answer its question. */
  denied?: true | undefined;
};

export type RememberOption = {
  remember_as: "call" | "command" | "tool";
  /** With `command`: the whole words that each command on a line must begin with. */
  command_prefix?: string[] | undefined;
};

export type Interrupt = {
  id: string;
  /** `approval`: allow or deny the call. `question`: answer the prompt. `tool`: execute the call in the front end and send its result. `connect`: connect an account. If `url` is present, open it; otherwise, approve once the account is connected. */
  kind: "approval" | "question" | "tool" | "connect";
  call_id: string;
  run_id: string;
  /** Name of the tool. */
  name: string;
  args: Record<string, unknown>;
  /** The question to show to the user. */
  prompt: string;
  /** With `connect`: address where the user can connect the account. The run then continues automatically. */
  url?: string | undefined;
  /** Answers to offer to the user. */
  options?: string[] | undefined;
  /** True if the answer must match one of `options` exactly. If absent, any text is accepted. */
  one_of_options?: true | undefined;
  /** Values of `remember_as` that this approval accepts. Default: `call` only. */
  remember_options?: RememberOption[] | undefined;
  created_at: string;
  /** Time when the interrupt is decided automatically. */
  expires_at?: string | undefined;
  /** The subagent that asked, its thread, and the id of the interrupt in that thread. */
  asked_by?: {
    agent: string;
    name: string;
    thread_id: string;
    id: string;
  } | undefined;
};

export type LimitDetails = {
  /** The same text as the `message` of `done`. */
  message: string;
  /** The limit that was reached: a quota such as `cost_per_day`, or `max_iterations`, `budgets.tokens`, `budgets.seconds`, `loop_detection`, `stall_detection`. */
  limit: string;
  /** Owner of the quota. */
  of?: "tenant" | "user" | undefined;
  /** Value of the limit, in the unit in which it is configured. */
  most?: number | undefined;
  used?: number | undefined;
  left?: number | undefined;
  /** Currency of a cost limit. Absent if no currency is configured. */
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
    /** Id of the message that the run replaced. This message and all later ones are no longer in the thread. */
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
    /** True if the model's provider may search the web during the call. */
    web_search?: true | undefined;
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
    /** Milliseconds from the request to the first delta. */
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
    /** Keys to merge into the value. `null` deletes a key. */
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
    /** Name of the tool. */
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
    /** The subagent's element in the `path` of its events. */
    id: string;
    call_id: string;
    agent: string;
    name: string;
    /** Icon of the agent, for display. */
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
    /** `interrupted`: the parent will resume following the subagent. `running`: the subagent continues in the background. */
    status: "completed" | "failed" | "cancelled" | "interrupted" | "running";
    summary: string;
    /** The subagent's share of this run's usage. */
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
    /** The agent's answer, as an object that matches its `output_schema`. */
    output?: Record<string, unknown> | undefined;
    /** With `status: error`: the limit that ended the run. */
    details?: LimitDetails | undefined;
    /** A sentence for users about how the run ended. Absent if the run ended normally. */
    message?: string | undefined;
  };
};

export type Parent = {
  thread_id: string;
  run_id: string;
  call_id: string;
  /** True if the subagent continues after the parent's run. */
  background: boolean;
  /** Branches only: id of the message that the parent's run replaced. The branch contains this message and all later ones. */
  replaced?: string | undefined;
};

export type ForkedFrom = {
  thread_id: string;
  /** Id of the last message that was copied. Absent if the thread was empty. */
  message_id?: string | undefined;
};

export type Thread = {
  id: string;
  /** Agent of the most recent run. */
  agent?: string | undefined;
  title?: string | undefined;
  metadata: Record<string, string | number | boolean>;
  /** Call in the parent's run that the thread works on. */
  parent?: Parent | undefined;
  /** The thread that this one was copied from. It may have been changed or deleted since. */
  forked_from?: ForkedFrom | undefined;
  /** Phase of the most recent run. */
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
  /** Increases with each take-over after a crash. */
  attempt: number;
  /** Id of the interrupted run that this run resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit that ended the run. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
};

export type FoundThread = {
  id: string;
  /** Agent of the most recent run. */
  agent?: string | undefined;
  title?: string | undefined;
  metadata: Record<string, string | number | boolean>;
  /** Call in the parent's run that the thread works on. */
  parent?: Parent | undefined;
  /** The thread that this one was copied from. It may have been changed or deleted since. */
  forked_from?: ForkedFrom | undefined;
  /** Phase of the most recent run. */
  status: "idle" | "busy" | "interrupted" | "error";
  message_count: number;
  created_at: string;
  updated_at: string;
  /** The most recent message that contains the text. Absent if only the title contains it. */
  match?: {
    message_id: string;
    /** Excerpt of up to 160 characters. */
    text: string;
  } | undefined;
};

export type Phase = {
  name: "idle" | "processing" | "calling_model" | "executing_tool" | "waiting_for_subagent" | "waiting_for_permission" | "waiting_for_answer" | "waiting_for_tool";
  /** Names of the tools or subagents. */
  of?: string[] | undefined;
};

export type RunNow = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Increases with each take-over after a crash. */
  attempt: number;
  /** Id of the interrupted run that this run resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit that ended the run. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
  /** Current phase of the run. Absent once the run has ended. */
  phase?: Phase | undefined;
  /** Answer of a run with an `output_schema`. Absent once the run's events are no longer kept. */
  output?: Record<string, unknown> | undefined;
};

export type FinishedRun = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Increases with each take-over after a crash. */
  attempt: number;
  /** Id of the interrupted run that this run resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit that ended the run. */
  details?: LimitDetails | undefined;
  usage: Usage;
  metadata: Record<string, string | number | boolean>;
  created_at: string;
  ended_at?: string | undefined;
  /** Messages that the run added to the thread, including its input. */
  messages: Message[];
  /** Answer of a run with an `output_schema`. Absent once the run's events are no longer kept. */
  output?: Record<string, unknown> | undefined;
};

export type ThreadState = {
  thread_id: string;
  messages: Message[];
  todos?: unknown;
  files?: unknown;
  /** Phase of the most recent run. */
  status: "idle" | "busy" | "interrupted" | "error";
  /** Increases with every message. */
  version: number;
  [key: string]: unknown;
};

export type OpenInterrupt = {
  id: string;
  /** `approval`: allow or deny the call. `question`: answer the prompt. `tool`: execute the call in the front end and send its result. `connect`: connect an account. If `url` is present, open it; otherwise, approve once the account is connected. */
  kind: "approval" | "question" | "tool" | "connect";
  call_id: string;
  run_id: string;
  /** Name of the tool. */
  name: string;
  args: Record<string, unknown>;
  /** The question to show to the user. */
  prompt: string;
  /** With `connect`: address where the user can connect the account. The run then continues automatically. */
  url?: string | undefined;
  /** Answers to offer to the user. */
  options?: string[] | undefined;
  /** True if the answer must match one of `options` exactly. If absent, any text is accepted. */
  one_of_options?: true | undefined;
  /** Values of `remember_as` that this approval accepts. Default: `call` only. */
  remember_options?: RememberOption[] | undefined;
  created_at: string;
  /** Time when the interrupt is decided automatically. */
  expires_at?: string | undefined;
  /** The subagent that asked, its thread, and the id of the interrupt in that thread. */
  asked_by?: {
    agent: string;
    name: string;
    thread_id: string;
    id: string;
  } | undefined;
  thread_id: string;
};

export type UsageReport = {
  /** Usage by day, agent and model, most recent day first. */
  items: Array<{
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** Cost in millionths of the currency of the server's prices. */
    cost: number;
    /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
    cache_hit_ratio?: number | undefined;
    /** Number of model calls. */
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
    /** Cost in millionths of the currency of the server's prices. */
    cost: number;
    /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
    cache_hit_ratio?: number | undefined;
    /** Number of model calls. */
    calls: number;
  };
  /** The tenant's 256 users with the highest cost, in descending order. A last item without `user` sums up everyone else, including users beyond the first 256 of a day. */
  users?: Array<{
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** Cost in millionths of the currency of the server's prices. */
    cost: number;
    /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
    cache_hit_ratio?: number | undefined;
    /** Number of model calls. */
    calls: number;
    user?: string | undefined;
  }> | undefined;
  /** Amounts in the unit of the limit. Costs (`cost_per_day`, `cost_per_month`) are in millionths of the currency. */
  limits: Array<{
    limit: "requests_per_minute" | "concurrent_runs" | "threads" | "streams" | "stored_bytes" | "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month";
    /** Scope of the limit. */
    of: "tenant" | "user";
    most: number;
    used: number;
    left: number;
    resets_at?: string | undefined;
    /** For cost limits: the amounts in units of the currency, as in the settings and in the details of refused requests. */
    in_units?: {
      most: number;
      used: number;
      left: number;
    } | undefined;
  }>;
  /** Currency of costs and cost limits. Absent if none is configured. */
  currency?: string | undefined;
};

export type User = {
  tenant: string;
  user: string;
  /** Time of the last change to one of the user's threads. */
  updated_at: string;
};

export type Sandbox = {
  id: string;
  tenant: string;
  user: string;
  /** Name of the backend. */
  name: string;
  /** Docker engine that stores the sandbox's files. `default` if the settings name no engine. */
  engine: string;
  /** `removed`: the container has been removed, but its files still exist. */
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
    /** Cost in millionths of the currency of the server's prices. */
    cost: number;
    /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
    cache_hit_ratio?: number | undefined;
    /** Number of model calls. */
    calls: number;
  };
  /** Amounts in the unit of the limit. Costs (`cost_per_day`, `cost_per_month`) are in millionths of the currency. */
  limits: Array<{
    limit: "requests_per_minute" | "concurrent_runs" | "threads" | "streams" | "stored_bytes" | "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month";
    /** Scope of the limit. */
    of: "tenant" | "user";
    most: number;
    used: number;
    left: number;
    resets_at?: string | undefined;
    /** For cost limits: the amounts in units of the currency, as in the settings and in the details of refused requests. */
    in_units?: {
      most: number;
      used: number;
      left: number;
    } | undefined;
  }>;
  /** Currency of costs and cost limits. Absent if none is configured. */
  currency?: string | undefined;
  /** The tenant's users, as in `GET /usage`. */
  users?: Array<{
    input_tokens: number;
    output_tokens: number;
    cache_read_tokens: number;
    cache_write_tokens: number;
    /** Cost in millionths of the currency of the server's prices. */
    cost: number;
    /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
    estimated?: true | undefined;
    /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
    cache_hit_ratio?: number | undefined;
    /** Number of model calls. */
    calls: number;
    user?: string | undefined;
  }> | undefined;
};

export type ApiKey = {
  id: string;
  tenant: string;
  user: string;
  scopes: Array<"run" | "read" | "tools" | "admin" | "operator">;
  /** Purpose of the key. */
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
  /** Purpose of the key. */
  name: string;
  created_at: string;
  expires_at?: string | undefined;
  revoked_at?: string | undefined;
  /** The key itself, returned only in this response. The server stores only its hash. */
  key: string;
};

export type ThreadUsage = {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  /** Web searches that the models' provider made. Absent if it made none. */
  web_searches?: number | undefined;
  /** Cost in millionths of the currency. Absent if the models have no price. */
  cost?: number | undefined;
  /** True if part of the usage is an estimate, because a provider reported none or an answer ended early. */
  estimated?: true | undefined;
  /** Fraction of the input (0–1) that the provider read from its cache. Present only if the run or thread had input. */
  cache_hit_ratio?: number | undefined;
  /** Number of runs. Counts at most the newest 10000. */
  runs: number;
};

/** Resources that this request deleted. */
export type DeletedUser = {
  /** False if some data remains, because it is in use or because one request cannot delete it all. Repeat the request. */
  complete: boolean;
  runs_cancelled: number;
  threads: number;
  /** Number of items stored for the user: overrides, permission rules, reflections and triggers. */
  items: number;
  /** Number of workspaces, deleted with their files. With Docker backends, their sandboxes and volumes. */
  workspaces: number;
  keys: number;
};

export type Backup = {
  /** Path of the backup on the server's machine. */
  path: string;
  files: number;
  bytes: number;
  /** Number of sandboxes missing from the backup because their files are in volumes of a Docker engine. */
  workspaces_left_out: number;
};

export type ForgottenEngine = {
  /** Number of sandboxes whose files were on the engine. */
  lost: number;
  /** Number of sandboxes that were being moved. They continue with the files already on the other engine. */
  kept: number;
};

export type Agent = {
  name: string;
  description?: string | undefined;
  /** Icon to show before the agent's name. */
  prefix?: string | undefined;
  /** Questions to suggest to users at the start of a conversation. */
  suggestions?: string[] | undefined;
  /** True if the agent handles runs that don't specify an agent. */
  default: boolean;
  model: string;
  /** Names of the tools in your runs. Subagents also have `task_complete`. */
  tools: string[];
  /** Hooks in order, starting with the outermost. */
  hooks: string[];
  /** Type of the backend for the agent's files and commands. */
  backend?: string | undefined;
  context_window: number;
  max_iterations: number;
};

export type AgentOverrides = {
  /** Hooks by name: `true`, `false`, or options. Each option replaces the configured one. */
  hooks?: Record<string, boolean | Record<string, unknown>> | undefined;
  /** Each field replaces the configured one. */
  skills?: {
    paths?: string[] | undefined;
    include?: string[] | undefined;
    exclude?: string[] | undefined;
  } | undefined;
  /** `provider:model` that replaces the agent's own model. */
  model?: string | undefined;
  /** Overrides that the agent no longer accepts, each with the values that the agent would accept. */
  ignored: Array<{
    path: string;
    message: string;
  }>;
  /** Hooks that you can change: turn off, turn on and off, or configure with options. */
  changeable: Record<string, "disable" | "switch" | "configure">;
};

export type AgentDetails = {
  name: string;
  description?: string | undefined;
  /** Icon to show before the agent's name. */
  prefix?: string | undefined;
  /** Questions to suggest to users at the start of a conversation. */
  suggestions?: string[] | undefined;
  /** True if the agent handles runs that don't specify an agent. */
  default: boolean;
  model: string;
  /** Names of the tools in your runs. Subagents also have `task_complete`. */
  tools: string[];
  /** Hooks in order, starting with the outermost. */
  hooks: string[];
  /** Type of the backend for the agent's files and commands. */
  backend?: string | undefined;
  context_window: number;
  max_iterations: number;
  /** Settings that you can change with your overrides. */
  choices: {
    /** Hooks in order, starting with the outermost. */
    hooks: Array<{
      name: string;
      may: "disable" | "switch" | "configure";
      /** True if your runs use the hook. */
      active: boolean;
      /** JSON Schema of the hook's options, if you may `configure` it. */
      schema?: Record<string, unknown> | undefined;
      /** Options with values from your overrides or from the configuration. The schema contains the defaults of all other options. */
      options?: Record<string, unknown> | undefined;
    }>;
    /** Models that your runs and overrides can name. */
    models: {
      /** True if you can name any model that the server has a key for. `names` lists the known models. */
      any: boolean;
      /** Names in the form `provider:model`, starting with the agent's own model. At most 200. */
      names: string[];
      /** Globs of other models that you can name, such as `openai:gpt-5*`. At most 200. */
      patterns: string[];
    };
  };
};

export type AgentTool = {
  name: string;
  /** Description for the model. */
  description: string;
  /** JSON Schema of the tool's arguments. */
  parameters: Record<string, unknown>;
  /** True if the tool changes nothing. */
  read_only: boolean;
};

export type PromptBlock = {
  id: string;
  text: string;
};

export type AuditActor = {
  /** `key`: an API key. `user`: a user with other credentials. `operator`: the scope `operator` was used. `schedule`, `trigger`, `agent`: the schedule, trigger or agent acted by itself. `server`: the server itself. */
  type: "key" | "user" | "operator" | "schedule" | "trigger" | "agent" | "server";
  /** Id of the key, schedule or trigger, or name of the user or agent. */
  id: string;
  /** User who owns the credentials, the schedule or the trigger, or for whom the agent works. */
  user?: string | undefined;
  /** The operator's own tenant, if the operator acted on another tenant. */
  tenant?: string | undefined;
};

export type AuditTarget = {
  type: string;
  id: string;
  /** Owner of the target. */
  user?: string | undefined;
};

export type AuditEntry = {
  id: string;
  /** Time at which the request arrived, or at which the server acted. */
  at: string;
  tenant: string;
  actor: AuditActor;
  /** Action, such as `thread.delete`. */
  action: string;
  target?: AuditTarget | undefined;
  /** `refused`: the action was not allowed, or its target was not found. `failed`: it failed with another error. `ok`: it succeeded. */
  outcome: "ok" | "refused" | "failed";
  /** Status of the HTTP response. */
  status?: number | undefined;
  request_id?: string | undefined;
  /** Address of the client. */
  ip?: string | undefined;
  /** With the action `audit.gap`: number of entries that the server could not store. */
  dropped?: number | undefined;
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
  /** Path from the root of the sandbox. Routes accept these paths as well as paths relative to the workspace. */
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  /** Size in bytes. */
  size: number;
  modified_at: string;
};

export type Connection = {
  id: string;
  type: "mcp_oauth" | "static_bearer" | "environment_variable";
  mcp_server_url?: string | undefined;
  /** Time when the current access token expires. */
  expires_at?: string | undefined;
  refresh?: {
    client_id: string;
    /** Address where the server exchanges the refresh token. */
    token_endpoint: string;
    /** Address where the server revokes the tokens when the connection is deleted (RFC 7009). */
    revocation_endpoint?: string | undefined;
    /** `resource` parameter of each token request (RFC 8707). */
    resource?: string | undefined;
    scope?: string | undefined;
    token_endpoint_auth: {
      type: "none" | "client_secret_basic" | "client_secret_post";
    };
  } | undefined;
  secret_name?: string | undefined;
  networking?: {
    type: "unrestricted";
  } | {
    type: "limited";
    /** Hosts that can receive the value. */
    allowed_hosts: string[];
  } | undefined;
  /** Present if the issuer has refused to renew the access token. Reconnect the account. */
  ended?: {
    at: string;
    reason: string;
  } | undefined;
  created_at: string;
  updated_at: string;
  /** Time at which an agent last used the connection, to the minute. Absent if no agent has used it. */
  last_used_at?: string | undefined;
};

export type DeletedConnection = {
  /** True if the issuer confirmed that all tokens are revoked. False if it has no `revocation_endpoint`, and while a process renews the tokens: it revokes the new ones itself. */
  is_revoked: boolean;
};

export type ConnectionAuthorization = {
  /** Address of this server for the person to open in a browser. The address works once and connects one account. */
  url: string;
  expires_at: string;
};

export type ConnectableServer = {
  id: string;
  mcp_server_url: string;
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
    /** `approval`: allow or deny the call. `question`: answer the prompt. `tool`: execute the call in the front end and send its result. `connect`: connect an account. If `url` is present, open it; otherwise, approve once the account is connected. */
    kind: "approval" | "question" | "tool" | "connect";
    /** Name of the tool. */
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
  /** Reason for the rating, in the user's words. */
  comment?: string | undefined;
  updated_at: string;
};

export type DependencyStatus = {
  name: string;
  status: "up" | "down";
  /** Time of the last status change. */
  since: string;
  checked_at: string;
  error?: string | undefined;
};

export type Me = {
  tenant: string;
  user: string;
  scopes: Array<"run" | "read" | "tools" | "admin" | "operator">;
  /** How the server authenticates requests. */
  auth: "none" | "api_key" | "jwt" | "header" | "plugin";
  /** Time when the credentials expire. */
  expires_at?: string | undefined;
  /** Enabled front-end protocols. */
  wires: Array<"ai-sdk" | "openai" | "langgraph" | "ag-ui" | "mcp" | "a2a">;
  /** Version of the server. */
  version: string;
  /** Currency of costs. Absent if none is configured. */
  currency?: string | undefined;
};

export type Ticket = {
  /** Value of the query parameter `ticket`. */
  ticket: string;
  expires_at: string;
};

export type RememberedRule = {
  id: string;
  decision: "allow" | "deny" | "ask";
  /** A call matches if it meets all conditions. */
  matcher: Record<string, unknown>;
  priority?: number | undefined;
  message?: string | undefined;
  description?: string | undefined;
};

export type SentRequest = {
  /** Number of the model call within the run, counted from 1. */
  number: number;
  /** Id of the answer. */
  message_id: string;
  sent_at: string;
  model: string;
  /** Settings of the run that override the model's own. */
  settings: {
    /** Sampling temperature. Anthropic accepts at most 1. */
    temperature?: number | undefined;
    /** Maximum number of tokens in one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own. */
    max_tokens?: number | undefined;
    /** Maximum number of tokens for thinking. */
    thinking?: number | undefined;
    /** `auto`: the model decides whether to call tools. `none`: the model calls no tools. `required`: the model calls at least one tool. `name`: the model calls this tool. The requirement ends once a tool has been called after the user's last message. */
    tool_choice?: "auto" | "none" | "required" | {
      name: string;
    } | undefined;
  };
  /** Maximum number of tokens that a budget allowed for the answer. */
  output_limit?: number | undefined;
  /** Blocks of the system prompt, in order. */
  system: Array<{
    id: string;
    cache: "static" | "semi" | "dynamic";
    /** Absent if it did not fit into the record. */
    text?: string | undefined;
  }>;
  tools: Array<{
    name: string;
    /** Absent if it did not fit into the record. */
    description?: string | undefined;
    /** Absent if it did not fit into the record. */
    parameters?: Record<string, unknown> | undefined;
  }>;
  /** The most recent 1000 messages, oldest first. */
  messages: Array<{
    id: string;
    role: "system" | "user" | "assistant" | "tool";
    /** True if the message was sent exactly as it is in the thread. */
    in_thread: boolean;
    /** The message as it was sent, if that differs from the thread. Absent if it did not fit into the record. */
    message?: Message | undefined;
  }>;
  /** True if nothing was omitted. */
  is_whole: boolean;
};

export type Span = {
  id: string;
  /** Id of the enclosing span. Absent for the run itself. */
  parent_id?: string | undefined;
  name: "run" | "llm.call" | "tool.call" | "subagent";
  started_at: string;
  /** Duration in milliseconds. Absent while the span is open. */
  duration_ms?: number | undefined;
  model?: string | undefined;
  agent?: string | undefined;
  tool?: string | undefined;
  call_id?: string | undefined;
  /** Id of the message that the model call wrote. Absent if it wrote none. */
  message_id?: string | undefined;
  /** For a model call: its number within the run, counted from 1. */
  number?: number | undefined;
  /** Number of messages sent to the model. */
  message_count?: number | undefined;
  /** Length of the model's text in characters. */
  content_length?: number | undefined;
  tool_calls_count?: number | undefined;
  /** Names of the tools that the model called. */
  tool_names?: string[] | undefined;
  /** The first 500 characters of the arguments. */
  args?: string | undefined;
  /** The first 500 characters of the arguments. */
  output?: string | undefined;
  status?: string | undefined;
  stop_reason?: string | undefined;
  usage?: Usage | undefined;
  /** Cost of a model call, in millionths of the currency. Absent if the model has no price. */
  cost?: number | undefined;
  /** Milliseconds from the request to the model's first delta. */
  first_token_ms?: number | undefined;
  error?: {
    code?: string | undefined;
    message: string;
    details?: Record<string, unknown> | undefined;
  } | undefined;
};

export type Trace = {
  /** The first 2000 spans, in the order in which they started. */
  spans: Span[];
  /** True if `spans` contains all spans so far. */
  is_whole: boolean;
};

export type Schedule = {
  id: string;
  /** When to start runs, as five fields: minute, hour, day of the month, month, day of the week. `0 9 * * MON-FRI` means 9:00, Monday to Friday. */
  cron?: string | undefined;
  /** Time of a single run, with its UTC offset. Use either `at` or `cron`. */
  at?: string | undefined;
  /** IANA time zone for `cron`, such as `Europe/Berlin`. */
  timezone: string;
  /** Agent that executes the runs. Default: the thread's agent, otherwise the default agent. */
  agent?: string | undefined;
  /** User message that each run begins with. */
  input: string;
  /** `new`: each run gets its own thread. Otherwise, the id of the thread that all runs continue. */
  thread: "new" | string;
  /** Keeps the new threads. With `false`, each thread is deleted after its run, like a temporary thread of `POST /runs`. Only with `thread: new`. */
  keep_thread: boolean;
  /** Action if the previous run has not ended or is waiting for an answer: skip the slot, wait until the run ends, or start another run alongside it. */
  overlap: "skip" | "queue" | "allow";
  /** Action on slots missed by more than a minute because the server was down: skip all, start a run for the most recent, or start one for each. */
  catch_up: "none" | "latest" | "all";
  /** Time after which the schedule starts no more runs. */
  until?: string | undefined;
  /** Action if a run asks a question: wait for an answer as the agent's `interrupts` configure, or deny it because no one is available. */
  questions: "wait" | "deny";
  /** Metadata of the runs, at most 30 keys. The server adds `schedule` and `scheduled_for`. */
  metadata: Record<string, string | number | boolean>;
  /** While true, the schedule starts no runs. */
  paused: boolean;
  /** `completed`: no further time matches, or `until` has passed. */
  status: "active" | "paused" | "completed";
  /** Why the schedule is paused. Send it again with `paused: false` to continue. */
  pause?: {
    reason: "requested" | "credentials_ended" | "start_refused";
    message: string;
    since: string;
  } | undefined;
  /** The next times, at most five. */
  next_runs: string[];
  /** The most recent slot, and whether it started a run. */
  last_slot?: {
    scheduled_for: string;
    /** `skipped`: the previous run had not ended, or the slot was missed. `failed`: the start was refused. */
    outcome: "started" | "skipped" | "failed";
    /** Why no run was started. */
    message?: string | undefined;
  } | undefined;
  /** A slot that is due but has not started its run yet. */
  pending_slot?: {
    scheduled_for: string;
    since: string;
    /** Why the slot's run has not started. */
    message: string;
  } | undefined;
  /** The most recent run that the schedule started. */
  last_run?: {
    thread_id: string;
    run_id: string;
    scheduled_for: string;
  } | undefined;
  /** True if the operator's agents file defines the schedule. Requests cannot change it. */
  from_file?: true | undefined;
  created_at: string;
  updated_at: string;
};

export type NextRuns = {
  /** The next times, at most five. */
  next_runs: string[];
};

export type Share = {
  id: string;
  created_at: string;
  expires_at: string;
};

export type SharedThread = {
  /** The user who shared the thread. */
  user: string;
  thread_id: string;
  title?: string | undefined;
  /** Agent of the most recent run. */
  agent?: string | undefined;
  updated_at: string;
};

export type HttpTool = {
  name: string;
  /** Description for the model. */
  description: string;
  /** JSON Schema (2020-12) for the arguments. `type` must be `object`. */
  parameters: Record<string, unknown>;
  /** Callback URL without its query. */
  callback_url: string;
  /** Timeout of one call in milliseconds, including retries. */
  timeout_ms: number;
  /** True if a repeated call with the same `Idempotency-Key` does no harm, so that Skein may retry it. */
  idempotent: boolean;
  /** Hints for agents' permissions. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` have an effect. */
  annotations: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  };
  /** Names and globs of agents that can use the tool. */
  agents: string[];
  header_names: string[];
  created_at: string;
};

export type RegisteredHttpTool = {
  name: string;
  /** Description for the model. */
  description: string;
  /** JSON Schema (2020-12) for the arguments. `type` must be `object`. */
  parameters: Record<string, unknown>;
  /** Callback URL without its query. */
  callback_url: string;
  /** Timeout of one call in milliseconds, including retries. */
  timeout_ms: number;
  /** True if a repeated call with the same `Idempotency-Key` does no harm, so that Skein may retry it. */
  idempotent: boolean;
  /** Hints for agents' permissions. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` have an effect. */
  annotations: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  };
  /** Names and globs of agents that can use the tool. */
  agents: string[];
  header_names: string[];
  created_at: string;
  /** Secret for verifying the signatures of calls. Returned only once. */
  secret: string;
};

export type TriedTool = {
  /** Output as a model would see it. */
  output: string | Part[];
  /** Present only if the call failed. */
  error?: string | undefined;
  duration_ms: number;
};

export type TriggerVerification = {
  scheme: "github";
} | {
  scheme: "slack";
} | {
  scheme: "stripe";
} | {
  scheme: "standard-webhooks";
} | {
  scheme: "hmac";
  /** Header with the HMAC-SHA256 of the raw body. */
  header: unknown;
  /** Text before the signature, such as `sha256=`. */
  prefix: string;
  encoding: "hex" | "base64";
} | {
  scheme: "token";
  /** Header that contains the secret itself, alone or after `Bearer `. */
  header: unknown;
};

export type Trigger = {
  /** Agent that each delivery runs. */
  agent: string;
  /** How the server verifies that a delivery comes from the sender. A delivery that it cannot verify gets 401. */
  verify: TriggerVerification;
  /** Message that starts the run. `{{body.…}}`, `{{headers.…}}` and `{{delivery.id}}` are replaced with values from the delivery. Objects are inserted as JSON; a missing value is replaced with nothing. */
  input: string;
  /** `new`: each delivery starts a thread. Otherwise a template: deliveries that produce the same text share a thread, and one that produces an empty text starts a new thread. */
  thread: string;
  /** Template for the id by which the server recognizes a repeated delivery. Default: the id that the scheme defines, otherwise a hash of the body. */
  delivery_id?: string | undefined;
  /** Map from paths in the body to required values. Deliveries with another value at any of these paths are ignored. */
  filter: Record<string, Array<string | number | boolean | null>>;
  /** Metadata of each run. The run's metadata also has the trigger's id as `trigger`. */
  metadata: Record<string, string | number | boolean>;
  /** While a trigger is paused, its address returns 404. */
  paused: boolean;
  id: string;
  /** URL that the sender calls. Only a path if the server's public address is not configured. */
  url: string;
  /** False until the sender's secret is set. Until then, all deliveries get 401. */
  has_secret: boolean;
  /** Time until which the secret before the last rotation is also valid. */
  old_secret_until?: string | undefined;
  /** Present only if the server paused the trigger. */
  paused_reason?: {
    code: "credentials_revoked" | "credentials_expired" | "agent_missing";
    message: string;
    at: string;
  } | undefined;
  created_at: string;
  updated_at: string;
};

export type TriggerDelivery = {
  at: string;
  /** Id of the delivery. Absent for a delivery that could not be verified. */
  id?: string | undefined;
  outcome: "started" | "repeated" | "ignored" | "refused" | "failed";
  /** Why no run was started. */
  reason?: string | undefined;
  thread_id?: string | undefined;
  run_id?: string | undefined;
};

export type NewTrigger = {
  /** Agent that each delivery runs. */
  agent: string;
  /** How the server verifies that a delivery comes from the sender. A delivery that it cannot verify gets 401. */
  verify: TriggerVerification;
  /** Message that starts the run. `{{body.…}}`, `{{headers.…}}` and `{{delivery.id}}` are replaced with values from the delivery. Objects are inserted as JSON; a missing value is replaced with nothing. */
  input: string;
  /** `new`: each delivery starts a thread. Otherwise a template: deliveries that produce the same text share a thread, and one that produces an empty text starts a new thread. */
  thread: string;
  /** Template for the id by which the server recognizes a repeated delivery. Default: the id that the scheme defines, otherwise a hash of the body. */
  delivery_id?: string | undefined;
  /** Map from paths in the body to required values. Deliveries with another value at any of these paths are ignored. */
  filter: Record<string, Array<string | number | boolean | null>>;
  /** Metadata of each run. The run's metadata also has the trigger's id as `trigger`. */
  metadata: Record<string, string | number | boolean>;
  /** While a trigger is paused, its address returns 404. */
  paused: boolean;
  id: string;
  /** URL that the sender calls. Only a path if the server's public address is not configured. */
  url: string;
  /** False until the sender's secret is set. Until then, all deliveries get 401. */
  has_secret: boolean;
  /** Time until which the secret before the last rotation is also valid. */
  old_secret_until?: string | undefined;
  /** Present only if the server paused the trigger. */
  paused_reason?: {
    code: "credentials_revoked" | "credentials_expired" | "agent_missing";
    message: string;
    at: string;
  } | undefined;
  created_at: string;
  updated_at: string;
  /** A secret that the server has created. Present only in the response to the request that created it. */
  secret?: string | undefined;
};

export type TriggerWithDeliveries = {
  /** Agent that each delivery runs. */
  agent: string;
  /** How the server verifies that a delivery comes from the sender. A delivery that it cannot verify gets 401. */
  verify: TriggerVerification;
  /** Message that starts the run. `{{body.…}}`, `{{headers.…}}` and `{{delivery.id}}` are replaced with values from the delivery. Objects are inserted as JSON; a missing value is replaced with nothing. */
  input: string;
  /** `new`: each delivery starts a thread. Otherwise a template: deliveries that produce the same text share a thread, and one that produces an empty text starts a new thread. */
  thread: string;
  /** Template for the id by which the server recognizes a repeated delivery. Default: the id that the scheme defines, otherwise a hash of the body. */
  delivery_id?: string | undefined;
  /** Map from paths in the body to required values. Deliveries with another value at any of these paths are ignored. */
  filter: Record<string, Array<string | number | boolean | null>>;
  /** Metadata of each run. The run's metadata also has the trigger's id as `trigger`. */
  metadata: Record<string, string | number | boolean>;
  /** While a trigger is paused, its address returns 404. */
  paused: boolean;
  id: string;
  /** URL that the sender calls. Only a path if the server's public address is not configured. */
  url: string;
  /** False until the sender's secret is set. Until then, all deliveries get 401. */
  has_secret: boolean;
  /** Time until which the secret before the last rotation is also valid. */
  old_secret_until?: string | undefined;
  /** Present only if the server paused the trigger. */
  paused_reason?: {
    code: "credentials_revoked" | "credentials_expired" | "agent_missing";
    message: string;
    at: string;
  } | undefined;
  created_at: string;
  updated_at: string;
  /** The last 20 deliveries, newest first. */
  deliveries: TriggerDelivery[];
};

export type PlannedDelivery = {
  /** Reason why the delivery would start no run. */
  ignored?: string | undefined;
  delivery_id: string;
  agent?: string | undefined;
  input?: string | undefined;
  thread_id?: string | undefined;
  metadata?: Record<string, string | number | boolean> | undefined;
};

export type WebhookDelivery = {
  /** Value of the `webhook-id` header, the same in every attempt. */
  id: string;
  webhook_id: string;
  /** The event, such as `run.ended`. */
  type: string;
  /** `failed`: the server has given up. To resend the delivery, use `POST …/send`. */
  status: "pending" | "delivered" | "failed";
  thread_id?: string | undefined;
  run_id?: string | undefined;
  agent?: string | undefined;
  attempts: number;
  created_at: string;
  last_attempt_at?: string | undefined;
  next_attempt_at?: string | undefined;
  /** Status of the receiver's last response. */
  http_status?: number | undefined;
  /** Reason why the last attempt failed. */
  error?: string | undefined;
};

export type Webhook = {
  /** Address without its query. */
  url: string;
  /** Events to send. `run.ended`: a run ended without an error. `run.failed`: a run ended with an error. `interrupt.opened`: a run is waiting for answers. `budget.near`: most of a budget has been used. `schedule.paused`: the server paused a schedule. `audit.entry`: an entry was added to the audit trail; tenant webhooks only. */
  on: Array<"run.ended" | "run.failed" | "interrupt.opened" | "budget.near" | "schedule.paused" | "audit.entry">;
  /** Names of agents. Events of other agents are not sent. Default: all agents. */
  agents?: string[] | undefined;
  /** Sends a thread's events in order. Each event waits until the previous one has been delivered or has failed. */
  ordered: boolean;
  /** While true, the server sends nothing. */
  paused: boolean;
  id: string;
  /** Time of the first failure since the last successful delivery. */
  failing_since?: string | undefined;
  /** Present if the server has disabled the webhook because all its deliveries failed for a day. `PUT` enables it again. */
  disabled?: {
    at: string;
    reason: string;
  } | undefined;
  created_at: string;
  updated_at: string;
  /** Time until which deliveries also carry a signature made with the secret from before the last rotation. */
  previous_secret_until?: string | undefined;
};

export type WebhookWithSecret = {
  /** Address without its query. */
  url: string;
  /** Events to send. `run.ended`: a run ended without an error. `run.failed`: a run ended with an error. `interrupt.opened`: a run is waiting for answers. `budget.near`: most of a budget has been used. `schedule.paused`: the server paused a schedule. `audit.entry`: an entry was added to the audit trail; tenant webhooks only. */
  on: Array<"run.ended" | "run.failed" | "interrupt.opened" | "budget.near" | "schedule.paused" | "audit.entry">;
  /** Names of agents. Events of other agents are not sent. Default: all agents. */
  agents?: string[] | undefined;
  /** Sends a thread's events in order. Each event waits until the previous one has been delivered or has failed. */
  ordered: boolean;
  /** While true, the server sends nothing. */
  paused: boolean;
  id: string;
  /** Time of the first failure since the last successful delivery. */
  failing_since?: string | undefined;
  /** Present if the server has disabled the webhook because all its deliveries failed for a day. `PUT` enables it again. */
  disabled?: {
    at: string;
    reason: string;
  } | undefined;
  created_at: string;
  updated_at: string;
  /** Time until which deliveries also carry a signature made with the secret from before the last rotation. */
  previous_secret_until?: string | undefined;
  /** Secret for verifying signatures. Returned only in the response that creates it. */
  secret?: string | undefined;
};

export type WebhookTest = {
  delivered: boolean;
  /** Status of the receiver's response. */
  http_status?: number | undefined;
  /** Present only if the sample was not delivered. */
  error?: string | undefined;
};

export type UserRun = {
  id: string;
  thread_id: string;
  agent: string;
  status: "pending" | "running" | "success" | "interrupted" | "cancelled" | "error";
  /** Increases with each take-over after a crash. */
  attempt: number;
  /** Id of the interrupted run that this run resumes. */
  resumes?: string | undefined;
  stop_reason?: string | undefined;
  error?: Error | undefined;
  /** The limit that ended the run. */
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
  /** `approval`: allow or deny the call. `question`: answer the prompt. `tool`: execute the call in the front end and send its result. `connect`: connect an account. If `url` is present, open it; otherwise, approve once the account is connected. */
  kind: "approval" | "question" | "tool" | "connect";
  call_id: string;
  run_id: string;
  /** Name of the tool. */
  name: string;
  args: Record<string, unknown>;
  /** The question to show to the user. */
  prompt: string;
  /** With `connect`: address where the user can connect the account. The run then continues automatically. */
  url?: string | undefined;
  /** Answers to offer to the user. */
  options?: string[] | undefined;
  /** True if the answer must match one of `options` exactly. If absent, any text is accepted. */
  one_of_options?: true | undefined;
  /** Values of `remember_as` that this approval accepts. Default: `call` only. */
  remember_options?: RememberOption[] | undefined;
  created_at: string;
  /** Time when the interrupt is decided automatically. */
  expires_at?: string | undefined;
  /** The subagent that asked, its thread, and the id of the interrupt in that thread. */
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
  /** With `deny`: the reason, for the model. With `respond`: the answer, which becomes the call's result. */
  message?: string | undefined;
  /** Apply this decision to later calls too: in this thread, or in all of this user's threads with the agent. */
  remember?: "session" | "agent" | undefined;
  /** With `remember`: apply the decision to identical calls (default), to commands with the interrupt's `command_prefix`, or to every call of the tool. */
  remember_as?: "call" | "command" | "tool" | undefined;
};

export type ClientTool = {
  name: string;
  /** Description for the model. */
  description: string;
  /** JSON Schema (2020-12) of the arguments; `type` is `object`. */
  parameters: Record<string, unknown>;
};

/** JSON Merge Patch (RFC 7396) of your overrides. `null` removes one. */
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
  /** Name of one of the agent's tools, or of a tool in the run's `tools`. */
  name: string;
  /** Default: `{}`. */
  args?: Record<string, unknown> | undefined;
};

export type StartRun = {
  /** Default: the thread's agent, or the first configured agent for a new thread. */
  agent?: string | undefined;
  /** Shorthand for one user message. */
  input?: string | undefined;
  messages?: InputMessage[] | undefined;
  /** Use instead of a message. The model completes a last answer that was cut off (`incomplete`), or answers the last user message or tool result. */
  continue?: true | undefined;
  /** Tool calls that the run executes before its first model call, as if the model had made them. Can follow messages or replace them. */
  calls?: GivenCall[] | undefined;
  /** `provider:model` to use instead of the agent's own model. */
  model?: string | undefined;
  /** Sampling temperature. Anthropic accepts at most 1. */
  temperature?: number | undefined;
  /** Maximum number of tokens in one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own. */
  max_tokens?: number | undefined;
  /** Maximum number of tokens for thinking. */
  thinking?: number | undefined;
  /** `auto`: the model decides whether to call tools. `none`: the model calls no tools. `required`: the model calls at least one tool. `name`: the model calls this tool. The requirement ends once a tool has been called after the user's last message. */
  tool_choice?: "auto" | "none" | "required" | {
    name: string;
  } | undefined;
  /** JSON Schema (2020-12) of an object. The final answer is JSON that matches this schema. The `done` event and the run contain the answer as `output`. Default: the agent's own schema. */
  output_schema?: Record<string, unknown> | undefined;
  /** Tools that the client executes. A call interrupts the run; send its result with `resume`. */
  tools?: ClientTool[] | undefined;
  /** Default: `{}`. */
  metadata?: Record<string, string | number | boolean> | undefined;
  /** Id of a user message. The run replaces this message and all later messages. The server keeps the replaced messages as a branch. */
  replaces?: string | undefined;
  /** Action if the thread has an active run: return 409, wait for that run, or cancel it and start next. Default: `"reject"`. */
  on_busy?: "reject" | "enqueue" | "interrupt" | undefined;
  /** Action if the client disconnects before the run ends. Default: `"continue"`. */
  on_disconnect?: "continue" | "cancel" | undefined;
  /** Return 202 immediately. Follow the run's events at the URL in `Location`. Default: `false`. */
  background?: boolean | undefined;
};

export type StartRunOnNewThread = {
  /** Default: the first configured agent. */
  agent?: string | undefined;
  /** Shorthand for one user message. */
  input?: string | undefined;
  messages?: InputMessage[] | undefined;
  /** Tool calls that the run executes before its first model call, as if the model had made them. Can follow messages or replace them. */
  calls?: GivenCall[] | undefined;
  /** `provider:model` to use instead of the agent's own model. */
  model?: string | undefined;
  /** Sampling temperature. Anthropic accepts at most 1. */
  temperature?: number | undefined;
  /** Maximum number of tokens in one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own. */
  max_tokens?: number | undefined;
  /** Maximum number of tokens for thinking. */
  thinking?: number | undefined;
  /** `auto`: the model decides whether to call tools. `none`: the model calls no tools. `required`: the model calls at least one tool. `name`: the model calls this tool. The requirement ends once a tool has been called after the user's last message. */
  tool_choice?: "auto" | "none" | "required" | {
    name: string;
  } | undefined;
  /** JSON Schema (2020-12) of an object. The final answer is JSON that matches this schema. The `done` event and the run contain the answer as `output`. Default: the agent's own schema. */
  output_schema?: Record<string, unknown> | undefined;
  /** Tools that the client executes. A call interrupts the run; send its result with `resume`. */
  tools?: ClientTool[] | undefined;
  /** Default: `{}`. */
  metadata?: Record<string, string | number | boolean> | undefined;
  /** Action if the client disconnects before the run ends. Default: `"continue"`. */
  on_disconnect?: "continue" | "cancel" | undefined;
  /** Return 202 immediately. Follow the run's events at the URL in `Location`. Default: `false`. */
  background?: boolean | undefined;
  /** Keeps the thread. With `false`, the server deletes it once the run has ended and you have read the answer, or after `retention.temporary_threads`. Default: `true`. */
  keep_thread?: boolean | undefined;
};

export type RunBatch = {
  runs: Array<{
    /** Default: the first configured agent. */
    agent?: string | undefined;
    /** Shorthand for one user message. */
    input?: string | undefined;
    messages?: InputMessage[] | undefined;
    /** Tool calls that the run executes before its first model call, as if the model had made them. Can follow messages or replace them. */
    calls?: GivenCall[] | undefined;
    /** `provider:model` to use instead of the agent's own model. */
    model?: string | undefined;
    /** Sampling temperature. Anthropic accepts at most 1. */
    temperature?: number | undefined;
    /** Maximum number of tokens in one answer. Default: 8,192 for Anthropic and under a budget, otherwise the provider's own. */
    max_tokens?: number | undefined;
    /** Maximum number of tokens for thinking. */
    thinking?: number | undefined;
    /** `auto`: the model decides whether to call tools. `none`: the model calls no tools. `required`: the model calls at least one tool. `name`: the model calls this tool. The requirement ends once a tool has been called after the user's last message. */
    tool_choice?: "auto" | "none" | "required" | {
      name: string;
    } | undefined;
    /** JSON Schema (2020-12) of an object. The final answer is JSON that matches this schema. The `done` event and the run contain the answer as `output`. Default: the agent's own schema. */
    output_schema?: Record<string, unknown> | undefined;
    /** Tools that the client executes. A call interrupts the run; send its result with `resume`. */
    tools?: ClientTool[] | undefined;
    /** Default: `{}`. */
    metadata?: Record<string, string | number | boolean> | undefined;
    /** Keeps the thread. With `false`, the server deletes it once the run has ended and you have read the answer, or after `retention.temporary_threads`. Default: `true`. */
    keep_thread?: boolean | undefined;
  }>;
};

export type ResumeRun = {
  /** Answers to some or all open interrupts. */
  answers: Answer[];
  /** Tools that the client executes. A call interrupts the run; send its result with `resume`. */
  tools?: ClientTool[] | undefined;
  /** Action if the client disconnects before the run ends. Default: `"continue"`. */
  on_disconnect?: "continue" | "cancel" | undefined;
  /** Return 202 immediately. Follow the run's events at the URL in `Location`. Default: `false`. */
  background?: boolean | undefined;
};

export type ConnectionSpec = {
  type: "mcp_oauth";
  /** Address of the MCP server. The token is sent only to this address. */
  mcp_server_url: string;
  access_token: string;
  /** Time when the access token expires. */
  expires_at?: string | undefined;
  /** How the server gets a new access token. Without it, the connection ends with its access token. */
  refresh?: {
    client_id: string;
    refresh_token: string;
    /** Address where the server exchanges the refresh token. */
    token_endpoint: string;
    /** How the server authenticates there. Default: `{"type":"none"}`. */
    token_endpoint_auth?: {
      type: "none";
    } | {
      type: "client_secret_basic" | "client_secret_post";
      client_secret: string;
    } | undefined;
    /** Address where the server revokes the tokens when the connection is deleted (RFC 7009). */
    revocation_endpoint?: string | undefined;
    /** `resource` parameter of each token request (RFC 8707). */
    resource?: string | undefined;
    scope?: string | undefined;
  } | undefined;
} | {
  type: "static_bearer";
  /** Address of the MCP server. The token is sent only to this address. */
  mcp_server_url: string;
  token: string;
} | {
  type: "environment_variable";
  secret_name: string;
  secret_value: string;
  /** Hosts that can receive the value. */
  networking: {
    type: "unrestricted";
  } | {
    type: "limited";
    /** Hosts that can receive the value. */
    allowed_hosts: string[];
  };
};

export type NewTicket = {
  path: string;
};

export type ScheduleSpec = {
  /** When to start runs, as five fields: minute, hour, day of the month, month, day of the week. `0 9 * * MON-FRI` means 9:00, Monday to Friday. */
  cron?: string | undefined;
  /** Time of a single run, with its UTC offset. Use either `at` or `cron`. */
  at?: string | undefined;
  /** IANA time zone for `cron`, such as `Europe/Berlin`. Default: `"UTC"`. */
  timezone?: string | undefined;
  /** Agent that executes the runs. Default: the thread's agent, otherwise the default agent. */
  agent?: string | undefined;
  /** User message that each run begins with. */
  input: string;
  /** `new`: each run gets its own thread. Otherwise, the id of the thread that all runs continue. Default: `"new"`. */
  thread?: "new" | string | undefined;
  /** Keeps the new threads. With `false`, each thread is deleted after its run, like a temporary thread of `POST /runs`. Only with `thread: new`. Default: `true`. */
  keep_thread?: boolean | undefined;
  /** Action if the previous run has not ended or is waiting for an answer: skip the slot, wait until the run ends, or start another run alongside it. Default: `"skip"`. */
  overlap?: "skip" | "queue" | "allow" | undefined;
  /** Action on slots missed by more than a minute because the server was down: skip all, start a run for the most recent, or start one for each. Default: `"latest"`. */
  catch_up?: "none" | "latest" | "all" | undefined;
  /** Time after which the schedule starts no more runs. */
  until?: string | undefined;
  /** Action if a run asks a question: wait for an answer as the agent's `interrupts` configure, or deny it because no one is available. Default: `"wait"`. */
  questions?: "wait" | "deny" | undefined;
  /** Metadata of the runs, at most 30 keys. The server adds `schedule` and `scheduled_for`. Default: `{}`. */
  metadata?: Record<string, string | number | boolean> | undefined;
  /** While true, the schedule starts no runs. Default: `false`. */
  paused?: boolean | undefined;
};

export type ScheduleTimes = {
  /** When to start runs, as five fields: minute, hour, day of the month, month, day of the week. `0 9 * * MON-FRI` means 9:00, Monday to Friday. */
  cron?: string | undefined;
  /** Time of a single run, with its UTC offset. Use either `at` or `cron`. */
  at?: string | undefined;
  /** IANA time zone for `cron`, such as `Europe/Berlin`. Default: `"UTC"`. */
  timezone?: string | undefined;
  /** Time after which the schedule starts no more runs. */
  until?: string | undefined;
};

export type HttpToolRegistration = {
  name: string;
  /** Description for the model. */
  description: string;
  /** JSON Schema (2020-12) for the arguments. `type` must be `object`. */
  parameters: Record<string, unknown>;
  /** URL that receives each call as a POST request. */
  callback_url: string;
  /** Headers to send with each call. Responses never contain them. Default: `{}`. */
  headers?: Record<string, string> | undefined;
  /** Timeout of one call in milliseconds, including retries. Default: `30000`. */
  timeout_ms?: number | undefined;
  /** True if a repeated call with the same `Idempotency-Key` does no harm, so that Skein may retry it. Default: `false`. */
  idempotent?: boolean | undefined;
  /** Hints for agents' permissions. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` have an effect. Default: `{}`. */
  annotations?: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  } | undefined;
  /** Names and globs of agents that can use the tool. Default: `["*"]`. */
  agents?: string[] | undefined;
};

export type HttpToolChange = {
  /** Description for the model. */
  description?: string | undefined;
  /** JSON Schema (2020-12) for the arguments. `type` must be `object`. */
  parameters?: Record<string, unknown> | undefined;
  /** URL that receives each call as a POST request. */
  callback_url?: string | undefined;
  /** Headers to merge into the tool's existing headers. `null` removes a header. */
  headers?: Record<string, string | null> | undefined;
  timeout_ms?: number | undefined;
  idempotent?: boolean | undefined;
  /** Hints for agents' permissions. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` have an effect. */
  annotations?: {
    read_only?: boolean | undefined;
    destructive?: boolean | undefined;
    category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
    requires_permission?: boolean | undefined;
  } | undefined;
  agents?: string[] | undefined;
};

/** `{result}` or `{error}`, as in the response to a call. */
export type ToolResult = Record<string, unknown>;

export type TriggerSpec = {
  /** Agent that each delivery runs. */
  agent: string;
  /** How the server verifies that a delivery comes from the sender. A delivery that it cannot verify gets 401. */
  verify: TriggerVerificationInput;
  /** Secret that the sender sends or signs with. Default: the trigger keeps its secret. For a new trigger, the server generates one, except for `slack` and `stripe`, which issue their own. */
  secret?: string | undefined;
  /** Message that starts the run. `{{body.…}}`, `{{headers.…}}` and `{{delivery.id}}` are replaced with values from the delivery. Objects are inserted as JSON; a missing value is replaced with nothing. */
  input: string;
  /** `new`: each delivery starts a thread. Otherwise a template: deliveries that produce the same text share a thread, and one that produces an empty text starts a new thread. Default: `"new"`. */
  thread?: string | undefined;
  /** Template for the id by which the server recognizes a repeated delivery. Default: the id that the scheme defines, otherwise a hash of the body. */
  delivery_id?: string | undefined;
  /** Map from paths in the body to required values. Deliveries with another value at any of these paths are ignored. Default: `{}`. */
  filter?: Record<string, Array<string | number | boolean | null>> | undefined;
  /** Metadata of each run. The run's metadata also has the trigger's id as `trigger`. Default: `{}`. */
  metadata?: Record<string, string | number | boolean> | undefined;
  /** While a trigger is paused, its address returns 404. Default: `false`. */
  paused?: boolean | undefined;
};

export type SampleDelivery = {
  /** Headers of the delivery. Credentials and signatures are not needed. Default: `{}`. */
  headers?: Record<string, string> | undefined;
  /** Body of the delivery as JSON. */
  body: unknown;
};

export type WebhookSpec = {
  /** Address that receives each event as a POST request. */
  url: string;
  /** Events to send. `run.ended`: a run ended without an error. `run.failed`: a run ended with an error. `interrupt.opened`: a run is waiting for answers. `budget.near`: most of a budget has been used. `schedule.paused`: the server paused a schedule. `audit.entry`: an entry was added to the audit trail; tenant webhooks only. */
  on: Array<"run.ended" | "run.failed" | "interrupt.opened" | "budget.near" | "schedule.paused" | "audit.entry">;
  /** Names of agents. Events of other agents are not sent. Default: all agents. */
  agents?: string[] | undefined;
  /** Sends a thread's events in order. Each event waits until the previous one has been delivered or has failed. Default: `false`. */
  ordered?: boolean | undefined;
  /** While true, the server sends nothing. Default: `false`. */
  paused?: boolean | undefined;
};

export type NewWebhook = {
  /** Address that receives each event as a POST request. */
  url: string;
  /** Events to send. `run.ended`: a run ended without an error. `run.failed`: a run ended with an error. `interrupt.opened`: a run is waiting for answers. `budget.near`: most of a budget has been used. `schedule.paused`: the server paused a schedule. `audit.entry`: an entry was added to the audit trail; tenant webhooks only. */
  on: Array<"run.ended" | "run.failed" | "interrupt.opened" | "budget.near" | "schedule.paused" | "audit.entry">;
  /** Names of agents. Events of other agents are not sent. Default: all agents. */
  agents?: string[] | undefined;
  /** Sends a thread's events in order. Each event waits until the previous one has been delivered or has failed. Default: `false`. */
  ordered?: boolean | undefined;
  /** While true, the server sends nothing. Default: `false`. */
  paused?: boolean | undefined;
  /** Default: the server generates an id. */
  id?: string | undefined;
};

/** By method and path: the types of the request and the response. */
export interface Operations {
  /** Check liveness. */
  "GET /health": {
    answer: {
      status: "ok";
      version: string;
      agents: number;
    };
  };
  /** Check readiness: whether the server can reach its store and backends. */
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
  /** Get an agent and the settings that you can change. */
  "GET /agents/{name}": {
    path: { name: string };
    answer: AgentDetails;
  };
  /** List the tools that an agent's model gets in your runs, by name. */
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
  /** Get your overrides for an agent. */
  "GET /agents/{name}/overrides": {
    path: { name: string };
    answer: AgentOverrides;
  };
  /** Change your overrides for an agent: hooks, skills, model. */
  "PATCH /agents/{name}/overrides": {
    path: { name: string };
    body: OverridesPatch;
    answer: AgentOverrides;
  };
  /** Remove all your overrides for an agent. */
  "DELETE /agents/{name}/overrides": {
    path: { name: string };
    answer: void;
  };
  /** Create a thread. */
  "POST /threads": {
    body: {
      id?: string | undefined;
      /** If absent, the thread's title is the first words of its first run. If empty, the thread has no title and none is generated. */
      title?: string | undefined;
      /** Default: `{}`. */
      metadata?: Record<string, string | number | boolean> | undefined;
    };
    answer: Thread;
  };
  /** List threads, most recently changed first. */
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
      /** If empty, the thread has no title and none is generated. */
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
  /** Fork a thread: create a thread with a copy of its messages up to one of them. */
  "POST /threads/{thread_id}/fork": {
    path: { thread_id: string };
    body: {
      /** Id of the last message to copy. Default: all messages are copied. */
      message_id?: string | undefined;
      id?: string | undefined;
      /** Default: the title of the original thread. */
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
  /** Restore a branch. The messages that it replaces become another branch. */
  "POST /threads/{thread_id}/branches/{branch_id}/restore": {
    path: { thread_id: string; branch_id: string };
    answer: Run;
  };
  /** Share a thread with the tenant's users, read-only. */
  "POST /threads/{thread_id}/shares": {
    path: { thread_id: string };
    body: {
      /** Duration of the share in seconds. Default: `604800`. */
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
      /** Reason for the rating, in the user's words. */
      comment?: string | undefined;
    };
    answer: Feedback;
  };
  /** Remove a rating. */
  "DELETE /threads/{thread_id}/messages/{message_id}/feedback": {
    path: { thread_id: string; message_id: string };
    answer: void;
  };
  /** List the rated answers of a thread, most recently changed first. */
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
  /** Start a run on a new thread and follow it. */
  "POST /runs": {
    body: StartRunOnNewThread;
    answer: FinishedRun | Run;
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
  /** Get the request to the model in one of a run's model calls. */
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
  /** Start up to 100 runs, each on a new thread, in the background. */
  "POST /runs/batch": {
    body: RunBatch;
    answer: {
      items: Array<{
        run?: Run | undefined;
        error?: Error | undefined;
      }>;
    };
  };
  /** List your schedules, by id. */
  "GET /schedules": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: Schedule[];
      next_cursor?: string | undefined;
    };
  };
  /** Get a schedule, with its next times and its last run. */
  "GET /schedules/{schedule_id}": {
    path: { schedule_id: string };
    answer: Schedule;
  };
  /** Create or replace a schedule. */
  "PUT /schedules/{schedule_id}": {
    path: { schedule_id: string };
    body: ScheduleSpec;
    answer: Schedule;
  };
  /** Delete a schedule. */
  "DELETE /schedules/{schedule_id}": {
    path: { schedule_id: string };
    answer: void;
  };
  /** Start a run of a schedule now. */
  "POST /schedules/{schedule_id}/run": {
    path: { schedule_id: string };
    answer: Run;
  };
  /** Show the next times of a schedule, without storing it. */
  "POST /schedules/preview": {
    body: ScheduleTimes;
    answer: NextRuns;
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
      /** Words that the command must begin with. A list matches if one of its entries matches. */
      command_prefix?: string[] | undefined;
      /** Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part. */
      regex?: string | undefined;
      /** Exact arguments of the call. */
      arguments?: Record<string, unknown> | undefined;
      /** Id of the rule. The rule replaces an existing rule with the same id. Default: derived from the conditions. */
      id?: string | undefined;
      /** Priority within the scope; the highest comes first. Default: `0`. */
      priority?: number | undefined;
      /** Text for the model when the rule denies a call, or for the person when it asks about one. */
      message?: string | undefined;
      /** Note for people who read the rule. */
      description?: string | undefined;
      /** Long form: together with `matcher`, replaces `allow`, `deny` and `ask`. */
      decision?: "allow" | "deny" | "ask" | undefined;
      /** Conditions of the long form. */
      matcher?: {
        /** Name of a tool, or a glob of names. */
        tool?: string | undefined;
        /** Category of the tool. */
        category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
        /** Words that the command must begin with. A list matches if one of its entries matches. */
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
      /** Words that the command must begin with. A list matches if one of its entries matches. */
      command_prefix?: string[] | undefined;
      /** Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part. */
      regex?: string | undefined;
      /** Exact arguments of the call. */
      arguments?: Record<string, unknown> | undefined;
      /** Id of the rule. The rule replaces an existing rule with the same id. Default: derived from the conditions. */
      id?: string | undefined;
      /** Priority within the scope; the highest comes first. Default: `0`. */
      priority?: number | undefined;
      /** Text for the model when the rule denies a call, or for the person when it asks about one. */
      message?: string | undefined;
      /** Note for people who read the rule. */
      description?: string | undefined;
      /** Long form: together with `matcher`, replaces `allow`, `deny` and `ask`. */
      decision?: "allow" | "deny" | "ask" | undefined;
      /** Conditions of the long form. */
      matcher?: {
        /** Name of a tool, or a glob of names. */
        tool?: string | undefined;
        /** Category of the tool. */
        category?: "read" | "write" | "execute" | "network" | "plan" | undefined;
        /** Words that the command must begin with. A list matches if one of its entries matches. */
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
  /** Change a registered tool without changing its secret. */
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
  /** Create a webhook. */
  "POST /webhooks": {
    body: NewWebhook;
    answer: WebhookWithSecret;
  };
  /** List webhooks, by id. */
  "GET /webhooks": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: Webhook[];
      next_cursor?: string | undefined;
    };
  };
  /** Create or replace a webhook. */
  "PUT /webhooks/{webhook_id}": {
    path: { webhook_id: string };
    body: WebhookSpec;
    answer: WebhookWithSecret;
  };
  /** Delete a webhook and its deliveries. */
  "DELETE /webhooks/{webhook_id}": {
    path: { webhook_id: string };
    answer: void;
  };
  /** Get a webhook. */
  "GET /webhooks/{webhook_id}": {
    path: { webhook_id: string };
    answer: Webhook;
  };
  /** Replace the secret of a webhook. */
  "POST /webhooks/{webhook_id}/rotate": {
    path: { webhook_id: string };
    answer: WebhookWithSecret;
  };
  /** Send a sample to a webhook. */
  "POST /webhooks/{webhook_id}/test": {
    path: { webhook_id: string };
    answer: WebhookTest;
  };
  /** List the deliveries of a webhook, newest first. */
  "GET /webhooks/{webhook_id}/deliveries": {
    path: { webhook_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined; status?: "pending" | "delivered" | "failed" | undefined };
    answer: {
      items: WebhookDelivery[];
      next_cursor?: string | undefined;
    };
  };
  /** Send a delivery again. */
  "POST /webhooks/{webhook_id}/deliveries/{delivery_id}/send": {
    path: { webhook_id: string; delivery_id: string };
    answer: WebhookDelivery;
  };
  /** Create a webhook. */
  "POST /admin/webhooks": {
    query: { tenant?: string | undefined };
    body: NewWebhook;
    answer: WebhookWithSecret;
  };
  /** List webhooks, by id. */
  "GET /admin/webhooks": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined };
    answer: {
      items: Webhook[];
      next_cursor?: string | undefined;
    };
  };
  /** Create or replace a webhook. */
  "PUT /admin/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query: { tenant?: string | undefined };
    body: WebhookSpec;
    answer: WebhookWithSecret;
  };
  /** Delete a webhook and its deliveries. */
  "DELETE /admin/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query: { tenant?: string | undefined };
    answer: void;
  };
  /** Get a webhook. */
  "GET /admin/webhooks/{webhook_id}": {
    path: { webhook_id: string };
    query: { tenant?: string | undefined };
    answer: Webhook;
  };
  /** Replace the secret of a webhook. */
  "POST /admin/webhooks/{webhook_id}/rotate": {
    path: { webhook_id: string };
    query: { tenant?: string | undefined };
    answer: WebhookWithSecret;
  };
  /** Send a sample to a webhook. */
  "POST /admin/webhooks/{webhook_id}/test": {
    path: { webhook_id: string };
    query: { tenant?: string | undefined };
    answer: WebhookTest;
  };
  /** List the deliveries of a webhook, newest first. */
  "GET /admin/webhooks/{webhook_id}/deliveries": {
    path: { webhook_id: string };
    query: { limit?: number | undefined; cursor?: string | undefined; status?: "pending" | "delivered" | "failed" | undefined; tenant?: string | undefined };
    answer: {
      items: WebhookDelivery[];
      next_cursor?: string | undefined;
    };
  };
  /** Send a delivery again. */
  "POST /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/send": {
    path: { webhook_id: string; delivery_id: string };
    query: { tenant?: string | undefined };
    answer: WebhookDelivery;
  };
  /** Create or replace a connection. */
  "PUT /me/connections/{connection_id}": {
    path: { connection_id: string };
    body: ConnectionSpec;
    answer: Connection;
  };
  /** Delete a connection. */
  "DELETE /me/connections/{connection_id}": {
    path: { connection_id: string };
    answer: DeletedConnection;
  };
  /** Get a connection. */
  "GET /me/connections/{connection_id}": {
    path: { connection_id: string };
    answer: Connection;
  };
  /** Connect an account in a browser. */
  "POST /me/connections/{connection_id}/authorize": {
    path: { connection_id: string };
    answer: ConnectionAuthorization;
  };
  /** List connections, by id. */
  "GET /me/connections": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: Connection[];
      next_cursor?: string | undefined;
      /** Only on the first page: MCP servers with accounts that can be connected with `authorize` but are not connected yet. */
      not_connected?: ConnectableServer[] | undefined;
    };
  };
  /** Create or replace a connection. */
  "PUT /admin/connections/{connection_id}": {
    path: { connection_id: string };
    query: { tenant?: string | undefined };
    body: ConnectionSpec;
    answer: Connection;
  };
  /** Delete a connection. */
  "DELETE /admin/connections/{connection_id}": {
    path: { connection_id: string };
    query: { tenant?: string | undefined };
    answer: DeletedConnection;
  };
  /** Get a connection. */
  "GET /admin/connections/{connection_id}": {
    path: { connection_id: string };
    query: { tenant?: string | undefined };
    answer: Connection;
  };
  /** Connect an account in a browser. */
  "POST /admin/connections/{connection_id}/authorize": {
    path: { connection_id: string };
    query: { tenant?: string | undefined };
    answer: ConnectionAuthorization;
  };
  /** List connections, by id. */
  "GET /admin/connections": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined };
    answer: {
      items: Connection[];
      next_cursor?: string | undefined;
      /** Only on the first page: MCP servers with accounts that can be connected with `authorize` but are not connected yet. */
      not_connected?: ConnectableServer[] | undefined;
    };
  };
  /** Create or replace a trigger. */
  "PUT /triggers/{trigger_id}": {
    path: { trigger_id: string };
    body: TriggerSpec;
    answer: NewTrigger;
  };
  /** Get a trigger with its last deliveries. */
  "GET /triggers/{trigger_id}": {
    path: { trigger_id: string };
    answer: TriggerWithDeliveries;
  };
  /** Delete a trigger. */
  "DELETE /triggers/{trigger_id}": {
    path: { trigger_id: string };
    answer: void;
  };
  /** Create a trigger with an id that the server generates. */
  "POST /triggers": {
    body: TriggerSpec;
    answer: NewTrigger;
  };
  /** List your triggers, newest first. */
  "GET /triggers": {
    query: { limit?: number | undefined; cursor?: string | undefined };
    answer: {
      items: Trigger[];
      next_cursor?: string | undefined;
    };
  };
  /** Replace the secret of a trigger. */
  "POST /triggers/{trigger_id}/rotate": {
    path: { trigger_id: string };
    body: {
      /** New secret. Default: the server generates one. */
      secret?: string | undefined;
      /** Seconds for which the old secret remains valid along with the new one. Default: `86400`. */
      keep_old_for?: number | undefined;
    };
    answer: NewTrigger;
  };
  /** Show the run that a delivery would start, without starting it. */
  "POST /triggers/{trigger_id}/test": {
    path: { trigger_id: string };
    body: SampleDelivery;
    answer: PlannedDelivery;
  };
  /** Get the status of the user's backend without starting it. */
  "GET /backend": {
    query: { agent?: string | undefined };
    answer: BackendStatus;
  };
  /** Start the backend. */
  "POST /backend/start": {
    query: { agent?: string | undefined };
    answer: BackendStatus;
  };
  /** Stop the backend and keep its files. */
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
  /** Get the usage and quotas of tenants, or of one user. */
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
      /** Only `skein keys create` can create keys with `admin` or `operator`. Default: `["read","run"]`. */
      scopes?: Array<"run" | "read" | "tools"> | undefined;
      /** Purpose of the key. Default: `""`. */
      name?: string | undefined;
      /** Default: the key is valid until it is revoked. */
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
  /** Delete all data of a user. */
  "DELETE /admin/tenants/{tenant}/users/{user}": {
    path: { tenant: string; user: string };
    answer: DeletedUser;
  };
  /** Export all data of a user. */
  "GET /admin/tenants/{tenant}/users/{user}/export": {
    path: { tenant: string; user: string };
    answer: void;
  };
  /** Read the audit trail of a tenant. */
  "GET /admin/audit": {
    query: { limit?: number | undefined; cursor?: string | undefined; tenant?: string | undefined; user?: string | undefined; action?: string | undefined; since?: string | undefined; until?: string | undefined };
    answer: {
      items: AuditEntry[];
      next_cursor?: string | undefined;
    };
  };
  /** Deliver an event to a trigger. */
  "POST /hooks/{address}": {
    path: { address: string };
    answer: {
      challenge: string;
    } | {
      thread_id: string;
      run_id: string;
    } | {
      /** Reason why the delivery starts no run. */
      ignored: string;
    };
  };
  /** Read a file or a byte range, or list a folder. */
  "GET /backend/files/{path}": {
    path: { path: string };
    query: { agent?: string | undefined };
    answer: {
      items: FileEntry[];
    };
  };
  /** Write a file atomically from the request body. */
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
  /** Create a ticket for a browser to open one stream or file. */
  "POST /tickets": {
    body: NewTicket;
    answer: Ticket;
  };
  /** Get the sign-in options for a front end. */
  "GET /sign-in": {
    answer: SignInOptions;
  };
}
